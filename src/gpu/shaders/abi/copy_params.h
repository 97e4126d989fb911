/* Parameters of the strided copies. Counts are words of 32 bits, quads of them in the _vec4 variant,
 * or elements of 16 bits in the _pairs variant; strides and offsets are signed and taken modulo 2^32. */
#ifndef OM_COPY_PARAMS_H
#define OM_COPY_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(copy)
OM_UINT(elems)                     /* the product of the extents */
OM_UINT(rank)                      /* of the axes below; innermost first */
OM_UINT(source_offset)
OM_UINT(target_offset)
OM_UINT(extent_0)
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_UINT(extent_3)
OM_UINT(extent_4)
OM_UINT(extent_5)
OM_UINT(extent_6)
OM_UINT(extent_7)
OM_UINT(source_stride_0)
OM_UINT(source_stride_1)
OM_UINT(source_stride_2)
OM_UINT(source_stride_3)
OM_UINT(source_stride_4)
OM_UINT(source_stride_5)
OM_UINT(source_stride_6)
OM_UINT(source_stride_7)
OM_UINT(target_stride_0)
OM_UINT(target_stride_1)
OM_UINT(target_stride_2)
OM_UINT(target_stride_3)
OM_UINT(target_stride_4)
OM_UINT(target_stride_5)
OM_UINT(target_stride_6)
OM_UINT(target_stride_7)
OM_PARAMS_END(copy)

#endif
