// Tests of elements, with broadcasting: comparisons, logic, IsNaN, IsInf. Results are bytes, 0 or 1.
//
// One invocation makes the four bytes of a word. Floats are compared by the order of their bits, so
// that NaN and subnormals (which count as zero) mean the same on every device.
//
//! kernel compare  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/broadcast_params.h"
#include "common/broadcast.glsl"
#include "common/half.glsl"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, TYPE, 1)   // om_dtype: float32, float16, int32, int64, bool, uint8, int8
OM_CONSTANT(1, TEST, 0)   // OM_TEST_*

layout(set = 0, binding = 0, std430) readonly buffer InputX { uint input_x[]; };
layout(set = 0, binding = 1, std430) readonly buffer InputY { uint input_y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { uint output_data[]; };

const uint F32 = 1u;
const uint I8 = 3u;
const uint I64 = 7u;
const uint BOOL = 9u;
const uint F16 = 10u;

bool is_bytes(uint type) {
  return type == 2u || type == I8 || type == BOOL;
}

// Numbers in the order of the floats.
uint order_of(uint bits) {
  uint size = bits & 0x7fffffffu;
  if (size < 0x00800000u) size = 0u;
  return (bits & OM_SIGN_BIT) != 0u ? 0u - size : size;
}

bool is_nan(uint bits) {
  return (bits & 0x7fffffffu) > OM_INFINITY_BITS;
}

uvec2 number_of(uint type, uint low, uint high) {
  if (type == F32) return whole_extend(order_of(low));
  if (type == I64) return uvec2(low, high);
  if (type == BOOL) return uvec2(low != 0u ? 1u : 0u, 0u);
  if (type == I8) return whole_extend((low ^ 128u) - 128u);
  return whole_extend(low);
}

bool passes(uint test, uvec2 x, uvec2 y) {
  bool is_less = whole_is_less(x, y);
  bool is_greater = whole_is_less(y, x);
  bool result = false;
  switch (test) {
    case OM_TEST_EQUAL: result = !is_less && !is_greater; break;
    case OM_TEST_LESS: result = is_less; break;
    case OM_TEST_GREATER: result = is_greater; break;
    case OM_TEST_LESS_OR_EQUAL: result = !is_greater; break;
    case OM_TEST_GREATER_OR_EQUAL: result = !is_less; break;
    case OM_TEST_AND: result = (x.x & y.x) != 0u; break;
    case OM_TEST_OR: result = (x.x | y.x) != 0u; break;
    case OM_TEST_XOR: result = x.x != y.x; break;
    case OM_TEST_NOT: result = x.x == 0u; break;
    default: break;
  }
  return result;
}

bool is_counted_infinity(uint test, uint bits) {
  uint side = (bits & OM_SIGN_BIT) != 0u ? 2u : 1u;
  return (bits & 0x7fffffffu) == OM_INFINITY_BITS && (test & side) != 0u;
}

uint widen(uint word, uint place) {
  return om_bits(half_to_float((word >> (place % 2u * 16u)) & 0xffffu));
}

bool holds(uint given, uint test, uint element) {
  uint type = given == F16 ? F32 : given;
  uvec3 place = broadcast_elements(element);
  bool has_y = test < OM_TEST_NOT;
  uint x = 0u;
  uint y = 0u;
  uint x_high = 0u;
  uint y_high = 0u;
  if (is_bytes(type)) {
    x = (input_x[place.x / 4u] >> (place.x % 4u * 8u)) & 255u;
    if (has_y) y = (input_y[place.y / 4u] >> (place.y % 4u * 8u)) & 255u;
  } else if (given == F16) {
    x = widen(input_x[place.x / 2u], place.x);
    if (has_y) y = widen(input_y[place.y / 2u], place.y);
  } else if (type == I64) {
    x = input_x[place.x * 2u];
    x_high = input_x[place.x * 2u + 1u];
    if (has_y) {
      y = input_y[place.y * 2u];
      y_high = input_y[place.y * 2u + 1u];
    }
  } else {
    x = input_x[place.x];
    if (has_y) y = input_y[place.y];
  }
  if (test >= OM_TEST_IS_INF) return is_counted_infinity(test, x);
  if (test == OM_TEST_IS_NAN) return is_nan(x);
  if (type == F32 && (is_nan(x) || is_nan(y))) return false;
  return passes(test, number_of(type, x, x_high), number_of(type, y, y_high));
}

void main() {
  uint type = TYPE;
  uint test = TEST;
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint word = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    uint element = thread * 4u + k;
    if (element < P.elems && holds(type, test, element)) word = word | (1u << (k * 8u));
  }
  if (thread * 4u < P.elems) output_data[thread] = word;
}
