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
#include "ops/op_conv.h"
#include "ops/op_matmul.h"

#define OM_DT_BYTE_INT     (OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_I8))
#define OM_DT_NARROW_FLOAT (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_BF16))

enum { OM_QUANTIZE_NONE = UINT8_MAX }; /* an input that an operator does not have */

typedef struct om_quantize_params { /* of QuantizeLinear and DequantizeLinear */
  int64_t axis;
  int64_t block_size; /* 0: no blocks */
  int64_t out_dtype;  /* 0: as the zero point says, or the scale */
  bool saturates;
} om_quantize_params;

/* Which inputs of a product of quantized operands are what. Input 0 is its first operand, a. */
typedef struct om_qproduct_roles {
  uint8_t b;
  uint8_t a_scale, a_zero, b_scale, b_zero; /* OM_QUANTIZE_NONE: the operator has none */
  uint8_t y_scale, y_zero, bias;
} om_qproduct_roles;

typedef struct om_qmatmul_params {
  om_qproduct_roles roles;
  om_gemm_params gemm; /* of QGemm; else as its defaults */
  bool is_gemm;
  bool quantizes_a; /* a is float32, and gets scale and zero point of its own range */
} om_qmatmul_params;

typedef struct om_qconv_params { /* b is the weights */
  om_qproduct_roles roles;
  uint8_t bias_scale; /* 0: the operator has none */
  om_conv_params conv;
} om_qconv_params;

/* Input `index` of a step or node, or NULL: for roles. */
static inline const om_tensor *om_quantize_operand(const om_op_call *call, uint8_t index) {
  return index == OM_QUANTIZE_NONE ? NULL : om_rule_input(call, index);
}

/* Which scale an element has, for an input and a scale of these shapes. */
om_status om_quantize_find_place(om_ctx *ctx,
                                 const om_quantize_params *params,
                                 const om_tensor *x,
                                 const om_tensor *scale,
                                 om_quantize_place *out);

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
