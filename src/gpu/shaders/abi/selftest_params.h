/* Parameters of the self-test. */
#ifndef OM_SELFTEST_PARAMS_H
#define OM_SELFTEST_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(selftest)
OM_UINT(count)  /* of cases */
OM_UINT(number) /* of the expression, om_gpu_selftest.def */
OM_PARAMS_END(selftest)

#endif
