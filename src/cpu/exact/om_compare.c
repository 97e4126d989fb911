/* Comparisons, classification and selection. */
#include "cpu/exact/om_compare.h"

#include <math.h>

#define OM_COMPARE(name, type, suffix, expression)                                               \
  static void name##_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    const type *ys = in[1];                                                                      \
    uint8_t *zs = out;                                                                           \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) {                                                         \
      type x = xs[i];                                                                            \
      type y = ys[i];                                                                            \
      zs[i] = (expression) ? 1 : 0;                                                              \
    }                                                                                            \
  }
#define OM_COMPARE_TYPE(type, suffix)             \
  OM_COMPARE(equal, type, suffix, x == y)         \
  OM_COMPARE(less, type, suffix, x < y)           \
  OM_COMPARE(greater, type, suffix, x > y)        \
  OM_COMPARE(less_or_equal, type, suffix, x <= y) \
  OM_COMPARE(greater_or_equal, type, suffix, x >= y)
OM_COMPARE_TYPE(float, f32)
OM_COMPARE_TYPE(double, f64)
OM_COMPARE_TYPE(int8_t, i8)
OM_COMPARE_TYPE(int16_t, i16)
OM_COMPARE_TYPE(int32_t, i32)
OM_COMPARE_TYPE(int64_t, i64)
OM_COMPARE_TYPE(uint8_t, u8)
OM_COMPARE_TYPE(uint16_t, u16)
OM_COMPARE_TYPE(uint32_t, u32)
OM_COMPARE_TYPE(uint64_t, u64)
OM_COMPARE(equal, om_string, str, x.bytes == y.bytes && memcmp(x.data, y.data, x.bytes) == 0)

/* Any byte but 0 is true. */
static void equal_b8(const void *const *in, void *out, size_t count, const void *arg) {
  const uint8_t *xs = in[0];
  const uint8_t *ys = in[1];
  uint8_t *zs = out;
  (void)arg;
  for (size_t i = 0; i < count; ++i) zs[i] = (xs[i] != 0) == (ys[i] != 0);
}

#define OM_COMPARE_ROW(name)                                                              \
  [OM_DTYPE_F32] = name##_f32, [OM_DTYPE_F16] = name##_f32, [OM_DTYPE_BF16] = name##_f32, \
  [OM_DTYPE_F64] = name##_f64, [OM_DTYPE_I8] = name##_i8, [OM_DTYPE_I16] = name##_i16,    \
  [OM_DTYPE_I32] = name##_i32, [OM_DTYPE_I64] = name##_i64, [OM_DTYPE_U8] = name##_u8,    \
  [OM_DTYPE_U16] = name##_u16, [OM_DTYPE_U32] = name##_u32, [OM_DTYPE_U64] = name##_u64

static const om_elementwise_fn comparisons[][OM_DTYPE_COUNT] = {
    [OM_COMPARE_EQUAL] =
        {OM_COMPARE_ROW(equal), [OM_DTYPE_BOOL] = equal_b8, [OM_DTYPE_STRING] = equal_str},
    [OM_COMPARE_LESS] = {OM_COMPARE_ROW(less)},
    [OM_COMPARE_GREATER] = {OM_COMPARE_ROW(greater)},
    [OM_COMPARE_LESS_OR_EQUAL] = {OM_COMPARE_ROW(less_or_equal)},
    [OM_COMPARE_GREATER_OR_EQUAL] = {OM_COMPARE_ROW(greater_or_equal)},
};

om_elementwise_fn om_compare_kernel(om_comparison comparison, om_dtype dtype) {
  return comparisons[comparison][dtype];
}

/* ---- Classification ---- */

#define OM_CLASSIFY(type, suffix)                                                                \
  static void is_nan_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    uint8_t *zs = out;                                                                           \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) zs[i] = (uint8_t)(isnan(xs[i]) != 0);                     \
  }                                                                                              \
  static void is_inf_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    uint8_t *zs = out;                                                                           \
    const bool *counts = arg;                                                                    \
    for (size_t i = 0; i < count; ++i) {                                                         \
      bool is_counted = xs[i] > 0 ? counts[0] : counts[1];                                       \
      zs[i] = (uint8_t)(isinf(xs[i]) != 0 && is_counted);                                        \
    }                                                                                            \
  }
OM_CLASSIFY(float, f32)
OM_CLASSIFY(double, f64)

om_elementwise_fn om_is_nan_kernel(om_dtype dtype) {
  return dtype == OM_DTYPE_F64 ? is_nan_f64 : is_nan_f32;
}

om_elementwise_fn om_is_inf_kernel(om_dtype dtype) {
  return dtype == OM_DTYPE_F64 ? is_inf_f64 : is_inf_f32;
}

/* ---- Selection ---- */

typedef struct om_16_bytes {
  uint64_t parts[2];
} om_16_bytes;

#define OM_WHERE(type, suffix)                                                                  \
  static void where_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const uint8_t *conditions = in[0];                                                          \
    const type *xs = in[1];                                                                     \
    const type *ys = in[2];                                                                     \
    type *zs = out;                                                                             \
    (void)arg;                                                                                  \
    for (size_t i = 0; i < count; ++i) zs[i] = conditions[i] != 0 ? xs[i] : ys[i];              \
  }
OM_WHERE(uint8_t, 8)
OM_WHERE(uint16_t, 16)
OM_WHERE(uint32_t, 32)
OM_WHERE(uint64_t, 64)
OM_WHERE(om_16_bytes, 128)

om_elementwise_fn om_where_kernel(om_dtype dtype) {
  switch (om_dtype_bits(dtype)) {
    case 8:
      return where_8;
    case 16:
      return where_16;
    case 32:
      return where_32;
    case 64:
      return where_64;
    case 128:
      return where_128;
    default:
      return NULL;
  }
}
