/* Parameters of the matrix products on matrix hardware. */
#ifndef OM_MATMUL_SPLIT_PARAMS_H
#define OM_MATMUL_SPLIT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(matmul_split)
OM_UINT(group_count)               /* workgroups: tiles */
OM_UINT(col_tiles)
OM_UINT(rows)
OM_UINT(cols)
OM_UINT(depth)                     /* a multiple of 4 */
OM_UINT(a_row_quads)               /* quads from row to row of a */
OM_UINT(b_row_units)               /* units of 16 bytes from term to term of b: two per 8 columns */
OM_UINT(b_terms)                   /* depth rounded up to 32 */
OM_PARAMS_END(matmul_split)

#endif
