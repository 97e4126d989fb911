// The inner part of a matrix product: TILE by TILE results from pieces of 32 * SLICES terms in shared
// memory.
//
//     #define TILE 64                  16, 32 or 64
//     #define ROWS 4                   of an invocation; it has four columns of each
//     #define SLICES 1                 parts of the workgroup that take a block of 32 terms each
//     #include "common/product.glsl"
//
// A piece of a lies by rows, four terms a quad; which quad of eight is turned by the row, so that rows
// read at once lie in different banks. One of b lies by terms, four columns a quad; TURNS_B turns
// those by the term, for a kernel that brings neighbouring terms at once. A piece is brought by all of
// the workgroup: FETCHES quads of a and of b each.
//
// Past the depth a must be -0 and b +0: adding their product, -0, changes no sum, so those terms need
// no question; a sum of blocks and one of groups begin with -0 for the same reason.
#ifndef OM_PRODUCT_GLSL
#define OM_PRODUCT_GLSL

#define THREADS uint(TILE / ROWS * TILE / 4 * SLICES)
#define BLOCK 32u
#define STEP (BLOCK * SLICES)              // terms of one piece
#define LANES (TILE / 4)                   // invocations along a tile's columns
#define A_QUADS (STEP / 4u)                // of one row of a's piece
#define FETCHES uint(32 * ROWS / TILE)     // quads of a, and of b, that an invocation brings
#define APART uint(TILE / ROWS)            // an invocation's rows; a multiple of 8 if it has several
layout(local_size_x = TILE / ROWS * TILE / 4 * SLICES) in;

shared vec4 a_tile[TILE * SLICES * 8];
shared vec4 b_tile[32 * SLICES * LANES];

uint a_slot(uint row, uint quad) {
  return row * uint(A_QUADS) + (quad ^ (row & 7u));
}

uint b_slot(uint term, uint quad) {
#ifdef TURNS_B
  return term * uint(LANES) + (quad ^ (term & 7u));
#else
  return term * uint(LANES) + quad;
#endif
}

// Adds the slice's block of the piece to the sums, in order.
void product_multiply(uint first_row, uint lane, uint slice, inout vec4 sums[ROWS]) {
  OM_PRECISE vec4 sum[ROWS];
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) sum[r] = sums[r];
  [[unroll]] for (uint quad = 0u; quad < BLOCK / 4u; ++quad) {
    uint term = slice * BLOCK + quad * 4u;
    vec4 b0 = b_tile[b_slot(term, lane)];
    vec4 b1 = b_tile[b_slot(term + 1u, lane)];
    vec4 b2 = b_tile[b_slot(term + 2u, lane)];
    vec4 b3 = b_tile[b_slot(term + 3u, lane)];
    uint a_quad = a_slot(first_row, slice * 8u + quad);
    [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
      vec4 a = a_tile[a_quad + r * APART * uint(A_QUADS)];
#if OM_EXACT
      sum[r] = sum[r] + vec4(a.x) * b0;
      sum[r] = sum[r] + vec4(a.y) * b1;
      sum[r] = sum[r] + vec4(a.z) * b2;
      sum[r] = sum[r] + vec4(a.w) * b3;
#else
      sum[r] = fma(vec4(a.x), b0, sum[r]);
      sum[r] = fma(vec4(a.y), b1, sum[r]);
      sum[r] = fma(vec4(a.z), b2, sum[r]);
      sum[r] = fma(vec4(a.w), b3, sum[r]);
#endif
    }
  }
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) sums[r] = sum[r];
}

// What an exact product keeps: sums of blocks, and of groups.
struct product_sums {
  vec4 part[ROWS];
  vec4 total[ROWS];
};

product_sums product_begin() {
  product_sums s;
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
    s.part[r] = vec4(-0.0);
    s.total[r] = vec4(-0.0);
  }
  return s;
}

// Takes a block's sums, which begin anew; is_group: it is the fourth of its group.
void product_fold(bool is_group, inout vec4 block[ROWS], inout product_sums s) {
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
    OM_PRECISE vec4 part = s.part[r] + block[r];
    OM_PRECISE vec4 total = s.total[r];
    if (is_group) {
      total = total + part;
      part = vec4(-0.0);
    }
    s.part[r] = part;
    s.total[r] = total;
    block[r] = vec4(0.0);
  }
}

vec4 product_result(product_sums s, uint row) {
  OM_PRECISE vec4 result = s.total[row] + s.part[row];
  return result;
}

#endif
