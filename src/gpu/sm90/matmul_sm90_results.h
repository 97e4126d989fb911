/* How matmul_sm90.c, which includes this behind its sizes, brings its sums to memory: by way of
 * shared memory, so that a thread has eight neighbours of a row.
 */
#ifndef MATMUL_SM90_RESULTS_H
#define MATMUL_SM90_RESULTS_H

/* Powers of two that the columns were scaled by, the chain, and the store, of units below each
 * other: of rows `row`, row + step, ... */
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
#if CHUNKS
  store_units((sm90_result *)t->y, &at, values, width);
#else
  const sm90_chain chain = {
      .operands = {(const void *)args->operands[0], (const void *)args->operands[1]},
      .params = &args->chain,
      .items = args->items};
  chain_apply(&chain, &at, values, width);
  store_units((sm90_result *)t->y, &at, values, width);
#endif
}

SM90_INLINE uint32_t results_at(uint32_t offset_bytes) {
  return shared_address(BARRIER_BYTES + STAGES * STAGE_BYTES + offset_bytes);
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

#if SHARE != BY_TERMS
/* A warp's 16 rows, strip by strip. */
SM90_INLINE void finish(const matmul_args *args,
                        const tile *t,
                        uint32_t team,
                        const float factors[2],
                        const float *sums) {
  enum { UNITS = STRIP_COLS / SM90_UNIT, ROWS = 32 / UNITS, WIDTH = 2 };
  const uint32_t lane = thread_index() % 32;
  const uint32_t strip = results_at(thread_index() / 32 * STRIP_BYTES);
  const uint32_t unit = lane % UNITS;
  SM90_LOOP for (uint32_t part = 0; part < STRIPS; ++part) {
    const uint32_t first_row = t->row + warp_row(team);
    const uint32_t first_col = t->col + part * STRIP_COLS;
    warp_sync();
    put_strip(strip, part, factors, sums);
    warp_sync();
    SM90_LOOP for (uint32_t r = lane / UNITS; r < 16; r += WIDTH * ROWS) {
      float values[WIDTH * SM90_UNIT];
      SM90_UNROLL for (uint32_t i = 0; i < WIDTH * 2; ++i) {
        shared_load4(strip + strip_place(r + i / 2 * ROWS, unit * 2 + i % 2), values + i * 4);
      }
      finish_units(args, t, first_row + r, ROWS, first_col + unit * SM90_UNIT, values, WIDTH);
    }
  }
}
#else
/* The teams' sums of a tile, added in order. */
SM90_INLINE void finish_sums(const matmul_args *args,
                             const tile *t,
                             const float factors[2],
                             const float *sums) {
  enum { UNITS = TILE_N / SM90_UNIT, ROWS = CONSUMERS / UNITS };
  enum { WARP_BYTES = STRIPS * STRIP_BYTES, TEAM_BYTES = 4 * WARP_BYTES };
  const uint32_t warp = thread_index() / 32;
  const uint32_t col = thread_index() % UNITS * SM90_UNIT;
  barrier_some(TEAM_BARRIER, CONSUMERS);
  SM90_UNROLL for (uint32_t part = 0; part < STRIPS; ++part) {
    put_strip(results_at(warp * WARP_BYTES + part * STRIP_BYTES), part, factors, sums);
  }
  barrier_some(TEAM_BARRIER, CONSUMERS);
  SM90_LOOP for (uint32_t row = thread_index() / UNITS; row < TILE_M; row += ROWS) {
    const uint32_t strip = results_at(row / 16 * WARP_BYTES + col / STRIP_COLS * STRIP_BYTES);
    const uint32_t piece = col % STRIP_COLS / 4;
    float parts[TEAMS][SM90_UNIT];
    SM90_UNROLL for (uint32_t i = 0; i < TEAMS * 2; ++i) {
      shared_load4(strip + i / 2 * TEAM_BYTES + strip_place(row % 16, piece + i % 2),
                   parts[i / 2] + i % 2 * 4);
    }
    SM90_UNROLL for (uint32_t i = 1; i < TEAMS; ++i) {
      SM90_UNROLL for (uint32_t j = 0; j < SM90_UNIT; ++j) parts[0][j] += parts[i][j];
    }
    finish_units(args, t, t->row + row, 1, t->col + col, parts[0], 1);
  }
}
#endif

#endif
