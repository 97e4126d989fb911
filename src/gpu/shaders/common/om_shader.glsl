// What every kernel includes first, after #version and #extension lines.
//
// OM_EXACT (set by the variant line, 0 if it is not): 1 gives the arithmetic of docs/exact.md,
// shared with the CPU through cpu/exact/om_exact_math.h; 0 gives the device's own functions under
// the same names. OM_PRECISE marks a variable whose additions and multiplications round one by
// one in exact variants: `OM_PRECISE float s = 0.0; s = s + a * b;`. It reaches what the
// variable is computed from within one function, so each function marks its own.
//
// SignedZeroInfNanPreserve is not declared: the mode is a feature that a device may lack, WGSL
// has no word for it, and it would double the exact variants. What it guards, the exact
// primitives do with integer operations on the bits, and the self-test checks it on the device.
//
// HALF (0 if the variant line does not set it): 1 makes the elements in memory float16. A kernel
// declares its buffers as arrays of ELEMENT or ELEMENT4 and computes in float:
//
//     float x = LOAD(input_data[i]);       vec4 v = LOAD4(rows[i]);
//     output_data[i] = STORE(x);           output_data[i] = STORE4(v);
//
// In exact variants a store converts a value that has been rounded already, so that a driver's way
// of rounding does not matter. A device has 16-bit storage for these variants; nothing else of 16
// bits is asked for, so a float16_t is loaded, stored and converted, never computed with.
#ifndef OM_SHADER_GLSL
#define OM_SHADER_GLSL

#ifndef HALF
#  define HALF 0
#endif
#if HALF
#  extension GL_EXT_shader_16bit_storage : require
#endif

#ifndef OM_EXACT
#  define OM_EXACT 0
#endif
#if OM_EXACT
#  define OM_PRECISE precise
#else
#  define OM_PRECISE
#endif

// The 0 that a sum begins with, from a parameter below 2^31. A compiler that knows the 0 may take x for
// 0 + x, which is wrong for x = -0 (lavapipe of Mesa 25 does, also in what is precise).
#if OM_EXACT
#  define OM_START(parameter) float((parameter) >> 31)
#else
#  define OM_START(parameter) 0.0
#endif

// A specialization constant. Read it through a variable (`uint v = NAME;`) before comparing it
// with a literal: an expression of constants alone does not survive the way to WGSL.
#define OM_CONSTANT(number, name, initial) layout(constant_id = number) const uint name = initial;

#include "cpu/exact/om_exact_math.h"

#if HALF
#  define ELEMENT  float16_t
#  define ELEMENT4 f16vec4
#  define LOAD(element) float(element)
#  define LOAD4(elements) vec4(elements)
#  if OM_EXACT
vec4 om_round_half4(vec4 v) {
  return vec4(om_round_half(v.x), om_round_half(v.y), om_round_half(v.z), om_round_half(v.w));
}
#    define STORE(value) float16_t(om_round_half(value))
#    define STORE4(values) f16vec4(om_round_half4(values))
#  else
#    define STORE(value) float16_t(value)
#    define STORE4(values) f16vec4(values)
#  endif
#else
#  define ELEMENT  float
#  define ELEMENT4 vec4
#  define LOAD(element) (element)
#  define LOAD4(elements) (elements)
#  define STORE(value) (value)
#  define STORE4(values) (values)
#endif

// The workgroup's number, for grids made by om_gpu_spread_groups. It may be past the end: guard.
uint om_group_index() {
  return gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

#endif
