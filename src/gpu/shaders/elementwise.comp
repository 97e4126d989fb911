// Elementwise operators: nothing but a chain.
//
// One invocation makes one element, or four neighbours in the _vec4 variants (counts that are
// multiples of 4, nothing broadcast). Each element is computed on its own: no order to keep.
//
//! kernel elementwise             OM_EXACT=0
//! kernel elementwise_exact       OM_EXACT=1
//! kernel elementwise_vec4        OM_EXACT=0 VEC4=1
//! kernel elementwise_vec4_exact  OM_EXACT=1 VEC4=1
//! kernel elementwise_half             OM_EXACT=0 HALF=1
//! kernel elementwise_half_exact       OM_EXACT=1 HALF=1
//! kernel elementwise_vec4_half        OM_EXACT=0 HALF=1 VEC4=1
//! kernel elementwise_vec4_half_exact  OM_EXACT=1 HALF=1 VEC4=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 1
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/elementwise_params.h"
#include "common/chain.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, IS_BROADCAST, 0)   // the masks count: else input and other are dense

#ifdef VEC4
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT4 input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT4 output_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };
#endif

#ifndef VEC4
uint extent(uint dimension) {
  switch (dimension) {
    case 0u: return P.extent_0;
    case 1u: return P.extent_1;
    case 2u: return P.extent_2;
    case 3u: return P.extent_3;
    case 4u: return P.extent_4;
    case 5u: return P.extent_5;
    case 6u: return P.extent_6;
    default: return P.extent_7;
  }
}

// Where the element lies in the input (x) and in the other operand (y).
uvec2 source_elements(uint element) {
  uint rest = element;
  uvec2 index = uvec2(0u, 0u);
  uvec2 stride = uvec2(1u, 1u);
  for (uint dimension = 0u; dimension < P.rank; ++dimension) {
    uint count = extent(dimension);
    uint coordinate = rest % count;
    rest = rest / count;
    if (((P.input_mask >> dimension) & 1u) == 0u) {
      index.x += coordinate * stride.x;
      stride.x *= count;
    }
    if (((P.other_mask >> dimension) & 1u) == 0u) {
      index.y += coordinate * stride.y;
      stride.y *= count;
    }
  }
  return index;
}
#endif

void main() {
  uint thread = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
#ifdef VEC4
  uint element = thread * 4u;
  if (element < P.elems) {
    vec4 values = LOAD4(input_data[thread]);
    values.x = chain_apply(values.x, element);
    values.y = chain_apply(values.y, element + 1u);
    values.z = chain_apply(values.z, element + 2u);
    values.w = chain_apply(values.w, element + 3u);
    output_data[thread] = STORE4(values);
  }
#else
  uint is_broadcast = IS_BROADCAST;
  if (thread < P.elems) {
    uvec2 from = uvec2(thread, thread);
    if (is_broadcast != 0u) from = source_elements(thread);
    float value = chain_apply_broadcast(
        LOAD(input_data[from.x]), thread, from.y, chain_vector_element(thread));
    output_data[thread] = STORE(value);
  }
#endif
}
