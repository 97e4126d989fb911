// What pools do with an element, with two, and with the end of a window. KIND is one of these; pools
// of powers take P.exponent and P.root.
#ifndef OM_POOL_GLSL
#define OM_POOL_GLSL

#define POOL_MAX     0
#define POOL_AVERAGE 1
#define POOL_POWERS  2

float pool_start() {
#if KIND == POOL_MAX
  return om_float(OM_SIGN_BIT | OM_INFINITY_BITS);
#else
  return 0.0;
#endif
}

float pool_term(float x) {
#if KIND == POOL_POWERS
  OM_PRECISE float square = x * x;
  if (P.exponent == 1.0) return om_abs(x);
  if (P.exponent == 2.0) return square;
  return om_pow(om_abs(x), P.exponent);
#else
  return x;
#endif
}

float pool_join(float a, float b) {
#if KIND == POOL_MAX
  return om_max(a, b);
#else
  OM_PRECISE float sum = a + b;
  return sum;
#endif
}

float pool_finish(float value, uint count) {
#if KIND == POOL_AVERAGE
  return om_div(value, float(count));
#elif KIND == POOL_POWERS
  if (P.exponent == 1.0) return value;
  if (P.exponent == 2.0) return om_sqrt(value);
  return om_pow(value, P.root);
#else
  return value;
#endif
}

#endif
