/* Exact matrix products on Hopper: what matmul.comp's exact variants of whole quads compute, with
 * the same parameters, bindings and bits, by sm90_exact.h.
 *
 * A tile is one of a chunk of the depth, of an element of the batch. Results go by way of shared
 * memory to where a thread has eight neighbours of a row: the chain and the stores want that.
 */
//! kernel matmul_sm90_exact_128x96 bindings=r,r,w,r,r params=80 chain=1 threads=384 shared=174144 blocks=1 OM_EXACT=1 TEAMS=1 RUN=4 TILE_M=128 TILE_N=96 ROWS=4 COLS=12 WARP_COLS=4 STAGES=4
//! kernel matmul_sm90_exact_96x96 bindings=r,r,w,r,r params=80 chain=1 threads=384 shared=142912 blocks=1 OM_EXACT=1 TEAMS=1 RUN=4 TILE_M=96 TILE_N=96 ROWS=3 COLS=12 WARP_COLS=4 STAGES=4
//! kernel matmul_sm90_exact_64x96 bindings=r,r,w,r,r params=80 chain=1 threads=384 shared=178224 blocks=1 OM_EXACT=1 TEAMS=2 RUN=4 TILE_M=64 TILE_N=96 ROWS=4 COLS=12 WARP_COLS=4 STAGES=3
//! kernel matmul_sm90_exact_64x48 bindings=r,r,w,r,r params=80 chain=1 threads=384 shared=172064 blocks=1 OM_EXACT=1 TEAMS=4 RUN=1 TILE_M=64 TILE_N=48 ROWS=4 COLS=12 WARP_COLS=4 STAGES=2
//! kernel matmul_sm90_exact_64x48_deep bindings=r,r,w,r,r params=80 chain=1 threads=384 shared=172064 blocks=1 OM_EXACT=1 TEAMS=4 RUN=4 TILE_M=64 TILE_N=48 ROWS=4 COLS=12 WARP_COLS=4 STAGES=2
#define FLOAT        1
#define FLOAT_RESULT 1
#define TURNED       0
#include "abi/matmul_params.h"
#include "gpu/sm90/sm90_chain.h"

typedef struct exact_args {
  uint64_t a, b, y, operands[2];
  om_matmul_params p;
  om_chain_params chain;
  uint32_t items[SM90_CHAIN_ITEMS];
} exact_args;

#include "gpu/sm90/sm90_exact.h"

SM90_INLINE bool find_tile(const exact_args *args, uint32_t turn, exact_tile *t) {
  const om_matmul_params *p = &args->p;
  const uint32_t number = group_index() + turn * group_count();
  const uint32_t tile = number % (p->row_tiles * p->col_tiles);
  const uint32_t part = number / (p->row_tiles * p->col_tiles);
  const uint32_t chunk = part % p->chunk_count;
  const uint32_t element = part / p->chunk_count;
  const uint32_t elements = p->group_count / p->col_tiles / p->row_tiles / p->chunk_count;
  const uint32_t index_2 = element % p->batch_2;
  const uint32_t index_1 = element / p->batch_2 % p->batch_1;
  const uint32_t index_0 = element / p->batch_2 / p->batch_1;
  const uint32_t begin = chunk * p->chunk_depth;
  if (number >= p->group_count) return false;
  t->row = tile / p->col_tiles * TILE_M;
  t->col = tile % p->col_tiles * TILE_N;
  t->rows = p->rows - t->row;
  t->cols = p->cols - t->col;
  t->a_pitch = p->a_row_stride;
  t->b_pitch = p->b_depth_stride;
  t->b_terms = t->depth = least(p->chunk_depth, p->depth - begin);
  t->base = (uint64_t)(chunk * elements + element) * p->rows * p->cols;
  t->a = (const float *)args->a + index_0 * p->a_stride_0 + index_1 * p->a_stride_1 +
         index_2 * p->a_stride_2 + (uint64_t)t->row * p->a_row_stride + begin;
  t->b = (const float *)args->b + index_0 * p->b_stride_0 + index_1 * p->b_stride_1 +
         index_2 * p->b_stride_2 + (uint64_t)begin * p->b_depth_stride + t->col;
  return true;
}

/* What a chain mostly is: a vector added, then Gelu, then a tensor added, each or not. */
typedef struct plain_chain {
  bool is_plain, has_gelu;
  const float *vector, *tensor;              /* NULL: none */
  float divisor, reciprocal, addend, factor; /* of Gelu: ((erf(x / d) + a) * x) * f */
} plain_chain;

/* The items of Gelu, from `items` on. */
SM90_INLINE bool is_gelu(const uint32_t *items) {
  enum { OP_AND_SOURCE = 0xfff, SWAPPED = 1 << 14 };
  return (items[0] & 255) == CHAIN_SAVE &&
         (items[1] & (OP_AND_SOURCE | SWAPPED)) == (CHAIN_DIV | CHAIN_SCALAR << 8) &&
         (items[2] & 255) == CHAIN_ERF &&
         (items[3] & OP_AND_SOURCE) == (CHAIN_ADD | CHAIN_SCALAR << 8) &&
         (items[4] & OP_AND_SOURCE) == (CHAIN_MUL | CHAIN_SAVED << 8) &&
         (items[5] & OP_AND_SOURCE) == (CHAIN_MUL | CHAIN_SCALAR << 8);
}

SM90_INLINE plain_chain read_chain(const exact_args *args) {
  enum { GELU_ITEMS = 6 };
  const float *scalars = &args->chain.chain_scalar_0;
  const bool is_vector = (args->items[0] & 0xfff) == (CHAIN_ADD | CHAIN_VECTOR << 8) &&
                         args->chain.chain_inner == 1 && args->chain.chain_channels == args->p.cols;
  uint32_t at = is_vector ? 1 : 0;
  plain_chain c = {.vector =
                       is_vector ? (const float *)args->operands[args->items[0] >> 12 & 1] : 0};
  if (is_gelu(args->items + at)) {
    c.has_gelu = true;
    c.divisor = scalars[args->items[at + 1] >> 16 & 7];
    c.reciprocal = om_div(1.0f, c.divisor);
    c.addend = scalars[args->items[at + 3] >> 16 & 7];
    c.factor = scalars[args->items[at + 5] >> 16 & 7];
    at += GELU_ITEMS;
  }
  if ((args->items[at] & 0xfff) == (CHAIN_ADD | CHAIN_TENSOR << 8)) {
    c.tensor = (const float *)args->operands[args->items[at] >> 12 & 1];
    ++at;
  }
  c.is_plain = args->p.cols % SM90_UNIT == 0 && (at == SM90_CHAIN_ITEMS || args->items[at] == 0) &&
               (!c.has_gelu || (c.divisor > 0x1p-20f && c.divisor < 0x1p20f));
  return c;
}

/* False, with nothing changed, where a value is too small or too large for a quotient by a
 * reciprocal. */
SM90_INLINE bool apply_plain(const plain_chain *c, const sm90_units *at, float values[SM90_UNIT]) {
  float results[SM90_UNIT], vector[SM90_UNIT], tensor[SM90_UNIT];
  if (c->vector) load_unit(c->vector + at->col, vector);
  if (c->tensor) load_unit(c->tensor + at->element, tensor);
  SM90_EACH(SM90_UNIT) results[i] = c->vector ? values[i] + vector[i] : values[i];
  if (c->has_gelu) {
    float smallest = __builtin_fabsf(results[0]);
    float largest = smallest;
    SM90_EACH(SM90_UNIT) {
      smallest = __nvvm_fmin_ftz_f(smallest, __builtin_fabsf(results[i]));
      largest = __nvvm_fmax_ftz_f(largest, __builtin_fabsf(results[i]));
    }
    if (smallest < 0x1p-40f || largest > 0x1p40f) return false;
    SM90_EACH(SM90_UNIT) {
      const float erf = exact_erf(exact_quotient(results[i], c->divisor, c->reciprocal));
      results[i] = ((erf + c->addend) * results[i]) * c->factor;
    }
  }
  SM90_EACH(SM90_UNIT) values[i] = c->tensor ? results[i] + tensor[i] : results[i];
  return true;
}

SM90_INLINE void finish_tile(const exact_args *args, const exact_tile *t) {
  enum { UNITS = TILE_N / SM90_UNIT, COUNT = TILE_M * UNITS };
  const plain_chain plain = read_chain(args);
  const sm90_chain chain = {
      .operands = {(const float *)args->operands[0], (const float *)args->operands[1]},
      .params = &args->chain,
      .items = args->items};
  SM90_LOOP for (uint32_t i = thread_index(); i < COUNT; i += CONSUMERS) {
    const uint32_t row = i / UNITS;
    const uint32_t col = i % UNITS * SM90_UNIT;
    float values[SM90_UNIT];
    if (row >= t->rows || col >= t->cols) continue;
    const sm90_units at = {
        .element = (uint32_t)t->base + (t->row + row) * args->p.cols + t->col + col,
        .col = t->col + col,
        .rows = 1,
        .count = least(SM90_UNIT, t->cols - col),
        .cols = args->p.cols};
    shared_load4(room_at((row * RESULT_PITCH + col) * 4), values);
    shared_load4(room_at((row * RESULT_PITCH + col) * 4 + 16), values + 4);
    if (!plain.is_plain || !apply_plain(&plain, &at, values)) {
      chain_apply(&chain, &at, values, 1);
    }
    store_units((float *)args->y, &at, values, 1);
  }
}

SM90_KERNEL void OM_KERNEL(exact_args args) {
  make_tiles(&args);
}
