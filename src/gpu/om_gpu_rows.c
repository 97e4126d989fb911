/* Rows on workgroups: of 256 invocations, or of 64 that take a row each (common/rows.glsl). */
#include "gpu/om_gpu_rows.h"

enum {
  OM_GPU_ROW_LANES = 256,
  ALONE_ROWS = 64, /* of a workgroup that shares nothing */
  MOST_ALONE_ELEMS =
      4096, /* of a row: one sum of more would lose too much, and keep one core busy */
};

void om_gpu_rows_share(om_gpu_rows *rows) {
  rows->lanes = 1;
  while (rows->lanes < OM_GPU_ROW_LANES && rows->lanes < rows->row_elems) rows->lanes *= 2;
  rows->rows = OM_GPU_ROW_LANES / rows->lanes;
}

const char *om_gpu_rows_from(const om_gpu_binder *b, const om_rows *rows, om_gpu_rows *out_rows) {
  om_gpu_rows r = {.row_count = (uint32_t)rows->row_count,
                   .row_elems = (uint32_t)rows->row_elems,
                   .elem_stride = 1,
                   .inner = 1};
  if (rows->reduced_rank > 1 || rows->kept_rank > 2) return "its axes do not stand together";
  if (rows->row_count > UINT32_MAX || rows->row_elems > UINT32_MAX) return "it is too large";
  if (rows->reduced_rank == 1) r.elem_stride = (uint32_t)rows->reduced_strides[0];
  if (rows->kept_rank > 0) r.outer_stride = (uint32_t)rows->kept_strides[0];
  if (rows->kept_rank > 1) {
    r.inner = (uint32_t)rows->kept_extents[1];
    r.inner_stride = (uint32_t)rows->kept_strides[1];
  }
  om_gpu_rows_share(&r);
  if (om_gpu_works_alone(b) && r.row_elems <= MOST_ALONE_ELEMS) {
    r.lanes = 1;
    r.rows = ALONE_ROWS;
  }
  *out_rows = r;
  return NULL;
}

bool om_gpu_rows_are_alone(const om_gpu_rows *rows) {
  return rows->lanes * rows->rows == ALONE_ROWS;
}

om_shader om_gpu_rows_form(const om_gpu_binder *b,
                           const om_gpu_row_forms *forms,
                           const om_gpu_rows *rows,
                           om_dtype dtype) {
  if (om_gpu_rows_are_alone(rows)) return forms->alone[dtype == OM_DTYPE_F16];
  return om_gpu_form(b, &forms->shared, dtype);
}

uint32_t om_gpu_row_quads(const om_hal_features *features,
                          const om_hal_limits *limits,
                          uint32_t row_elems) {
  enum { MOST_QUADS = 32, MOST_SUBGROUP = 64 };
  const uint32_t size = limits->subgroup_size;
  const uint32_t quads = row_elems / 4;
  if (!features->subgroups || size < 4 || size > MOST_SUBGROUP || row_elems % 4 != 0) return 0;
  return quads > MOST_QUADS * size ? 0 : (uint32_t)om_gpu_pieces(quads, size);
}

void om_gpu_rows_spread(const om_gpu_binder *b,
                        const om_gpu_rows *rows,
                        om_gpu_dispatch *dispatch) {
  uint64_t groups = om_gpu_pieces(rows->row_count, rows->rows);
  om_gpu_spread_groups(b, groups, dispatch->groups);
  dispatch->flops = (uint64_t)rows->row_count * rows->row_elems;
}
