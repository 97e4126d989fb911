/* MatMulNBits of com.microsoft: a product by a constant matrix of 2, 4 or 8 bits. */
#include <inttypes.h>

#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_matmul_nbits.h"
#include "ops/op_quantize.h"

typedef struct om_nbits_params {
  int64_t depth, cols, bits, block;
} om_nbits_params;

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_nbits_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "K", 0, &p->depth));
  OM_TRY(om_node_attr_int(ctx, node, "N", 0, &p->cols));
  OM_TRY(om_node_attr_int(ctx, node, "bits", 4, &p->bits));
  OM_TRY(om_node_attr_int(ctx, node, "block_size", 0, &p->block));
  const bool is_known = p->bits == 2 || p->bits == 4 || p->bits == 8;
  if (is_known && p->depth > 0 && p->cols > 0 && p->block > 0 && p->block <= INT32_MAX &&
      p->block * p->bits % 8 == 0) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 is_known ? OM_E_INVALID_MODEL : OM_E_UNSUPPORTED,
                 "K is %" PRId64 ", N %" PRId64 ", bits %" PRId64 ", block_size %" PRId64 ".",
                 p->depth,
                 p->cols,
                 p->bits,
                 p->block);
}

static size_t group_count(const om_nbits_params *p) {
  return (size_t)(p->depth / p->block + (p->depth % p->block != 0));
}

/* Bytes of one column's packed zero points. */
static size_t zero_bytes(const om_nbits_params *p) {
  return (group_count(p) * (size_t)p->bits + 7) / 8;
}

static bool has_elems(const om_tensor *tensor, size_t a, size_t b) {
  size_t product = 0;
  return !tensor || (om_size_mul(a, b, &product) && om_tensor_elems(tensor) == product);
}

static bool operands_fit(const om_op_call *call) {
  const om_nbits_params *p = call->params;
  const om_tensor *zeros = om_rule_input(call, ZEROS);
  const size_t groups = group_count(p), cols = (size_t)p->cols;
  size_t col_bytes = 0;
  const bool is_packed = zeros && zeros->dtype == OM_DTYPE_U8;
  return om_size_mul(groups, (size_t)(p->block * p->bits / 8), &col_bytes) &&
         has_elems(call->inputs[B], cols, col_bytes) &&
         has_elems(call->inputs[SCALES], cols, groups) &&
         has_elems(zeros, cols, is_packed ? zero_bytes(p) : groups) &&
         has_elems(om_rule_input(call, GROUPS), (size_t)p->depth, 1) &&
         has_elems(om_rule_input(call, BIAS), cols, 1);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_nbits_params *p = call->params;
  const om_tensor *a = call->inputs[A];
  int64_t dims[OM_MAX_RANK];
  char text[OM_SHAPE_TEXT];
  OM_TRY(om_quantize_check_type(ctx, call, B, OM_DT(OM_DTYPE_U8)));
  OM_TRY(om_quantize_check_type(ctx, call, SCALES, OM_DT_NARROW_FLOAT));
  OM_TRY(om_quantize_check_type(ctx, call, ZEROS, OM_DT(OM_DTYPE_U8) | OM_DT_NARROW_FLOAT));
  OM_TRY(om_quantize_check_type(ctx, call, GROUPS, OM_DT(OM_DTYPE_I32)));
  OM_TRY(om_quantize_check_type(ctx, call, BIAS, OM_DT_NARROW_FLOAT));
  if (a->rank == 0 || a->dims[a->rank - 1] != p->depth || !operands_fit(call)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The operands do not go together with K = %" PRId64 ", N = %" PRId64
                   " and block_size %" PRId64 "; A has shape %s.",
                   p->depth,
                   p->cols,
                   p->block,
                   om_shape_text(text, sizeof text, a->rank, a->dims));
  }
  memcpy(dims, a->dims, sizeof dims);
  dims[a->rank - 1] = p->cols;
  return om_rule_set(ctx, call, 0, a->dtype, a->rank, dims);
}

/* The scratch memory: the kernel's own, the widened operands, and the widened result. */
typedef struct nbits_layout {
  size_t own, a, scales, zeros, bias, y; /* where each begins, in floats */
  size_t end;
} nbits_layout;

static om_matmul_nbits describe(const om_op_call *call) {
  const om_nbits_params *p = call->params;
  return (om_matmul_nbits){.rows = om_tensor_elems(call->inputs[A]) / (size_t)p->depth,
                           .cols = (size_t)p->cols,
                           .depth = (size_t)p->depth,
                           .bits = (uint32_t)p->bits,
                           .block = (size_t)p->block,
                           .groups = group_count(p)};
}

/* False where the sizes overflow. */
static bool lay_out(const om_op_call *call, const om_matmul_nbits *m, nbits_layout *out) {
  const bool is_f32 = call->inputs[A]->dtype == OM_DTYPE_F32;
  const size_t parameters = om_tensor_elems(call->inputs[SCALES]);
  size_t results = 0, end = 0;
  bool fits = om_size_mul(m->rows, m->cols, &results);
  const struct {
    size_t *place, count;
  } parts[] = {{&out->own, om_matmul_nbits_scratch_bytes(m) / sizeof(float)},
               {&out->a, is_f32 ? 0 : om_tensor_elems(call->inputs[A])},
               {&out->scales, parameters},
               {&out->zeros, om_rule_input(call, ZEROS) ? parameters : 0},
               {&out->bias, om_rule_input(call, BIAS) ? m->cols : 0},
               {&out->y, is_f32 ? 0 : results}};
  for (size_t i = 0; i < OM_COUNT_OF(parts); ++i) {
    *parts[i].place = end;
    fits = fits && om_size_add(end, parts[i].count, &end);
  }
  out->end = end;
  return fits;
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_matmul_nbits m = describe(call);
  nbits_layout layout;
  size_t bytes = 0;
  if (!lay_out(call, &m, &layout) || !om_size_mul(layout.end, sizeof(float), &bytes)) {
    return SIZE_MAX;
  }
  return bytes;
}

static const float *widened(const om_tensor *tensor, float *to) {
  if (!tensor) return NULL;
  om_cast_elems(tensor->dtype, tensor->data, OM_DTYPE_F32, to, om_tensor_elems(tensor), true);
  return to;
}

/* Packed zero points: each column begins at a byte. */
static const float *unpacked_zeros(const om_op_call *call, float *to) {
  const om_nbits_params *p = call->params;
  const om_tensor *zeros = om_rule_input(call, ZEROS);
  if (!zeros || zeros->dtype != OM_DTYPE_U8) return widened(zeros, to);
  const size_t groups = group_count(p), bytes = zero_bytes(p), bits = (size_t)p->bits;
  for (size_t i = 0; i < (size_t)p->cols * groups; ++i) {
    const size_t bit = i % groups * bits;
    const uint8_t byte = ((const uint8_t *)zeros->data)[i / groups * bytes + bit / 8];
    to[i] = (float)((uint32_t)(byte >> bit % 8) & ((1u << bits) - 1));
  }
  return to;
}

static om_status check_groups(om_ctx *ctx, const om_matmul_nbits *m) {
  for (size_t k = 0; m->group_of && k < m->depth; ++k) {
    if (m->group_of[k] >= 0 && (size_t)m->group_of[k] < m->groups) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "g_idx[%zu] is %" PRId32 "; there are %zu groups.",
                   k,
                   m->group_of[k],
                   m->groups);
  }
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *a = call->inputs[A], *groups = om_rule_input(call, GROUPS);
  om_tensor *y = call->outputs[0];
  om_matmul_nbits m = describe(call);
  float *scratch = call->scratch;
  nbits_layout layout;
  (void)lay_out(call, &m, &layout); /* it did fit when the memory was asked for */
  m.b = call->inputs[B]->data;
  m.group_of = groups ? groups->data : NULL;
  OM_TRY(check_groups(ctx, &m));
  m.a = a->dtype == OM_DTYPE_F32 ? a->data : widened(a, scratch + layout.a);
  m.scales = widened(call->inputs[SCALES], scratch + layout.scales);
  m.zeros = unpacked_zeros(call, scratch + layout.zeros);
  m.bias = widened(om_rule_input(call, BIAS), scratch + layout.bias);
  m.y = y->dtype == OM_DTYPE_F32 ? y->data : scratch + layout.y;
  om_matmul_nbits_run(ctx, &m, scratch + layout.own);
  if (y->dtype != OM_DTYPE_F32) {
    om_cast_elems(OM_DTYPE_F32, m.y, y->dtype, y->data, om_tensor_elems(y), true);
  }
  return OM_OK;
}

const om_op om_ops_matmul_nbits[] = {
    {.domain = "com.microsoft",
     .type = "MatMulNBits",
     .first_opset = 1,
     OM_RULE_COUNTS(3, 6, 1, 1),
     .dtypes = OM_DT_NARROW_FLOAT,
     .params_bytes = sizeof(om_nbits_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
