/* Exact products on Hopper: tiles of TILE_M by TILE_N sums over the depth, in the order of
 * docs/exact.md, Products: a multiplication and an addition a term, each rounded.
 *
 * What bounds them is how many of those a core starts, one a lane and cycle; so a thread has many
 * sums (ROWS by COLS), for which it loads few numbers, and whatever else is to be done is rare or
 * other threads'.
 *
 * TEAMS teams share a tile's terms. In a turn each takes RUN blocks of 32 terms that follow one
 * another: a block, or a group of four, whose sums it adds by itself. Then it puts its sums into
 * shared memory, and there every thread adds those of its share of the results in order. The last
 * four warps of a workgroup are its producers: they bring a block for each team, a step, into one
 * of STAGES places, one behind the other, tile for tile; a workgroup takes tiles until there are
 * none.
 *
 * a lies in shared memory by rows, at a pitch that puts neighbouring rows into different banks; b
 * by terms, or by columns like a's rows where TURNED says that it lies so in memory.
 *
 * Who includes this has those constants and exact_args, and gives find_tile and finish_tile.
 */
#ifndef SM90_EXACT_H
#define SM90_EXACT_H

#include "gpu/sm90/sm90.h"

enum {
  BLOCK = 32, /* terms */
  GROUP_BLOCKS = 4,
  PRODUCERS = 128,
  ROW_GROUPS = TILE_M / ROWS, /* a thread's rows are so far apart */
  COL_GROUPS = TILE_N / COLS, /* and its columns, or quads of them */
  TEAM_THREADS = ROW_GROUPS * COL_GROUPS,
  CONSUMERS = TEAMS * TEAM_THREADS,
  WARP_ROWS = 32 / WARP_COLS, /* of these groups */
  QUADS = ROWS * COLS / 4,    /* of a thread's sums */
  SHARE = QUADS / TEAMS,      /* of them: whose results it adds */
  PITCH_BYTES = (BLOCK + 4) * 4,
  A_BYTES = TILE_M * PITCH_BYTES, /* of a block */
  B_BYTES = TURNED ? TILE_N * PITCH_BYTES : BLOCK * TILE_N * 4,
  PLACE_BYTES = TEAMS * (A_BYTES + B_BYTES),
  RESULT_PITCH = TILE_N + 4, /* floats; the results take the sums' place */
  RESULT_BYTES = TILE_M * RESULT_PITCH * 4,
  SUM_BYTES = TEAMS * TILE_M * TILE_N * 4,
  ROOM_BYTES = TEAMS > 1 ? SUM_BYTES : RESULT_BYTES,
  BARRIER_BYTES = 16 * STAGES, /* a full one and an empty one for each place */
};
_Static_assert(OM_THREADS == CONSUMERS + PRODUCERS && TEAM_THREADS % 32 == 0, "the head's threads");
_Static_assert(OM_SHARED_BYTES == STAGES * PLACE_BYTES + ROOM_BYTES + BARRIER_BYTES,
               "the head's shared memory");
_Static_assert(ROW_GROUPS % WARP_ROWS == 0 && COL_GROUPS % WARP_COLS == 0, "whole warps");
_Static_assert(QUADS % TEAMS == 0 && (TURNED || COLS % 4 == 0), "whole quads");
_Static_assert(RUN == 1 || RUN == GROUP_BLOCKS, "a block or a group");
_Static_assert(RESULT_BYTES <= ROOM_BYTES, "results in the sums' place");

/* What a tile multiplies. Pitches, depth and, unless b is turned, cols are multiples of 4. */
typedef struct exact_tile {
  const float *a, *b;  /* the first row, the first column */
  uint32_t rows, cols; /* that there are from there on */
  uint32_t a_pitch, b_pitch;
  uint32_t depth, b_terms; /* b has fewer where a has -0 in their place */
  uint32_t row, col;       /* of the first result, in a matrix that begins at this element: */
  uint64_t base;
} exact_tile;

/* Tile number `turn` of this workgroup; false behind the last. */
SM90_INLINE bool find_tile(const exact_args *args, uint32_t turn, exact_tile *t);

/* Stores a tile's results, which lie from room_at(0) on. */
SM90_INLINE void finish_tile(const exact_args *args, const exact_tile *t);

SM90_INLINE uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

SM90_INLINE uint32_t a_at(uint32_t stage, uint32_t team) {
  return shared_address(stage * PLACE_BYTES + team * A_BYTES);
}

SM90_INLINE uint32_t b_at(uint32_t stage, uint32_t team) {
  return shared_address(stage * PLACE_BYTES + TEAMS * A_BYTES + team * B_BYTES);
}

SM90_INLINE uint32_t room_at(uint32_t offset_bytes) {
  return shared_address(STAGES * PLACE_BYTES + offset_bytes);
}

SM90_INLINE uint32_t full_at(uint32_t stage) {
  return shared_address(STAGES * PLACE_BYTES + ROOM_BYTES + stage * 8);
}

SM90_INLINE uint32_t empty_at(uint32_t stage) {
  return shared_address(STAGES * PLACE_BYTES + ROOM_BYTES + (STAGES + stage) * 8);
}

/* A place and its barriers' parity: what producers and teams go through in step. */
typedef struct place {
  uint32_t stage, parity;
} place;

SM90_INLINE void advance(place *at) {
  at->stage = at->stage + 1 == STAGES ? 0 : at->stage + 1;
  at->parity ^= at->stage == 0;
}

SM90_INLINE uint32_t block_count(const exact_tile *t) {
  return (t->depth + BLOCK - 1) / BLOCK;
}

/* Steps of a tile: all of whole turns, and of the last what its first team has to do. */
SM90_INLINE uint32_t step_count(const exact_tile *t) {
  const uint32_t blocks = block_count(t);
  return blocks / (TEAMS * RUN) * RUN + least(blocks % (TEAMS * RUN), RUN);
}

/* The block that is a team's in a step. */
SM90_INLINE uint32_t block_of(uint32_t step, uint32_t team) {
  return (step / RUN * TEAMS + team) * RUN + step % RUN;
}

SM90_INLINE void shared_store_quad(uint32_t at, const float quad[4]) {
  __asm__ volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at),
                   "f"(quad[0]),
                   "f"(quad[1]),
                   "f"(quad[2]),
                   "f"(quad[3])
                   : "memory");
}

/* ---- Producers ---- */

/* A block of rows by terms, from term `from` on. Rows past the end repeat the last, terms past it
 * are zeros: nobody uses either. */
SM90_INLINE void bring_rows(const float *source,
                            uint32_t pitch,
                            uint32_t rows,
                            uint32_t depth,
                            uint32_t from,
                            uint32_t target,
                            const uint32_t count) {
  enum { PIECES = BLOCK / 4, ROWS_AT_ONCE = PRODUCERS / PIECES };
  const uint32_t thread = thread_index() - CONSUMERS;
  const uint32_t piece = thread % PIECES;
  const uint32_t term = from + piece * 4;
  const uint32_t bytes = term < depth ? 16 : 0;
  const float *at = source + (bytes ? term : 0);
  SM90_UNROLL for (uint32_t i = 0; i < count / ROWS_AT_ONCE; ++i) {
    const uint32_t row = thread / PIECES + i * ROWS_AT_ONCE;
    copy16(target + row * PITCH_BYTES + piece * 16,
           at + (uint64_t)least(row, rows - 1) * pitch,
           bytes);
  }
}

/* A block of b by terms. */
SM90_INLINE void bring_terms(const exact_tile *t, uint32_t from, uint32_t target) {
  enum { PIECES = TILE_N / 4, COUNT = BLOCK * PIECES };
  const uint32_t thread = thread_index() - CONSUMERS;
  SM90_UNROLL for (uint32_t i = 0; i < COUNT / PRODUCERS; ++i) {
    const uint32_t number = thread + i * PRODUCERS;
    const uint32_t term = number / PIECES;
    const uint32_t col = number % PIECES * 4;
    const uint32_t bytes = from + term < t->b_terms && col < t->cols ? 16 : 0;
    const uint64_t at = bytes ? (uint64_t)(from + term) * t->b_pitch + col : 0;
    copy16(target + number * 16, t->b + at, bytes);
  }
}
_Static_assert(TILE_M % 16 == 0 && TILE_N % 16 == 0, "whole turns of the producers");

SM90_INLINE void bring_tile(const exact_tile *t, place *at) {
  SM90_LOOP for (uint32_t step = 0; step < step_count(t); ++step) {
    mbarrier_wait(empty_at(at->stage), at->parity ^ 1); /* the places are empty at first */
    SM90_LOOP for (uint32_t team = 0; team < TEAMS; ++team) {
      const uint32_t from = block_of(step, team) * BLOCK;
      if (from >= t->depth) break;
      bring_rows(t->a, t->a_pitch, t->rows, t->depth, from, a_at(at->stage, team), TILE_M);
      if (TURNED) {
        bring_rows(t->b, t->b_pitch, t->cols, t->depth, from, b_at(at->stage, team), TILE_N);
      } else {
        bring_terms(t, from, b_at(at->stage, team));
      }
    }
    copies_arrive(full_at(at->stage));
    advance(at);
  }
}

SM90_INLINE void produce(const exact_args *args) {
  place at = {0, 0};
  exact_tile t;
  SM90_LOOP for (uint32_t turn = 0; find_tile(args, turn, &t); ++turn) bring_tile(&t, &at);
}

/* ---- Teams: multiplying ---- */

/* A thread's place in its team: of its first row, and of its first column or quad of them. A warp's
 * rows lie in different banks. */
SM90_INLINE uint32_t own_row(void) {
  const uint32_t warp = thread_index() % TEAM_THREADS / 32;
  return warp / (COL_GROUPS / WARP_COLS) * WARP_ROWS + thread_index() % 32 / WARP_COLS;
}

SM90_INLINE uint32_t own_col(void) {
  const uint32_t warp = thread_index() % TEAM_THREADS / 32;
  return warp % (COL_GROUPS / WARP_COLS) * WARP_COLS + thread_index() % WARP_COLS;
}

SM90_INLINE void multiply_add(float a, float b, float *sum) {
  *sum = __nvvm_add_rn_ftz_f(*sum, __nvvm_mul_rn_ftz_f(a, b));
}

/* Adds four terms. */
SM90_INLINE void multiply_quad(uint32_t a, uint32_t b, float sums[ROWS * COLS]) {
  float terms[ROWS][4];
  SM90_UNROLL for (uint32_t m = 0; m < ROWS; ++m) {
    shared_load4(a + m * ROW_GROUPS * PITCH_BYTES, terms[m]);
  }
#if TURNED
  float others[COLS][4];
  SM90_UNROLL for (uint32_t n = 0; n < COLS; ++n) {
    shared_load4(b + n * COL_GROUPS * PITCH_BYTES, others[n]);
  }
#endif
  SM90_UNROLL for (uint32_t k = 0; k < 4; ++k) {
#if !TURNED
    float others[COLS];
    SM90_UNROLL for (uint32_t n = 0; n < COLS / 4; ++n) {
      shared_load4(b + (k * TILE_N + n * COL_GROUPS * 4) * 4, others + n * 4);
    }
#endif
    SM90_UNROLL for (uint32_t m = 0; m < ROWS; ++m) {
      SM90_UNROLL for (uint32_t n = 0; n < COLS; ++n) {
#if TURNED
        multiply_add(terms[m][k], others[n][k], &sums[m * COLS + n]);
#else
        multiply_add(terms[m][k], others[n], &sums[m * COLS + n]);
#endif
      }
    }
  }
}

/* The sums of a block's terms, four by four. */
SM90_INLINE void multiply(uint32_t a, uint32_t b, uint32_t quads, float sums[ROWS * COLS]) {
  enum { A_QUAD = 16, B_QUAD = TURNED ? 16 : 4 * TILE_N * 4 };
  SM90_UNROLL for (uint32_t i = 0; i < ROWS * COLS; ++i) sums[i] = 0.0f;
  SM90_LOOP for (uint32_t q = 0; q < quads; ++q) {
    multiply_quad(a, b, sums);
    a += A_QUAD;
    b += B_QUAD;
  }
}

SM90_INLINE void add_sums(float *to, const float *values, const uint32_t count) {
  SM90_UNROLL for (uint32_t i = 0; i < count; ++i) to[i] = __nvvm_add_rn_ftz_f(to[i], values[i]);
}

/* -0 changes nothing that is added to it. */
SM90_INLINE void clear(float *values, const uint32_t count) {
  SM90_UNROLL for (uint32_t i = 0; i < count; ++i) values[i] = -0.0f;
}

/* A turn's sums of a team, whose first step is at *at: of a block, or of a group. */
SM90_INLINE void take_run(
    const exact_tile *t, uint32_t step, uint32_t steps, uint32_t team, place *at, float *sums) {
#if RUN > 1
  float block[ROWS * COLS];
  clear(sums, ROWS * COLS);
#else
  float *const block = sums;
#endif
  SM90_LOOP for (uint32_t i = 0; i < steps; ++i) {
    const uint32_t from = block_of(step + i, team) * BLOCK;
    const uint32_t terms = from < t->depth ? least(t->depth - from, BLOCK) : 0;
    mbarrier_wait(full_at(at->stage), at->parity);
    multiply(a_at(at->stage, team) + own_row() * PITCH_BYTES,
             b_at(at->stage, team) + own_col() * (TURNED ? PITCH_BYTES : 16),
             terms / 4,
             block);
    warp_sync();
    if (thread_index() % 32 == 0) mbarrier_arrive(empty_at(at->stage));
    advance(at);
#if RUN > 1
    if (terms != 0) add_sums(sums, block, ROWS * COLS);
#endif
  }
}

/* ---- Teams: adding ---- */

SM90_INLINE void barrier_teams(void) {
  __asm__ volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

/* Where a quad of a thread's sums lies, of a team; neighbouring threads' side by side. */
SM90_INLINE uint32_t quad_at(uint32_t team, uint32_t quad) {
  return room_at(((team * QUADS + quad) * TEAM_THREADS + thread_index() % TEAM_THREADS) * 16);
}

/* A thread's share of the results: sums of blocks where a turn has blocks, and of groups. */
typedef struct exact_sums {
  float part[RUN == 1 ? SHARE * 4 : 1];
  float total[SHARE * 4];
} exact_sums;

SM90_INLINE void add_group(exact_sums *s) {
  add_sums(s->total, s->part, SHARE * 4);
  clear(s->part, SHARE * 4);
}

/* Adds what the teams have put down in a turn that begins with block `first`, where there is any.
 */
SM90_INLINE void add_turn(uint32_t team, uint32_t first, uint32_t blocks, exact_sums *s) {
  SM90_UNROLL for (uint32_t other = 0; other < TEAMS; ++other) {
    if (first + other * RUN >= blocks) continue;
    float *const to = RUN == 1 ? s->part : s->total;
    SM90_UNROLL for (uint32_t j = 0; j < SHARE; ++j) {
      float values[4];
      shared_load4(quad_at(other, team * SHARE + j), values);
      add_sums(to + j * 4, values, 4);
    }
#if RUN == 1
    if ((first + other) % GROUP_BLOCKS == GROUP_BLOCKS - 1) add_group(s);
#endif
  }
}

/* All turns of a tile. */
SM90_INLINE void sum_tile(const exact_tile *t, uint32_t team, place *at, exact_sums *s) {
  const uint32_t steps = step_count(t);
  clear(s->total, SHARE * 4);
#if RUN == 1
  clear(s->part, SHARE * 4);
#endif
  SM90_LOOP for (uint32_t step = 0; step < steps; step += RUN) {
    float sums[ROWS * COLS];
    take_run(t, step, least(RUN, steps - step), team, at, sums);
#if TEAMS > 1
    barrier_teams(); /* what lies there has been read */
    SM90_UNROLL for (uint32_t q = 0; q < QUADS; ++q)
        shared_store_quad(quad_at(team, q), sums + q * 4);
    barrier_teams();
    add_turn(team, block_of(step, 0), block_count(t), s);
#else
    add_sums(s->total, sums, SHARE * 4);
#endif
  }
#if RUN == 1
  add_group(s); /* the last, which may be short; or nothing */
#endif
}

/* Puts a thread's results down, by rows, and waits for everybody's. */
SM90_INLINE void put_results(uint32_t team, const exact_sums *s) {
  barrier_teams();
  SM90_UNROLL for (uint32_t j = 0; j < SHARE; ++j) {
    const uint32_t quad = team * SHARE + j;
    if (TURNED) {
      SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = own_row() + (quad * 4 + i) / COLS * ROW_GROUPS;
        const uint32_t col = own_col() + (quad * 4 + i) % COLS * COL_GROUPS;
        shared_store1(room_at((row * RESULT_PITCH + col) * 4),
                      __builtin_bit_cast(uint32_t, s->total[j * 4 + i]));
      }
    } else {
      const uint32_t row = own_row() + quad / (COLS / 4) * ROW_GROUPS;
      const uint32_t col = own_col() + quad % (COLS / 4) * COL_GROUPS;
      shared_store_quad(room_at((row * RESULT_PITCH + col * 4) * 4), s->total + j * 4);
    }
  }
  barrier_teams();
}

SM90_INLINE void consume(const exact_args *args) {
  const uint32_t team = warp_index() / (TEAM_THREADS / 32);
  place at = {0, 0};
  exact_tile t;
  SM90_LOOP for (uint32_t turn = 0; find_tile(args, turn, &t); ++turn) {
    exact_sums s;
    sum_tile(&t, team, &at, &s);
    put_results(team, &s);
    finish_tile(args, &t);
  }
}

/* ---- The workgroup ---- */

SM90_INLINE void make_tiles(const exact_args *args) {
  if (thread_index() == 0) {
    SM90_UNROLL for (uint32_t i = 0; i < STAGES; ++i) {
      mbarrier_init(full_at(i), PRODUCERS);
      mbarrier_init(empty_at(i), CONSUMERS / 32);
    }
    mbarrier_fence();
  }
  barrier_all();
  /* One if with all of each role in it: only so does ptxas give the roles registers of their own.
   */
  if (thread_index() >= CONSUMERS) {
    registers_leave(40);
    produce(args);
  } else {
    registers_take(CONSUMERS == 256 ? 232 : 152);
    consume(args);
  }
}

#endif
