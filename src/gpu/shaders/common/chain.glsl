// A chain: up to 8 elementwise operations on a value before it is stored.
//
//     #define OM_CHAIN                  before abi/<family>_params.h
//     #define CHAIN_BASE    2           the kernel's own specialization constants
//     #define CHAIN_BINDING 3           its own storage buffers
//     #include "common/chain.glsl"
//     ... output_data[element] = chain_apply(value, element);
//
// `element` is the index of the value in its tensor, dense row-major. An item is a
// specialization constant: op | source << 8 | operand << 12 | swapped << 14 | first scalar << 16 |
// rounded << 20 | runs << 21, with the numbers of om_gpu_op.h and ops/elementwise.def; an item of 0
// is none, and after specialization it costs nothing. Of float16 a chain's operands are halves; an item that is
// `rounded` begins another operator: the value is rounded first, as its store would have done. Even before it, om_gpu_trim.c cuts off items and operations
// that a chain does not use: tools/embed_shaders.py finds them in the two functions named
// chain_operate (its switch) and chain_apply_broadcast (two branches an item), so keep their form.
#ifndef OM_CHAIN_GLSL
#define OM_CHAIN_GLSL

#ifndef OM_CHAIN
#  error "OM_CHAIN must be defined before the parameter block"
#endif

layout(constant_id = CHAIN_BASE + 0) const uint CHAIN_ITEM_0 = 0;
layout(constant_id = CHAIN_BASE + 1) const uint CHAIN_ITEM_1 = 0;
layout(constant_id = CHAIN_BASE + 2) const uint CHAIN_ITEM_2 = 0;
layout(constant_id = CHAIN_BASE + 3) const uint CHAIN_ITEM_3 = 0;
layout(constant_id = CHAIN_BASE + 4) const uint CHAIN_ITEM_4 = 0;
layout(constant_id = CHAIN_BASE + 5) const uint CHAIN_ITEM_5 = 0;
layout(constant_id = CHAIN_BASE + 6) const uint CHAIN_ITEM_6 = 0;
layout(constant_id = CHAIN_BASE + 7) const uint CHAIN_ITEM_7 = 0;

layout(set = 0, binding = CHAIN_BINDING, std430) readonly buffer ChainOperand0 {
  ELEMENT chain_operand_0[];
};
layout(set = 0, binding = CHAIN_BINDING + 1, std430) readonly buffer ChainOperand1 {
  ELEMENT chain_operand_1[];
};

const uint CHAIN_SAVE = 250u;
const uint CHAIN_ADD_SCALED = 251u;
const uint CHAIN_ROUND_HALF = 252u;
const uint CHAIN_SCALAR = 1u;
const uint CHAIN_VECTOR = 2u;
const uint CHAIN_TENSOR = 3u;
const uint CHAIN_SAVED = 4u;
const uint CHAIN_BROADCAST = 5u;
const uint CHAIN_REPEAT = 6u;

float chain_scalar(uint index) {
  switch (index) {
    case 0u: return P.chain_scalar_0;
    case 1u: return P.chain_scalar_1;
    case 2u: return P.chain_scalar_2;
    case 3u: return P.chain_scalar_3;
    case 4u: return P.chain_scalar_4;
    case 5u: return P.chain_scalar_5;
    case 6u: return P.chain_scalar_6;
    default: return P.chain_scalar_7;
  }
}

// Where an item that repeats reads: a run for each stretch of the result's dimensions that its operand
// has too, innermost first. The scalars say of each how many results are inside it and how long it is.
uint chain_repeat_element(uint item, uint element) {
  uint scalar = (item >> 16u) & 7u;
  uint runs = (item >> 21u) & 3u;
  uint stride = 1u;
  uint index = 0u;
  for (uint run = 0u; run < runs; ++run) {
    uint count = uint(chain_scalar(scalar + 1u));
    index += element / uint(chain_scalar(scalar)) % count * stride;
    stride *= count;
    scalar += 2u;
  }
  return index;
}

float chain_operate(uint op, float x, float y, float p, float q) {
  OM_PRECISE float result = x;
  switch (op) {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
    case uint(number): result = expression; break;
#define OM_BINARY(number, type, name, opset, expression) \
    case uint(number): result = expression; break;
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    case CHAIN_ADD_SCALED: result = x + y * p; break;
    case CHAIN_ROUND_HALF: result = om_round_half(x); break;
    default: break;
  }
  return result;
}

float chain_step(uint item, float value, float saved, uint element, uint broadcast_element,
                 uint vector_element) {
  uint source = (item >> 8u) & 15u;
  uint first_scalar = (item >> 16u) & 7u;
  float p = chain_scalar(first_scalar);
  float q = 0.0;
  float other = saved;
  if (source == 0u) {
    q = chain_scalar(first_scalar + 1u);
  } else if (source == CHAIN_SCALAR) {
    other = p;
  } else if (source != CHAIN_SAVED) {
    uint index = element;
    if (source == CHAIN_VECTOR) index = vector_element;
    if (source == CHAIN_BROADCAST) index = broadcast_element;
    if (source == CHAIN_REPEAT) index = chain_repeat_element(item, element);
    if (((item >> 12u) & 3u) == 0u) {
      other = LOAD(chain_operand_0[index]);
    } else {
      other = LOAD(chain_operand_1[index]);
    }
  }
  bool is_swapped = ((item >> 14u) & 1u) != 0u;
  float x = is_swapped ? other : value;
  float y = is_swapped ? value : other;
  return chain_operate(item & 255u, x, y, p, q);
}

// Only exact mode rounds between operators: the bits are then those of operators apart.
float chain_begin(uint item, float value) {
#if HALF && OM_EXACT
  return ((item >> 20u) & 1u) != 0u ? om_round_half(value) : value;
#else
  return value;
#endif
}

#define CHAIN_DO(constant)                                               \
  item = constant;                                                       \
  if (item != 0u) {                                                      \
    value = chain_begin(item, value);                                    \
    if ((item & 255u) == CHAIN_SAVE) {                                   \
      saved = value;                                                     \
    } else {                                                             \
      value =                                                            \
          chain_step(item, value, saved, element, broadcast_element, vector_element); \
    }                                                                    \
  }

// All of it: the elements from which TENSOR, BROADCAST and VECTOR operands are read.
float chain_apply_broadcast(float first, uint element, uint broadcast_element, uint vector_element) {
  float value = first;
  float saved = 0.0;
  uint item = 0u;
  CHAIN_DO(CHAIN_ITEM_0)
  CHAIN_DO(CHAIN_ITEM_1)
  CHAIN_DO(CHAIN_ITEM_2)
  CHAIN_DO(CHAIN_ITEM_3)
  CHAIN_DO(CHAIN_ITEM_4)
  CHAIN_DO(CHAIN_ITEM_5)
  CHAIN_DO(CHAIN_ITEM_6)
  CHAIN_DO(CHAIN_ITEM_7)
  return value;
}

uint chain_vector_element(uint element) {
  return (element / P.chain_inner) % P.chain_channels;
}

float chain_apply(float value, uint element) {
  return chain_apply_broadcast(value, element, element, chain_vector_element(element));
}

// For a kernel that knows its channel and whose binder sets the chain's inner, channels and
// is_pair_fixed: two divisions less for each element.
float chain_apply_channel(float value, uint element, uint channel) {
  return chain_apply_broadcast(value, element, element, channel);
}

#endif
