/* Where GridSample and RoiAlign read their inputs, and with which weights: by the rules of
 * om_exact_math.h, read as C and as GLSL. docs/exact.md says it in words.
 *
 * Along one axis, a sample has up to four taps: elements `first`, `first` + 1, ..., each with a
 * weight. An element outside the input is -1 (it counts as 0), or one inside that takes its place.
 *
 * om_sampled is the type of places and weights: float, but in om_sample_f64.c, which says so first.
 */
#ifndef OM_EXACT_SAMPLE_H
#define OM_EXACT_SAMPLE_H

#include "cpu/exact/om_exact_math.h"

#ifndef om_sampled
#  define om_sampled float
#endif

/* Of om_sample_params; the shaders have the numbers as constants. */
#define OM_SAMPLE_LINEAR  0u
#define OM_SAMPLE_NEAREST 1u
#define OM_SAMPLE_CUBIC   2u

#define OM_SAMPLE_ZEROS      0u
#define OM_SAMPLE_BORDER     1u
#define OM_SAMPLE_REFLECTION 2u

/* A coordinate that is no number, or is far away, becomes one that integers can hold. */
OM_FN om_sampled om_sample_bounded(om_sampled x) {
  om_sampled limit = 1073741824.0f; /* 2^30 */
  if (om_is_nan(x)) return -limit;
  return om_max(-limit, om_min(limit, x));
}

/* From -1..1 to elements: -1 is the first one's middle (aligned), or its outer edge. */
OM_FN om_sampled om_sample_place(om_sampled n, om_sampled length, bool is_aligned) {
  OM_PRECISE om_sampled moved = n + 1.0f;
  OM_PRECISE om_sampled aligned = moved * 0.5f;
  OM_PRECISE om_sampled last = length - 1.0f;
  aligned = aligned * last;
  OM_PRECISE om_sampled edged = moved * length;
  edged = edged - 1.0f;
  edged = edged * 0.5f;
  return om_sample_bounded(is_aligned ? aligned : edged);
}

/* Mirrors x at low and high until it lies between them. */
OM_FN om_sampled om_sample_reflect(om_sampled x, om_sampled low, om_sampled high) {
  OM_PRECISE om_sampled range = high - low;
  bool is_below = x < low;
  if (!is_below && !(x > high)) return x;
  if (!(range > 0.0f)) return low;
  OM_PRECISE om_sampled under = low - x;
  OM_PRECISE om_sampled over = x - high;
  OM_PRECISE om_sampled distance = is_below ? under : over;
  om_sampled count = om_floor(om_div(distance, range));
  OM_PRECISE om_sampled whole = count * range;
  OM_PRECISE om_sampled rest = distance - whole;
  OM_PRECISE om_sampled half_count = count * 0.5f;
  bool is_even = om_floor(half_count) == half_count;
  OM_PRECISE om_sampled from_low = low + rest;
  OM_PRECISE om_sampled from_high = high - rest;
  return is_even == is_below ? from_low : from_high;
}

OM_FN om_sampled om_sample_low(bool is_aligned) {
  return is_aligned ? 0.0f : -0.5f;
}

OM_FN om_sampled om_sample_high(om_sampled length, bool is_aligned) {
  OM_PRECISE om_sampled high = length - (is_aligned ? 1.0f : 0.5f);
  return high;
}

/* The coordinate that is sampled, from the one in the grid. */
OM_FN om_sampled
om_sample_coordinate(om_sampled n, om_sampled length, uint mode, uint padding, bool is_aligned) {
  om_sampled x = om_sample_place(n, length, is_aligned);
  om_sampled low = om_sample_low(is_aligned);
  om_sampled high = om_sample_high(length, is_aligned);
  OM_PRECISE om_sampled last = length - 1.0f;
  if (mode == OM_SAMPLE_NEAREST) x = om_round(x);
  if (x < low || x > high) {
    if (padding == OM_SAMPLE_BORDER) x = om_max(0.0f, om_min(last, x));
    if (padding == OM_SAMPLE_REFLECTION) x = om_sample_reflect(x, low, high);
  }
  return x;
}

/* The element that stands at `at`, or -1. */
OM_FN int om_sample_element(int at, int length, uint padding, bool is_aligned) {
  int inside = at < 0 ? 0 : at >= length ? length - 1 : at;
  if (padding == OM_SAMPLE_ZEROS) return inside == at ? at : -1;
  if (padding == OM_SAMPLE_BORDER || inside == at) return inside;
  om_sampled extent = OM_TO_FLOAT(length);
  om_sampled x = om_sample_reflect(
      OM_TO_FLOAT(at), om_sample_low(is_aligned), om_sample_high(extent, is_aligned));
  int mirrored = OM_TO_INT(x);
  return mirrored < 0 ? 0 : mirrored >= length ? length - 1 : mirrored;
}

/* Elements of an axis that a sample reads, and how far before floor(x) the first one is. */
OM_FN uint om_sample_taps(uint mode) {
  return mode == OM_SAMPLE_NEAREST ? 1u : mode == OM_SAMPLE_LINEAR ? 2u : 4u;
}

OM_FN int om_sample_first(om_sampled x, uint mode) {
  int at = OM_TO_INT(om_floor(x));
  return mode == OM_SAMPLE_CUBIC ? at - 1 : at;
}

/* The weight of tap t, whose element is first + t; the cubic filter has a = -0.75. */
OM_FN om_sampled om_sample_weight(om_sampled x, uint mode, uint t) {
  OM_PRECISE om_sampled part = x - om_floor(x);
  OM_PRECISE om_sampled rest = 1.0f - part;
  if (mode == OM_SAMPLE_NEAREST) return 1.0f;
  if (mode == OM_SAMPLE_LINEAR) return t == 0u ? rest : part;
  OM_PRECISE om_sampled beyond = 1.0f + (t == 0u ? part : rest);
  OM_PRECISE om_sampled outer = -0.75f * beyond;
  outer = outer + 3.75f;
  outer = outer * beyond;
  outer = outer - 6.0f;
  outer = outer * beyond;
  outer = outer + 3.0f;
  OM_PRECISE om_sampled near = t == 1u ? part : rest;
  OM_PRECISE om_sampled inner = 1.25f * near;
  inner = inner - 2.25f;
  inner = inner * near;
  inner = inner * near;
  inner = inner + 1.0f;
  return t == 0u || t == 3u ? outer : inner;
}

/* ---- RoiAlign, along one axis ---- */

/* A region's begin (or end) in elements. */
OM_FN om_sampled om_roi_edge(om_sampled edge, om_sampled scale, bool is_half_pixel) {
  OM_PRECISE om_sampled scaled = edge * scale;
  OM_PRECISE om_sampled moved = scaled - 0.5f;
  return is_half_pixel ? moved : scaled;
}

OM_FN om_sampled om_roi_bin(om_sampled begin, om_sampled end, om_sampled bins, bool is_half_pixel) {
  OM_PRECISE om_sampled size = end - begin;
  return om_div(is_half_pixel ? size : om_max(size, 1.0f), bins);
}

/* Samples of a bin: the attribute's number, or as many as the bin has elements (none where it has
 * no size), up to twice the input's extent and one more. */
OM_FN uint om_roi_samples(om_sampled bin, uint given, uint extent) {
  om_sampled most = OM_TO_FLOAT(2u * extent + 1u);
  om_sampled count = om_max(0.0f, om_min(most, om_ceil(om_sample_bounded(bin))));
  return given > 0u ? given : OM_TO_UINT(count);
}

/* The coordinate of one sample; outside of -1..extent it counts as 0: om_roi_is_inside. */
OM_FN om_sampled
om_roi_place(om_sampled begin, om_sampled bin, uint bin_number, uint sample_number, uint samples) {
  OM_PRECISE om_sampled offset = OM_TO_FLOAT(bin_number) * bin;
  OM_PRECISE om_sampled middle = OM_TO_FLOAT(sample_number) + 0.5f;
  middle = middle * bin;
  OM_PRECISE om_sampled place = begin + offset;
  place = place + om_div(middle, OM_TO_FLOAT(samples));
  return om_sample_bounded(place);
}

OM_FN bool om_roi_is_inside(om_sampled place, uint extent) {
  return place >= -1.0f && place <= OM_TO_FLOAT(extent);
}

/* The first of the two elements around an inside place; the second follows it, or is the same at
 * the end. */
OM_FN uint om_roi_element(om_sampled place, uint extent) {
  uint at = OM_TO_UINT(om_floor(om_max(place, 0.0f)));
  return at + 1u < extent ? at : extent - 1u;
}

/* The weight of the second element. */
OM_FN om_sampled om_roi_part(om_sampled place, uint extent) {
  OM_PRECISE om_sampled inside = om_max(place, 0.0f);
  OM_PRECISE om_sampled part = inside - om_floor(inside);
  return OM_TO_UINT(om_floor(inside)) + 1u < extent ? part : 0.0f;
}

#endif
