/* A product is cut into strips of 32 columns by 128 rows, which threads take in any order. A strip
 * goes by 1024 terms at a time: those of b are brought into a panel (om_byte_group.h), whose sign
 * is the other one than a's.
 *
 *     scratch: [sums of a's rows] [a with its terms side by side, where they are not] [slots]
 *     slot:    [panel] [1, 1, ...: a row that gives the sums of b's columns] [their sums]
 *              [what zero points take off, factors, bias] [sums]
 */
#include "cpu/exact/om_matmul_bytes.h"

#include "base/om_thread.h"
#include "cpu/exact/om_byte_group.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_quantize.h"

enum {
  LANES = OM_BYTE_LANES,
  ROWS = 128,
  TERMS = 1024,
  MAX_SLOTS = 64, /* pieces of parallel work, each with its own scratch */
  GRAIN = 64,     /* rows of a, whose sums are taken at once */
  FEW_ROWS = 4,   /* for which a turned b is not brought into panels */
};

typedef struct slot {
  uint8_t panel[TERMS * LANES];
  uint8_t ones[TERMS];
  uint32_t col_sums[LANES];
  uint32_t taken[LANES];             /* off each column, by a zero point of a */
  float factors[LANES], bias[LANES]; /* of the strip's columns */
  uint32_t sums[ROWS * LANES];
} slot;

typedef struct job {
  const om_ctx *ctx; /* asked between panels whether the run is cancelled */
  const om_matmul_bytes *p;
  const uint8_t *a; /* terms side by side */
  size_t a_stride;
  uint32_t *row_sums; /* of a less its zero points; where b has any */
  bool has_a_zeros;
  bool has_b_zeros; /* as the panel's bytes have them */
  bool has_tiles;   /* om_byte_has_tiles */
  slot *slots;
  size_t row_parts, strips, part_count, slot_count;
} job;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

static size_t row_parts_of(const om_matmul *m) {
  return (m->rows + ROWS - 1) / ROWS;
}

static size_t strips_of(const om_matmul *m) {
  return (m->cols + LANES - 1) / LANES;
}

static size_t parts_of(const om_matmul *m) {
  return om_strided_elems(&m->batch) * row_parts_of(m) * strips_of(m);
}

static size_t sums_bytes(size_t a_rows) {
  return om_size_align(a_rows * sizeof(uint32_t), 64);
}

static size_t turned_bytes(const om_matmul *m, size_t a_rows) {
  return m->a_depth_stride == 1 ? 0 : om_size_align(a_rows * m->depth, 64);
}

size_t om_matmul_bytes_scratch(const om_matmul *m, size_t a_rows) {
  return sums_bytes(a_rows) + turned_bytes(m, a_rows) +
         at_most(parts_of(m), MAX_SLOTS) * sizeof(slot);
}

/* ---- Rows of a ---- */

static void sum_rows(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const size_t depth = j->p->m.depth;
  for (size_t row = begin; row < end; ++row) {
    const uint32_t sum = om_quantize_sum(j->a + row * j->a_stride, depth, j->p->is_a_signed);
    j->row_sums[row] = sum - (uint32_t)j->p->a_zeros[row] * (uint32_t)depth;
  }
}

/* ---- Panels ---- */

/* What gives b the other sign than a's. */
static uint8_t panel_flip(const om_matmul_bytes *p) {
  return p->is_a_signed == p->is_b_signed ? 0x80 : 0;
}

/* `terms` rows of `width` columns of b. */
static void pack(
    const om_matmul_bytes *p, const uint8_t *b, size_t terms, size_t width, uint8_t *panel) {
  const uint8_t flip = panel_flip(p);
  const size_t step = p->m.b_depth_stride;
  if (p->m.b_col_stride == 1) {
    om_byte_panel_fill(&(om_byte_panel){.from = b,
                                        .step = step,
                                        .terms = terms,
                                        .columns = LANES,
                                        .width = width,
                                        .flip = flip,
                                        .panel = panel});
    return;
  }
  for (size_t lane = 0; lane < width; ++lane) {
    const uint8_t *from = b + lane * p->m.b_col_stride;
    uint8_t *to = panel + lane * 4;
    size_t k = 0;
    for (; step == 1 && k + 4 <= terms; k += 4) {
      uint32_t four;
      memcpy(&four, from + k, sizeof four);
      four ^= flip * 0x01010101u;
      memcpy(to + k * LANES, &four, sizeof four);
    }
    for (; k < terms; ++k) to[k / 4 * LANES * 4 + k % 4] = from[k * step] ^ flip;
  }
}

static size_t depth_bytes(const om_matmul *m) {
  return (m->depth + 3) / 4 * 4 * LANES;
}

static bool is_dotted(const om_matmul *m, size_t rows) {
  return rows <= FEW_ROWS && m->b_depth_stride == 1 && m->b_col_stride != 1;
}

bool om_matmul_bytes_packs(const om_matmul *m) {
  for (uint32_t axis = 0; axis < m->batch.rank; ++axis) {
    if (m->batch.extents[axis] != 1 && m->batch.target_strides[axis] != 0) return false;
  }
  return m->depth > 0 && !is_dotted(m, m->rows);
}

size_t om_matmul_bytes_panels(const om_matmul *m) {
  return strips_of(m) * depth_bytes(m);
}

typedef struct packing {
  const om_matmul_bytes *p;
  uint8_t *panels;
} packing;

static void pack_strips(void *arg, size_t begin, size_t end) {
  const packing *own = arg;
  const om_matmul *m = &own->p->m;
  for (size_t i = begin; i < end; ++i) {
    const uint8_t *b = own->p->b + i * LANES * m->b_col_stride;
    pack(
        own->p, b, m->depth, at_most(m->cols - i * LANES, LANES), own->panels + i * depth_bytes(m));
  }
}

void om_matmul_bytes_pack(om_ctx *ctx, const om_matmul_bytes *p, uint8_t *panels) {
  packing own = {.p = p, .panels = panels};
  om_parallel_for(ctx, strips_of(&p->m), 4, pack_strips, &own);
}

/* ---- Strips ---- */

/* What the zero points of b's columns take off rows. */
OM_CLONES static void take_b_zeros(size_t rows,
                                   size_t width,
                                   const int32_t *restrict zeros,
                                   uint32_t flip,
                                   const uint32_t *restrict row_sums,
                                   uint32_t *restrict sums) {
  for (size_t row = 0; row < rows; ++row) {
    const uint32_t row_sum = row_sums[row];
    for (size_t i = 0; i < width; ++i) {
      sums[row * LANES + i] -= ((uint32_t)zeros[i] - flip) * row_sum;
    }
  }
}

/* What a zero point of a takes off a row. */
OM_CLONES static void multiply_sums(const uint32_t *col_sums, uint32_t a_zero, uint32_t *taken) {
  for (size_t i = 0; i < LANES; ++i) taken[i] = a_zero * col_sums[i];
}

OM_CLONES static void finish_sums(size_t rows,
                                  const uint32_t *restrict sums,
                                  const uint32_t *restrict taken,
                                  uint32_t *restrict y,
                                  size_t y_stride) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < LANES; ++i) y[row * y_stride + i] = sums[row * LANES + i] - taken[i];
  }
}

OM_CLONES static void finish_floats(size_t rows,
                                    const uint32_t *restrict sums,
                                    const uint32_t *restrict taken,
                                    const float *restrict factors,
                                    float *restrict y,
                                    size_t y_stride) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < LANES; ++i) {
      y[row * y_stride + i] = (float)(int32_t)(sums[row * LANES + i] - taken[i]) * factors[i];
    }
  }
}

OM_CLONES static void finish_biased(size_t rows,
                                    const uint32_t *restrict sums,
                                    const uint32_t *restrict taken,
                                    const float *restrict factors,
                                    const float *restrict bias,
                                    float *restrict y,
                                    size_t y_stride) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < LANES; ++i) {
      const float whole = (float)(int32_t)(sums[row * LANES + i] - taken[i]);
      y[row * y_stride + i] = whole * factors[i] + bias[i];
    }
  }
}

typedef struct strip {
  size_t a_row, b_col; /* over the batch */
  size_t rows, width;
  const uint8_t *b;
  size_t y;
} strip;

static strip strip_at(const job *j, size_t index) {
  const om_matmul *m = &j->p->m;
  const size_t col = index % j->strips * LANES;
  const size_t row = index / j->strips % j->row_parts * ROWS;
  size_t element = index / j->strips / j->row_parts;
  const size_t y = (element * m->rows + row) * m->cols + col;
  size_t a_offset = 0;
  size_t b_offset = 0;
  for (uint32_t axis = m->batch.rank; axis-- > 0;) {
    const size_t extent = (size_t)m->batch.extents[axis];
    a_offset += element % extent * (size_t)m->batch.source_strides[axis];
    b_offset += element % extent * (size_t)m->batch.target_strides[axis];
    element /= extent;
  }
  return (strip){
      .a_row = a_offset / m->depth + row,
      .b_col = b_offset / m->depth + col,
      .rows = at_most(m->rows - row, ROWS),
      .width = at_most(m->cols - col, LANES),
      .b = j->p->b ? j->p->b + b_offset + col * m->b_col_stride : NULL, /* packed: not there */
      .y = y};
}

/* What the panel's sign took off b, or added to it, its zero points do too. */
static uint32_t flip_of(const om_matmul_bytes *p) {
  if (p->is_a_signed != p->is_b_signed) return 0;
  return p->is_b_signed ? (uint32_t)-128 : 128u;
}

static void finish_as_floats(
    const job *j, const slot *own, size_t row, size_t rows, float *y, size_t y_stride) {
  const uint32_t *sums = own->sums + row * LANES;
  if (j->p->bias) {
    finish_biased(rows, sums, own->taken, own->factors, own->bias, y, y_stride);
  } else {
    finish_floats(rows, sums, own->taken, own->factors, y, y_stride);
  }
}

/* Rows of a strip, to `to`. */
static void finish_rows(
    const job *j, const slot *own, size_t row, size_t rows, size_t width, size_t to) {
  const om_matmul_bytes *p = j->p;
  const size_t cols = p->m.cols;
  uint32_t whole[LANES];
  float values[LANES];
  if (width == LANES && p->y) {
    finish_sums(rows, own->sums + row * LANES, own->taken, p->y + to, cols);
  } else if (width == LANES) {
    finish_as_floats(j, own, row, rows, p->floats + to, cols);
  }
  for (size_t i = 0; width < LANES && i < rows; ++i, to += cols) {
    if (p->y) {
      finish_sums(1, own->sums + (row + i) * LANES, own->taken, whole, LANES);
      memcpy(p->y + to, whole, width * sizeof *whole);
    } else {
      finish_as_floats(j, own, row + i, 1, values, LANES);
      memcpy(p->floats + to, values, width * sizeof *values);
    }
  }
}

/* Rows with the same zero point of a go at once. */
static void store_rows(const job *j, const strip *s, slot *own) {
  const om_matmul_bytes *p = j->p;
  const int32_t *zeros = p->a_zeros + s->a_row;
  if (j->has_b_zeros) {
    take_b_zeros(
        s->rows, s->width, p->b_zeros + s->b_col, flip_of(p), j->row_sums + s->a_row, own->sums);
  }
  for (size_t row = 0, end = 0; row < s->rows; row = end) {
    while (end < s->rows && zeros[end] == zeros[row]) ++end;
    if (zeros[row] == 0) memset(own->taken, 0, sizeof own->taken);
    if (zeros[row] != 0) multiply_sums(own->col_sums, (uint32_t)zeros[row], own->taken);
    finish_rows(j, own, row, end - row, s->width, s->y + row * p->m.cols);
  }
}

/* The sums of terms [k, k + count), by panels. */
static void sum_panel(const job *j, const strip *s, size_t k, size_t count, slot *own) {
  const om_matmul_bytes *p = j->p;
  const size_t panel_at = s->b_col / LANES * depth_bytes(&p->m) + k * LANES;
  om_byte_group g = {.a = own->ones,
                     .a_stride = j->a_stride,
                     .rows = 1,
                     .is_a_signed = p->is_a_signed,
                     .panel = p->panels ? p->panels + panel_at : own->panel,
                     .terms = count,
                     .is_first = k == 0,
                     .has_tiles = j->has_tiles,
                     .sums = own->col_sums};
  if (!p->panels) pack(p, s->b + k * p->m.b_depth_stride, count, s->width, own->panel);
  if (j->has_a_zeros) om_byte_group_run(&g);
  g.a = j->a + s->a_row * j->a_stride + k;
  g.rows = s->rows;
  g.sums = own->sums;
  om_byte_group_run(&g);
}

/* The same of a turned b as it lies. */
static void sum_dots(const job *j, const strip *s, size_t k, size_t count, slot *own) {
  const om_matmul_bytes *p = j->p;
  om_byte_dots d = {.a = own->ones,
                    .b = s->b + k,
                    .b_stride = p->m.b_col_stride,
                    .flip = panel_flip(p),
                    .is_a_signed = p->is_a_signed,
                    .terms = count,
                    .count = s->width,
                    .is_first = k == 0,
                    .sums = own->col_sums};
  if (j->has_a_zeros) om_byte_dots_run(&d);
  for (size_t row = 0; row < s->rows; ++row) {
    d.a = j->a + (s->a_row + row) * j->a_stride + k;
    d.sums = own->sums + row * LANES;
    om_byte_dots_run(&d);
  }
}

static void run_strip(const job *j, const strip *s, slot *own) {
  const om_matmul_bytes *p = j->p;
  const size_t depth = p->m.depth;
  const bool has_dots = !p->panels && is_dotted(&p->m, s->rows);
  if (p->floats) {
    memcpy(own->factors, p->factors + s->b_col, s->width * sizeof *own->factors);
    if (p->bias) memcpy(own->bias, p->bias + s->b_col, s->width * sizeof *own->bias);
  }
  for (size_t k = 0; k < depth && !om_is_cancelled(j->ctx); k += TERMS) {
    if (has_dots) {
      sum_dots(j, s, k, at_most(depth - k, TERMS), own);
    } else {
      sum_panel(j, s, k, at_most(depth - k, TERMS), own);
    }
  }
  store_rows(j, s, own);
}

static void run_slots(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  for (size_t i = begin; i < end; ++i) {
    slot *own = &j->slots[i];
    memset(own->ones, 1, sizeof own->ones);
    size_t index = j->part_count * i / j->slot_count;
    const size_t last = j->part_count * (i + 1) / j->slot_count;
    for (; index < last && !om_is_cancelled(j->ctx); ++index) {
      const strip s = strip_at(j, index);
      run_strip(j, &s, own);
    }
  }
}

/* One matrix alone can be turned: a Gemm's. */
static void turn_a(om_ctx *ctx, const om_matmul_bytes *p, uint8_t *target) {
  const om_strided turn = {
      .rank = 2,
      .extents = {(int64_t)p->m.rows, (int64_t)p->m.depth},
      .source_strides = {(int64_t)p->m.a_row_stride, (int64_t)p->m.a_depth_stride},
      .target_strides = {(int64_t)p->m.depth, 1}};
  om_strided_copy(ctx, &turn, 1, p->a, target);
}

void om_matmul_bytes_run(om_ctx *ctx, const om_matmul_bytes *p, size_t a_rows, void *scratch) {
  const om_matmul *m = &p->m;
  uint8_t *turned = (uint8_t *)scratch + sums_bytes(a_rows);
  if (m->depth == 0) {
    memset(p->y, 0, om_strided_elems(&m->batch) * m->rows * m->cols * sizeof *p->y);
    return;
  }
  job j = {.ctx = ctx,
           .p = p,
           .a = p->a,
           .a_stride = m->depth,
           .row_sums = scratch,
           .has_tiles = om_byte_has_tiles(),
           .slots = (slot *)(void *)(turned + turned_bytes(m, a_rows)),
           .row_parts = row_parts_of(m),
           .strips = strips_of(m),
           .part_count = parts_of(m)};
  j.slot_count = at_most(j.part_count, MAX_SLOTS);
  if (m->a_depth_stride != 1) {
    turn_a(ctx, p, turned);
    j.a = turned;
  }
  const int32_t flip = (int32_t)flip_of(p);
  for (size_t i = 0; i < p->b_zero_count; ++i) {
    j.has_b_zeros = j.has_b_zeros || p->b_zeros[i] != flip;
  }
  for (size_t i = 0; i < a_rows; ++i) j.has_a_zeros = j.has_a_zeros || p->a_zeros[i] != 0;
  if (j.has_b_zeros) om_parallel_for(ctx, a_rows, GRAIN, sum_rows, &j);
  om_parallel_for(ctx, j.slot_count, 1, run_slots, &j);
}
