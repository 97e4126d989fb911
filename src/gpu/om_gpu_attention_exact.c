/* Exact attention in three passes: scores, probabilities, the product with V
 * (attention_product.comp, attention_softmax.comp).
 *
 * Each product has the order of docs/exact.md whatever cuts it, so it runs as others do, by tiles
 * of 32 by 32; a kernel that did all three at once kept too few threads at work. Scores lie by
 * blocks of 64 rows. Where those of all blocks are too many, the passes take turns of some.
 *
 * On NVIDIA Hopper the products have kernels of their own (sm90/attention_exact_sm90.c) where Q and
 * K are not scaled and everything lies in quads. Their turns are of whole elements of the batch.
 * Where keys are few there, one kernel does make all three passes (sm90/attention_whole_sm90.c):
 * many of its workgroups are at work on a core together.
 */
#include <math.h>

#include "abi/attention_pass_params.h"
#include "gpu/om_gpu_attention.h"

enum {
  BLOCK_ROWS = OM_ATTENTION_BLOCK,
  SOFTMAX_THREADS = 256,
  MOST_SCRATCH_BYTES = 64 << 20,
  MOST_SM90_SCRATCH_BYTES = 128 << 20, /* a turn's tiles are to be some for each core */
  CORES = 132,                         /* of an H200: a workgroup each, which takes tiles in turn */
  /* What one workgroup of sm90/attention_whole_sm90.c has room for, and its rows. */
  WHOLE_KEYS = 128,
  WHOLE_DEPTH = 128,
  WHOLE_WIDTH = 64,
  WHOLE_ROWS = 32,
};

/* A kernel for Hopper: its tile, and the nanoseconds of 32 terms and of a tile beside them.
 * Measured on an NVIDIA H200 (2026-11-30). */
typedef struct sm90_tile {
  om_shader shader;
  uint32_t rows, cols;
  uint32_t block_ns, tile_ns;
} sm90_tile;

static const sm90_tile score_tiles[] = {
    {OM_SHADER_ATTENTION_SM90_SCORES_EXACT_96X96, 96, 96, 3000, 1900},
    {OM_SHADER_ATTENTION_SM90_SCORES_EXACT_64X64, 64, 64, 1400, 1050},
};

static const sm90_tile value_tiles[] = {
    {OM_SHADER_ATTENTION_SM90_VALUES_EXACT_48X64, 48, 64, 1060, 600},
    {OM_SHADER_ATTENTION_SM90_VALUES_EXACT_64X32, 64, 32, 775, 600},
};

/* What the passes share. */
typedef struct exact_pass {
  const om_attention *attention;
  om_attention_pass_params params;
  om_gpu_operand scores, mask;
  uint32_t flags;
  uint64_t blocks; /* of this turn */
  bool is_half;
  bool is_sm90;
} exact_pass;

static uint32_t lanes_of(size_t keys) {
  uint32_t lanes = 1;
  while (lanes < SOFTMAX_THREADS && lanes < keys) lanes *= 2;
  return lanes;
}

static om_attention_pass_params make_params(const om_attention *a) {
  const om_attention_shape_params shape = om_gpu_attention_shape(a);
  om_attention_pass_params p = {
      .row_blocks = (uint32_t)om_gpu_pieces(a->rows, BLOCK_ROWS),
      .pitch = (uint32_t)om_size_align(a->keys, 4),
      .lanes = lanes_of(a->keys),
  };
  memcpy(&p.batch_1, &shape, sizeof shape);
  return p;
}

/* A pass of so many workgroups; the caller sets the operands. */
static om_gpu_dispatch *add_pass(om_gpu_binder *b,
                                 exact_pass *p,
                                 om_shader shader,
                                 uint64_t groups) {
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  p->params.group_count = (uint32_t)groups;
  memcpy(d->params, &p->params, sizeof p->params);
  d->params_bytes = sizeof p->params;
  d->constants[0] = p->flags;
  d->constant_count = 1;
  om_gpu_spread_groups(b, groups, d->groups);
  return d;
}

/* A quotient by a power of two is a product with what is 1 by it: the same number, and sooner made.
 */
static void prefer_product(exact_pass *p) {
  const om_scale scale = p->attention->scale;
  int exponent = 0;
  if (scale.kind != OM_SCALE_DIV || frexpf(scale.value, &exponent) != 0.5f) return;
  if (exponent < -100 || exponent > 100) return; /* 1 by it might be no normal number */
  p->flags &= ~(3u << OM_ATTENTION_SCALE_AT);
  p->flags |= (uint32_t)OM_SCALE_MUL << OM_ATTENTION_SCALE_AT;
  p->params.scale = 1.0f / scale.value;
}

static uint64_t tile_count(const exact_pass *p, const sm90_tile *tile, size_t cols) {
  return p->blocks / p->params.row_blocks * om_gpu_pieces(p->attention->rows, tile->rows) *
         om_gpu_pieces(cols, tile->cols);
}

/* Of two tiles, by what the workgroup with the most of them has to do. */
static const sm90_tile *choose_tile(const exact_pass *p,
                                    const sm90_tile tiles[2],
                                    size_t cols,
                                    size_t depth) {
  uint64_t costs[2];
  for (size_t i = 0; i < 2; ++i) {
    costs[i] = om_gpu_pieces(tile_count(p, &tiles[i], cols), CORES) *
               (om_gpu_pieces(depth, 32) * tiles[i].block_ns + tiles[i].tile_ns);
  }
  return &tiles[costs[1] < costs[0]];
}

static om_gpu_dispatch *add_sm90(
    om_gpu_binder *b, exact_pass *p, const sm90_tile tiles[2], size_t cols, size_t depth) {
  const sm90_tile *tile = choose_tile(p, tiles, cols, depth);
  const uint64_t count = tile_count(p, tile, cols);
  p->params.col_tiles = (uint32_t)om_gpu_pieces(cols, tile->cols);
  om_gpu_dispatch *d = add_pass(b, p, tile->shader, count);
  if (d) om_gpu_spread_groups(b, count < CORES ? count : CORES, d->groups);
  return d;
}

/* A product of two sides whose result has `cols` columns, over `depth` terms. */
static om_gpu_dispatch *add_product(om_gpu_binder *b,
                                    exact_pass *p,
                                    om_shader shader,
                                    const sm90_tile tiles[2],
                                    size_t cols,
                                    size_t depth) {
  p->params.col_tiles = (uint32_t)om_gpu_pieces(cols, OM_ATTENTION_TILE);
  om_gpu_dispatch *d =
      p->is_sm90
          ? add_sm90(b, p, tiles, cols, depth)
          : add_pass(
                b, p, shader, p->blocks * (BLOCK_ROWS / OM_ATTENTION_TILE) * p->params.col_tiles);
  if (!d) return NULL;
  d->constant_count = 6;
  d->operand_count = 3;
  d->flops = 2 * p->blocks * BLOCK_ROWS * cols * depth;
  return d;
}

static bool add_scores(om_gpu_binder *b, exact_pass *p) {
  const om_attention *a = p->attention;
  const om_shader shader =
      p->is_half ? OM_SHADER_ATTENTION_SCORES_HALF_EXACT : OM_SHADER_ATTENTION_SCORES_EXACT;
  om_gpu_dispatch *d = add_product(b, p, shader, score_tiles, a->keys, a->depth);
  if (!d) return false;
  d->constants[1] = (uint32_t)a->q.offset;
  d->constants[2] = (uint32_t)a->k.offset;
  d->constants[3] = (uint32_t)a->q.col_stride;
  d->operands[0] = om_gpu_read(b, OM_ATTENTION_Q);
  d->operands[1] = om_gpu_read(b, OM_ATTENTION_K);
  d->operands[2] = p->scores;
  return true;
}

/* The pass over rows; on Hopper one whose warps keep a row each, where rows are short enough. */
static om_gpu_dispatch *add_rows_pass(om_gpu_binder *b, exact_pass *p, uint64_t rows) {
  static const struct {
    om_shader shader;
    uint32_t most_keys;
  } sm90_kernels[] = {
      {OM_SHADER_ATTENTION_SM90_SOFTMAX_EXACT_256, 256},
      {OM_SHADER_ATTENTION_SM90_SOFTMAX_EXACT_1536, 1536},
  };
  enum { WARPS = SOFTMAX_THREADS / 32 };
  for (size_t i = 0; p->is_sm90 && i < OM_COUNT_OF(sm90_kernels); ++i) {
    if (p->params.keys > sm90_kernels[i].most_keys) continue;
    return add_pass(b, p, sm90_kernels[i].shader, om_gpu_pieces(rows, WARPS));
  }
  return add_pass(
      b,
      p,
      p->is_half ? OM_SHADER_ATTENTION_SOFTMAX_HALF_EXACT : OM_SHADER_ATTENTION_SOFTMAX_EXACT,
      om_gpu_pieces(rows, SOFTMAX_THREADS / p->params.lanes));
}

static bool add_softmax(om_gpu_binder *b, exact_pass *p) {
  const uint64_t rows = p->blocks * BLOCK_ROWS;
  om_gpu_dispatch *d = add_rows_pass(b, p, rows);
  if (!d) return false;
  d->operands[0] = p->mask;
  d->operands[1] = p->scores;
  d->operand_count = 2;
  d->flops = 64 * rows * p->params.keys; /* an exponential, a quotient */
  return true;
}

static bool add_values(om_gpu_binder *b, exact_pass *p) {
  const om_attention *a = p->attention;
  const om_shader shader =
      p->is_half ? OM_SHADER_ATTENTION_VALUES_HALF_EXACT : OM_SHADER_ATTENTION_VALUES_EXACT;
  om_gpu_dispatch *d = add_product(b, p, shader, value_tiles, a->width, a->keys);
  if (!d) return false;
  d->constants[2] = (uint32_t)a->v.offset;
  d->constants[4] = (uint32_t)a->v.col_stride;
  d->constants[5] = (uint32_t)a->y.col_stride;
  d->operands[0] = p->scores;
  d->operands[1] = om_gpu_read(b, OM_ATTENTION_V);
  d->operands[2] = om_gpu_write(b, 0);
  return true;
}

static bool suits_sm90(const om_gpu_binder *b, const om_attention *a) {
  enum { QUAD = 4 };
  return om_gpu_takes_sm90(b, OM_MODE_EXACT) &&
         om_gpu_input(b, OM_ATTENTION_Q)->dtype == OM_DTYPE_F32 &&
         a->q_scale.kind == OM_SCALE_NONE && a->k_scale.kind == OM_SCALE_NONE &&
         om_gpu_attention_lies_in_pieces(a, QUAD) && om_gpu_attention_y_lies_in_pieces(a, QUAD);
}

/* Whether one kernel makes all passes. */
static bool takes_whole(const om_attention *a) {
  return a->keys <= WHOLE_KEYS && a->depth <= WHOLE_DEPTH && a->width <= WHOLE_WIDTH;
}

static const char *bind_whole(om_gpu_binder *b, exact_pass *p) {
  const om_attention *a = p->attention;
  const om_shader shader = a->width <= WHOLE_WIDTH / 2 ? OM_SHADER_ATTENTION_SM90_WHOLE_EXACT_32
                                                       : OM_SHADER_ATTENTION_SM90_WHOLE_EXACT_64;
  const uint64_t groups = om_attention_batch(a) * om_gpu_pieces(a->rows, WHOLE_ROWS);
  om_gpu_dispatch *d = add_pass(b, p, shader, groups);
  if (!d) return om_gpu_no_memory;
  d->constants[1] = (uint32_t)a->q.offset;
  d->constants[2] = (uint32_t)a->k.offset;
  d->constants[3] = (uint32_t)a->v.offset;
  d->constant_count = 4;
  d->operands[0] = om_gpu_read(b, OM_ATTENTION_Q);
  d->operands[1] = om_gpu_read(b, OM_ATTENTION_K);
  d->operands[2] = om_gpu_read(b, OM_ATTENTION_V);
  d->operands[3] = p->mask;
  d->operands[4] = om_gpu_write(b, 0);
  d->operand_count = 5;
  d->flops = 2 * om_attention_batch(a) * a->rows * a->keys * (a->depth + a->width + 32);
  return NULL;
}

const char *om_gpu_bind_exact_attention(om_gpu_binder *b,
                                        const om_attention *a,
                                        om_gpu_operand mask) {
  exact_pass p = {.attention = a,
                  .mask = mask,
                  .params = make_params(a),
                  .flags = om_gpu_attention_flags(a),
                  .is_half = om_gpu_input(b, OM_ATTENTION_Q)->dtype == OM_DTYPE_F16};
  const uint64_t blocks = om_attention_batch(a) * p.params.row_blocks;
  const uint64_t block_bytes = (uint64_t)p.params.pitch * BLOCK_ROWS * sizeof(float);
  const uint64_t limit = om_gpu_binder_limits(b)->max_binding_bytes;
  const uint64_t element_bytes = p.params.row_blocks * block_bytes;
  prefer_product(&p);
  p.is_sm90 = suits_sm90(b, a);
  if (p.is_sm90 && takes_whole(a)) return bind_whole(b, &p);
  p.is_sm90 = p.is_sm90 && element_bytes <= limit && element_bytes <= MOST_SM90_SCRATCH_BYTES;
  const uint64_t room = p.is_sm90 ? MOST_SM90_SCRATCH_BYTES : MOST_SCRATCH_BYTES;
  const uint64_t bytes = limit < room ? limit : room;
  if (block_bytes > bytes) return "its rows are too long";
  const uint64_t unit = p.is_sm90 ? p.params.row_blocks : 1; /* blocks that stay together */
  const uint64_t turns = om_gpu_pieces(blocks / unit, bytes / (block_bytes * unit));
  const uint64_t most = om_gpu_pieces(blocks / unit, turns) * unit;
  p.scores = om_gpu_scratch(b, most * block_bytes);
  for (uint64_t first = 0; first < blocks; first += most) {
    p.params.first_block = (uint32_t)first;
    p.blocks = blocks - first < most ? blocks - first : most;
    if (!add_scores(b, &p) || !add_softmax(b, &p) || !add_values(b, &p)) return om_gpu_no_memory;
  }
  return NULL;
}
