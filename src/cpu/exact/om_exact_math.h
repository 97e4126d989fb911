/* Exact primitives in the common subset of C and GLSL: the least the shaders need to compile. */
#ifndef OM_EXACT_MATH_H
#define OM_EXACT_MATH_H
#ifdef __STDC_VERSION__
#  include <math.h>
static inline float om_max(float a, float b) { return a > b ? a : b; }
static inline float om_min(float a, float b) { return a < b ? a : b; }
static inline float om_div(float a, float b) { return a / b; }
static inline float om_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
#else
float om_max(float a, float b) { return isnan(a) ? a : isnan(b) ? b : (a > b ? a : b); }
float om_min(float a, float b) { return isnan(a) ? a : isnan(b) ? b : (a < b ? a : b); }
float om_div(float a, float b) { return a / b; }
float om_sigmoid(float x) { return 1.0 / (1.0 + exp(-x)); }
#endif
#endif
