/* A product is cut into parts of 32 rows by 64 columns, which threads take in any order: each
 * result is summed inside one part. Parts are cut into tiles (om_matmul_tile.h).
 */
#include "cpu/exact/om_matmul.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"

/* Without optimisation the tiles' vectors do not live in registers: a debug build would crawl, and
 * its frames would be above the limit. */
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC optimize("O2")
#endif

/* Unrolled, a tile's sums are registers. */
#if defined(__GNUC__) && !defined(__clang__)
#  define OM_UNROLL _Pragma("GCC unroll 4")
#else
#  define OM_UNROLL
#endif

typedef struct om_matmul_part {
  size_t a_offset, b_offset, y_offset; /* of the batch's element */
  size_t row_begin, row_end, col_begin, col_end;
} om_matmul_part;

typedef void (*om_matmul_part_fn)(
    const om_matmul *m, const void *a, const void *b, void *y, const om_matmul_part *part);

typedef float om_vector_f32 __attribute__((vector_size(32)));
typedef double om_vector_f64 __attribute__((vector_size(32)));

#define OM_TILE_TYPE       float
#define OM_TILE_VECTOR     om_vector_f32
#define OM_TILE_LANES      8
#define OM_TILE_NAME(name) name##_f32
#include "cpu/exact/om_matmul_tile.h"
#undef OM_TILE_TYPE
#undef OM_TILE_VECTOR
#undef OM_TILE_LANES
#undef OM_TILE_NAME

#define OM_TILE_TYPE       double
#define OM_TILE_VECTOR     om_vector_f64
#define OM_TILE_LANES      4
#define OM_TILE_NAME(name) name##_f64
#include "cpu/exact/om_matmul_tile.h"

#define OM_INTEGER_PART(name, type)                                                          \
  static void name(const om_matmul *m,                                                       \
                   const void *a_data,                                                       \
                   const void *b_data,                                                       \
                   void *y_data,                                                             \
                   const om_matmul_part *part) {                                             \
    for (size_t row = part->row_begin; row < part->row_end; ++row) {                         \
      const type *a = (const type *)a_data + part->a_offset + row * m->a_row_stride;         \
      type *y = (type *)y_data + part->y_offset + row * m->cols;                             \
      for (size_t col = part->col_begin; col < part->col_end; ++col) y[col] = 0;             \
      for (size_t k = 0; k < m->depth; ++k) {                                                \
        const type x = a[k * m->a_depth_stride];                                             \
        const type *b = (const type *)b_data + part->b_offset + k * m->cols;                 \
        for (size_t col = part->col_begin; col < part->col_end; ++col) y[col] += x * b[col]; \
      }                                                                                      \
    }                                                                                        \
  }

OM_INTEGER_PART(part_u32, uint32_t)
OM_INTEGER_PART(part_u64, uint64_t)

enum { OM_PART_ROWS = 32, OM_PART_COLS = 64 };

typedef struct om_matmul_job {
  const om_matmul *m;
  const void *a, *b;
  void *y;
  om_matmul_part_fn fn;
  size_t row_parts, col_parts; /* of one element of the batch */
} om_matmul_job;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

static void run_parts(void *arg, size_t begin, size_t end) {
  const om_matmul_job *job = arg;
  const om_matmul *m = job->m;
  for (size_t i = begin; i < end; ++i) {
    const size_t col_part = i % job->col_parts;
    const size_t row_part = i / job->col_parts % job->row_parts;
    size_t element = i / job->col_parts / job->row_parts;
    om_matmul_part part = {
        .y_offset = element * m->rows * m->cols,
        .row_begin = row_part * OM_PART_ROWS,
        .row_end = at_most((row_part + 1) * OM_PART_ROWS, m->rows),
        .col_begin = col_part * OM_PART_COLS,
        .col_end = at_most((col_part + 1) * OM_PART_COLS, m->cols),
    };
    for (uint32_t axis = m->batch.rank; axis-- > 0;) {
      const size_t extent = (size_t)m->batch.extents[axis];
      part.a_offset += element % extent * (size_t)m->batch.source_strides[axis];
      part.b_offset += element % extent * (size_t)m->batch.target_strides[axis];
      element /= extent;
    }
    job->fn(m, job->a, job->b, job->y, &part);
  }
}

static void run(om_ctx *ctx,
                const om_matmul *m,
                size_t elem_bytes,
                om_matmul_part_fn fn,
                const void *a,
                const void *b,
                void *y) {
  const size_t batch = om_strided_elems(&m->batch);
  om_matmul_job job = {
      .m = m,
      .a = a,
      .b = b,
      .y = y,
      .fn = fn,
      .row_parts = (m->rows + OM_PART_ROWS - 1) / OM_PART_ROWS,
      .col_parts = (m->cols + OM_PART_COLS - 1) / OM_PART_COLS,
  };
  if (m->depth == 0) {
    memset(y, 0, batch * m->rows * m->cols * elem_bytes);
    return;
  }
  om_parallel_for(ctx, batch * job.row_parts * job.col_parts, 1, run_parts, &job);
}

void om_matmul_f32(om_ctx *ctx, const om_matmul *m, const float *a, const float *b, float *y) {
  run(ctx, m, sizeof *y, part_f32, a, b, y);
}

void om_matmul_f64(om_ctx *ctx, const om_matmul *m, const double *a, const double *b, double *y) {
  run(ctx, m, sizeof *y, part_f64, a, b, y);
}

void om_matmul_u32(
    om_ctx *ctx, const om_matmul *m, const uint32_t *a, const uint32_t *b, uint32_t *y) {
  run(ctx, m, sizeof *y, part_u32, a, b, y);
}

void om_matmul_u64(
    om_ctx *ctx, const om_matmul *m, const uint64_t *a, const uint64_t *b, uint64_t *y) {
  run(ctx, m, sizeof *y, part_u64, a, b, y);
}
