/* Small checks and helpers that operators of several families share. */
#ifndef OP_TYPES_H
#define OP_TYPES_H

#include "cpu/exact/om_elementwise.h"
#include "graph/om_op.h"

/* All inputs that are there have input 0's type; OM_E_INVALID_MODEL names the two types. */
om_status om_check_same_dtype(om_ctx *ctx, const om_op_call *call);

/* All inputs are there: for operators that take any number. */
om_status om_check_all_there(om_ctx *ctx, const om_op_call *call);

/* Output 0 has the numpy shape of all inputs together. */
om_status om_infer_broadcast(om_ctx *ctx, const om_op_call *call, om_dtype dtype);

/* Sets dtype, rank and dims from another tensor. */
void om_copy_type_and_shape(const om_tensor *source, om_tensor *target);

/* OM_E_INVALID_INPUT if an integer divisor that is used has a 0. */
om_status om_check_divisor(om_ctx *ctx, const om_tensor *divisor, const om_tensor *result);

#endif
