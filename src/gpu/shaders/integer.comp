// Arithmetic of int32 and int64 with broadcasting; both are computed in 64 bits and wrap.
//
// One invocation makes one element. A divisor of 0 is somebody else's finding (demand.comp).
//
//! kernel integer
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/broadcast_params.h"
#include "common/broadcast.glsl"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, WORDS, 1)      // of an element
OM_CONSTANT(1, OPERATION, 1)  // a number of ops/elementwise.def, or OM_INTEGER_*

layout(set = 0, binding = 0, std430) readonly buffer InputX { uint input_x[]; };
layout(set = 0, binding = 1, std430) readonly buffer InputY { uint input_y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { uint output_data[]; };

uvec2 magnitude(uvec2 x) {
  if (whole_is_negative(x)) return whole_negate(x);
  return x;
}

uvec2 sign_of(uvec2 x) {
  if (whole_is_negative(x)) return uvec2(0xffffffffu, 0xffffffffu);
  return uvec2(whole_is_zero(x) ? 0u : 1u, 0u);
}

uvec2 lesser(uvec2 x, uvec2 y) {
  if (whole_is_less(y, x)) return y;
  return x;
}

uvec2 greater(uvec2 x, uvec2 y) {
  if (whole_is_less(x, y)) return y;
  return x;
}

// The remainder with the divisor's sign.
uvec2 modulus(uvec2 x, uvec2 y) {
  uvec2 rest = whole_divide(x, y).zw;
  bool differs = whole_is_negative(rest) != whole_is_negative(y);
  if (!whole_is_zero(rest) && differs) rest = whole_add(rest, y);
  return rest;
}

uvec2 operate(uint operation, uvec2 x, uvec2 y) {
  uvec2 result = x;
  switch (operation) {
    case 1u: result = greater(x, uvec2(0u, 0u)); break;   // Relu
    case 12u: result = whole_negate(x); break;
    case 13u: result = magnitude(x); break;
    case 17u: result = sign_of(x); break;
    case 64u: result = whole_add(x, y); break;
    case 65u: result = whole_subtract(x, y); break;
    case 66u: result = whole_multiply(x, y); break;
    case 67u: result = whole_divide(x, y).xy; break;
    case 69u: result = lesser(x, y); break;
    case 70u: result = greater(x, y); break;
    case OM_INTEGER_MOD: result = modulus(x, y); break;
    case OM_INTEGER_FMOD: result = whole_divide(x, y).zw; break;
    default: break;
  }
  return result;
}

void main() {
  uint words = WORDS;
  uint operation = OPERATION;
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uvec3 place = broadcast_elements(element) * words;
    uvec2 x = whole_extend(input_x[place.x]);
    uvec2 y = whole_extend(0u);
    if (operation >= 64u) y = whole_extend(input_y[place.y]);
    if (words == 2u) {
      x.y = input_x[place.x + 1u];
      if (operation >= 64u) y.y = input_y[place.y + 1u];
    }
    uvec2 result = operate(operation, x, y);
    output_data[element * words] = result.x;
    if (words == 2u) output_data[element * 2u + 1u] = result.y;
  }
}
