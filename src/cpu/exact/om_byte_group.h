/* The innermost loops of products and convolutions of 8-bit integers. Sums are integers that wrap,
 * so their order does not matter: each processor adds in the order of its own instructions, with
 * the same bits.
 *
 * The columns of b stand in a panel, four terms of each side by side, as processors multiply them:
 *
 *     terms 0..3 of column 0 | terms 0..3 of column 1 | ... | terms 4..7 of column 0 | ...
 */
#ifndef OM_BYTE_GROUP_H
#define OM_BYTE_GROUP_H

#include "base/om_base.h"

enum {
  OM_BYTE_LANES = 32,
  OM_BYTE_RUN = 64, /* lanes that om_byte_taps_run takes at once */
};

/* Copies few bytes, mostly: a call would cost more than that, most of all from a function of wider
 * vectors, whose upper halves a processor then sets aside. The last block overlaps those before. */
static inline __attribute__((always_inline)) void om_byte_copy(const uint8_t *from,
                                                               size_t count,
                                                               uint8_t *to) {
  if (count >= 16) {
    for (size_t i = 0; i + 16 < count; i += 16) memcpy(to + i, from + i, 16);
    memcpy(to + count - 16, from + count - 16, 16);
  } else if (count >= 8) {
    uint64_t first, last;
    memcpy(&first, from, 8);
    memcpy(&last, from + count - 8, 8);
    memcpy(to, &first, 8);
    memcpy(to + count - 8, &last, 8);
  } else if (count >= 4) {
    uint32_t first, last;
    memcpy(&first, from, 4);
    memcpy(&last, from + count - 4, 4);
    memcpy(to, &first, 4);
    memcpy(to + count - 4, &last, 4);
  } else {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
  }
}

enum { OM_BYTE_LOOSE = 16 };

/* Copies whole blocks of OM_BYTE_LOOSE: up to 15 bytes more are read and written. */
static inline void om_byte_copy_loosely(const uint8_t *from, size_t count, uint8_t *to) {
  for (size_t i = 0; i < count; i += OM_BYTE_LOOSE) memcpy(to + i, from + i, OM_BYTE_LOOSE);
}

/* Lines of bytes into a panel. */
typedef struct om_byte_panel {
  const uint8_t *from;   /* term k's line begins at from + (offsets ? offsets[k] : k * step) */
  const size_t *offsets; /* NULL: none */
  size_t step;
  size_t terms;   /* what stands behind the last one, to a multiple of four, is not defined */
  size_t columns; /* of the panel, a multiple of OM_BYTE_LANES */
  size_t width;   /* bytes that a line has; the other columns are not defined */
  uint8_t flip;   /* each byte's bits that change */
  uint8_t *panel;
} om_byte_panel;

void om_byte_panel_fill(const om_byte_panel *p);

/* sums[r][lane] = the sum of a[r * a_stride + k] * panel[k][lane] over the terms k, or that added
 * to what stands there. One side is signed and the other is not. */
typedef struct om_byte_group {
  const uint8_t *a;
  size_t a_stride, rows;
  bool is_a_signed;
  const uint8_t *panel; /* of OM_BYTE_LANES columns */
  size_t terms;
  bool is_first;
  bool has_tiles; /* om_byte_has_tiles */
  uint32_t *sums; /* rows * OM_BYTE_LANES */
} om_byte_group;

/* Whether this process may use the processor's tiles of 16 by 64 bytes, asked of the system: once
 * for a whole product, not for each group. */
bool om_byte_has_tiles(void);

void om_byte_group_run(const om_byte_group *g);

/* sums[lane] = the sum of a[q] * panel[offsets[q] + lane] over quads q of four terms each: the
 * windows of one channel, which overlap. */
typedef struct om_byte_taps {
  const uint8_t *a; /* four bytes a quad */
  bool is_a_signed;
  const uint8_t *panel;
  const uint32_t *offsets; /* in columns */
  size_t quads;
  size_t lanes; /* a multiple of OM_BYTE_RUN */
  uint32_t *sums;
} om_byte_taps;

void om_byte_taps_run(const om_byte_taps *t);

/* sums[i] = the sum of a[k] * (b[i * b_stride + k] ^ flip) over the terms k, or that added to what
 * stands there: one row of a, columns of b as they lie, for products too small to bring b into
 * panels. One side is signed and the other is not. */
typedef struct om_byte_dots {
  const uint8_t *a, *b;
  size_t b_stride;
  uint8_t flip;
  bool is_a_signed;
  size_t terms, count;
  bool is_first;
  uint32_t *sums;
} om_byte_dots;

void om_byte_dots_run(const om_byte_dots *d);

/* Sums as bytes: y = round((sum + add) * factor) + zero, saturated, NaN as 0, for rows with an
 * addition and a factor of their own. Where asked for, it lists which of them are doubtful: before
 * rounding they are within bounds, and further from a whole number than a limit. */
typedef struct om_byte_finish {
  const uint32_t *sums;
  size_t stride; /* of a row, a multiple of OM_BYTE_LANES */
  size_t rows, width;
  const uint32_t *adds;
  const float *factors;
  int32_t zero;
  bool is_signed;
  uint8_t *y;
  size_t y_stride;
  const float *limits; /* of each row; NULL: nothing is doubtful */
  uint32_t *doubts;    /* row * stride + lane of each, at most rows * width */
  size_t *doubt_count;
} om_byte_finish;

void om_byte_finish_run(const om_byte_finish *f);

#endif
