/* Attention: the scores of all rows, their softmax in place, the product with V.
 *
 *     scratch: [scores: rows x keys, as often as the batch has elements] [the products' own]
 */
#include "cpu/fast/om_fast_attention.h"

#include "base/om_thread.h"
#include "cpu/fast/om_tile.h"

struct om_fast_attention {
  om_fast_kernel *scores, *result; /* owned */
  size_t scores_bytes;
};

enum { GRAIN = 16384 }; /* elements of a piece of softmax: about 10 us */

/* ---- Create ---- */

static void describe_side(const om_attention *a,
                          const om_attention_side *side,
                          size_t rows,
                          size_t cols,
                          int64_t *out_dims,
                          int64_t *out_strides) {
  for (uint32_t i = 0; i < a->batch_rank; ++i) {
    out_dims[i] = side->batch_strides[i] == 0 ? 1 : a->batch[i];
    out_strides[i] = side->batch_strides[i];
  }
  out_dims[a->batch_rank] = (int64_t)rows;
  out_dims[a->batch_rank + 1] = (int64_t)cols;
  out_strides[a->batch_rank] = side->row_stride;
  out_strides[a->batch_rank + 1] = cols == 1 ? 1 : side->col_stride;
}

static om_attention_side dense_side(const om_attention *a, size_t rows, size_t cols) {
  om_attention_side side = {.row_stride = (int64_t)cols, .col_stride = 1};
  int64_t stride = (int64_t)(rows * cols);
  for (uint32_t i = a->batch_rank; i-- > 0; stride *= a->batch[i]) side.batch_strides[i] = stride;
  return side;
}

typedef struct factors {
  const om_attention_side *a, *b, *y;
  size_t rows, depth, cols;
} factors;

static om_status create_product(om_ctx *ctx,
                                om_fast *fast,
                                const om_attention *a,
                                const factors *f,
                                om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  om_fast_product *p = NULL; /* large for the stack */
  OM_GO_NEW(p, 1);
  p->rank = a->batch_rank + 2;
  p->epilogue.scale = 1.0f;
  describe_side(a, f->a, f->rows, f->depth, p->a_dims, p->a_strides);
  describe_side(a, f->b, f->depth, f->cols, p->b_dims, p->b_strides);
  describe_side(a, f->y, f->rows, f->cols, p->y_dims, p->y_strides);
  memcpy(p->y_dims, a->batch, a->batch_rank * sizeof *a->batch);
  OM_GO(om_fast_product_create(ctx, fast, p, out_kernel));
done:
  om_delete(ctx, p);
  return st;
}

om_status om_fast_attention_create(om_ctx *ctx,
                                   om_fast *fast,
                                   const om_attention *a,
                                   om_fast_attention **out) {
  om_status st = OM_OK;
  om_fast_attention *attention = NULL;
  const size_t batch = om_attention_batch(a);
  const om_attention_side dense = dense_side(a, a->rows, a->keys);
  const factors scores = {&a->q, &a->k, &dense, a->rows, a->depth, a->keys};
  const factors result = {&dense, &a->v, &a->y, a->rows, a->keys, a->width};
  *out = NULL;
  if (batch * a->rows * a->keys * a->width * a->depth == 0) return OM_OK;
  if (a->width > 1 && a->y.col_stride != 1) return OM_OK;
  if (a->has_mask && a->mask.col_stride != 1 && a->mask.col_stride != 0) return OM_OK;
  OM_GO_NEW(attention, 1);
  attention->scores_bytes = om_size_align(batch * a->rows * a->keys * sizeof(float), 64);
  OM_GO(create_product(ctx, fast, a, &scores, &attention->scores));
  OM_GO(create_product(ctx, fast, a, &result, &attention->result));
  *out = attention;
  attention = NULL; /* the caller owns it now */
done:
  om_fast_attention_destroy(ctx, attention);
  return st;
}

void om_fast_attention_destroy(om_ctx *ctx, om_fast_attention *attention) {
  if (!attention) return;
  om_fast_kernel_destroy(ctx, attention->scores);
  om_fast_kernel_destroy(ctx, attention->result);
  om_delete(ctx, attention);
}

size_t om_fast_attention_scratch(const om_fast_attention *attention) {
  const size_t a = om_fast_scratch_bytes(attention->scores);
  const size_t b = om_fast_scratch_bytes(attention->result);
  return attention->scores_bytes + (a > b ? a : b);
}

/* ---- Runs ---- */

typedef struct job {
  const om_attention *a; /* NULL: no mask */
  const float *mask;
  float scale;
  size_t cols;
  const float *x;
  float *y;
} job;

static const float *mask_row(const job *j, size_t row) {
  const om_attention *a = j->a;
  size_t element = row / a->rows;
  int64_t at = a->mask.offset + (int64_t)(row % a->rows) * a->mask.row_stride;
  for (uint32_t i = a->batch_rank; i-- > 0; element /= (size_t)a->batch[i]) {
    at += (int64_t)(element % (size_t)a->batch[i]) * a->mask.batch_strides[i];
  }
  return j->mask + at;
}

/* Scores, or what the mask has in their place. */
static void choose(const om_soft_row *soft, float *y) {
  const float *x = soft->x, *mask = soft->mask;
  const float scale = soft->scale, all = mask[0];
  if (soft->mask_step == 0) {
    for (size_t i = 0; i < soft->cols; ++i) y[i] = all == 0.0f ? x[i] * scale : all;
    return;
  }
  for (size_t i = 0; i < soft->cols; ++i) {
    const float scaled = x[i] * scale;
    y[i] = mask[i] == 0.0f ? scaled : mask[i];
  }
}

static void soft_rows(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const om_tile_set *set = om_tile_set_get();
  for (size_t row = begin; row < end; ++row) {
    om_soft_row soft = {.x = j->x + row * j->cols,
                        .y = j->y + row * j->cols,
                        .cols = j->cols,
                        .scale = j->scale,
                        .mask = j->mask ? mask_row(j, row) : NULL,
                        .mask_step = j->a ? j->a->mask.col_stride : 0};
    if (soft.mask && j->a->selects) {
      choose(&soft, soft.y);
      soft.x = soft.y;
      soft.scale = 1.0f;
      soft.mask = NULL;
    }
    set->softmax(&soft);
    for (size_t i = 0; j->a && j->a->zeroes_nan && i < j->cols; ++i) {
      if (soft.y[i] != soft.y[i]) soft.y[i] = 0.0f;
    }
  }
}

static void run_rows(om_ctx *ctx, size_t rows, job *j) {
  om_parallel_for(ctx, rows, GRAIN / j->cols + 1, soft_rows, j);
}

void om_fast_softmax(om_ctx *ctx, size_t rows, size_t cols, const float *x, float *y) {
  job j = {.scale = 1.0f, .cols = cols, .x = x, .y = y};
  if (rows * cols > 0) run_rows(ctx, rows, &j);
}

static float factor_of(const om_scale *scale) {
  if (scale->kind == OM_SCALE_NONE) return 1.0f;
  return scale->kind == OM_SCALE_MUL ? scale->value : 1.0f / scale->value;
}

om_status om_fast_attention_run(om_ctx *ctx,
                                om_fast_attention *attention,
                                const om_attention *a,
                                const float *const operands[4],
                                float *y,
                                void *scratch) {
  uint8_t *own = (uint8_t *)scratch + attention->scores_bytes;
  float *scores = scratch;
  const om_fast_operands first = {
      .x = operands[0] + a->q.offset, .w = operands[1] + a->k.offset, .y = scores, .scratch = own};
  const om_fast_operands second = {
      .x = scores, .w = operands[2] + a->v.offset, .y = y + a->y.offset, .scratch = own};
  job j = {.a = a,
           .mask = a->has_mask ? operands[3] : NULL,
           .scale = factor_of(&a->q_scale) * factor_of(&a->k_scale) * factor_of(&a->scale),
           .cols = a->keys,
           .x = scores,
           .y = scores};
  OM_TRY(om_fast_run(ctx, attention->scores, &first));
  run_rows(ctx, om_attention_batch(a) * a->rows, &j);
  return om_fast_run(ctx, attention->result, &second);
}
