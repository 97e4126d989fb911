/* A window for each step (conv_sm90.c). */
#ifndef CONV_SM90_GATHER_H
#define CONV_SM90_GATHER_H

/* The column of a thread: its image, and its first tap. */
typedef struct place {
  const sm90_element *image;
  int32_t y, x;
} place;

SM90_INLINE place locate(const arguments *a, uint32_t column) {
  const om_conv_matrix_params *p = &a->p;
  if (column >= p->columns) column = p->columns - 1; /* no result shows it */
  const uint32_t image = column / p->pixels;
  const uint32_t pixel = column - image * p->pixels;
  const uint32_t row = pixel / p->out_w;
  return (place){
      .image = a->input + (uint64_t)image * p->in_channels * p->in_h * p->in_w,
      .y = (int32_t)(row * p->stride_h) - (int32_t)p->pad_h,
      .x = (int32_t)((pixel - row * p->out_w) * p->stride_w) - (int32_t)p->pad_w,
  };
}

/* A step's 64 channels, and its tap. */
typedef struct tap {
  uint32_t chunk, ky, kx;
} tap;

SM90_INLINE tap first_tap(const arguments *a, uint32_t step) {
  const uint32_t taps = a->kernel_h * a->kernel_w;
  const uint32_t rest = step % taps;
  return (tap){.chunk = step / taps, .ky = rest / a->kernel_w, .kx = rest % a->kernel_w};
}

#if !IS_SHORT
SM90_INLINE void next_tap(const arguments *a, tap *t) {
  if (++t->kx == a->kernel_w) {
    t->kx = 0;
    if (++t->ky == a->kernel_h) {
      t->ky = 0;
      ++t->chunk;
    }
  }
}
#endif

enum { UNITS = OCTETS * TILE / TEAM, OCTET_STEP = TEAM / TILE }; /* octets of a thread */

SM90_INLINE void fetch(
    const arguments *a, const place *at, const tap *t, uint32_t thread, raw out[UNITS * 8]) {
  const om_conv_matrix_params *p = &a->p;
  const uint64_t plane = (uint64_t)p->in_h * p->in_w;
  const uint32_t y = (uint32_t)(at->y + (int32_t)(t->ky * p->dilation_h));
  const uint32_t x = (uint32_t)(at->x + (int32_t)(t->kx * p->dilation_w));
  const bool is_inside = y < p->in_h && x < p->in_w;
  const uint32_t channel = t->chunk * STEP + thread / TILE * 8;
  const sm90_element *from = at->image + (is_inside ? channel * plane + y * p->in_w + x : 0);
  EACH(i, UNITS) {
    const bool is_there = is_inside && channel + i * OCTET_STEP * 8 < p->in_channels;
    load_octet(from + i * OCTET_STEP * 8 * plane, plane * sizeof *from, is_there, out + 8 * i);
  }
}

/* The slice's part of the sums. */
SM90_INLINE void sum_up(const arguments *a,
                        const slice *s,
                        splitting *how,
                        float sums[PARTS][SUM_COUNT]) {
  const place at = locate(a, s->first + s->thread % TILE);
  const uint32_t own = s->window_area + (s->thread / TILE * ROW_COUNT + s->thread % TILE) * 16;
  tap t = first_tap(a, s->begin);
  raw next[UNITS * 8];
  fetch(a, &at, &t, s->thread, next);
  fetch_weights(s, s->begin, 0);
#define KEEP(buffer) \
  EACH(k, UNITS)     \
  keep_octet(own + (buffer) * WINDOW_BYTES + k * OCTET_STEP * ROW_COUNT * 16, next + 8 * k, how)
  KEEP(0);
#if IS_SHORT
  do_step(s, s->begin, s->window_area, sums);
  wait_for_sums(sums);
#else
  next_tap(a, &t);
  if (s->begin + 1 < s->end) fetch(a, &at, &t, s->thread, next);
  SM90_LOOP for (uint32_t i = s->begin; i < s->end; ++i) {
    const uint32_t buffer = (i - s->begin) & 1;
    do_step(s, i, s->window_area + buffer * WINDOW_BYTES, sums);
    if (i + 1 < s->end) KEEP(buffer ^ 1);
    next_tap(a, &t);
    if (i + 2 < s->end) fetch(a, &at, &t, s->thread, next);
    wait_for_sums(sums);
  }
#endif
}

#endif
