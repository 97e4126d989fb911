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

/* A kernel with common/rows.glsl: its forms, and fast mode's without shared memory by whether the
 * elements are float16. */
typedef struct om_gpu_row_forms {
  om_gpu_forms shared;
  om_shader alone[2];
} om_gpu_row_forms;
#define OM_GPU_ROW_FORMS(NAME)                                \
  {                                                           \
    OM_GPU_FORMS(NAME), {                                     \
      OM_SHADER_##NAME##_ALONE, OM_SHADER_##NAME##_ALONE_HALF \
    }                                                         \
  }

/* Sets the fields for rows that lie at one stride, in a grid of at most two; a reason where they
 * do not. */
const char *om_gpu_rows_from(const om_gpu_binder *b, const om_rows *rows, om_gpu_rows *out_rows);

/* Spreads each row over lanes that share memory, as kernels without a form that works alone do. */
void om_gpu_rows_share(om_gpu_rows *rows);

/* The kernel for these rows. */
om_shader om_gpu_rows_form(const om_gpu_binder *b,
                           const om_gpu_row_forms *forms,
                           const om_gpu_rows *rows,
                           om_dtype dtype);
bool om_gpu_rows_are_alone(const om_gpu_rows *rows);

/* Quads of a row that each invocation of a subgroup holds, for kernels that give a subgroup a row;
 * 0: not for rows of so many elements, or not on this device. */
uint32_t om_gpu_row_quads(const om_hal_features *features,
                          const om_hal_limits *limits,
                          uint32_t row_elems);

/* The grid: P.rows rows a workgroup. */
void om_gpu_rows_spread(const om_gpu_binder *b, const om_gpu_rows *rows, om_gpu_dispatch *dispatch);

#endif
