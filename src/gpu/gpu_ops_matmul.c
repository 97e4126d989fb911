/* Matrix products on the device: MatMul, Gemm.
 *
 * A constant B is stored with its rows padded to four floats (and turned, where Gemm says so), so
 * that the kernel reads quads; other operands are read as they lie, by quads where their shapes
 * allow it. Gemm's alpha and C are items of the product's chain.
 */
#include "abi/matmul_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_matmul.h"

enum {
  OM_CHAIN_ADD = 64, /* numbers of ops/elementwise.def */
  OM_CHAIN_MUL = 66,
  OM_MATMUL_BATCH_AXES = 3,
};

/* The kernels by tile, quads and exactness. */
static const struct {
  uint32_t tile;
  om_shader shaders[2][2];
} tiles[] = {
    {64,
     {{OM_SHADER_MATMUL_TILE64, OM_SHADER_MATMUL_TILE64_EXACT},
      {OM_SHADER_MATMUL_TILE64_VEC4, OM_SHADER_MATMUL_TILE64_VEC4_EXACT}}},
    {32,
     {{OM_SHADER_MATMUL_TILE32, OM_SHADER_MATMUL_TILE32_EXACT},
      {OM_SHADER_MATMUL_TILE32_VEC4, OM_SHADER_MATMUL_TILE32_VEC4_EXACT}}},
    {16,
     {{OM_SHADER_MATMUL_TILE16, OM_SHADER_MATMUL_TILE16_EXACT},
      {OM_SHADER_MATMUL_TILE16_VEC4, OM_SHADER_MATMUL_TILE16_VEC4_EXACT}}},
};

static uint64_t pieces(uint64_t count, uint64_t size) {
  return (count + size - 1) / size;
}

/* The largest tile that still gives every core of a large device work; else the smallest. */
static size_t choose_tile(const om_matmul *m, uint64_t batch) {
  enum { ENOUGH_GROUPS = 128 };
  for (size_t i = 0; i + 1 < OM_COUNT_OF(tiles); ++i) {
    const uint64_t tile = tiles[i].tile;
    if (m->rows <= tile / 2 || m->cols <= tile / 2) continue; /* half of a tile would be idle */
    if (pieces(m->rows, tile) * pieces(m->cols, tile) * batch >= ENOUGH_GROUPS) return i;
  }
  return OM_COUNT_OF(tiles) - 1;
}

/* ---- B as a constant ---- */

typedef struct om_b_layout {
  size_t matrices, depth, cols;
  size_t pitch;   /* floats from row to row: cols rounded up to four */
  bool is_turned; /* the source is [cols, depth] */
} om_b_layout;

static void fill_b(const void *arg, const void *source, void *target) {
  const om_b_layout *layout = arg;
  const float *from = source;
  float *to = target;
  for (size_t row = 0; row < layout->matrices * layout->depth; ++row) {
    const size_t k = row % layout->depth;
    const float *matrix = from + row / layout->depth * layout->depth * layout->cols;
    for (size_t col = 0; col < layout->pitch; ++col) {
      const size_t at = layout->is_turned ? col * layout->depth + k : k * layout->cols + col;
      to[row * layout->pitch + col] = col < layout->cols ? matrix[at] : 0.0f;
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
  };
  params->b_depth_stride = (uint32_t)(is_turned ? 1 : m->cols);
  params->b_col_stride = (uint32_t)(is_turned ? m->depth : 1);
  if (!tensor->data || (!is_turned && layout.pitch == layout.cols)) return om_gpu_read(b, 1);
  const uint64_t bytes = (uint64_t)layout.matrices * m->depth * layout.pitch * sizeof(float);
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

static bool takes_quads(const om_matmul_params *p) {
  const uint32_t all = p->depth | p->a_row_stride | p->a_stride_0 | p->a_stride_1 | p->a_stride_2 |
                       p->b_depth_stride | p->b_stride_0 | p->b_stride_1 | p->b_stride_2;
  return all % 4 == 0 && p->a_depth_stride == 1 && p->b_col_stride == 1;
}

static const char *bind_product(om_gpu_binder *b,
                                const om_matmul *m,
                                bool is_b_turned,
                                om_gpu_dispatch **out_dispatch) {
  const uint64_t batch = om_strided_elems(&m->batch);
  const size_t size = choose_tile(m, batch);
  const uint64_t tile = tiles[size].tile;
  om_matmul_params params = {
      .row_tiles = (uint32_t)pieces(m->rows, tile),
      .col_tiles = (uint32_t)pieces(m->cols, tile),
      .rows = (uint32_t)m->rows,
      .cols = (uint32_t)m->cols,
      .depth = (uint32_t)m->depth,
      .a_row_stride = (uint32_t)m->a_row_stride,
      .a_depth_stride = (uint32_t)m->a_depth_stride,
  };
  const uint64_t groups = batch * params.row_tiles * params.col_tiles;
  if (om_gpu_input(b, 1)->dtype != OM_DTYPE_F32) return "its operands are not both float32";
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (m->rows > INT32_MAX || m->cols > INT32_MAX || m->depth > INT32_MAX || groups > INT32_MAX) {
    return "it has more rows, columns or terms than the kernel counts";
  }
  if (!set_batch(m, &params)) return "its batch repeats in more than three runs of axes";
  params.group_count = (uint32_t)groups;
  const om_gpu_operand a_operand = om_gpu_read(b, 0);
  const om_gpu_operand b_operand = bind_b(b, m, is_b_turned, &params);
  const om_gpu_operand y_operand = om_gpu_write(b, 0);
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, tiles[size].shaders[takes_quads(&params)][is_exact]);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = a_operand;
  d->operands[1] = b_operand;
  d->operands[2] = y_operand;
  d->operand_count = 3;
  om_gpu_spread_groups(b, groups, d->groups);
  d->has_chain = true;
  d->chain_value = y_operand.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * batch * m->rows * m->cols * m->depth;
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

typedef struct om_scaled_c {
  const float *data;
  size_t elems;
  float beta;
} om_scaled_c;

static void fill_c(const void *arg, const void *source, void *target) {
  (void)source; /* scaled by beta, it is not found again by its data alone */
  const om_scaled_c *c = arg;
  for (size_t i = 0; i < c->elems; ++i) ((float *)target)[i] = c->data[i] * c->beta;
}

/* Adds C, which broadcasts to rows by cols, to the product's chain. */
static const char *add_c(om_gpu_binder *b, const om_tensor *c, float beta, om_gpu_dispatch *d) {
  const om_tensor *y = om_gpu_output(b, 0);
  const size_t elems = om_tensor_elems(c);
  const om_scaled_c scaled = {.data = c->data, .elems = elems, .beta = beta};
  om_chain_item item = {.op = OM_CHAIN_ADD, .source = OM_CHAIN_VECTOR};
  if (!c->data && beta != 1.0f) return "beta is not 1, and C is only known at run time";
  om_gpu_operand operand =
      beta == 1.0f
          ? om_gpu_read(b, 2)
          : om_gpu_made_constant(b, UINT32_MAX, "scaled", elems * sizeof(float), fill_c, &scaled);
  if (elems == om_tensor_elems(y)) {
    item.source = OM_CHAIN_TENSOR;
  } else if (elems != 1) {
    const bool is_row = c->dims[c->rank - 1] != 1;
    d->chain.inner = is_row ? 1 : (uint32_t)y->dims[1];
    d->chain.channels = (uint32_t)elems;
  }
  return om_gpu_chain_add(&d->chain, item, &operand, NULL, 0) ? NULL : om_gpu_no_memory;
}

static const char *bind_gemm(om_gpu_binder *b) {
  const om_gemm_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *c = om_gpu_input(b, 2);
  const om_chain_item scale = {.op = OM_CHAIN_MUL, .source = OM_CHAIN_SCALAR};
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
     .dtypes = OM_DT(OM_DTYPE_F32),
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_gemm},
    {.domain = "",
     .type = "MatMul",
     .dtypes = OM_DT(OM_DTYPE_F32),
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_matmul},
    {.type = NULL},
};
