/* A view's place in the target is a number; written by the target's extents it is an index, and
 * that has a place in the source. An axis of the view that walks over several of the copy's is one
 * axis in the source only if the source's strides fit together.
 */
#include "cpu/exact/om_view.h"

/* A copy without its axes of one element, and how far the view goes along those that are left. */
typedef struct passage {
  uint32_t rank;
  int64_t extents[OM_STRIDED_MAX_RANK], from[OM_STRIDED_MAX_RANK], to[OM_STRIDED_MAX_RANK];
  int64_t reach[OM_STRIDED_MAX_RANK]; /* the largest index so far */
} passage;

/* False if the target is empty, or has room between its elements. */
static bool open_passage(const om_strided *copy, passage *out) {
  int64_t dense = 1;
  *out = (passage){.rank = 0};
  for (uint32_t i = 0; i < copy->rank; ++i) {
    if (copy->extents[i] == 1) continue;
    out->extents[out->rank] = copy->extents[i];
    out->from[out->rank] = copy->source_strides[i];
    out->to[out->rank++] = copy->target_strides[i];
  }
  for (uint32_t i = out->rank; i-- > 0; dense *= out->extents[i]) {
    if (out->extents[i] == 0 || out->to[i] != dense) return false;
  }
  return copy->target_offset == 0;
}

/* The stride in the source of an axis of so many elements, `stride` apart in the target. */
static bool pass_axis(passage *p, int64_t count, int64_t stride, int64_t *out_stride) {
  int64_t walked = 1; /* elements that the axes so far tell apart */
  *out_stride = 0;
  if (count == 1 || stride == 0) return true;
  for (uint32_t i = p->rank; i-- > 0;) {
    if (i > 0 && stride >= p->to[i - 1]) continue;
    if (stride < 0 || stride % p->to[i] != 0) return false;
    const int64_t step = stride / p->to[i];
    const int64_t room = (p->extents[i] - 1) / step + 1;
    const int64_t here = count < room ? count : room;
    if (walked == 1) *out_stride = step * p->from[i];
    if (step * p->from[i] != *out_stride * walked) return false;
    p->reach[i] += (here - 1) * step;
    if (here == count) return true;
    if (p->extents[i] % step != 0 || count % here != 0) return false;
    count /= here;
    walked *= here;
    stride = p->to[i] * p->extents[i];
  }
  return false;
}

bool om_view_through(const om_strided *copy, om_view *inout_view) {
  passage p;
  om_view v = *inout_view;
  int64_t rest = v.offset;
  if (!open_passage(copy, &p)) return false;
  v.offset = copy->source_offset;
  for (uint32_t i = 0; i < p.rank; ++i) {
    p.reach[i] = rest / p.to[i];
    v.offset += p.reach[i] * p.from[i];
    rest %= p.to[i];
  }
  for (uint32_t i = 0; i < v.rank; ++i) {
    if (!pass_axis(&p, v.dims[i], v.strides[i], &v.strides[i])) return false;
  }
  for (uint32_t i = 0; i < p.rank; ++i) {
    if (p.reach[i] >= p.extents[i]) return false;
  }
  *inout_view = v;
  return true;
}
