/* Rows on workgroups of 256 invocations. */
#include "gpu/om_gpu_rows.h"

enum { OM_GPU_ROW_LANES = 256 };

const char *om_gpu_rows_from(const om_rows *rows, om_gpu_rows *out_rows) {
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
  r.lanes = 1;
  while (r.lanes < OM_GPU_ROW_LANES && r.lanes < r.row_elems) r.lanes *= 2;
  r.rows = OM_GPU_ROW_LANES / r.lanes;
  *out_rows = r;
  return NULL;
}

void om_gpu_rows_spread(const om_gpu_binder *b,
                        const om_gpu_rows *rows,
                        om_gpu_dispatch *dispatch) {
  uint64_t groups = ((uint64_t)rows->row_count + rows->rows - 1) / rows->rows;
  om_gpu_spread_groups(b, groups, dispatch->groups);
  dispatch->flops = (uint64_t)rows->row_count * rows->row_elems;
}
