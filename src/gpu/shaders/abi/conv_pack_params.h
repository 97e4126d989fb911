/* Parameters of the kernel that packs weights made at run time. */
#ifndef OM_CONV_PACK_PARAMS_H
#define OM_CONV_PACK_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_pack)
OM_UINT(out_channels) /* of one group */
OM_UINT(columns)      /* packed channels of one group: a multiple of 4 */
OM_UINT(rows)         /* terms of one group */
OM_UINT(elems)        /* of the packed weights */
OM_PARAMS_END(conv_pack)

#endif
