// The addition in front of a normalisation, which the pass takes in: as the operator by itself
// rounds it, so an exact sum of float16 is rounded to float16. A fast one is not.
#ifndef OM_RESIDUAL_GLSL
#define OM_RESIDUAL_GLSL

vec4 residual_add(vec4 a, vec4 b) {
  OM_PRECISE vec4 sum = a + b;
#if OM_EXACT && HALF
  sum = om_round_half4(sum);
#endif
  return sum;
}

#endif
