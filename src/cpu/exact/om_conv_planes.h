/* The input of a convolution of bytes with its padding around it: one plane for each channel and
 * for each remainder of places by the strides, so that a tap is a constant distance from a result's
 * place. Results are numbered by all places of a plane, in a row; those behind the end of a row are
 * none.
 *
 *     along an axis:  x [0 1 2 3 4], stride 2, three taps, a pad of 1
 *     planes          [p 1 3 p]  [0 2 4 .]   tap 0: plane 0; tap 1: plane 1; tap 2: plane 0, 1 on
 */
#ifndef OM_CONV_PLANES_H
#define OM_CONV_PLANES_H

#include "cpu/exact/om_conv.h"

typedef struct om_plane_axis {
  int64_t count;      /* results */
  int64_t places;     /* of a plane */
  int64_t phases;     /* planes */
  int64_t phase_step; /* place q of phase p is x[first + q * step + p * phase_step] */
  int64_t first, step;
  bool is_by_tap; /* each tap has a phase of its own */
} om_plane_axis;

typedef struct om_conv_planes {
  om_plane_axis axes[OM_CONV_AXES];
  bool is_in_place; /* each result reads its own place alone: x is the planes */
  size_t plane;     /* bytes of one phase of one channel */
  size_t channel;   /* of all phases; sizes that do not fit are SIZE_MAX */
  size_t results;   /* places up to the last result's */
} om_conv_planes;

om_conv_planes om_conv_planes_of(const om_conv_pass *pass);

/* Fills the planes of one channel, x, with bytes `pad` where there is no element. x_end: behind the
 * last element of all channels. Nothing behind the planes is written. */
void om_conv_planes_fill(const om_conv_pass *pass,
                         const om_conv_planes *p,
                         const uint8_t *x,
                         const uint8_t *x_end,
                         uint8_t pad,
                         uint8_t *planes);

/* A tap's plane along an axis, and how far its places are from the results'. */
static inline int64_t om_plane_phase(const om_plane_axis *p, const om_conv_axis *a, int64_t tap) {
  return p->is_by_tap ? tap : tap * a->tap_step % p->step;
}

static inline int64_t om_plane_shift(const om_plane_axis *p, const om_conv_axis *a, int64_t tap) {
  return p->is_by_tap ? 0 : tap * a->tap_step / p->step;
}

static inline bool om_conv_is_own_place(const om_conv_axis *a) {
  return a->taps == 1 && a->tap_first == 0 && a->in_step == 1 && a->count == a->in;
}

/* Elements of a channel of x. */
static inline size_t om_conv_in_elems(const om_conv_pass *pass) {
  return (size_t)(pass->axes[0].in * pass->axes[1].in * pass->axes[2].in);
}

/* SIZE_MAX where the result does not fit. */
static inline size_t om_size_times(size_t a, size_t b) {
  size_t product = SIZE_MAX;
  return om_size_mul(a, b, &product) ? product : SIZE_MAX;
}

static inline size_t om_size_plus(size_t a, size_t b) {
  size_t sum = SIZE_MAX;
  return om_size_add(a, b, &sum) ? sum : SIZE_MAX;
}

#endif
