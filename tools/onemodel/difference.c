#include "difference.h"

#include <math.h>
#include <string.h>

#include "values.h"

static bool is_float(om_dtype dtype) {
  return dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F64 || dtype == OM_DTYPE_F16 ||
         dtype == OM_DTYPE_BF16;
}

static bool are_comparable(const om_tensor *a, const om_tensor *b) {
  if (a->dtype != b->dtype && !(is_float(a->dtype) && is_float(b->dtype))) return false;
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static size_t count_different(const om_tensor *a, const om_tensor *b, size_t elems) {
  size_t count = 0;
  if (a->dtype != b->dtype) return elems;
  if (b->dtype == OM_DTYPE_STRING) {
    for (size_t i = 0; i < elems; ++i) {
      const om_string *x = (const om_string *)a->data + i, *y = (const om_string *)b->data + i;
      count += x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0;
    }
    return count;
  }
  const size_t n = om_dtype_bits(b->dtype) / 8;
  for (size_t i = 0; n > 0 && i < elems; ++i) {
    count += memcmp((const char *)a->data + i * n, (const char *)b->data + i * n, n) != 0;
  }
  return count;
}

static double scaled_error(const om_tensor *a, const om_tensor *b, size_t elems) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < elems; ++i) {
    const double x = value_as_double(a, i), y = value_as_double(b, i);
    const bool is_finite = isfinite(x) && isfinite(y);
    if (!is_finite && !(isnan(x) && isnan(y)) && x != y) worst = (double)INFINITY;
    if (!is_finite) continue;
    worst = fmax(worst, fabs(x - y));
    largest = fmax(largest, fabs(y));
  }
  return worst == 0 ? 0 : largest == 0 ? (double)INFINITY : worst / largest;
}

difference compare_tensors(const om_tensor *a, const om_tensor *b) {
  difference d = {0, 0, om_tensor_elems(b)};
  if (!are_comparable(a, b)) return (difference){(double)INFINITY, d.elems, d.elems};
  d.different_bits = count_different(a, b, d.elems);
  if (value_is_integer(b->dtype) || b->dtype == OM_DTYPE_STRING) {
    d.scaled = d.different_bits ? (double)INFINITY : 0;
  } else {
    d.scaled = scaled_error(a, b, d.elems);
  }
  return d;
}
