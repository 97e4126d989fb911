/* A product is cut into parts of 128 rows by a strip of 16 columns, which threads take in any
 * order. A part goes group by group of om_product_group.h:
 *
 *     packed bits -> bytes[16 columns][128 terms] -> turned[128 terms][16 columns] -> panel, as
 * floats
 */
#include "cpu/exact/om_matmul_nbits.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_product_group.h"

enum {
  LANES = OM_GROUP_LANES,
  TERMS = OM_PRODUCT_GROUP,
  PART_ROWS = 128,
  MAX_SLOTS = 64, /* pieces of parallel work, each with its own scratch */
};

typedef uint8_t byte_lanes __attribute__((vector_size(LANES)));

typedef struct nbits_slot {
  float panel[TERMS][LANES];
  float totals[PART_ROWS * LANES]; /* of a strip with fewer columns */
  byte_lanes turned[TERMS];
  uint8_t bytes[LANES][TERMS];
} nbits_slot;

typedef struct nbits_job {
  const om_ctx *ctx;
  const om_matmul_nbits *m;
  nbits_slot *slots;
  size_t strips, part_count, slot_count;
} nbits_job;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

static size_t parts_of(const om_matmul_nbits *m) {
  return (m->rows + PART_ROWS - 1) / PART_ROWS * ((m->cols + LANES - 1) / LANES);
}

size_t om_matmul_nbits_scratch_bytes(const om_matmul_nbits *m) {
  return at_most(parts_of(m), MAX_SLOTS) * sizeof(nbits_slot);
}

/* `count` elements from a whole byte on. */
#define OM_UNPACK(name, bits)                                                                      \
  OM_CLONES static void name(const uint8_t *packed, size_t count, uint8_t *bytes) {                \
    enum { PER_BYTE = 8 / (bits) };                                                                \
    for (size_t i = 0; i < count / PER_BYTE; ++i) {                                                \
      for (unsigned k = 0; k < PER_BYTE; ++k) {                                                    \
        bytes[i * PER_BYTE + k] = (uint8_t)(packed[i] >> (k * (bits)) & ((1 << (bits)) - 1));      \
      }                                                                                            \
    }                                                                                              \
    for (size_t k = count - count % PER_BYTE; k < count; ++k) {                                    \
      bytes[k] = (uint8_t)(packed[k / PER_BYTE] >> (k % PER_BYTE * (bits)) & ((1 << (bits)) - 1)); \
    }                                                                                              \
  }
OM_UNPACK(unpack_2, 2)
OM_UNPACK(unpack_4, 4)
OM_UNPACK(unpack_8, 8)

/* Rows i and i + 8 are mixed byte by byte. */
static inline __attribute__((always_inline)) void mix(const byte_lanes *in, byte_lanes *out) {
  for (size_t i = 0; i < LANES / 2; ++i) {
    const byte_lanes a = in[i], b = in[i + LANES / 2];
    out[2 * i] =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    out[2 * i + 1] =
        __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

/* 16 columns by 16 terms. */
static void turn(const uint8_t (*bytes)[TERMS], byte_lanes *turned) {
  byte_lanes rows[LANES], mixed[LANES];
  for (size_t i = 0; i < LANES; ++i) memcpy(&rows[i], bytes[i], sizeof rows[i]);
  mix(rows, mixed);
  mix(mixed, rows);
  mix(rows, mixed);
  mix(mixed, turned);
}

/* A group's factors, of each column of a strip. */
typedef struct factors {
  float zero[LANES], scale[LANES];
} factors;

static size_t group_at(const om_matmul_nbits *m, size_t k) {
  return m->group_of ? (size_t)m->group_of[k] : k / m->block;
}

static void load_factors(
    const om_matmul_nbits *m, size_t col, size_t width, size_t group, factors *out) {
  for (size_t lane = 0; lane < width; ++lane) {
    const size_t at = (col + lane) * m->groups + group;
    out->zero[lane] = m->zeros ? m->zeros[at] : (float)(1u << (m->bits - 1));
    out->scale[lane] = m->scales[at];
  }
}

OM_CLONES_WIDE static void widen(const byte_lanes *turned,
                                 size_t count,
                                 const factors *f,
                                 float (*panel)[LANES]) {
  for (size_t k = 0; k < count; ++k) {
    uint8_t q[LANES];
    memcpy(q, &turned[k], sizeof q);
    for (size_t lane = 0; lane < LANES; ++lane) {
      panel[k][lane] = ((float)q[lane] - f->zero[lane]) * f->scale[lane];
    }
  }
}

/* Terms [k, k + terms) of the columns [col, col + width) into the slot's panel. */
static void fill_panel(
    const om_matmul_nbits *m, size_t col, size_t width, size_t k, size_t terms, nbits_slot *slot) {
  void (*const unpack)(const uint8_t *, size_t, uint8_t *) =
      m->bits == 2 ? unpack_2 : (m->bits == 4 ? unpack_4 : unpack_8);
  const size_t col_bytes = m->groups * (m->block * m->bits / 8);
  for (size_t lane = 0; lane < width; ++lane) {
    unpack(m->b + (col + lane) * col_bytes + k * m->bits / 8, terms, slot->bytes[lane]);
  }
  for (size_t i = 0; i < terms; i += LANES) {
    turn((const uint8_t(*)[TERMS])(slot->bytes[0] + i), slot->turned + i);
  }
  factors f[2] = {0}; /* those of the next terms are written well before they are read */
  load_factors(m, col, width, group_at(m, k), &f[0]);
  for (size_t i = 0, count = 0, at = 0; i < terms; i += count, at ^= 1) {
    count = m->group_of ? 1 : at_most(m->block - (k + i) % m->block, terms - i);
    if (i + count < terms) load_factors(m, col, width, group_at(m, k + i + count), &f[at ^ 1]);
    widen(slot->turned + i, count, &f[at], slot->panel + i);
  }
}

static void run_part(const nbits_job *job, size_t row, size_t col, nbits_slot *slot) {
  const om_matmul_nbits *m = job->m;
  const size_t width = at_most(m->cols - col, LANES);
  const bool is_whole = width == LANES;
  float *y = m->y + row * m->cols + col;
  om_product_group g = {.x = slot->panel,
                        .x_stride = LANES,
                        .w_row_stride = m->depth,
                        .w_term_stride = 1,
                        .y = is_whole ? y : slot->totals,
                        .y_stride = is_whole ? m->cols : LANES,
                        .rows = at_most(m->rows - row, PART_ROWS)};
  for (size_t k = 0; k < m->depth && !om_is_cancelled(job->ctx); k += TERMS) {
    g.terms = at_most(m->depth - k, TERMS);
    g.is_first = k == 0;
    g.w = m->a + row * m->depth + k;
    fill_panel(m, col, width, k, g.terms, slot);
    om_product_group_f32(&g);
  }
  for (size_t r = 0; r < g.rows && (m->bias || !is_whole); ++r) {
    const float *from = (const float *)g.y + r * g.y_stride;
    for (size_t i = 0; i < width; ++i) {
      y[r * m->cols + i] = m->bias ? from[i] + m->bias[col + i] : from[i];
    }
  }
}

static void run_slots(void *arg, size_t begin, size_t end) {
  const nbits_job *job = arg;
  for (size_t slot = begin; slot < end; ++slot) {
    size_t index = job->part_count * slot / job->slot_count;
    const size_t last = job->part_count * (slot + 1) / job->slot_count;
    for (; index < last && !om_is_cancelled(job->ctx); ++index) {
      run_part(
          job, index / job->strips * PART_ROWS, index % job->strips * LANES, &job->slots[slot]);
    }
  }
}

void om_matmul_nbits_run(om_ctx *ctx, const om_matmul_nbits *m, void *scratch) {
  nbits_job job = {.ctx = ctx,
                   .m = m,
                   .slots = scratch,
                   .strips = (m->cols + LANES - 1) / LANES,
                   .part_count = parts_of(m)};
  job.slot_count = at_most(job.part_count, MAX_SLOTS);
  om_parallel_for(ctx, job.slot_count, 1, run_slots, &job);
}
