/* 4-bit elements as bytes and back, for operators that move elements. */
#ifndef OP_NIBBLES_H
#define OP_NIBBLES_H

#include "base/om_base.h"

static inline bool om_is_nibble(om_dtype dtype) {
  return om_dtype_bits(dtype) == 4;
}

/* A tensor of uint8 in `bytes` with the elements of a 4-bit one, as bits. */
static inline om_tensor om_nibbles_unpack(const om_tensor *tensor, uint8_t *bytes) {
  om_tensor wide = *tensor;
  const uint8_t *packed = tensor->data;
  for (size_t i = 0; i < om_tensor_elems(tensor); ++i) {
    bytes[i] = (uint8_t)(packed[i / 2] >> i % 2 * 4 & 15);
  }
  wide.dtype = OM_DTYPE_U8;
  wide.data = bytes;
  return wide;
}

/* The way back; what is left of the last byte is 0. */
static inline void om_nibbles_pack(const uint8_t *bytes, om_tensor *tensor) {
  uint8_t *packed = tensor->data;
  const size_t count = om_tensor_elems(tensor);
  for (size_t i = 0; i < count; i += 2) {
    const unsigned high = i + 1 < count ? bytes[i + 1] : 0u;
    packed[i / 2] = (uint8_t)(bytes[i] | high << 4);
  }
}

/* Copies elements of 4 bits from one place to another; places are counted in elements. */
static inline void om_nibbles_copy(
    const void *from, size_t from_elem, void *to, size_t to_elem, size_t count) {
  const uint8_t *source = from;
  uint8_t *target = to;
  for (size_t i = 0; i < count; ++i) {
    const size_t a = from_elem + i, b = to_elem + i;
    const unsigned elem = source[a / 2] >> a % 2 * 4 & 15u;
    const unsigned other = target[b / 2] & (b % 2 == 0 ? 0xf0u : 15u);
    target[b / 2] = (uint8_t)(other | elem << b % 2 * 4);
  }
}

#endif
