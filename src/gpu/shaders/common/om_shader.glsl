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
#ifndef OM_SHADER_GLSL
#define OM_SHADER_GLSL

#ifndef OM_EXACT
#  define OM_EXACT 0
#endif
#if OM_EXACT
#  define OM_PRECISE precise
#else
#  define OM_PRECISE
#endif

// A specialization constant. Read it through a variable (`uint v = NAME;`) before comparing it
// with a literal: an expression of constants alone does not survive the way to WGSL.
#define OM_CONSTANT(number, name, initial) layout(constant_id = number) const uint name = initial;

#include "cpu/exact/om_exact_math.h"

// The workgroup's number, for grids made by om_gpu_spread_groups. It may be past the end: guard.
uint om_group_index() {
  return gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

#endif
