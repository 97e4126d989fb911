// Keys of float32, int32 and int64 values: unsigned, of 64 bits, in the order of the values. NaN is
// above all numbers, both zeros are alike, and a subnormal is zero.
//
//     ORDER_BUFFER(0, Input, input)           the buffer input_data of binding 0
//     ORDER_LOAD(input, type, element)        its words, low and high; a float16 as a float32
#ifndef OM_ORDER_GLSL
#define OM_ORDER_GLSL

#include "common/whole.glsl"

const uint ORDER_F32 = 1u;   // om_dtype
const uint ORDER_I64 = 7u;

#if HALF
#  define ORDER_BUFFER(number, block, name) \
    layout(set = 0, binding = number, std430) readonly buffer block { ELEMENT name##_data[]; };
#  define ORDER_LOAD(name, type, element) uvec2(om_bits(LOAD(name##_data[element])), 0u)
#else
#  define ORDER_BUFFER(number, block, name) \
    layout(set = 0, binding = number, std430) readonly buffer block { uint name##_data[]; };
#  define ORDER_LOAD(name, type, element)                      \
    ((type) == ORDER_I64                                       \
         ? uvec2(name##_data[(element) * 2u], name##_data[(element) * 2u + 1u]) \
         : uvec2(name##_data[element], name##_data[element]))
#endif

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
