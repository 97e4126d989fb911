/* Parameters of the matrix products on matrix hardware. */
#ifndef OM_MATMUL_MATRIX_PARAMS_H
#define OM_MATMUL_MATRIX_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(matmul_matrix)
OM_UINT(group_count)               /* workgroups: tiles of all chunks */
OM_UINT(tile_count)                /* of one chunk */
OM_UINT(col_tiles)
OM_UINT(rows)
OM_UINT(cols)
OM_UINT(depth)                     /* a multiple of what 16 bytes of a hold */
OM_UINT(a_row_units)               /* units of 16 bytes from row to row of a */
OM_UINT(b_row_units)               /* and from term to term of b */
OM_UINT(b_terms)                   /* depth rounded up to the terms of all slices' steps */
OM_UINT(chunk_depth)               /* terms of one chunk, a multiple of the slices' steps where there are
                                      several; y has a result each then */
OM_UINT(zero)                      /* 0, which the driver's compiler does not know */
OM_PARAMS_END(matmul_matrix)

#endif
