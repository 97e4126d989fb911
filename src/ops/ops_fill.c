/* Tensors made from little data: ConstantOfShape, Range, EyeLike. */
#include <inttypes.h>
#include <math.h>

#include "base/om_float16.h"
#include "cpu/exact/om_strided.h"
#include "ops/op_fill.h"
#include "ops/op_nibbles.h"

/* ---- ConstantOfShape ---- */

static om_status fill_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_fill_params *p = params;
  const om_attr *attr = om_node_attr(node, "value");
  if (!attr) return OM_OK;
  if (attr->kind != OM_ATTR_TENSOR || om_tensor_elems(attr->tensor) != 1) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute value is no tensor of one element.");
  }
  p->value = attr->tensor;
  return OM_OK;
}

static om_status fill_infer(om_ctx *ctx, const om_op_call *call) {
  const om_fill_params *p = call->params;
  const om_dtype dtype = p->value ? p->value->dtype : OM_DTYPE_F32;
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  if (!om_rule_is_known(call->inputs[0])) {
    om_rule_set_unknown(call, 0, dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_ints(ctx, call->inputs[0], "shape's extents", OM_MAX_RANK, dims, &rank));
  return om_rule_set(ctx, call, 0, dtype, rank, dims);
}

/* Two elements a byte; what is left of the last byte is 0. */
static void fill_nibbles(const om_tensor *y, uint8_t elem) {
  const size_t elems = om_tensor_elems(y);
  uint8_t *bytes = y->data;
  memset(bytes, (elem & 15) * 17, elems / 2);
  if (elems % 2 != 0) bytes[elems / 2] = elem & 15;
}

static om_status fill_run(om_ctx *ctx, const om_op_call *call) {
  static const float zero = 0.0f;
  const om_fill_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  const void *elem = p->value ? p->value->data : &zero;
  if (om_is_nibble(y->dtype)) {
    fill_nibbles(y, *(const uint8_t *)elem);
    return OM_OK;
  }
  om_fill(ctx, y->data, om_tensor_elems(y), elem, om_rule_elem_bytes(y->dtype));
  return OM_OK;
}

/* ---- Range ---- */

static double range_float(const om_tensor *x) {
  return x->dtype == OM_DTYPE_F32 ? (double)*(const float *)x->data : *(const double *)x->data;
}

static int64_t range_int(const om_tensor *x) {
  return x->dtype == OM_DTYPE_I16 ? *(const int16_t *)x->data : om_rule_int(x, 0);
}

static bool is_float(const om_tensor *x) {
  return x->dtype == OM_DTYPE_F32 || x->dtype == OM_DTYPE_F64;
}

static om_status range_count_float(om_ctx *ctx, const om_op_call *call, int64_t *out_count) {
  const double start = range_float(call->inputs[0]);
  const double limit = range_float(call->inputs[1]);
  const double delta = range_float(call->inputs[2]);
  const double count = ceil((limit - start) / delta);
  if (!(delta != 0.0) || !(count < 9.0e18)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "There is no range from %g to %g in steps of %g.",
                   start,
                   limit,
                   delta);
  }
  *out_count = count > 0.0 ? (int64_t)count : 0;
  return OM_OK;
}

static om_status range_count_int(om_ctx *ctx, const om_op_call *call, int64_t *out_count) {
  const int64_t start = range_int(call->inputs[0]);
  const int64_t limit = range_int(call->inputs[1]);
  const int64_t delta = range_int(call->inputs[2]);
  const bool is_empty = delta > 0 ? limit <= start : limit >= start;
  const uint64_t span =
      delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  const uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
  const uint64_t count = is_empty || delta == 0 ? 0 : (span - 1) / step + 1;
  if (delta == 0 || count > INT64_MAX) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "There is no range from %" PRId64 " to %" PRId64 " in steps of %" PRId64 ".",
                   start,
                   limit,
                   delta);
  }
  *out_count = (int64_t)count;
  return OM_OK;
}

static om_status range_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *start = call->inputs[0];
  bool is_known = true;
  int64_t count = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    const om_tensor *x = call->inputs[i];
    if (x->dtype != start->dtype || om_tensor_elems(x) != 1) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input %" PRIu32 " is no single %s.",
                     i,
                     om_dtype_name(start->dtype));
    }
    is_known = is_known && om_rule_is_known(x);
  }
  if (!is_known) {
    om_rule_set_unknown(call, 0, start->dtype);
    return OM_OK;
  }
  OM_TRY(is_float(start) ? range_count_float(ctx, call, &count)
                         : range_count_int(ctx, call, &count));
  return om_rule_set(ctx, call, 0, start->dtype, 1, &count);
}

/* Element i is start + i * delta, the product and the sum each rounded. */
static om_status range_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *start = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const size_t count = (size_t)y->dims[0];
  if (y->dtype == OM_DTYPE_F32) {
    const float first = *(const float *)start->data;
    const float delta = *(const float *)call->inputs[2]->data;
    for (size_t i = 0; i < count; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      ((float *)y->data)[i] = first + (float)i * delta;
    }
  } else if (y->dtype == OM_DTYPE_F64) {
    const double first = *(const double *)start->data;
    const double delta = *(const double *)call->inputs[2]->data;
    for (size_t i = 0; i < count; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      ((double *)y->data)[i] = first + (double)i * delta;
    }
  } else {
    const uint64_t delta = (uint64_t)range_int(call->inputs[2]);
    uint64_t value = (uint64_t)range_int(start);
    for (size_t i = 0; i < count; ++i, value += delta) {
      OM_TRY(om_check_turn(ctx, i));
      if (y->dtype == OM_DTYPE_I16) ((int16_t *)y->data)[i] = (int16_t)value;
      if (y->dtype == OM_DTYPE_I32) ((int32_t *)y->data)[i] = (int32_t)value;
      if (y->dtype == OM_DTYPE_I64) ((int64_t *)y->data)[i] = (int64_t)value;
    }
  }
  return OM_OK;
}

/* ---- EyeLike ---- */

typedef struct om_eye_params {
  int64_t dtype; /* 0: the input's */
  int64_t k;     /* which diagonal */
} om_eye_params;

static om_status eye_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_eye_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "k", 0, &p->k));
  OM_TRY(om_node_attr_int(ctx, node, "dtype", 0, &p->dtype));
  if (p->dtype == 0) return OM_OK;
  if (p->dtype > 0 && p->dtype < OM_DTYPE_COUNT &&
      OM_DT(p->dtype) & (OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL))) {
    return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute dtype is %" PRId64 ".", p->dtype);
}

static om_status eye_infer(om_ctx *ctx, const om_op_call *call) {
  const om_eye_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  if (x->rank != 2) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "The input has rank %" PRIu32 "; 2 is expected.", x->rank);
  }
  return om_rule_set(ctx, call, 0, p->dtype ? (om_dtype)p->dtype : x->dtype, 2, x->dims);
}

/* Writes 1 as an element of the type; returns its bytes. */
static size_t one_of(om_dtype dtype, uint8_t *out_elem) {
  const float f32 = 1.0f;
  const double f64 = 1.0;
  const uint16_t half = dtype == OM_DTYPE_F16 ? om_f16_from_f32(1.0f) : om_bf16_from_f32(1.0f);
  const uint64_t integer = 1;
  const size_t bytes = om_rule_elem_bytes(dtype);
  const void *from = &integer;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  from = (const uint8_t *)&integer + sizeof integer - bytes;
#endif
  if (dtype == OM_DTYPE_F32) from = &f32;
  if (dtype == OM_DTYPE_F64) from = &f64;
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) from = &half;
  memcpy(out_elem, from, bytes);
  return bytes;
}

static om_status eye_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_eye_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  uint8_t one[8] = {0};
  const size_t bytes = one_of(y->dtype, one);
  memset(y->data, 0, om_tensor_elems(y) * bytes);
  if (p->k <= -y->dims[0] || p->k >= y->dims[1]) return OM_OK;
  int64_t row = p->k < 0 ? -p->k : 0;
  for (int64_t col = row + p->k; row < y->dims[0] && col < y->dims[1]; ++row, ++col) {
    memcpy((uint8_t *)y->data + (size_t)(row * y->dims[1] + col) * bytes, one, bytes);
  }
  return OM_OK;
}

const om_op om_ops_fill[] = {
    {.domain = "",
     .type = "ConstantOfShape",
     .first_opset = 9,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_I64),
     .params_bytes = sizeof(om_fill_params),
     .resolve = fill_resolve,
     .infer = fill_infer,
     .run = fill_run},
    {.domain = "",
     .type = "Range",
     .first_opset = 11,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64) | OM_DT(OM_DTYPE_I16) |
               OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64),
     .infer = range_infer,
     .run = range_run},
    {.domain = "",
     .type = "EyeLike",
     .first_opset = 9,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL),
     .params_bytes = sizeof(om_eye_params),
     .shaped_inputs = 1u << 0,
     .resolve = eye_resolve,
     .infer = eye_infer,
     .run = eye_run},
    {.type = NULL},
};
