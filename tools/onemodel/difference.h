/* How far one tensor is from another.
 *
 * The error of floats is max|a-b| / max|b|, b from the reference; NaN and infinity must stand in
 * the same places. Everything else must be equal.
 */
#ifndef DIFFERENCE_H
#define DIFFERENCE_H

#include "onemodel/onemodel.h"

typedef struct difference {
  double scaled;         /* 0: equal or nothing to compare; INFINITY: not comparable */
  size_t different_bits; /* elements whose bits differ; all, if the types do */
  size_t elems;
} difference;

/* Floats may be of different types. */
difference compare_tensors(const om_tensor *a, const om_tensor *b);

#endif
