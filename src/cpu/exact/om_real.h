/* Float32 and float64 in one text: values are held in doubles, and where the type is not float64
 * each operation's result is rounded to float32. For + - * / and square roots that gives float32's
 * own bits, since a double has more than twice its digits. For operators that are not hot. */
#ifndef OM_REAL_H
#define OM_REAL_H

#include <math.h>

#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_exact_math.h"

/* 16-bit floats are computed in float32. */
typedef struct om_real {
  bool is_wide; /* float64 */
} om_real;

static inline double om_real_round(om_real r, double value) {
  return r.is_wide ? value : (double)(float)value;
}

/* Functions: the primitives, or the C library's. */
#define OM_REAL_FUNCTION(name, narrow, wide)                 \
  static inline double om_real_##name(om_real r, double x) { \
    return r.is_wide ? wide(x) : (double)narrow((float)x);   \
  }
OM_REAL_FUNCTION(exp, om_exp, exp)
OM_REAL_FUNCTION(ln, om_ln, log)
OM_REAL_FUNCTION(sin, om_sin, sin)
OM_REAL_FUNCTION(cos, om_cos, cos)
OM_REAL_FUNCTION(sqrt, om_sqrt, sqrt)
OM_REAL_FUNCTION(floor, om_floor, floor)
OM_REAL_FUNCTION(tanh, om_tanh, tanh)

static inline double om_real_pow(om_real r, double x, double y) {
  return r.is_wide ? pow(x, y) : (double)om_pow((float)x, (float)y);
}

static inline om_real om_real_of(om_dtype dtype) {
  return (om_real){.is_wide = dtype == OM_DTYPE_F64};
}

/* Element `index` of a tensor of numbers of whole bytes, which may lie unaligned, and back (rounded
 * once; integers are cut off). */
static inline double om_real_load(const om_tensor *tensor, size_t index) {
  double value = 0.0;
  uint64_t elem = 0;
  memcpy(
      &elem, om_cast_place(tensor->dtype, tensor->data, index), om_dtype_bits(tensor->dtype) / 8);
  om_cast_elems(tensor->dtype, &elem, OM_DTYPE_F64, &value, 1, true);
  return value;
}

static inline void om_real_store(const om_tensor *tensor, size_t index, double value) {
  uint8_t *at = (uint8_t *)tensor->data + index * (om_dtype_bits(tensor->dtype) / 8);
  om_cast_elems(OM_DTYPE_F64, &value, tensor->dtype, at, 1, true);
}

#endif
