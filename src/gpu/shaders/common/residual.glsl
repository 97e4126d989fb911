// The addition in front of a normalisation, which the pass takes in: as the operator by itself
// rounds it, so an exact sum of float16 is rounded to float16. A fast one is not; its kernels are
// WIDE: they take a residual of float32, too, and store as float32 the sum or the result, for a
// normalisation behind them that adds to it again (om_gpu_fuse_norm.c).
//
//     RESIDUAL   0 none   1 of the input's type   2 float32   + 4 stores the sum   + 8 the result
//
// Include it before the chain. A kernel declares RESIDUAL, and its buffers: WIDE, a residual's are
// words of 32 bits (two halves, or a float).
#ifndef OM_RESIDUAL_GLSL
#define OM_RESIDUAL_GLSL

#if HALF && !OM_EXACT
#  define WIDE 1
#  define CHAIN_BINDING 6
#else
#  define WIDE 0
#  define CHAIN_BINDING 5
#endif

const uint RESIDUAL_KIND = 3u;
const uint RESIDUAL_FLOATS = 2u;
const uint STORES_SUM = 4u;
const uint STORES_RESULT = 8u;

vec4 residual_add(vec4 a, vec4 b) {
  OM_PRECISE vec4 sum = a + b;
#if OM_EXACT && HALF
  sum = om_round_half4(sum);
#endif
  return sum;
}

#endif
