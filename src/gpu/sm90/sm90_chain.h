/* A chain (common/chain.glsl) in sm90 kernels: a few units of neighbours at a time. The items are
 * read when the kernel runs, so that one kernel serves all chains: outside goes the item, inside
 * the values.
 *
 * A unit has eight values; SM90_UNIT says 4 where the kernel's lanes store float32 beside each
 * other, 16 bytes each: a store that leaves gaps of 16 bytes takes twice as long.
 *
 * FLOAT (0 or 1) says whether operands are float32 or float16, FLOAT_RESULT the same of results.
 */
#ifndef SM90_CHAIN_H
#define SM90_CHAIN_H

#include "abi/om_params.h"
#include "gpu/sm90/sm90.h"
#include "gpu/sm90/sm90_math.h"

#ifndef SM90_UNIT
#  define SM90_UNIT 8
#endif

enum { SM90_CHAIN_ITEMS = 8, SM90_MAX_VALUES = 16 /* at a time */ };

/* The numbers of common/chain.glsl and ops/elementwise.def. */
enum {
  CHAIN_SCALAR = 1,
  CHAIN_VECTOR = 2,
  CHAIN_TENSOR = 3,
  CHAIN_SAVED = 4,
  CHAIN_RELU = 1,
  CHAIN_ERF = 11,
  CHAIN_GELU = 28,
  CHAIN_ADD = 64,
  CHAIN_MUL = 66,
  CHAIN_DIV = 67,
  CHAIN_SAVE = 250,
  CHAIN_ADD_SCALED = 251,
  CHAIN_ROUND_HALF = 252,
};

#if FLOAT
typedef float sm90_element;
#else
typedef half sm90_element;
#endif
#if FLOAT_RESULT
typedef float sm90_result;
#else
typedef half sm90_result;
#endif

typedef struct sm90_chain {
  const sm90_element *operands[2];
  const om_chain_params *params;
  const uint32_t *items;
} sm90_chain;

#ifndef SM90_OWN_UNITS /* else a kernel has sm90_units and load_operand of its own */
/* Units: neighbours of one row each, below each other, of a tensor of `cols` columns. */
typedef struct sm90_units {
  uint32_t element, col; /* of the first's first: in the tensor, in its row */
  uint32_t pitch;        /* elements from unit to unit */
  uint32_t rows;         /* units that exist, at least 1 */
  uint32_t count;        /* elements that exist of each, at least 1 */
  uint32_t cols;
} sm90_units;

/* True if units of this tensor are whole and aligned. */
SM90_INLINE bool has_whole_units(const sm90_units *at) {
  return at->cols % SM90_UNIT == 0;
}

/* The elements in 16 bytes. */
SM90_INLINE void unpack(word4 words, float *out) {
#  if FLOAT
  SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) out[i] = om_float(words[i]);
#  else
  unpack_halves(words.x, &out[0], &out[1]);
  unpack_halves(words.y, &out[2], &out[3]);
  unpack_halves(words.z, &out[4], &out[5]);
  unpack_halves(words.w, &out[6], &out[7]);
#  endif
}

SM90_INLINE void load_unit(const sm90_element *from, float out[SM90_UNIT]) {
  enum { PIECE = sizeof(word4) / sizeof(sm90_element) };
  word4 words[SM90_UNIT / PIECE];
  SM90_UNROLL for (uint32_t i = 0; i < SM90_UNIT / PIECE; ++i) {
    words[i] = global_load4(from + i * PIECE);
  }
  SM90_UNROLL for (uint32_t i = 0; i < SM90_UNIT / PIECE; ++i) unpack(words[i], out + i * PIECE);
}

SM90_INLINE void store_unit(sm90_result *to, const float values[SM90_UNIT]) {
  word4 words[SM90_UNIT * sizeof(sm90_result) / sizeof(word4)];
#  if FLOAT_RESULT
  SM90_UNROLL for (uint32_t i = 0; i < SM90_UNIT; ++i) words[i / 4][i % 4] = om_bits(values[i]);
#  else
  words[0] = (word4){pack_halves(values[0], values[1]),
                     pack_halves(values[2], values[3]),
                     pack_halves(values[4], values[5]),
                     pack_halves(values[6], values[7])};
#  endif
  SM90_UNROLL for (uint32_t i = 0; i < sizeof words / sizeof *words; ++i) {
    ((word4 *)(void *)to)[i] = words[i];
  }
}

/* Stores the units that exist. */
SM90_INLINE void store_units(sm90_result *to,
                             const sm90_units *at,
                             const float *values,
                             const uint32_t width) {
  SM90_UNROLL for (uint32_t u = 0; u < width; ++u) {
    const uint32_t element = at->element + u * at->pitch;
    if (u >= at->rows) continue;
    if (has_whole_units(at)) {
      store_unit(to + element, values + u * SM90_UNIT);
      continue;
    }
    SM90_UNROLL for (uint32_t i = 0; i < SM90_UNIT; ++i) {
      if (i < at->count) to[element + i] = (sm90_result)values[u * SM90_UNIT + i];
    }
  }
}

/* An item's operand for each element; what does not exist has that of the first. */
SM90_INLINE void load_operand(const sm90_chain *chain,
                              uint32_t item,
                              const sm90_units *at,
                              float *out,
                              const uint32_t width) {
  const sm90_element *from = (item >> 12 & 1) == 0 ? chain->operands[0] : chain->operands[1];
  const bool is_vector = (item >> 8 & 15) == CHAIN_VECTOR;
  const uint32_t inner = chain->params->chain_inner;
  const uint32_t channels = chain->params->chain_channels;
  if (has_whole_units(at) && is_vector && inner == 1 && channels == at->cols) {
    load_unit(from + at->col, out);
    SM90_UNROLL for (uint32_t i = SM90_UNIT; i < width * SM90_UNIT; ++i) out[i] =
        out[i % SM90_UNIT];
  } else if (has_whole_units(at) && !is_vector) {
    SM90_UNROLL for (uint32_t u = 0; u < width; ++u) {
      load_unit(from + at->element + (u < at->rows ? u * at->pitch : 0), out + u * SM90_UNIT);
    }
  } else {
    SM90_UNROLL for (uint32_t i = 0; i < width * SM90_UNIT; ++i) {
      const uint32_t u = i / SM90_UNIT < at->rows ? i / SM90_UNIT : 0;
      const uint32_t c = i % SM90_UNIT < at->count ? i % SM90_UNIT : 0;
      const uint32_t element = at->element + u * at->pitch + c;
      out[i] = (float)from[is_vector ? element / inner % channels : element];
    }
  }
}
#endif

/* An item's operand for each element of `width` units. */
SM90_INLINE void load_operand(
    const sm90_chain *chain, uint32_t item, const sm90_units *at, float *out, const uint32_t width);

/* One operation of one element. */
SM90_INLINE float operate(uint32_t op, float x, float y, float p, float q) {
  switch (op) {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  case number:                                                        \
    return expression;
#define OM_BINARY(number, type, name, opset, expression) \
  case number:                                           \
    return expression;
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    case CHAIN_ADD_SCALED:
      return x + y * p;
    case CHAIN_ROUND_HALF:
      return om_round_half(x);
    default:
      return x;
  }
}

/* Gelu: x times the normal distribution's share below x. Of -|x| that is 2 to the power of a
 * polynomial (fitted over 0 to 6; beyond, the share is below 1e-9 and the polynomial falls on), of
 * |x| what is missing to 1. The error is at most 1e-8 of it beside float32's own rounding. One path
 * for all x, so that many elements are under way at once: of om_erf's two clang makes branches. */
SM90_INLINE float fast_gelu(float x) {
  const float t = __builtin_fabsf(x);
  float power = t * -2.0502298e-6f + 3.0065972e-5f;
  power = power * t + -1.4245520e-4f;
  power = power * t + -2.4091902e-4f;
  power = power * t + 7.1962918e-3f;
  power = power * t + -5.2585013e-2f;
  power = power * t + -4.5918068e-1f;
  power = power * t + -1.1511080f;
  power = power * t + -1.0f;
  const float below = __nvvm_ex2_approx_ftz_f(power);
  return x * (x > 0.0f ? 1.0f - below : below);
}

#if OM_EXACT
/* om_erf: the same operations, but that its exponential takes between -17 and 2e-4, which needs no
 * bounds, and that both of its ways are gone and one result is chosen: so eight run side by side.
 */
SM90_INLINE float exact_erf(float x) {
  const float a = __builtin_fabsf(x);
  const float z = a * a;
  float q = 8.37008629e-5f * z + -0.000814270054f;
  q = q * z + 0.00520103192f;
  q = q * z + -0.0268593989f;
  q = q * z + 0.112836957f;
  q = q * z + -0.376126349f;
  q = q * z + 0.128379226f;
  q = q * a + a;
  const float linear = a * 1.12837923f;
  const float small = a < 1.0e-30f ? linear : q; /* NaN where x is */
  const float t = __nvvm_fmin_ftz_f(a, 3.95f);
  float power = -2.11187089e-5f * t + 0.00043473611f; /* what its polynomial is, negative */
  power = power * t + -0.004172388f;
  power = power * t + 0.0251229145f;
  power = power * t + -0.108285479f;
  power = power * t + -0.633342028f;
  power = power * t + -1.12951732f;
  power = power * t + 0.000175188077f;
  const int n = OM_TO_INT(power * 1.44269502f - 0.5f);
  const float e = om_float(om_bits(om_exp_rest(power, n)) + ((uint32_t)n << 23));
  const float large = a < 3.95f ? 1.0f - e : 1.0f;
  return om_float(om_bits(a >= 0.921875f ? large : small) | (om_bits(x) & OM_SIGN_BIT));
}
#endif

#define SM90_EACH(count) SM90_UNROLL for (uint32_t i = 0; i < (count); ++i)

/* One item for all elements: the frequent ones side by side; of the others there is one text,
 * through which the elements go in turn (a register has no index that only the run knows). */
SM90_INLINE void operate_all(uint32_t op,
                             bool is_swapped,
                             const float p_and_q[2],
                             float *values,
                             float *others,
                             const uint32_t count) {
  const float p = p_and_q[0];
  const float q = p_and_q[1];
  if (op == CHAIN_ADD) {
    SM90_EACH(count) values[i] += others[i];
  } else if (op == CHAIN_MUL) {
    SM90_EACH(count) values[i] *= others[i];
  } else if (op == CHAIN_RELU) {
    SM90_EACH(count) values[i] = om_max(values[i], 0.0f);
#if !OM_EXACT
  } else if (op == CHAIN_GELU) {
    SM90_EACH(count) values[i] = fast_gelu(values[i]);
#endif
  } else {
    SM90_LOOP for (uint32_t k = 0; k < count; ++k) {
      const float x = is_swapped ? others[0] : values[0];
      const float y = is_swapped ? values[0] : others[0];
      const float result = operate(op, x, y, p, q);
      SM90_EACH(count - 1) {
        values[i] = values[i + 1];
        others[i] = others[i + 1];
      }
      values[count - 1] = result;
    }
  }
}

/* The chain of `width` units (which the compiler knows). */
SM90_INLINE void chain_apply(const sm90_chain *chain,
                             const sm90_units *at,
                             float *values,
                             const uint32_t width) {
  float saved[SM90_MAX_VALUES];
  SM90_EACH(width * SM90_UNIT) saved[i] = 0.0f;
  SM90_LOOP for (uint32_t k = 0; k < SM90_CHAIN_ITEMS; ++k) {
    const uint32_t item = chain->items[k];
    const uint32_t source = item >> 8 & 15;
    const float *scalars = &chain->params->chain_scalar_0 + (item >> 16 & 7);
    if (item == 0) break;
    if ((item & 255) == CHAIN_SAVE) {
      SM90_EACH(width * SM90_UNIT) saved[i] = values[i];
      continue;
    }
    /* The second scalar of an item without an operand; past the last it is not used. */
    const float p_and_q[2] = {scalars[0], source == 0 ? scalars[1] : 0.0f};
    float others[SM90_MAX_VALUES];
    SM90_EACH(width * SM90_UNIT) others[i] = saved[i];
    if (source == CHAIN_SCALAR) {
      SM90_EACH(width * SM90_UNIT) others[i] = p_and_q[0];
    } else if (source != 0 && source != CHAIN_SAVED) {
      load_operand(chain, item, at, others, width);
    }
    operate_all(item & 255, (item >> 14 & 1) != 0, p_and_q, values, others, width * SM90_UNIT);
  }
}

#endif
