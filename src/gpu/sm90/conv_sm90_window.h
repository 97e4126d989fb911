/* Windows of nine taps at once: WINDOW (conv_sm90.c). */
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

/* An octet of a chunk's channels of the thread's rows. */
SM90_INLINE void fetch(const arguments *a,
                       const place at[TEAM_ROWS],
                       uint32_t channel,
                       raw out[TEAM_ROWS * 8]) {
  const uint64_t plane = a->p.pixels;
  EACH(r, TEAM_ROWS) {
    load_octet(at[r].pixel + channel * plane,
               plane * sizeof(sm90_element),
               at[r].is_there && channel < a->p.in_channels,
               out + 8 * r);
  }
}

SM90_INLINE void keep(
    uint32_t to, uint32_t octet, const raw values[TEAM_ROWS * 8], const slice *s, splitting *how) {
  EACH(r, TEAM_ROWS) {
    const uint32_t row = s->thread % 128 + r * 128;
    if ((r + 1) * 128 <= ROW_COUNT || row < ROW_COUNT) {
      keep_octet(to + (octet * ROW_COUNT + row) * 16, values + 8 * r, how);
    }
  }
}

/* The first window, with nothing else to do. */
SM90_INLINE void bring_window(const arguments *a,
                              const slice *s,
                              const place at[TEAM_ROWS],
                              splitting *how) {
  enum { BATCH = OCTETS / GROUPS < 4 ? OCTETS / GROUPS : 4 };
  EACH(first, OCTETS / GROUPS / BATCH) {
    const uint32_t octet = first * BATCH * GROUPS + s->group;
    raw values[BATCH][TEAM_ROWS * 8];
    EACH(k, BATCH) fetch(a, at, s->begin / TAPS * STEP + (octet + k * GROUPS) * 8, values[k]);
    EACH(k, BATCH) keep(s->window_area, octet + k * GROUPS, values[k], s, how);
  }
}

SM90_INLINE void sum_up(const arguments *a, const slice *s, splitting *how, tile_sums *sums) {
  const int32_t window = (int32_t)s->first - (int32_t)(a->p.in_w + 2);
  const uint32_t chunk_end = s->end / TAPS;
  place at[TEAM_ROWS];
  uint32_t stage = 0;
  EACH(r, TEAM_ROWS) at[r] = locate(a, window + (int32_t)(s->thread % 128 + r * 128));
  bring_window(a, s, at, how);
  SM90_LOOP for (uint32_t chunk = s->begin / TAPS; chunk < chunk_end; ++chunk) {
    const uint32_t buffer = WINDOWS == 2 ? (chunk - s->begin / TAPS) & 1 : 0;
    const uint32_t own = s->window_area + buffer * WINDOW_BYTES;
    const uint32_t other = s->window_area + (buffer ^ 1) * WINDOW_BYTES;
    const bool has_next = WINDOWS == 2 && chunk + 1 < chunk_end;
    raw next[TEAM_ROWS * 8];
    uint32_t shift = 0;
    /* Tap by tap, an octet of the next window each. */
    SM90_LOOP for (uint32_t tap = 0; tap < TAPS; ++tap) {
      do_step(s, chunk * TAPS + tap, own + shift * 16, &stage, sums);
      shift += tap % 3 == 2 ? a->p.in_w - 1 : 1;
      const uint32_t octet = tap * GROUPS + s->group;
      if (has_next && tap > 0 && octet - GROUPS < OCTETS) keep(other, octet - GROUPS, next, s, how);
      if (has_next && octet < OCTETS) fetch(a, at, (chunk + 1) * STEP + octet * 8, next);
      end_step(sums);
    }
  }
}

#endif
