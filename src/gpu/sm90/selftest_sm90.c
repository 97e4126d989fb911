/* The self-test (selftest.comp) as a kernel of Hopper's: what earns a device the exact ones. */
//! kernel selftest_sm90_exact  bindings=r,r,r,w params=8 threads=64 OM_EXACT=1
#include "abi/selftest_params.h"
#include "gpu/sm90/sm90.h"
#include "gpu/sm90/sm90_math.h"

typedef struct selftest_args {
  uint64_t a, b, c, y;
  om_selftest_params p;
} selftest_args;

SM90_INLINE float evaluate(uint32_t number, float a, float b, float c) {
  switch (number) {
#define OM_SELFTEST(id, primitive, expression) \
  case id:                                     \
    return expression;
#include "gpu/om_gpu_selftest.def"
#undef OM_SELFTEST
    default:
      return 0.0f;
  }
}

SM90_INLINE float load(uint64_t from, uint32_t index) {
  return om_float(((const uint32_t *)from)[index]);
}

SM90_KERNEL void OM_KERNEL(selftest_args args) {
  const uint32_t index = group_index() * OM_THREADS + thread_index();
  if (index >= args.p.count) return;
  const float a = load(args.a, index);
  const float b = load(args.b, index);
  const float c = load(args.c, index);
  ((uint32_t *)args.y)[index] = om_bits(evaluate(args.p.number, a, b, c));
}
