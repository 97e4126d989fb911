/* Contributed operators on 8-bit tensors: QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu,
 * QLinearGlobalAveragePool, QLinearConcat (docs/exact.md, "Quantization").
 *
 * Each operand comes with a scale and an optional zero point, of one element each. A byte has 256
 * values, so results of one operand are looked up.
 *
 *     scratch: [values] [bytes], 256 of each
 */
#include <inttypes.h>

#include "base/om_thread.h"
#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_exact_math.h"
#include "ops/op_quantize.h"
#include "ops/op_types.h"

enum { OM_QLINEAR_VALUES = 256, OM_QLINEAR_BLOCK = 96, OM_QLINEAR_GRAIN = 16384 };

typedef struct om_qlinear_params {
  uint8_t number; /* of elementwise.def */
  float scalars[2];
  int64_t axis;
  bool is_channels_last;
} om_qlinear_params;

/* A scale and a zero point. */
typedef struct om_qlinear_scale {
  float scale, zero;
} om_qlinear_scale;

static om_qlinear_scale scale_at(const om_op_call *call, uint32_t index) {
  return (om_qlinear_scale){om_quantize_single(call->inputs[index], 1.0f),
                            om_quantize_single(om_rule_input(call, index + 1), 0.0f)};
}

/* The operand's scale at `index` and its zero point behind it. */
static om_status check_scale(om_ctx *ctx, const om_op_call *call, uint32_t index, om_dtype dtype) {
  OM_TRY(om_quantize_check_type(ctx, call, index, OM_DT(OM_DTYPE_F32)));
  OM_TRY(om_quantize_check_type(ctx, call, index + 1, OM_DT(dtype)));
  OM_TRY(om_quantize_check_single(ctx, call, index));
  return om_quantize_check_single(ctx, call, index + 1);
}

static om_status check_byte(om_ctx *ctx, const om_op_call *call, uint32_t index, om_dtype dtype) {
  OM_TRY(om_quantize_check_type(ctx, call, index, OM_DT(dtype)));
  return check_scale(ctx, call, index + 1, dtype);
}

/* Zero points in between may be absent; these inputs may not. */
static om_status require(om_ctx *ctx, const om_node *node, const uint32_t *inputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i] < node->input_count && node->inputs[inputs[i]] != OM_NO_VALUE) continue;
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "Input %" PRIu32 " is absent, but it is not optional.", inputs[i]);
  }
  return OM_OK;
}

/* The value of each byte. */
static void fill_values(om_dtype dtype, om_qlinear_scale s, float *out) {
  for (int i = 0; i < OM_QLINEAR_VALUES; ++i) {
    const int whole = dtype == OM_DTYPE_I8 && i > 127 ? i - 256 : i;
    out[i] = ((float)whole - s.zero) * s.scale;
  }
}

static float quantized(float value, om_qlinear_scale s) {
  return om_round(om_div(value, s.scale)) + s.zero;
}

/* ---- QLinearAdd, QLinearMul ---- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C_SCALE, C_ZERO };

static om_status resolve_binary(om_ctx *ctx, const om_node *node, void *params) {
  static const uint32_t needed[] = {B, B_SCALE, C_SCALE};
  om_qlinear_params *p = params;
  OM_TRY(require(ctx, node, needed, OM_COUNT_OF(needed)));
  p->number = strcmp(node->type, "QLinearAdd") == 0 ? OM_ELEMENTWISE_Add : OM_ELEMENTWISE_Mul;
  return OM_OK;
}

static om_status infer_binary(om_ctx *ctx, const om_op_call *call) {
  const om_dtype dtype = call->inputs[A]->dtype;
  const om_tensor *const operands[2] = {call->inputs[A], call->inputs[B]};
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  OM_TRY(check_byte(ctx, call, A, dtype));
  OM_TRY(check_byte(ctx, call, B, dtype));
  OM_TRY(check_scale(ctx, call, C_SCALE, dtype));
  OM_TRY(om_broadcast_shape(ctx, operands, 2, &rank, dims));
  return om_rule_set(ctx, call, 0, dtype, rank, dims);
}

typedef struct om_qlinear_job {
  const om_op_call *call;
  om_qlinear_scale scales[2]; /* of the operands */
  om_qlinear_scale scale;     /* of the result */
  om_broadcast walk;
} om_qlinear_job;

OM_CLONES static void add_values(size_t count, const float *a, float *y) {
  for (size_t i = 0; i < count; ++i) y[i] = a[i] + y[i];
}

OM_CLONES static void multiply_values(size_t count, const float *a, float *y) {
  for (size_t i = 0; i < count; ++i) y[i] = a[i] * y[i];
}

/* `count` values of an operand from element `begin` of a row on. */
static void load_values(const om_qlinear_job *job,
                        const om_broadcast_row *row,
                        uint32_t operand,
                        size_t begin,
                        size_t count,
                        float *values) {
  const om_tensor *t = job->call->inputs[operand == 0 ? A : B];
  const om_qlinear_scale *s = &job->scales[operand];
  const bool advances = row->advances[operand];
  const uint8_t *from = (const uint8_t *)t->data + row->offsets[operand] + (advances ? begin : 0);
  om_dequantize_bytes(t->dtype, advances ? count : 1, from, s->scale, (int32_t)s->zero, values);
  for (size_t i = 1; !advances && i < count; ++i) values[i] = values[0];
}

static void binary_row(const om_qlinear_job *job, const om_broadcast_row *row) {
  const om_qlinear_params *p = job->call->params;
  const om_tensor *c = job->call->outputs[0];
  float a[OM_QLINEAR_BLOCK], y[OM_QLINEAR_BLOCK];
  for (size_t begin = 0; begin < row->count; begin += OM_QLINEAR_BLOCK) {
    const size_t left = row->count - begin;
    const size_t count = left < OM_QLINEAR_BLOCK ? left : OM_QLINEAR_BLOCK;
    uint8_t *target = (uint8_t *)c->data + row->first + begin;
    load_values(job, row, 0, begin, count, a);
    load_values(job, row, 1, begin, count, y);
    if (p->number == OM_ELEMENTWISE_Add) {
      add_values(count, a, y);
    } else {
      multiply_values(count, a, y);
    }
    om_quantize_bytes(c->dtype, count, y, job->scale.scale, job->scale.zero, target);
  }
}

static void binary_range(void *arg, size_t begin, size_t end) {
  const om_qlinear_job *job = arg;
  for (size_t first = begin; first < end;) {
    const om_broadcast_row row = om_broadcast_row_at(&job->walk, first, end);
    binary_row(job, &row);
    first += row.count;
  }
}

static om_status run_binary(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *const operands[2] = {call->inputs[A], call->inputs[B]};
  om_qlinear_job job = {.call = call,
                        .scales = {scale_at(call, A_SCALE), scale_at(call, B_SCALE)},
                        .scale = scale_at(call, C_SCALE)};
  om_broadcast_init(&job.walk, operands, 2, call->outputs[0]);
  om_parallel_for(ctx, om_tensor_elems(call->outputs[0]), OM_QLINEAR_GRAIN, binary_range, &job);
  return OM_OK;
}

/* ---- QLinearSigmoid, QLinearLeakyRelu ---- */

static size_t scratch_values(const om_op_call *call) {
  (void)call;
  return OM_QLINEAR_VALUES * (sizeof(float) + 1);
}

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

static om_status resolve_unary(om_ctx *ctx, const om_node *node, void *params) {
  static const uint32_t needed[] = {Y_SCALE};
  om_qlinear_params *p = params;
  OM_TRY(require(ctx, node, needed, OM_COUNT_OF(needed)));
  p->number = OM_ELEMENTWISE_Sigmoid;
  if (strcmp(node->type, "QLinearLeakyRelu") != 0) return OM_OK;
  p->number = OM_ELEMENTWISE_LeakyRelu;
  return om_node_attr_float(ctx, node, "alpha", 0.01f, &p->scalars[0]);
}

static om_status infer_unary(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[X];
  OM_TRY(check_scale(ctx, call, X_SCALE, x->dtype));
  OM_TRY(check_scale(ctx, call, Y_SCALE, x->dtype));
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

/* The result's byte for each byte of an operand; number 0: the value stays. */
static void fill_bytes(const om_qlinear_params *p,
                       om_dtype dtype,
                       om_qlinear_scale from,
                       om_qlinear_scale to,
                       float *values,
                       uint8_t *out) {
  const void *const in[1] = {values};
  fill_values(dtype, from, values);
  if (p->number != 0) {
    om_elementwise_kernel(p->number, OM_DTYPE_F32)(in, values, OM_QLINEAR_VALUES, p->scalars);
  }
  for (int i = 0; i < OM_QLINEAR_VALUES; ++i) values[i] = quantized(values[i], to);
  om_cast_elems(OM_DTYPE_F32, values, dtype, out, OM_QLINEAR_VALUES, true);
}

static om_status run_unary(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[X];
  float *values = call->scratch;
  uint8_t *bytes = (uint8_t *)(values + OM_QLINEAR_VALUES);
  const uint8_t *in = x->data;
  uint8_t *out = call->outputs[0]->data;
  (void)ctx;
  fill_bytes(
      call->params, x->dtype, scale_at(call, X_SCALE), scale_at(call, Y_SCALE), values, bytes);
  for (size_t i = 0; i < om_tensor_elems(x); ++i) out[i] = bytes[in[i]];
  return OM_OK;
}

/* ---- QLinearGlobalAveragePool ---- */

static om_status resolve_pool(om_ctx *ctx, const om_node *node, void *params) {
  static const uint32_t needed[] = {Y_SCALE};
  om_qlinear_params *p = params;
  int64_t last = 0;
  OM_TRY(require(ctx, node, needed, OM_COUNT_OF(needed)));
  OM_TRY(om_node_attr_int(ctx, node, "channels_last", 0, &last));
  p->is_channels_last = last != 0;
  return OM_OK;
}

static om_status infer_pool(om_ctx *ctx, const om_op_call *call) {
  const om_qlinear_params *p = call->params;
  const om_tensor *x = call->inputs[X];
  int64_t dims[OM_MAX_RANK] = {0};
  OM_TRY(check_scale(ctx, call, X_SCALE, x->dtype));
  OM_TRY(check_scale(ctx, call, Y_SCALE, x->dtype));
  if (x->rank < 3) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "The input has rank %" PRIu32 "; 3 or more is expected.", x->rank);
  }
  const uint32_t channels = p->is_channels_last ? x->rank - 1 : 1;
  for (uint32_t d = 0; d < x->rank; ++d) dims[d] = d == 0 || d == channels ? x->dims[d] : 1;
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

typedef struct om_qlinear_pool {
  const om_tensor *x, *y;
  om_qlinear_scale from, to;
  size_t places, step, channels; /* step: from place to place */
  float factor;
} om_qlinear_pool;

static int64_t sum_places(const om_qlinear_pool *p, const uint8_t *in) {
  enum { MOST = 1 << 20 }; /* whose sum does not wrap */
  const bool is_signed = p->x->dtype == OM_DTYPE_I8;
  int64_t sum = 0;
  for (size_t k = 0; p->step == 1 && k < p->places; k += MOST) {
    const size_t left = p->places - k;
    sum += (int32_t)om_quantize_sum(in + k, left < MOST ? left : MOST, is_signed);
  }
  for (size_t k = 0; p->step != 1 && k < p->places; ++k) {
    const uint8_t byte = in[k * p->step];
    sum += is_signed && byte > 127 ? (int64_t)byte - 256 : (int64_t)byte;
  }
  return sum;
}

static void pool_range(void *arg, size_t begin, size_t end) {
  enum { BLOCK = 64 }; /* results that become bytes at once */
  const om_qlinear_pool *p = arg;
  const int64_t zeros = (int64_t)p->places * (int64_t)p->from.zero;
  float values[BLOCK];
  for (size_t i = begin; i < end; i += BLOCK) {
    const size_t count = end - i < BLOCK ? end - i : BLOCK;
    for (size_t at = i; at < i + count; ++at) {
      const size_t first = p->step == 1
                               ? at * p->places
                               : at / p->channels * p->channels * p->places + at % p->channels;
      const int64_t sum = sum_places(p, (const uint8_t *)p->x->data + first);
      values[at - i] = om_round((float)(sum - zeros) * p->factor) + p->to.zero;
    }
    om_cast_elems(OM_DTYPE_F32, values, p->y->dtype, (uint8_t *)p->y->data + i, count, true);
  }
}

static om_status run_pool(om_ctx *ctx, const om_op_call *call) {
  enum { BYTES = 16384 }; /* of a piece, about */
  const bool is_channels_last = ((const om_qlinear_params *)call->params)->is_channels_last;
  om_qlinear_pool p = {.x = call->inputs[X],
                       .y = call->outputs[0],
                       .from = scale_at(call, X_SCALE),
                       .to = scale_at(call, Y_SCALE)};
  const size_t results = om_tensor_elems(p.y);
  p.channels = (size_t)p.x->dims[is_channels_last ? p.x->rank - 1 : 1];
  p.step = is_channels_last ? p.channels : 1;
  p.places = results ? om_tensor_elems(p.x) / results : 0;
  p.factor = om_div(p.from.scale, p.to.scale * (float)p.places);
  om_parallel_for(ctx, results, BYTES / (p.places < BYTES ? p.places + 1 : BYTES), pool_range, &p);
  return OM_OK;
}

/* ---- QLinearConcat: the result's scale and zero point, then (tensor, scale, zero point)... ----
 */

static om_status resolve_concat(om_ctx *ctx, const om_node *node, void *params) {
  om_qlinear_params *p = params;
  if (node->input_count % 3 == 2) return om_node_attr_int(ctx, node, "axis", 0, &p->axis);
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %" PRIu32 " inputs; two and three for each operand are expected.",
                 node->input_count);
}

static om_status infer_concat(om_ctx *ctx, const om_op_call *call) {
  const om_qlinear_params *p = call->params;
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t axis = 0;
  OM_TRY(om_check_all_there(ctx, call));
  const om_tensor *first = call->inputs[2];
  OM_TRY(om_quantize_check_type(ctx, call, 2, OM_DT_BYTE_INT));
  OM_TRY(check_scale(ctx, call, 0, first->dtype));
  OM_TRY(om_rule_axis(ctx, p->axis, first->rank, &axis));
  memcpy(dims, first->dims, sizeof dims);
  dims[axis] = 0;
  for (uint32_t i = 2; i < call->input_count; i += 3) {
    const om_tensor *t = call->inputs[i];
    OM_TRY(check_byte(ctx, call, i, first->dtype));
    bool fits = t->rank == first->rank;
    for (uint32_t d = 0; fits && d < t->rank; ++d) fits = d == axis || t->dims[d] == dims[d];
    if (!fits) {
      char text[OM_SHAPE_TEXT];
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input %" PRIu32 " has shape %s, which does not go with the others.",
                     i,
                     om_shape_text(text, sizeof text, t->rank, t->dims));
    }
    dims[axis] += t->dims[axis];
  }
  return om_rule_set(ctx, call, 0, first->dtype, first->rank, dims);
}

static om_status run_concat(om_ctx *ctx, const om_op_call *call) {
  const om_qlinear_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + (int64_t)y->rank : p->axis);
  const size_t outer = om_rule_product(y->dims, 0, axis);
  const size_t row = om_rule_product(y->dims, axis, y->rank);
  float *values = call->scratch;
  uint8_t *bytes = (uint8_t *)(values + OM_QLINEAR_VALUES);
  size_t offset = 0;
  (void)ctx;
  for (uint32_t i = 2; i < call->input_count; i += 3) {
    const om_tensor *t = call->inputs[i];
    const size_t own = om_rule_product(t->dims, axis, t->rank);
    const uint8_t *in = t->data;
    fill_bytes(p, t->dtype, scale_at(call, i + 1), scale_at(call, 0), values, bytes);
    for (size_t o = 0; o < outer; ++o) {
      uint8_t *out = (uint8_t *)y->data + o * row + offset;
      for (size_t k = 0; k < own; ++k) out[k] = bytes[in[o * own + k]];
    }
    offset += own;
  }
  return OM_OK;
}

#define OM_QLINEAR_ENTRY(name, least, most, types, form, scratch) \
  {.domain = "com.microsoft",                                     \
   .type = name,                                                  \
   .first_opset = 1,                                              \
   OM_RULE_COUNTS(least, most, 1, 1),                             \
   .dtypes = types,                                               \
   .may_be_composed = true,                                       \
   .params_bytes = sizeof(om_qlinear_params),                     \
   .resolve = resolve_##form,                                     \
   .infer = infer_##form,                                         \
   .scratch_bytes = scratch,                                      \
   .run = run_##form}

const om_op om_ops_qlinear[] = {
    OM_QLINEAR_ENTRY("QLinearAdd", 2, 8, OM_DT_BYTE_INT, binary, NULL),
    OM_QLINEAR_ENTRY("QLinearMul", 2, 8, OM_DT_BYTE_INT, binary, NULL),
    OM_QLINEAR_ENTRY("QLinearSigmoid", 2, 5, OM_DT_BYTE_INT, unary, scratch_values),
    OM_QLINEAR_ENTRY("QLinearLeakyRelu", 2, 5, OM_DT_BYTE_INT, unary, scratch_values),
    OM_QLINEAR_ENTRY("QLinearGlobalAveragePool", 2, 5, OM_DT_BYTE_INT, pool, NULL),
    OM_QLINEAR_ENTRY("QLinearConcat", 5, UINT8_MAX, OM_DT(OM_DTYPE_F32), concat, scratch_values),
    {.type = NULL},
};
