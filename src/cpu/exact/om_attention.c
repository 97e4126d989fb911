/* Operands are copied into dense piles, so that the products, the softmax and the scales are the
 * very kernels that the single operators have.
 *
 *     scratch: [q: rows x depth] [k: depth x keys] [v: keys x width] [scores: rows x keys]
 *              [result: rows x width], each as often as the batch has elements
 *              [the products' own]
 */
#include "cpu/exact/om_attention.h"

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"
#include "cpu/exact/om_matmul.h"
#include "cpu/exact/om_softmax.h"

typedef struct piles {
  float *q, *k, *v, *scores, *result, *own;
} piles;

size_t om_attention_batch(const om_attention *a) {
  size_t count = 1;
  for (uint32_t i = 0; i < a->batch_rank; ++i) count *= (size_t)a->batch[i];
  return count;
}

/* `batch` products of dense matrices. */
static om_matmul product_of(size_t batch, size_t rows, size_t depth, size_t cols) {
  return (om_matmul){
      .rows = rows,
      .cols = cols,
      .depth = depth,
      .a_row_stride = depth,
      .a_depth_stride = 1,
      .b_depth_stride = cols,
      .b_col_stride = 1,
      .batch = {.rank = 1,
                .extents = {(int64_t)batch},
                .source_strides = {(int64_t)(rows * depth)},
                .target_strides = {(int64_t)(depth * cols)}},
  };
}

static size_t own_elems(const om_attention *a, bool is_scores) {
  const om_matmul m = is_scores ? product_of(om_attention_batch(a), a->rows, a->depth, a->keys)
                                : product_of(om_attention_batch(a), a->rows, a->keys, a->width);
  return om_matmul_scratch_bytes(&m, sizeof(float)) / sizeof(float);
}

/* Returns the elements of all; base may be NULL. */
static size_t place(const om_attention *a, float *base, piles *out) {
  const size_t batch = om_attention_batch(a);
  const size_t scores = own_elems(a, true);
  const size_t result = own_elems(a, false);
  float **const targets[] = {&out->q, &out->k, &out->v, &out->scores, &out->result, &out->own};
  const size_t elems[] = {batch * a->rows * a->depth,
                          batch * a->depth * a->keys,
                          batch * a->keys * a->width,
                          batch * a->rows * a->keys,
                          batch * a->rows * a->width,
                          scores > result ? scores : result};
  size_t total = 0;
  for (size_t i = 0; i < OM_COUNT_OF(elems); ++i) {
    *targets[i] = base ? base + total : NULL;
    total += om_size_align(elems[i], 16);
  }
  return total;
}

size_t om_attention_scratch(const om_attention *a) {
  piles p;
  return place(a, NULL, &p) * sizeof(float);
}

/* The operand as a dense pile, or (to_side) a dense pile into the operand. */
static void copy_side(om_ctx *ctx,
                      const om_attention *a,
                      const om_attention_side *side,
                      size_t rows,
                      size_t cols,
                      bool to_side,
                      const float *from,
                      float *to) {
  om_strided copy = {.rank = a->batch_rank + 2};
  int64_t dense[OM_STRIDED_MAX_RANK];
  int64_t *own = to_side ? copy.target_strides : copy.source_strides;
  for (uint32_t i = 0; i < a->batch_rank; ++i) {
    copy.extents[i] = a->batch[i];
    own[i] = side->batch_strides[i];
  }
  copy.extents[a->batch_rank] = (int64_t)rows;
  copy.extents[a->batch_rank + 1] = (int64_t)cols;
  own[a->batch_rank] = side->row_stride;
  own[a->batch_rank + 1] = side->col_stride;
  om_dense_strides(copy.rank, copy.extents, dense);
  memcpy(to_side ? copy.source_strides : copy.target_strides, dense, copy.rank * sizeof *dense);
  if (to_side) {
    copy.target_offset = side->offset;
  } else {
    copy.source_offset = side->offset;
  }
  om_strided_simplify(&copy);
  om_strided_copy(ctx, &copy, sizeof(float), from, to);
}

/* ---- Scales, mask ---- */

typedef struct scores_job {
  const om_attention *a;
  const om_scale *scale;
  const float *mask; /* NULL: none */
  size_t cols;
  float *data; /* dense rows of `cols` */
} scores_job;

static const float *mask_row(const scores_job *job, size_t row) {
  const om_attention *a = job->a;
  size_t element = row / a->rows;
  int64_t at = a->mask.offset + (int64_t)(row % a->rows) * a->mask.row_stride;
  for (uint32_t i = a->batch_rank; i-- > 0;) {
    at += (int64_t)(element % (size_t)a->batch[i]) * a->mask.batch_strides[i];
    element /= (size_t)a->batch[i];
  }
  return job->mask + at;
}

static void mask_scores(const float *mask, const om_attention *a, float *x) {
  const int64_t stride = a->mask.col_stride;
  for (size_t i = 0; i < a->keys; ++i) {
    const float own = mask[(int64_t)i * stride];
    x[i] = !a->selects ? x[i] + own : own == 0.0f ? x[i] : own;
  }
}

static void scale_and_mask(void *arg, size_t begin, size_t end) {
  const scores_job *job = arg;
  const float c = job->scale->value;
  for (size_t row = begin; row < end; ++row) {
    float *x = job->data + row * job->cols;
    if (job->scale->kind == OM_SCALE_MUL) {
      for (size_t i = 0; i < job->cols; ++i) x[i] = x[i] * c;
    } else if (job->scale->kind == OM_SCALE_DIV) {
      for (size_t i = 0; i < job->cols; ++i) x[i] = om_div(x[i], c);
    }
    if (!job->mask) continue;
    mask_scores(mask_row(job, row), job->a, x);
  }
}

static void change_rows(om_ctx *ctx,
                        const om_attention *a,
                        const om_scale *scale,
                        const float *mask,
                        size_t rows,
                        size_t cols,
                        float *data) {
  scores_job job = {.a = a, .scale = scale, .mask = mask, .cols = cols, .data = data};
  if (scale->kind == OM_SCALE_NONE && !mask) return;
  om_parallel_for(ctx, rows, 8192 / (cols + 1) + 1, scale_and_mask, &job);
}

/* ---- Probabilities ---- */

static void zero_nan(void *arg, size_t begin, size_t end) {
  float *x = arg;
  for (size_t i = begin; i < end; ++i) {
    if (om_is_nan(x[i])) x[i] = 0.0f;
  }
}

static void make_probabilities(om_ctx *ctx, const om_attention *a, size_t rows, float *scores) {
  const om_tensor tensor = {
      .dtype = OM_DTYPE_F32, .rank = 2, .dims = {(int64_t)rows, (int64_t)a->keys}};
  om_rows all;
  if (rows * a->keys == 0) return;
  om_rows_init(&all, &tensor, 1u << 1);
  om_softmax_run(ctx, &all, OM_SOFTMAX, scores, scores);
  if (a->zeroes_nan) om_parallel_for(ctx, rows * a->keys, 8192, zero_nan, scores);
}

/* y = a b, `batch` times. Not inlined: twice in one frame the description would be too large. */
__attribute__((noinline)) static void multiply(om_ctx *ctx,
                                               size_t batch,
                                               const size_t extents[3], /* rows, depth, cols */
                                               const float *a,
                                               const float *b,
                                               float *y,
                                               void *own) {
  const om_matmul product = product_of(batch, extents[0], extents[1], extents[2]);
  om_matmul_f32(ctx, &product, a, b, y, own);
}

void om_attention_run_f32(om_ctx *ctx,
                          const om_attention *a,
                          const float *q,
                          const float *k,
                          const float *v,
                          const float *mask,
                          float *y,
                          void *scratch) {
  const size_t batch = om_attention_batch(a);
  piles p;
  const size_t scores[3] = {a->rows, a->depth, a->keys};
  const size_t result[3] = {a->rows, a->keys, a->width};
  if (batch * a->rows * a->width == 0) return;
  (void)place(a, scratch, &p);
  copy_side(ctx, a, &a->q, a->rows, a->depth, false, q, p.q);
  copy_side(ctx, a, &a->k, a->depth, a->keys, false, k, p.k);
  copy_side(ctx, a, &a->v, a->keys, a->width, false, v, p.v);
  change_rows(ctx, a, &a->q_scale, NULL, batch * a->rows, a->depth, p.q);
  change_rows(ctx, a, &a->k_scale, NULL, batch * a->depth, a->keys, p.k);
  if (a->keys > 0) multiply(ctx, batch, scores, p.q, p.k, p.scores, p.own);
  change_rows(ctx, a, &a->scale, a->has_mask ? mask : NULL, batch * a->rows, a->keys, p.scores);
  make_probabilities(ctx, a, batch * a->rows, p.scores);
  multiply(ctx, batch, result, p.scores, p.v, p.result, p.own);
  copy_side(ctx, a, &a->y, a->rows, a->width, true, p.result, y);
}
