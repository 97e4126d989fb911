/* Matrix products on the device: MatMul, Gemm.
 *
 * A constant B is stored with its rows padded to four floats (and turned, where Gemm says so), so
 * that the kernel reads quads; other operands are read as they lie, by quads where their shapes
 * allow it. Gemm's alpha and C are items of the product's chain. A constant B that no binding holds
 * is cut into runs of columns, each with passes of its own.
 *
 * In fast mode most products by a constant run on matrix hardware instead, where there is one
 * (om_gpu_matmul_matrix.c), or without shared memory where that is dear (om_gpu_matmul_alone.c).
 * Exact ones in quads have kernels of their own on Hopper (om_gpu_matmul_exact.c).
 *
 * Which tile, and whether the depth is cut into chunks, is estimated from the number of
 * workgroups and their steps. It changes no bit of an exact result.
 */
#include "abi/matmul_sum_params.h"
#include "gpu/om_gpu_copy.h"
#include "gpu/om_gpu_matmul.h"

enum { OM_MATMUL_BATCH_AXES = 3 };

/* Nanoseconds of a step: of a workgroup that is alone on its core, and, where there are several,
 * those that do not depend on their number and those that each of them takes. */
typedef struct om_tile_cost {
  uint32_t alone, some, each;
} om_tile_cost;

/* The kernels by tile, quads, type and exactness, and their cost by exactness. Measured on an
 * NVIDIA H200 (2026-11); only the proportions matter. */
static const struct {
  uint32_t tile, step_terms;
  om_tile_cost costs[2];
  uint32_t fill_percent;       /* of a step, before the first is there */
  om_gpu_forms forms[2];       /* by quads */
  om_shader half_chunks[2][2]; /* by quads and exactness: float16, with float32 sums */
} tiles[] = {
    {64,
     32,
     {{1300, 1300, 1160}, {1780, 250, 1530}},
     100,
     {OM_GPU_FORMS(MATMUL_TILE64), OM_GPU_FORMS(MATMUL_TILE64_VEC4)},
     {{OM_SHADER_MATMUL_TILE64_CHUNKS_HALF, OM_SHADER_MATMUL_TILE64_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE64_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE64_VEC4_CHUNKS_HALF_EXACT}}},
    {32,
     32,
     {{850, 850, 330}, {1110, 350, 400}},
     100,
     {OM_GPU_FORMS(MATMUL_TILE32), OM_GPU_FORMS(MATMUL_TILE32_VEC4)},
     {{OM_SHADER_MATMUL_TILE32_CHUNKS_HALF, OM_SHADER_MATMUL_TILE32_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE32_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE32_VEC4_CHUNKS_HALF_EXACT}}},
    {16,
     128,
     {{1160, 1160, 700}, {750, 750, 780}},
     50,
     {OM_GPU_FORMS(MATMUL_TILE16), OM_GPU_FORMS(MATMUL_TILE16_VEC4)},
     {{OM_SHADER_MATMUL_TILE16_CHUNKS_HALF, OM_SHADER_MATMUL_TILE16_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE16_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE16_VEC4_CHUNKS_HALF_EXACT}}},
};

/* How a product is cut. */
typedef struct om_matmul_cut {
  size_t tile;          /* index into tiles */
  uint64_t groups;      /* workgroups */
  uint64_t chunk_count; /* above 1: a second pass adds them */
  uint64_t chunk_depth;
  uint64_t cost_ns;
} om_matmul_cut;

static uint64_t tile_groups(const om_matmul *m, size_t tile) {
  return om_strided_elems(&m->batch) * om_gpu_pieces(m->rows, tiles[tile].tile) *
         om_gpu_pieces(m->cols, tiles[tile].tile);
}

/* Nanoseconds that the groups of one pass take on a device of many cores. */
static uint64_t cut_cost(const om_matmul_cut *cut, bool is_exact) {
  enum { CORES = 132 };
  const om_tile_cost *cost = &tiles[cut->tile].costs[is_exact];
  const uint64_t steps = om_gpu_pieces(cut->chunk_depth, tiles[cut->tile].step_terms);
  /* Whole workgroups fall to a core; the fast figures are of an even share. */
  const uint64_t share =
      cost->each * (is_exact ? om_gpu_pieces(cut->groups, CORES) * CORES : cut->groups - 1);
  uint64_t step_ns = cost->some + share / CORES;
  if (step_ns < cost->alone) step_ns = cost->alone;
  return (steps * 100 + tiles[cut->tile].fill_percent) * step_ns / 100;
}

/* Exact chunks are groups of terms, whose sums the second pass adds in order; fast ones may be
 * longer. The scratch holds a result for each. */
static om_matmul_cut choose_cut(const om_matmul *m, bool is_exact) {
  enum { SECOND_PASS_NS = 3000, MOST_SCRATCH_BYTES = 64 << 20 };
  const uint64_t result_bytes = om_strided_elems(&m->batch) * m->rows * m->cols * sizeof(float);
  om_matmul_cut best = {.cost_ns = UINT64_MAX};
  for (size_t tile = 0; tile < OM_COUNT_OF(tiles); ++tile) {
    /* The whole depth first, then halves of it. */
    for (uint64_t terms = m->depth; terms == m->depth || terms >= OM_PRODUCT_GROUP; terms /= 2) {
      om_matmul_cut cut = {.tile = tile, .chunk_depth = m->depth, .chunk_count = 1};
      if (terms < m->depth) {
        cut.chunk_depth = is_exact ? OM_PRODUCT_GROUP : om_size_align(terms, OM_PRODUCT_GROUP);
        cut.chunk_count = om_gpu_pieces(m->depth, cut.chunk_depth);
        cut.cost_ns = SECOND_PASS_NS;
        if (cut.chunk_count * result_bytes > MOST_SCRATCH_BYTES) break;
      }
      cut.groups = tile_groups(m, tile) * cut.chunk_count;
      cut.cost_ns += cut_cost(&cut, is_exact);
      if (cut.cost_ns < best.cost_ns) best = cut;
    }
  }
  return best;
}

/* ---- B as a constant ---- */

typedef struct om_b_layout {
  size_t matrices, depth, cols; /* of the source */
  size_t part_cols;             /* columns that are wanted, from where the source begins */
  size_t pitch;                 /* elements from row to row: part_cols rounded up to four */
  size_t elem_bytes;
  bool is_turned; /* the source is [cols, depth] */
} om_b_layout;

static void fill_b(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const om_b_layout *layout = arg;
  const size_t bytes = layout->elem_bytes;
  const char *from = source;
  char *to = target; /* zeroed */
  for (size_t row = 0; row < layout->matrices * layout->depth; ++row) {
    const size_t k = row % layout->depth;
    const size_t matrix = row / layout->depth * layout->depth * layout->cols;
    for (size_t col = 0; col < layout->part_cols; ++col) {
      const size_t at = layout->is_turned ? col * layout->depth + k : k * layout->cols + col;
      memcpy(to + (row * layout->pitch + col) * bytes, from + (matrix + at) * bytes, bytes);
    }
  }
}

/* ---- The product ---- */

typedef struct om_product {
  om_matmul m;
  om_gpu_operand a, spread_b; /* spread_b: NOTHING, or b with its batch repeated */
  const om_gemm_params *gemm; /* NULL: a MatMul */
  om_matmul_cut cut;          /* of all columns */
  bool is_b_turned;           /* b is [cols, depth] */
} om_product;

/* Columns of one pass: all of them, or what a binding holds of a constant b. */
typedef struct om_product_part {
  size_t first, cols;
  om_gpu_operand sums; /* where a part leaves float32 for the pass that places it */
} om_product_part;

static bool is_whole(const om_product *p, const om_product_part *part) {
  return part->cols == p->m.cols;
}

static om_b_layout layout_of(const om_gpu_binder *b, const om_product *p, size_t part_cols) {
  const om_tensor *tensor = om_gpu_input(b, 1);
  return (om_b_layout){
      .matrices = om_tensor_elems(tensor) / (p->m.depth * p->m.cols),
      .depth = p->m.depth,
      .cols = p->m.cols,
      .part_cols = part_cols,
      .pitch = om_size_align(part_cols, 4),
      .is_turned = p->is_b_turned,
      .elem_bytes = om_dtype_bits(tensor->dtype) / 8,
  };
}

static uint64_t layout_bytes(const om_b_layout *layout) {
  return (uint64_t)layout->matrices * layout->depth * layout->pitch * layout->elem_bytes;
}

/* Binds input 1 and sets the strides that tell how it lies. */
static om_gpu_operand bind_b(om_gpu_binder *b,
                             const om_product *p,
                             const om_product_part *part,
                             om_matmul_params *params) {
  const om_tensor *tensor = om_gpu_input(b, 1);
  const om_b_layout layout = layout_of(b, p, part->cols);
  const uint64_t bytes = layout_bytes(&layout);
  const bool lies_in_quads = !p->is_b_turned && layout.pitch == layout.cols;
  if (p->spread_b.kind != OM_GPU_NOTHING) {
    params->b_depth_stride = (uint32_t)p->m.cols;
    params->b_col_stride = 1;
    return p->spread_b;
  }
  params->b_depth_stride = (uint32_t)(p->is_b_turned ? 1 : p->m.cols);
  params->b_col_stride = (uint32_t)(p->is_b_turned ? p->m.depth : 1);
  if (!tensor->data || lies_in_quads || bytes > om_gpu_binder_limits(b)->max_binding_bytes) {
    return om_gpu_read(b, 1);
  }
  uint32_t *const strides[] = {&params->b_stride_0, &params->b_stride_1, &params->b_stride_2};
  for (size_t i = 0; i < OM_COUNT_OF(strides); ++i) {
    *strides[i] = *strides[i] / (uint32_t)p->m.cols * (uint32_t)layout.pitch;
  }
  params->b_depth_stride = (uint32_t)layout.pitch;
  params->b_col_stride = 1;
  const char *recipe = p->is_b_turned ? "turned, rows of quads" : "rows of quads";
  const uint64_t row_bytes = p->m.depth * layout.elem_bytes; /* of a turned b */
  const om_gpu_part source = {
      .input = 1,
      .offset = part->first * (p->is_b_turned ? row_bytes : layout.elem_bytes),
      .bytes = p->is_b_turned && layout.matrices == 1 ? part->cols * row_bytes : 0,
  };
  return om_gpu_made_part(b, &source, recipe, bytes, fill_b, &layout);
}

/* The batch as three axes. */
static void set_batch(const om_matmul *m, om_matmul_params *params) {
  const om_strided *batch = &m->batch;
  uint32_t extents[OM_MATMUL_BATCH_AXES] = {1, 1, 1};
  uint32_t a[OM_MATMUL_BATCH_AXES] = {0};
  uint32_t b[OM_MATMUL_BATCH_AXES] = {0};
  for (uint32_t i = 0; i < batch->rank; ++i) {
    const uint32_t axis = OM_MATMUL_BATCH_AXES - batch->rank + i;
    extents[axis] = (uint32_t)batch->extents[i];
    a[axis] = (uint32_t)batch->source_strides[i];
    b[axis] = (uint32_t)batch->target_strides[i];
    if (extents[axis] == 1) a[axis] = b[axis] = 0;
  }
  params->batch_1 = extents[1];
  params->batch_2 = extents[2];
  memcpy(&params->a_stride_0, a, sizeof a);
  memcpy(&params->b_stride_0, b, sizeof b);
}

static bool are_quads(uint32_t all_strides, const om_matmul_params *p) {
  return (all_strides | p->b_depth_stride | p->b_stride_0 | p->b_stride_1 | p->b_stride_2) % 4 ==
             0 &&
         p->b_col_stride == 1;
}

static bool takes_quads(const om_matmul_params *p) {
  const uint32_t a = p->depth | p->a_row_stride | p->a_stride_0 | p->a_stride_1 | p->a_stride_2;
  return are_quads(a, p) && p->a_depth_stride == 1;
}

/* One matrix of whole rows by another: what om_few describes. */
static bool is_few(const om_product *p,
                   const om_product_part *part,
                   const om_matmul_params *params) {
  return om_strided_elems(&p->m.batch) == 1 && is_whole(p, part) && params->a_depth_stride == 1 &&
         params->b_col_stride == 1;
}

/* Few rows are bound by reading b, which the rows kernel does best; it needs b's rows in quads. */
static bool takes_rows_kernel(const om_matmul_params *p) {
  enum { FEW_ROWS = 8 };
  return p->rows <= FEW_ROWS && are_quads(0, p);
}

/* A pass's kernel. */
typedef struct om_product_kernel {
  om_shader shader;
  bool is_last;    /* it makes the results, not sums for the pass behind it */
  uint64_t groups; /* that are launched */
} om_product_kernel;

/* Hopper's kernel for it, where that is faster; sets the tiles and chunks. */
static bool takes_exact_sm90(const om_gpu_binder *b,
                             const om_product *p,
                             const om_product_part *part,
                             om_matmul_params *params,
                             om_product_kernel *out_kernel) {
  const uint64_t batch = om_strided_elems(&p->m.batch);
  if (!om_gpu_takes_sm90(b, OM_MODE_EXACT) || om_gpu_input(b, 0)->dtype != OM_DTYPE_F32 ||
      !is_whole(p, part) || takes_rows_kernel(params) || !takes_quads(params) ||
      !om_gpu_choose_exact_sm90(batch, p->cut.cost_ns, params, &out_kernel->shader)) {
    return false;
  }
  out_kernel->is_last = params->chunk_count == 1;
  out_kernel->groups = params->group_count < OM_SM90_CORES ? params->group_count : OM_SM90_CORES;
  return true;
}

/* Sets the tiles and chunks, and chooses the kernel. */
static om_product_kernel choose_kernel(const om_gpu_binder *b,
                                       const om_product *p,
                                       const om_product_part *part,
                                       om_matmul_params *params) {
  static const om_shader rows_chunks_half[] = {OM_SHADER_MATMUL_ROWS_CHUNKS_HALF,
                                               OM_SHADER_MATMUL_ROWS_CHUNKS_HALF_EXACT};
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  const bool has_few_rows = takes_rows_kernel(params);
  const bool is_last = is_whole(p, part) && (has_few_rows || p->cut.chunk_count == 1);
  const bool takes_sums = dtype == OM_DTYPE_F16 && !is_last;
  const uint64_t tile = tiles[p->cut.tile].tile;
  om_product_kernel kernel = {.is_last = is_last};
  if (takes_exact_sm90(b, p, part, params, &kernel)) return kernel;
  params->chunk_count = has_few_rows ? 1 : (uint32_t)p->cut.chunk_count;
  params->chunk_depth = has_few_rows ? params->depth : (uint32_t)p->cut.chunk_depth;
  params->row_tiles = (uint32_t)om_gpu_pieces(params->rows, has_few_rows ? 1 : tile);
  params->col_tiles = (uint32_t)om_gpu_pieces(params->cols, has_few_rows ? 32 : tile);
  params->group_count = (uint32_t)(om_strided_elems(&p->m.batch) * params->chunk_count) *
                        params->row_tiles * params->col_tiles;
  kernel.groups = params->group_count;
  if (has_few_rows && takes_sums) {
    kernel.shader = rows_chunks_half[is_exact];
  } else if (has_few_rows) {
    kernel.shader = OM_GPU_KERNEL(b, MATMUL_ROWS, dtype);
  } else if (takes_sums) {
    kernel.shader = tiles[p->cut.tile].half_chunks[takes_quads(params)][is_exact];
  } else {
    kernel.shader = om_gpu_form(b, &tiles[p->cut.tile].forms[takes_quads(params)], dtype);
  }
  return kernel;
}

static om_gpu_dispatch *add_product(om_gpu_binder *b,
                                    const om_product_kernel *kernel,
                                    const om_matmul_params *params,
                                    const om_gpu_operand operands[3]) {
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, kernel->shader);
  if (!d) return NULL;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  memcpy(d->operands, operands, 3 * sizeof *operands);
  d->operand_count = 3;
  om_gpu_spread_groups(b, kernel->groups, d->groups);
  d->has_chain = om_shader_has_chain(kernel->shader);
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * (uint64_t)om_tensor_elems(om_gpu_output(b, 0)) * params->depth;
  return d;
}

/* By a kernel for Hopper where one workgroup a core does: its launch costs less beside others. */
static bool takes_sm90_sum(const om_gpu_binder *b, const om_matmul_sum_params *params) {
  enum { THREADS = 256, UNIT = 8, MOST_CHUNKS = 8 };
  return om_gpu_takes_sm90(b, OM_MODE_FAST) && params->part_cols == params->y_cols &&
         params->y_cols % UNIT == 0 && params->elems <= OM_SM90_CORES * THREADS * UNIT &&
         params->chunk_count <= MOST_CHUNKS;
}

static om_gpu_dispatch *add_sum(om_gpu_binder *b,
                                om_gpu_operand chunks,
                                const om_matmul_sum_params *params) {
  const om_gpu_operand to = om_gpu_write(b, 0);
  const om_dtype dtype = om_gpu_output(b, 0)->dtype;
  const bool is_sm90 = takes_sm90_sum(b, params);
  om_shader shader = OM_GPU_KERNEL(b, MATMUL_SUM, dtype);
  if (is_sm90) shader = dtype == OM_DTYPE_F16 ? OM_SHADER_SUM_SM90_HALF : OM_SHADER_SUM_SM90;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  d->operands[0] = chunks;
  d->operands[1] = to;
  d->operand_count = 2;
  om_gpu_spread_groups(b, om_gpu_pieces(params->elems, is_sm90 ? 256 * 8 : 256), d->groups);
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = (uint64_t)params->elems * params->chunk_count;
  return d;
}

om_gpu_dispatch *om_gpu_add_chunk_sum(om_gpu_binder *b,
                                      om_gpu_operand chunks,
                                      uint64_t chunk_count) {
  const om_tensor *y = om_gpu_output(b, 0);
  const uint32_t cols = y->rank > 0 ? (uint32_t)y->dims[y->rank - 1] : 1;
  const om_matmul_sum_params params = {.elems = (uint32_t)om_tensor_elems(y),
                                       .chunk_count = (uint32_t)chunk_count,
                                       .part_cols = cols,
                                       .y_cols = cols};
  return add_sum(b, chunks, &params);
}

/* ---- Gemm's alpha and C ---- */

/* Adds C, times beta, which broadcasts to rows by cols, to the product's chain. */
static const char *add_c(om_gpu_binder *b, const om_tensor *c, float beta, om_gpu_dispatch *d) {
  const om_tensor *y = om_gpu_output(b, 0);
  const size_t elems = om_tensor_elems(c);
  const bool is_scaled = beta != 1.0f;
  const om_gpu_operand operand = om_gpu_read(b, 2);
  om_chain_item item = {.op = is_scaled ? OM_CHAIN_ADD_SCALED : OM_CHAIN_Add,
                        .source = OM_CHAIN_VECTOR};
  if (elems == om_tensor_elems(y)) {
    item.source = OM_CHAIN_TENSOR;
  } else if (elems != 1) {
    const bool is_row = c->dims[c->rank - 1] != 1;
    d->chain.inner = is_row ? 1 : (uint32_t)y->dims[1];
    d->chain.channels = (uint32_t)elems;
  }
  return om_gpu_chain_add(&d->chain, item, &operand, &beta, is_scaled) ? NULL : om_gpu_no_memory;
}

static const char *finish(om_gpu_binder *b, const om_product *p, om_gpu_dispatch *d) {
  const om_chain_item scale = {.op = OM_CHAIN_Mul, .source = OM_CHAIN_SCALAR};
  const om_tensor *c = om_gpu_input(b, 2);
  if (!d) return om_gpu_no_memory;
  if (!p->gemm) return NULL;
  if (p->gemm->alpha != 1.0f && !om_gpu_chain_add(&d->chain, scale, NULL, &p->gemm->alpha, 1)) {
    return om_gpu_no_memory;
  }
  return c && p->gemm->beta != 0.0f ? add_c(b, c, p->gemm->beta, d) : NULL;
}

/* ---- Binding ---- */

/* What follows the dispatch of a part: nothing where it makes the results, else their placing. */
static const char *finish_part(om_gpu_binder *b,
                               const om_product *p,
                               const om_product_part *part,
                               const om_matmul_params *params,
                               bool is_last,
                               om_gpu_dispatch *d) {
  if (!d || is_last) return finish(b, p, d);
  const uint64_t elems = om_strided_elems(&p->m.batch) * p->m.rows * part->cols;
  const om_matmul_sum_params sum = {.elems = (uint32_t)elems,
                                    .chunk_count = params->chunk_count,
                                    .part_cols = (uint32_t)part->cols,
                                    .y_cols = (uint32_t)p->m.cols,
                                    .y_first = (uint32_t)part->first};
  return finish(b, p, add_sum(b, d->operands[2], &sum));
}

static const char *bind_part(om_gpu_binder *b, const om_product *p, const om_product_part *part) {
  om_matmul_params params = {
      .rows = (uint32_t)p->m.rows,
      .cols = (uint32_t)part->cols,
      .depth = (uint32_t)p->m.depth,
      .a_row_stride = (uint32_t)p->m.a_row_stride,
      .a_depth_stride = (uint32_t)p->m.a_depth_stride,
  };
  set_batch(&p->m, &params);
  om_gpu_operand operands[3] = {p->a};
  operands[1] = bind_b(b, p, part, &params);
  if (om_gpu_works_alone(b) && (is_whole(p, part) || om_gpu_input(b, 0)->dtype == OM_DTYPE_F32)) {
    operands[2] = is_whole(p, part) ? om_gpu_write(b, 0) : part->sums;
    om_gpu_dispatch *alone = om_gpu_add_matmul_alone(
        b, &params, om_strided_elems(&p->m.batch), takes_quads(&params), operands);
    return finish_part(b, p, part, &params, is_whole(p, part), alone);
  }
  const om_few few = {.rows = p->m.rows,
                      .depth = p->m.depth,
                      .cols = part->cols,
                      .a_row_stride = p->m.a_row_stride,
                      .b_pitch = params.b_depth_stride,
                      .b = operands[1]};
  if (is_few(p, part, &params) && om_gpu_takes_few(b, &few)) {
    return finish(b, p, om_gpu_add_few(b, &few));
  }
  const om_product_kernel kernel = choose_kernel(b, p, part, &params);
  const uint64_t elems = om_strided_elems(&p->m.batch) * p->m.rows * part->cols;
  operands[2] = kernel.is_last      ? om_gpu_write(b, 0)
                : is_whole(p, part) ? om_gpu_scratch(b, params.chunk_count * elems * sizeof(float))
                                    : part->sums;
  om_gpu_dispatch *d = add_product(b, &kernel, &params, operands);
  return finish_part(b, p, part, &params, kernel.is_last, d);
}

/* A constant b above one binding: a pass for each run of columns that a binding holds, and one that
 * places its results. The sums are those of the whole product. */
static const char *bind_parts(om_gpu_binder *b, const om_product *p) {
  enum { QUAD = 4, TILE = 64 };
  const uint64_t limit = om_gpu_binder_limits(b)->max_binding_bytes;
  const om_b_layout quad = layout_of(b, p, QUAD);
  const uint64_t result_rows = om_strided_elems(&p->m.batch) * p->m.rows * p->cut.chunk_count;
  const uint64_t by_b = limit / layout_bytes(&quad) * QUAD;
  const uint64_t by_sums = limit / (result_rows * sizeof(float)) / QUAD * QUAD;
  uint64_t cols = by_b < by_sums ? by_b : by_sums;
  if (cols >= TILE) cols = cols / TILE * TILE;
  if (cols == 0) {
    return om_gpu_reason(
        b,
        "its weights are above the device's binding limit of %llu, and so are four "
        "columns",
        (unsigned long long)limit);
  }
  om_product_part part = {.sums = om_gpu_scratch(b, result_rows * cols * sizeof(float))};
  const char *reason = NULL;
  for (; part.first < p->m.cols && !reason; part.first += cols) {
    part.cols = p->m.cols - part.first < cols ? p->m.cols - part.first : (size_t)cols;
    reason = bind_part(b, p, &part);
  }
  return reason;
}

static bool is_above_binding(const om_gpu_binder *b) {
  const om_tensor *tensor = om_gpu_input(b, 1);
  return tensor->data && om_tensor_elems(tensor) * (om_dtype_bits(tensor->dtype) / 8) >
                             om_gpu_binder_limits(b)->max_binding_bytes;
}

/* Copies an operand's matrices to scratch, one for each element of the batch. */
static const char *spread(om_gpu_binder *b,
                          const om_matmul *m,
                          uint32_t input,
                          const size_t matrix[4], /* extents, then strides */
                          om_gpu_operand *out_operand) {
  const om_dtype dtype = om_gpu_input(b, input)->dtype;
  om_strided copy = m->batch;
  if (input == 1) memcpy(copy.source_strides, m->batch.target_strides, sizeof copy.source_strides);
  for (uint32_t i = 0; i < 2; ++i) {
    copy.extents[copy.rank + i] = (int64_t)matrix[i];
    copy.source_strides[copy.rank + i] = (int64_t)matrix[2 + i];
  }
  copy.rank += 2;
  om_dense_strides(copy.rank, copy.extents, copy.target_strides);
  const uint64_t bytes = om_strided_elems(&copy) * (om_dtype_bits(dtype) / 8);
  if (bytes > om_gpu_binder_limits(b)->max_binding_bytes)
    return "its batch repeats in too many ways";
  const om_gpu_operand source = om_gpu_read(b, input);
  *out_operand = om_gpu_scratch(b, bytes);
  return om_gpu_bind_copy(b, &copy, dtype, source, *out_operand);
}

/* A batch that repeats in more runs of axes than the kernels count is spread first. */
static const char *spread_batch(om_gpu_binder *b, om_product *p) {
  om_matmul *m = &p->m;
  if (m->batch.rank <= OM_MATMUL_BATCH_AXES) return NULL;
  if (is_above_binding(b)) return "its batch repeats in too many ways";
  const char *reason =
      spread(b, m, 0, (size_t[]){m->rows, m->depth, m->a_row_stride, m->a_depth_stride}, &p->a);
  if (!reason) reason = spread(b, m, 1, (size_t[]){m->depth, m->cols, m->cols, 1}, &p->spread_b);
  const int64_t count = (int64_t)om_strided_elems(&m->batch);
  m->a_row_stride = m->depth;
  m->a_depth_stride = 1;
  m->batch = (om_strided){.rank = 1,
                          .extents = {count},
                          .source_strides = {(int64_t)(m->rows * m->depth)},
                          .target_strides = {(int64_t)(m->depth * m->cols)}};
  return reason;
}

static const char *bind_product(om_gpu_binder *b, om_product *p) {
  const om_matmul *m = &p->m;
  if (m->depth == 0) return "it adds no terms";
  p->a = om_gpu_read(b, 0);
  p->cut = choose_cut(m, om_gpu_binder_mode(b) == OM_MODE_EXACT);
  if (om_gpu_input(b, 1)->dtype != om_gpu_input(b, 0)->dtype) return "its operands differ in type";
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (m->rows > INT32_MAX || m->cols > INT32_MAX || m->depth > INT32_MAX ||
      p->cut.groups > INT32_MAX) {
    return "it has more rows, columns or terms than the kernel counts";
  }
  const uint64_t matrix_ns = om_gpu_matrix_cost(b, m);
  const uint64_t sm90_ns = om_gpu_sm90_cost(b, m);
  if (matrix_ns < p->cut.cost_ns || sm90_ns < p->cut.cost_ns) {
    om_gpu_dispatch *d = NULL;
    const char *reason = sm90_ns < matrix_ns ? om_gpu_bind_sm90(b, m, p->is_b_turned, &d)
                                             : om_gpu_bind_matrix(b, m, p->is_b_turned, &d);
    return reason ? reason : finish(b, p, d);
  }
  const char *reason = spread_batch(b, p);
  if (reason) return reason;
  if (is_above_binding(b)) return bind_parts(b, p);
  return bind_part(b, p, &(om_product_part){.cols = m->cols});
}

static const char *bind_matmul(om_gpu_binder *b) {
  om_product p = {0};
  om_matmul_describe(om_gpu_input(b, 0), om_gpu_input(b, 1), &p.m);
  return bind_product(b, &p);
}

static const char *bind_gemm(om_gpu_binder *b) {
  om_product p = {.gemm = om_gpu_binder_node(b)->params};
  p.is_b_turned = p.gemm->is_b_transposed;
  om_gemm_describe(p.gemm, om_gpu_input(b, 0), om_gpu_input(b, 1), &p.m);
  return bind_product(b, &p);
}

const om_gpu_op om_gpu_ops_matmul[] = {
    {.domain = "",
     .type = "Gemm",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .splits = 1 << 1,
     .bind = bind_gemm},
    {.domain = "",
     .type = "MatMul",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .splits = 1 << 1,
     .bind = bind_matmul},
    {.type = NULL},
};
