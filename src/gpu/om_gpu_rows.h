/* Rows of a tensor as the kernels with common/rows.glsl take them. */
#ifndef OM_GPU_ROWS_H
#define OM_GPU_ROWS_H

#include "abi/om_params.h"
#include "abi/row_params.h"
#include "cpu/exact/om_row.h"
#include "gpu/om_gpu_op.h"

typedef struct om_gpu_rows { /* the fields of a block, in its order */
  OM_ROW_FIELDS
} om_gpu_rows;

/* Sets the fields for rows that lie at one stride, in a grid of at most two; a reason where they
 * do not. */
const char *om_gpu_rows_from(const om_rows *rows, om_gpu_rows *out_rows);

/* The grid: P.rows rows a workgroup. */
void om_gpu_rows_spread(const om_gpu_binder *b, const om_gpu_rows *rows, om_gpu_dispatch *dispatch);

#endif
