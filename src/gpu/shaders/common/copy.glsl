// The axes of a strided copy, by number.
#ifndef OM_COPY_GLSL
#define OM_COPY_GLSL

struct copy_axis {
  uint extent;
  uint source_stride;
  uint target_stride;
};

copy_axis copy_get_axis(uint number) {
  switch (number) {
    case 0u: return copy_axis(P.extent_0, P.source_stride_0, P.target_stride_0);
    case 1u: return copy_axis(P.extent_1, P.source_stride_1, P.target_stride_1);
    case 2u: return copy_axis(P.extent_2, P.source_stride_2, P.target_stride_2);
    case 3u: return copy_axis(P.extent_3, P.source_stride_3, P.target_stride_3);
    case 4u: return copy_axis(P.extent_4, P.source_stride_4, P.target_stride_4);
    case 5u: return copy_axis(P.extent_5, P.source_stride_5, P.target_stride_5);
    case 6u: return copy_axis(P.extent_6, P.source_stride_6, P.target_stride_6);
    default: return copy_axis(P.extent_7, P.source_stride_7, P.target_stride_7);
  }
}

#endif
