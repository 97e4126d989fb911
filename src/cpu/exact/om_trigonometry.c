/* Trigonometric and hyperbolic functions: float32 by om_exact_trig.h, float64 by the C library. */
#include "cpu/exact/om_trigonometry.h"

#include <math.h>

#include "cpu/exact/om_exact_trig.h"

#define OM_TRIGONOMETRY(function)                                                               \
  static void function##_f32(const void *const *in, void *out, size_t count, const void *arg) { \
    const float *xs = in[0];                                                                    \
    float *ys = out;                                                                            \
    (void)arg;                                                                                  \
    for (size_t i = 0; i < count; ++i) ys[i] = om_##function(xs[i]);                            \
  }                                                                                             \
  static void function##_f64(const void *const *in, void *out, size_t count, const void *arg) { \
    const double *xs = in[0];                                                                   \
    double *ys = out;                                                                           \
    (void)arg;                                                                                  \
    for (size_t i = 0; i < count; ++i) ys[i] = function(xs[i]);                                 \
  }
OM_TRIGONOMETRY(tan)
OM_TRIGONOMETRY(asin)
OM_TRIGONOMETRY(acos)
OM_TRIGONOMETRY(atan)
OM_TRIGONOMETRY(sinh)
OM_TRIGONOMETRY(cosh)
OM_TRIGONOMETRY(asinh)
OM_TRIGONOMETRY(acosh)
OM_TRIGONOMETRY(atanh)

static const struct {
  const char *type;
  om_elementwise_fn f32;
  om_elementwise_fn f64;
} kernels[] = {
    {"Tan", tan_f32, tan_f64},
    {"Asin", asin_f32, asin_f64},
    {"Acos", acos_f32, acos_f64},
    {"Atan", atan_f32, atan_f64},
    {"Sinh", sinh_f32, sinh_f64},
    {"Cosh", cosh_f32, cosh_f64},
    {"Asinh", asinh_f32, asinh_f64},
    {"Acosh", acosh_f32, acosh_f64},
    {"Atanh", atanh_f32, atanh_f64},
};

om_elementwise_fn om_trigonometry_kernel(const char *type, om_dtype dtype) {
  for (size_t i = 0; i < OM_COUNT_OF(kernels); ++i) {
    if (strcmp(kernels[i].type, type) != 0) continue;
    return dtype == OM_DTYPE_F64 ? kernels[i].f64 : kernels[i].f32;
  }
  return NULL;
}
