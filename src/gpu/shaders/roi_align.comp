// RoiAlign: one invocation a result. Edges, samples and weights are those of
// cpu/exact/om_exact_sample.h; samples row by row, the terms of a sample's four neighbours in order.
//
//! kernel roi_align             OM_EXACT=0
//! kernel roi_align_exact       OM_EXACT=1
//! kernel roi_align_half        OM_EXACT=0 HALF=1
//! kernel roi_align_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 3
#define CHAIN_BINDING 4
#include "common/om_shader.glsl"
#include "cpu/exact/om_exact_sample.h"
#include "abi/roi_align_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, IS_MAX, 0)
OM_CONSTANT(1, IS_HALF_PIXEL, 0)
OM_CONSTANT(2, INDEX_WORDS, 2)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Rois { ELEMENT roi_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Images { uint image_data[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { ELEMENT output_data[]; };

float sampled(uint plane, float place_y, float place_x, bool is_max) {
  uint y = om_roi_element(place_y, P.in_h);
  uint x = om_roi_element(place_x, P.in_w);
  uint below = min(y + 1u, P.in_h - 1u);
  uint right = min(x + 1u, P.in_w - 1u);
  float part_y = om_roi_part(place_y, P.in_h);
  float part_x = om_roi_part(place_x, P.in_w);
  OM_PRECISE float rest_y = 1.0 - part_y;
  OM_PRECISE float rest_x = 1.0 - part_x;
  OM_PRECISE float a = rest_y * rest_x;
  OM_PRECISE float b = rest_y * part_x;
  OM_PRECISE float c = part_y * rest_x;
  OM_PRECISE float d = part_y * part_x;
  a = a * LOAD(input_data[plane + y * P.in_w + x]);
  b = b * LOAD(input_data[plane + y * P.in_w + right]);
  c = c * LOAD(input_data[plane + below * P.in_w + x]);
  d = d * LOAD(input_data[plane + below * P.in_w + right]);
  OM_PRECISE float sum = a + b;
  sum = sum + c;
  sum = sum + d;
  if (is_max) return om_max(om_max(om_max(a, b), c), d);
  return sum;
}

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint is_max = IS_MAX;
    uint half_pixel = IS_HALF_PIXEL;
    uint words = INDEX_WORDS;
    bool is_half_pixel = half_pixel != 0u;
    uint row = element / P.out_w;
    uint bin_x = element - row * P.out_w;
    uint plane = row / P.out_h;
    uint bin_y = row - plane * P.out_h;
    uint region = plane / P.channels;
    uint image = image_data[region * words];
    if ((image & OM_SIGN_BIT) != 0u) image = image + P.images;
    image = min(image, P.images - 1u);
    uint base = (image * P.channels + plane - region * P.channels) * P.in_h * P.in_w;
    float begin_x = om_roi_edge(LOAD(roi_data[region * 4u]), P.scale, is_half_pixel);
    float begin_y = om_roi_edge(LOAD(roi_data[region * 4u + 1u]), P.scale, is_half_pixel);
    float end_x = om_roi_edge(LOAD(roi_data[region * 4u + 2u]), P.scale, is_half_pixel);
    float end_y = om_roi_edge(LOAD(roi_data[region * 4u + 3u]), P.scale, is_half_pixel);
    float size_y = om_roi_bin(begin_y, end_y, float(P.out_h), is_half_pixel);
    float size_x = om_roi_bin(begin_x, end_x, float(P.out_w), is_half_pixel);
    uint samples_y = om_roi_samples(size_y, P.samples, P.in_h);
    uint samples_x = om_roi_samples(size_x, P.samples, P.in_w);
    OM_PRECISE float value = 0.0;
    for (uint i = 0u; i < samples_y; ++i) {
      float place_y = om_roi_place(begin_y, size_y, bin_y, i, samples_y);
      for (uint k = 0u; k < samples_x; ++k) {
        float place_x = om_roi_place(begin_x, size_x, bin_x, k, samples_x);
        float term = 0.0;
        if (om_roi_is_inside(place_y, P.in_h) && om_roi_is_inside(place_x, P.in_w)) {
          term = sampled(base, place_y, place_x, is_max != 0u);
        }
        if (is_max == 0u) {
          value = value + term;
        } else {
          value = i + k == 0u ? term : om_max(value, term);
        }
      }
    }
    if (is_max == 0u && samples_y != 0u && samples_x != 0u) {
      OM_PRECISE float count = float(samples_y) * float(samples_x);
      value = om_div(value, count);
    }
    float result = chain_apply(value, element);
    output_data[element] = STORE(result);
  }
}
