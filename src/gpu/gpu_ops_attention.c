/* onemodel.Attention on the device, of float32 and float16: one pass, whatever the number of keys.
 *
 * The workgroups take 16, 32 or 64 rows: as many as leave work for the whole device. Where few rows
 * meet many keys, they take chunks of the keys, which a second pass joins in order. Matrix hardware
 * takes what fits it (om_gpu_attention_matrix.c). Where shared memory is dear, each invocation
 * takes a row (attention_alone.comp). Exact mode goes its own way, in three passes
 * (om_gpu_attention_exact.c).
 */
#include "abi/attention_merge_params.h"
#include "abi/attention_params.h"
#include "gpu/om_gpu_attention.h"
#include "gpu/om_gpu_copy.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_attention.h"

enum {
  OM_ATTENTION_SIDES = 5,
  OM_ATTENTION_TILE = 32, /* keys and columns of a piece */
  MOST_BATCH_AXES = 2,
};

/* Kernels that take so many rows, where that leaves at least so many workgroups; by columns: 32,
 * 64, 128, 256. The last entry takes what is left. On an NVIDIA H200 (2026-11) these were the
 * fastest for 96 to 1152 workgroups of 16 to 64 rows, heads of 32 and 64. */
typedef struct kernel_choice {
  uint32_t rows;
  uint32_t least_groups;
  uint32_t shader_count;
  om_shader shaders[2][4]; /* by whether the elements are float16 */
} kernel_choice;

static const kernel_choice fast_kernels[] = {
    {64,
     528,
     2,
     {{OM_SHADER_ATTENTION_ROWS64_32, OM_SHADER_ATTENTION_ROWS64_64},
      {OM_SHADER_ATTENTION_ROWS64_32_HALF, OM_SHADER_ATTENTION_ROWS64_64_HALF}}},
    {32,
     264,
     3,
     {{OM_SHADER_ATTENTION_ROWS32_32,
       OM_SHADER_ATTENTION_ROWS32_64,
       OM_SHADER_ATTENTION_ROWS32_128},
      {OM_SHADER_ATTENTION_ROWS32_32_HALF,
       OM_SHADER_ATTENTION_ROWS32_64_HALF,
       OM_SHADER_ATTENTION_ROWS32_128_HALF}}},
    {16,
     0,
     4,
     {{OM_SHADER_ATTENTION_ROWS16_32,
       OM_SHADER_ATTENTION_ROWS16_64,
       OM_SHADER_ATTENTION_ROWS16_128,
       OM_SHADER_ATTENTION_ROWS16_256},
      {OM_SHADER_ATTENTION_ROWS16_32_HALF,
       OM_SHADER_ATTENTION_ROWS16_64_HALF,
       OM_SHADER_ATTENTION_ROWS16_128_HALF,
       OM_SHADER_ATTENTION_ROWS16_256_HALF}}},
};

/* How an attention falls to workgroups. */
typedef struct cut {
  om_shader shader;
  uint32_t rows;
  uint32_t row_blocks, col_blocks;
  uint32_t chunk_count, chunk_keys;
  uint64_t groups;
  const om_attention_matrix_kernel *matrix; /* NULL: a portable one */
} cut;

static const om_shader split_kernels[2][4] = {{OM_SHADER_ATTENTION_SPLIT_32,
                                               OM_SHADER_ATTENTION_SPLIT_64,
                                               OM_SHADER_ATTENTION_SPLIT_128,
                                               OM_SHADER_ATTENTION_SPLIT_256},
                                              {OM_SHADER_ATTENTION_SPLIT_32_HALF,
                                               OM_SHADER_ATTENTION_SPLIT_64_HALF,
                                               OM_SHADER_ATTENTION_SPLIT_128_HALF,
                                               OM_SHADER_ATTENTION_SPLIT_256_HALF}};

static bool is_half(const om_gpu_binder *b) {
  return om_gpu_input(b, OM_ATTENTION_Q)->dtype == OM_DTYPE_F16;
}

/* A second pass costs about as much as eight tiles of keys; fewer are not worth cutting. */
static void choose_chunks(const om_gpu_binder *b, const om_attention *a, uint32_t size, cut *c) {
  enum { WANTED_GROUPS = 264, LEAST_TILES = 4, WORTH_TILES = 16 };
  const uint64_t tiles = om_gpu_pieces(a->keys, OM_ATTENTION_TILE);
  uint64_t chunks = c->groups > 0 ? WANTED_GROUPS / c->groups : 1;
  if (tiles < WORTH_TILES) return;
  if (chunks > tiles / LEAST_TILES) chunks = tiles / LEAST_TILES;
  if (chunks < 2) return;
  c->shader = split_kernels[is_half(b)][size];
  c->chunk_keys = (uint32_t)(om_gpu_pieces(tiles, chunks) * OM_ATTENTION_TILE);
  c->chunk_count = (uint32_t)om_gpu_pieces(a->keys, c->chunk_keys);
  c->groups *= c->chunk_count;
}

static cut matrix_cut(const om_attention *a, const om_attention_matrix_kernel *kernel) {
  const uint64_t row_blocks = om_gpu_pieces(a->rows, kernel->rows);
  return (cut){.shader = kernel->shader,
               .rows = kernel->rows,
               .row_blocks = (uint32_t)row_blocks,
               .col_blocks = 1,
               .chunk_count = 1,
               .chunk_keys = (uint32_t)a->keys,
               .groups = om_attention_batch(a) * row_blocks,
               .matrix = kernel};
}

/* A row of 32 columns for each invocation, 32 rows a workgroup. */
static cut choose_alone(const om_gpu_binder *b, const om_attention *a) {
  static const om_shader shaders[2][2] = {
      {OM_SHADER_ATTENTION_ALONE, OM_SHADER_ATTENTION_ALONE_HALF},
      {OM_SHADER_ATTENTION_ALONE_VEC4, OM_SHADER_ATTENTION_ALONE_VEC4_HALF},
  };
  enum { ROWS = 32 };
  const bool takes_quads = om_gpu_attention_lies_in_pieces(a, 4);
  cut c = {.shader = shaders[takes_quads][is_half(b)],
           .rows = ROWS,
           .row_blocks = (uint32_t)om_gpu_pieces(a->rows, ROWS),
           .col_blocks = (uint32_t)om_gpu_pieces(a->width, OM_ATTENTION_TILE),
           .chunk_count = 1,
           .chunk_keys = (uint32_t)a->keys};
  c.groups = om_attention_batch(a) * c.row_blocks * c.col_blocks;
  return c;
}

static cut choose_cut(const om_gpu_binder *b, const om_attention *a) {
  const kernel_choice *choice = fast_kernels;
  const uint64_t batch = om_attention_batch(a);
  const om_attention_matrix_kernel *matrix = om_gpu_attention_matrix(b, a);
  cut c = {.chunk_count = 1, .chunk_keys = (uint32_t)a->keys};
  uint32_t size = 0;
  if (matrix) return matrix_cut(a, matrix);
  if (om_gpu_works_alone(b)) return choose_alone(b, a);
  while (size < 3 && a->width > ((size_t)OM_ATTENTION_TILE << size)) ++size;
  c.col_blocks = (uint32_t)om_gpu_pieces(a->width, (size_t)OM_ATTENTION_TILE << size);
  for (;; ++choice) {
    c.rows = choice->rows;
    c.row_blocks = (uint32_t)om_gpu_pieces(a->rows, c.rows);
    c.groups = batch * c.row_blocks * c.col_blocks;
    if (size < choice->shader_count && c.groups >= choice->least_groups) break;
  }
  c.shader = choice->shaders[is_half(b)][size];
  choose_chunks(b, a, size, &c);
  return c;
}

/* ---- Shapes ---- */

static om_attention_side *side_get(om_attention *a, size_t index) {
  om_attention_side *const sides[OM_ATTENTION_SIDES] = {&a->q, &a->k, &a->v, &a->mask, &a->y};
  return sides[index];
}

static bool walk_as_one(om_attention *a, uint32_t axis, uint32_t next) {
  for (size_t i = 0; i < OM_ATTENTION_SIDES; ++i) {
    const om_attention_side *side = side_get(a, i);
    if (side->batch_strides[axis] != side->batch_strides[next] * a->batch[next]) return false;
  }
  return true;
}

/* Drops batch axes of one element and merges neighbours that walk as one. */
static void simplify_batch(om_attention *a) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < a->batch_rank; ++i) {
    if (a->batch[i] == 1) continue;
    const bool merges = rank > 0 && walk_as_one(a, rank - 1, i);
    if (merges) a->batch[i] *= a->batch[rank - 1];
    const uint32_t to = merges ? rank - 1 : rank++;
    a->batch[to] = a->batch[i];
    for (size_t k = 0; k < OM_ATTENTION_SIDES; ++k) {
      om_attention_side *side = side_get(a, k);
      side->batch_strides[to] = side->batch_strides[i];
    }
  }
  a->batch_rank = rank;
}

static const char *check(om_gpu_binder *b, const om_attention *a) {
  const char *reason = om_gpu_rounds_inside(b, OM_ATTENTION_Q);
  if (reason) return reason;
  for (uint32_t i = OM_ATTENTION_Q_SCALE; i < OM_ATTENTION_INPUTS; ++i) {
    const om_tensor *scale = om_gpu_input(b, i);
    if (scale && !scale->data) return "its scale is known at run time only";
  }
  for (uint32_t i = 0; i <= OM_ATTENTION_MASK; ++i) {
    const om_tensor *input = om_gpu_input(b, i);
    if (input && om_tensor_elems(input) > INT32_MAX) return "it has more elements than are counted";
  }
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (om_tensor_elems(om_gpu_output(b, 0)) > INT32_MAX) {
    return "it has more elements than are counted";
  }
  if (a->depth == 0 || a->keys == 0) return "it adds no terms";
  if (a->batch_rank > MOST_BATCH_AXES) return "its batch repeats in more than two runs of axes";
  return NULL;
}

/* ---- The dispatches ---- */

static om_attention_kernel_params make_params(const om_attention *a, const cut *c) {
  const om_attention_shape_params shape = om_gpu_attention_shape(a);
  om_attention_kernel_params p = {.row_blocks = c->row_blocks,
                                  .col_blocks = c->col_blocks,
                                  .chunk_count = c->chunk_count,
                                  .chunk_keys = c->chunk_keys};
  memcpy(&p.batch_1, &shape, sizeof shape);
  return p;
}

/* What scores are multiplied by, all scales in one. */
static float whole_scale(const om_attention *a) {
  const om_scale scales[] = {a->q_scale, a->k_scale, a->scale};
  float result = 1.0f;
  for (size_t i = 0; i < OM_COUNT_OF(scales); ++i) {
    if (scales[i].kind == OM_SCALE_MUL) result *= scales[i].value;
    if (scales[i].kind == OM_SCALE_DIV) result /= scales[i].value;
  }
  return result;
}

static uint32_t flags_of(const om_attention *a, const om_attention_matrix_kernel *matrix) {
  const bool has_tail = matrix && a->keys % matrix->step != 0;
  const bool is_narrow = matrix && (a->depth < matrix->head || a->width < matrix->head);
  return om_gpu_attention_flags(a) | (has_tail ? OM_ATTENTION_HAS_TAIL : 0u) |
         (is_narrow ? OM_ATTENTION_IS_NARROW : 0u);
}

/* The second pass, after a first that wrote the chunks. */
static const char *add_merge(om_gpu_binder *b,
                             const om_attention *a,
                             const om_attention_kernel_params *first,
                             om_gpu_operand chunks,
                             om_gpu_operand y) {
  enum { THREADS = 64 };
  const om_attention_merge_params params = {
      .elems = (uint32_t)(om_attention_batch(a) * a->rows * a->width),
      .rows = first->rows,
      .width = first->width,
      .batch_1 = first->batch_1,
      .chunk_count = first->chunk_count,
      .chunk_stride = first->chunk_stride,
      .zeroes_nan = a->zeroes_nan,
      .y_stride_0 = a->batch_rank > 1 ? (uint32_t)a->y.batch_strides[0] : 0,
      .y_stride_1 = a->batch_rank > 0 ? (uint32_t)a->y.batch_strides[a->batch_rank - 1] : 0,
      .y_row_stride = (uint32_t)a->y.row_stride,
      .y_col_stride = (uint32_t)a->y.col_stride,
  };
  om_gpu_dispatch *d = om_gpu_add_dispatch(
      b, is_half(b) ? OM_SHADER_ATTENTION_MERGE_HALF : OM_SHADER_ATTENTION_MERGE);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = chunks;
  d->operands[1] = y;
  d->operand_count = 2;
  om_gpu_spread_groups(b, om_gpu_pieces(params.elems, THREADS), d->groups);
  d->flops = 4 * (uint64_t)params.elems * params.chunk_count;
  return NULL;
}

/* The first pass writes chunks, dense, in place of y. */
static om_gpu_operand use_chunks(om_gpu_binder *b,
                                 const om_attention *a,
                                 om_attention_kernel_params *params) {
  const uint32_t row = params->width + 2; /* the largest and the sum stand behind */
  const uint64_t rows = om_attention_batch(a) * a->rows;
  params->chunk_stride = (uint32_t)(rows * row);
  params->y_row_stride = row;
  params->y_stride_1 = params->rows * row;
  params->y_stride_0 = params->batch_1 * params->y_stride_1;
  return om_gpu_scratch(b, rows * row * params->chunk_count * sizeof(float));
}

/* What the dispatches of an attention share; params.first_group tells them apart. */
typedef struct pass {
  const om_attention *attention;
  cut cut;
  om_attention_kernel_params params;
  om_gpu_operand operands[5];
} pass;

static const char *add_dispatch(om_gpu_binder *b, const pass *p, uint64_t groups) {
  const om_attention *a = p->attention;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, p->cut.shader);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &p->params, sizeof p->params);
  d->params_bytes = sizeof p->params;
  d->constants[0] = flags_of(a, p->cut.matrix);
  d->constants[1] = (uint32_t)a->q.offset;
  d->constants[2] = (uint32_t)a->k.offset;
  d->constants[3] = (uint32_t)a->v.offset;
  d->constants[4] = (uint32_t)a->q.col_stride;
  d->constants[5] = (uint32_t)a->v.col_stride;
  d->constants[6] = p->cut.chunk_count > 1 ? 1 : (uint32_t)a->y.col_stride;
  d->constant_count = p->cut.matrix ? 4 : 7;
  memcpy(d->operands, p->operands, sizeof p->operands);
  d->operand_count = 5;
  d->groups[0] = (uint32_t)groups;
  d->flops =
      2 * groups * p->cut.rows * p->cut.chunk_keys * (a->depth + a->width / p->cut.col_blocks);
  return NULL;
}

/* Copies the mask to scratch, with a matrix for each element of the batch: it repeats in other runs
 * of axes than the operands do. */
__attribute__((noinline)) static const char *spread_mask(om_gpu_binder *b,
                                                         om_attention *a,
                                                         om_gpu_operand *out_mask) {
  const om_dtype dtype = om_gpu_input(b, OM_ATTENTION_MASK)->dtype;
  om_attention_side *mask = &a->mask;
  om_strided copy = {.rank = a->batch_rank + 2};
  memcpy(copy.extents, a->batch, a->batch_rank * sizeof *copy.extents);
  memcpy(copy.source_strides, mask->batch_strides, a->batch_rank * sizeof *copy.source_strides);
  copy.extents[a->batch_rank] = mask->row_stride != 0 ? (int64_t)a->rows : 1;
  copy.extents[a->batch_rank + 1] = mask->col_stride != 0 ? (int64_t)a->keys : 1;
  copy.source_strides[a->batch_rank] = mask->row_stride;
  copy.source_strides[a->batch_rank + 1] = mask->col_stride;
  om_dense_strides(copy.rank, copy.extents, copy.target_strides);
  memcpy(mask->batch_strides, copy.target_strides, a->batch_rank * sizeof *mask->batch_strides);
  if (mask->row_stride != 0) mask->row_stride = copy.target_strides[a->batch_rank];
  if (mask->col_stride != 0) mask->col_stride = 1;
  const uint64_t bytes = om_strided_elems(&copy) * (om_dtype_bits(dtype) / 8);
  if (bytes > om_gpu_binder_limits(b)->max_binding_bytes)
    return "its mask repeats in too many ways";
  const om_gpu_operand source = om_gpu_read(b, OM_ATTENTION_MASK);
  *out_mask = om_gpu_scratch(b, bytes);
  return om_gpu_bind_copy(b, &copy, dtype, source, *out_mask);
}

static void set_operands(om_gpu_binder *b, pass *p, om_gpu_operand mask) {
  p->operands[0] = om_gpu_read(b, OM_ATTENTION_Q);
  p->operands[1] = om_gpu_read(b, OM_ATTENTION_K);
  p->operands[2] = om_gpu_read(b, OM_ATTENTION_V);
  p->operands[3] = mask;
  p->operands[4] = om_gpu_write(b, 0);
}

/* Not inlined: with the description of the attention the frame would be too large. */
__attribute__((noinline)) static const char *add_dispatches(om_gpu_binder *b,
                                                            const om_attention *a,
                                                            om_gpu_operand mask) {
  pass p = {.attention = a, .cut = choose_cut(b, a)};
  uint64_t most = om_gpu_binder_limits(b)->max_groups[0];
  if (most > p.cut.groups) most = p.cut.groups;
  set_operands(b, &p, mask);
  p.params = make_params(a, &p.cut);
  if (p.cut.matrix) p.params.scale = whole_scale(a);
  const om_gpu_operand y = p.operands[4];
  if (p.cut.chunk_count > 1) p.operands[4] = use_chunks(b, a, &p.params);
  for (uint64_t first = 0; first < p.cut.groups; first += most) {
    p.params.first_group = (uint32_t)first;
    const uint64_t left = p.cut.groups - first;
    const char *reason = add_dispatch(b, &p, left < most ? left : most);
    if (reason) return reason;
  }
  return p.cut.chunk_count > 1 ? add_merge(b, a, &p.params, p.operands[4], y) : NULL;
}

__attribute__((noinline)) static bool describe(om_gpu_binder *b, om_attention *a) {
  const om_tensor *inputs[OM_ATTENTION_INPUTS];
  om_tensor y;
  for (uint32_t i = 0; i < OM_ATTENTION_INPUTS; ++i) inputs[i] = om_gpu_input(b, i);
  b->status = om_attention_describe(b->ctx, om_gpu_binder_node(b)->params, inputs, a, &y);
  return b->status == OM_OK;
}

static const char *bind(om_gpu_binder *b) {
  om_attention a;
  if (!describe(b, &a)) return "its shapes do not fit";
  om_gpu_operand mask = {.kind = OM_GPU_NOTHING};
  const char *reason = NULL;
  simplify_batch(&a);
  if (a.batch_rank > MOST_BATCH_AXES && a.has_mask && describe(b, &a)) {
    reason = spread_mask(b, &a, &mask);
    simplify_batch(&a);
  } else if (a.has_mask) {
    mask = om_gpu_read(b, OM_ATTENTION_MASK);
  }
  if (!reason) reason = check(b, &a);
  if (reason) return reason;
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  return is_exact ? om_gpu_bind_exact_attention(b, &a, mask) : add_dispatches(b, &a, mask);
}

const om_gpu_op om_gpu_ops_attention[] = {
    {.domain = "onemodel",
     .type = "Attention",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_FUNCTIONS,
     .bind = bind},
    {.type = NULL},
};
