/* The float32 kernels of ops/elementwise.def. */
#include <float.h>

#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_elementwise_f64.h"
#include "cpu/exact/om_exact_math.h"
#include "cpu/exact/om_extremes.h"

/* Of eight lanes, sine and cosine keep more than the registers hold: some 1.2 KiB. */
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC diagnostic ignored "-Wframe-larger-than="
#endif

/* Those that encoders and convolutions' models spend time on have a form for AVX-512, too; of all
 * it would be 100 KB. */
#define OM_WIDE_5                     ~, OM_CLONES_WIDE /* HardSwish */
#define OM_WIDE_11                    ~, OM_CLONES_WIDE /* Erf */
#define OM_WIDE_28                    ~, OM_CLONES_WIDE /* Gelu */
#define OM_SECOND(first, second, ...) second
#define OM_CLONES_IF(...)             OM_SECOND(__VA_ARGS__, OM_CLONES, ~)

/* elementwise.def's, for loops. */
#define om_max om_lane_max
#define om_min om_lane_min

#define OM_UNARY(number, type, name, opset, scalar_count, expression)                       \
  OM_CLONES_IF(OM_WIDE_##number)                                                            \
  static void name##_f32(const void *const *in, void *out, size_t count, const void *arg) { \
    const float *xs = in[0];                                                                \
    float *ys = out;                                                                        \
    const float *scalars = arg;                                                             \
    float p = (scalar_count) > 0 ? scalars[0] : 0.0f;                                       \
    float q = (scalar_count) > 1 ? scalars[1] : 0.0f;                                       \
    (void)p;                                                                                \
    (void)q;                                                                                \
    for (size_t i = 0; i < count; ++i) {                                                    \
      float x = xs[i];                                                                      \
      ys[i] = expression;                                                                   \
    }                                                                                       \
  }
#define OM_BINARY(number, type, name, opset, expression)                 \
  OM_CLONES static void name##_f32(                                      \
      const void *const *in, void *out, size_t count, const void *arg) { \
    const float *xs = in[0];                                             \
    const float *ys = in[1];                                             \
    float *zs = out;                                                     \
    (void)arg;                                                           \
    for (size_t i = 0; i < count; ++i) {                                 \
      float x = xs[i];                                                   \
      float y = ys[i];                                                   \
      zs[i] = expression;                                                \
    }                                                                    \
  }
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY

/* What is below the least normal float becomes 0, subnormals too; NaN is not below. */
OM_CLONES static void clip_from_zero(const float *x, float high, size_t count, float *y) {
  for (size_t i = 0; i < count; ++i) {
    const float low = x[i] < FLT_MIN ? 0.0f : x[i];
    y[i] = low > high ? high : low;
  }
}

/* Clip; to 0 .. high, which is what stands behind convolutions, comparisons are enough. */
static void clip_any(const void *const *in, void *out, size_t count, const void *arg) {
  const float *bounds = arg;
  if (om_bits(bounds[0]) == 0 && bounds[1] >= FLT_MIN) {
    clip_from_zero(in[0], bounds[1], count, out);
  } else {
    clip_f32(in, out, count, arg);
  }
}
#define clip_f32 clip_any

#define OM_UNARY(number, type, name, opset, scalar_count, expression) [number] = name##_f32,
#define OM_BINARY(number, type, name, opset, expression)              [number] = name##_f32,
static const om_elementwise_fn kernels[] = {
#include "ops/elementwise.def"
};
#undef OM_UNARY
#undef OM_BINARY

#define OM_UNARY(number, type, name, opset, scalar_count, expression) [number] = scalar_count,
#define OM_BINARY(number, type, name, opset, expression)
static const uint8_t scalar_counts[OM_COUNT_OF(kernels)] = {
#include "ops/elementwise.def"
};
#undef OM_UNARY
#undef OM_BINARY

uint32_t om_elementwise_scalar_count(uint8_t number) {
  return number < OM_COUNT_OF(scalar_counts) ? scalar_counts[number] : 0;
}

om_elementwise_fn om_elementwise_kernel(uint8_t number, om_dtype dtype) {
  switch (dtype) {
    case OM_DTYPE_F32:
    case OM_DTYPE_F16:
    case OM_DTYPE_BF16:
      return number < OM_COUNT_OF(kernels) ? kernels[number] : NULL;
    case OM_DTYPE_F64:
      return om_elementwise_f64_kernel(number);
    default:
      return om_elementwise_int_kernel(number, dtype);
  }
}
