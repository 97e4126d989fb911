/* 3x3 convolutions by Winograd's F(2x2, 3x3): a block of 2x2 results takes 16 products per term
 * instead of 36. The 4x4 inputs of a block become 16 sums, so do a window's weights when they are
 * packed; what the products of these add up to gives the results.
 *
 * A piece of work is some blocks by some panels of columns. Its sums and products lie in a slot of
 * scratch, which whoever runs pieces has for itself:
 *
 *     slot: [16][blocks][sums of a block's inputs] [16][blocks][a panel's columns]
 *
 * A result depends on the inputs of its own window alone, as in the direct form, but that
 * infinities of an input may give NaN.
 */
#include "cpu/fast/om_fast_pass.h"

#include "base/om_thread.h"

enum {
  SUMS = OM_TILE_SUMS,
  LEAST_BLOCKS = 2 * OM_TILE_ROWS,
  MOST_BLOCKS = 48,     /* of a piece: weights are read once for all of them */
  NEAR_ELEMS = 1 << 17, /* sums that stay in a cache of the second level */
  PIECES = 8,           /* wanted at least */
  MOST_SLOTS = 64,
  CHAIN = OM_FAST_CHAIN / 2, /* products of a block are larger than the results they cancel into */
};

bool om_fast_winograd_suits(const om_fast_conv *c) {
  const int64_t blocks = (c->out[1] + 1) / 2 * ((c->out[2] + 1) / 2);
  if (c->is_transposed || c->groups != 1 || c->in[0] != 1 || c->out[0] != 1) return false;
  for (int i = 0; i < OM_FAST_AXES; ++i) {
    if (c->kernel[i] != (i == 0 ? 1 : 3)) return false;
    if (c->stride[i] != 1 || c->dilation[i] != 1) return false;
  }
  if (c->in_channels < OM_TILE_COLS || c->out_channels < OM_TILE_COLS) return false;
  /* No more than three quarters of the direct form's products: blocks reach over the edges. Few
   * blocks are bound by reading their weights, which are 16/9 of the direct form's. */
  return blocks >= LEAST_BLOCKS && 4 * SUMS * blocks <= 3 * 9 * c->out[1] * c->out[2];
}

void om_fast_winograd_cut(const om_ctx *ctx, om_fast_kernel *kernel) {
  const om_fast_pass *p = kernel->passes;
  om_fast_winograd *w = &kernel->winograd;
  const int64_t panels = om_fast_panel_count(&p->order);
  w->blocks[0] = (p->count[1] + 1) / 2;
  w->blocks[1] = (p->count[2] + 1) / 2;
  const int64_t blocks = w->blocks[0] * w->blocks[1];
  w->block_step = NEAR_ELEMS / (SUMS * p->order.depth) / OM_TILE_ROWS * OM_TILE_ROWS;
  if (w->block_step > MOST_BLOCKS) w->block_step = MOST_BLOCKS;
  if (w->block_step < OM_TILE_ROWS) w->block_step = OM_TILE_ROWS;
  /* What is left over joins the last piece where it fills no tile. */
  w->block_pieces = (blocks + w->block_step - OM_TILE_ROWS) / w->block_step;
  if (w->block_pieces < 1) w->block_pieces = 1;
  int64_t most = blocks - (w->block_pieces - 1) * w->block_step;
  if (most < w->block_step && w->block_pieces > 1) most = w->block_step;
  w->panel_pieces = (PIECES + w->block_pieces - 1) / w->block_pieces;
  w->panel_step = (panels + w->panel_pieces - 1) / w->panel_pieces;
  w->panel_pieces = (panels + w->panel_step - 1) / w->panel_step;
  /* An odd number of lines of 64 bytes: rows spread over all sets of the nearest cache. */
  w->row_elems = ((p->order.depth + 15) / 16 | 1) * 16;
  w->sum_elems = most * w->row_elems;
  w->product_elems = most * p->order.width;
  w->slots = p->batch[0] * w->block_pieces * w->panel_pieces;
  if (w->slots > ctx->thread_count) w->slots = ctx->thread_count;
  if (w->slots > MOST_SLOTS) w->slots = MOST_SLOTS;
  w->slot_elems = SUMS * (w->sum_elems + w->product_elems);
  kernel->slot_bytes = (size_t)(w->slots * w->slot_elems) * sizeof(float);
}

/* ---- Runs ---- */

typedef struct job {
  const om_ctx *ctx;
  const om_fast_kernel *kernel;
  const om_fast_operands *operands;
  float *slots;
  int64_t pieces;
  int64_t next; /* the first piece that nobody took */
} job;

typedef struct work { /* of a piece */
  int64_t first_block, blocks, panel, panel_end;
  const float *x;
  float *y;
  const float *residual; /* NULL: none */
  float *sums, *products;
} work;

static work work_of(const job *j, int64_t piece, float *own) {
  const om_fast_pass *p = j->kernel->passes;
  const om_fast_winograd *w = &j->kernel->winograd;
  const int64_t panel_piece = piece % w->panel_pieces;
  const int64_t block_piece = piece / w->panel_pieces % w->block_pieces;
  const int64_t item = piece / w->panel_pieces / w->block_pieces;
  const int64_t panels = om_fast_panel_count(&p->order);
  const float *residual = j->kernel->epilogue.has_residual ? j->operands->residual : NULL;
  work k = {.first_block = block_piece * w->block_step,
            .blocks = w->block_step,
            .panel = panel_piece * w->panel_step,
            .x = (const float *)j->operands->x + item * p->x_steps[0],
            .y = (float *)j->operands->y + item * p->y_steps[0],
            .residual = residual ? residual + item * p->residual_steps[0] : NULL,
            .sums = own,
            .products = own + SUMS * w->sum_elems};
  if (block_piece == w->block_pieces - 1) {
    k.blocks = w->blocks[0] * w->blocks[1] - k.first_block;
  }
  k.panel_end = k.panel + w->panel_step < panels ? k.panel + w->panel_step : panels;
  return k;
}

/* The sums of all blocks' inputs. */
static __attribute__((noinline)) void spread(const job *j, const work *k) {
  const om_fast_pass *p = j->kernel->passes;
  const om_fast_winograd *w = &j->kernel->winograd;
  const float *x[SUMS];
  for (int64_t b = 0; b < k->blocks; ++b) {
    const int64_t row = (k->first_block + b) / w->blocks[1] * 2 + p->in_first[1];
    const int64_t col = (k->first_block + b) % w->blocks[1] * 2 + p->in_first[2];
    for (int64_t i = 0; i < SUMS; ++i) {
      const int64_t at_row = row + i / 4;
      const int64_t at_col = col + i % 4;
      const bool is_inside =
          (uint64_t)at_row < (uint64_t)p->in[1] && (uint64_t)at_col < (uint64_t)p->in[2];
      x[i] =
          is_inside ? k->x + at_row * p->x_strides[1] + at_col * p->x_strides[2] : j->kernel->zeros;
    }
    j->kernel->set->spread(x, p->depth, k->sums + b * w->row_elems, (size_t)w->sum_elems);
  }
}

/* The products of all blocks' sums with a panel's weights. */
static __attribute__((noinline)) void multiply(const job *j, const work *k, int64_t panel) {
  const om_fast_pass *p = j->kernel->passes;
  const om_fast_winograd *w = &j->kernel->winograd;
  const om_tile_set *set = j->kernel->set;
  const int64_t width = om_fast_panel_width(&p->order, panel);
  const om_tile_tap tap = {0};
  const size_t parts = (p->depth + CHAIN - 1) / CHAIN;
  const size_t part = (p->depth + parts - 1) / parts;
  const float *weights = p->packed + panel * p->order.width * SUMS * p->order.depth;
  om_tile t = {.taps = &tap, .tap_count = 1, .w_step = (size_t)width, .cols = (size_t)width};
  for (int64_t sum = 0; sum < SUMS; ++sum, weights += p->order.depth * width) {
    const float *x = k->sums + sum * w->sum_elems;
    float *y = k->products + sum * w->product_elems;
    for (int64_t row = 0, height = 0; row < k->blocks; row += height) {
      size_t i = 0;
      while ((int64_t)set->heights[i] > k->blocks - row) ++i;
      height = (int64_t)set->heights[i];
      for (int64_t r = 0; r < height; ++r) {
        t.x_at[r] = (row + r) * w->row_elems;
        t.y[r] = y + (row + r) * p->order.width;
      }
      t.w = weights;
      t.bias = j->kernel->zeros;
      t.adds = false;
      for (size_t at = 0; at < p->depth; at += part) {
        t.x = x + at;
        t.depth = p->depth - at < part ? p->depth - at : part;
        (width > (int64_t)set->lanes ? set->wide : set->narrow)[i](&t);
        t.w += t.depth * t.w_step;
        t.adds = true;
      }
    }
  }
}

/* Where block b's results go (NULL: beyond the edge); those that are wanted are t's rows. */
static size_t place_results(
    const job *j, const work *k, int64_t b, om_tile *t, float *out_results[4]) {
  const om_fast_pass *p = j->kernel->passes;
  const int64_t width = j->kernel->winograd.blocks[1];
  const int64_t row = (k->first_block + b) / width * 2;
  const int64_t col = (k->first_block + b) % width * 2;
  size_t rows = 0;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t at[] = {row + r / 2, col + r % 2};
    out_results[r] = NULL;
    if (at[0] >= p->count[1] || at[1] >= p->count[2]) continue;
    out_results[r] = k->y + at[0] * p->y_strides[1] + at[1] * p->y_strides[2];
    if (k->residual) {
      t->residual[rows] =
          k->residual + at[0] * p->residual_strides[1] + at[1] * p->residual_strides[2];
    }
    t->y[rows++] = out_results[r];
  }
  return rows;
}

/* The results of a panel. */
static __attribute__((noinline)) void collect(const job *j, const work *k, int64_t panel) {
  const om_fast_kernel *kernel = j->kernel;
  const om_fast_pass *p = kernel->passes;
  const int64_t col = panel * p->order.width;
  const int64_t left = p->order.cols - col;
  const size_t cols = (size_t)(left < p->order.width ? left : p->order.width);
  const size_t step = (size_t)kernel->winograd.product_elems;
  float *results[4];
  float bias[OM_TILE_COLS] = {0};
  om_tile t = {.residual_step = p->residual_step,
               .bias = bias,
               .col = (size_t)col,
               .cols = cols,
               .is_clamped = kernel->is_clamped,
               .low = kernel->low,
               .high = kernel->high,
               .epilogue = &kernel->epilogue};
  if (kernel->epilogue.has_bias) {
    memcpy(bias, (const float *)j->operands->bias + col, cols * sizeof *bias);
  }
  for (int64_t b = 0; b < k->blocks; ++b) {
    const size_t rows = place_results(j, k, b, &t, results);
    kernel->set->collect(&t, results, k->products + b * p->order.width, step);
    if (kernel->needs_finish) kernel->set->finish(&t, rows);
  }
}

static void run_slots(void *arg, size_t begin, size_t end) {
  job *j = arg;
  for (size_t slot = begin; slot < end; ++slot) {
    float *own = j->slots + (int64_t)slot * j->kernel->winograd.slot_elems;
    while (!om_is_cancelled(j->ctx)) {
      const int64_t piece = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
      if (piece >= j->pieces) break;
      const work k = work_of(j, piece, own);
      spread(j, &k);
      for (int64_t panel = k.panel; panel < k.panel_end; ++panel) {
        multiply(j, &k, panel);
        collect(j, &k, panel);
      }
    }
  }
}

void om_fast_winograd_run(om_ctx *ctx,
                          const om_fast_kernel *kernel,
                          const om_fast_operands *operands,
                          float *slots) {
  const om_fast_winograd *w = &kernel->winograd;
  job j = {.ctx = ctx,
           .kernel = kernel,
           .operands = operands,
           .slots = slots,
           .pieces = kernel->passes->batch[0] * w->block_pieces * w->panel_pieces};
  om_parallel_for(ctx, (size_t)w->slots, 1, run_slots, &j);
}
