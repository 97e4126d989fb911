/* A window for nine taps (conv_sm90.c). */
#ifndef CONV_SM90_WINDOW_H
#define CONV_SM90_WINDOW_H

/* A pixel of an image with a column and a row of zeros behind it; false there. */
SM90_INLINE bool find_pixel(const arguments *a,
                            uint32_t position,
                            uint32_t *image,
                            uint32_t *pixel) {
  const uint32_t pitch = a->p.in_w + 1;
  const uint32_t plane = pitch * (a->p.in_h + 1);
  *image = position / plane;
  const uint32_t y = (position - *image * plane) / pitch;
  const uint32_t x = position - *image * plane - y * pitch;
  *pixel = y * a->p.in_w + x;
  return position < a->p.columns && y < a->p.in_h && x < a->p.in_w;
}

typedef struct place {
  const sm90_element *pixel;
  bool is_there;
} place;

SM90_INLINE place locate(const arguments *a, int32_t position) {
  uint32_t image;
  uint32_t pixel;
  const bool is_there = find_pixel(a, (uint32_t)position, &image, &pixel) && position >= 0;
  const uint64_t begin = (uint64_t)image * a->p.in_channels * a->p.pixels + pixel;
  return (place){.pixel = a->input + (is_there ? begin : 0), .is_there = is_there};
}

/* An octet of a chunk's channels of the thread's row. */
SM90_INLINE void fetch(const arguments *a, const place *at, uint32_t channel, raw out[8]) {
  const uint64_t plane = a->p.pixels;
  load_octet(at->pixel + channel * plane,
             plane * sizeof(sm90_element),
             at->is_there && channel < a->p.in_channels,
             out);
}

SM90_INLINE void keep(
    uint32_t to, uint32_t octet, const raw values[8], const slice *s, splitting *how) {
  keep_octet(to + (octet * ROW_COUNT + s->thread) * 16, values, how);
}

/* The first window, with nothing else to do. */
SM90_INLINE void bring_window(const arguments *a, const slice *s, const place *at, splitting *how) {
  enum { BATCH = 4 };
  EACH(first, OCTETS / BATCH) {
    const uint32_t octet = first * BATCH;
    raw values[BATCH][8];
    EACH(k, BATCH) fetch(a, at, s->begin / TAPS * STEP + (octet + k) * 8, values[k]);
    EACH(k, BATCH) keep(s->window_area, octet + k, values[k], s, how);
  }
}

/* The slice's part of the sums; a thread brings one row of each window. */
SM90_INLINE void sum_up(const arguments *a,
                        const slice *s,
                        splitting *how,
                        float sums[PARTS][SUM_COUNT]) {
  const int32_t window = (int32_t)s->first - (int32_t)(a->p.in_w + 2);
  const uint32_t chunk_end = s->end / TAPS;
  const place at = locate(a, window + (int32_t)s->thread);
  fetch_weights(s, s->begin, 0);
  bring_window(a, s, &at, how);
  SM90_LOOP for (uint32_t chunk = s->begin / TAPS; chunk < chunk_end; ++chunk) {
    const uint32_t buffer = (chunk - s->begin / TAPS) & 1;
    const uint32_t own = s->window_area + buffer * WINDOW_BYTES;
    const uint32_t other = s->window_area + (buffer ^ 1) * WINDOW_BYTES;
    const bool has_next = chunk + 1 < chunk_end;
    raw next[8];
    uint32_t shift = 0;
    /* Tap by tap, an octet of the next window each. */
    SM90_LOOP for (uint32_t tap = 0; tap < TAPS; ++tap) {
      do_step(s, chunk * TAPS + tap, own + shift * 16, sums);
      shift += tap % 3 == 2 ? a->p.in_w - 1 : 1;
      if (has_next && tap > 0) keep(other, tap - 1, next, s, how);
      if (has_next && tap < OCTETS) fetch(a, &at, (chunk + 1) * STEP + tap * 8, next);
      wait_for_sums(sums);
    }
  }
}

#endif
