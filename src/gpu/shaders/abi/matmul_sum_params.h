/* Parameters of the sum of a product's chunks. */
#ifndef OM_MATMUL_SUM_PARAMS_H
#define OM_MATMUL_SUM_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(matmul_sum)
OM_UINT(elems)                     /* of each chunk */
OM_UINT(chunk_count)
OM_UINT(part_cols)                 /* columns of the chunks */
OM_UINT(y_cols)                    /* of the result */
OM_UINT(y_first)                   /* the first of them that the chunks have */
OM_PARAMS_END(matmul_sum)

#endif
