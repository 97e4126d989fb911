/* Rows of a tensor: the elements that one reduction takes together, in row-major order of the
 * reduced axes, wherever they lie. Sums go by lanes and a tree (docs/exact.md).
 */
#ifndef OM_ROW_H
#define OM_ROW_H

#include "base/om_base.h"

/* How a tensor falls into rows: kept axes number the rows, reduced axes the elements of a row.
 * Neighbouring axes are merged. */
typedef struct om_rows {
  const om_ctx *ctx; /* borrowed; whose cancel ends a long row; NULL: nobody's */
  om_dtype dtype;
  uint32_t kept_rank;
  uint32_t reduced_rank;
  size_t kept_extents[OM_MAX_RANK]; /* outermost first */
  size_t kept_strides[OM_MAX_RANK]; /* elements */
  size_t reduced_extents[OM_MAX_RANK];
  size_t reduced_strides[OM_MAX_RANK];
  size_t row_count;
  size_t row_elems;
} om_rows;

typedef struct om_row {
  const om_rows *rows;
  const void *data; /* of the tensor */
  size_t offset;    /* of the row's first element, in elements */
} om_row;

/* bit d of reduced_axes: axis d is reduced. */
void om_rows_init(om_rows *rows, const om_tensor *tensor, uint32_t reduced_axes);

om_row om_row_get(const om_rows *rows, const void *data, size_t index);

/* The place of element `index` of the row in the tensor, in elements. */
size_t om_row_place(const om_row *row, size_t index);

/* Elements [first, first + count) as float32; the tensor is float32, float16 or bfloat16. */
void om_row_load(const om_row *row, size_t first, size_t count, float *out);

/* Where the row's elements stand one after the other as float32; else NULL. */
const float *om_row_dense(const om_row *row);

/* Writes them to the same places of a tensor of the same type and shape. */
void om_row_store(const om_row *row, void *target, size_t first, size_t count, const float *values);

typedef enum om_row_term {
  OM_ROW_VALUE,             /* v */
  OM_ROW_ABS,               /* |v| */
  OM_ROW_SQUARE,            /* v^2 */
  OM_ROW_EXP,               /* exp(v - c) */
  OM_ROW_DIFFERENCE_SQUARE, /* (v - c)^2 */
  OM_ROW_FACTOR,            /* v, multiplied instead of added */
} om_row_term;

float om_row_fold(const om_row *row, om_row_term term, float c);
float om_row_largest(const om_row *row); /* NaN wins; -infinity for an empty row */
float om_row_smallest(const om_row *row);

/* Whether what is done with the row no longer counts; asked at each 16384th element. */
static inline bool om_row_is_over(const om_row *row, size_t element) {
  return element % 16384 == 0 && row->rows->ctx && om_is_cancelled(row->rows->ctx);
}

/* How many rows a piece of a parallel loop takes. */
size_t om_rows_grain(const om_rows *rows);

#endif
