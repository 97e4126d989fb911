/* Parameters of kernels whose operands broadcast: the result's extents, neighbours that no operand
 * tells apart taken together, and for each operand where it has extent 1. */
#ifndef OM_BROADCAST_PARAMS_H
#define OM_BROADCAST_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(broadcast)
OM_UINT(elems)                     /* of the result */
OM_UINT(rank)                      /* of the extents below; innermost first */
OM_UINT(extent_0)
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_UINT(extent_3)
OM_UINT(extent_4)
OM_UINT(extent_5)
OM_UINT(extent_6)
OM_UINT(extent_7)
OM_UINT(mask_0)                    /* bit d: operand 0 has extent 1 in dimension d */
OM_UINT(mask_1)
OM_UINT(mask_2)
OM_PARAMS_END(broadcast)

/* What integer.comp does besides the integer operations of ops/elementwise.def. */
#define OM_INTEGER_MOD  200u       /* the divisor's sign */
#define OM_INTEGER_FMOD 201u       /* the dividend's */

/* What compare.comp does. */
#define OM_TEST_EQUAL            0u
#define OM_TEST_LESS             1u
#define OM_TEST_GREATER          2u
#define OM_TEST_LESS_OR_EQUAL    3u
#define OM_TEST_GREATER_OR_EQUAL 4u
#define OM_TEST_AND              5u
#define OM_TEST_OR               6u
#define OM_TEST_XOR              7u
#define OM_TEST_NOT              8u
#define OM_TEST_IS_NAN           9u
#define OM_TEST_IS_INF           16u /* plus 1 for the positive one, plus 2 for the negative one */

#endif
