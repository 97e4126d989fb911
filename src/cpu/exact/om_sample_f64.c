/* GridSample and RoiAlign of float64: the text of float32 with the functions of doubles. */
#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"
#include "cpu/exact/om_sample.h"

static inline bool is_nan_f64(double x) {
  return x != x;
}

static inline double max_f64(double a, double b) {
  return is_nan_f64(a) || a > b ? a : b;
}

static inline double min_f64(double a, double b) {
  return is_nan_f64(a) || a < b ? a : b;
}

static inline double div_f64(double a, double b) {
  return a / b;
}

#undef OM_TO_FLOAT
#define OM_TO_FLOAT(x) ((double)(x))
#define om_sampled     double
#define om_is_nan      is_nan_f64
#define om_max         max_f64
#define om_min         min_f64
#define om_div         div_f64
#define om_floor       floor
#define om_ceil        ceil
#define om_round       rint /* halves to the even integer */
#include "cpu/exact/om_exact_sample.h"

#define OM_SAMPLE_NAME(name) name##_f64
#include "cpu/exact/om_sample.inc"
