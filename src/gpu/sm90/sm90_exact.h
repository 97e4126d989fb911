/* Exact products on Hopper: tiles of TILE_M by TILE_N sums over the depth, in the order of
 * docs/exact.md, Products: a multiplication and an addition a term, each rounded.
 *
 * What bounds them is how many of those a core starts, one a lane and cycle; so a thread has many
 * sums (ROWS by COLS), for which it loads few numbers, and whatever else it does is rare.
 *
 * TEAMS teams share a tile's terms: in a step each takes a block of 32, of all the tile, and puts
 * its sums into shared memory; there every thread adds those of its share of the results, block
 * after block. The next step's terms are on their way meanwhile, across tiles too, into the other
 * of two places. A workgroup takes tiles until there are none.
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
  GROUP = 128,
  STEP = TEAMS * BLOCK,
  ROW_GROUPS = TILE_M / ROWS, /* a thread's rows are so far apart */
  COL_GROUPS = TILE_N / COLS, /* and its columns, or quads of them */
  TEAM_THREADS = ROW_GROUPS * COL_GROUPS,
  WARP_ROWS = 32 / WARP_COLS, /* of these groups */
  QUADS = ROWS * COLS / 4,    /* of a thread's sums */
  SHARE = QUADS / TEAMS,      /* of them: whose results it adds */
  PITCH_BYTES = (BLOCK + 4) * 4,
  A_BYTES = TILE_M * PITCH_BYTES, /* of a block */
  B_BYTES = TURNED ? TILE_N * PITCH_BYTES : BLOCK * TILE_N * 4,
  PLACE_BYTES = TEAMS * (A_BYTES + B_BYTES),
  SUM_BYTES = TEAMS * TILE_M * TILE_N * 4,
  RESULT_PITCH = TILE_N + 4, /* floats; the results take the sums' place */
};
_Static_assert(OM_THREADS == TEAMS * TEAM_THREADS && TEAM_THREADS % 32 == 0, "the head's threads");
_Static_assert(OM_SHARED_BYTES == 2 * PLACE_BYTES + SUM_BYTES, "the head's shared memory");
_Static_assert(ROW_GROUPS % WARP_ROWS == 0 && COL_GROUPS % WARP_COLS == 0, "whole warps");
_Static_assert(QUADS % TEAMS == 0 && COLS % 4 == 0, "whole quads");
_Static_assert(TILE_M *RESULT_PITCH * 4 <= SUM_BYTES, "results in the sums' place");

/* What a tile multiplies. Pitches, depth and, unless b is turned, cols are multiples of 4. */
typedef struct exact_tile {
  const float *a, *b;  /* the first row, the first column */
  uint32_t rows, cols; /* that there are from there on */
  uint32_t a_pitch, b_pitch;
  uint32_t depth, b_terms; /* b has fewer where a has -0 in their place */
  uint32_t row, col;       /* of the first result, in a matrix that begins at this element: */
  uint64_t base;
} exact_tile;

SM90_INLINE uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

SM90_INLINE uint32_t a_at(uint32_t place, uint32_t block) {
  return shared_address(place * PLACE_BYTES + block * A_BYTES);
}

SM90_INLINE uint32_t b_at(uint32_t place, uint32_t block) {
  return shared_address(place * PLACE_BYTES + TEAMS * A_BYTES + block * B_BYTES);
}

SM90_INLINE uint32_t sums_at(uint32_t offset_bytes) {
  return shared_address(2 * PLACE_BYTES + offset_bytes);
}

SM90_INLINE void shared_store_quad(uint32_t at, const float quad[4]) {
  __asm__ volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at),
                   "f"(quad[0]),
                   "f"(quad[1]),
                   "f"(quad[2]),
                   "f"(quad[3])
                   : "memory");
}

/* ---- Bringing terms ---- */

/* The thread's number, for the compiler a new one each time: what is made of it takes no registers
 * from step to step. */
SM90_INLINE uint32_t fresh_thread(void) {
  uint32_t thread = thread_index();
  __asm__ volatile("" : "+r"(thread));
  return thread;
}

/* Rows by terms, COUNT of them, from term `from` on. Rows past the end repeat the last, terms past
 * it are zeros: nobody uses either. */
SM90_INLINE void bring_rows(const float *source,
                            uint32_t pitch,
                            uint32_t rows,
                            uint32_t depth,
                            uint32_t from,
                            uint32_t target,
                            uint32_t block_bytes,
                            const uint32_t count) {
  enum { PIECES = STEP / 4, ROWS_AT_ONCE = OM_THREADS / PIECES };
  const uint32_t thread = fresh_thread();
  const uint32_t piece = thread % PIECES;
  const uint32_t term = from + piece * 4;
  const uint32_t bytes = term < depth ? 16 : 0;
  const float *at = source + (bytes ? term : 0);
  const uint32_t to = target + piece / (BLOCK / 4) * block_bytes + piece % (BLOCK / 4) * 16;
  SM90_UNROLL for (uint32_t i = 0; i < (count + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE; ++i) {
    const uint32_t row = thread / PIECES + i * ROWS_AT_ONCE;
    if (count % ROWS_AT_ONCE != 0 && row >= count) continue;
    copy16(to + row * PITCH_BYTES, at + (uint64_t)least(row, rows - 1) * pitch, bytes);
  }
}

/* b by terms. */
SM90_INLINE void bring_terms(const exact_tile *t, uint32_t from, uint32_t target) {
  enum { PIECES = TILE_N / 4, COUNT = STEP * PIECES };
  const uint32_t thread = fresh_thread();
  SM90_UNROLL for (uint32_t i = 0; i < (COUNT + OM_THREADS - 1) / OM_THREADS; ++i) {
    const uint32_t number = thread + i * OM_THREADS;
    if (COUNT % OM_THREADS != 0 && number >= COUNT) continue;
    const uint32_t term = number / PIECES;
    const uint32_t col = number % PIECES * 4;
    const uint32_t bytes = from + term < t->b_terms && col < t->cols ? 16 : 0;
    const uint64_t at = bytes ? (uint64_t)(from + term) * t->b_pitch + col : 0;
    copy16(target + number * 16, t->b + at, bytes);
  }
}

SM90_INLINE void bring(const exact_tile *t, uint32_t from, uint32_t place) {
  bring_rows(t->a, t->a_pitch, t->rows, t->depth, from, a_at(place, 0), A_BYTES, TILE_M);
  if (TURNED) {
    bring_rows(t->b, t->b_pitch, t->cols, t->depth, from, b_at(place, 0), B_BYTES, TILE_N);
  } else {
    bring_terms(t, from, b_at(place, 0));
  }
}
_Static_assert(OM_THREADS * 4 % STEP == 0, "whole rows at once");

/* ---- Multiplying ---- */

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

SM90_INLINE void load_rows(uint32_t at, float to[ROWS][4]) {
  SM90_UNROLL for (uint32_t m = 0; m < ROWS; ++m) {
    shared_load4(at + m * ROW_GROUPS * PITCH_BYTES, to[m]);
  }
}

SM90_INLINE void multiply_add(float a, float b, float *sum) {
  *sum = __nvvm_add_rn_ftz_f(*sum, __nvvm_mul_rn_ftz_f(a, b));
}

/* Adds a block's terms, four by four. */
SM90_INLINE void multiply(uint32_t a, uint32_t b, uint32_t quads, float sums[ROWS * COLS]) {
  SM90_LOOP for (uint32_t q = 0; q < quads; ++q) {
    float terms[ROWS][4];
    load_rows(a, terms);
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
    a += 16;
    b += TURNED ? 16 : 4 * TILE_N * 4;
  }
}

/* ---- Sums of blocks ---- */

/* Where a quad of a thread's sums lies, of a team; neighbouring threads' side by side. */
SM90_INLINE uint32_t quad_at(uint32_t team, uint32_t quad) {
  return sums_at(((team * QUADS + quad) * TEAM_THREADS + thread_index() % TEAM_THREADS) * 16);
}

/* A thread's share of the results: sums of blocks, and of groups. */
typedef struct exact_sums {
  float part[SHARE * 4];
  float total[SHARE * 4];
} exact_sums;

/* -0 changes nothing that is added to it. */
SM90_INLINE void clear(float values[SHARE * 4]) {
  SM90_UNROLL for (uint32_t i = 0; i < SHARE * 4; ++i) values[i] = -0.0f;
}

SM90_INLINE void add_group(exact_sums *s) {
  SM90_UNROLL for (uint32_t i = 0; i < SHARE * 4; ++i) {
    s->total[i] = __nvvm_add_rn_ftz_f(s->total[i], s->part[i]);
  }
  clear(s->part);
}

/* Adds the sums that the teams have put down: of blocks `first` and on, as many as there are. */
SM90_INLINE void add_blocks(uint32_t team, uint32_t first, uint32_t end, exact_sums *s) {
  enum { BLOCKS = GROUP / BLOCK };
  SM90_UNROLL for (uint32_t block = 0; block < TEAMS; ++block) {
    if (first + block >= end) continue;
    SM90_UNROLL for (uint32_t j = 0; j < SHARE; ++j) {
      float values[4];
      shared_load4(quad_at(block, team * SHARE + j), values);
      SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) {
        s->part[j * 4 + i] = __nvvm_add_rn_ftz_f(s->part[j * 4 + i], values[i]);
      }
    }
    /* Where steps end with groups, only their last block can end one. */
    if (BLOCKS % TEAMS == 0 && block != TEAMS - 1) continue;
    if ((first + block) % BLOCKS == BLOCKS - 1) add_group(s);
  }
}

/* One step of a tile, whose terms are there. */
SM90_INLINE void take_step(
    const exact_tile *t, uint32_t from, uint32_t place, uint32_t team, exact_sums *s) {
  const uint32_t begin = from + team * BLOCK;
  const uint32_t terms = begin < t->depth ? least(t->depth - begin, BLOCK) : 0;
  float sums[ROWS * COLS];
  SM90_UNROLL for (uint32_t i = 0; i < ROWS * COLS; ++i) sums[i] = 0.0f;
  multiply(a_at(place, team) + own_row() * PITCH_BYTES,
           b_at(place, team) + own_col() * (TURNED ? PITCH_BYTES : 16),
           terms / 4,
           sums);
  SM90_UNROLL for (uint32_t q = 0; q < QUADS; ++q)
      shared_store_quad(quad_at(team, q), sums + q * 4);
  barrier_all();
  add_blocks(team, from / BLOCK, (t->depth + BLOCK - 1) / BLOCK, s);
}

/* Puts a thread's results down, by rows, and waits for everybody's. */
SM90_INLINE void put_results(uint32_t team, exact_sums *s) {
  add_group(s); /* the last, which may be short; or nothing */
  barrier_all();
  SM90_UNROLL for (uint32_t j = 0; j < SHARE; ++j) {
    const uint32_t quad = team * SHARE + j;
    const uint32_t row = own_row() + quad / (COLS / 4) * ROW_GROUPS;
    const uint32_t first = quad % (COLS / 4);
    const uint32_t at = sums_at(row * RESULT_PITCH * 4);
    if (TURNED) {
      SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t col = own_col() + (first * 4 + i) * COL_GROUPS;
        shared_store1(at + col * 4, __builtin_bit_cast(uint32_t, s->total[j * 4 + i]));
      }
    } else {
      shared_store_quad(at + (own_col() + first * COL_GROUPS) * 16, s->total + j * 4);
    }
  }
  barrier_all();
}

/* ---- The workgroup ---- */

/* Tile number `turn` of this workgroup; false behind the last. */
SM90_INLINE bool find_tile(const exact_args *args, uint32_t turn, exact_tile *t);

/* Stores a tile's results, which lie from sums_at(0) on. */
SM90_INLINE void finish_tile(const exact_args *args, const exact_tile *t);

SM90_INLINE void make_tiles(const exact_args *args) {
  const uint32_t team = thread_index() / TEAM_THREADS;
  uint32_t place = 0;
  exact_tile t;
  if (find_tile(args, 0, &t)) bring(&t, 0, place);
  copies_commit();
  SM90_LOOP for (uint32_t turn = 0; find_tile(args, turn, &t); ++turn) {
    exact_sums s;
    clear(s.part);
    clear(s.total);
    SM90_LOOP for (uint32_t from = 0; from < t.depth; from += STEP) {
      exact_tile next;
      copies_wait(0);
      barrier_all(); /* the terms are there, and the other place and the sums are free */
      if (from + STEP < t.depth) {
        bring(&t, from + STEP, place ^ 1);
      } else if (find_tile(args, turn + 1, &next)) {
        bring(&next, 0, place ^ 1);
      }
      copies_commit();
      take_step(&t, from, place, team, &s);
      place ^= 1;
    }
    put_results(team, &s);
    finish_tile(args, &t);
  }
}

#endif
