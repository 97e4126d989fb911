/* Conversions. Types of 32 and 64 bits, bytes and 16-bit integers convert directly; small floats
 * and 4-bit integers go by way of a block of float32 or int32.
 *
 * Float to integer: toward zero, saturated, NaN to 0. Integer to integer: the low bits. To bool:
 * whether it is not 0 (NaN is not). To small floats: one rounding. */
#include "cpu/exact/om_cast.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_small_float.h"

enum {
  OM_CAST_BLOCK = 64,    /* elements; even, for the 4-bit types */
  OM_CAST_GRAIN = 16384, /* elements a piece; a multiple of the block */
};

typedef void (*om_cast_fn)(const void *in, void *out, size_t count);

/* ---- Direct conversions ---- */

#define OM_CAST_PLAIN(from_type, from, to_type, to)                     \
  static void from##_to_##to(const void *in, void *out, size_t count) { \
    const from_type *xs = in;                                           \
    to_type *ys = out;                                                  \
    for (size_t i = 0; i < count; ++i) ys[i] = (to_type)xs[i];          \
  }
/* To types that int32 holds, without a branch. */
#define OM_CAST_NARROW(from_type, from, to_type, to, lowest, highest)             \
  OM_CLONES static void from##_to_##to(const void *in, void *out, size_t count) { \
    const from_type *xs = in;                                                     \
    to_type *ys = out;                                                            \
    for (size_t i = 0; i < count; ++i) {                                          \
      from_type x = xs[i];                                                        \
      x = x < (from_type)(highest) ? x : (from_type)(highest);                    \
      x = x > (from_type)(lowest) ? x : (from_type)(lowest);                      \
      ys[i] = (to_type)(int32_t)(isnan(xs[i]) ? 0 : x);                           \
    }                                                                             \
  }
/* below and above are the type's limits as floats: the first value that is too small is below or
 * less, the first that is too large is above. */
#define OM_CAST_SATURATE(from_type, from, to_type, to, lowest, highest, above) \
  static void from##_to_##to(const void *in, void *out, size_t count) {        \
    const from_type *xs = in;                                                  \
    to_type *ys = out;                                                         \
    for (size_t i = 0; i < count; ++i) {                                       \
      from_type x = xs[i];                                                     \
      if (x >= (from_type)(above)) {                                           \
        ys[i] = highest;                                                       \
      } else if (x > (from_type)(lowest)) {                                    \
        ys[i] = (to_type)x;                                                    \
      } else {                                                                 \
        ys[i] = isnan(x) ? 0 : lowest;                                         \
      }                                                                        \
    }                                                                          \
  }
#define OM_CAST_BOOL(from_type, from)                                 \
  static void from##_to_b8(const void *in, void *out, size_t count) { \
    const from_type *xs = in;                                         \
    uint8_t *ys = out;                                                \
    for (size_t i = 0; i < count; ++i) ys[i] = xs[i] != 0;            \
  }

#define OM_CAST_FROM_INT(type, name)       \
  OM_CAST_BOOL(type, name)                 \
  OM_CAST_PLAIN(type, name, int8_t, i8)    \
  OM_CAST_PLAIN(type, name, int16_t, i16)  \
  OM_CAST_PLAIN(type, name, int32_t, i32)  \
  OM_CAST_PLAIN(type, name, int64_t, i64)  \
  OM_CAST_PLAIN(type, name, uint8_t, u8)   \
  OM_CAST_PLAIN(type, name, uint16_t, u16) \
  OM_CAST_PLAIN(type, name, uint32_t, u32) \
  OM_CAST_PLAIN(type, name, uint64_t, u64) \
  OM_CAST_PLAIN(type, name, float, f32)    \
  OM_CAST_PLAIN(type, name, double, f64)
#define OM_CAST_FROM_FLOAT(type, name)                                                    \
  OM_CAST_BOOL(type, name)                                                                \
  OM_CAST_NARROW(type, name, int8_t, i8, INT8_MIN, INT8_MAX)                              \
  OM_CAST_NARROW(type, name, int16_t, i16, INT16_MIN, INT16_MAX)                          \
  OM_CAST_SATURATE(type, name, int32_t, i32, INT32_MIN, INT32_MAX, 2147483648.0)          \
  OM_CAST_SATURATE(type, name, int64_t, i64, INT64_MIN, INT64_MAX, 9223372036854775808.0) \
  OM_CAST_NARROW(type, name, uint8_t, u8, 0, UINT8_MAX)                                   \
  OM_CAST_NARROW(type, name, uint16_t, u16, 0, UINT16_MAX)                                \
  OM_CAST_SATURATE(type, name, uint32_t, u32, 0, UINT32_MAX, 4294967296.0)                \
  OM_CAST_SATURATE(type, name, uint64_t, u64, 0, UINT64_MAX, 18446744073709551616.0)      \
  OM_CAST_PLAIN(type, name, float, f32)                                                   \
  OM_CAST_PLAIN(type, name, double, f64)

OM_CAST_FROM_INT(int8_t, i8)
OM_CAST_FROM_INT(int16_t, i16)
OM_CAST_FROM_INT(int32_t, i32)
OM_CAST_FROM_INT(int64_t, i64)
OM_CAST_FROM_INT(uint8_t, u8)
OM_CAST_FROM_INT(uint16_t, u16)
OM_CAST_FROM_INT(uint32_t, u32)
OM_CAST_FROM_INT(uint64_t, u64)
OM_CAST_FROM_FLOAT(float, f32)
OM_CAST_FROM_FLOAT(double, f64)

#define OM_CAST_ROW(name)          \
  {[OM_DTYPE_BOOL] = name##_to_b8, \
   [OM_DTYPE_I8] = name##_to_i8,   \
   [OM_DTYPE_I16] = name##_to_i16, \
   [OM_DTYPE_I32] = name##_to_i32, \
   [OM_DTYPE_I64] = name##_to_i64, \
   [OM_DTYPE_U8] = name##_to_u8,   \
   [OM_DTYPE_U16] = name##_to_u16, \
   [OM_DTYPE_U32] = name##_to_u32, \
   [OM_DTYPE_U64] = name##_to_u64, \
   [OM_DTYPE_F32] = name##_to_f32, \
   [OM_DTYPE_F64] = name##_to_f64}

static const om_cast_fn direct[OM_DTYPE_COUNT][OM_DTYPE_COUNT] = {
    [OM_DTYPE_I8] = OM_CAST_ROW(i8),
    [OM_DTYPE_I16] = OM_CAST_ROW(i16),
    [OM_DTYPE_I32] = OM_CAST_ROW(i32),
    [OM_DTYPE_I64] = OM_CAST_ROW(i64),
    [OM_DTYPE_U8] = OM_CAST_ROW(u8),
    [OM_DTYPE_U16] = OM_CAST_ROW(u16),
    [OM_DTYPE_U32] = OM_CAST_ROW(u32),
    [OM_DTYPE_U64] = OM_CAST_ROW(u64),
    [OM_DTYPE_F32] = OM_CAST_ROW(f32),
    [OM_DTYPE_F64] = OM_CAST_ROW(f64),
    [OM_DTYPE_BOOL] = OM_CAST_ROW(u8),
};

/* ---- By way of a block ---- */

static bool is_nibble(om_dtype dtype) {
  return om_dtype_bits(dtype) == 4;
}

/* Elements [first, first + count) of a small type as its bits; first is even. */
static uint32_t load_bits(om_dtype dtype, const void *data, size_t index) {
  if (is_nibble(dtype)) {
    uint32_t pair = ((const uint8_t *)data)[index / 2];
    return pair >> (index % 2 * 4) & 15u;
  }
  if (om_dtype_bits(dtype) == 8) return ((const uint8_t *)data)[index];
  return ((const uint16_t *)data)[index];
}

static void store_bits(om_dtype dtype, uint32_t bits, void *data, size_t index) {
  if (is_nibble(dtype)) {
    uint8_t *byte = (uint8_t *)data + index / 2;
    *byte = (uint8_t)(index % 2 == 0 ? (bits & 15u) : (*byte & 15u) | (bits & 15u) << 4);
  } else if (om_dtype_bits(dtype) == 8) {
    ((uint8_t *)data)[index] = (uint8_t)bits;
  } else {
    ((uint16_t *)data)[index] = (uint16_t)bits;
  }
}

/* The type in which a block of `dtype` is held. */
static om_dtype block_dtype(om_dtype dtype) {
  if (om_is_small_float(dtype)) return OM_DTYPE_F32;
  return is_nibble(dtype) ? OM_DTYPE_I32 : dtype;
}

static void load_block(om_dtype dtype, const void *data, size_t first, size_t count, void *block) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = load_bits(dtype, data, first + i);
    if (om_is_small_float(dtype)) {
      ((float *)block)[i] = om_small_float_decode(dtype, bits);
    } else {
      ((int32_t *)block)[i] = dtype == OM_DTYPE_I4 && bits > 7 ? (int32_t)bits - 16 : (int32_t)bits;
    }
  }
}

/* Floats to 4-bit integers saturate like the wider ones; integers keep their low bits. */
static uint32_t nibble_of_f32(om_dtype dtype, float x) {
  float low = dtype == OM_DTYPE_I4 ? -8.0f : 0.0f;
  float high = dtype == OM_DTYPE_I4 ? 7.0f : 15.0f;
  if (isnan(x)) return 0;
  float clamped = x < low ? low : (x > high ? high : x);
  return (uint32_t)(int32_t)clamped;
}

typedef struct om_cast_job {
  om_dtype from;
  om_dtype to;
  const void *in;
  void *out;
  bool saturates;
} om_cast_job;

/* `middle` holds the source's elements in the type `from`. */
static void store_block(
    const om_cast_job *job, om_dtype from, const void *middle, size_t first, size_t count) {
  _Alignas(16) float floats[OM_CAST_BLOCK];
  uint8_t *target = (uint8_t *)job->out + first * om_dtype_bits(job->to) / 8;
  if (om_is_small_float(job->to)) {
    if (from == OM_DTYPE_F64) {
      for (size_t i = 0; i < count; ++i) floats[i] = om_f32_sticky(((const double *)middle)[i]);
    } else if (from == OM_DTYPE_I32 || from == OM_DTYPE_U32 || om_dtype_bits(from) == 64) {
      _Alignas(16) double doubles[OM_CAST_BLOCK / 2];
      for (size_t base = 0; base < count; base += OM_CAST_BLOCK / 2) {
        size_t part = count - base < OM_CAST_BLOCK / 2 ? count - base : OM_CAST_BLOCK / 2;
        direct[from][OM_DTYPE_F64](om_cast_place(from, middle, base), doubles, part);
        for (size_t i = 0; i < part; ++i) floats[base + i] = om_f32_sticky(doubles[i]);
      }
    } else {
      direct[from][OM_DTYPE_F32](middle, floats, count);
    }
    for (size_t i = 0; i < count; ++i) {
      uint32_t bits = om_small_float_encode(job->to, floats[i], job->saturates);
      store_bits(job->to, bits, job->out, first + i);
    }
  } else if (is_nibble(job->to)) {
    bool is_float = from == OM_DTYPE_F32 || from == OM_DTYPE_F64;
    if (is_float) direct[from][OM_DTYPE_F32](middle, floats, count);
    if (!is_float) direct[from][OM_DTYPE_I32](middle, floats, count);
    for (size_t i = 0; i < count; ++i) {
      uint32_t low_bits;
      memcpy(&low_bits, &floats[i], sizeof low_bits);
      store_bits(
          job->to, is_float ? nibble_of_f32(job->to, floats[i]) : low_bits, job->out, first + i);
    }
  } else {
    direct[from][job->to](middle, target, count);
  }
}

static void run_range(void *arg, size_t begin, size_t end) {
  const om_cast_job *job = arg;
  _Alignas(16) uint32_t block[OM_CAST_BLOCK];
  for (size_t first = begin; first < end; first += OM_CAST_BLOCK) {
    size_t count = end - first < OM_CAST_BLOCK ? end - first : OM_CAST_BLOCK;
    om_dtype middle = block_dtype(job->from);
    if (middle != job->from) {
      load_block(job->from, job->in, first, count, block);
      store_block(job, middle, block, first, count);
    } else {
      store_block(job, middle, om_cast_place(middle, job->in, first), first, count);
    }
  }
}

static void copy_range(void *arg, size_t begin, size_t end) {
  const om_cast_job *job = arg;
  memcpy((uint8_t *)job->out + begin, (const uint8_t *)job->in + begin, end - begin);
}

void om_cast_elems(
    om_dtype from, const void *in, om_dtype to, void *out, size_t count, bool saturates) {
  om_cast_job job = {from, to, in, out, saturates};
  if (count == 0) return;
  if (from == to) {
    memcpy(out, in, (count * om_dtype_bits(from) + 7) / 8);
  } else {
    run_range(&job, 0, count);
  }
}

bool om_cast_is_there(om_dtype from, om_dtype to) {
  return direct[block_dtype(from)][block_dtype(to)] != NULL;
}

void om_cast_run(om_ctx *ctx, const om_tensor *in, om_tensor *out, bool saturates) {
  om_cast_job job = {in->dtype, out->dtype, in->data, out->data, saturates};
  size_t count = 1;
  for (uint32_t d = 0; d < in->rank; ++d) count *= (size_t)in->dims[d];
  if (in->dtype == out->dtype && in->dtype != OM_DTYPE_BOOL) {
    size_t bytes = (count * om_dtype_bits(in->dtype) + 7) / 8;
    om_parallel_for(ctx, bytes, OM_CAST_GRAIN * 4, copy_range, &job);
  } else {
    om_parallel_for(ctx, count, OM_CAST_GRAIN, run_range, &job);
  }
}
