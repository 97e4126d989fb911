/* A product is cut into parts of 128 rows by 32 columns, which threads take in any order: each
 * result is summed inside one part. A part goes strip by strip, 16 columns that are the lanes of
 * om_product_group.h, and group by group. What many rows read of b is copied into a panel first,
 * since rows of b are far apart and would meet in few sets of the cache:
 *
 *     slot   panel: 128 terms x 16 lanes     totals: 128 rows x 16 lanes, of a strip that is cut
 */
#include "cpu/exact/om_matmul.h"

#include "base/om_thread.h"

enum {
  LANES = OM_GROUP_LANES,
  PART_ROWS = 128,
  PART_COLS = 2 * LANES,
  VECTOR_ROWS = 4,          /* up to here rows go one by one, over many columns */
  VECTOR_COLS = 16 * LANES, /* of a part of so few rows */
  FEW_ROWS = 16,            /* up to here a panel costs as much as it saves */
  MAX_SLOTS = 64,           /* pieces of parallel work, each with its own scratch */
  SLOT_ELEMS = (OM_PRODUCT_GROUP + PART_ROWS) * LANES,
};

typedef void (*group_fn)(const om_product_group *g);

typedef struct matmul_job {
  const om_ctx *ctx;
  const om_matmul *m;
  const uint8_t *a, *b;
  uint8_t *y;
  uint8_t *scratch; /* NULL: no slot is needed */
  size_t elem_bytes;
  group_fn sum;
  group_fn sum_vector; /* NULL: there is none for the type */
  size_t part_cols;
  size_t row_parts, col_parts, part_count, slot_count;
} matmul_job;

typedef struct part {
  const uint8_t *a, *b; /* of the first row, of the first column */
  uint8_t *y;
  size_t rows, cols;
} part;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

static size_t part_cols_of(const om_matmul *m) {
  return m->rows <= VECTOR_ROWS ? VECTOR_COLS : PART_COLS;
}

static size_t parts_of(const om_matmul *m) {
  return om_strided_elems(&m->batch) * ((m->rows + PART_ROWS - 1) / PART_ROWS) *
         ((m->cols + part_cols_of(m) - 1) / part_cols_of(m));
}

/* Whether some strip of b goes through a panel. */
static bool needs_slots(const om_matmul *m) {
  return m->rows > FEW_ROWS || m->cols % LANES != 0 || m->b_col_stride != 1;
}

size_t om_matmul_scratch_bytes(const om_matmul *m, size_t elem_bytes) {
  return needs_slots(m) ? at_most(parts_of(m), MAX_SLOTS) * SLOT_ELEMS * elem_bytes : 0;
}

static part part_at(const matmul_job *job, size_t index) {
  const om_matmul *m = job->m;
  const size_t col = index % job->col_parts * job->part_cols;
  const size_t row = index / job->col_parts % job->row_parts * PART_ROWS;
  size_t element = index / job->col_parts / job->row_parts;
  size_t a_offset = row * m->a_row_stride;
  size_t b_offset = col * m->b_col_stride;
  const size_t y_offset = (element * m->rows + row) * m->cols + col;
  for (uint32_t axis = m->batch.rank; axis-- > 0;) {
    const size_t extent = (size_t)m->batch.extents[axis];
    a_offset += element % extent * (size_t)m->batch.source_strides[axis];
    b_offset += element % extent * (size_t)m->batch.target_strides[axis];
    element /= extent;
  }
  return (part){.a = job->a + a_offset * job->elem_bytes,
                .b = job->b + b_offset * job->elem_bytes,
                .y = job->y + y_offset * job->elem_bytes,
                .rows = at_most(m->rows - row, PART_ROWS),
                .cols = at_most(m->cols - col, job->part_cols)};
}

/* Copies `terms` rows of `width` columns of b, with zeros behind them. */
#define OM_PACK(type)                                                                  \
  static void pack_##type(                                                             \
      const om_matmul *m, const type *from, size_t terms, size_t width, type *panel) { \
    const size_t step = m->b_depth_stride;                                             \
    if (width < LANES) memset(panel, 0, terms *LANES * sizeof *panel);                 \
    if (m->b_col_stride == 1 && width == LANES) {                                      \
      for (size_t k = 0; k < terms; ++k) {                                             \
        memcpy(panel + k * LANES, from + k * step, LANES * sizeof *panel);             \
      }                                                                                \
      return;                                                                          \
    }                                                                                  \
    for (size_t lane = 0; lane < width; ++lane, from += m->b_col_stride, ++panel) {    \
      for (size_t k = 0; k < terms; ++k) panel[k * LANES] = from[k * step];            \
    }                                                                                  \
  }
OM_PACK(uint32_t)
OM_PACK(uint64_t)

typedef uint32_t quad __attribute__((vector_size(16)));

/* The same of a b that is turned, four columns by four terms at a time. */
static void pack_turned(size_t col_stride, const uint32_t *from, size_t terms, uint32_t *panel) {
  for (size_t lane = 0; lane < LANES; lane += 4, from += 4 * col_stride) {
    for (size_t k = 0; k < terms; k += 4) {
      quad in[4], half[4], out[4];
      for (size_t i = 0; i < 4; ++i) memcpy(&in[i], from + i * col_stride + k, sizeof in[i]);
      half[0] = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
      half[1] = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
      half[2] = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
      half[3] = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
      out[0] = __builtin_shufflevector(half[0], half[1], 0, 1, 4, 5);
      out[1] = __builtin_shufflevector(half[0], half[1], 2, 3, 6, 7);
      out[2] = __builtin_shufflevector(half[2], half[3], 0, 1, 4, 5);
      out[3] = __builtin_shufflevector(half[2], half[3], 2, 3, 6, 7);
      for (size_t i = 0; i < 4; ++i) memcpy(panel + (k + i) * LANES + lane, &out[i], sizeof out[i]);
    }
  }
}

static void pack(
    const om_matmul *m, size_t elem_bytes, const void *b, size_t terms, size_t width, void *panel) {
  if (elem_bytes == 8) {
    pack_uint64_t(m, b, terms, width, panel);
  } else if (m->b_depth_stride == 1 && width == LANES && terms % 4 == 0) {
    pack_turned(m->b_col_stride, b, terms, panel);
  } else {
    pack_uint32_t(m, b, terms, width, panel);
  }
}

/* Columns [col, col + width) of a part. */
static void run_strip(
    const matmul_job *job, const part *p, size_t col, size_t width, uint8_t *slot) {
  const om_matmul *m = job->m;
  const size_t bytes = job->elem_bytes;
  const bool is_whole = width == LANES;
  const bool is_packed = !is_whole || p->rows > FEW_ROWS || m->b_col_stride != 1;
  uint8_t *y = p->y + col * bytes;
  uint8_t *totals = is_whole ? y : slot + OM_PRODUCT_GROUP * LANES * bytes;
  om_product_group g = {.w_row_stride = m->a_row_stride,
                        .w_term_stride = m->a_depth_stride,
                        .x_stride = is_packed ? LANES : m->b_depth_stride,
                        .y = totals,
                        .y_stride = is_whole ? m->cols : LANES,
                        .rows = p->rows};
  for (size_t k = 0; k < m->depth && !om_is_cancelled(job->ctx); k += OM_PRODUCT_GROUP) {
    const uint8_t *b = p->b + (k * m->b_depth_stride + col * m->b_col_stride) * bytes;
    g.terms = at_most(m->depth - k, OM_PRODUCT_GROUP);
    g.is_first = k == 0;
    g.w = p->a + k * m->a_depth_stride * bytes;
    g.x = is_packed ? slot : b;
    if (is_packed) pack(m, bytes, b, g.terms, width, slot);
    job->sum(&g);
  }
  for (size_t row = 0; !is_whole && row < p->rows; ++row) {
    memcpy(y + row * m->cols * bytes, totals + row * LANES * bytes, width * bytes);
  }
}

/* The whole strips of few rows, side by side; returns their columns. Memory decides here: a piece
 * of each row of b is read at once, and the cache has it for the rows that follow. */
static size_t run_vector(const matmul_job *job, const part *p) {
  const om_matmul *m = job->m;
  om_product_group g = {
      .x_stride = m->b_depth_stride, .w_term_stride = m->a_depth_stride, .rows = p->cols / LANES};
  if (!job->sum_vector || m->rows > VECTOR_ROWS || m->b_col_stride != 1) return 0;
  for (size_t k = 0; k < m->depth && !om_is_cancelled(job->ctx); k += OM_PRODUCT_GROUP) {
    g.terms = at_most(m->depth - k, OM_PRODUCT_GROUP);
    g.is_first = k == 0;
    g.x = p->b + k * m->b_depth_stride * job->elem_bytes;
    for (size_t row = 0; row < p->rows; ++row) {
      g.w = p->a + (row * m->a_row_stride + k * m->a_depth_stride) * job->elem_bytes;
      g.y = p->y + row * m->cols * job->elem_bytes;
      job->sum_vector(&g);
    }
  }
  return g.rows * LANES;
}

static void run_slots(void *arg, size_t begin, size_t end) {
  const matmul_job *job = arg;
  for (size_t slot = begin; slot < end; ++slot) {
    uint8_t *own = job->scratch ? job->scratch + slot * SLOT_ELEMS * job->elem_bytes : NULL;
    size_t index = job->part_count * slot / job->slot_count;
    const size_t last = job->part_count * (slot + 1) / job->slot_count;
    for (; index < last && !om_is_cancelled(job->ctx); ++index) {
      const part p = part_at(job, index);
      for (size_t col = run_vector(job, &p); col < p.cols; col += LANES) {
        run_strip(job, &p, col, at_most(p.cols - col, LANES), own);
      }
    }
  }
}

static void run(om_ctx *ctx, matmul_job *job) {
  const om_matmul *m = job->m;
  if (m->depth == 0) {
    memset(job->y, 0, om_strided_elems(&m->batch) * m->rows * m->cols * job->elem_bytes);
    return;
  }
  job->ctx = ctx;
  job->row_parts = (m->rows + PART_ROWS - 1) / PART_ROWS;
  job->part_cols = part_cols_of(m);
  job->col_parts = (m->cols + job->part_cols - 1) / job->part_cols;
  job->part_count = parts_of(m);
  job->slot_count = at_most(job->part_count, MAX_SLOTS);
  if (!needs_slots(m)) job->scratch = NULL;
  om_parallel_for(ctx, job->slot_count, 1, run_slots, job);
}

#define OM_MATMUL(suffix, type, result, vector)                                                  \
  void om_matmul_##suffix(                                                                       \
      om_ctx *ctx, const om_matmul *m, const type *a, const type *b, result *y, void *scratch) { \
    matmul_job job = {.m = m,                                                                    \
                      .a = (const uint8_t *)a,                                                   \
                      .b = (const uint8_t *)b,                                                   \
                      .y = (uint8_t *)y,                                                         \
                      .scratch = scratch,                                                        \
                      .elem_bytes = sizeof *y,                                                   \
                      .sum = om_product_group_##suffix,                                          \
                      .sum_vector = vector};                                                     \
    run(ctx, &job);                                                                              \
  }
OM_MATMUL(f32, float, float, om_product_vector_f32)
OM_MATMUL(f64, double, double, om_product_vector_f64)
OM_MATMUL(u32, uint32_t, uint32_t, NULL)
OM_MATMUL(u64, uint64_t, uint64_t, NULL)
