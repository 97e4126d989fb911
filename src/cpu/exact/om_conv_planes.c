/* Rows are short, so they are copied by blocks where the next row is written behind them. */
#include "cpu/exact/om_conv_planes.h"

#include "cpu/exact/om_byte_group.h"

enum { PADS = 8 }; /* bytes of padding that are written at once */

/* Windows that are far apart would leave most of a plane unread: then each tap has one. */
static om_plane_axis axis_of(const om_conv_axis *a) {
  const int64_t span = (a->taps - 1) * a->tap_step;
  om_plane_axis p = {.count = a->count,
                     .first = a->tap_first,
                     .step = a->in_step,
                     .phases = span + 1 < a->in_step ? span + 1 : a->in_step,
                     .phase_step = 1,
                     .places = a->count + span / a->in_step};
  if (om_size_times((size_t)p.places, (size_t)p.phases) >
      om_size_times((size_t)a->count, (size_t)a->taps)) {
    p.places = a->count;
    p.phases = a->taps;
    p.phase_step = a->tap_step;
    p.is_by_tap = true;
  }
  return p;
}

om_conv_planes om_conv_planes_of(const om_conv_pass *pass) {
  om_conv_planes p = {.is_in_place = true, .plane = 1, .channel = 1};
  for (int i = 0; i < OM_CONV_AXES; ++i) {
    const om_conv_axis *a = &pass->axes[i];
    p.axes[i] = axis_of(a);
    p.is_in_place = p.is_in_place && om_conv_is_own_place(a);
    p.plane = om_size_times(p.plane, (size_t)p.axes[i].places);
    p.channel = om_size_times(p.channel, (size_t)p.axes[i].phases);
    if (a->count > 0) {
      const size_t before = om_size_times(p.results, (size_t)p.axes[i].places);
      p.results = om_size_plus(before, (size_t)(a->count - 1));
    }
  }
  p.results = om_size_plus(p.results, 1);
  p.channel = om_size_times(p.channel, p.plane);
  return p;
}

typedef uint8_t bytes_x8 __attribute__((vector_size(8)));
typedef uint16_t pairs_x8 __attribute__((vector_size(16)));

/* Every second byte; the last block overlaps those before, and reads nothing behind the last. */
static void copy_second(const uint8_t *from, size_t count, uint8_t *to) {
  enum { STEP = 16 };
  size_t i = 0;
  while (count >= STEP) {
    pairs_x8 low, high;
    memcpy(&low, from + 2 * i, sizeof low);
    memcpy(&high, from + 2 * i + STEP - 1, sizeof high);
    const bytes_x8 first = __builtin_convertvector(low & 0xff, bytes_x8);
    const bytes_x8 last = __builtin_convertvector(high >> 8, bytes_x8);
    memcpy(to + i, &first, sizeof first);
    memcpy(to + i + STEP / 2, &last, sizeof last);
    if (i == count - STEP) return;
    i = i + STEP < count - STEP ? i + STEP : count - STEP;
  }
  for (; i < count; ++i) to[i] = from[2 * i];
}

static void copy_every(const uint8_t *from, size_t step, size_t count, uint8_t *to) {
  if (step == 1) {
    om_byte_copy(from, count, to);
  } else if (step == 2) {
    copy_second(from, count, to);
  } else {
    for (size_t i = 0; i < count; ++i) to[i] = from[step * i];
  }
}

/* The places [begin, end) of a phase that hold elements, and the first of those. */
typedef struct inside {
  int64_t begin, end;
  int64_t at;
} inside;

static int64_t first_place(const om_plane_axis *p, int64_t phase, int64_t least) {
  const int64_t away = least - p->first - phase * p->phase_step;
  const int64_t place = away <= 0 ? 0 : (away - 1) / p->step + 1;
  return place < p->places ? place : p->places;
}

static inside inside_of(const om_plane_axis *p, int64_t phase, int64_t in) {
  inside i = {.begin = first_place(p, phase, 0), .end = first_place(p, phase, in)};
  i.at = p->first + i.begin * p->step + phase * p->phase_step;
  return i;
}

/* Every byte or every second one, in blocks as om_byte_copy_loosely. */
static void copy_loosely(const uint8_t *from, size_t step, size_t count, uint8_t *to) {
  if (step == 1) {
    om_byte_copy_loosely(from, count, to);
    return;
  }
  for (size_t i = 0; i < count; i += OM_BYTE_LOOSE) {
    copy_second(from + 2 * i, OM_BYTE_LOOSE, to + i);
  }
}

/* One plane, of the padding so far; x_end: behind the last element that there is. Rows are written
 * loosely where the next one is written behind them, and the padding in between again. */
static void fill_plane(const om_conv_pass *pass,
                       const om_conv_planes *p,
                       const int64_t phase[OM_CONV_AXES],
                       const uint8_t *x,
                       const uint8_t *x_end,
                       uint8_t *plane) {
  const om_plane_axis *a = p->axes;
  const om_conv_axis *in = pass->axes;
  const inside iz = inside_of(&a[0], phase[0], in[0].in);
  const inside iy = inside_of(&a[1], phase[1], in[1].in);
  const inside ix = inside_of(&a[2], phase[2], in[2].in);
  const size_t count = (size_t)(ix.end - ix.begin), step = (size_t)a[2].step;
  const size_t gap = (size_t)a[2].places - count, loose = om_size_align(count, OM_BYTE_LOOSE);
  const bool may_be_loose = step <= 2 && gap <= PADS && loose <= 2 * count + gap;
  uint8_t pads[PADS];
  memset(pads, plane[0], sizeof pads);
  if (count == 0) return;
  for (int64_t z = iz.begin; z < iz.end; ++z) {
    const int64_t from_z = iz.at + (z - iz.begin) * a[0].step;
    const uint8_t *from = x + (from_z * in[1].in + iy.at) * in[2].in + ix.at;
    uint8_t *to = plane + (z * a[1].places + iy.begin) * a[2].places + ix.begin;
    for (int64_t y = iy.begin; y < iy.end; ++y) {
      if (may_be_loose && y + 1 < iy.end && (size_t)(x_end - from) >= step * loose) {
        copy_loosely(from, step, count, to);
        memcpy(to + count, pads, sizeof pads);
      } else {
        copy_every(from, step, count, to);
      }
      from += a[1].step * in[2].in;
      to += a[2].places;
    }
  }
}

void om_conv_planes_fill(const om_conv_pass *pass,
                         const om_conv_planes *p,
                         const uint8_t *x,
                         const uint8_t *x_end,
                         uint8_t pad,
                         uint8_t *planes) {
  const om_plane_axis *a = p->axes;
  const int64_t count = a[0].phases * a[1].phases * a[2].phases;
  for (int64_t i = 0; i < count; ++i, planes += p->plane) {
    const int64_t phase[OM_CONV_AXES] = {
        i / a[2].phases / a[1].phases, i / a[2].phases % a[1].phases, i % a[2].phases};
    memset(planes, pad, p->plane);
    fill_plane(pass, p, phase, x, x_end, planes);
  }
}
