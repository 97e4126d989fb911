// ArgMax and ArgMin of float32, float16, int32 and int64. A workgroup takes a line, 256 lanes, and a tree; the
// order of the comparisons does not matter, as among equals the first (or last) index wins. NaN wins
// over any number.
//
//! kernel arg
//! kernel arg_half  HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/select_params.h"
#include "common/order.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, TYPE, 1)           // om_dtype
OM_CONSTANT(1, WANTS_LARGEST, 1)
OM_CONSTANT(2, WANTS_LAST, 0)

ORDER_BUFFER(0, Input, input)
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

shared uint lows[GROUP];
shared uint highs[GROUP];
shared uint places[GROUP];

const uint NOWHERE = 0xffffffffu;

// The greatest key is the one sought.
uvec2 sought_key(uint type, uint wants_largest, uint low, uint high) {
  uvec2 key = order_key(type, low, high);
  bool is_nan = type == ORDER_F32 && (low & 0x7fffffffu) > OM_INFINITY_BITS;
  if (wants_largest == 0u && !is_nan) key = uvec2(~key.x, type == ORDER_I64 ? ~key.y : 0u);
  return key;
}

bool wins(uvec2 key, uint place, uvec2 over, uint over_place, uint wants_last) {
  if (place == NOWHERE) return false;
  if (over_place == NOWHERE) return true;
  if (whole_is_less_unsigned(over, key)) return true;
  if (whole_is_less_unsigned(key, over)) return false;
  return wants_last != 0u ? place > over_place : place < over_place;
}

void main() {
  uint type = TYPE;
  uint wants_largest = WANTS_LARGEST;
  uint wants_last = WANTS_LAST;
  uint line = om_group_index();
  uint lane = gl_LocalInvocationID.x;
  bool is_there = line < P.elems;
  uint base = line / P.inner * P.extent * P.inner + line % P.inner;
  uvec2 best = uvec2(0u, 0u);
  uint best_place = NOWHERE;
  for (uint i = lane; i < P.extent; i += uint(GROUP)) {
    if (is_there) {
      uvec2 words = ORDER_LOAD(input, type, base + i * P.inner);
      uvec2 key = sought_key(type, wants_largest, words.x, words.y);
      if (wins(key, i, best, best_place, wants_last)) {
        best = key;
        best_place = i;
      }
    }
  }
  lows[lane] = best.x;
  highs[lane] = best.y;
  places[lane] = best_place;
  for (uint width = uint(GROUP) / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) {
      uint other = lane + width;
      uvec2 key = uvec2(lows[other], highs[other]);
      if (wins(key, places[other], uvec2(lows[lane], highs[lane]), places[lane], wants_last)) {
        lows[lane] = key.x;
        highs[lane] = key.y;
        places[lane] = places[other];
      }
    }
  }
  if (lane == 0u && is_there) {
    output_data[line * 2u] = places[0];
    output_data[line * 2u + 1u] = 0u;
  }
}
