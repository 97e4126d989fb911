/* float32 as two float16 in sm90 kernels, as matmul_matrix.comp says: the high part is the value
 * rounded, the low one 2^11 times what that left off. om_exact_math.h comes before this.
 */
#ifndef SM90_SPLIT_H
#define SM90_SPLIT_H

#include "gpu/sm90/sm90.h"

#define SM90_LOW_SCALE 2048.0f

/* Four terms of a row as two words of high parts and two of low ones. */
SM90_INLINE void split4(const float v[4], uint32_t high[2], uint32_t low[2]) {
  float rest[4];
  SM90_UNROLL for (int i = 0; i < 2; ++i) {
    high[i] = pack_halves(v[2 * i], v[2 * i + 1]);
    unpack_halves(high[i], &rest[2 * i], &rest[2 * i + 1]);
  }
  SM90_UNROLL for (int i = 0; i < 4; ++i) rest[i] = (v[i] - rest[i]) * SM90_LOW_SCALE;
  SM90_UNROLL for (int i = 0; i < 2; ++i) low[i] = pack_halves(rest[2 * i], rest[2 * i + 1]);
}

/* The same of a row that is scaled: an infinity is a low part beside a high part of zero. */
SM90_INLINE void split4_scaled(float v[4], float scale, uint32_t high[2], uint32_t low[2]) {
  float numbers[4];
  float rest[4];
  SM90_UNROLL for (int i = 0; i < 4; ++i) {
    v[i] *= scale;
    numbers[i] = (om_bits(v[i]) & 0x7fffffffu) < OM_INFINITY_BITS ? v[i] : 0.0f;
  }
  SM90_UNROLL for (int i = 0; i < 2; ++i) {
    high[i] = pack_halves(numbers[2 * i], numbers[2 * i + 1]);
    unpack_halves(high[i], &rest[2 * i], &rest[2 * i + 1]);
  }
  SM90_UNROLL for (int i = 0; i < 4; ++i) rest[i] = (v[i] - rest[i]) * SM90_LOW_SCALE;
  SM90_UNROLL for (int i = 0; i < 2; ++i) low[i] = pack_halves(rest[2 * i], rest[2 * i + 1]);
}

/* True if a row is such that its values as they are do not keep their bits. */
SM90_INLINE bool is_far(float largest) {
  return largest != 0.0f && !(largest >= 1.0f / 16384.0f && largest <= 32768.0f);
}

/* The largest of the four threads that have parts of a row. */
SM90_INLINE float largest_of_four(float value) {
  value = __builtin_fmaxf(value, __nvvm_shfl_sync_bfly_f32(0xffffffffu, value, 1, 31));
  return __builtin_fmaxf(value, __nvvm_shfl_sync_bfly_f32(0xffffffffu, value, 2, 31));
}

#endif
