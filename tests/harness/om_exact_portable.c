#define OM_EXACT_PORTABLE 1
#include "harness/om_exact_portable.h"

#include "cpu/exact/om_exact_math.h"

float om_portable_div(float a, float b) {
  return om_div(a, b);
}

float om_portable_div_by(float a, float b) {
  return om_div_by(a, om_divisor_of(b));
}

float om_portable_sqrt(float x) {
  return om_sqrt(x);
}
