// The second pass of an attention whose keys were cut into chunks (attention.comp, SPLIT): each
// chunk left a row's sums of products, then its largest score and its sum of exponentials. One
// invocation makes one result; chunks are added in order.
//
//! kernel attention_merge       OM_EXACT=0
//! kernel attention_merge_half  OM_EXACT=0 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/attention_merge_params.h"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0, std430) readonly buffer Chunks { float chunk_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { ELEMENT y_data[]; };

void main() {
  uint at = om_group_index() * 64u + gl_LocalInvocationID.x;
  if (at >= P.elems) return;
  uint col = at % P.width;
  uint row = at / P.width % P.rows;
  uint element = at / P.width / P.rows;
  uint base = at / P.width * (P.width + 2u);
  float best = om_float(0xff7fffffu);
  for (uint chunk = 0u; chunk < P.chunk_count; ++chunk) {
    best = max(best, chunk_data[base + chunk * P.chunk_stride + P.width]);
  }
  float total = 0.0;
  float result = 0.0;
  for (uint chunk = 0u; chunk < P.chunk_count; ++chunk) {
    uint from = base + chunk * P.chunk_stride;
    float factor = exp(chunk_data[from + P.width] - best);
    total = total + factor * chunk_data[from + P.width + 1u];
    result = result + factor * chunk_data[from + col];
  }
  result = result / total;
  if (P.zeroes_nan != 0u && !(total > 0.0)) result = 0.0;
  y_data[element / P.batch_1 * P.y_stride_0 + element % P.batch_1 * P.y_stride_1 +
         row * P.y_row_stride + col * P.y_col_stride] = STORE(result);
}
