/* Parameters of the kernels that read or write elements at indices. Axes innermost first in those
 * with one axis of their own (..._elements), in the order of a tuple in the others (..._nd). */
#ifndef OM_INDEX_PARAMS_H
#define OM_INDEX_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(index)
OM_UINT(elems)        /* of the result */
OM_UINT(rank)         /* of the axes below; the length of a tuple */
OM_UINT(axis)         /* elements: the number of the indices' axis */
OM_UINT(axis_extent)  /* elements: the data's */
OM_UINT(index_count)  /* nd: tuples */
OM_UINT(row_elems)    /* nd: elements that a tuple means */
OM_UINT(batch_tuples) /* nd: tuples of one batch */
OM_UINT(batch_elems)  /* nd: elements of one batch of the data */
OM_UINT(extent_0)     /* elements: the indices'; nd: the data's */
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_UINT(extent_3)
OM_UINT(extent_4)
OM_UINT(extent_5)
OM_UINT(extent_6)
OM_UINT(extent_7)
OM_UINT(stride_0) /* elements of the data */
OM_UINT(stride_1)
OM_UINT(stride_2)
OM_UINT(stride_3)
OM_UINT(stride_4)
OM_UINT(stride_5)
OM_UINT(stride_6)
OM_UINT(stride_7)
OM_PARAMS_END(index)

#endif
