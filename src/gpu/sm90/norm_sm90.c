/* LayerNormalization and RMSNormalization on Hopper: rows that stand one after the other, of
 * octets.
 *
 * A warp has a row: lane l has the units (16 bytes) l, l + 32, ... of it, all fetched before the
 * first is looked at, and keeps them in registers. Scale and bias, which are constants, lie in
 * shared memory. A residual may be added to the rows first. The mean, then the mean of the squared
 * differences (in RMSNormalization of the squares), each as sums of the lanes, joined by shuffles;
 * then the chain.
 *
 * Of float16 the residual may be float32, and the sum or the result may be stored as float32, too
 * (common/residual.glsl has the numbers): what is added to again later is not rounded in between.
 *
 * A launch has as many workgroups as there are cores, unless those have too few warps for a row
 * each: for what is short between other kernels for Hopper. Two fit on a core where the registers
 * allow it, half of them for each: so all that wait for their turn have a place before the last
 * core is free, and the launch behind begins sooner.
 */
//! kernel norm_sm90_768        bindings=r,r,r,r,w,r,r params=56 constants=3 threads=512 shared=49408 blocks=2 chain=1 turns=1 FLOAT=1 OCTETS=3
//! kernel norm_sm90_2048       bindings=r,r,r,r,w,r,r params=56 constants=3 threads=512 shared=49408 blocks=1 chain=1 turns=1 FLOAT=1 OCTETS=8
//! kernel norm_sm90_768_half   bindings=r16,r16,r16,r,w16,w,r16,r16 params=56 constants=3 threads=256 shared=49408 blocks=2 chain=1 turns=1 FLOAT=0 OCTETS=3
//! kernel norm_sm90_2048_half  bindings=r16,r16,r16,r,w16,w,r16,r16 params=56 constants=3 threads=512 shared=49408 blocks=1 chain=1 turns=1 FLOAT=0 OCTETS=8
#define FLOAT_RESULT FLOAT
#if FLOAT
#  define SM90_UNIT 4
#endif
#include "abi/layernorm_params.h"
#include "gpu/sm90/sm90_chain.h"

enum {
  WARPS = OM_THREADS / 32,
  UNITS = OCTETS * 8 / SM90_UNIT, /* of a lane */
  /* Of a residual, under way at once: all of a row's would not leave it its registers. */
  FETCHED = UNITS * SM90_UNIT < 32 ? UNITS : 32 / SM90_UNIT,
  /* Of shared memory: scale, then bias. */
  BIAS_AT = UNITS * 32 * 16,
};
_Static_assert(SM90_UNIT * sizeof(sm90_element) == 16, "a unit");
_Static_assert(UNITS % FETCHED == 0, "whole fetches");
_Static_assert(2 * BIAS_AT <= OM_SHARED_BYTES && OM_SHARED_BYTES > 48 * 1024, "the head's");

/* The bits of norm_args.residual. */
enum { RESIDUAL_KIND = 3, RESIDUAL_FLOATS = 2, STORES_SUM = 4, STORES_RESULT = 8 };

typedef struct norm_args {
  uint64_t input, scale, bias, residual_data, output;
#if !FLOAT
  uint64_t wide;
#endif
  uint64_t operands[2];
  om_layernorm_kernel_params p;
  om_chain_params chain;
  uint32_t is_centered, has_bias, residual;
  uint32_t items[SM90_CHAIN_ITEMS];
  sm90_turn turn;
} norm_args;

/* The unit of a row that is this lane's k-th; past the row's end its last. */
SM90_INLINE uint32_t unit_of(const norm_args *args, uint32_t k) {
  const uint32_t unit = thread_index() % 32 + k * 32;
  const uint32_t last = args->p.row_elems / SM90_UNIT - 1;
  return unit < last ? unit : last;
}

SM90_INLINE bool has_unit(const norm_args *args, uint32_t k) {
  return (thread_index() % 32 + k * 32) * SM90_UNIT < args->p.row_elems;
}

/* True if any lane has it. */
SM90_INLINE bool warp_has_unit(const norm_args *args, uint32_t k) {
  return k * 32 * SM90_UNIT < args->p.row_elems;
}

/* Brings scale or bias to shared memory. */
SM90_INLINE void bring(const norm_args *args, uint64_t from, uint32_t to) {
  SM90_LOOP for (uint32_t at = thread_index(); at * SM90_UNIT < args->p.row_elems;
                 at += OM_THREADS) {
    copy16(shared_address(to + at * 16), (const char *)from + at * 16, 16);
  }
}

/* A unit of what lies in shared memory. */
SM90_INLINE void load_shared(uint32_t at, uint32_t unit, float out[SM90_UNIT]) {
  const uint32_t from = shared_address(at + unit * 16);
#if FLOAT
  shared_load4(from, out);
#else
  float words[4];
  shared_load4(from, words);
  SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) {
    unpack_halves(om_bits(words[i]), &out[2 * i], &out[2 * i + 1]);
  }
#endif
}

SM90_INLINE float sum_of_warp(float sum) {
  SM90_UNROLL for (uint32_t distance = 16; distance > 0; distance /= 2) {
    const int other = __nvvm_shfl_sync_bfly_i32(0xffffffffu, (int)om_bits(sum), (int)distance, 31);
    sum += om_float((uint32_t)other);
  }
  return sum;
}

#if FLOAT
/* The residual of a lane's units from the first-th on, `begin` being the row's first element. */
SM90_INLINE void load_residual(const norm_args *args,
                               uint32_t begin,
                               uint32_t first,
                               float out[FETCHED][SM90_UNIT]) {
  SM90_UNROLL for (uint32_t k = 0; k < FETCHED; ++k) {
    const uint32_t at = begin + unit_of(args, first + k) * SM90_UNIT;
    load_unit((const float *)args->residual_data + at, out[k]);
  }
}

SM90_INLINE void store_wide(
    const norm_args *args, uint32_t what, uint32_t row, uint32_t k, const float *values) {
  (void)args, (void)what, (void)row, (void)k, (void)values;
}
#else
SM90_INLINE void load_residual(const norm_args *args,
                               uint32_t begin,
                               uint32_t first,
                               float out[FETCHED][SM90_UNIT]) {
  if ((args->residual & RESIDUAL_KIND) != RESIDUAL_FLOATS) {
    SM90_UNROLL for (uint32_t k = 0; k < FETCHED; ++k) {
      const uint32_t at = begin + unit_of(args, first + k) * SM90_UNIT;
      load_unit((const half *)args->residual_data + at, out[k]);
    }
    return;
  }
  word4 words[FETCHED][2];
  SM90_UNROLL for (uint32_t k = 0; k < FETCHED; ++k) {
    const uint32_t at = begin + unit_of(args, first + k) * SM90_UNIT;
    SM90_EACH(2) words[k][i] = global_load4((const float *)args->residual_data + at + i * 4);
  }
  SM90_UNROLL for (uint32_t k = 0; k < FETCHED; ++k) {
    SM90_EACH(SM90_UNIT) out[k][i] = om_float(words[k][i / 4][i % 4]);
  }
}

/* Stores the lanes' k-th units as float32, if that is asked for; all lanes call it. The lanes of a
 * pair store one unit after the other, half of it each: 32 bytes that memory takes whole. */
SM90_INLINE void store_wide(
    const norm_args *args, uint32_t what, uint32_t row, uint32_t k, const float *values) {
  if ((args->residual & what) == 0) return;
  const bool is_second = (thread_index() & 1) != 0;
  const uint32_t first = (thread_index() % 32 & ~1u) + k * 32; /* the pair's units */
  word4 own, other;
  SM90_EACH(4) {
    const uint32_t low = om_bits(values[i]), high = om_bits(values[4 + i]);
    const uint32_t given = is_second ? low : high;
    own[i] = is_second ? high : low;
    other[i] = (uint32_t)__nvvm_shfl_sync_bfly_i32(0xffffffffu, (int)given, 1, 31);
  }
  SM90_UNROLL for (uint32_t u = 0; u < 2; ++u) {
    const uint32_t element = (first + u) * SM90_UNIT;
    float *to = (float *)args->wide + row * args->p.row_elems + element + (is_second ? 4 : 0);
    if (element < args->p.row_elems) *(word4 *)(void *)to = is_second == (u == 1) ? own : other;
  }
}
#endif

/* A row's units, with the residual. All that is read is on its way before anything waits for it. */
SM90_INLINE void load_row(const norm_args *args, uint32_t row, float values[UNITS][SM90_UNIT]) {
  const uint32_t begin = row * args->p.row_elems;
  word4 own[UNITS];
  SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) {
    own[k] = global_load4((const sm90_element *)args->input + begin + unit_of(args, k) * SM90_UNIT);
  }
  if ((args->residual & RESIDUAL_KIND) == 0) {
    SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) unpack(own[k], values[k]);
    return;
  }
  SM90_UNROLL for (uint32_t first = 0; first < UNITS; first += FETCHED) {
    float residual[FETCHED][SM90_UNIT];
    load_residual(args, begin, first, residual);
    SM90_UNROLL for (uint32_t k = 0; k < FETCHED; ++k) {
      unpack(own[first + k], values[first + k]);
      SM90_EACH(SM90_UNIT) values[first + k][i] += residual[k][i];
      store_wide(args, STORES_SUM, row, first + k, values[first + k]);
    }
  }
}

/* Takes the mean away; what the differences are to be multiplied by. */
SM90_INLINE float find_factor(const norm_args *args, float values[UNITS][SM90_UNIT]) {
  const float each = 1.0f / args->p.count;
  float squares = 0.0f;
  if (args->is_centered != 0) {
    float sum = 0.0f;
    SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) {
      float part = 0.0f;
      SM90_EACH(SM90_UNIT) part += values[k][i];
      sum += has_unit(args, k) ? part : 0.0f;
    }
    const float mean = sum_of_warp(sum) * each;
    SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) {
      SM90_EACH(SM90_UNIT) values[k][i] -= mean;
    }
  }
  SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) {
    float part = 0.0f;
    SM90_EACH(SM90_UNIT) part += values[k][i] * values[k][i];
    squares += has_unit(args, k) ? part : 0.0f;
  }
  return 1.0f / __nvvm_sqrt_approx_f(sum_of_warp(squares) * each + args->p.epsilon);
}

/* Scale, bias, the chain if there is one, and the store of the lanes' k-th units. */
SM90_INLINE void finish_units(const norm_args *args,
                              uint32_t row,
                              uint32_t k,
                              float factor,
                              const bool has_chain,
                              float values[SM90_UNIT]) {
  float operands[SM90_UNIT];
  const uint32_t unit = unit_of(args, k);
  const sm90_units at = {.element = row * args->p.row_elems + unit * SM90_UNIT,
                         .col = unit * SM90_UNIT,
                         .rows = 1,
                         .count = SM90_UNIT,
                         .cols = args->p.row_elems};
  const sm90_chain chain = {
      .operands = {(const void *)args->operands[0], (const void *)args->operands[1]},
      .params = &args->chain,
      .items = args->items};
  load_shared(0, unit, operands);
  SM90_EACH(SM90_UNIT) values[i] *= factor * operands[i];
  if (args->has_bias != 0) {
    load_shared(BIAS_AT, unit, operands);
    SM90_EACH(SM90_UNIT) values[i] += operands[i];
  }
  if (has_chain) chain_apply(&chain, &at, values, 1);
  if (has_unit(args, k)) store_unit((sm90_result *)args->output + at.element, values);
  store_wide(args, STORES_RESULT, row, k, values);
}

SM90_INLINE void finish_row(const norm_args *args, uint32_t row, float values[UNITS][SM90_UNIT]) {
  const float factor = find_factor(args, values);
  if (args->items[0] == 0) {
    SM90_UNROLL for (uint32_t k = 0; k < UNITS; ++k) {
      if (warp_has_unit(args, k)) finish_units(args, row, k, factor, false, values[k]);
    }
    return;
  }
  /* One text for all units, which move on by one each time: the chain is long. */
  SM90_LOOP for (uint32_t k = 0; k < UNITS && warp_has_unit(args, k); ++k) {
    finish_units(args, row, k, factor, true, values[0]);
    SM90_UNROLL for (uint32_t n = 0; n + 1 < UNITS; ++n) {
      SM90_EACH(SM90_UNIT) values[n][i] = values[n + 1][i];
    }
  }
}

SM90_KERNEL void OM_KERNEL(norm_args args) {
  const uint32_t row = group_index() + warp_index() * __nvvm_read_ptx_sreg_nctaid_x();
  float values[UNITS][SM90_UNIT];
  bring(&args, args.scale, 0);
  if (args.has_bias != 0) bring(&args, args.bias, BIAS_AT);
  copies_commit();
  if (thread_index() == 0) turn_wait(&args.turn);
  barrier_all();
  if (row < args.p.row_count) load_row(&args, row, values);
  copies_wait(0);
  barrier_all();
  if (row < args.p.row_count) finish_row(&args, row, values);
  turn_end(&args.turn);
}
