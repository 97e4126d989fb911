/* Convolutions of 8-bit integers with zero points (docs/exact.md, "Quantization"):
 *
 *     sums = sum of (x - x_zero) * (w - w_zero) + bias
 *
 * as int32, which wraps; what a window takes from the padding is x_zero. The result is the sums, or
 * bytes that they are scaled and rounded to.
 */
#ifndef OM_CONV_BYTES_H
#define OM_CONV_BYTES_H

#include "cpu/exact/om_conv.h"

/* What bytes stand for, where y is to be as floats between DequantizeLinear and QuantizeLinear give
 * it (om_conv_doubt.h). Scales are positive and far from what float32 cannot hold, and sums do not
 * wrap: om_rewrite_quantized.c sees to it. */
typedef struct om_conv_floats {
  float x_scale, y_scale;
  const float *w_scales, *bias_scales; /* of each channel; without a bias NULL */
} om_conv_floats;

typedef struct om_conv_bytes {
  const om_conv_pass *pass; /* of a Conv */
  const uint8_t *x, *w;     /* bits of int8 or uint8, as om_conv_run_f32 has them */
  bool is_x_signed, is_w_signed;
  int32_t x_zero;
  const int32_t *w_zeros; /* of each channel of y */
  const int32_t *bias;    /* likewise; NULL: none */
  uint32_t *sums;         /* the result, or NULL: it is bytes, */
  uint8_t *y;             /* round(sums * factor) + zero, saturated */
  const float *factors;   /* of each channel */
  int32_t y_zero;
  bool is_y_signed;
  const om_conv_floats *floats; /* NULL: y is as above */
} om_conv_bytes;

/* Bytes of scratch, aligned to 64; SIZE_MAX: too many to count. */
size_t om_conv_bytes_scratch(const om_conv_pass *pass, bool has_floats);

void om_conv_bytes_run(om_ctx *ctx, const om_conv_bytes *c, void *scratch);

#endif
