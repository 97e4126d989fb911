/* Logic on bytes and on the bits of integers. */
#include "cpu/exact/om_compare.h"

#define OM_BITWISE_BINARY(name, type, suffix, expression)                                        \
  static void name##_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    const type *ys = in[1];                                                                      \
    type *zs = out;                                                                              \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) {                                                         \
      type x = xs[i];                                                                            \
      type y = ys[i];                                                                            \
      zs[i] = (type)(expression);                                                                \
    }                                                                                            \
  }
#define OM_BITWISE_UNARY(name, type, suffix, expression)                                         \
  static void name##_##suffix(const void *const *in, void *out, size_t count, const void *arg) { \
    const type *xs = in[0];                                                                      \
    type *zs = out;                                                                              \
    (void)arg;                                                                                   \
    for (size_t i = 0; i < count; ++i) {                                                         \
      type x = xs[i];                                                                            \
      zs[i] = (type)(expression);                                                                \
    }                                                                                            \
  }
#define OM_BITWISE_TYPE(type, suffix)                                                \
  OM_BITWISE_BINARY(and, type, suffix, x &y)                                         \
  OM_BITWISE_BINARY(or, type, suffix, x | y)                                         \
  OM_BITWISE_BINARY(xor, type, suffix, x ^ y)                                        \
  OM_BITWISE_UNARY(not, type, suffix, ~x)                                            \
  OM_BITWISE_BINARY(left, type, suffix, y < sizeof(type) * 8 ? (uint64_t)x << y : 0) \
  OM_BITWISE_BINARY(right, type, suffix, y < sizeof(type) * 8 ? (uint64_t)x >> y : 0)
OM_BITWISE_TYPE(uint8_t, 8)
OM_BITWISE_TYPE(uint16_t, 16)
OM_BITWISE_TYPE(uint32_t, 32)
OM_BITWISE_TYPE(uint64_t, 64)
OM_BITWISE_BINARY(and, uint8_t, b8, x != 0 && y != 0)
OM_BITWISE_BINARY(or, uint8_t, b8, x != 0 || y != 0)
OM_BITWISE_BINARY(xor, uint8_t, b8, (x != 0) != (y != 0))
OM_BITWISE_UNARY(not, uint8_t, b8, x == 0)

#define OM_BITWISE_ROW(name) {name##_8, name##_16, name##_32, name##_64}
static const om_elementwise_fn kernels[][4] = {
    [OM_BITWISE_AND] = OM_BITWISE_ROW(and),
    [OM_BITWISE_OR] = OM_BITWISE_ROW(or),
    [OM_BITWISE_XOR] = OM_BITWISE_ROW(xor),
    [OM_BITWISE_NOT] = OM_BITWISE_ROW(not),
    [OM_BITWISE_SHIFT_LEFT] = OM_BITWISE_ROW(left),
    [OM_BITWISE_SHIFT_RIGHT] = OM_BITWISE_ROW(right),
};

om_elementwise_fn om_bitwise_kernel(om_bitwise operation, om_dtype dtype) {
  switch (om_dtype_bits(dtype)) {
    case 8:
      return kernels[operation][0];
    case 16:
      return kernels[operation][1];
    case 32:
      return kernels[operation][2];
    case 64:
      return kernels[operation][3];
    default:
      return NULL;
  }
}

om_elementwise_fn om_logic_kernel(om_bitwise operation) {
  switch (operation) {
    case OM_BITWISE_AND:
      return and_b8;
    case OM_BITWISE_OR:
      return or_b8;
    case OM_BITWISE_XOR:
      return xor_b8;
    default:
      return not_b8;
  }
}
