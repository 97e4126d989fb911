#include "ops/op_quantize.h"

#include <inttypes.h>

#include "cpu/exact/om_cast.h"

om_status om_quantize_check_type(om_ctx *ctx,
                                 const om_op_call *call,
                                 uint32_t index,
                                 om_dtype_set allowed) {
  const om_tensor *t = om_rule_input(call, index);
  if (!t || OM_DT(t->dtype) & allowed) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "Input %" PRIu32 " is %s, which the operator does not take there.",
                 index,
                 om_dtype_name(t->dtype));
}

om_status om_quantize_check_list(om_ctx *ctx,
                                 const om_op_call *call,
                                 uint32_t index,
                                 int64_t count) {
  const om_tensor *t = om_rule_input(call, index);
  char text[OM_SHAPE_TEXT];
  if (!t || om_tensor_elems(t) == 1) return OM_OK;
  if (t->rank == 1 && t->dims[0] == count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input %" PRIu32 " has shape %s; one element or %" PRId64 " are expected.",
                 index,
                 om_shape_text(text, sizeof text, t->rank, t->dims),
                 count);
}

om_status om_quantize_check_single(om_ctx *ctx, const om_op_call *call, uint32_t index) {
  return om_quantize_check_list(ctx, call, index, 1);
}

float om_quantize_single(const om_tensor *tensor, float fallback) {
  float value = fallback;
  if (tensor) om_cast_elems(tensor->dtype, tensor->data, OM_DTYPE_F32, &value, 1, true);
  return value;
}

om_tensor om_quantize_along(const om_tensor *tensor, uint32_t rank, uint32_t axis) {
  om_tensor along = *tensor;
  along.rank = 0;
  if (om_tensor_elems(tensor) == 1) return along;
  along.rank = rank;
  for (uint32_t d = 0; d < rank; ++d) along.dims[d] = 1;
  along.dims[axis] = tensor->dims[0];
  return along;
}
