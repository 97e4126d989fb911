/* The second pass of a product whose depth was cut into chunks (matmul_sm90.c): adds their float32
 * results in order, then applies the chain. A thread makes eight neighbours, all of whose chunks it
 * fetches at once. For results so small that there is a workgroup a core at most.
 */
//! kernel sum_sm90       bindings=r,w,r,r params=20 threads=256 shared=49408 blocks=1 chain=1 turns=1 FLOAT=1
//! kernel sum_sm90_half  bindings=r,w16,r16,r16 params=20 threads=256 shared=49408 blocks=1 chain=1 turns=1 FLOAT=0
#define FLOAT_RESULT FLOAT
#include "abi/matmul_sum_params.h"
#include "gpu/sm90/sm90_chain.h"

enum { MOST_CHUNKS = 8 };

typedef struct sum_args {
  uint64_t chunks, y, operands[2];
  om_matmul_sum_params p;
  om_chain_params chain;
  uint32_t items[SM90_CHAIN_ITEMS];
  sm90_turn turn;
} sum_args;

SM90_INLINE void make_unit(const sum_args *args, uint32_t element) {
  const float *from = (const float *)args->chunks + element;
  word4 words[MOST_CHUNKS][2];
  float values[SM90_UNIT];
  SM90_UNROLL for (uint32_t c = 0; c < MOST_CHUNKS; ++c) {
    const uint64_t chunk = c < args->p.chunk_count ? c : 0;
    SM90_UNROLL for (uint32_t i = 0; i < 2; ++i) {
      words[c][i] = global_load4(from + chunk * args->p.elems + i * 4);
    }
  }
  SM90_EACH(SM90_UNIT) values[i] = om_float(words[0][i / 4][i % 4]);
  SM90_UNROLL for (uint32_t c = 1; c < MOST_CHUNKS; ++c) {
    SM90_EACH(SM90_UNIT) {
      values[i] += c < args->p.chunk_count ? om_float(words[c][i / 4][i % 4]) : 0.0f;
    }
  }
  const sm90_units at = {.element = element,
                         .col = element % args->p.y_cols,
                         .rows = 1,
                         .count = SM90_UNIT,
                         .cols = args->p.y_cols};
  const sm90_chain chain = {
      .operands = {(const void *)args->operands[0], (const void *)args->operands[1]},
      .params = &args->chain,
      .items = args->items};
  chain_apply(&chain, &at, values, 1);
  store_unit((sm90_result *)args->y + element, values);
}

SM90_KERNEL void OM_KERNEL(sum_args args) {
  const uint32_t element = (group_index() * OM_THREADS + thread_index()) * SM90_UNIT;
  if (thread_index() == 0) turn_wait(&args.turn);
  barrier_all();
  if (element < args.p.elems) make_unit(&args, element);
  turn_end(&args.turn);
}
