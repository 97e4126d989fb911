/* Windows on their way from registers to shared memory: float32 in two parts (conv_sm90.c). */
#ifndef CONV_SM90_SPLIT_H
#define CONV_SM90_SPLIT_H

SM90_INLINE void store_words(uint32_t at, const uint32_t words[4]) {
  __asm__ volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at),
                   "r"(words[0]),
                   "r"(words[1]),
                   "r"(words[2]),
                   "r"(words[3])
                   : "memory");
}

/* How a tile's windows are split. */
typedef struct splitting {
  float scale, largest;
  uint32_t largest_pair; /* of the first attempt: magnitudes of two halves */
  uint32_t attempt;      /* 1: finds the largest number, 2: with a scale of its own */
} splitting;

#if FLOAT
SM90_INLINE bool is_number(float value) {
  return (__builtin_bit_cast(uint32_t, value) & 0x7f800000u) != 0x7f800000u;
}

/* What two values as halves leave off. */
SM90_INLINE uint32_t split_low(uint32_t high, const float values[2]) {
  float rounded[2];
  unpack_halves(high, &rounded[0], &rounded[1]);
  return pack_halves(values[0] - rounded[0], values[1] - rounded[1]);
}

/* The first attempt. */
SM90_INLINE void split_octet(const raw values[8],
                             splitting *s,
                             uint32_t highs[4],
                             uint32_t lows[4]) {
  EACH(i, 4) {
    const float v[2] = {values[2 * i] * WINDOW_SCALE, values[2 * i + 1] * WINDOW_SCALE};
    highs[i] = pack_halves(v[0], v[1]);
    __asm__("{\n\t.reg .b32 a;\n\tabs.f16x2 a, %1;\n\tmax.f16x2 %0, %0, a;\n\t}"
            : "+r"(s->largest_pair)
            : "r"(highs[i]));
    lows[i] = split_low(highs[i], v);
  }
}

SM90_INLINE void split_octet_again(const raw values[8],
                                   splitting *s,
                                   uint32_t highs[4],
                                   uint32_t lows[4]) {
  EACH(i, 4) {
    float v[2];
    EACH(k, 2) {
      v[k] = values[2 * i + k];
      if (s->attempt == 1 && !is_number(v[k])) v[k] = 0.0f;
      s->largest = __builtin_fmaxf(s->largest, __builtin_fabsf(v[k]));
      v[k] *= s->scale;
    }
    highs[i] = pack_halves(v[0], v[1]);
    highs[i] &= (is_number(v[0]) ? 0xffffu : 0u) | (is_number(v[1]) ? 0xffff0000u : 0u);
    lows[i] = split_low(highs[i], v);
  }
}

/* An octet of terms of one row to its place in shared memory. */
SM90_INLINE void keep_octet(uint32_t at, const raw values[8], splitting *s) {
  uint32_t highs[4];
  uint32_t lows[4];
  if (s->attempt == 0) {
    split_octet(values, s, highs, lows);
  } else {
    split_octet_again(values, s, highs, lows);
  }
  store_words(at, highs);
  store_words(at + WINDOW_PLANE, lows);
}
/* The largest magnitude of all threads, as bits of a float. The windows' memory is free by then. */
SM90_INLINE uint32_t find_largest(float own) {
  const uint32_t at = shared_address(0);
  uint32_t bits;
  barrier_all();
  if (thread_index() == 0) __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(0) : "memory");
  barrier_all();
  __asm__ volatile("red.shared.max.u32 [%0], %1;" ::"r"(at), "r"(__builtin_bit_cast(uint32_t, own))
                   : "memory");
  barrier_all();
  __asm__ volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(at) : "memory");
  barrier_all();
  return bits;
}

/* Whether the first attempt's largest magnitude, with its scale, lies in 2^-4 to 2^15. */
SM90_INLINE bool is_in_range(const splitting *how) {
  float low;
  float high;
  unpack_halves(how->largest_pair, &low, &high);
  const float own = __builtin_fmaxf(low, high);
  const bool is_large = __nvvm_bar0_or(own >= 0x1p15f);
  return __nvvm_bar0_or(own >= 0x1p-4f) && !is_large;
}

/* Whether the sums stand; else how the next attempt splits. */
SM90_INLINE bool is_good(splitting *how) {
  if (how->attempt == 2) return true;
  if (how->attempt == 0 && is_in_range(how)) return true;
  if (how->attempt == 1) {
    const uint32_t bits = find_largest(how->largest);
    if (bits == 0) return true;
    /* The largest exponent becomes 14, where the scale is a number. */
    const uint32_t exponent = bits >> 23 < 29 ? 29 : bits >> 23;
    how->scale = __builtin_bit_cast(float, (268 - exponent < 254 ? 268 - exponent : 254) << 23);
  }
  ++how->attempt;
  how->largest = 0.0f;
  return false;
}

#else
SM90_INLINE void keep_octet(uint32_t at, const raw values[8], splitting *s) {
  uint32_t words[4];
  (void)s;
  EACH(i, 4) words[i] = values[2 * i] | (uint32_t)values[2 * i + 1] << 16;
  store_words(at, words);
}
#endif

#endif
