// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one workgroup a plane; in the _small variants, for
// fast mode, 8 planes, each by 32 invocations with a halving tree of their own; in the _alone variants, for
// fast mode too, 64 planes, each by an invocation that joins the results of blocks of 64 elements.
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
//! kernel pool_global_max_alone  OM_EXACT=0 KIND=POOL_MAX ALONE=1
//! kernel pool_global_max_alone_half  OM_EXACT=0 HALF=1 KIND=POOL_MAX ALONE=1
//! kernel pool_global_average_alone  OM_EXACT=0 KIND=POOL_AVERAGE ALONE=1
//! kernel pool_global_average_alone_half  OM_EXACT=0 HALF=1 KIND=POOL_AVERAGE ALONE=1
//! kernel pool_global_powers_alone  OM_EXACT=0 KIND=POOL_POWERS ALONE=1
//! kernel pool_global_powers_alone_half  OM_EXACT=0 HALF=1 KIND=POOL_POWERS ALONE=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/pool_global_params.h"
#include "common/chain.glsl"
#include "common/pool.glsl"

#ifdef ALONE
#  define THREADS 64
#  define LANES 1
#else
#  define THREADS 256
#  ifdef SMALL
#    define LANES 32               // of a plane
#  else
#    define LANES THREADS
#  endif
shared float lanes[THREADS];
#endif
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

// Every `step`th of the plane's elements from `begin` on.
float join_elements(uint plane, uint begin, uint end, uint step) {
  float value = pool_start();
  for (uint i = begin; i < end; i += step) {
    value = pool_join(value, pool_term(LOAD(input_data[plane * P.plane_elems + i])));
  }
  return value;
}

#ifdef ALONE
float join_plane(uint plane, uint lane) {
  float value = pool_start();
  for (uint begin = 0u; begin < P.plane_elems; begin += 64u) {
    value = pool_join(value, join_elements(plane, begin, min(begin + 64u, P.plane_elems), 1u));
  }
  return value;
}
#else
float join_plane(uint plane, uint lane) {
  uint thread = gl_LocalInvocationID.x;
  lanes[thread] =
      plane < P.planes ? join_elements(plane, lane, P.plane_elems, uint(LANES)) : pool_start();
  barrier();
  for (uint distance = uint(LANES / 2); distance != 0u; distance = distance / 2u) {
    if (lane < distance) lanes[thread] = pool_join(lanes[thread], lanes[thread + distance]);
    barrier();
  }
  return lanes[thread];
}
#endif

void main() {
  uint thread = gl_LocalInvocationID.x;
  uint lane = thread % uint(LANES);
  uint plane = om_group_index() * uint(THREADS / LANES) + thread / uint(LANES);
#ifdef ALONE
  if (plane >= P.planes) return;
#endif
  float value = join_plane(plane, lane);
  if (lane == 0u && plane < P.planes) {
    float result = chain_apply(pool_finish(value, P.plane_elems), plane);
    output_data[plane] = STORE(result);
  }
}
