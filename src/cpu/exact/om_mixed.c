/* Kernels whose operands have types of their own, and remainders. */
#include "cpu/exact/om_mixed.h"

#include <math.h>

#include "cpu/exact/om_exact_math.h"

/* ---- Powers ---- */

static bool is_float(om_dtype dtype) {
  return dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F64;
}

static double load_f64(om_dtype dtype, const void *data, size_t i) {
  switch (dtype) {
    case OM_DTYPE_F32:
      return (double)((const float *)data)[i];
    case OM_DTYPE_F64:
      return ((const double *)data)[i];
    case OM_DTYPE_I8:
      return (double)((const int8_t *)data)[i];
    case OM_DTYPE_I16:
      return (double)((const int16_t *)data)[i];
    case OM_DTYPE_I32:
      return (double)((const int32_t *)data)[i];
    case OM_DTYPE_I64:
      return (double)((const int64_t *)data)[i];
    case OM_DTYPE_U8:
      return (double)((const uint8_t *)data)[i];
    case OM_DTYPE_U16:
      return (double)((const uint16_t *)data)[i];
    case OM_DTYPE_U32:
      return (double)((const uint32_t *)data)[i];
    case OM_DTYPE_U64:
      return (double)((const uint64_t *)data)[i];
    default:
      return 0.0;
  }
}

/* The 64 low bits: a signed value sign-extended. */
static uint64_t load_bits(om_dtype dtype, const void *data, size_t i) {
  switch (dtype) {
    case OM_DTYPE_I8:
      return (uint64_t)((const int8_t *)data)[i];
    case OM_DTYPE_I16:
      return (uint64_t)((const int16_t *)data)[i];
    case OM_DTYPE_I32:
      return (uint64_t)((const int32_t *)data)[i];
    case OM_DTYPE_U8:
      return ((const uint8_t *)data)[i];
    case OM_DTYPE_U16:
      return ((const uint16_t *)data)[i];
    case OM_DTYPE_U32:
      return ((const uint32_t *)data)[i];
    default:
      return ((const uint64_t *)data)[i];
  }
}

static void store_bits(om_dtype dtype, uint64_t bits, void *data, size_t i) {
  switch (dtype) {
    case OM_DTYPE_I8:
    case OM_DTYPE_U8:
      ((uint8_t *)data)[i] = (uint8_t)bits;
      break;
    case OM_DTYPE_I16:
    case OM_DTYPE_U16:
      ((uint16_t *)data)[i] = (uint16_t)bits;
      break;
    case OM_DTYPE_I32:
    case OM_DTYPE_U32:
      ((uint32_t *)data)[i] = (uint32_t)bits;
      break;
    default:
      ((uint64_t *)data)[i] = bits;
      break;
  }
}

static bool is_signed(om_dtype dtype) {
  return dtype == OM_DTYPE_I8 || dtype == OM_DTYPE_I16 || dtype == OM_DTYPE_I32 ||
         dtype == OM_DTYPE_I64;
}

/* Wraps. A negative exponent gives the whole part of the quotient: 0 beside 1 and -1. */
static uint64_t power_of_bits(uint64_t base, uint64_t exponent, bool exponent_is_negative) {
  if (exponent_is_negative) {
    if (base == 1) return 1;
    if (base == UINT64_MAX) return (exponent & 1) ? UINT64_MAX : 1;
    return 0;
  }
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

/* A whole number toward zero, in the limits of int64. */
static uint64_t bits_of_f64(double value) {
  if (isnan(value)) return 0;
  if (value >= 18446744073709551616.0) return UINT64_MAX;
  if (value >= 9223372036854775808.0) return (uint64_t)value;
  if (value <= -9223372036854775808.0) return (uint64_t)INT64_MIN;
  return (uint64_t)(int64_t)value;
}

void om_mixed_pow(const void *const *in, void *out, size_t count, const void *arg) {
  const om_pow_types *types = arg;
  for (size_t i = 0; i < count; ++i) {
    if (types->base == OM_DTYPE_F32) {
      float x = ((const float *)in[0])[i];
      ((float *)out)[i] = om_pow(x, (float)load_f64(types->exponent, in[1], i));
    } else if (types->base == OM_DTYPE_F64) {
      ((double *)out)[i] = pow(((const double *)in[0])[i], load_f64(types->exponent, in[1], i));
    } else if (is_float(types->exponent)) {
      double power = pow(load_f64(types->base, in[0], i), load_f64(types->exponent, in[1], i));
      store_bits(types->base, bits_of_f64(power), out, i);
    } else {
      uint64_t exponent = load_bits(types->exponent, in[1], i);
      bool is_negative = is_signed(types->exponent) && (exponent >> 63) != 0;
      uint64_t base = load_bits(types->base, in[0], i);
      store_bits(types->base, power_of_bits(base, exponent, is_negative), out, i);
    }
  }
}

/* ---- Remainders ---- */

#define OM_MOD_SIGNED(type, suffix)                                                            \
  static void mod_##suffix(const void *const *in, void *out, size_t count, const void *arg) {  \
    const type *xs = in[0];                                                                    \
    const type *ys = in[1];                                                                    \
    type *zs = out;                                                                            \
    (void)arg;                                                                                 \
    for (size_t i = 0; i < count; ++i) {                                                       \
      type r = (type)(ys[i] == -1 ? 0 : xs[i] % ys[i]);                                        \
      zs[i] = r != 0 && (r < 0) != (ys[i] < 0) ? (type)(r + ys[i]) : r;                        \
    }                                                                                          \
  }                                                                                            \
  static void fmod_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                    \
    const type *ys = in[1];                                                                    \
    type *zs = out;                                                                            \
    (void)arg;                                                                                 \
    for (size_t i = 0; i < count; ++i) zs[i] = (type)(ys[i] == -1 ? 0 : xs[i] % ys[i]);        \
  }
#define OM_MOD_UNSIGNED(type, suffix)                                                         \
  static void mod_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                   \
    const type *ys = in[1];                                                                   \
    type *zs = out;                                                                           \
    (void)arg;                                                                                \
    for (size_t i = 0; i < count; ++i) zs[i] = (type)(xs[i] % ys[i]);                         \
  }
#define OM_MOD_FLOAT(type, suffix, function)                                                   \
  static void fmod_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                    \
    const type *ys = in[1];                                                                    \
    type *zs = out;                                                                            \
    (void)arg;                                                                                 \
    for (size_t i = 0; i < count; ++i) zs[i] = function(xs[i], ys[i]);                         \
  }                                                                                            \
  static void mod_##suffix(const void *const *in, void *out, size_t count, const void *arg) {  \
    const type *xs = in[0];                                                                    \
    const type *ys = in[1];                                                                    \
    type *zs = out;                                                                            \
    (void)arg;                                                                                 \
    for (size_t i = 0; i < count; ++i) {                                                       \
      type r = function(xs[i], ys[i]);                                                         \
      zs[i] = r != 0 && (r < 0) != (ys[i] < 0) ? r + ys[i] : r;                                \
    }                                                                                          \
  }

OM_MOD_SIGNED(int8_t, i8)
OM_MOD_SIGNED(int16_t, i16)
OM_MOD_SIGNED(int32_t, i32)
OM_MOD_SIGNED(int64_t, i64)
OM_MOD_UNSIGNED(uint8_t, u8)
OM_MOD_UNSIGNED(uint16_t, u16)
OM_MOD_UNSIGNED(uint32_t, u32)
OM_MOD_UNSIGNED(uint64_t, u64)
OM_MOD_FLOAT(float, f32, fmodf)
OM_MOD_FLOAT(double, f64, fmod)

static const om_elementwise_fn mods[OM_DTYPE_COUNT] = {[OM_DTYPE_I8] = mod_i8,
                                                       [OM_DTYPE_I16] = mod_i16,
                                                       [OM_DTYPE_I32] = mod_i32,
                                                       [OM_DTYPE_I64] = mod_i64,
                                                       [OM_DTYPE_U8] = mod_u8,
                                                       [OM_DTYPE_U16] = mod_u16,
                                                       [OM_DTYPE_U32] = mod_u32,
                                                       [OM_DTYPE_U64] = mod_u64,
                                                       [OM_DTYPE_F32] = mod_f32,
                                                       [OM_DTYPE_F16] = mod_f32,
                                                       [OM_DTYPE_BF16] = mod_f32,
                                                       [OM_DTYPE_F64] = mod_f64};
static const om_elementwise_fn fmods[OM_DTYPE_COUNT] = {[OM_DTYPE_I8] = fmod_i8,
                                                        [OM_DTYPE_I16] = fmod_i16,
                                                        [OM_DTYPE_I32] = fmod_i32,
                                                        [OM_DTYPE_I64] = fmod_i64,
                                                        [OM_DTYPE_U8] = mod_u8,
                                                        [OM_DTYPE_U16] = mod_u16,
                                                        [OM_DTYPE_U32] = mod_u32,
                                                        [OM_DTYPE_U64] = mod_u64,
                                                        [OM_DTYPE_F32] = fmod_f32,
                                                        [OM_DTYPE_F16] = fmod_f32,
                                                        [OM_DTYPE_BF16] = fmod_f32,
                                                        [OM_DTYPE_F64] = fmod_f64};

om_elementwise_fn om_mod_kernel(om_dtype dtype, bool is_fmod) {
  return is_fmod ? fmods[dtype] : mods[dtype];
}

/* ---- Copies ---- */

#define OM_COPY(bits)                                                                        \
  static void copy_##bits(const void *const *in, void *out, size_t count, const void *arg) { \
    (void)arg;                                                                               \
    memcpy(out, in[0], count *((bits) / 8));                                                 \
  }
OM_COPY(8)
OM_COPY(16)
OM_COPY(32)
OM_COPY(64)

om_elementwise_fn om_copy_kernel(om_dtype dtype) {
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) return copy_32;
  switch (om_dtype_bits(dtype)) {
    case 8:
      return copy_8;
    case 16:
      return copy_16;
    case 32:
      return copy_32;
    default:
      return copy_64;
  }
}
