/* What the quantized operators share: checks of scales and zero points, sums of integer products,
 * and their way back.
 *
 *     a - zero, b - zero  ->  product (int32, or float32 of 8-bit floats)  ->  times scales,
 * rounded
 */
#ifndef OP_QUANTIZE_H
#define OP_QUANTIZE_H

#include "cpu/exact/om_quantize.h"
#include "ops/om_rule.h"

#define OM_DT_BYTE_INT     (OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_I8))
#define OM_DT_NARROW_FLOAT (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_BF16))

/* OM_E_INVALID_MODEL where input `index` is there and of another type. */
om_status om_quantize_check_type(om_ctx *ctx,
                                 const om_op_call *call,
                                 uint32_t index,
                                 om_dtype_set allowed);

/* Input `index`, if it is there, has one element. */
om_status om_quantize_check_single(om_ctx *ctx, const om_op_call *call, uint32_t index);

/* Input `index`, if it is there, has one element or `count` in one axis. */
om_status om_quantize_check_list(om_ctx *ctx,
                                 const om_op_call *call,
                                 uint32_t index,
                                 int64_t count);

/* The element of a tensor of one, as float32; the fallback where it is absent. */
float om_quantize_single(const om_tensor *tensor, float fallback);

/* The tensor as one that broadcasts to rank `rank`: one element as a scalar, a list along `axis`.
 * Its data stays. */
om_tensor om_quantize_along(const om_tensor *tensor, uint32_t rank, uint32_t axis);

#endif
