// The frame of kernels that make a result of elements of one or two words, or of one or two bytes.
//
//     OM_CONSTANT(0, SIZE, 1)                 words of an element; bytes in variants with BYTES
//     ... output_data, and P.elems ...
//     uvec2 make_element(uint element) {      its words; of bytes the low bits count
//       return OM_ELEMENT(input_data, place);
//     }
//     #include "common/move.glsl"             before make_element; main() follows it: OM_MOVE_MAIN
//
// One invocation makes one element, or the elements of one word.
#ifndef OM_MOVE_GLSL
#define OM_MOVE_GLSL

#ifdef BYTES

#define OM_ELEMENT(buffer, place) \
  uvec2(buffer[(place) * SIZE / 4u] >> ((place) * SIZE % 4u * 8u), 0u)

#define OM_MOVE_MAIN                                                            \
  void main() {                                                                 \
    uint size = SIZE;                                                           \
    uint bits = size * 8u;                                                      \
    uint count = 4u / size;                                                     \
    uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;             \
    uint word = 0u;                                                             \
    for (uint k = 0u; k < count; ++k) {                                         \
      uint element = thread * count + k;                                        \
      if (element < P.elems) {                                                  \
        word = word | ((make_element(element).x & ((1u << bits) - 1u)) << (k * bits)); \
      }                                                                         \
    }                                                                           \
    if (thread * count < P.elems) output_data[thread] = word;                   \
  }

#else

#define OM_ELEMENT(buffer, place) \
  uvec2(buffer[(place) * SIZE], buffer[(place) * SIZE + SIZE - 1u])

#define OM_MOVE_MAIN                                              \
  void main() {                                                   \
    uint size = SIZE;                                             \
    uint element = om_group_index() * 256u + gl_LocalInvocationID.x; \
    if (element < P.elems) {                                      \
      uvec2 made = make_element(element);                         \
      output_data[element * size] = made.x;                       \
      if (size == 2u) output_data[element * 2u + 1u] = made.y;    \
    }                                                             \
  }

#endif
#endif
