/* Integer kernels. Erf is cut off: what is above 5 rounds to 1 in double precision. Sums,
 * differences and products wrap: they are computed in the unsigned type. The lowest value divided
 * by -1 is itself. A divisor of 0 is found before a kernel runs. */
#include "cpu/exact/om_elementwise.h"

/* `wide` is unsigned and at least an int, so that narrow products do not overflow either. */
#define OM_INT_BINARY(name, type, suffix, expression)                                            \
  static void name##_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    const type *ys = in[1];                                                                      \
    type *zs = out;                                                                              \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) {                                                         \
      type x = xs[i];                                                                            \
      type y = ys[i];                                                                            \
      zs[i] = (type)(expression);                                                                \
    }                                                                                            \
  }
#define OM_INT_UNARY(name, type, suffix, expression)                                             \
  static void name##_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    type *zs = out;                                                                              \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) {                                                         \
      type x = xs[i];                                                                            \
      zs[i] = (type)(expression);                                                                \
    }                                                                                            \
  }
#define OM_INT_CLIP(type, suffix)                                                              \
  static void clip_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                    \
    type *zs = out;                                                                            \
    const type *bounds = arg;                                                                  \
    for (size_t i = 0; i < count; ++i) {                                                       \
      type x = xs[i] > bounds[0] ? xs[i] : bounds[0];                                          \
      zs[i] = x < bounds[1] ? x : bounds[1];                                                   \
    }                                                                                          \
  }

/* In double precision, cut off; limit: the first value above the type's largest. */
#define OM_INT_SHRINK(type, suffix, lowest, highest, limit)                                      \
  static void shrink_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    const float *scalars = arg;                                                                  \
    type *zs = out;                                                                              \
    const double p = (double)scalars[0];                                                         \
    const double q = (double)scalars[1];                                                         \
    for (size_t i = 0; i < count; ++i) {                                                         \
      const double x = (double)xs[i];                                                            \
      const double y = x < -p ? x + q : x > p ? x - q : 0.0;                                     \
      zs[i] = y >= (limit) ? (highest) : y > (double)(lowest) ? (type)y : y != y ? 0 : (lowest); \
    }                                                                                            \
  }

#define OM_INT_COMMON(type, suffix, wide)                         \
  OM_INT_BINARY(add, type, suffix, (wide)x + (wide)y)             \
  OM_INT_BINARY(sub, type, suffix, (wide)x - (wide)y)             \
  OM_INT_BINARY(mul, type, suffix, (wide)x *(wide)y)              \
  OM_INT_BINARY(min, type, suffix, x < y ? x : y)                 \
  OM_INT_BINARY(max, type, suffix, x > y ? x : y)                 \
  OM_INT_UNARY(erf, type, suffix, (x >= 6) - ((double)x <= -6.0)) \
  OM_INT_CLIP(type, suffix)

#define OM_INT_SIGNED(type, suffix, wide)                                   \
  OM_INT_COMMON(type, suffix, wide)                                         \
  OM_INT_BINARY(prelu, type, suffix, x < 0 ? (type)((wide)x * (wide)y) : x) \
  OM_INT_BINARY(div, type, suffix, y == -1 ? (type)(0 - (wide)x) : x / y)   \
  OM_INT_UNARY(neg, type, suffix, 0 - (wide)x)                              \
  OM_INT_UNARY(abs, type, suffix, x < 0 ? (type)(0 - (wide)x) : x)          \
  OM_INT_UNARY(sign, type, suffix, (x > 0) - (x < 0))                       \
  OM_INT_UNARY(relu, type, suffix, x > 0 ? x : 0)

#define OM_INT_UNSIGNED(type, suffix, wide)        \
  OM_INT_COMMON(type, suffix, wide)                \
  OM_INT_BINARY(prelu, type, suffix, ((void)y, x)) \
  OM_INT_BINARY(div, type, suffix, x / y)          \
  OM_INT_UNARY(neg, type, suffix, 0 - (wide)x)     \
  OM_INT_UNARY(abs, type, suffix, x)               \
  OM_INT_UNARY(sign, type, suffix, x > 0)          \
  OM_INT_UNARY(relu, type, suffix, x)

OM_INT_SIGNED(int8_t, i8, uint32_t)
OM_INT_SIGNED(int16_t, i16, uint32_t)
OM_INT_SIGNED(int32_t, i32, uint32_t)
OM_INT_SIGNED(int64_t, i64, uint64_t)
OM_INT_UNSIGNED(uint8_t, u8, uint32_t)
OM_INT_UNSIGNED(uint16_t, u16, uint32_t)
OM_INT_UNSIGNED(uint32_t, u32, uint32_t)
OM_INT_UNSIGNED(uint64_t, u64, uint64_t)

OM_INT_SHRINK(int8_t, i8, INT8_MIN, INT8_MAX, 128.0)
OM_INT_SHRINK(int16_t, i16, INT16_MIN, INT16_MAX, 32768.0)
OM_INT_SHRINK(int32_t, i32, INT32_MIN, INT32_MAX, 2147483648.0)
OM_INT_SHRINK(int64_t, i64, INT64_MIN, INT64_MAX, 9223372036854775808.0)
OM_INT_SHRINK(uint8_t, u8, 0, UINT8_MAX, 256.0)
OM_INT_SHRINK(uint16_t, u16, 0, UINT16_MAX, 65536.0)
OM_INT_SHRINK(uint32_t, u32, 0, UINT32_MAX, 4294967296.0)
OM_INT_SHRINK(uint64_t, u64, 0, UINT64_MAX, 18446744073709551616.0)

#define OM_INT_ROW(name)        \
  {[OM_DTYPE_I8] = name##_i8,   \
   [OM_DTYPE_I16] = name##_i16, \
   [OM_DTYPE_I32] = name##_i32, \
   [OM_DTYPE_I64] = name##_i64, \
   [OM_DTYPE_U8] = name##_u8,   \
   [OM_DTYPE_U16] = name##_u16, \
   [OM_DTYPE_U32] = name##_u32, \
   [OM_DTYPE_U64] = name##_u64}

static const struct {
  uint8_t number;
  om_elementwise_fn fns[OM_DTYPE_COUNT];
} rows[] = {
    {OM_ELEMENTWISE_Add, OM_INT_ROW(add)},
    {OM_ELEMENTWISE_Sub, OM_INT_ROW(sub)},
    {OM_ELEMENTWISE_Mul, OM_INT_ROW(mul)},
    {OM_ELEMENTWISE_Div, OM_INT_ROW(div)},
    {OM_ELEMENTWISE_Min, OM_INT_ROW(min)},
    {OM_ELEMENTWISE_Max, OM_INT_ROW(max)},
    {OM_ELEMENTWISE_Neg, OM_INT_ROW(neg)},
    {OM_ELEMENTWISE_Abs, OM_INT_ROW(abs)},
    {OM_ELEMENTWISE_Sign, OM_INT_ROW(sign)},
    {OM_ELEMENTWISE_Relu, OM_INT_ROW(relu)},
    {OM_ELEMENTWISE_Clip, OM_INT_ROW(clip)},
    {OM_ELEMENTWISE_Shrink, OM_INT_ROW(shrink)},
    {OM_ELEMENTWISE_Erf, OM_INT_ROW(erf)},
    {OM_ELEMENTWISE_PRelu, OM_INT_ROW(prelu)},
};

om_elementwise_fn om_elementwise_int_kernel(uint8_t number, om_dtype dtype) {
  for (size_t i = 0; i < OM_COUNT_OF(rows); ++i) {
    if (rows[i].number == number) return rows[i].fns[dtype];
  }
  return NULL;
}
