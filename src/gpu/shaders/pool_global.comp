// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one workgroup a plane; in the _small variants, for
// fast mode, 8 planes, each by 32 invocations with a halving tree of their own.
//
// Invocation i takes the elements i, i + 256, ... from 0; then the halving tree of docs/exact.md:
// lane[i] += lane[i + 128], then + 64 and so on. The mean is that sum divided by the count.
//
//! kernel pool_global_max                 OM_EXACT=0 KIND=POOL_MAX
//! kernel pool_global_max_exact           OM_EXACT=1 KIND=POOL_MAX
//! kernel pool_global_max_half            OM_EXACT=0 HALF=1 KIND=POOL_MAX
//! kernel pool_global_max_half_exact      OM_EXACT=1 HALF=1 KIND=POOL_MAX
//! kernel pool_global_average             OM_EXACT=0 KIND=POOL_AVERAGE
//! kernel pool_global_average_exact       OM_EXACT=1 KIND=POOL_AVERAGE
//! kernel pool_global_average_half        OM_EXACT=0 HALF=1 KIND=POOL_AVERAGE
//! kernel pool_global_average_half_exact  OM_EXACT=1 HALF=1 KIND=POOL_AVERAGE
//! kernel pool_global_powers              OM_EXACT=0 KIND=POOL_POWERS
//! kernel pool_global_powers_exact        OM_EXACT=1 KIND=POOL_POWERS
//! kernel pool_global_powers_half         OM_EXACT=0 HALF=1 KIND=POOL_POWERS
//! kernel pool_global_powers_half_exact   OM_EXACT=1 HALF=1 KIND=POOL_POWERS
//! kernel pool_global_max_small               OM_EXACT=0 KIND=POOL_MAX SMALL=1
//! kernel pool_global_max_small_half          OM_EXACT=0 HALF=1 KIND=POOL_MAX SMALL=1
//! kernel pool_global_average_small               OM_EXACT=0 KIND=POOL_AVERAGE SMALL=1
//! kernel pool_global_average_small_half          OM_EXACT=0 HALF=1 KIND=POOL_AVERAGE SMALL=1
//! kernel pool_global_powers_small               OM_EXACT=0 KIND=POOL_POWERS SMALL=1
//! kernel pool_global_powers_small_half          OM_EXACT=0 HALF=1 KIND=POOL_POWERS SMALL=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/pool_global_params.h"
#include "common/chain.glsl"
#include "common/pool.glsl"

#define THREADS 256
#ifdef SMALL
#  define LANES 32                 // of a plane
#else
#  define LANES THREADS
#endif
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

shared float lanes[THREADS];

void main() {
  uint thread = gl_LocalInvocationID.x;
  uint lane = thread % uint(LANES);
  uint plane = om_group_index() * uint(THREADS / LANES) + thread / uint(LANES);
  float value = pool_start();
  if (plane < P.planes) {
    for (uint i = lane; i < P.plane_elems; i += uint(LANES)) {
      value = pool_join(value, pool_term(LOAD(input_data[plane * P.plane_elems + i])));
    }
  }
  lanes[thread] = value;
  barrier();
  for (uint distance = uint(LANES / 2); distance != 0u; distance = distance / 2u) {
    if (lane < distance) lanes[thread] = pool_join(lanes[thread], lanes[thread + distance]);
    barrier();
  }
  if (lane == 0u && plane < P.planes) {
    float result = chain_apply(pool_finish(lanes[thread], P.plane_elems), plane);
    output_data[plane] = STORE(result);
  }
}
