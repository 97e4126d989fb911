/* Matrix products by Hopper's own instructions: y[rows, cols] = a[rows, depth] * b[depth, cols],
 * then a chain; b is a constant.
 *
 * b lies in blocks (sm90.h): for each 64 terms, for each 8 columns, 1024 bytes. So what a tile
 * needs of b for a step of 64 terms is one stretch of memory, which one bulk copy brings, for every
 * width of a tile. Of float32 (FLOAT=1) a block of high parts is followed by one of low parts;
 * before all blocks are the columns' factors (om_gpu_blocks.h).
 *
 * The last four warps of a workgroup are its producers: they bring a's rows into A_STAGES places in
 * shared memory and b's blocks into STAGES, one behind the other, tile for tile; a workgroup takes
 * tiles until there are none. The others are TEAMS warpgroups, which multiply. They share the work
 * (SHARE) by BY_ROWS   each has 64 rows of each tile; BY_TILES  each has tiles of its own by
 * turns: one multiplies while the other stores; BY_TERMS  each takes steps in turn, of the same
 * tile; their sums are added in order (float32).
 *
 * A float32 is split into two float16 as matmul_matrix.comp says, and a product is three: the parts
 * of a are made in registers, on their way from shared memory into the instruction, so that a's
 * places are free before b's, which the instruction reads itself: each has barriers of its own.
 * Where a row of a turns out not to keep its bits so, the workgroup makes all its tiles again, each
 * row scaled by a power of two.
 *
 * Results go by way of shared memory to where a thread has neighbours of a row: the chain and the
 * stores want that.
 */
//! kernel matmul_sm90_64x32                   bindings=r,r,w,r,r params=44 threads=384 shared=214016 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=32 A_STAGES=8 STAGES=8 CHUNKS=0
//! kernel matmul_sm90_64x64                   bindings=r,r,w,r,r params=44 threads=384 shared=230400 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=64 A_STAGES=6 STAGES=6 CHUNKS=0
//! kernel matmul_sm90_64x96                   bindings=r,r,w,r,r params=44 threads=384 shared=214016 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=96 A_STAGES=4 STAGES=4 CHUNKS=0
//! kernel matmul_sm90_128x96                  bindings=r,r,w,r,r params=44 threads=384 shared=214016 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_ROWS TILE_N=96 A_STAGES=3 STAGES=4 CHUNKS=0
//! kernel matmul_sm90_128x128                 bindings=r,r,w,r,r params=44 threads=384 shared=230400 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_ROWS TILE_N=128 A_STAGES=2 STAGES=4 CHUNKS=0
//! kernel matmul_sm90_128x160                 bindings=r,r,w,r,r params=44 threads=384 shared=205824 blocks=1 chain=1 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_ROWS TILE_N=160 A_STAGES=2 STAGES=3 CHUNKS=0
//! kernel matmul_sm90_64x32_half              bindings=r16,r16,w16,r16,r16 params=44 threads=256 shared=205824 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=32 STAGES=16 CHUNKS=0
//! kernel matmul_sm90_64x64_half              bindings=r16,r16,w16,r16,r16 params=44 threads=256 shared=214016 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=64 STAGES=12 CHUNKS=0
//! kernel matmul_sm90_64x128_half             bindings=r16,r16,w16,r16,r16 params=44 threads=256 shared=214016 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=128 STAGES=8 CHUNKS=0
//! kernel matmul_sm90_64x192_half             bindings=r16,r16,w16,r16,r16 params=44 threads=384 shared=197632 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=2 SHARE=BY_TILES TILE_N=192 STAGES=5 CHUNKS=0
//! kernel matmul_sm90_128x128_half            bindings=r16,r16,w16,r16,r16 params=44 threads=384 shared=230400 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=2 SHARE=BY_ROWS TILE_N=128 STAGES=6 CHUNKS=0
//! kernel matmul_sm90_128x160_half            bindings=r16,r16,w16,r16,r16 params=44 threads=384 shared=201728 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=2 SHARE=BY_ROWS TILE_N=160 STAGES=5 CHUNKS=0
//! kernel matmul_sm90_128x192_half            bindings=r16,r16,w16,r16,r16 params=44 threads=384 shared=197632 blocks=1 chain=1 turns=1 FLOAT=0 TEAMS=2 SHARE=BY_ROWS TILE_N=192 STAGES=4 CHUNKS=0
//! kernel matmul_sm90_64x32_chunks            bindings=r,r,w params=44 threads=384 shared=214016 blocks=1 chain=0 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=32 A_STAGES=8 STAGES=8 CHUNKS=1
//! kernel matmul_sm90_64x64_chunks            bindings=r,r,w params=44 threads=384 shared=230400 blocks=1 chain=0 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=64 A_STAGES=6 STAGES=6 CHUNKS=1
//! kernel matmul_sm90_64x96_chunks            bindings=r,r,w params=44 threads=384 shared=214016 blocks=1 chain=0 turns=1 FLOAT=1 TEAMS=2 SHARE=BY_TERMS TILE_N=96 A_STAGES=4 STAGES=4 CHUNKS=1
//! kernel matmul_sm90_64x32_chunks_half       bindings=r16,r16,w params=44 threads=256 shared=205824 blocks=1 chain=0 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=32 STAGES=16 CHUNKS=1
//! kernel matmul_sm90_64x64_chunks_half       bindings=r16,r16,w params=44 threads=256 shared=214016 blocks=1 chain=0 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=64 STAGES=12 CHUNKS=1
//! kernel matmul_sm90_64x128_chunks_half      bindings=r16,r16,w params=44 threads=256 shared=214016 blocks=1 chain=0 turns=1 FLOAT=0 TEAMS=1 SHARE=BY_ROWS TILE_N=128 STAGES=8 CHUNKS=1
#if CHUNKS
#  define FLOAT_RESULT 1
#else
#  define FLOAT_RESULT FLOAT
#endif
#if FLOAT
#  define SM90_UNIT 4 /* float32 of 16 bytes */
#endif
#include "abi/matmul_matrix_params.h"
#include "gpu/sm90/sm90_chain.h"
#include "gpu/sm90/sm90_split.h"

#define BY_ROWS  0
#define BY_TILES 1
#define BY_TERMS 2

enum {
  STEP = 64, /* terms */
  TEAM_ROWS = 64,
  TEAM_THREADS = 128,
  PRODUCERS = 128,
  CONSUMERS = TEAMS * TEAM_THREADS,
  TILE_M = SHARE == BY_ROWS ? TEAMS * TEAM_ROWS : TEAM_ROWS,
  PARTS = FLOAT ? 2 : 1,
  BLOCK_BYTES = 1024,
  BLOCK_COLS = 8,
  ROW_BYTES = STEP * (FLOAT ? 4 : 2), /* of a */
  A_BYTES = TILE_M * ROW_BYTES,
  B_BYTES = TILE_N / BLOCK_COLS * PARTS * BLOCK_BYTES,
  SUM_COUNT = TILE_N / 2,
#if !FLOAT
  A_STAGES = STAGES,
#endif
  /* Places of b that are filled before the launches before this one are done: of large tiles one,
   * since a's first rows come behind them. */
  AHEAD = TILE_M > TEAM_ROWS ? 1 : STAGES,
  BARRIER_BYTES = 1024, /* full and empty ones, go, a flag; then words that nobody reads */
  TOUCHED_AT = BARRIER_BYTES - 32 * 4,
  B_AT = BARRIER_BYTES + A_STAGES * A_BYTES,
  RESULTS_AT = B_AT + STAGES * B_BYTES,
  /* Results on their way, float32: of a warp, 16 rows of some columns; BY_TERMS all of a team's. */
  STRIP_COLS = SHARE == BY_TERMS || TILE_N % 64 != 0 ? 32 : 64,
  STRIP_BYTES = 16 * STRIP_COLS * 4,
  STRIPS = TILE_N / STRIP_COLS,
  RESULT_BYTES = CONSUMERS / 32 * STRIP_BYTES * (SHARE == BY_TERMS ? STRIPS : 1),
};
/* Barriers of a part of the workgroup; two of TEAM_BARRIER. */
enum { TEAM_BARRIER = 1, END_BARRIER = 3 };
_Static_assert(OM_THREADS == CONSUMERS + PRODUCERS, "the head's threads");
_Static_assert(OM_SHARED_BYTES == RESULTS_AT + RESULT_BYTES, "the head's shared memory");

typedef struct matmul_args {
#if CHUNKS
  uint64_t a, b, y;
  om_matmul_matrix_params p;
#else
  uint64_t a, b, y, operands[2];
  om_matmul_matrix_params p;
  om_chain_params chain;
  uint32_t items[SM90_CHAIN_ITEMS];
#endif
  sm90_turn turn;
} matmul_args;

/* A tile's first row and column, its terms, and where its results begin in y: of a chunk of the
 * depth they are float32, without a chain, behind the other chunks'. */
typedef struct tile {
  uint32_t row, col;
  uint32_t begin, end;
  uint64_t y;
} tile;

/* A place of a ring, and its barriers: b's come behind a's. Of float16 a step's a and b are read
 * together: they have barriers in common. */
enum { IS_JOINT = !FLOAT, PLACES = IS_JOINT ? STAGES : A_STAGES + STAGES };
_Static_assert((2 * PLACES + 1) * 8 + 4 <= TOUCHED_AT, "barriers and flag");

SM90_INLINE uint32_t a_at(uint32_t stage) {
  return shared_address(BARRIER_BYTES + stage * A_BYTES);
}

SM90_INLINE uint32_t b_at(uint32_t stage) {
  return shared_address(B_AT + stage * B_BYTES);
}

SM90_INLINE uint32_t a_full_at(uint32_t stage) {
  return shared_address(stage * 16);
}

SM90_INLINE uint32_t b_full_at(uint32_t stage) {
  return a_full_at((IS_JOINT ? 0 : A_STAGES) + stage);
}

/* The one that says a place is empty is behind the one that says it is full. */
SM90_INLINE uint32_t empty_of(uint32_t full) {
  return full + 8;
}

/* Says that the launches before this one are done. */
SM90_INLINE uint32_t go_at(void) {
  return a_full_at(PLACES);
}

SM90_INLINE uint32_t flag_at(void) {
  return go_at() + 8;
}

SM90_INLINE uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* The workgroup's tile number `number`; false behind the last. */
SM90_INLINE bool find_tile(const matmul_args *args, uint32_t number, tile *t) {
  const uint32_t of_all = group_index() + number * args->p.group_count;
  const uint32_t chunk = of_all / args->p.tile_count;
  const uint32_t index = of_all % args->p.tile_count;
  t->row = index / args->p.col_tiles * TILE_M;
  t->col = index % args->p.col_tiles * TILE_N;
  t->begin = chunk * args->p.chunk_depth;
  t->end = least(t->begin + args->p.chunk_depth, args->p.depth);
  t->y = args->y + (uint64_t)chunk * args->p.rows * args->p.cols * sizeof(float);
  return t->begin < args->p.depth;
}

/* A place in a ring, and how often all of them were filled before. The barriers' parity is the
 * round's. */
typedef struct place {
  uint32_t stage, round;
} place;

/* Those of a step: what producers and teams go through in step. */
typedef struct places {
  place a, b;
} places;

/* Goes `steps` on. */
SM90_INLINE void advance_in(place *at, uint32_t steps, const uint32_t stages) {
  const uint32_t stage = at->stage + steps;
  at->stage = stage % stages;
  at->round += stage / stages;
}

SM90_INLINE void advance(places *at, uint32_t steps) {
  advance_in(&at->b, steps, STAGES);
  if (IS_JOINT) {
    at->a = at->b;
  } else {
    advance_in(&at->a, steps, A_STAGES);
  }
}

SM90_INLINE void advance_one_in(place *at, const uint32_t stages) {
  at->stage = at->stage + 1 == stages ? 0 : at->stage + 1;
  at->round += at->stage == 0;
}

SM90_INLINE void advance_one(places *at) {
  advance_one_in(&at->b, STAGES);
  if (IS_JOINT) {
    at->a = at->b;
  } else {
    advance_one_in(&at->a, A_STAGES);
  }
}

SM90_INLINE uint32_t step_count(const tile *t) {
  return (t->end - t->begin + STEP - 1) / STEP;
}

/* ---- Producers ---- */

/* Where piece p (16 bytes) of a row of a lies in it. Of float16 that is wgmma's order; float32 is
 * read by row and row + 1 at once. */
SM90_INLINE uint32_t piece_at(uint32_t row, uint32_t piece) {
  return (piece ^ (FLOAT ? (row & 1) << 2 : row & 7)) * 16;
}

/* Brings a word of each 128 bytes of a tile's columns, and so all of them into the core's cache: to
 * a place that nobody reads. */
SM90_INLINE void touch(const char *columns, uint32_t elem_bytes, const tile *t, uint32_t cols) {
  const uint32_t lane = thread_index() - CONSUMERS;
  const uint32_t to = shared_address(TOUCHED_AT + lane % 32 * 4);
  const uint32_t end = least(t->col + TILE_N, cols) * elem_bytes;
  const uint32_t at = t->col * elem_bytes + lane * 128;
  if (at >= end + 128) return; /* the columns need not begin at a multiple of 128 bytes */
  copy4(to, columns + (least(at, end - elem_bytes) & ~3u));
}

/* What the results need of a tile's columns is there when they are: it comes from memory while the
 * sums are made. The columns' factors, and the vector of a chain that begins with one. */
SM90_INLINE void touch_columns(const matmul_args *args, const tile *t) {
  const uint32_t cols = args->p.cols;
#if FLOAT
  touch((const char *)args->b, sizeof(float), t, cols);
#endif
#if !CHUNKS
  const bool is_vector = (args->items[0] >> 8 & 15) == CHAIN_VECTOR;
  if (is_vector && args->chain.chain_inner == 1 && args->chain.chain_channels == cols) {
    const uint64_t from = (args->items[0] >> 12 & 1) == 0 ? args->operands[0] : args->operands[1];
    touch((const char *)from, sizeof(sm90_element), t, cols);
  }
#endif
  (void)t, (void)cols;
}

/* By one thread: has what a tile needs of b, for the step that begins with a term, brought to a
 * place. It is one stretch of memory. */
SM90_INLINE void bring_blocks(const matmul_args *args,
                              const tile *t,
                              uint32_t from,
                              uint32_t stage) {
  const uint32_t octets = args->p.b_row_units;
  const uint32_t first = t->col / BLOCK_COLS;
  const uint32_t bytes = least(TILE_N / BLOCK_COLS, octets - first) * (PARTS * BLOCK_BYTES);
  const uint64_t index = (uint64_t)(from / STEP) * octets + first;
  const char *b = (const char *)args->b + (FLOAT ? octets * BLOCK_COLS * sizeof(float) : 0) +
                  index * (PARTS * BLOCK_BYTES);
  mbarrier_expect(b_full_at(stage), bytes);
  bulk_copy(b_at(stage), b, bytes, b_full_at(stage));
}

/* By one thread: fills the first places with blocks of b, a constant, for which none waits until
 * the launches before this one are done. */
SM90_INLINE void bring_first_blocks(const matmul_args *args) {
  uint32_t stage = 0;
  tile t;
  SM90_LOOP for (uint32_t number = 0; stage < AHEAD && find_tile(args, number, &t); ++number) {
    SM90_LOOP for (uint32_t from = t.begin; stage < AHEAD && from < t.end; from += STEP, ++stage) {
      bring_blocks(args, &t, from, stage);
    }
  }
}

/* Brings all of a tile. Rows past the end repeat the last; nobody stores their results. */
SM90_INLINE void bring(const matmul_args *args, const tile *t, places *at) {
  enum { PIECES = ROW_BYTES / 16, ROWS_AT_ONCE = PRODUCERS / PIECES };
  enum { FETCHES = TILE_M / ROWS_AT_ONCE, PIECE_TERMS = STEP / PIECES };
  const uint32_t lane = thread_index() - CONSUMERS;
  const uint32_t piece = lane % PIECES;
  /* The same for all rows of a thread. */
  const uint32_t own = lane / PIECES * ROW_BYTES + piece_at(lane / PIECES, piece);
  _Static_assert(ROWS_AT_ONCE % 8 == 0, "rows of a thread: their pieces lie alike");
  uint32_t rows[FETCHES];
  touch_columns(args, t);
  SM90_UNROLL for (uint32_t i = 0; i < FETCHES; ++i) {
    const uint32_t row = t->row + lane / PIECES + i * ROWS_AT_ONCE;
    rows[i] = least(row, args->p.rows - 1) * args->p.a_row_units;
  }
  SM90_LOOP for (uint32_t from = t->begin; from < t->end; from += STEP) {
    const uint32_t to = a_at(at->a.stage) + own;
    const uint32_t a_full = a_full_at(at->a.stage);
    const uint32_t b_full = b_full_at(at->b.stage);
    const uint32_t term = from + piece * PIECE_TERMS;
    const uint32_t bytes = term < args->p.depth ? 16 : 0;
    const char *a = (const char *)args->a + (uint64_t)(bytes ? term / PIECE_TERMS : 0) * 16;
    mbarrier_wait(empty_of(b_full), ~at->b.round & 1); /* the places are empty at first */
    if (lane == 0 && (at->b.round > 0 || at->b.stage >= AHEAD)) {
      bring_blocks(args, t, from, at->b.stage);
    }
    if (!IS_JOINT) mbarrier_wait(empty_of(a_full), ~at->a.round & 1);
    SM90_UNROLL for (uint32_t i = 0; i < FETCHES; ++i) {
      copy16(to + i * ROWS_AT_ONCE * ROW_BYTES, a + (uint64_t)rows[i] * 16, bytes);
    }
    copies_arrive(a_full);
    advance_one(at);
  }
}

/* ---- Teams ---- */

#define WGMMA_JOIN(N, SUFFIX) wgmma_##N##SUFFIX
#define WGMMA(N)              WGMMA_JOIN(N, )
#define WGMMA_REGISTERS(N)    WGMMA_JOIN(N, _registers)

/* Which steps of a tile that begins at `at` a team takes: the first, and how far it is to the next.
 * A place is always the same team's. */
SM90_INLINE uint32_t first_step(uint32_t team, const places *at) {
  return SHARE == BY_TERMS ? (team + TEAMS - at->b.stage % TEAMS) % TEAMS : 0;
}
enum { STEPS_ON = SHARE == BY_TERMS ? TEAMS : 1 };
_Static_assert(SHARE != BY_TERMS || (STAGES % TEAMS == 0 && STAGES > TEAMS &&
                                     A_STAGES % TEAMS == 0 && A_STAGES > TEAMS),
               "places of a team: two");
_Static_assert(SHARE != BY_TILES || (TEAMS == 2 && !FLOAT), "two teams, in one pass");

SM90_INLINE void next_step(places *at) {
  if (STEPS_ON == 1) {
    advance_one(at);
  } else {
    advance(at, STEPS_ON);
  }
}

/* The first row of the tile that is a team's, and a warp's. */
SM90_INLINE uint32_t team_row(uint32_t team) {
  return SHARE == BY_ROWS ? team * TEAM_ROWS : 0;
}

SM90_INLINE uint32_t warp_row(uint32_t team) {
  return team_row(team) + thread_index() % TEAM_THREADS / 32 * 16;
}

/* A warp waits for a place. */
SM90_INLINE void await(uint32_t full, const place *at) {
  mbarrier_wait(full, at->round & 1);
}

/* It has read the place. */
SM90_INLINE void leave(uint32_t full) {
  if (thread_index() % 32 == 0) mbarrier_arrive(empty_of(full));
}

/* Teams that have tiles by turns begin one behind the other, when the one before has no more steps
 * to wait for: a barrier's parity tells the phase that is awaited from the one before it, and from
 * no other. */
enum { BOTH_TEAMS = 2 * TEAM_THREADS };

SM90_INLINE void await_steps(uint32_t team) {
  if (SHARE == BY_TILES) barrier_some(TEAM_BARRIER + team, BOTH_TEAMS);
}

SM90_INLINE void leave_steps(uint32_t team) {
  if (SHARE == BY_TILES) barrier_arrive(TEAM_BARRIER + (team + 1) % TEAMS, BOTH_TEAMS);
}

#if !FLOAT
/* A team's sums of a tile, whose first step is at `at`. */
SM90_INLINE void multiply(const matmul_args *args,
                          const tile *t,
                          uint32_t team,
                          bool is_scaled,
                          places at,
                          float out_factors[2],
                          float sums[SUM_COUNT]) {
  uint32_t last = 0; /* place that is being read still */
  (void)args, (void)is_scaled;
  out_factors[0] = out_factors[1] = 1.0f;
  SM90_UNROLL for (uint32_t i = 0; i < SUM_COUNT; ++i) sums[i] = 0.0f;
  await_steps(team);
  SM90_LOOP for (uint32_t step = 0; step < step_count(t); ++step) {
    const uint32_t full = b_full_at(at.b.stage);
    const uint64_t a = wgmma_operand(a_at(at.a.stage) + team_row(team) * ROW_BYTES, BLOCK_BYTES);
    const uint64_t b = wgmma_operand(b_at(at.b.stage), BLOCK_BYTES);
    await(full, &at.b);
    shared_fence();
    wgmma_fence();
    SM90_UNROLL for (uint32_t k = 0; k < STEP / 16; ++k) {
      WGMMA(TILE_N)(sums, a + 2 * k, b + 2 * k);
    }
    wgmma_commit();
    wgmma_wait(1);
    if (step > 0) leave(last);
    last = full;
    advance_one(&at);
  }
  leave_steps(team);
  wgmma_wait(0);
  leave(last);
}

#else
/* The two rows of a thread. */
typedef struct row_pair {
  float scales[2];
  float largest[2]; /* magnitude so far */
} row_pair;

/* 16 terms of a thread's two rows. In b's blocks the terms of each 16 stand in such an order that a
 * thread's, of wgmma, are four neighbours. */
SM90_INLINE void load_terms(uint32_t at, uint32_t k, float terms[2][4]) {
  const uint32_t lane = thread_index() % 32;
  SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) {
    shared_load4(at + r * 8 * ROW_BYTES + piece_at(lane / 4, k * 4 + lane % 4), terms[r]);
  }
}

SM90_INLINE void split_terms(
    float terms[2][4], bool is_scaled, row_pair *rows, uint32_t high[4], uint32_t low[4]) {
  SM90_UNROLL for (int r = 0; r < 2; ++r) {
    uint32_t h[2];
    uint32_t l[2];
    if (is_scaled) {
      split4_scaled(terms[r], rows->scales[r], h, l);
    } else {
      split4(terms[r], h, l);
      SM90_UNROLL for (int i = 0; i < 4; ++i) {
        rows->largest[r] = __builtin_fmaxf(rows->largest[r], __builtin_fabsf(terms[r][i]));
      }
    }
    high[r] = h[0];
    high[r + 2] = h[1];
    low[r] = l[0];
    low[r + 2] = l[1];
  }
}

/* A warp's sums: of the high parts, and of the products with one low part. `own`: where its rows
 * are in a place. */
SM90_INLINE void multiply_split(const tile *t,
                                uint32_t team,
                                uint32_t own,
                                places at,
                                bool is_scaled,
                                row_pair *rows,
                                float high[SUM_COUNT],
                                float low[SUM_COUNT]) {
  uint32_t last = 0; /* b's place that is being read still */
  uint32_t a_high[2][4];
  uint32_t a_low[2][4];
  float terms[2][4];
  SM90_UNROLL for (uint32_t i = 0; i < SUM_COUNT; ++i) high[i] = low[i] = 0.0f;
  uint32_t step = first_step(team, &at);
  advance(&at, step);
  SM90_LOOP for (; step < step_count(t); step += STEPS_ON) {
    const uint32_t a_full = a_full_at(at.a.stage);
    const uint32_t b_full = b_full_at(at.b.stage);
    const uint32_t a = a_at(at.a.stage) + own;
    const uint64_t b_high = wgmma_operand(b_at(at.b.stage), 2 * BLOCK_BYTES);
    const uint64_t b_low = wgmma_operand(b_at(at.b.stage) + BLOCK_BYTES, 2 * BLOCK_BYTES);
    await(a_full, &at.a);
    load_terms(a, 0, terms);
    await(b_full, &at.b);
    SM90_UNROLL for (uint32_t k = 0; k < STEP / 16; ++k) {
      split_terms(terms, is_scaled, rows, a_high[k & 1], a_low[k & 1]);
      if (k + 1 == STEP / 16) leave(a_full); /* all of a is in registers */
      wgmma_fence();
      WGMMA_REGISTERS(TILE_N)(low, a_high[k & 1], b_low + 2 * k);
      WGMMA_REGISTERS(TILE_N)(low, a_low[k & 1], b_high + 2 * k);
      WGMMA_REGISTERS(TILE_N)(high, a_high[k & 1], b_high + 2 * k);
      wgmma_commit();
      if (k + 1 < STEP / 16) load_terms(a, k + 1, terms);
      /* The one before is done: its registers are free, and at the first of a step b's place is. */
      wgmma_wait(1);
      if (k == 0 && last != 0) leave(last);
    }
    last = b_full;
    next_step(&at);
  }
  wgmma_wait(0);
  if (last != 0) leave(last);
}

/* The power of two that scales a row, by its largest number: infinities are left out. */
SM90_INLINE float find_scale(const matmul_args *args, const tile *t, uint32_t row) {
  const float *a = (const float *)args->a +
                   (uint64_t)least(t->row + row, args->p.rows - 1) * args->p.a_row_units * 4;
  float most = 0.0f;
  SM90_LOOP for (uint32_t i = t->begin + thread_index() % 4; i < t->end; i += 4) {
    const uint32_t magnitude = om_bits(a[i]) & 0x7fffffffu;
    most = magnitude < OM_INFINITY_BITS ? __builtin_fmaxf(most, om_float(magnitude)) : most;
  }
  const uint32_t bits = om_bits(largest_of_four(most)) & OM_INFINITY_BITS;
  return om_float((268u << 23) - (bits > 29u << 23 ? bits : 29u << 23));
}

/* A team's sums of a tile. What remains to do with one of row r is a multiplication by
 * out_factors[r], and the column's. A row that should have been scaled and was not sets the flag.
 */
SM90_INLINE void multiply(const matmul_args *args,
                          const tile *t,
                          uint32_t team,
                          bool is_scaled,
                          places at,
                          float out_factors[2],
                          float sums[SUM_COUNT]) {
  const uint32_t row = warp_row(team) + thread_index() % 32 / 4;
  float low[SUM_COUNT];
  row_pair rows = {.scales = {1.0f, 1.0f}};
  if (is_scaled) {
    SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) rows.scales[r] = find_scale(args, t, row + r * 8);
    multiply_split(t, team, row * ROW_BYTES, at, true, &rows, sums, low);
  } else {
    multiply_split(t, team, row * ROW_BYTES, at, false, &rows, sums, low);
  }
  SM90_UNROLL for (uint32_t r = 0; r < 2; ++r) {
    if (is_far(largest_of_four(rows.largest[r]))) shared_store1(flag_at(), 1);
    /* 2^-14 / scale, for the columns' 2^14 */
    out_factors[r] = om_float((240u << 23) - om_bits(rows.scales[r]));
  }
  SM90_UNROLL for (uint32_t i = 0; i < SUM_COUNT; ++i) sums[i] += low[i] * (1.0f / SM90_LOW_SCALE);
}
#endif

#include "gpu/sm90/matmul_sm90_results.h"

/* ---- The workgroup ---- */

SM90_INLINE void produce(const matmul_args *args, uint32_t pass, places *at) {
  tile t;
  if (pass == 0) mbarrier_wait(go_at(), 0);
  SM90_LOOP for (uint32_t number = 0; find_tile(args, number, &t); ++number) bring(args, &t, at);
}

/* One tile of a team. */
SM90_INLINE void make_tile(const matmul_args *args,
                           const tile *t,
                           uint32_t team,
                           const usual_chain *chain,
                           bool is_scaled,
                           places at) {
  float factors[2];
  float sums[SUM_COUNT];
  multiply(args, t, team, is_scaled, at, factors, sums);
#if SHARE == BY_TERMS
  finish_sums(args, t, chain, factors, sums);
#else
  finish(args, t, team, chain, factors, sums);
#endif
}

SM90_INLINE void consume(const matmul_args *args, uint32_t team, bool is_scaled, places *at) {
  const usual_chain chain = find_usual_chain(args);
  tile t;
  if (team == 1) leave_steps(team); /* the first is team 0's */
  SM90_LOOP for (uint32_t number = 0; find_tile(args, number, &t); ++number) {
    if (SHARE != BY_TILES || number % TEAMS == team) {
      make_tile(args, &t, team, &chain, is_scaled, *at);
    }
    advance(at, step_count(&t));
  }
}

/* Behind a pass: true if a team found rows that have to be scaled, which the next pass does. */
SM90_INLINE bool is_another_pass(uint32_t pass, places *at) {
  if (!FLOAT || pass != 0) return false;
  at->b.round |= 2; /* none is the first any more */
  barrier_all();
  return shared_load1(flag_at()) != 0;
}

SM90_KERNEL void OM_KERNEL(matmul_args args) {
  const uint32_t team = warp_index() / 4;
  places at = {{0, 0}, {0, 0}};
  uint32_t pass = 0;
  if (group_index() >= args.p.group_count) return;
  if (thread_index() == 0) {
    SM90_UNROLL for (uint32_t i = 0; i < PLACES; ++i) {
      mbarrier_init(a_full_at(i), (i < A_STAGES ? PRODUCERS : 0) + (IS_JOINT || i >= A_STAGES));
      mbarrier_init(empty_of(a_full_at(i)), SHARE == BY_ROWS ? TEAMS * 4 : 4);
    }
    mbarrier_init(go_at(), 1);
    shared_store1(flag_at(), 0);
    mbarrier_fence();
  }
  barrier_all();
  /* Before the roles part, where it leaves the compiler what it knows to be the same in a warp. */
  if (thread_index() == 0) bring_first_blocks(&args);
  if (thread_index() == 32) {
    turn_wait(&args.turn);
    mbarrier_arrive(go_at());
  }
  warp_sync();
  /* One if with all of each role in it: only so does ptxas give the roles registers of their own.
   */
  if (team == TEAMS) {
    if (TEAMS == 2) registers_leave(40);
    do produce(&args, pass, &at);
    while (is_another_pass(pass++, &at));
  } else {
    if (TEAMS == 2) registers_take(232);
    do consume(&args, team, pass != 0, &at);
    while (is_another_pass(pass++, &at));
    barrier_some(END_BARRIER, CONSUMERS);
    if (thread_index() == 0) turn_give(&args.turn);
  }
}
