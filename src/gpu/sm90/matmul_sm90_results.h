/* How matmul_sm90.c, which includes this behind its sizes, brings its sums to memory: by way of
 * shared memory, so that neighbours of a row are a thread's, and a warp's stores lie side by side.
 *
 * A thread has few warps beside it, so its own loads must be under way together: what a strip needs
 * is fetched before its sums go through shared memory, and a chain of the usual kind is made of all
 * its values at once.
 */
#ifndef MATMUL_SM90_RESULTS_H
#define MATMUL_SM90_RESULTS_H

/* The usual chain: a vector, Gelu, a tensor, each there or not, in this order. */
typedef struct usual_chain {
  const sm90_element *vector; /* of the columns, added; NULL: none */
  const sm90_element *tensor; /* of y's shape, added; NULL: none */
  bool has_gelu;
  bool is_all; /* of the chain; else it has to be gone through, item by item */
} usual_chain;

#if !CHUNKS
/* The operand that an item adds, if its source is this one. */
SM90_INLINE const sm90_element *added(const matmul_args *args, uint32_t item, uint32_t source) {
  if ((item & 255) != CHAIN_ADD || (item >> 8 & 15) != source) return (const sm90_element *)0;
  return (const sm90_element *)((item >> 12 & 1) == 0 ? args->operands[0] : args->operands[1]);
}
#endif

SM90_INLINE usual_chain find_usual_chain(const matmul_args *args) {
  usual_chain chain = {.is_all = args->p.cols % SM90_UNIT == 0};
#if !CHUNKS
  uint32_t k = 0;
  if (args->chain.chain_inner == 1 && args->chain.chain_channels == args->p.cols) {
    chain.vector = added(args, args->items[0], CHAIN_VECTOR);
  }
  k += chain.vector != (const sm90_element *)0;
  chain.has_gelu = (args->items[k] & 0xfff) == CHAIN_GELU;
  k += chain.has_gelu;
  chain.tensor = added(args, args->items[k], CHAIN_TENSOR);
  k += chain.tensor != (const sm90_element *)0;
  chain.is_all = chain.is_all && args->items[k] == 0;
#endif
  return chain;
}

/* What a unit needs, as it lies in memory: fetched ahead. A unit of operands is 16 bytes. */
_Static_assert(SM90_UNIT * sizeof(sm90_element) == sizeof(word4), "a unit's operands");
typedef struct columns {
  word4 factors; /* powers of two that the columns were scaled by */
  word4 vector;
} columns;

/* Of columns that are not there, any. */
SM90_INLINE columns fetch_columns(const matmul_args *args, const usual_chain *chain, uint32_t col) {
  const uint32_t from = col < args->p.cols ? col : 0;
  columns c = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#if FLOAT
  c.factors = global_load4((const float *)args->b + from);
#endif
  if (chain->vector) c.vector = global_load4(chain->vector + from);
  return c;
}

SM90_INLINE word4 fetch_tensor(const matmul_args *args,
                               const usual_chain *chain,
                               uint32_t row,
                               uint32_t col) {
  const uint32_t cols = args->p.cols;
  const uint32_t element = least(row, args->p.rows - 1) * cols + (col < cols ? col : 0);
  return global_load4(chain->tensor + element);
}

/* The usual chain of units of the same columns. */
SM90_INLINE void apply_usual_chain(const usual_chain *chain,
                                   const columns *c,
                                   const word4 *tensor,
                                   float values[][SM90_UNIT],
                                   const uint32_t units) {
  float others[SM90_UNIT];
#if FLOAT
  unpack(c->factors, others);
  SM90_EACH(units * SM90_UNIT) values[i / SM90_UNIT][i % SM90_UNIT] *= others[i % SM90_UNIT];
#endif
  if (chain->vector) {
    unpack(c->vector, others);
    SM90_EACH(units * SM90_UNIT) values[i / SM90_UNIT][i % SM90_UNIT] += others[i % SM90_UNIT];
  }
  if (chain->has_gelu) {
    SM90_EACH(units * SM90_UNIT) {
      values[i / SM90_UNIT][i % SM90_UNIT] = fast_gelu(values[i / SM90_UNIT][i % SM90_UNIT]);
    }
  }
  if (chain->tensor) {
    SM90_UNROLL for (uint32_t u = 0; u < units; ++u) {
      unpack(tensor[u], others);
      SM90_EACH(SM90_UNIT) values[u][i] += others[i];
    }
  }
}

SM90_INLINE void store_there(
    const matmul_args *args, const tile *t, uint32_t row, uint32_t col, const float *values) {
  sm90_result *y = (sm90_result *)t->y;
  if (row < args->p.rows && col < args->p.cols) store_unit(y + row * args->p.cols + col, values);
}

/* Any chain, and the store, of units below each other: of rows `row`, row + step, ... */
SM90_INLINE void finish_units(const matmul_args *args,
                              const tile *t,
                              uint32_t row,
                              uint32_t step,
                              uint32_t col,
                              float *values,
                              const uint32_t width) {
  if (row >= args->p.rows || col >= args->p.cols) return;
  const sm90_units at = {.element = row * args->p.cols + col,
                         .col = col,
                         .pitch = step * args->p.cols,
                         .rows = (args->p.rows - row + step - 1) / step,
                         .count = least(SM90_UNIT, args->p.cols - col),
                         .cols = args->p.cols};
#if FLOAT
  float factors[SM90_UNIT];
  load_unit((const float *)args->b + col, factors);
  SM90_EACH(width * SM90_UNIT) values[i] *= factors[i % SM90_UNIT];
#endif
#if !CHUNKS
  const sm90_chain chain = {
      .operands = {(const void *)args->operands[0], (const void *)args->operands[1]},
      .params = &args->chain,
      .items = args->items};
  chain_apply(&chain, &at, values, width);
#endif
  store_units((sm90_result *)t->y, &at, values, width);
}

SM90_INLINE uint32_t results_at(uint32_t offset_bytes) {
  return shared_address(RESULTS_AT + offset_bytes);
}

/* A strip has 16 rows; pieces of 16 bytes lie at piece ^ (row & 3) * 2, so that neither the stores
 * nor the loads of a warp meet in a bank more than twice. */
SM90_INLINE uint32_t strip_place(uint32_t row, uint32_t piece) {
  return row * (STRIP_COLS * 4) + (piece ^ (row & 3) * 2) * 16;
}

/* A thread's sums of the columns of strip number `part`, to the strip at `strip`. */
SM90_INLINE void put_strip(uint32_t strip,
                           uint32_t part,
                           const float factors[2],
                           const float *sums) {
  const uint32_t lane = thread_index() % 32;
  /* The index of a sum must be known to the compiler. */
  SM90_UNROLL for (uint32_t i = 0; i < STRIPS; ++i) {
    if (i != part) continue;
    SM90_UNROLL for (uint32_t j = 0; j < STRIP_COLS / 8; ++j) {
      const float *four = sums + (i * (STRIP_COLS / 8) + j) * 4;
      const uint32_t at = strip + strip_place(lane / 4, j * 2 + lane % 4 / 2) + lane % 2 * 8;
      shared_store2(at, four[0] * factors[0], four[1] * factors[0]);
      shared_store2(at + 8 * STRIP_COLS * 4, four[2] * factors[1], four[3] * factors[1]);
    }
  }
}

SM90_INLINE void load_strip(uint32_t strip, uint32_t row, uint32_t col, float out[SM90_UNIT]) {
  SM90_UNROLL for (uint32_t i = 0; i < SM90_UNIT / 4; ++i) {
    shared_load4(strip + strip_place(row, col / 4 + i), out + i * 4);
  }
}

#if SHARE != BY_TERMS
/* A lane's units of a strip are below each other. */
enum {
  STRIP_UNITS = STRIP_COLS / SM90_UNIT, /* of a row */
  STRIP_STEP = 32 / STRIP_UNITS,        /* rows from a lane's unit to its next */
  LANE_UNITS = 16 / STRIP_STEP,
};

/* A strip of a warp with the usual chain; `row`, `col`: of the lane's first unit. `next`: what its
 * columns need, and then those of the strip behind it. */
SM90_INLINE void finish_strip(const matmul_args *args,
                              const tile *t,
                              const usual_chain *chain,
                              columns *next,
                              uint32_t strip,
                              uint32_t part,
                              uint32_t row,
                              uint32_t col,
                              const float factors[2],
                              const float *sums) {
  const uint32_t lane = thread_index() % 32;
  const columns own = *next;
  float values[LANE_UNITS][SM90_UNIT];
  word4 tensor[LANE_UNITS];
  SM90_EACH(LANE_UNITS) tensor[i] = (word4){0, 0, 0, 0};
  if (chain->tensor) {
    SM90_EACH(LANE_UNITS) tensor[i] = fetch_tensor(args, chain, row + i * STRIP_STEP, col);
  }
  warp_sync(); /* all have read the strip before */
  put_strip(strip, part, factors, sums);
  warp_sync();
  SM90_EACH(LANE_UNITS) {
    load_strip(
        strip, lane / STRIP_UNITS + i * STRIP_STEP, lane % STRIP_UNITS * SM90_UNIT, values[i]);
  }
  *next = fetch_columns(args, chain, col + STRIP_COLS);
  apply_usual_chain(chain, &own, tensor, values, LANE_UNITS);
  SM90_EACH(LANE_UNITS) store_there(args, t, row + i * STRIP_STEP, col, values[i]);
}

/* A warp's 16 rows, strip by strip. */
SM90_INLINE void finish(const matmul_args *args,
                        const tile *t,
                        uint32_t team,
                        const usual_chain *chain,
                        const float factors[2],
                        const float *sums) {
  enum { WIDTH = SM90_MAX_VALUES / SM90_UNIT };
  const uint32_t lane = thread_index() % 32;
  const uint32_t strip = results_at(thread_index() / 32 * STRIP_BYTES);
  const uint32_t strip_row = lane / STRIP_UNITS;
  const uint32_t strip_col = lane % STRIP_UNITS * SM90_UNIT;
  const uint32_t first_row = t->row + warp_row(team);
  columns next = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  if (chain->is_all) next = fetch_columns(args, chain, t->col + strip_col);
  SM90_LOOP for (uint32_t part = 0; part < STRIPS; ++part) {
    const uint32_t col = t->col + part * STRIP_COLS + strip_col;
    if (chain->is_all) {
      finish_strip(args, t, chain, &next, strip, part, first_row + strip_row, col, factors, sums);
      continue;
    }
    warp_sync();
    put_strip(strip, part, factors, sums);
    warp_sync();
    SM90_LOOP for (uint32_t r = strip_row; r < 16; r += WIDTH * STRIP_STEP) {
      float values[WIDTH * SM90_UNIT];
      SM90_EACH(WIDTH) load_strip(strip, r + i * STRIP_STEP, strip_col, values + i * SM90_UNIT);
      finish_units(args, t, first_row + r, STRIP_STEP, col, values, WIDTH);
    }
  }
}
#else
enum {
  ROW_UNITS = TILE_N / SM90_UNIT,
  THREAD_UNITS = TILE_M * ROW_UNITS / CONSUMERS,
  WARP_BYTES = STRIPS * STRIP_BYTES,
  TEAM_BYTES = 4 * WARP_BYTES,
};
_Static_assert((TILE_M * ROW_UNITS) % CONSUMERS == 0, "all threads have as many units");

/* The tile's row and column of a thread's unit number k. */
SM90_INLINE uint32_t unit_row(uint32_t k) {
  return (thread_index() + k * CONSUMERS) / ROW_UNITS;
}

SM90_INLINE uint32_t unit_col(uint32_t k) {
  return (thread_index() + k * CONSUMERS) % ROW_UNITS * SM90_UNIT;
}

/* The teams' sums of a unit, added in order. */
SM90_INLINE void add_teams(uint32_t row, uint32_t col, float out[SM90_UNIT]) {
  const uint32_t strip = results_at(row / 16 * WARP_BYTES + col / STRIP_COLS * STRIP_BYTES);
  float parts[TEAMS][SM90_UNIT];
  SM90_EACH(TEAMS) load_strip(strip + i * TEAM_BYTES, row % 16, col % STRIP_COLS, parts[i]);
  SM90_EACH(SM90_UNIT) out[i] = parts[0][i];
  SM90_UNROLL for (uint32_t team = 1; team < TEAMS; ++team) {
    SM90_EACH(SM90_UNIT) out[i] += parts[team][i];
  }
}

/* A thread's sums to the strips, when all have read those of the tile before, and all others'. */
SM90_INLINE void put_sums(const float factors[2], const float *sums) {
  const uint32_t warp = thread_index() / 32;
  barrier_some(TEAM_BARRIER, CONSUMERS);
  SM90_UNROLL for (uint32_t part = 0; part < STRIPS; ++part) {
    put_strip(results_at(warp * WARP_BYTES + part * STRIP_BYTES), part, factors, sums);
  }
  barrier_some(TEAM_BARRIER, CONSUMERS);
}

/* A tile with the usual chain. */
SM90_INLINE void finish_usual(const matmul_args *args,
                              const tile *t,
                              const usual_chain *chain,
                              const float factors[2],
                              const float *sums) {
  columns c[THREAD_UNITS];
  word4 tensor[THREAD_UNITS];
  mbarrier_wait(go_at(), 0); /* a team without a step of the tile has waited for nothing yet */
  SM90_EACH(THREAD_UNITS) {
    c[i] = fetch_columns(args, chain, t->col + unit_col(i));
    tensor[i] = (word4){0, 0, 0, 0};
  }
  if (chain->tensor) {
    SM90_EACH(THREAD_UNITS) {
      tensor[i] = fetch_tensor(args, chain, t->row + unit_row(i), t->col + unit_col(i));
    }
  }
  put_sums(factors, sums);
  SM90_UNROLL for (uint32_t k = 0; k < THREAD_UNITS; ++k) {
    float values[1][SM90_UNIT];
    add_teams(unit_row(k), unit_col(k), values[0]);
    apply_usual_chain(chain, &c[k], &tensor[k], values, 1);
    store_there(args, t, t->row + unit_row(k), t->col + unit_col(k), values[0]);
  }
}

SM90_INLINE void finish_sums(const matmul_args *args,
                             const tile *t,
                             const usual_chain *chain,
                             const float factors[2],
                             const float *sums) {
  if (chain->is_all) {
    finish_usual(args, t, chain, factors, sums);
    return;
  }
  put_sums(factors, sums);
  SM90_LOOP for (uint32_t k = 0; k < THREAD_UNITS; ++k) {
    float values[SM90_UNIT];
    add_teams(unit_row(k), unit_col(k), values);
    finish_units(args, t, t->row + unit_row(k), 1, t->col + unit_col(k), values, 1);
  }
}
#endif

#endif
