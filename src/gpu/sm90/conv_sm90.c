/* Convolutions by constant weights on Hopper's matrix hardware (wgmma): what conv_matrix.comp
 * computes, as
 *
 *     weights [channel][term]  x  windows [term][column]  ->  [image][channel][pixel]
 *
 * A workgroup makes GROUPS * 64 channels by 64 columns: GROUPS warpgroups beside each other share
 * the windows. Each of its SLICES adds a part of the terms, in steps of 64; at the end their sums
 * are added in order. Both operands of a step lie in shared memory as
 *
 *     [octet of terms][row: channel, or column][8 halves]
 *
 * which is what wgmma takes without a swizzle: a row may begin at any 16 bytes. The weights of a
 * step and 64 channels are 8 KiB (float32: 8 KiB of highs, then 8 KiB of lows) and lie in memory
 * so; asynchronous copies bring them. Windows come by way of registers: loads go along the pixels,
 * stores along the terms. Where they come from is the MODE:
 *
 *     GATHER  A step is 64 channels of a tap, taps innermost, so that most loads find their lines
 * in the core's cache. A column is a pixel of the result. WINDOW  3x3, stride 1, a padding of 1. A
 * step is the same, but 64 channels of all the pixels that a tile's nine taps want lie in shared
 * memory at once; a tap is a place where rows begin. For that, columns count the pixels of an image
 * with a column and a row of zeros behind them. ROWS    Few channels. An octet is a row of the
 * kernel, filled up with zeros.
 *
 * A float32 is split into two float16: the value rounded, and what that left off; the weights come
 * split, each channel scaled so that its largest value has the exponent 14. Windows are split times
 * 16 where the tile's largest value lies in 2^-8 to 2^11. Where it turns out not to, the tile is
 * made again: once to find its largest number, and once with a power of two of its own. An infinity
 * is a low part beside a high part of zero then. What does not fit where wgmma adds is cut off, not
 * rounded, so a step of float32 has sums of its own, the products with low parts first, which are
 * added to the tile's by ordinary additions.
 *
 * At most 48 KiB of shared memory let several workgroups share a core (docs/shaders.md): hence one
 * buffer of windows (WINDOWS) where two would be more.
 */
//! kernel conv_sm90_short             bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=128 shared=32768  blocks=4 FLOAT=1 MODE=GATHER SLICES=1 IS_SHORT=1
//! kernel conv_sm90_gather_1          bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=128 shared=49152  blocks=4 FLOAT=1 MODE=GATHER SLICES=1 WINDOWS=1
//! kernel conv_sm90_gather_2          bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=256 shared=131072 FLOAT=1 MODE=GATHER SLICES=2
//! kernel conv_sm90_gather_128_2      bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=512 shared=196608 blocks=1 FLOAT=1 MODE=GATHER SLICES=2 GROUPS=2
//! kernel conv_sm90_gather_256_1      bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=512 shared=163840 blocks=1 FLOAT=1 MODE=GATHER SLICES=1 GROUPS=4
//! kernel conv_sm90_window_2          bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=256 shared=196608 FLOAT=1 MODE=WINDOW SLICES=2
//! kernel conv_sm90_rows              bindings=r,r,w,r,r           params=88 constants=2 chain=1 turns=1 threads=128 shared=49152  blocks=4 FLOAT=1 MODE=ROWS SLICES=1 WINDOWS=1
//! kernel conv_sm90_short_half        bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=128 shared=18432  blocks=5 FLOAT=0 MODE=GATHER SLICES=1 IS_SHORT=1
//! kernel conv_sm90_gather_1_half     bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=128 shared=32768  blocks=5 FLOAT=0 MODE=GATHER SLICES=1
//! kernel conv_sm90_gather_2_half     bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=256 shared=49152  blocks=2 FLOAT=0 MODE=GATHER SLICES=2 WINDOWS=1
//! kernel conv_sm90_gather_4_half     bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=512 shared=131072 blocks=1 FLOAT=0 MODE=GATHER SLICES=4
//! kernel conv_sm90_gather_128_1_half bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=256 shared=49152  blocks=2 FLOAT=0 MODE=GATHER SLICES=1 GROUPS=2
//! kernel conv_sm90_gather_128_2_half bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=512 shared=98304  blocks=1 FLOAT=0 MODE=GATHER SLICES=2 GROUPS=2
//! kernel conv_sm90_window_1_half     bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=128 shared=49152  blocks=4 FLOAT=0 MODE=WINDOW SLICES=1
//! kernel conv_sm90_window_4_half     bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=512 shared=196608 blocks=1 FLOAT=0 MODE=WINDOW SLICES=4
//! kernel conv_sm90_rows_half         bindings=r16,r16,w16,r16,r16 params=88 constants=2 chain=1 turns=1 threads=128 shared=32768  blocks=4 FLOAT=0 MODE=ROWS SLICES=1
#define GATHER 0
#define WINDOW 1
#define ROWS   2

#define SM90_OWN_UNITS /* as below */
#define FLOAT_RESULT   FLOAT
#include "abi/conv_matrix_params.h"
#include "gpu/sm90/sm90.h"

/* Eight results of a thread: channels of one pixel. */
typedef struct sm90_units sm90_units;

#include "gpu/sm90/sm90_chain.h"

struct sm90_units {
  sm90_element operands[2][SM90_UNIT];
};

#ifndef ROW_COUNT
#  define ROW_COUNT (MODE == WINDOW ? 128 : TILE)
#endif
#ifndef IS_SHORT /* 1: there is one step */
#  define IS_SHORT 0
#endif
#ifndef WINDOWS
#  define WINDOWS (IS_SHORT ? 1 : 2)
#endif
#ifndef WEIGHT_STAGES
#  define WEIGHT_STAGES (IS_SHORT ? 1 : 2)
#endif
#ifndef GROUPS
#  define GROUPS 1
#endif
#define EACH(i, count) SM90_UNROLL for (uint32_t i = 0; i < (count); ++i)

enum {
  TILE = 64,
  STEP = 64, /* terms */
  OCTETS = STEP / 8,
  ROWS_OF_TILE = TILE * GROUPS, /* channels */
  TEAM = 128 * GROUPS,          /* threads of a slice */
  TAPS = 9,                     /* of WINDOW */
  PARTS = 1 + FLOAT,
  WEIGHT_PLANE = OCTETS * TILE * 16,
  WEIGHT_BYTES = PARTS * WEIGHT_PLANE,
  WINDOW_PLANE = OCTETS * ROW_COUNT * 16,
  WINDOW_BYTES = PARTS * WINDOW_PLANE,
  STAGE_BYTES = GROUPS * WEIGHT_BYTES,
  SLICE_BYTES = OM_SHARED_BYTES / SLICES,
  /* Of WINDOW: warpgroups bring octets in turn, a thread these rows. */
  TEAM_ROWS = (ROW_COUNT + 127) / 128,
  SUM_COUNT = 32,
  SUM_PITCH = 72, /* floats of a row of sums in shared memory */
};
enum { CHAIN_HARD_SWISH = 5 }; /* elementwise.def */
#define WEIGHT_SCALE (1.0f / 16384.0f)
#define WINDOW_SCALE 16.0f

typedef struct arguments {
  const sm90_element *input;
  const char *weights; /* of float32: the channels' factors first */
  sm90_element *output;
  const sm90_element *operands[2];
  om_conv_matrix_params p; /* pieces are steps here, slices' rounds too */
  om_chain_params chain;
  uint32_t kernel_h, kernel_w;
  uint32_t items[SM90_CHAIN_ITEMS];
  sm90_turn turn;
} arguments;

/* ---- Elements ---- */

#if FLOAT
typedef float raw;
#  define LOAD     "ld.global.f32 "
#  define CLEAR    "mov.f32 "
#  define NOTHING  ", 0f00000000;\n\t"
#  define REGISTER "=f"
#else
typedef uint16_t raw;
#  define LOAD     "ld.global.b16 "
#  define CLEAR    "mov.b16 "
#  define NOTHING  ", 0;\n\t"
#  define REGISTER "=h"
#endif

#if MODE != ROWS
/* Eight elements, `stride` bytes apart, or zeros. */
SM90_INLINE void load_octet(const sm90_element *at, uint64_t stride, bool is_there, raw out[8]) {
#  define NEXT(i) "add.s64 a, a, %10;\n\t@p " LOAD "%" #i ", [a];\n\t"
  __asm__ volatile(
      "{\n\t.reg .pred p;\n\t.reg .b64 a;\n\tsetp.ne.u32 p, %9, 0;\n\tmov.b64 a, %8;\n\t" CLEAR
      "%0" NOTHING CLEAR "%1" NOTHING CLEAR "%2" NOTHING CLEAR "%3" NOTHING CLEAR "%4" NOTHING CLEAR
      "%5" NOTHING CLEAR "%6" NOTHING CLEAR "%7" NOTHING "@p " LOAD "%0, [a];\n\t" NEXT(1) NEXT(2)
          NEXT(3) NEXT(4) NEXT(5) NEXT(6) NEXT(7) "}"
      : REGISTER(out[0]),
        REGISTER(out[1]),
        REGISTER(out[2]),
        REGISTER(out[3]),
        REGISTER(out[4]),
        REGISTER(out[5]),
        REGISTER(out[6]),
        REGISTER(out[7])
      : "l"(at), "r"((uint32_t)is_there), "l"(stride));
#  undef NEXT
}
#endif

#include "gpu/sm90/conv_sm90_split.h"

/* ---- One step ---- */

/* An operand of rows of 16 bytes, the next octet of terms `octet_bytes` further. */
SM90_INLINE uint64_t plain_operand(uint32_t at, uint32_t octet_bytes) {
  return (uint64_t)((at & 0x3ffffu) >> 4) | (uint64_t)(octet_bytes >> 4) << 16 |
         (uint64_t)(128 >> 4) << 32;
}

/* The sums of a tile; of float32 also those of a step. */
typedef struct tile_sums {
  float all[SUM_COUNT];
#if FLOAT
  float step[SUM_COUNT];
#endif
} tile_sums;

#if FLOAT
#  define UNDER_WAY step
#else
#  define UNDER_WAY all
#endif

SM90_INLINE void multiply(tile_sums *sums, uint32_t weights, uint32_t window) {
  const uint64_t a = plain_operand(weights, TILE * 16);
  const uint64_t b = plain_operand(window, ROW_COUNT * 16);
#if FLOAT
  EACH(i, SUM_COUNT) sums->step[i] = 0.0f;
#endif
  __asm__ volatile("" : SM90_SUMS32(sums->UNDER_WAY)::"memory");
  wgmma_fence();
#if FLOAT
  EACH(k, STEP / 16) {
    wgmma_64(sums->step, a + k * 2 * TILE, b + k * 2 * ROW_COUNT + WINDOW_PLANE / 16);
    wgmma_64(sums->step, a + k * 2 * TILE + WEIGHT_PLANE / 16, b + k * 2 * ROW_COUNT);
  }
#endif
  EACH(k, STEP / 16) wgmma_64(sums->UNDER_WAY, a + k * 2 * TILE, b + k * 2 * ROW_COUNT);
  wgmma_commit();
}

/* Until all is multiplied; nothing reads the sums before. */
SM90_INLINE void wait_for_sums(tile_sums *sums) {
  wgmma_wait(0);
  __asm__ volatile("" : SM90_SUMS32(sums->UNDER_WAY)::"memory");
}

/* Behind each step's multiply, once. */
SM90_INLINE void end_step(tile_sums *sums) {
  wait_for_sums(sums);
#if FLOAT
  EACH(i, SUM_COUNT) sums->all[i] += sums->step[i];
#endif
}

/* What a slice works on. */
typedef struct slice {
  const char *weights; /* of the tile's channels */
  uint32_t index, thread;
  uint32_t group;      /* warpgroup of the slice */
  uint32_t first;      /* column of the tile */
  uint32_t begin, end; /* its steps */
  uint32_t step_count; /* of all slices */
  uint32_t weight_area, window_area;
} slice;

/* The slice's own barrier. Numbers are constants: one in a register takes all of a core's. */
SM90_INLINE void slice_barrier(const slice *s) {
  if (SLICES == 1) {
    barrier_all();
  } else if (s->index == 0) {
    barrier_some(1, TEAM);
  } else if (SLICES == 2 || s->index == 1) {
    barrier_some(2, TEAM);
  } else if (s->index == 2) {
    barrier_some(3, TEAM);
  } else {
    barrier_some(4, TEAM);
  }
}

/* Starts to bring the weights of a step, if there is one. */
SM90_INLINE void fetch_weights(const slice *s, uint32_t step, uint32_t stage) {
  const uint32_t own = s->thread * 16;
  if (step < s->end) {
    EACH(g, GROUPS) {
      const char *from = s->weights + ((uint64_t)g * s->step_count + step) * WEIGHT_BYTES + own;
      EACH(i, (WEIGHT_BYTES / 16 + TEAM - 1) / TEAM) {
        copy16(s->weight_area + stage * STAGE_BYTES + g * WEIGHT_BYTES + own + i * 16 * TEAM,
               from + i * 16 * TEAM,
               16);
      }
    }
  }
  copies_commit();
}

SM90_INLINE void begin_weights(const slice *s) {
  EACH(i, IS_SHORT ? 1 : WEIGHT_STAGES - 1) fetch_weights(s, s->begin + i, i);
}

/* Multiplies a step whose windows are kept, and has the weights of a later one brought. */
SM90_INLINE void do_step(
    const slice *s, uint32_t step, uint32_t window, uint32_t *stage, tile_sums *sums) {
  copies_wait(IS_SHORT ? 0 : WEIGHT_STAGES - 2);
  shared_fence();
  slice_barrier(s);
  multiply(sums,
           s->weight_area + *stage * STAGE_BYTES + (GROUPS == 1 ? 0 : s->group * WEIGHT_BYTES),
           window);
  if (IS_SHORT) return;
  fetch_weights(s, step + WEIGHT_STAGES - 1, *stage == 0 ? WEIGHT_STAGES - 1 : *stage - 1);
  *stage = *stage == WEIGHT_STAGES - 1 ? 0 : *stage + 1;
}

#if MODE == WINDOW
#  include "gpu/sm90/conv_sm90_window.h"
#else
#  include "gpu/sm90/conv_sm90_gather.h"
#endif
#include "gpu/sm90/conv_sm90_results.h"

/* The slice's sums, whose first weights are under way. */
SM90_INLINE void sum_all(const arguments *a, const slice *s, splitting *how, tile_sums *sums) {
  const bool has_steps = s->begin < s->end;
#if FLOAT
  bool is_done;
  do {
#endif
    EACH(i, SUM_COUNT) sums->all[i] = 0.0f;
    if (has_steps) sum_up(a, s, how, sums);
#if FLOAT
    is_done = is_good(how);
    if (!is_done && has_steps) begin_weights(s);
  } while (!is_done);
#endif
}

SM90_KERNEL void OM_KERNEL(arguments a) {
  const uint32_t group = group_index();
  if (group >= a.p.group_count) return;
  const uint32_t channel_tile = group % a.p.channel_tiles;
  const uint32_t warpgroup = SLICES * GROUPS == 1 ? 0 : warp_index() / 4;
  const uint32_t index = warpgroup / GROUPS;
  slice s = {.index = index,
             .group = warpgroup % GROUPS,
             .step_count = a.p.piece_count,
             .thread = thread_index() % TEAM,
             .first = group / a.p.channel_tiles * TILE,
             .begin = index * a.p.round_count,
             .weight_area = shared_address(index * SLICE_BYTES)};
  s.end = s.begin + a.p.round_count < a.p.piece_count ? s.begin + a.p.round_count : a.p.piece_count;
  s.window_area = s.weight_area + WEIGHT_STAGES * STAGE_BYTES;
  s.weights = a.weights + (FLOAT ? a.p.weight_rows * sizeof(float) : 0) +
              (uint64_t)channel_tile * GROUPS * a.p.piece_count * WEIGHT_BYTES;
  splitting how = {.scale = WINDOW_SCALE};
  tile_sums sums;
  if (s.begin < s.end) begin_weights(&s);
  if (thread_index() == 0) turn_wait(&a.turn);
  barrier_all();
  sum_all(&a, &s, &how, &sums);
  results r;
  sm90_units first;
  const bool has_results = find_results(&a, channel_tile * ROWS_OF_TILE, s.first, &r);
  if (has_results) load_operands(&r, 0, &first);
  barrier_all();
  store_sums(s.weight_area + s.group * TILE * SUM_PITCH * sizeof(float), s.thread % 128, &sums);
  barrier_all();
  if (has_results) make_results(&a, &r, &first, FLOAT ? WEIGHT_SCALE / how.scale : 1.0f);
  turn_end(&a.turn);
}
