/* Parameters of normalisations whose rows are sums of rows of tables. */
#ifndef OM_LOOKUP_PARAMS_H
#define OM_LOOKUP_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(lookup_kernel)
OM_UINT(row_count)
OM_UINT(row_elems)
OM_FLOAT(count) /* row_elems */
OM_FLOAT(epsilon)
OM_UINT(period_0) /* of the terms: rows after which they repeat */
OM_UINT(period_1)
OM_UINT(period_2)
OM_UINT(extent_0) /* rows of their tables */
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_PARAMS_END(lookup_kernel)

#endif
