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
} om_conv_bytes;

/* Bytes of scratch, aligned to 64; SIZE_MAX: too many to count. */
size_t om_conv_bytes_scratch(const om_conv_pass *pass);

void om_conv_bytes_run(om_ctx *ctx, const om_conv_bytes *c, void *scratch);

#endif
