/* Parameters of Pad. Axes innermost first; neighbours without padding are taken together. */
#ifndef OM_PAD_PARAMS_H
#define OM_PAD_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(pad_words)
OM_UINT(elems)                     /* of the result */
OM_UINT(rank)
OM_UINT(value)                     /* its bits */
OM_UINT(value_high)                /* of an element of two words */
OM_UINT(result_0)                  /* extents of the result */
OM_UINT(result_1)
OM_UINT(result_2)
OM_UINT(result_3)
OM_UINT(result_4)
OM_UINT(result_5)
OM_UINT(result_6)
OM_UINT(result_7)
OM_UINT(source_0)                  /* extents of the input */
OM_UINT(source_1)
OM_UINT(source_2)
OM_UINT(source_3)
OM_UINT(source_4)
OM_UINT(source_5)
OM_UINT(source_6)
OM_UINT(source_7)
OM_INT(before_0)                   /* elements added (negative: removed) before */
OM_INT(before_1)
OM_INT(before_2)
OM_INT(before_3)
OM_INT(before_4)
OM_INT(before_5)
OM_INT(before_6)
OM_INT(before_7)
OM_PARAMS_END(pad_words)

#endif
