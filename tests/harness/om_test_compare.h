/* Comparing tensors: bits for integers and for exact mode, scaled error for floats. */
#ifndef OM_TEST_COMPARE_H
#define OM_TEST_COMPARE_H

#include "base/om_base.h"

typedef struct om_test_comparison {
  double scaled_error; /* max|a-b| / max|b| over the finite elements of b; max|a| where b is 0 */
  double elem_error;   /* max of |a-b| / |b|, elements with b = 0 must be 0 */
  double drift;        /* sum of (a-b) b / sum of b b: what all of a is too large by */
  size_t worst;        /* the element with the largest |a-b| */
  size_t elem_worst;   /* the element with the largest |a-b| / |b| */
  bool specials_match; /* NaN at the same places, infinities with the same signs */
  size_t special;      /* where not: the first such element */
} om_test_comparison;

om_test_comparison om_test_compare(const double *actual, const double *expected, size_t count);

/* The element as a number; 0 for strings and types without a value of their own. */
double om_tensor_value(const om_tensor *tensor, size_t index);

/* Stores a number: rounded once to floats, cut and saturated to integers. */
void om_tensor_set_value(om_tensor *tensor, size_t index, double value);

/* The number as the type holds it: rounded, overflow to infinity. Integers saturate. */
double om_dtype_round(om_dtype dtype, double value);

bool om_dtype_is_float(om_dtype dtype);

/* Type, shape and bits are the same; a NaN equals any NaN. False: *out_elem is the first element
 * that differs (SIZE_MAX: type or shape). */
bool om_tensor_same(const om_tensor *a, const om_tensor *b, size_t *out_elem);

#endif
