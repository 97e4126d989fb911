// Indices as operators have them: of one or two words, counted from the end where negative. One outside
// its axis is somebody else's finding (demand.comp): here it is clamped.
#ifndef OM_INDEX_GLSL
#define OM_INDEX_GLSL

uint index_wrap(uint index, uint extent) {
  uint wrapped = index;
  if ((index & OM_SIGN_BIT) != 0u) wrapped = index + extent;
  return min(wrapped, extent - 1u);
}

uint index_extent(uint number) {
  switch (number) {
    case 0u: return P.extent_0;
    case 1u: return P.extent_1;
    case 2u: return P.extent_2;
    case 3u: return P.extent_3;
    case 4u: return P.extent_4;
    case 5u: return P.extent_5;
    case 6u: return P.extent_6;
    default: return P.extent_7;
  }
}

uint index_stride(uint number) {
  switch (number) {
    case 0u: return P.stride_0;
    case 1u: return P.stride_1;
    case 2u: return P.stride_2;
    case 3u: return P.stride_3;
    case 4u: return P.stride_4;
    case 5u: return P.stride_5;
    case 6u: return P.stride_6;
    default: return P.stride_7;
  }
}

#endif
