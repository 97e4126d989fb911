// Where an element of the result lies in each of up to three operands (abi/broadcast_params.h).
#ifndef OM_BROADCAST_GLSL
#define OM_BROADCAST_GLSL

uint broadcast_extent(uint dimension) {
  switch (dimension) {
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

uvec3 broadcast_elements(uint element) {
  uint rest = element;
  uvec3 place = uvec3(0u, 0u, 0u);
  uvec3 stride = uvec3(1u, 1u, 1u);
  for (uint dimension = 0u; dimension < P.rank; ++dimension) {
    uint extent = broadcast_extent(dimension);
    uint position = rest % extent;
    rest = rest / extent;
    if (((P.mask_0 >> dimension) & 1u) == 0u) {
      place.x += position * stride.x;
      stride.x *= extent;
    }
    if (((P.mask_1 >> dimension) & 1u) == 0u) {
      place.y += position * stride.y;
      stride.y *= extent;
    }
    if (((P.mask_2 >> dimension) & 1u) == 0u) {
      place.z += position * stride.z;
      stride.z *= extent;
    }
  }
  return place;
}

#endif
