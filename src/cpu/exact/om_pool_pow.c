/* The exact power, apart from everything else. */
#include "cpu/exact/om_pool_pow.h"

#include "cpu/exact/om_exact_math.h"

float om_pool_pow(float x, float y) {
  return om_pow(x, y);
}
