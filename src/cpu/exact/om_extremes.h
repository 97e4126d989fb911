/* om_max and om_min for loops of vectors: the same bits, those of a NaN aside, by shifts in place
 * of choices, of which compilers make long chains of masks. */
#ifndef OM_EXTREMES_H
#define OM_EXTREMES_H

#include "cpu/exact/om_exact_math.h"

/* Integers in the order of the floats, -0 below +0, and back. NaN is beyond the infinities. */
static inline int32_t om_lane_order(uint32_t bits) {
  const uint32_t sign = (uint32_t)((int32_t)bits >> 31);
  return (int32_t)(bits ^ (sign >> 1));
}

/* The value of that order, or a NaN. A subnormal is cut last, which keeps the order. */
static inline float om_lane_result(float a, float b, int32_t order) {
  const int32_t abs_a = (int32_t)(om_bits(a) & ~OM_SIGN_BIT);
  const int32_t abs_b = (int32_t)(om_bits(b) & ~OM_SIGN_BIT);
  const int32_t magnitude = abs_a > abs_b ? abs_a : abs_b;
  const uint32_t bits = (uint32_t)om_lane_order((uint32_t)order);
  const uint32_t cut = (bits & OM_INFINITY_BITS) == 0 ? ~OM_SIGN_BIT : 0;
  const uint32_t nan = magnitude > (int32_t)OM_INFINITY_BITS ? OM_NAN_BITS : 0;
  return om_float((bits & ~cut) | nan);
}

static inline float om_lane_max(float a, float b) {
  const int32_t order_a = om_lane_order(om_bits(a));
  const int32_t order_b = om_lane_order(om_bits(b));
  return om_lane_result(a, b, order_a > order_b ? order_a : order_b);
}

static inline float om_lane_min(float a, float b) {
  const int32_t order_a = om_lane_order(om_bits(a));
  const int32_t order_b = om_lane_order(om_bits(b));
  return om_lane_result(a, b, order_a < order_b ? order_a : order_b);
}

#endif
