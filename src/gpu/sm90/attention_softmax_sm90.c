/* The middle pass of exact attention on Hopper: what attention_softmax.comp's exact variant
 * computes, with the same parameters, constants, bindings and bits.
 *
 * A row is a warp's, which keeps it in registers: a thread has every 32nd key, of which each 8th
 * is one lane's of docs/exact.md, Rows. So the tree's first three levels stay in a thread, and the
 * others are exchanges in the warp; there are no barriers.
 */
//! kernel attention_sm90_softmax_exact_256   bindings=r,w params=124 threads=256 constants=1 blocks=2 OM_EXACT=1 KEPT=8
//! kernel attention_sm90_softmax_exact_1536  bindings=r,w params=124 threads=256 constants=1 blocks=2 OM_EXACT=1 KEPT=48
#include "abi/attention_pass_params.h"
#include "gpu/sm90/sm90.h"
#include "gpu/sm90/sm90_math.h"

enum { WARP = 32, PARTS = 8 /* lanes of a thread */ };

typedef struct softmax_args {
  uint64_t mask, scores;
  om_attention_pass_params p;
  uint32_t flags;
} softmax_args;

#define EACH_KEPT SM90_UNROLL for (uint32_t i = 0; i < KEPT; ++i)

/* A row: `keys` scores, one after the other. */
typedef struct softmax_row {
  float *scores;
  const float *mask;
  uint32_t keys;
} softmax_row;

SM90_INLINE float exchanged(float value, uint32_t distance) {
  return __nvvm_shfl_sync_bfly_f32(0xffffffffu, value, (int)distance, WARP - 1);
}

/* Which of two zeros is the largest changes no difference, and what a NaN makes of it is caught by
 * the sum, which is NaN then. */
SM90_INLINE float larger(float a, float b) {
  return a > b ? a : b;
}

SM90_INLINE float largest_of(const float kept[KEPT]) {
  float largest = kept[0];
  EACH_KEPT largest = larger(largest, kept[i]);
  SM90_UNROLL for (uint32_t d = WARP / 2; d > 0; d /= 2) {
    largest = larger(largest, exchanged(largest, d));
  }
  return largest;
}

/* The halving tree. Both ends of an exchange add the same two numbers, in either order. */
SM90_INLINE float sum_of(const float kept[KEPT], uint32_t count) {
  float parts[PARTS];
  SM90_UNROLL for (uint32_t i = 0; i < PARTS; ++i) parts[i] = 0.0f;
  EACH_KEPT {
    if (i < count) parts[i % PARTS] += kept[i];
  }
  SM90_UNROLL for (uint32_t width = PARTS / 2; width > 0; width /= 2) {
    SM90_UNROLL for (uint32_t i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  SM90_UNROLL for (uint32_t d = WARP / 2; d > 0; d /= 2) parts[0] += exchanged(parts[0], d);
  return parts[0];
}

/* Scales the scores and adds the mask. */
SM90_INLINE void finish_scores(const softmax_args *args, const softmax_row *row, float *kept) {
  const uint32_t kind = args->flags >> OM_ATTENTION_SCALE_AT & 3;
  const uint32_t lane = thread_index() % WARP;
  if (kind == 1) EACH_KEPT kept[i] *= args->p.scale;
  if (kind == 2) EACH_KEPT kept[i] = om_div(kept[i], args->p.scale);
  if ((args->flags & OM_ATTENTION_HAS_MASK) == 0) return;
  EACH_KEPT {
    const uint32_t key = lane + i * WARP;
    const float mask = key < row->keys ? row->mask[(uint64_t)key * args->p.mask_key_stride] : 0.0f;
    if ((args->flags & OM_ATTENTION_SELECTS) == 0) {
      kept[i] += mask;
    } else if (mask != 0.0f) {
      kept[i] = mask;
    }
  }
}

SM90_INLINE void make_probabilities(const softmax_args *args, const softmax_row *row) {
  const uint32_t lane = thread_index() % WARP;
  const uint32_t count = lane < row->keys ? (row->keys - lane + WARP - 1) / WARP : 0; /* own keys */
  const float lowest = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  float kept[KEPT];
  EACH_KEPT kept[i] = i < count ? row->scores[lane + i * WARP] : 0.0f;
  finish_scores(args, row, kept);
  EACH_KEPT kept[i] = i < count ? kept[i] : lowest;
  const float largest = largest_of(kept);
  EACH_KEPT kept[i] = om_exp(kept[i] - largest);
  const float sum = sum_of(kept, count);
  EACH_KEPT {
    float result = om_div(kept[i], sum);
    if ((args->flags & OM_ATTENTION_ZEROES_NAN) != 0 && om_is_nan(result)) result = 0.0f;
    if (i < count) row->scores[lane + i * WARP] = result;
  }
  /* The quads at a row's end: -0 changes no sum of the product that follows. */
  if (row->keys + lane < args->p.pitch) row->scores[row->keys + lane] = -0.0f;
}

SM90_KERNEL void OM_KERNEL(softmax_args args) {
  const om_attention_pass_params *p = &args.p;
  const uint32_t number = group_index() * (OM_THREADS / WARP) + warp_index();
  const uint32_t block = p->first_block + number / OM_ATTENTION_BLOCK;
  const uint32_t row = block % p->row_blocks * OM_ATTENTION_BLOCK + number % OM_ATTENTION_BLOCK;
  const uint32_t element = block / p->row_blocks;
  if (group_index() >= p->group_count || row >= p->rows) return;
  const softmax_row own = {
      .scores = (float *)args.scores + (uint64_t)number * p->pitch,
      .mask = (const float *)args.mask + element / p->batch_1 * p->mask_stride_0 +
              element % p->batch_1 * p->mask_stride_1 + (uint64_t)row * p->mask_row_stride,
      .keys = p->keys,
  };
  make_probabilities(&args, &own);
}
