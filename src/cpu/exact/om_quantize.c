/* Elements go through blocks on the stack: widened, computed in float32 (or int32), narrowed. */
#include "cpu/exact/om_quantize.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_exact_math.h"
#include "cpu/exact/om_small_float.h"

enum {
  OM_QUANTIZE_BLOCK = 48,    /* elements; even, for the 4-bit types; small frames */
  OM_QUANTIZE_GRAIN = 12288, /* elements a piece; a multiple of the block */
};

static bool is_uniform(const om_quantize_place *p) {
  return p->outer_step == 0 && p->axis_step == 0 && p->inner_step == 0;
}

/* Whether the type's elements are rounded to integers. */
static bool is_whole(om_dtype dtype) {
  return !om_is_small_float(dtype) && dtype != OM_DTYPE_F32;
}

/* What om_round is, in a form that becomes vectors: from 2^23 on floats are whole numbers, so that
 * the addition rounds. */
static inline float round_whole(float x) {
  const float magnitude = fabsf(x);
  const float whole = (magnitude + 0x1p23f) - 0x1p23f;
  return magnitude < 0x1p23f ? copysignf(whole, x) : x;
}

size_t om_quantize_scale_index(const om_quantize_place *p, size_t element) {
  const size_t inner = element % p->inner_extent;
  const size_t along = element / p->inner_extent % p->extent;
  const size_t outer = element / p->inner_extent / p->extent;
  return outer * p->outer_step + along / p->block * p->axis_step + inner * p->inner_step;
}

/* The scales of elements [first, first + count), and their zero points (of 4 bytes); of all the
 * same one alone. */
static void gather(const om_quantize_job *job, size_t first, size_t count, float *s, void *z) {
  const om_quantize_place *p = &job->place;
  const bool all_same = is_uniform(p);
  size_t inner = first % p->inner_extent;
  size_t along = first / p->inner_extent % p->extent;
  size_t outer = first / p->inner_extent / p->extent;
  size_t base = om_quantize_scale_index(p, first - inner);
  for (size_t i = 0; i < (all_same ? 1 : count); ++i) {
    const size_t at = all_same ? 0 : base + inner * p->inner_step;
    s[i] = job->scales[at];
    if (job->zeros) memcpy((char *)z + i * 4, (const char *)job->zeros + at * 4, 4);
    if (++inner < p->inner_extent) continue;
    inner = 0;
    if (++along == p->extent) along = 0, ++outer;
    base = outer * p->outer_step + (p->block == 1 ? along : along / p->block) * p->axis_step;
  }
}

/* x / s, rounded to integers or not, plus z (NULL: nothing). One s and z for all, or one each. */
OM_CLONES static void quantize_values(
    size_t count, bool all_same, bool rounds, const float *s, const float *z, float *x) {
  if (all_same) {
    const float scale = *s;
    for (size_t i = 0; i < count; ++i) x[i] = om_div(x[i], scale);
  } else {
    for (size_t i = 0; i < count; ++i) x[i] = om_div(x[i], s[i]);
  }
  for (size_t i = 0; rounds && i < count; ++i) x[i] = round_whole(x[i]);
  for (size_t i = 0; z && i < count; ++i) x[i] = x[i] + z[all_same ? 0 : i];
}

static void quantize_block(const om_quantize_job *job, size_t first, size_t count) {
  float x[OM_QUANTIZE_BLOCK];
  float s[OM_QUANTIZE_BLOCK];
  float z[OM_QUANTIZE_BLOCK];
  const om_dtype in = job->in->dtype;
  const om_dtype out = job->out->dtype;
  om_cast_elems(in, om_cast_place(in, job->in->data, first), OM_DTYPE_F32, x, count, true);
  gather(job, first, count, s, z);
  quantize_values(count, is_uniform(&job->place), is_whole(out), s, job->zeros ? z : NULL, x);
  uint8_t *target = (uint8_t *)job->out->data + first * om_dtype_bits(out) / 8;
  om_cast_elems(OM_DTYPE_F32, x, out, target, count, job->saturates);
}

/* whole - z as float32 (of 64 bits before: one rounding). */
OM_CLONES static void shift_whole(
    size_t count, bool all_same, const int32_t *whole, const int32_t *z, float *x) {
  if (!z) {
    for (size_t i = 0; i < count; ++i) x[i] = (float)whole[i];
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    x[i] = (float)((int64_t)whole[i] - z[all_same ? 0 : i]);
  }
}

/* The same of bytes, whose differences are exact. */
OM_CLONES static void shift_bytes(
    size_t count, bool all_same, const int32_t *whole, const int32_t *z, float *x) {
  if (all_same) {
    const int32_t zero = z ? *z : 0;
    for (size_t i = 0; i < count; ++i) x[i] = (float)(whole[i] - zero);
  } else {
    for (size_t i = 0; i < count; ++i) x[i] = (float)(whole[i] - (z ? z[i] : 0));
  }
}

OM_CLONES static void multiply_values(size_t count, bool all_same, const float *s, float *x) {
  const float scale = *s;
  if (all_same) {
    for (size_t i = 0; i < count; ++i) x[i] = x[i] * scale;
  } else {
    for (size_t i = 0; i < count; ++i) x[i] = x[i] * s[i];
  }
}

static void dequantize_block(const om_quantize_job *job, size_t first, size_t count) {
  float x[OM_QUANTIZE_BLOCK];
  float s[OM_QUANTIZE_BLOCK];
  int32_t z[OM_QUANTIZE_BLOCK];
  int32_t whole[OM_QUANTIZE_BLOCK];
  const om_dtype in = job->in->dtype;
  const om_dtype out = job->out->dtype;
  const bool all_same = is_uniform(&job->place);
  const void *source = om_cast_place(in, job->in->data, first);
  gather(job, first, count, s, z);
  if (is_whole(in)) {
    om_cast_elems(in, source, OM_DTYPE_I32, whole, count, true);
    if (om_dtype_bits(in) <= 8) {
      shift_bytes(count, all_same, whole, job->zeros ? z : NULL, x);
    } else {
      shift_whole(count, all_same, whole, job->zeros ? z : NULL, x);
    }
  } else {
    om_cast_elems(in, source, OM_DTYPE_F32, x, count, true);
    for (size_t i = 0; job->zeros && i < count; ++i) {
      float zero;
      memcpy(&zero, &z[all_same ? 0 : i], sizeof zero);
      x[i] = x[i] - zero;
    }
  }
  multiply_values(count, all_same, s, x);
  uint8_t *target = (uint8_t *)job->out->data + first * om_dtype_bits(out) / 8;
  om_cast_elems(OM_DTYPE_F32, x, out, target, count, true);
}

/* ---- Between float32 and bytes: many elements of one scale at once ---- */

/* What bytes can hold is within +-383, where the addition of 1.5 * 2^23 rounds to a whole number,
 * halves to even, which then is the low bits. */
#define OM_QUANTIZE_BYTES(name, type, lowest, highest)                               \
  OM_CLONES_WIDE static void quantize_##name(                                        \
      size_t count, const float *x, float scale, float zero, type *y) {              \
    const float least = (float)(lowest) - zero;                                      \
    const float most = (float)(highest) - zero;                                      \
    const int32_t back = (int32_t)zero - 0x4b400000; /* the bits of 1.5 * 2^23 */    \
    for (size_t i = 0; i < count; ++i) {                                             \
      const float quotient = om_div(x[i], scale);                                    \
      float kept = quotient < most ? quotient : most;                                \
      int32_t whole;                                                                 \
      kept = kept > least ? kept : least;                                            \
      kept += 0x1.8p23f;                                                             \
      memcpy(&whole, &kept, sizeof whole);                                           \
      y[i] = (type)(quotient == quotient ? whole + back : 0);                        \
    }                                                                                \
  }                                                                                  \
  OM_CLONES static void dequantize_##name(                                           \
      size_t count, const type *x, float scale, int32_t zero, float *y) {            \
    for (size_t i = 0; i < count; ++i) y[i] = (float)((int32_t)x[i] - zero) * scale; \
  }
OM_QUANTIZE_BYTES(i8, int8_t, INT8_MIN, INT8_MAX)
OM_QUANTIZE_BYTES(u8, uint8_t, 0, UINT8_MAX)

void om_quantize_bytes(
    om_dtype dtype, size_t count, const float *x, float scale, float zero, void *y) {
  if (dtype == OM_DTYPE_I8) {
    quantize_i8(count, x, scale, zero, y);
  } else {
    quantize_u8(count, x, scale, zero, y);
  }
}

void om_dequantize_bytes(
    om_dtype dtype, size_t count, const void *x, float scale, int32_t zero, float *y) {
  if (dtype == OM_DTYPE_I8) {
    dequantize_i8(count, x, scale, zero, y);
  } else {
    dequantize_u8(count, x, scale, zero, y);
  }
}

static bool is_byte(om_dtype dtype) {
  return dtype == OM_DTYPE_I8 || dtype == OM_DTYPE_U8;
}

/* How many elements from `first` on, of `left`, have the same scale and go at once; 0: they do
 * not. */
static size_t run_of(
    const om_quantize_job *job, om_dtype bytes, om_dtype floats, size_t first, size_t left) {
  const om_quantize_place *p = &job->place;
  if (!is_byte(bytes) || floats != OM_DTYPE_F32) return 0;
  if (is_uniform(p)) return left;
  if (p->inner_step != 0) return 0;
  const size_t same = p->inner_extent - first % p->inner_extent;
  return same < left ? same : left;
}

static void quantize_run(const om_quantize_job *job, size_t first, size_t count) {
  const size_t at = om_quantize_scale_index(&job->place, first);
  const float *x = (const float *)job->in->data + first;
  const float scale = job->scales[at];
  const float zero = job->zeros ? ((const float *)job->zeros)[at] : 0.0f;
  om_quantize_bytes(job->out->dtype, count, x, scale, zero, (uint8_t *)job->out->data + first);
}

static void dequantize_run(const om_quantize_job *job, size_t first, size_t count) {
  const size_t at = om_quantize_scale_index(&job->place, first);
  float *y = (float *)job->out->data + first;
  const float scale = job->scales[at];
  const int32_t zero = job->zeros ? ((const int32_t *)job->zeros)[at] : 0;
  om_dequantize_bytes(
      job->in->dtype, count, (const uint8_t *)job->in->data + first, scale, zero, y);
}

static void quantize_range(void *arg, size_t begin, size_t end) {
  const om_quantize_job *job = arg;
  for (size_t first = begin; first < end;) {
    const size_t left = end - first;
    const size_t run = run_of(job, job->out->dtype, job->in->dtype, first, left);
    const size_t count = run > 0 ? run : left < OM_QUANTIZE_BLOCK ? left : OM_QUANTIZE_BLOCK;
    if (run > 0) quantize_run(job, first, count);
    if (run == 0) quantize_block(job, first, count);
    first += count;
  }
}

static void dequantize_range(void *arg, size_t begin, size_t end) {
  const om_quantize_job *job = arg;
  for (size_t first = begin; first < end;) {
    const size_t left = end - first;
    const size_t run = run_of(job, job->in->dtype, job->out->dtype, first, left);
    const size_t count = run > 0 ? run : left < OM_QUANTIZE_BLOCK ? left : OM_QUANTIZE_BLOCK;
    if (run > 0) dequantize_run(job, first, count);
    if (run == 0) dequantize_block(job, first, count);
    first += count;
  }
}

void om_quantize_run(om_ctx *ctx, const om_quantize_job *job) {
  om_quantize_job copy = *job;
  om_parallel_for(ctx, om_tensor_elems(job->in), OM_QUANTIZE_GRAIN, quantize_range, &copy);
}

void om_dequantize_run(om_ctx *ctx, const om_quantize_job *job) {
  om_quantize_job copy = *job;
  om_parallel_for(ctx, om_tensor_elems(job->in), OM_QUANTIZE_GRAIN, dequantize_range, &copy);
}

/* ---- A tensor's own range ---- */

/* Bits of floats whose order as integers is that of the values: -NaN, -infinity, ..., infinity,
 * NaN. */
static inline int32_t order_of(int32_t bits) {
  return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

/* Of x ^ flip. (A function of its own: clones are exported, whatever their visibility.) */
OM_CLONES static uint32_t sum_of(const uint8_t *x, size_t count, uint32_t flip) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += x[i] ^ flip;
  return sum;
}

uint32_t om_quantize_sum(const uint8_t *x, size_t count, bool is_signed) {
  const uint32_t flip = is_signed ? 0x80 : 0; /* x + 128 as a byte without sign */
  return sum_of(x, count, flip) - flip * (uint32_t)count;
}

/* The least and the largest of the values and 0, as integers in their order. */
OM_CLONES static void find_range(const float *values,
                                 size_t count,
                                 int32_t *out_least,
                                 int32_t *out_largest) {
  int32_t least = 0, largest = 0;
  for (size_t i = 0; i < count; ++i) {
    int32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    const int32_t order = order_of(bits);
    least = order < least ? order : least;
    largest = order > largest ? order : largest;
  }
  *out_least = least;
  *out_largest = largest;
}

static float float_of(int32_t order) {
  const int32_t bits = order_of(order); /* its own inverse */
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void om_quantize_range(const float *values, size_t count, float *out_scale, float *out_zero) {
  int32_t low, high;
  find_range(values, count, &low, &high);
  const float least = float_of(low), largest = float_of(high);
  *out_scale = om_div(largest - least, 255.0f);
  if (*out_scale == 0.0f) *out_scale = 1.0f; /* all values are 0, or too small to tell */
  *out_zero = om_round(om_min(om_max(om_div(-least, *out_scale), 0.0f), 255.0f));
}

/* ---- Around integer products ---- */

typedef struct om_shift_job {
  const om_tensor *values;
  const om_tensor *zero;
  float *out;
  om_broadcast walk;
} om_shift_job;

/* Takes the zero points of a row of broadcast elements off. */
static void shift_row(const om_shift_job *job, const om_broadcast_row *row) {
  float zeros[OM_QUANTIZE_BLOCK];
  const bool advances = row->advances[0];
  const om_dtype dtype = job->zero->dtype;
  for (size_t begin = 0; begin < row->count; begin += OM_QUANTIZE_BLOCK) {
    const size_t left = row->count - begin;
    const size_t count = left < OM_QUANTIZE_BLOCK ? left : OM_QUANTIZE_BLOCK;
    const size_t at = row->offsets[0] + (advances ? begin : 0);
    const void *source = om_cast_place(dtype, job->zero->data, at);
    float *out = job->out + row->first + begin;
    om_cast_elems(dtype, source, OM_DTYPE_F32, zeros, advances ? count : 1, true);
    for (size_t i = 0; i < count; ++i) out[i] = out[i] - zeros[advances ? i : 0];
  }
}

static void shift_range(void *arg, size_t begin, size_t end) {
  const om_shift_job *job = arg;
  const om_dtype from = job->values->dtype;
  if (is_byte(from) && (!job->zero || om_tensor_elems(job->zero) == 1)) {
    int32_t zero = 0;
    if (job->zero) om_cast_elems(from, job->zero->data, OM_DTYPE_I32, &zero, 1, true);
    const uint8_t *values = (const uint8_t *)job->values->data + begin;
    om_dequantize_bytes(from, end - begin, values, 1.0f, zero, job->out + begin);
    return;
  }
  const void *source = om_cast_place(from, job->values->data, begin);
  om_cast_elems(from, source, OM_DTYPE_F32, job->out + begin, end - begin, true);
  for (size_t first = begin; job->zero && first < end;) {
    const om_broadcast_row row = om_broadcast_row_at(&job->walk, first, end);
    shift_row(job, &row);
    first += row.count;
  }
}

void om_quantize_shift(om_ctx *ctx, const om_tensor *values, const om_tensor *zero, float *out) {
  om_shift_job job = {.values = values, .zero = zero, .out = out};
  if (zero) om_broadcast_init(&job.walk, &zero, 1, values);
  om_parallel_for(ctx, om_tensor_elems(values), OM_QUANTIZE_GRAIN, shift_range, &job);
}

typedef struct om_requantize_walk {
  const om_requantize_job *job;
  om_broadcast walk;
} om_requantize_walk;

/* A side's scales for `count` elements: one, or side by side. */
typedef struct om_factors {
  const float *a, *b;
  bool a_advances, b_advances;
} om_factors;

/* sum * (a * b), or sum * (a * b / scale) rounded or not, plus the zero point. */
OM_CLONES static void requantize_values(
    const om_requantize_job *job, const om_factors *f, bool rounds, size_t count, float *x) {
  float factors[OM_QUANTIZE_BLOCK];
  const float a = *f->a;
  const float b = *f->b;
  const float scale = job->scale;
  const float zero = job->zero;
  const bool advances = f->a_advances || f->b_advances;
  float factor = a * b;
  if (job->is_quantized) factor = om_div(factor, scale);
  if (advances) {
    for (size_t i = 0; i < count; ++i) factors[i] = f->a_advances ? f->a[i] : a;
    for (size_t i = 0; i < count; ++i) factors[i] = factors[i] * (f->b_advances ? f->b[i] : b);
    for (size_t i = 0; job->is_quantized && i < count; ++i) factors[i] = om_div(factors[i], scale);
    for (size_t i = 0; i < count; ++i) x[i] = x[i] * factors[i];
  } else {
    for (size_t i = 0; i < count; ++i) x[i] = x[i] * factor;
  }
  if (!job->is_quantized) return;
  for (size_t i = 0; rounds && i < count; ++i) x[i] = round_whole(x[i]);
  for (size_t i = 0; i < count; ++i) x[i] = x[i] + zero;
}

/* int32 sums of one factor to bytes. */
#define OM_REQUANTIZE_BYTES(name, type, lowest, highest)                      \
  OM_CLONES static void requantize_##name(                                    \
      size_t count, const int32_t *sums, float factor, float zero, type *y) { \
    for (size_t i = 0; i < count; ++i) {                                      \
      const float whole = round_whole((float)sums[i] * factor) + zero;        \
      float kept = whole < (float)(highest) ? whole : (float)(highest);       \
      kept = kept > (float)(lowest) ? kept : (float)(lowest);                 \
      y[i] = (type)(int32_t)(isnan(whole) ? 0.0f : kept);                     \
    }                                                                         \
  }
OM_REQUANTIZE_BYTES(i8, int8_t, INT8_MIN, INT8_MAX)
OM_REQUANTIZE_BYTES(u8, uint8_t, 0, UINT8_MAX)

/* Whether the row was one of them. */
static bool requantize_bytes(const om_requantize_job *job, const om_broadcast_row *row) {
  const om_dtype out = job->out->dtype;
  if (!is_byte(out) || job->sums->dtype != OM_DTYPE_I32 || !job->is_quantized || job->bias ||
      row->advances[0] || row->advances[1]) {
    return false;
  }
  const int32_t *sums = (const int32_t *)job->sums->data + row->first;
  const float scale = job->a_scale[row->offsets[0]] * job->b_scale[row->offsets[1]];
  const float factor = om_div(scale, job->scale);
  if (out == OM_DTYPE_I8) {
    requantize_i8(row->count, sums, factor, job->zero, (int8_t *)job->out->data + row->first);
  } else {
    requantize_u8(row->count, sums, factor, job->zero, (uint8_t *)job->out->data + row->first);
  }
  return true;
}

static void requantize_row(const om_requantize_job *job, const om_broadcast_row *row) {
  float block[OM_QUANTIZE_BLOCK];
  float bias[OM_QUANTIZE_BLOCK];
  const om_dtype out = job->out->dtype;
  om_factors f = {.a = job->a_scale + row->offsets[0],
                  .b = job->b_scale + row->offsets[1],
                  .a_advances = row->advances[0],
                  .b_advances = row->advances[1]};
  for (size_t begin = 0; begin < row->count; begin += OM_QUANTIZE_BLOCK) {
    const size_t left = row->count - begin;
    const size_t count = left < OM_QUANTIZE_BLOCK ? left : OM_QUANTIZE_BLOCK;
    const size_t first = row->first + begin;
    om_cast_elems(job->sums->dtype,
                  om_cast_place(job->sums->dtype, job->sums->data, first),
                  OM_DTYPE_F32,
                  block,
                  count,
                  true);
    requantize_values(job, &f, is_whole(out), count, block);
    if (f.a_advances) f.a += count;
    if (f.b_advances) f.b += count;
    if (job->bias) {
      const om_dtype dtype = job->bias->dtype;
      const size_t at = row->offsets[2] + (row->advances[2] ? begin : 0);
      const void *source = om_cast_place(dtype, job->bias->data, at);
      om_cast_elems(dtype, source, OM_DTYPE_F32, bias, row->advances[2] ? count : 1, true);
      for (size_t i = 0; i < count; ++i) block[i] = block[i] + bias[row->advances[2] ? i : 0];
    }
    uint8_t *target = (uint8_t *)job->out->data + first * om_dtype_bits(out) / 8;
    om_cast_elems(OM_DTYPE_F32, block, out, target, count, true);
  }
}

static void requantize_range(void *arg, size_t begin, size_t end) {
  const om_requantize_walk *w = arg;
  for (size_t first = begin; first < end;) {
    const om_broadcast_row row = om_broadcast_row_at(&w->walk, first, end);
    if (!requantize_bytes(w->job, &row)) requantize_row(w->job, &row);
    first += row.count;
  }
}

void om_requantize_run(om_ctx *ctx, const om_requantize_job *job) {
  const om_tensor *operands[3] = {&job->a_shape, &job->b_shape, job->bias};
  om_requantize_walk w = {job, {0}};
  om_broadcast_init(&w.walk, operands, job->bias ? 3 : 2, job->out);
  om_parallel_for(ctx, om_tensor_elems(job->out), OM_QUANTIZE_GRAIN, requantize_range, &w);
}
