/* The fields of a parameter block that common/rows.glsl reads. */
#ifndef OM_ROW_PARAMS_H
#define OM_ROW_PARAMS_H

#define OM_ROW_FIELDS                                         \
  OM_UINT(row_count)                                          \
  OM_UINT(row_elems)                                          \
  OM_UINT(rows)        /* of a workgroup */                   \
  OM_UINT(lanes)       /* of a row */                         \
  OM_UINT(elem_stride) /* elements, as all strides */         \
  OM_UINT(inner)       /* rows that lie inner_stride apart */ \
  OM_UINT(inner_stride)                                       \
  OM_UINT(outer_stride)

#endif
