/* The float64 kernels of ops/elementwise.def: the primitives' names stand for the C library's
 * functions here. Not part of the exact definition: a float64 tensor stays on the CPU. */
#include "cpu/exact/om_elementwise_f64.h"

#include <math.h>

#define OM_REAL(x)          x
#define om_exp              exp
#define om_ln               log
#define om_tanh             tanh
#define om_erf              erf
#define om_sin              sin
#define om_cos              cos
#define om_pow              pow
#define om_sqrt             sqrt
#define om_floor            floor
#define om_ceil             ceil
#define om_round            rint
#define om_abs              fabs
#define om_expm1            expm1
#define om_is_nan(x)        isnan(x)
#define om_ftz(x)           (x)
#define om_div(a, b)        ((a) / (b))
#define om_quotient(a, b)   ((a) / (b))
#define om_neg(x)           (-(x))
#define om_mul_add(a, b, c) ((a) * (b) + (c))

static inline double om_max(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

static inline double om_min(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}

static inline double om_sign(double x) {
  if (isnan(x)) return x;
  return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0);
}

static inline double om_sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}

static inline double om_softplus(double x) {
  return om_max(x, 0.0) + log1p(exp(-fabs(x)));
}

#define OM_UNARY(number, type, name, opset, scalar_count, expression)                       \
  static void name##_f64(const void *const *in, void *out, size_t count, const void *arg) { \
    const double *xs = in[0];                                                               \
    double *ys = out;                                                                       \
    const double *scalars = arg;                                                            \
    double p = (scalar_count) > 0 ? scalars[0] : 0.0;                                       \
    double q = (scalar_count) > 1 ? scalars[1] : 0.0;                                       \
    (void)p;                                                                                \
    (void)q;                                                                                \
    for (size_t i = 0; i < count; ++i) {                                                    \
      double x = xs[i];                                                                     \
      ys[i] = expression;                                                                   \
    }                                                                                       \
  }
#define OM_BINARY(number, type, name, opset, expression)                                    \
  static void name##_f64(const void *const *in, void *out, size_t count, const void *arg) { \
    const double *xs = in[0];                                                               \
    const double *ys = in[1];                                                               \
    double *zs = out;                                                                       \
    (void)arg;                                                                              \
    for (size_t i = 0; i < count; ++i) {                                                    \
      double x = xs[i];                                                                     \
      double y = ys[i];                                                                     \
      zs[i] = expression;                                                                   \
    }                                                                                       \
  }
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY

#define OM_UNARY(number, type, name, opset, scalar_count, expression) [number] = name##_f64,
#define OM_BINARY(number, type, name, opset, expression)              [number] = name##_f64,
static const om_elementwise_fn kernels[] = {
#include "ops/elementwise.def"
};

om_elementwise_fn om_elementwise_f64_kernel(uint8_t number) {
  return number < OM_COUNT_OF(kernels) ? kernels[number] : NULL;
}
