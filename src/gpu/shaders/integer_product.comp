// Sums of products of 8-bit integers without their zero points: matrices, and convolutions with one to
// three spatial axes whose windows are gathered as they are multiplied. Sums of int32 wrap, so their
// order does not matter.
//
// A workgroup makes 64 rows of 64 columns; an invocation 4 of 4. Rows are a's, or a convolution's
// weights; columns are b's, or a convolution's results. What lies in the padding counts as b's zero point:
// nothing is added.
//
//! kernel integer_product       WINDOW=0
//! kernel integer_product_conv  WINDOW=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/om_shader.glsl"
#include "abi/integer_product_params.h"

#define GROUP 256
#define BM 64
#define BN 64
#define BK 16
#define QUADS 16          // of a row of the tiles
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, A_SIGN, 0)       // 128: elements are signed
OM_CONSTANT(1, B_SIGN, 0)
OM_CONSTANT(2, KERNEL_D, 1)
OM_CONSTANT(3, KERNEL_H, 1)
OM_CONSTANT(4, KERNEL_W, 1)
OM_CONSTANT(5, STRIDE_D, 1)
OM_CONSTANT(6, STRIDE_H, 1)
OM_CONSTANT(7, STRIDE_W, 1)

layout(set = 0, binding = 0, std430) readonly buffer InputA { uint input_a[]; };
layout(set = 0, binding = 1, std430) readonly buffer InputB { uint input_b[]; };
layout(set = 0, binding = 2, std430) readonly buffer ZeroA { uint zero_a[]; };
layout(set = 0, binding = 3, std430) readonly buffer ZeroB { uint zero_b[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Output { int output_data[]; };

shared int tile_a[BK * BM];     // [term][row]
shared ivec4 tile_b[BK * QUADS];

// Byte `at` of a word as a number; `sign` is 128 where it is signed.
int number_of(uint word, uint at, uint sign) {
  uint low = (word >> (at % 4u * 8u)) & 255u;
  return int(low ^ sign) - int(sign);
}

int row_zero(uint row) {
  uint at = row % P.a_zeros;
  return number_of(zero_a[at / 4u], at, A_SIGN);
}

int column_zero(uint column) {
  uint at = column % P.b_zeros;
  return number_of(zero_b[at / 4u], at, B_SIGN);
}

// Four neighbouring bytes from element `at` on, the first lowest.
uint four_bytes(uint word, uint next, uint at) {
  uint shift = at % 4u * 8u;
  if (shift == 0u) return word;
  return (word >> shift) | (next << (32u - shift));
}

// Four terms of a row, without the zero point; 0 past the end.
ivec4 load_rows(uint base, uint row, uint term, int zero) {
  uint at = base + row * P.terms + term;
  uint word = min(at / 4u, P.a_words - 1u);
  uint bytes = four_bytes(input_a[word], input_a[min(word + 1u, P.a_words - 1u)], at);
  uint sign = A_SIGN;
  ivec4 v = ivec4(number_of(bytes, 0u, sign), number_of(bytes, 1u, sign), number_of(bytes, 2u, sign),
                  number_of(bytes, 3u, sign)) - zero;
  uint left = row < P.rows && term < P.terms ? P.terms - term : 0u;
  return ivec4(left > 0u ? v.x : 0, left > 1u ? v.y : 0, left > 2u ? v.z : 0, left > 3u ? v.w : 0);
}

#if WINDOW
// The position of a result's window: depth, row, column.
ivec3 window_at(uint column) {
  uint row = column / P.out_w;
  uint slice = row / P.out_h;
  uint stride_d = STRIDE_D;
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  return ivec3(int(slice * stride_d) - int(P.pad_d), int((row - slice * P.out_h) * stride_h) - int(P.pad_h),
               int((column - row * P.out_w) * stride_w) - int(P.pad_w));
}

int load_tap(uint base, uint channel, ivec3 at, bool is_there, int zero) {
  bool is_inside = is_there && uint(at.x) < P.in_d && uint(at.y) < P.in_h && uint(at.z) < P.in_w;
  uint element = base + ((channel * P.in_d + uint(at.x)) * P.in_h + uint(at.y)) * P.in_w + uint(at.z);
  element = is_inside ? element : 0u;
  int value = number_of(input_b[element / 4u], element, B_SIGN) - zero;
  return is_inside ? value : 0;
}

// Four columns of a term.
ivec4 load_columns(uint base, uint term, uint column, ivec3 windows[4], ivec4 zero) {
  uint kernel_d = KERNEL_D;
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  uint row = term / kernel_w;
  uint slice = row / kernel_h;
  uint channel = slice / kernel_d;
  ivec3 tap = ivec3(int((slice - channel * kernel_d) * P.dilation_d), int((row - slice * kernel_h) * P.dilation_h),
                    int((term - row * kernel_w) * P.dilation_w));
  bool is_term = term < P.terms;
  return ivec4(load_tap(base, channel, windows[0] + tap, is_term && column < P.columns, zero.x),
               load_tap(base, channel, windows[1] + tap, is_term && column + 1u < P.columns, zero.y),
               load_tap(base, channel, windows[2] + tap, is_term && column + 2u < P.columns, zero.z),
               load_tap(base, channel, windows[3] + tap, is_term && column + 3u < P.columns, zero.w));
}
#else
ivec4 load_columns(uint base, uint term, uint column, ivec4 zero) {
  uint at = base + term * P.columns + column;
  uint word = min(at / 4u, P.b_words - 1u);
  uint bytes = four_bytes(input_b[word], input_b[min(word + 1u, P.b_words - 1u)], at);
  uint sign = B_SIGN;
  ivec4 v = ivec4(number_of(bytes, 0u, sign), number_of(bytes, 1u, sign), number_of(bytes, 2u, sign),
                  number_of(bytes, 3u, sign)) - zero;
  uint left = term < P.terms && column < P.columns ? P.columns - column : 0u;
  return ivec4(left > 0u ? v.x : 0, left > 1u ? v.y : 0, left > 2u ? v.z : 0, left > 3u ? v.w : 0);
}
#endif

void store(uint slice, uint row, uint column, ivec4 sums) {
  if (row < P.rows) {
    uint at = (slice * P.rows + row) * P.columns + column;
    if (column < P.columns) output_data[at] = sums.x;
    if (column + 1u < P.columns) output_data[at + 1u] = sums.y;
    if (column + 2u < P.columns) output_data[at + 2u] = sums.z;
    if (column + 3u < P.columns) output_data[at + 3u] = sums.w;
  }
}

void main() {
  uint thread = gl_LocalInvocationID.x;
  uint slice = gl_WorkGroupID.z;
  uint first_row = gl_WorkGroupID.y * uint(BM);
  uint first_column = gl_WorkGroupID.x * uint(BN);
  uint a_slice = slice / P.a_divide % P.a_modulo;
  uint a_base = a_slice * P.rows * P.terms;
  // What this invocation loads: four terms of a row, four columns of a term.
  uint a_row = thread / 4u;
  uint a_term = thread % 4u * 4u;
  uint b_term = thread / uint(QUADS);
  uint b_quad = thread % uint(QUADS);
  uint b_column = first_column + b_quad * 4u;
  uint row = first_row + a_row;
  uint b_slice = slice / P.b_divide % P.b_modulo;
  int a_zero = row_zero(a_slice * P.rows + row);
  uint b_first = b_slice * P.columns + b_column;
  ivec4 b_zero = ivec4(column_zero(b_first), column_zero(b_first + 1u), column_zero(b_first + 2u),
                       column_zero(b_first + 3u));
#if WINDOW
  uint kernel_d = KERNEL_D;
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  uint channels = P.terms / (kernel_d * kernel_h * kernel_w);
  uint b_base = b_slice * channels * P.in_d * P.in_h * P.in_w;
  ivec3 windows[4];
  [[unroll]] for (uint i = 0u; i < 4u; ++i) windows[i] = window_at(b_column + i);
#else
  uint b_base = b_slice * P.terms * P.columns;
#endif
  ivec4 sums_0 = ivec4(0);
  ivec4 sums_1 = ivec4(0);
  ivec4 sums_2 = ivec4(0);
  ivec4 sums_3 = ivec4(0);
  uint quad = thread % uint(QUADS);
  uint four = thread / uint(QUADS) * 4u;
  for (uint first = 0u; first < P.terms; first += uint(BK)) {
    ivec4 a = load_rows(a_base, row, first + a_term, a_zero);
#if WINDOW
    ivec4 b = load_columns(b_base, first + b_term, b_column, windows, b_zero);
#else
    ivec4 b = load_columns(b_base, first + b_term, b_column, b_zero);
#endif
    barrier();
    tile_a[a_term * uint(BM) + a_row] = a.x;
    tile_a[(a_term + 1u) * uint(BM) + a_row] = a.y;
    tile_a[(a_term + 2u) * uint(BM) + a_row] = a.z;
    tile_a[(a_term + 3u) * uint(BM) + a_row] = a.w;
    tile_b[b_term * uint(QUADS) + b_quad] = b;
    barrier();
    for (uint k = 0u; k < uint(BK); ++k) {
      ivec4 columns = tile_b[k * uint(QUADS) + quad];
      uint at = k * uint(BM) + four;
      sums_0 = sums_0 + tile_a[at] * columns;
      sums_1 = sums_1 + tile_a[at + 1u] * columns;
      sums_2 = sums_2 + tile_a[at + 2u] * columns;
      sums_3 = sums_3 + tile_a[at + 3u] * columns;
    }
  }
  uint column = first_column + quad * 4u;
  store(slice, first_row + four, column, sums_0);
  store(slice, first_row + four + 1u, column, sums_1);
  store(slice, first_row + four + 2u, column, sums_2);
  store(slice, first_row + four + 3u, column, sums_3);
}
