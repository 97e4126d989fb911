// Rows on a workgroup of 256 invocations.
//
// A workgroup takes P.rows rows with P.lanes lanes each (a power of two; rows * lanes = 256). Rows
// of up to 256 elements have as many lanes as elements, rounded up; longer ones all 256, and
// element i goes to lane i mod 256. The tree over fewer lanes gives the bits of the tree over 256,
// since the lanes left out hold the neutral value.
//
// Before: the parameter block with row_count, row_elems, rows, lanes, elem_stride, inner,
// inner_stride, outer_stride; row r begins at (r / inner) * outer_stride + (r mod inner) *
// inner_stride. IS_INTERLEAVED puts neighbouring rows on neighbouring invocations.
//
// ALONE (fast mode): workgroups of 64 invocations that share nothing; each takes a row, as its one lane.
// WHOLE: rows of integers, which the kernel itself joins.
#ifndef OM_ROWS_GLSL
#define OM_ROWS_GLSL

#ifdef ALONE
#  define GROUP 64
#else
#  define GROUP 256
#endif
layout(local_size_x = GROUP) in;

#if !defined(ALONE) && !defined(WHOLE)
shared float row_lanes[GROUP];
#endif

struct row_place {
  uint row;       // may be past the end: see is_there
  uint lane;
  uint slot;      // of the lane in row_lanes
  uint begin;     // of the row in the input
  bool is_there;
};

row_place row_locate(bool is_interleaved) {
  row_place p;
  uint thread = gl_LocalInvocationID.x;
  p.lane = is_interleaved ? thread / P.rows : thread % P.lanes;
  uint row_in_group = is_interleaved ? thread % P.rows : thread / P.lanes;
  p.slot = row_in_group * P.lanes + p.lane;
  p.row = om_group_index() * P.rows + row_in_group;
  p.is_there = p.row < P.row_count;
  p.begin = (p.row / P.inner) * P.outer_stride + (p.row % P.inner) * P.inner_stride;
  return p;
}

#ifndef WHOLE
const uint ROW_ADD = 0u;
const uint ROW_MULTIPLY = 1u;
const uint ROW_MAX = 2u;
const uint ROW_MIN = 3u;

float row_join(uint operation, float a, float b) {
  OM_PRECISE float sum = a + b;
  OM_PRECISE float product = a * b;
  if (operation == ROW_ADD) return sum;
  if (operation == ROW_MULTIPLY) return product;
  if (operation == ROW_MAX) return om_max(a, b);
  return om_min(a, b);
}

#ifdef ALONE
float row_fold(row_place p, uint operation, float value) {
  return value;
}
#else
float row_join_pair(uint operation, uint slot, uint distance) {
  return row_join(operation, row_lanes[slot], row_lanes[slot + distance]);
}

// Three levels of the tree: eight lanes, `distance` apart.
float row_join_eight(uint operation, uint slot, uint distance) {
  float a = row_join_pair(operation, slot, 4u * distance);
  float b = row_join_pair(operation, slot + distance, 4u * distance);
  float c = row_join_pair(operation, slot + 2u * distance, 4u * distance);
  float d = row_join_pair(operation, slot + 3u * distance, 4u * distance);
  return row_join(operation, row_join(operation, a, c), row_join(operation, b, d));
}

// The tree: every invocation gets its row's result. Call it in uniform control flow. Barriers
// cost more than additions: there is one for three levels, and all do the last two.
float row_fold(row_place p, uint operation, float value) {
  uint width = P.lanes;
  barrier();
  row_lanes[p.slot] = value;
  barrier();
  for (; width >= 8u; width /= 8u) {
    if (p.lane < width / 8u) {
      row_lanes[p.slot] = row_join_eight(operation, p.slot, width / 8u);
    }
    barrier();
  }
  uint first = p.slot - p.lane;
  if (width == 1u) return row_lanes[first];
  if (width == 2u) return row_join_pair(operation, first, 1u);
  return row_join(operation, row_join_pair(operation, first, 2u),
                  row_join_pair(operation, first + 1u, 2u));
}
#endif

#endif  // WHOLE

#endif
