// The second pass of a product whose depth was cut into chunks (matmul.comp): adds their results in
// order, then applies the chain. One invocation makes one result. Of a product whose columns were
// cut it places those of one part.
//
// In exact variants a chunk is one group of 128 terms, so this is the sum of groups that
// docs/exact.md defines.
//
//! kernel matmul_sum        OM_EXACT=0
//! kernel matmul_sum_exact  OM_EXACT=1
//! kernel matmul_sum_half        OM_EXACT=0 HALF=1
//! kernel matmul_sum_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/matmul_sum_params.h"
#include "common/chain.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer Chunks { float chunk_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { ELEMENT y_data[]; };

void main() {
  uint at = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (at < P.elems) {
    OM_PRECISE float total = chunk_data[at];
    for (uint chunk = 1u; chunk < P.chunk_count; ++chunk) {
      total = total + chunk_data[chunk * P.elems + at];
    }
    uint to = at / P.part_cols * P.y_cols + P.y_first + at % P.part_cols;
    y_data[to] = STORE(chain_apply(total, to));
  }
}
