/* The innermost loop of exact products and convolutions: one group of terms (docs/exact.md,
 * "Products") for some rows by 16 lanes. A lane is one result, with a chain of its own, so that
 * neither the width of vectors nor the number of rows side by side changes a bit.
 */
#ifndef OM_PRODUCT_GROUP_H
#define OM_PRODUCT_GROUP_H

#include "base/om_base.h"

enum {
  OM_PRODUCT_BLOCK = 32,  /* terms of one chain */
  OM_PRODUCT_GROUP = 128, /* terms whose block sums are added before they join the total */
  OM_GROUP_LANES = 16,
};

/* y[r * y_stride + lane] = the group's sum, or that added to what stands there, of
 * x[k * x_stride + lane] * w[r * w_row_stride + k * w_term_stride] over the terms k. Strides are
 * elements; x and w have the type of the function. */
typedef struct om_product_group {
  const void *x;
  const void *w;
  void *y;
  size_t x_stride;
  size_t w_row_stride, w_term_stride;
  size_t y_stride;
  size_t terms; /* 1..OM_PRODUCT_GROUP */
  size_t rows;
  bool is_first; /* of the groups of a sum */
} om_product_group;

void om_product_group_f32(const om_product_group *g);
void om_product_group_f64(const om_product_group *g);
void om_product_group_u32(const om_product_group *g); /* integers wrap */
void om_product_group_u64(const om_product_group *g);

/* One row by rows * 16 lanes, which stand side by side in x and in y: where there is one row alone,
 * a strip of 16 lanes has too few chains. */
void om_product_vector_f32(const om_product_group *g);
void om_product_vector_f64(const om_product_group *g);

/* y[i] = the sum of x[i + offsets[k]] * w[k] over the terms k, for rows * 16 results: one group. */
typedef struct om_product_taps {
  const void *x;
  const void *w;
  void *y;
  const uint32_t *offsets; /* of the terms, in elements */
  size_t terms;            /* 1..OM_PRODUCT_GROUP */
  size_t rows;
} om_product_taps;

void om_product_taps_f32(const om_product_taps *t);
void om_product_taps_f64(const om_product_taps *t);

#endif
