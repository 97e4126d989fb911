/* Attention on Hopper's matrix instructions: softmax(scale * Q K + mask) V, in one pass; operands
 * whose depth or columns lie side by side, in pieces of 16 bytes.
 *
 * A workgroup takes WARPGROUPS times 64 rows of one element of the batch, and KEYS keys a step. One
 * warpgroup more brings tiles of K and V by turns into a ring of SLOTS, so that each of the others
 * reads what is there and hands it back: float16 is copied as it is; float32 is split into two (a
 * value rounded to 11 bits, and what that left off), with a power of two for each tile, from its
 * largest. Q's rows lie in shared memory, the probabilities are operands in registers.
 *
 * Probabilities are not divided yet: a score less the row's largest, exponentiated, times
 * 2^POWER_EXPONENT, so that their low parts have bits enough. The largest may lag by SLACK, which
 * saves scaling down what was summed so far. Of float32 the two products of a high and a low part
 * come first, so that one set of sums keeps their bits; a step's result is added to what was
 * summed by ordinary additions, since matrix instructions cut off what they add.
 *
 * An infinity or NaN is a low part beside a high part of zero: only one product sees it.
 *
 * What bounds it: of float16 the exponentials as much as the products; see bench/RESULTS.md.
 *
 * With masks a kernel of three warpgroups would need more registers than there are.
 */
//! kernel attention_sm90_64x128_32_half bindings=r16,r16,r16,r16,w16 params=124 threads=256 shared=73856 blocks=1 constants=4 turns=1 HALF=1 HEAD=32 KEYS=128 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_64x64_32_half bindings=r16,r16,r16,r16,w16 params=124 threads=256 shared=41088 blocks=2 constants=4 turns=1 HALF=1 HEAD=32 KEYS=64 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_64x128_64_half bindings=r16,r16,r16,r16,w16 params=124 threads=256 shared=73856 blocks=1 constants=4 turns=1 HALF=1 HEAD=64 KEYS=128 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_64x64_64_half bindings=r16,r16,r16,r16,w16 params=124 threads=256 shared=41088 blocks=2 constants=4 turns=1 HALF=1 HEAD=64 KEYS=64 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_192x128_64_half bindings=r16,r16,r16,r16,w16 params=124 threads=512 shared=123080 blocks=1 constants=4 turns=1 HALF=1 HEAD=64 KEYS=128 WARPGROUPS=3 SLOTS=6 MASKS=0 CONSUMER=160 PRODUCER=32
//! kernel attention_sm90_128x64_128_half bindings=r16,r16,r16,r16,w16 params=124 threads=384 shared=98448 blocks=1 constants=4 turns=1 HALF=1 HEAD=128 KEYS=64 WARPGROUPS=2 SLOTS=4 MASKS=1 CONSUMER=208 PRODUCER=56
//! kernel attention_sm90_64x64_32 bindings=r,r,r,r,w params=124 threads=256 shared=82048 blocks=1 constants=4 turns=1 HALF=0 HEAD=32 KEYS=64 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_128x64_32 bindings=r,r,r,r,w params=124 threads=384 shared=98448 blocks=1 constants=4 turns=1 HALF=0 HEAD=32 KEYS=64 WARPGROUPS=2 SLOTS=4 MASKS=1 CONSUMER=184 PRODUCER=120
//! kernel attention_sm90_64x64_64 bindings=r,r,r,r,w params=124 threads=256 shared=82048 blocks=1 constants=4 turns=1 HALF=0 HEAD=64 KEYS=64 WARPGROUPS=1 SLOTS=4 MASKS=1
//! kernel attention_sm90_128x64_64 bindings=r,r,r,r,w params=124 threads=384 shared=98448 blocks=1 constants=4 turns=1 HALF=0 HEAD=64 KEYS=64 WARPGROUPS=2 SLOTS=4 MASKS=1 CONSUMER=184 PRODUCER=120
//! kernel attention_sm90_192x64_64 bindings=r,r,r,r,w params=124 threads=512 shared=114848 blocks=1 constants=4 turns=1 HALF=0 HEAD=64 KEYS=64 WARPGROUPS=3 SLOTS=4 MASKS=0
//! kernel attention_sm90_128x32_128 bindings=r,r,r,r,w params=124 threads=384 shared=131216 blocks=1 constants=4 turns=1 HALF=0 HEAD=128 KEYS=32 WARPGROUPS=2 SLOTS=4 MASKS=1 CONSUMER=192 PRODUCER=120
#include "abi/attention_params.h"
#include "gpu/sm90/sm90.h"

typedef struct attention_args {
  uint64_t address[5]; /* Q, K, V, mask, Y */
  om_attention_kernel_params p;
  uint32_t flags, q_offset, k_offset, v_offset;
  sm90_turn turn;
} attention_args;

#define POWER_EXPONENT 5.0f
#define SLACK          8.0f
#define LOG2_E         1.44269504f
#define EXPONENTS      0x7f800000u

#define PARTS      (HALF ? 1 : 2)
#define ELEM_BYTES (HALF ? 2u : 4u)
#define OCTETS     (HEAD / 8) /* eight elements, 16 bytes of a part */
#define PANELS     ((HEAD + 63) / 64)
#define GROUP      128u /* threads of a warpgroup */
#define GROUP_ROWS 64u

/* Barriers: 1 of those who bring tiles, 2 on of each other warpgroup, then of all those. */
#define END_BARRIER (2 + WARPGROUPS)

/* Shared memory: Q of each warpgroup, the slots, mbarriers that say a slot is full or empty, the
 * factors of what lies in the slots, and words for the largest values. A tile is parts (highs, then
 * lows) of panels of 64 columns. */
#define Q_PANEL    (GROUP_ROWS * 128u)
#define Q_PLANE    (PANELS * Q_PANEL)
#define Q_BYTES    (PARTS * Q_PLANE)
#define PANEL      (KEYS * 128u)
#define PLANE      (PANELS * PANEL)
#define SLOT_BYTES (PARTS * PLANE)
#define SLOTS_AT   (WARPGROUPS * Q_BYTES)
#define FULL_AT    (SLOTS_AT + SLOTS * SLOT_BYTES)
#define EMPTY_AT   (FULL_AT + SLOTS * 8u)
#define FACTORS_AT (EMPTY_AT + SLOTS * 8u)
#define LARGEST_AT (FACTORS_AT + SLOTS * 4u)
_Static_assert(LARGEST_AT + 32 + WARPGROUPS * 16 == OM_SHARED_BYTES, "as the head says");
_Static_assert((WARPGROUPS + 1) * GROUP == OM_THREADS, "as the head says");

#define TILE_OCTETS (KEYS * OCTETS / GROUP)       /* of a thread */
#define Q_OCTETS    (GROUP_ROWS * OCTETS / GROUP) /* likewise */
#define SCORES      (KEYS / 2)                    /* of a thread, 64 rows by KEYS */
#define RESULTS     (HEAD / 2)

/* Rows of an operand, as they lie in memory. */
typedef struct operand {
  const char *base;
  uint32_t row_bytes;
  uint32_t rows, cols; /* what is there; zeros beyond */
} operand;

/* A place in the ring. */
typedef struct ring {
  uint32_t slot, parity;
} ring;

SM90_INLINE uint32_t slot_at(const ring *r) {
  return shared_address(SLOTS_AT + r->slot * SLOT_BYTES);
}

SM90_INLINE uint32_t full_at(const ring *r) {
  return shared_address(FULL_AT + r->slot * 8);
}

SM90_INLINE uint32_t empty_at(const ring *r) {
  return shared_address(EMPTY_AT + r->slot * 8);
}

SM90_INLINE uint32_t factor_at(const ring *r) {
  return shared_address(FACTORS_AT + r->slot * 4);
}

SM90_INLINE void ring_step(ring *r) {
  if (++r->slot == SLOTS) {
    r->slot = 0;
    r->parity ^= 1;
  }
}

SM90_INLINE float as_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

SM90_INLINE uint32_t as_bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

SM90_INLINE float power_of_two(float x) {
  float result;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/* Of a NaN and a number the number. */
SM90_INLINE float larger(float a, float b) {
  float result;
  __asm__("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

SM90_INLINE float of_lane_xor(float x, uint32_t distance) {
  return as_float(
      (uint32_t)__nvvm_shfl_sync_bfly_i32(0xffffffffu, (int)as_bits(x), (int)distance, 31));
}

/* ---- Tiles ---- */

/* Where an octet of a row lies in a plane whose panels have so many rows. */
SM90_INLINE uint32_t octet_at(uint32_t row, uint32_t octet, uint32_t rows) {
  return octet / 8 * (rows * 128) + row * 128 + ((octet % 8) ^ (row & 7)) * 16;
}

SM90_INLINE bool is_there(const operand *from, uint32_t row, uint32_t col) {
  return row < from->rows && col < from->cols;
}

SM90_INLINE const char *address_of(const operand *from, uint32_t row, uint32_t col) {
  return from->base + (uint64_t)row * from->row_bytes + col * ELEM_BYTES;
}

/* 16 bytes, or zeros where nothing is. */
SM90_INLINE word4 fetch(const operand *from, uint32_t row, uint32_t col) {
  word4 result = {0, 0, 0, 0};
  if (is_there(from, row, col)) result = *(const word4 *)address_of(from, row, col);
  return result;
}

SM90_INLINE void shared_store4(uint32_t at, word4 w) {
  __asm__ volatile(
      "st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
      : "memory");
}

#if HALF

/* A warpgroup's rows of Q; the result is the factor that undoes their scale. */
SM90_INLINE float load_q(const operand *q, uint32_t row_begin, uint32_t to, uint32_t group) {
  const uint32_t thread = thread_index() % GROUP;
  word4 words[Q_OCTETS];
  (void)group;
  SM90_UNROLL for (uint32_t i = 0; i < Q_OCTETS; ++i) {
    const uint32_t o = thread + i * GROUP;
    words[i] = fetch(q, row_begin + o / OCTETS, o % OCTETS * 8);
  }
  SM90_UNROLL for (uint32_t i = 0; i < Q_OCTETS; ++i) {
    const uint32_t o = thread + i * GROUP;
    shared_store4(to + octet_at(o / OCTETS, o % OCTETS, GROUP_ROWS), words[i]);
  }
  return 1.0f;
}

/* Tiles of K and V by turns, each into the next slot. */
SM90_INLINE void bring_tiles(const operand *k, const operand *v) {
  const uint32_t thread = thread_index() % GROUP;
  const uint32_t tiles = 2 * ((k->rows + KEYS - 1) / KEYS);
  ring place = {0, 1};
  for (uint32_t i = 0; i < tiles; ++i) {
    const operand *from = i % 2 == 0 ? k : v;
    mbarrier_wait(empty_at(&place), place.parity);
    SM90_UNROLL for (uint32_t n = 0; n < TILE_OCTETS; ++n) {
      const uint32_t o = thread + n * GROUP;
      const uint32_t row = i / 2 * KEYS + o / OCTETS;
      const uint32_t col = o % OCTETS * 8;
      const bool is = is_there(from, row, col);
      copy16(slot_at(&place) + octet_at(o / OCTETS, o % OCTETS, KEYS),
             is ? address_of(from, row, col) : from->base,
             is ? 16 : 0);
    }
    copies_arrive(full_at(&place));
    ring_step(&place);
  }
}

#else

SM90_INLINE void fetch_octets(float *values,
                              uint32_t count,
                              const operand *from,
                              uint32_t row_begin) {
  SM90_UNROLL for (uint32_t i = 0; i < 2 * count; ++i) {
    const uint32_t o = thread_index() % GROUP + i / 2 * GROUP;
    const word4 w = fetch(from, row_begin + o / OCTETS, o % OCTETS * 8 + i % 2 * 4);
    values[4 * i] = as_float(w.x);
    values[4 * i + 1] = as_float(w.y);
    values[4 * i + 2] = as_float(w.z);
    values[4 * i + 3] = as_float(w.w);
  }
}

/* The largest magnitude of what a warpgroup holds, as bits; words: four of its own. */
SM90_INLINE uint32_t largest_of_group(
    const float *values, uint32_t count, bool only_numbers, uint32_t words, uint32_t barrier) {
  uint32_t largest = 0;
  SM90_UNROLL for (uint32_t i = 0; i < count; ++i) {
    uint32_t bits = as_bits(values[i]) & 0x7fffffffu;
    if (only_numbers && bits >= EXPONENTS) bits = 0;
    largest = bits > largest ? bits : largest;
  }
  largest = __nvvm_redux_sync_umax((int)largest, -1);
  if (thread_index() % 32 == 0) shared_store1(words + thread_index() % GROUP / 32 * 4, largest);
  barrier_some(barrier, GROUP);
  SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t word = shared_load1(words + i * 4);
    largest = word > largest ? word : largest;
  }
  return largest;
}

/* The factor that takes values of at most `largest` below 2^15, and the one that undoes it. */
SM90_INLINE float scale_of(uint32_t largest) {
  const uint32_t exponent = largest >> 23 > 29 ? largest >> 23 : 29;
  return as_float((268 - exponent) << 23);
}

SM90_INLINE float factor_of(uint32_t largest) {
  const uint32_t exponent = largest >> 23 > 29 ? largest >> 23 : 29;
  return as_float((exponent - 14) << 23);
}

/* Two values as highs and lows. */
SM90_INLINE void split_pair(float a, float b, bool are_numbers, uint32_t *high, uint32_t *low) {
  float a_high = a, b_high = b;
  if (!are_numbers && (as_bits(a) & EXPONENTS) == EXPONENTS) a_high = 0.0f;
  if (!are_numbers && (as_bits(b) & EXPONENTS) == EXPONENTS) b_high = 0.0f;
  *high = pack_halves(a_high, b_high);
  unpack_halves(*high, &a_high, &b_high);
  *low = pack_halves(a - a_high, b - b_high);
}

SM90_INLINE void split_octets(const float *values,
                              uint32_t count,
                              float scale,
                              bool are_numbers,
                              uint32_t to,
                              uint32_t rows) {
  SM90_UNROLL for (uint32_t i = 0; i < count; ++i) {
    const uint32_t o = thread_index() % GROUP + i * GROUP;
    const uint32_t at = to + octet_at(o / OCTETS, o % OCTETS, rows);
    uint32_t high[4], low[4];
    SM90_UNROLL for (uint32_t n = 0; n < 4; ++n) {
      const float *pair = values + 8 * i + 2 * n;
      split_pair(pair[0] * scale, pair[1] * scale, are_numbers, &high[n], &low[n]);
    }
    shared_store4(at, (word4){high[0], high[1], high[2], high[3]});
    shared_store4(at + PANELS * rows * 128, (word4){low[0], low[1], low[2], low[3]});
  }
}

/* Splits what a warpgroup fetched; the result is the factor that undoes the scale. `free`: waits
 * there first, unless it is NULL. */
SM90_INLINE float put_octets(const float *values,
                             uint32_t count,
                             uint32_t to,
                             uint32_t rows,
                             uint32_t words,
                             uint32_t barrier,
                             const ring *free) {
  uint32_t largest = largest_of_group(values, 8 * count, false, words, barrier);
  const bool are_numbers = largest < EXPONENTS;
  if (!are_numbers) {
    barrier_some(barrier, GROUP);
    largest = largest_of_group(values, 8 * count, true, words, barrier);
    barrier_some(barrier, GROUP);
  }
  if (free) mbarrier_wait(empty_at(free), free->parity);
  if (are_numbers) {
    split_octets(values, count, scale_of(largest), true, to, rows);
  } else {
    split_octets(values, count, scale_of(largest), false, to, rows);
  }
  return factor_of(largest);
}

SM90_INLINE float load_q(const operand *q, uint32_t row_begin, uint32_t to, uint32_t group) {
  float values[8 * Q_OCTETS];
  fetch_octets(values, Q_OCTETS, q, row_begin);
  return put_octets(
      values, Q_OCTETS, to, GROUP_ROWS, shared_address(LARGEST_AT + 32 + group * 16), 2 + group, 0);
}

SM90_INLINE void bring_tiles(const operand *k, const operand *v) {
  const uint32_t tiles = 2 * ((k->rows + KEYS - 1) / KEYS);
  ring place = {0, 1};
  float next[8 * TILE_OCTETS];
  fetch_octets(next, TILE_OCTETS, k, 0);
  for (uint32_t i = 0; i < tiles; ++i) {
    float now[8 * TILE_OCTETS];
    SM90_UNROLL for (uint32_t n = 0; n < 8 * TILE_OCTETS; ++n) now[n] = next[n];
    if (i + 1 < tiles) fetch_octets(next, TILE_OCTETS, i % 2 == 0 ? v : k, (i + 1) / 2 * KEYS);
    const uint32_t words = shared_address(LARGEST_AT + i % 2 * 16);
    const float factor = put_octets(now, TILE_OCTETS, slot_at(&place), KEYS, words, 1, &place);
    if (thread_index() % GROUP == 0) shared_store1(factor_at(&place), as_bits(factor));
    shared_fence();
    mbarrier_arrive(full_at(&place));
    ring_step(&place);
  }
}

#endif

/* ---- Products ---- */

/* As SM90_WGMMA, but `adds` says whether to add to the sums or to begin them, and the registers'
 * b has its columns side by side. */
#define ATTENTION_WGMMA(N, COUNT)                                                                  \
  SM90_INLINE void scores_##N(float sums[COUNT], uint64_t a, uint64_t b, uint32_t adds) {          \
    __asm__ volatile(                                                                              \
        "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %[adds], 0;\n\t"                                     \
        "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" SM90_LIST##COUNT                \
        "}, %[a], %[b], p, 1, 1, 0, 0;\n\t}"                                                       \
        : SM90_SUMS##COUNT(sums)                                                                   \
        : [a] "l"(a), [b] "l"(b), [adds] "r"(adds)                                                 \
        : "memory");                                                                               \
  }                                                                                                \
  SM90_INLINE void values_##N(float sums[COUNT], const uint32_t a[4], uint64_t b, uint32_t adds) { \
    __asm__ volatile(                                                                              \
        "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %[adds], 0;\n\t"                                     \
        "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" SM90_LIST##COUNT                \
        "}, {%[a0], %[a1], %[a2], %[a3]}, %[b], p, 1, 1, 1;\n\t}"                                  \
        : SM90_SUMS##COUNT(sums)                                                                   \
        : [a0] "r"(a[0]),                                                                          \
          [a1] "r"(a[1]),                                                                          \
          [a2] "r"(a[2]),                                                                          \
          [a3] "r"(a[3]),                                                                          \
          [b] "l"(b),                                                                              \
          [adds] "r"(adds)                                                                         \
        : "memory");                                                                               \
  }                                                                                                \
  /* All products are done; nothing reads the sums before. */                                      \
  SM90_INLINE void wait_##N(float sums[COUNT]) {                                                   \
    __asm__ volatile("wgmma.wait_group.sync.aligned 0;" : SM90_SUMS##COUNT(sums)::"memory");       \
  }
ATTENTION_WGMMA(32, 16)
ATTENTION_WGMMA(64, 32)
ATTENTION_WGMMA(128, 64)

#define NAMED_(name, n) name##n
#define NAMED(name, n)  NAMED_(name, n)

/* Q K of 64 rows and a tile. */
SM90_INLINE void multiply_scores(float scores[SCORES], uint32_t q, uint32_t k) {
  wgmma_fence();
  SM90_UNROLL for (uint32_t part = HALF ? 2 : 0; part < 3; ++part) {
    SM90_UNROLL for (uint32_t i = 0; i < HEAD / 16; ++i) {
      const uint32_t a = q + i / 4 * Q_PANEL + i % 4 * 32 + (part == 0 ? Q_PLANE : 0);
      const uint32_t b = k + i / 4 * PANEL + i % 4 * 32 + (part == 1 ? PLANE : 0);
      const bool begins = i == 0 && part == (HALF ? 2 : 0);
      NAMED(scores_, KEYS)(scores, wgmma_operand(a, 1024), wgmma_operand(b, 1024), !begins);
    }
  }
  wgmma_commit();
  NAMED(wait_, KEYS)(scores);
}

/* A tile of V: panels of 64 columns, 8 keys in 1024 bytes. */
SM90_INLINE uint64_t values_operand(uint32_t at) {
  return (uint64_t)((at & 0x3ffffu) >> 4) | (uint64_t)(PANEL >> 4) << 16 |
         (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* P V of a tile: added to what is there, or (adds: false) in its place. */
SM90_INLINE void multiply_values(float sums[RESULTS],
                                 uint32_t powers[PARTS][KEYS / 4],
                                 uint32_t v,
                                 bool adds) {
  wgmma_fence();
  SM90_UNROLL for (uint32_t part = HALF ? 2 : 0; part < 3; ++part) {
    SM90_UNROLL for (uint32_t i = 0; i < KEYS / 16; ++i) {
      const uint64_t b = values_operand(v + i * 2048 + (part == 1 ? PLANE : 0));
      const bool begins = i == 0 && part == (HALF ? 2 : 0);
      NAMED(values_, HEAD)(sums, &powers[part == 0][4 * i], b, adds || !begins);
    }
  }
  wgmma_commit();
  NAMED(wait_, HEAD)(sums);
}

/* ---- Rows ---- */

/* The two rows of a thread; a score's is index / 2 % 2. */
typedef struct row_pair {
  const char *mask[2];
  float best[2], sum[2];
} row_pair;

/* The lowest number. */
SM90_INLINE float lowest_float(void) {
  return as_float(0xff7fffffu);
}

/* What a mask adds, times log2 e. What is finite stays so, since it is rounded towards zero: where
 * the lowest number hides all keys of a row, they count alike. */
SM90_INLINE float load_mask(const char *row, uint32_t at) {
#if HALF
  return (float)((const half *)row)[at] * LOG2_E;
#else
  float scaled;
  __asm__("mul.rz.f32 %0, %1, %2;" : "=f"(scaled) : "f"(((const float *)row)[at]), "f"(LOG2_E));
  return scaled;
#endif
}

SM90_INLINE float with_mask(float score, float mask, bool selects) {
  if (selects) return mask == 0.0f ? score : mask;
  return score + mask;
}

/* What a row's mask has for a thread's keys. Fetched before the products are waited for. */
SM90_INLINE void fetch_masks(const attention_args *a,
                             const char *row,
                             uint32_t begin,
                             float masks[KEYS / 4]) {
  const uint32_t first_key = begin + thread_index() % 4 * 2;
  SM90_UNROLL for (uint32_t i = 0; i < KEYS / 4; ++i) {
    const uint32_t key = first_key + i / 2 * 8 + i % 2;
    const uint32_t last = a->p.keys - 1;
    masks[i] = load_mask(row, (key < last ? key : last) * a->p.mask_key_stride);
  }
}

/* `masks`: of the first row. */
SM90_INLINE void add_masks(const attention_args *a,
                           float scores[SCORES],
                           const row_pair *rows,
                           uint32_t begin,
                           const float masks[KEYS / 4]) {
  const bool selects = (a->flags & OM_ATTENTION_SELECTS) != 0;
  SM90_UNROLL for (uint32_t i = 0; i < KEYS / 4; ++i) {
    const uint32_t at = 4 * (i / 2) + i % 2;
    scores[at] = with_mask(scores[at], masks[i], selects);
  }
  float others[KEYS / 4];
  SM90_UNROLL for (uint32_t i = 0; i < KEYS / 4; ++i) others[i] = masks[i];
  if (a->p.mask_row_stride != 0) fetch_masks(a, rows->mask[1], begin, others);
  SM90_UNROLL for (uint32_t i = 0; i < KEYS / 4; ++i) {
    const uint32_t at = 4 * (i / 2) + i % 2 + 2;
    scores[at] = with_mask(scores[at], others[i], selects);
  }
}

/* Products become scores, times log2 e. */
SM90_INLINE void finish_scores(const attention_args *a,
                               float scores[SCORES],
                               float factor,
                               const row_pair *rows,
                               uint32_t begin,
                               const float masks[KEYS / 4]) {
  const uint32_t first_key = begin + thread_index() % 4 * 2;
  SM90_UNROLL for (uint32_t i = 0; i < SCORES; ++i) scores[i] *= factor;
  if (MASKS && (a->flags & OM_ATTENTION_HAS_MASK) != 0) {
    add_masks(a, scores, rows, begin, masks);
  }
  if (begin + KEYS > a->p.keys) {
    SM90_UNROLL for (uint32_t i = 0; i < SCORES; ++i) {
      if (first_key + i / 4 * 8 + i % 2 >= a->p.keys) scores[i] = as_float(0xff800000u);
    }
  }
}

/* Raises the largest of the rows where that is wanted, and scales down what was summed so far. */
SM90_INLINE void raise_largest(const float scores[SCORES], row_pair *rows, float sums[RESULTS]) {
  float top[2] = {rows->best[0], rows->best[1]};
  float factor[2] = {1.0f, 1.0f};
  SM90_UNROLL for (uint32_t i = 0; i < SCORES; ++i) {
    top[i / 2 % 2] = larger(top[i / 2 % 2], scores[i]);
  }
  SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) {
    top[r] = larger(top[r], of_lane_xor(top[r], 1));
    top[r] = larger(top[r], of_lane_xor(top[r], 2));
    if (top[r] > rows->best[r] + SLACK) {
      factor[r] = power_of_two(rows->best[r] - top[r]);
      rows->best[r] = top[r];
    }
    rows->sum[r] *= factor[r];
  }
  if (__nvvm_vote_any_sync(0xffffffffu, factor[0] != 1.0f || factor[1] != 1.0f)) {
    SM90_UNROLL for (uint32_t i = 0; i < RESULTS; ++i) sums[i] *= factor[i / 2 % 2];
  }
}

/* Scores become powers, as operands. */
SM90_INLINE void make_powers(const float scores[SCORES],
                             row_pair *rows,
                             uint32_t powers[PARTS][KEYS / 4]) {
  SM90_UNROLL for (uint32_t i = 0; i < KEYS / 4; ++i) {
    const float less = rows->best[i % 2] - POWER_EXPONENT;
    const float first = power_of_two(scores[2 * i] - less);
    const float second = power_of_two(scores[2 * i + 1] - less);
    rows->sum[i % 2] += first + second;
#if HALF
    powers[0][i] = pack_halves(first, second);
#else
    split_pair(first, second, true, &powers[0][i], &powers[1][i]);
#endif
  }
}

/* Waits for the tile; its factor. */
SM90_INLINE float await_tile(const ring *place) {
  mbarrier_wait(full_at(place), place->parity);
#if HALF
  shared_fence(); /* what was copied, for the matrix instructions */
  return 1.0f;
#else
  return as_float(shared_load1(factor_at(place)));
#endif
}

SM90_INLINE void free_tile(ring *place) {
  if (thread_index() % 32 == 0) mbarrier_arrive(empty_at(place));
  ring_step(place);
}

/* Each row by its sum, to memory. */
SM90_INLINE void store_rows(const attention_args *a,
                            const float sums[RESULTS],
                            row_pair *rows,
                            char *y,
                            uint32_t row_begin) {
  SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) {
    float sum = rows->sum[r] + of_lane_xor(rows->sum[r], 1);
    sum += of_lane_xor(sum, 2);
    /* A row with a key to see has a sum above 0. */
    const float quotient = 1.0f / sum;
    const bool is_zero = (a->flags & OM_ATTENTION_ZEROES_NAN) != 0 && !(sum > 0.0f);
    const uint32_t row = row_begin + r * 8;
    char *to = y + (uint64_t)row * a->p.y_row_stride * ELEM_BYTES;
    if (row >= a->p.rows) continue;
    SM90_UNROLL for (uint32_t j = 0; j < HEAD / 8; ++j) {
      const uint32_t col = j * 8 + thread_index() % 4 * 2;
      const float first = is_zero ? 0.0f : sums[4 * j + 2 * r] * quotient;
      const float second = is_zero ? 0.0f : sums[4 * j + 2 * r + 1] * quotient;
      if (col >= a->p.width) continue;
#if HALF
      *(uint32_t *)(to + col * 2) = pack_halves(first, second);
#else
      *(uint64_t *)(to + col * 4) = (uint64_t)as_bits(second) << 32 | as_bits(first);
#endif
    }
  }
}

/* A warpgroup's 64 rows. */
SM90_INLINE void make_rows(
    const attention_args *a, const operand *q, const char *mask, char *y, uint32_t row_begin) {
  const uint32_t group = thread_index() / GROUP;
  const uint32_t begin = row_begin + group * GROUP_ROWS;
  const uint32_t thread_row = begin + thread_index() % GROUP / 32 * 16 + thread_index() % 32 / 4;
  const uint32_t q_at = shared_address(group * Q_BYTES);
  const float factor = load_q(q, begin, q_at, group) * a->p.scale * LOG2_E;
  /* So that a difference of infinities cannot arise from what is masked out. */
  row_pair rows = {.best = {lowest_float(), lowest_float()}, .sum = {0.0f, 0.0f}};
  float sums[RESULTS];
  ring place = {0, 0};
  shared_fence();
  barrier_some(2 + group, GROUP);
  SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t row = thread_row + r * 8 < a->p.rows ? thread_row + r * 8 : a->p.rows - 1;
    rows.mask[r] = mask + (uint64_t)row * a->p.mask_row_stride * ELEM_BYTES;
  }
  SM90_UNROLL for (uint32_t i = 0; i < RESULTS; ++i) sums[i] = 0.0f;
  for (uint32_t key = 0; key < a->p.keys; key += KEYS) {
    float scores[SCORES];
    uint32_t powers[PARTS][KEYS / 4];
    float masks[KEYS / 4];
    if (MASKS && (a->flags & OM_ATTENTION_HAS_MASK) != 0) fetch_masks(a, rows.mask[0], key, masks);
    const float k_factor = await_tile(&place);
    multiply_scores(scores, q_at, slot_at(&place));
    free_tile(&place);
    finish_scores(a, scores, factor * k_factor, &rows, key, masks);
    raise_largest(scores, &rows, sums);
    make_powers(scores, &rows, powers);
    const float v_factor = await_tile(&place);
#if HALF
    (void)v_factor;
    multiply_values(sums, powers, slot_at(&place), true);
#else
    float step[RESULTS];
    multiply_values(step, powers, slot_at(&place), false);
    SM90_UNROLL for (uint32_t i = 0; i < RESULTS; ++i) sums[i] += step[i] * v_factor;
#endif
    free_tile(&place);
  }
  store_rows(a, sums, &rows, y, thread_row);
}

SM90_INLINE operand
make_operand(uint64_t address, uint32_t offset, uint32_t row_stride, uint32_t rows, uint32_t cols) {
  return (operand){.base = (const char *)address + (uint64_t)offset * ELEM_BYTES,
                   .row_bytes = row_stride * ELEM_BYTES,
                   .rows = rows,
                   .cols = cols};
}

/* Makes the ring ready, and waits for the launches before this one. */
SM90_INLINE void begin(const sm90_turn *turn) {
  if (thread_index() == 0) {
    SM90_UNROLL for (uint32_t i = 0; i < SLOTS; ++i) {
      mbarrier_init(shared_address(FULL_AT + i * 8), GROUP);
      mbarrier_init(shared_address(EMPTY_AT + i * 8), WARPGROUPS * 4);
    }
    mbarrier_fence();
    turn_wait(turn);
  }
  barrier_all();
}

SM90_KERNEL void OM_KERNEL(attention_args in) {
  const attention_args *a = &in;
  const om_attention_kernel_params *p = &in.p;
  const uint32_t block = p->first_group + group_index();
  const uint32_t index_0 = block / p->row_blocks / p->batch_1;
  const uint32_t index_1 = block / p->row_blocks % p->batch_1;
  begin(&in.turn);
  if (thread_index() / GROUP == WARPGROUPS) {
#ifdef PRODUCER
    registers_leave(PRODUCER);
#endif
    const uint32_t k_offset = a->k_offset + index_0 * p->k_stride_0 + index_1 * p->k_stride_1;
    const uint32_t v_offset = a->v_offset + index_0 * p->v_stride_0 + index_1 * p->v_stride_1;
    const operand k = make_operand(a->address[1], k_offset, p->k_key_stride, p->keys, p->depth);
    const operand v = make_operand(a->address[2], v_offset, p->v_key_stride, p->keys, p->width);
    bring_tiles(&k, &v);
  } else {
#ifdef CONSUMER
    registers_take(CONSUMER);
#endif
    const uint32_t q_offset = a->q_offset + index_0 * p->q_stride_0 + index_1 * p->q_stride_1;
    const uint32_t mask_offset = index_0 * p->mask_stride_0 + index_1 * p->mask_stride_1;
    const uint32_t y_offset = index_0 * p->y_stride_0 + index_1 * p->y_stride_1;
    const operand q = make_operand(a->address[0], q_offset, p->q_row_stride, p->rows, p->depth);
    make_rows(a,
              &q,
              (const char *)a->address[3] + (uint64_t)mask_offset * ELEM_BYTES,
              (char *)a->address[4] + (uint64_t)y_offset * ELEM_BYTES,
              block % p->row_blocks * (WARPGROUPS * GROUP_ROWS));
    barrier_some(END_BARRIER, WARPGROUPS * GROUP);
    if (thread_index() == 0) turn_give(&in.turn);
  }
}
