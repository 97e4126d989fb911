/* Matrix products on the device: MatMul, Gemm.
 *
 * A constant B is stored with its rows padded to four floats (and turned, where Gemm says so), so
 * that the kernel reads quads; other operands are read as they lie, by quads where their shapes
 * allow it. Gemm's alpha and C are items of the product's chain.
 *
 * In fast mode most products by a constant run on matrix hardware instead, where there is one
 * (om_gpu_matmul_matrix.c).
 *
 * Which tile, and whether the depth is cut into chunks, is estimated from the number of
 * workgroups and their steps. It changes no bit of an exact result.
 */
#include "abi/matmul_params.h"
#include "abi/matmul_sum_params.h"
#include "gpu/om_gpu_matmul.h"

enum { OM_MATMUL_BATCH_AXES = 3 };

/* The kernels by tile, quads, type and exactness, and their cost: nanoseconds that a workgroup
 * takes for a step where it is alone on its core, and those that each further one adds. Measured on
 * an NVIDIA H200 (2026-11); only the proportions matter. */
static const struct {
  uint32_t tile, step_terms;
  uint32_t alone_ns, further_ns;
  uint32_t fill_percent;       /* of a step, before the first is there */
  om_gpu_forms forms[2];       /* by quads */
  om_shader half_chunks[2][2]; /* by quads and exactness: float16, with float32 sums */
} tiles[] = {
    {64,
     32,
     1300,
     1160,
     100,
     {OM_GPU_FORMS(MATMUL_TILE64), OM_GPU_FORMS(MATMUL_TILE64_VEC4)},
     {{OM_SHADER_MATMUL_TILE64_CHUNKS_HALF, OM_SHADER_MATMUL_TILE64_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE64_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE64_VEC4_CHUNKS_HALF_EXACT}}},
    {32,
     32,
     850,
     330,
     100,
     {OM_GPU_FORMS(MATMUL_TILE32), OM_GPU_FORMS(MATMUL_TILE32_VEC4)},
     {{OM_SHADER_MATMUL_TILE32_CHUNKS_HALF, OM_SHADER_MATMUL_TILE32_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE32_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE32_VEC4_CHUNKS_HALF_EXACT}}},
    {16,
     128,
     1160,
     700,
     50,
     {OM_GPU_FORMS(MATMUL_TILE16), OM_GPU_FORMS(MATMUL_TILE16_VEC4)},
     {{OM_SHADER_MATMUL_TILE16_CHUNKS_HALF, OM_SHADER_MATMUL_TILE16_CHUNKS_HALF_EXACT},
      {OM_SHADER_MATMUL_TILE16_VEC4_CHUNKS_HALF, OM_SHADER_MATMUL_TILE16_VEC4_CHUNKS_HALF_EXACT}}},
};

static uint64_t pieces(uint64_t count, uint64_t size) {
  return (count + size - 1) / size;
}

/* How a product is cut. */
typedef struct om_matmul_cut {
  size_t tile;          /* index into tiles */
  uint64_t groups;      /* workgroups */
  uint64_t chunk_count; /* above 1: a second pass adds them */
  uint64_t chunk_depth;
  uint64_t cost_ns;
} om_matmul_cut;

static uint64_t tile_groups(const om_matmul *m, size_t tile) {
  return om_strided_elems(&m->batch) * pieces(m->rows, tiles[tile].tile) *
         pieces(m->cols, tiles[tile].tile);
}

/* Nanoseconds that the groups of one pass take on a device of many cores. */
static uint64_t cut_cost(const om_matmul_cut *cut) {
  enum { CORES = 132 };
  const uint64_t steps = pieces(cut->chunk_depth, tiles[cut->tile].step_terms);
  return (steps * 100 + tiles[cut->tile].fill_percent) *
         (tiles[cut->tile].alone_ns + tiles[cut->tile].further_ns * (cut->groups - 1) / CORES) /
         100;
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
        cut.chunk_count = pieces(m->depth, cut.chunk_depth);
        cut.cost_ns = SECOND_PASS_NS;
        if (cut.chunk_count * result_bytes > MOST_SCRATCH_BYTES) break;
      }
      cut.groups = tile_groups(m, tile) * cut.chunk_count;
      cut.cost_ns += cut_cost(&cut);
      if (cut.cost_ns < best.cost_ns) best = cut;
    }
  }
  return best;
}

/* ---- B as a constant ---- */

typedef struct om_b_layout {
  size_t matrices, depth, cols;
  size_t pitch; /* elements from row to row: cols rounded up to four */
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
    for (size_t col = 0; col < layout->cols; ++col) {
      const size_t at = layout->is_turned ? col * layout->depth + k : k * layout->cols + col;
      memcpy(to + (row * layout->pitch + col) * bytes, from + (matrix + at) * bytes, bytes);
    }
  }
}

/* Binds input 1 and sets the strides that tell how it lies. */
static om_gpu_operand bind_b(om_gpu_binder *b,
                             const om_matmul *m,
                             bool is_turned,
                             om_matmul_params *params) {
  const om_tensor *tensor = om_gpu_input(b, 1);
  om_b_layout layout = {
      .matrices = om_tensor_elems(tensor) / (m->depth * m->cols),
      .depth = m->depth,
      .cols = m->cols,
      .pitch = om_size_align(m->cols, 4),
      .is_turned = is_turned,
      .elem_bytes = om_dtype_bits(tensor->dtype) / 8,
  };
  params->b_depth_stride = (uint32_t)(is_turned ? 1 : m->cols);
  params->b_col_stride = (uint32_t)(is_turned ? m->depth : 1);
  if (!tensor->data || (!is_turned && layout.pitch == layout.cols)) return om_gpu_read(b, 1);
  const uint64_t bytes = (uint64_t)layout.matrices * m->depth * layout.pitch * layout.elem_bytes;
  if (bytes > om_gpu_binder_limits(b)->max_binding_bytes) return om_gpu_read(b, 1);
  uint32_t *const strides[] = {&params->b_stride_0, &params->b_stride_1, &params->b_stride_2};
  for (size_t i = 0; i < OM_COUNT_OF(strides); ++i) {
    *strides[i] = *strides[i] / (uint32_t)m->cols * (uint32_t)layout.pitch;
  }
  params->b_depth_stride = (uint32_t)layout.pitch;
  params->b_col_stride = 1;
  const char *recipe = is_turned ? "turned, rows of quads" : "rows of quads";
  return om_gpu_made_constant(b, 1, recipe, bytes, fill_b, &layout);
}

/* ---- The product ---- */

/* The batch as three axes; false where it has more. */
static bool set_batch(const om_matmul *m, om_matmul_params *params) {
  const om_strided *batch = &m->batch;
  uint32_t extents[OM_MATMUL_BATCH_AXES] = {1, 1, 1};
  uint32_t a[OM_MATMUL_BATCH_AXES] = {0};
  uint32_t b[OM_MATMUL_BATCH_AXES] = {0};
  if (batch->rank > OM_MATMUL_BATCH_AXES) return false;
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
  return true;
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

/* Few rows are bound by reading b, which the rows kernel does best; it needs b's rows in quads. */
static bool takes_rows_kernel(const om_matmul_params *p) {
  enum { FEW_ROWS = 8 };
  return p->rows <= FEW_ROWS && are_quads(0, p);
}

static om_gpu_dispatch *add_product(om_gpu_binder *b,
                                    om_shader shader,
                                    const om_matmul_params *params,
                                    const om_gpu_operand operands[3]) {
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  memcpy(d->operands, operands, 3 * sizeof *operands);
  d->operand_count = 3;
  om_gpu_spread_groups(b, params->group_count, d->groups);
  d->has_chain = om_shader_has_chain(shader);
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * (uint64_t)om_tensor_elems(om_gpu_output(b, 0)) * params->depth;
  return d;
}

om_gpu_dispatch *om_gpu_add_chunk_sum(om_gpu_binder *b,
                                      om_gpu_operand chunks,
                                      uint64_t chunk_count) {
  const om_matmul_sum_params params = {
      .elems = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)),
      .chunk_count = (uint32_t)chunk_count,
  };
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d =
      om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, MATMUL_SUM, om_gpu_output(b, 0)->dtype));
  if (!d) return NULL;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = chunks;
  d->operands[1] = to;
  d->operand_count = 2;
  om_gpu_spread_groups(b, pieces(params.elems, 256), d->groups);
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = (uint64_t)params.elems * chunk_count;
  return d;
}

/* *out_dispatch is the one that makes the result, with an empty chain. */
static const char *bind_product(om_gpu_binder *b,
                                const om_matmul *m,
                                bool is_b_turned,
                                om_gpu_dispatch **out_dispatch) {
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  if (m->depth == 0) return "it adds no terms";
  om_matmul_cut cut = choose_cut(m, is_exact);
  om_matmul_params params = {
      .rows = (uint32_t)m->rows,
      .cols = (uint32_t)m->cols,
      .depth = (uint32_t)m->depth,
      .a_row_stride = (uint32_t)m->a_row_stride,
      .a_depth_stride = (uint32_t)m->a_depth_stride,
  };
  if (om_gpu_input(b, 1)->dtype != dtype) return "its operands differ in type";
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (m->rows > INT32_MAX || m->cols > INT32_MAX || m->depth > INT32_MAX ||
      cut.groups > INT32_MAX) {
    return "it has more rows, columns or terms than the kernel counts";
  }
  if (om_gpu_takes_matrix(b, m, cut.cost_ns)) {
    return om_gpu_bind_matrix(b, m, is_b_turned, out_dispatch);
  }
  if (!set_batch(m, &params)) return "its batch repeats in more than three runs of axes";
  om_gpu_operand operands[3] = {om_gpu_read(b, 0)};
  operands[1] = bind_b(b, m, is_b_turned, &params);
  om_shader shader = om_gpu_form(b, &tiles[cut.tile].forms[takes_quads(&params)], dtype);
  if (cut.chunk_count > 1 && dtype == OM_DTYPE_F16) {
    shader = tiles[cut.tile].half_chunks[takes_quads(&params)][is_exact];
  }
  uint64_t tile_rows = tiles[cut.tile].tile;
  uint64_t tile_cols = tile_rows;
  if (takes_rows_kernel(&params)) {
    shader = OM_GPU_KERNEL(b, MATMUL_ROWS, dtype);
    tile_rows = 1;
    tile_cols = 32;
    cut = (om_matmul_cut){.chunk_count = 1, .chunk_depth = m->depth};
  }
  params.row_tiles = (uint32_t)pieces(m->rows, tile_rows);
  params.col_tiles = (uint32_t)pieces(m->cols, tile_cols);
  params.chunk_count = (uint32_t)cut.chunk_count;
  params.chunk_depth = (uint32_t)cut.chunk_depth;
  params.group_count = (uint32_t)(om_strided_elems(&m->batch) * cut.chunk_count) *
                       params.row_tiles * params.col_tiles;
  const uint64_t result_bytes = om_tensor_elems(om_gpu_output(b, 0)) * sizeof(float);
  operands[2] =
      cut.chunk_count > 1 ? om_gpu_scratch(b, cut.chunk_count * result_bytes) : om_gpu_write(b, 0);
  om_gpu_dispatch *d = add_product(b, shader, &params, operands);
  if (d && cut.chunk_count > 1) d = om_gpu_add_chunk_sum(b, operands[2], cut.chunk_count);
  if (!d) return om_gpu_no_memory;
  *out_dispatch = d;
  return NULL;
}

static const char *bind_matmul(om_gpu_binder *b) {
  om_gpu_dispatch *d = NULL;
  om_matmul m;
  om_matmul_describe(om_gpu_input(b, 0), om_gpu_input(b, 1), &m);
  return bind_product(b, &m, false, &d);
}

/* ---- Gemm ---- */

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

static const char *bind_gemm(om_gpu_binder *b) {
  const om_gemm_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *c = om_gpu_input(b, 2);
  const om_chain_item scale = {.op = OM_CHAIN_Mul, .source = OM_CHAIN_SCALAR};
  om_gpu_dispatch *d = NULL;
  om_matmul m;
  om_gemm_describe(p, om_gpu_input(b, 0), om_gpu_input(b, 1), &m);
  const char *reason = bind_product(b, &m, p->is_b_transposed, &d);
  if (reason) return reason;
  if (p->alpha != 1.0f && !om_gpu_chain_add(&d->chain, scale, NULL, &p->alpha, 1)) {
    return om_gpu_no_memory;
  }
  return c && p->beta != 0.0f ? add_c(b, c, p->beta, d) : NULL;
}

const om_gpu_op om_gpu_ops_matmul[] = {
    {.domain = "",
     .type = "Gemm",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_gemm},
    {.domain = "",
     .type = "MatMul",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_matmul},
    {.type = NULL},
};
