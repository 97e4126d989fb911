/* Tiles: the innermost loops of fast products and convolutions.
 *
 * A tile is a few rows of results by a panel of columns, held in registers while the terms go by.
 * A row is a place of the result (a pixel, a row of a product), a column a channel. Weights lie in
 * panels: for each term, the panel's columns side by side. Where a term's input lies outside of
 * the tensor, it is read from zeros.
 *
 * om_tile.inc is compiled once for each width of vectors; om_tile_set is what the processor has.
 */
#ifndef OM_TILE_H
#define OM_TILE_H

#include "cpu/fast/om_fast.h"

enum {
  OM_TILE_ROWS = 12, /* at most */
  OM_TILE_COLS = 32, /* at most */
  OM_TILE_SUMS = 16, /* of a block of Winograd's (om_fast_winograd.c) */
};

typedef struct om_tile_tap { /* one place of a window */
  int64_t offset;            /* elements, from a row's place in x */
  int32_t at[OM_FAST_AXES];  /* the same along each axis */
} om_tile_tap;

typedef struct om_tile {
  /* rows */
  size_t rows; /* asked by columns apart without taps outside alone: any number of theirs */
  const float *x;
  int64_t x_at[OM_TILE_ROWS]; /* elements from x; an element outside is not read */
  int32_t place[OM_FAST_AXES][OM_TILE_ROWS];
  bool has_outside;                    /* some tap of some row; place is read only then */
  float *y[OM_TILE_ROWS];              /* of column 0 */
  const float *residual[OM_TILE_ROWS]; /* of column 0; read where the epilogue has one */
  int64_t residual_step;               /* from column to column: 1 or 0 */
  /* terms */
  const om_tile_tap *taps;
  size_t tap_count;
  size_t depth; /* terms of a tap: consecutive elements of x */
  uint32_t in[OM_FAST_AXES];
  const float *zeros; /* depth of them */
  /* columns */
  const float *w;
  size_t w_step;      /* from term to term */
  const float *ahead; /* weights that are read next, to be fetched: ahead_step of them each four */
  size_t ahead_step;  /* terms; 0: none */
  const float *bias;  /* as long as the panel is wide */
  size_t col, cols;   /* the first, and how many */
  bool adds;          /* to what y holds: the sums of other terms. Not for columns apart */
  bool has_residual;  /* it is added, too; its columns are dense. Not for columns apart */
  bool is_clamped;    /* results are cut to low .. high when they are stored */
  float low, high;
  const om_fast_epilogue *epilogue;
} om_tile;

/* Computes `rows` rows; the epilogue comes after it. */
typedef void (*om_tile_fn)(const om_tile *tile);

enum { OM_TILE_HEIGHTS = 5 };

typedef struct om_soft_row { /* y = softmax(scale * x + mask) */
  const float *x;
  float *y; /* may be x */
  size_t cols;
  float scale;
  const float *mask; /* NULL: none */
  int64_t mask_step; /* 1 or 0 */
} om_soft_row;

typedef struct om_tile_set {
  size_t lanes;                    /* of a vector; a panel has two of them, or one at the end */
  size_t heights[OM_TILE_HEIGHTS]; /* in descending order; the last is 1 */
  om_tile_fn wide[OM_TILE_HEIGHTS], narrow[OM_TILE_HEIGHTS];
  /* Each column has an input of its own: `cols` channels, tap after tap in w. `inside` is for rows
   * of which no tap lies outside. */
  om_tile_fn apart[2], inside[4];
  size_t apart_heights[2], inside_heights[4];
  /* The epilogue on what `rows` rows have; it reads and writes y. */
  void (*finish)(const om_tile *tile, size_t rows);
  void (*softmax)(const om_soft_row *row);
  /* The sums of 4x4 places of `depth` channels, at least `lanes`: sum i at sums + i * step. */
  void (*spread)(const float *const *x, size_t depth, float *sums, size_t step);
  /* 2x2 rows of results (NULL: not wanted), of at most a panel's columns, of the products at
   * products + i * step. */
  void (*collect)(const om_tile *tile, float *const *y, const float *products, size_t step);
} om_tile_set;

/* What this processor has. */
const om_tile_set *om_tile_set_get(void);

/* The widest set whose vectors have at most `cols` lanes; NULL: there is none. */
const om_tile_set *om_tile_set_for(size_t cols);

#endif
