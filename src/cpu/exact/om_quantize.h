/* Quantization (docs/exact.md, "Quantization"): to and from integers and small floats with scales
 * and zero points, and what turns the sums of an integer product into its result.
 */
#ifndef OM_QUANTIZE_H
#define OM_QUANTIZE_H

#include "cpu/exact/om_broadcast.h"

/* Which scale an element has: outer * outer_step + along / block * axis_step + inner * inner_step,
 * for element (outer * extent + along) * inner_extent + inner. All steps 0: one for all. */
typedef struct om_quantize_place {
  size_t extent, inner_extent;
  size_t block;
  size_t outer_step, axis_step, inner_step;
} om_quantize_place;

size_t om_quantize_scale_index(const om_quantize_place *place, size_t element);

typedef struct om_quantize_job {
  const om_tensor *in;
  om_tensor *out;
  om_quantize_place place;
  const float *scales;
  const void *zeros; /* NULL: none. Floats; of a dequantization from integers, int32 */
  bool saturates;    /* 8-bit floats */
} om_quantize_job;

/* out = in / scale, rounded and with the zero point where out is an integer type. */
void om_quantize_run(om_ctx *ctx, const om_quantize_job *job);

/* out = (in - zero) * scale */
void om_dequantize_run(om_ctx *ctx, const om_quantize_job *job);

/* The same of float32 values of one scale to and from int8 or uint8. */
void om_quantize_bytes(
    om_dtype dtype, size_t count, const float *x, float scale, float zero, void *y);
void om_dequantize_bytes(
    om_dtype dtype, size_t count, const void *x, float scale, int32_t zero, float *y);

/* The scale and the zero point that a float32 tensor's own range gives, for uint8. */
void om_quantize_range(const float *values, size_t count, float *out_scale, float *out_zero);

/* The sum of uint8 or int8, which wraps. */
uint32_t om_quantize_sum(const uint8_t *x, size_t count, bool is_signed);

/* out = values - zero, of 8 bits: float32 holds it exactly. zero (NULL: none) broadcasts to
 * values. */
void om_quantize_shift(om_ctx *ctx, const om_tensor *values, const om_tensor *zero, float *out);

/* What follows a product of quantized operands. */
typedef struct om_requantize_job {
  const om_tensor *sums; /* int32 or float32, of the result's shape */
  const float *a_scale;  /* [a's broadcast shape] */
  const float *b_scale;
  om_tensor a_shape, b_shape; /* float32, without data: how the scales broadcast to the result */
  bool is_quantized;          /* else the result is a float, and what follows is not read */
  float scale, zero;
  const om_tensor *bias; /* NULL: none; broadcasts; only where the result is a float */
  om_tensor *out;
} om_requantize_job;

/* out = round(sums * (a_scale * b_scale / scale)) + zero, saturated; or
 * out = sums * (a_scale * b_scale) + bias. */
void om_requantize_run(om_ctx *ctx, const om_requantize_job *job);

#endif
