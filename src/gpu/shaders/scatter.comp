// ScatterElements (an update for each index) and ScatterND (a row of updates for each tuple).
//
// One invocation makes one element of the result, or the elements of one word: it starts from the
// data and goes through the updates that may mean it, in the order of the indices, so that several
// that meet in one place give the CPU's bits.
//
//! kernel scatter_elements        OM_EXACT=1
//! kernel scatter_elements_bytes  OM_EXACT=1 BYTES=1
//! kernel scatter_nd              OM_EXACT=1 TUPLES=1
//! kernel scatter_nd_bytes        OM_EXACT=1 TUPLES=1 BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/index_params.h"
#include "common/index.glsl"
#include "common/half.glsl"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, SIZE, 1)          // of an element: words, bytes in _bytes
OM_CONSTANT(1, INDEX_WORDS, 1)
OM_CONSTANT(2, REDUCTION, 0)     // om_scatter_reduction: none, add, mul, max, min
OM_CONSTANT(3, IS_FLOAT, 0)

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2, std430) readonly buffer Updates { uint updates[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { uint output_data[]; };

#include "common/move.glsl"

uint join_floats(uint reduction, uint a_bits, uint b_bits) {
  float a = om_float(a_bits);
  float b = om_float(b_bits);
  OM_PRECISE float sum = a + b;
  OM_PRECISE float product = a * b;
  if (reduction == 1u) return om_bits(sum);
  if (reduction == 2u) return om_bits(product);
  if (om_is_nan(a)) return a_bits;
  if (om_is_nan(b)) return b_bits;
  bool takes_a = reduction == 3u ? a > b : a < b;
  return takes_a ? a_bits : b_bits;
}

#ifdef BYTES
// Each update rounds.
uint join_halves(uint reduction, uint a, uint b) {
  uint a_bits = om_bits(half_to_float(a & 0xffffu));
  uint b_bits = om_bits(half_to_float(b & 0xffffu));
  return half_from_float(om_float(join_floats(reduction, a_bits, b_bits)));
}
#endif

uvec2 join(uvec2 a, uvec2 b) {
  uint reduction = REDUCTION;
  uint is_float = IS_FLOAT;
  uint size = SIZE;
  if (reduction == 0u) return b;
#ifdef BYTES
  if (is_float != 0u) return uvec2(join_halves(reduction, a.x, b.x), 0u);
#else
  if (is_float != 0u) return uvec2(join_floats(reduction, a.x, b.x), 0u);
#endif
  uvec2 x = a;
  uvec2 y = b;
  if (size == 1u) {
    x = whole_extend(a.x);
    y = whole_extend(b.x);
  }
  if (reduction == 1u) return whole_add(x, y);
  if (reduction == 2u) return whole_multiply(x, y);
  bool takes_x = reduction == 3u ? whole_is_less(y, x) : whole_is_less(x, y);
  if (takes_x) return x;
  return y;
}

#ifdef TUPLES
uvec2 make_element(uint element) {
  uint words = INDEX_WORDS;
  uint row = element / P.row_elems;
  uint col = element % P.row_elems;
  uvec2 value = OM_ELEMENT(input_data, element);
  for (uint tuple = 0u; tuple < P.index_count; ++tuple) {
    uint target = 0u;
    for (uint i = 0u; i < P.rank; ++i) {
      uint index = index_wrap(indices[(tuple * P.rank + i) * words], index_extent(i));
      target += index * index_stride(i);
    }
    if (target == row * P.row_elems) {
      uint place = tuple * P.row_elems + col;
      value = join(value, OM_ELEMENT(updates, place));
    }
  }
  return value;
}
#else
uvec2 make_element(uint element) {
  uint words = INDEX_WORDS;
  uvec2 value = OM_ELEMENT(input_data, element);
  uint first = 0u;       // of the updates with this element's other positions
  uint along = 1u;       // to the next along the axis
  uint stride = 1u;      // of the indices
  uint own = 0u;
  uint count = 0u;
  for (uint i = 0u; i < P.rank; ++i) {
    uint extent = index_extent(i);
    uint position = element / index_stride(i);
    if (i == P.axis) {
      own = position % P.axis_extent;
      along = stride;
      count = extent;
    } else {
      if (i + 1u < P.rank) position = position % (index_stride(i + 1u) / index_stride(i));
      if (position >= extent) return value;
      first += position * stride;
    }
    stride *= extent;
  }
  for (uint k = 0u; k < count; ++k) {
    uint place = first + k * along;
    uint index = index_wrap(indices[place * words], P.axis_extent);
    if (index == own) value = join(value, OM_ELEMENT(updates, place));
  }
  return value;
}
#endif

OM_MOVE_MAIN
