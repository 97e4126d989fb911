/* Checks that operators of several families share. */
#include "ops/op_types.h"

#include "ops/om_rule.h"

om_status om_check_same_dtype(om_ctx *ctx, const om_op_call *call) {
  om_dtype first = call->inputs[0]->dtype;
  for (uint32_t i = 1; i < call->input_count; ++i) {
    const om_tensor *t = call->inputs[i];
    if (!t || t->dtype == first) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Input %u is %s, but input 0 is %s.",
                   i,
                   om_dtype_name(t->dtype),
                   om_dtype_name(first));
  }
  return OM_OK;
}

om_status om_check_all_there(om_ctx *ctx, const om_op_call *call) {
  for (uint32_t i = 0; i < call->input_count; ++i) {
    if (call->inputs[i]) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Input %u is absent, but it is not optional.", i);
  }
  return OM_OK;
}

om_status om_infer_broadcast(om_ctx *ctx, const om_op_call *call, om_dtype dtype) {
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  OM_TRY(om_broadcast_shape(ctx, call->inputs, call->input_count, &rank, dims));
  return om_rule_set(ctx, call, 0, dtype, rank, dims);
}

void om_copy_type_and_shape(const om_tensor *source, om_tensor *target) {
  target->dtype = source->dtype;
  target->rank = source->rank;
  memcpy(target->dims, source->dims, sizeof target->dims);
}

om_status om_check_divisor(om_ctx *ctx, const om_tensor *divisor, const om_tensor *result) {
  size_t elems = 0;
  size_t result_elems = 0;
  size_t bytes = om_dtype_bits(divisor->dtype) / 8;
  static const uint8_t zero[8] = {0};
  if (!om_shape_elems(result->rank, result->dims, &result_elems) || result_elems == 0) return OM_OK;
  if (!om_shape_elems(divisor->rank, divisor->dims, &elems)) return OM_OK;
  const uint8_t *data = divisor->data;
  for (size_t i = 0; i < elems; ++i) {
    if (memcmp(data + i * bytes, zero, bytes) == 0) {
      return OM_FAIL(
          ctx, OM_E_INVALID_INPUT, "Integer division by zero: element %zu of the divisor is 0.", i);
    }
  }
  return OM_OK;
}
