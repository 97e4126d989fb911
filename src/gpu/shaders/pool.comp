// MaxPool, AveragePool and LpPool over one to three axes: one invocation a result.
//
// A sum takes the window's elements inside the input, in increasing position from 0; a mean divides
// it by their number (or by that of the taps inside the padded input). A maximum has no order; NaN
// wins. The _indices variants also store the place of the first of the greatest, as int64.
//
//! kernel pool_max                     OM_EXACT=0 KIND=POOL_MAX
//! kernel pool_max_exact               OM_EXACT=1 KIND=POOL_MAX
//! kernel pool_max_half                OM_EXACT=0 HALF=1 KIND=POOL_MAX
//! kernel pool_max_half_exact          OM_EXACT=1 HALF=1 KIND=POOL_MAX
//! kernel pool_average                 OM_EXACT=0 KIND=POOL_AVERAGE
//! kernel pool_average_exact           OM_EXACT=1 KIND=POOL_AVERAGE
//! kernel pool_average_half            OM_EXACT=0 HALF=1 KIND=POOL_AVERAGE
//! kernel pool_average_half_exact      OM_EXACT=1 HALF=1 KIND=POOL_AVERAGE
//! kernel pool_powers                  OM_EXACT=0 KIND=POOL_POWERS
//! kernel pool_powers_exact            OM_EXACT=1 KIND=POOL_POWERS
//! kernel pool_powers_half             OM_EXACT=0 HALF=1 KIND=POOL_POWERS
//! kernel pool_powers_half_exact       OM_EXACT=1 HALF=1 KIND=POOL_POWERS
//! kernel pool_max_indices             OM_EXACT=0 KIND=POOL_MAX INDICES=1
//! kernel pool_max_indices_exact       OM_EXACT=1 KIND=POOL_MAX INDICES=1
//! kernel pool_max_indices_half        OM_EXACT=0 HALF=1 KIND=POOL_MAX INDICES=1
//! kernel pool_max_indices_half_exact  OM_EXACT=1 HALF=1 KIND=POOL_MAX INDICES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 6
#ifdef INDICES
#  define CHAIN_BINDING 3
#else
#  define CHAIN_BINDING 2
#endif
#include "common/om_shader.glsl"
#include "abi/pool_window_params.h"
#include "common/chain.glsl"
#include "common/pool.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, KERNEL_D, 1)
OM_CONSTANT(1, KERNEL_H, 1)
OM_CONSTANT(2, KERNEL_W, 1)
OM_CONSTANT(3, STRIDE_D, 1)
OM_CONSTANT(4, STRIDE_H, 1)
OM_CONSTANT(5, STRIDE_W, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };
#ifdef INDICES
layout(set = 0, binding = 2, std430) writeonly buffer Indices { uint index_data[]; };

// NaN is above everything but itself, +0 above -0.
bool is_above(float a, float b) {
  if (om_is_nan(a) || om_is_nan(b)) return om_is_nan(a) && !om_is_nan(b);
  return om_order(a) > om_order(b);
}
#endif

const uint NOWHERE = 0xffffffffu;

struct pool_result {
  float value;
  uint place;                      // of the greatest in its plane, or NOWHERE
  uint count;                      // taps inside the input
};

// Taps of a window that starts at `start` (counted from the padded edge) and are before `limit`.
uint taps_before(uint start, uint limit, uint kernel, uint dilation) {
  uint count = 0u;
  if (start < limit) count = (limit - start + dilation - 1u) / dilation;
  return min(count, kernel);
}

void take(inout pool_result found, float element, uvec3 at, uint place) {
#ifdef INDICES
  if (found.place == NOWHERE || is_above(element, found.value)) {
    found.value = om_ftz(element);
    found.place = P.is_by_column != 0u ? at.x + P.in_d * (at.y + P.in_h * at.z) : place;
  }
#else
  found.value = pool_join(found.value, pool_term(element));
#endif
  ++found.count;
}

// A position before the input wraps and so is not below its extent.
pool_result pool_window(uint plane, uvec3 start) {
  uint kernel_d = KERNEL_D;
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  pool_result found = pool_result(pool_start(), NOWHERE, 0u);
  for (uint kz = 0u; kz < kernel_d; ++kz) {
    uint z = start.x + kz * P.dilation_d - P.pad_d;
    if (z < P.in_d) {
      for (uint ky = 0u; ky < kernel_h; ++ky) {
        uint y = start.y + ky * P.dilation_h - P.pad_h;
        if (y < P.in_h) {
          for (uint kx = 0u; kx < kernel_w; ++kx) {
            uint x = start.z + kx * P.dilation_w - P.pad_w;
            if (x < P.in_w) {
              uint place = (z * P.in_h + y) * P.in_w + x;
              take(found, LOAD(input_data[plane + place]), uvec3(z, y, x), place);
            }
          }
        }
      }
    }
  }
  return found;
}

uint counted(pool_result found, uvec3 start) {
  uint kernel_d = KERNEL_D;
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  if (P.counted_d == 0u) return found.count;
  return taps_before(start.x, P.counted_d, kernel_d, P.dilation_d) *
         taps_before(start.y, P.counted_h, kernel_h, P.dilation_h) *
         taps_before(start.z, P.counted_w, kernel_w, P.dilation_w);
}

void main() {
  uint stride_d = STRIDE_D;
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint row = element / P.out_w;
    uint slice = row / P.out_h;
    uint plane = slice / P.out_d;
    uvec3 start = uvec3((slice - plane * P.out_d) * stride_d, (row - slice * P.out_h) * stride_h,
                        (element - row * P.out_w) * stride_w);
    uint base = plane * P.in_d * P.in_h * P.in_w;
    pool_result found = pool_window(base, start);
    float value = chain_apply(pool_finish(found.value, counted(found, start)), element);
    output_data[element] = STORE(value);
#ifdef INDICES
    bool is_somewhere = found.place != NOWHERE;
    index_data[element * 2u] = is_somewhere ? base + found.place : NOWHERE;
    index_data[element * 2u + 1u] = is_somewhere ? 0u : NOWHERE;
#endif
  }
}
