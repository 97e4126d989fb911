// What the kernels of recurrent layers share: a product whose four results are the gates of one element
// of a state. Its order is that of any product (docs/exact.md).
//
//     RECURRENT_PRODUCT(result, depth, a, b)
//
// declares `vec4 result`, the sum over `term` below depth of a, a float, times b, a vec4.
#ifndef OM_RECURRENT_GLSL
#define OM_RECURRENT_GLSL

#define RECURRENT_BLOCK 32u
#define RECURRENT_GROUP 128u

#define RECURRENT_PRODUCT(result, depth, a, b)                                                \
  OM_PRECISE vec4 result = vec4(OM_START(depth));                                             \
  for (uint first = 0u; first < depth; first += RECURRENT_GROUP) {                            \
    OM_PRECISE vec4 group = vec4(OM_START(depth));                                            \
    uint group_end = min(first + RECURRENT_GROUP, depth);                                     \
    for (uint block = first; block < group_end; block += RECURRENT_BLOCK) {                   \
      OM_PRECISE vec4 sum = vec4(OM_START(depth));                                            \
      uint block_end = min(block + RECURRENT_BLOCK, depth);                                   \
      for (uint term = block; term < block_end; ++term) {                                     \
        sum = sum + vec4(a) * b;                                                              \
      }                                                                                       \
      if (block == first) group = sum;                                                        \
      else group = group + sum;                                                               \
    }                                                                                         \
    if (first == 0u) result = group;                                                          \
    else result = result + group;                                                             \
  }

#endif
