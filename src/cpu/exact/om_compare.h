/* Kernels of comparisons, logic, bits and selection. NULL where a type has none. */
#ifndef OM_COMPARE_H
#define OM_COMPARE_H

#include "cpu/exact/om_elementwise.h"

typedef enum om_comparison {
  OM_COMPARE_EQUAL,
  OM_COMPARE_LESS,
  OM_COMPARE_GREATER,
  OM_COMPARE_LESS_OR_EQUAL,
  OM_COMPARE_GREATER_OR_EQUAL,
} om_comparison;

typedef enum om_bitwise {
  OM_BITWISE_AND,
  OM_BITWISE_OR,
  OM_BITWISE_XOR,
  OM_BITWISE_NOT,
  OM_BITWISE_SHIFT_LEFT,
  OM_BITWISE_SHIFT_RIGHT, /* unsigned types */
} om_bitwise;

/* Results are bytes, 0 or 1. Comparisons with NaN are false. Equal takes bool and strings too. */
om_elementwise_fn om_compare_kernel(om_comparison comparison, om_dtype dtype);

/* Of bytes that are 0 or not: And, Or, Xor, Not. */
om_elementwise_fn om_logic_kernel(om_bitwise operation);

/* A shift by the type's width or more gives 0. */
om_elementwise_fn om_bitwise_kernel(om_bitwise operation, om_dtype dtype);

/* out = in[0] ? in[1] : in[2], for elements of the type's size; not for 16-bit floats, whose
 * bits the caller passes as uint16. */
om_elementwise_fn om_where_kernel(om_dtype dtype);

/* Results are bytes. om_is_inf_kernel's arg is two bools: whether +infinity and -infinity count. */
om_elementwise_fn om_is_nan_kernel(om_dtype dtype);
om_elementwise_fn om_is_inf_kernel(om_dtype dtype);

#endif
