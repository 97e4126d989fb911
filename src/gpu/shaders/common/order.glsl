// Keys of float32, int32 and int64 values: unsigned, of 64 bits, in the order of the values. NaN is
// above all numbers, both zeros are alike, and a subnormal is zero.
#ifndef OM_ORDER_GLSL
#define OM_ORDER_GLSL

#include "common/whole.glsl"

const uint ORDER_F32 = 1u;   // om_dtype
const uint ORDER_I64 = 7u;

uvec2 order_key(uint type, uint low, uint high) {
  if (type == ORDER_I64) return uvec2(low, high ^ OM_SIGN_BIT);
  if (type != ORDER_F32) return uvec2(low ^ OM_SIGN_BIT, 0u);
  uint size = low & 0x7fffffffu;
  if (size > OM_INFINITY_BITS) return uvec2(0xffffffffu, 0u);
  if (size < 0x00800000u) size = 0u;
  uint key = (low & OM_SIGN_BIT) != 0u ? 0u - size : size;
  return uvec2(key ^ OM_SIGN_BIT, 0u);
}

#endif
