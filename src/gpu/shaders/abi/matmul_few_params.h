/* Parameters of the products of few rows in fast mode. */
#ifndef OM_MATMUL_FEW_PARAMS_H
#define OM_MATMUL_FEW_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(matmul_few)
OM_UINT(group_count)
OM_UINT(rows)
OM_UINT(cols)
OM_UINT(depth)       /* a multiple of 4 */
OM_UINT(a_row_quads) /* pieces of four terms, from row to row of a */
OM_UINT(b_quads)     /* pieces of four columns, from term to term of b */
OM_PARAMS_END(matmul_few)

#endif
