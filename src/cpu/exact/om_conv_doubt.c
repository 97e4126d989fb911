#include "cpu/exact/om_conv_doubt.h"

#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_product_group.h"
#include "cpu/exact/om_quantize.h"

enum {
  BLOCK = OM_PRODUCT_BLOCK,
  GROUP = OM_PRODUCT_GROUP,
  BLOCKS = GROUP / BLOCK,
  PART = OM_DOUBT_FLOATS / 2, /* terms whose floats stand side by side */
};

static const double ROUNDING = 0x1p-24; /* of a result, at most */

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Additions that the part at `index` of `count` goes through: from 0 on, the first is exact. */
static size_t additions(size_t index, size_t count) {
  return count - larger(index, 1);
}

void om_doubt_list_roundings(size_t terms, int16_t *roundings) {
  enum { OTHERS = 5 }; /* x, w and their product; the bias's addition, the division */
  const size_t groups = (terms + GROUP - 1) / GROUP;
  for (size_t k = 0; k < terms; ++k) {
    const size_t group = k / GROUP, block = k / BLOCK % BLOCKS;
    const size_t in_group = smaller(terms - group * GROUP, GROUP);
    const size_t in_block = smaller(in_group - block * BLOCK, BLOCK);
    const size_t count = additions(k % BLOCK, in_block) +
                         additions(block, (in_group + BLOCK - 1) / BLOCK) +
                         additions(group, groups) + OTHERS;
    roundings[k] = (int16_t)smaller(count, INT16_MAX);
  }
}

/* |w - zero| * roundings of few enough terms for an int32, in a form that becomes vectors. */
#define OM_WEIGH(name, type)                                                 \
  OM_CLONES static int32_t weigh_##name(                                     \
      const type *w, int16_t zero, size_t terms, const int16_t *roundings) { \
    int32_t sum = 0;                                                         \
    for (size_t k = 0; k < terms; ++k) {                                     \
      const int16_t value = (int16_t)(w[k] - zero);                          \
      const int16_t size = (int16_t)(value < 0 ? -value : value);            \
      sum += (int32_t)size * (int32_t)roundings[k];                          \
    }                                                                        \
    return sum;                                                              \
  }
OM_WEIGH(i8, int8_t)
OM_WEIGH(u8, uint8_t)

static double weigh(const om_conv_bytes *c,
                    size_t channel,
                    size_t terms,
                    const int16_t *roundings) {
  enum { AT_ONCE = 256 }; /* UINT8_MAX * INT16_MAX * 256 < INT32_MAX */
  const uint8_t *w = c->w + channel * terms;
  const int16_t zero = (int16_t)c->w_zeros[channel];
  double sum = 0.0;
  for (size_t k = 0; k < terms; k += AT_ONCE) {
    const size_t count = smaller(terms - k, AT_ONCE);
    sum += c->is_w_signed ? weigh_i8((const int8_t *)w + k, zero, count, roundings + k)
                          : weigh_u8(w + k, zero, count, roundings + k);
  }
  return sum;
}

/* The largest |x - zero|. */
static double most_of(const om_conv_bytes *c) {
  const int32_t low = c->is_x_signed ? INT8_MIN : 0, high = c->is_x_signed ? INT8_MAX : UINT8_MAX;
  const int32_t below = c->x_zero - low, above = high - c->x_zero;
  return (double)(below > above ? below : above);
}

float om_doubt_limit(const om_conv_bytes *c,
                     size_t channel,
                     size_t terms,
                     const int16_t *roundings) {
  const double of_bias = 4.0; /* roundings: its conversion and scale, its addition, the division */
  const double more = 1.001;  /* roundings of roundings, and those here */
  const double own = 0x1p-14; /* four roundings of the scaled sum, which is within +-255 */
  const om_conv_floats *f = c->floats;
  const double scale = (double)f->x_scale * (double)f->w_scales[channel];
  double sum = weigh(c, channel, terms, roundings);
  sum *= scale * most_of(c) * ROUNDING;
  if (c->bias) {
    const double bias = c->bias[channel] < 0 ? -(double)c->bias[channel] : c->bias[channel];
    const double apart = (double)f->bias_scales[channel] - scale;
    sum += bias * ((double)f->bias_scales[channel] * of_bias * ROUNDING);
    sum += bias * (apart < 0.0 ? -apart : apart);
  }
  return (float)(0.5 - own - sum / (double)f->y_scale * more - ROUNDING);
}

static om_dtype dtype_of(bool is_signed) {
  return is_signed ? OM_DTYPE_I8 : OM_DTYPE_U8;
}

/* The sums of terms at most a PART, by blocks: chains side by side. What lies behind the last term
 * is 0, which changes no sum. */
static void sum_blocks(const float x[PART], const float w[PART], float sums[PART / BLOCK]) {
  for (size_t b = 0; b < PART / BLOCK; ++b) sums[b] = 0.0f;
  for (size_t k = 0; k < BLOCK; ++k) {
    for (size_t b = 0; b < PART / BLOCK; ++b) sums[b] += x[b * BLOCK + k] * w[b * BLOCK + k];
  }
}

uint8_t om_doubt_settle(
    const om_conv_bytes *c, size_t channel, size_t terms, const uint8_t *x, float *scratch) {
  const om_conv_floats *f = c->floats;
  const uint8_t *w = c->w + channel * terms;
  const om_dtype x_dtype = dtype_of(c->is_x_signed), w_dtype = dtype_of(c->is_w_signed);
  float *const xs = scratch, *const ws = scratch + PART;
  float total = 0.0f;
  uint8_t byte;
  for (size_t first = 0; first < terms; first += PART) {
    float sums[PART / BLOCK];
    const size_t count = smaller(terms - first, PART);
    if (count < PART) memset(scratch, 0, OM_DOUBT_FLOATS * sizeof *scratch);
    om_dequantize_bytes(x_dtype, count, x + first, f->x_scale, c->x_zero, xs);
    om_dequantize_bytes(w_dtype, count, w + first, f->w_scales[channel], c->w_zeros[channel], ws);
    sum_blocks(xs, ws, sums);
    for (size_t k = 0, b = 0; k < count; k += GROUP, b += BLOCKS) {
      const float sum = ((sums[b] + sums[b + 1]) + sums[b + 2]) + sums[b + 3];
      total = first + k == 0 ? sum : total + sum;
    }
  }
  if (c->bias) total = total + (float)c->bias[channel] * f->bias_scales[channel];
  om_quantize_bytes(dtype_of(c->is_y_signed), 1, &total, f->y_scale, (float)c->y_zero, &byte);
  return byte;
}
