// Pad, all modes, of elements of one or two words, or of one or two bytes (_bytes).
//
// One invocation makes one element of the result, or the elements of a word. Bits are moved as they
// are.
//
//! kernel pad
//! kernel pad_bytes  BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/pad_params.h"

layout(local_size_x = 256) in;

OM_CONSTANT(0, MODE, 0)   // om_pad_mode: constant, reflect, edge, wrap
OM_CONSTANT(1, SIZE, 1)   // of an element: words, bytes in _bytes

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

struct pad_axis {
  uint result;
  int source;
  int before;
};

pad_axis get_axis(uint number) {
  switch (number) {
    case 0u: return pad_axis(P.result_0, int(P.source_0), P.before_0);
    case 1u: return pad_axis(P.result_1, int(P.source_1), P.before_1);
    case 2u: return pad_axis(P.result_2, int(P.source_2), P.before_2);
    case 3u: return pad_axis(P.result_3, int(P.source_3), P.before_3);
    case 4u: return pad_axis(P.result_4, int(P.source_4), P.before_4);
    case 5u: return pad_axis(P.result_5, int(P.source_5), P.before_5);
    case 6u: return pad_axis(P.result_6, int(P.source_6), P.before_6);
    default: return pad_axis(P.result_7, int(P.source_7), P.before_7);
  }
}

// Reflects or wraps a position outside the input to one inside.
int fold(int at, int extent, uint mode) {
  int period = extent;
  if (mode == 1u) period = 2 * (extent - 1);
  if (period == 0) return 0;
  int inside = at - at / period * period;
  if (inside < 0) inside += period;
  return inside < extent ? inside : period - inside;
}

const uint OUTSIDE = 0xffffffffu;

// Where the element of the result lies in the input, or OUTSIDE.
uint find_source(uint element, uint mode) {
  uint rest = element;
  uint source = 0u;
  uint stride = 1u;
  bool is_inside = true;
  for (uint i = 0u; i < P.rank; ++i) {
    pad_axis axis = get_axis(i);
    int at = int(rest % axis.result) - axis.before;
    rest = rest / axis.result;
    if (mode == 0u) {
      is_inside = is_inside && at >= 0 && at < axis.source;
    } else if (mode == 2u) {
      at = clamp(at, 0, axis.source - 1);
    } else {
      at = fold(at, axis.source, mode);
    }
    source += uint(at) * stride;
    stride *= uint(axis.source);
  }
  return is_inside ? source : OUTSIDE;
}

#ifdef BYTES
void main() {
  uint mode = MODE;
  uint size = SIZE;
  uint bits = size * 8u;
  uint count = 4u / size;
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint word = 0u;
  for (uint k = 0u; k < count; ++k) {
    uint element = thread * count + k;
    if (element < P.elems) {
      uint source = find_source(element, mode);
      uint part = P.value;
      if (source != OUTSIDE) part = input_data[source / count] >> (source % count * bits);
      word = word | ((part & ((1u << bits) - 1u)) << (k * bits));
    }
  }
  if (thread * count < P.elems) output_data[thread] = word;
}
#else
void main() {
  uint mode = MODE;
  uint size = SIZE;
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (thread < P.elems) {
    uint source = find_source(thread, mode);
    for (uint k = 0u; k < size; ++k) {
      uint word = k == 0u ? P.value : P.value_high;
      if (source != OUTSIDE) word = input_data[source * size + k];
      output_data[thread * size + k] = word;
    }
  }
}
#endif
