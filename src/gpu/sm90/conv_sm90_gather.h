/* Windows of a step of their own: GATHER and ROWS (conv_sm90.c). */
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

/* A step's 64 channels (ROWS: octets), and its tap. */
typedef struct tap {
  uint32_t chunk, ky, kx;
} tap;

SM90_INLINE tap first_tap(const arguments *a, uint32_t step) {
  if (MODE == ROWS) return (tap){.chunk = step};
  const uint32_t taps = a->kernel_h * a->kernel_w;
  const uint32_t rest = step % taps;
  return (tap){.chunk = step / taps, .ky = rest / a->kernel_w, .kx = rest % a->kernel_w};
}

#if !IS_SHORT
SM90_INLINE void next_tap(const arguments *a, tap *t) {
  if (MODE == ROWS) {
    ++t->chunk;
  } else if (++t->kx == a->kernel_w) {
    t->kx = 0;
    if (++t->ky == a->kernel_h) {
      t->ky = 0;
      ++t->chunk;
    }
  }
}
#endif

enum { UNITS = OCTETS * TILE / TEAM, OCTET_STEP = TEAM / TILE }; /* octets of a thread */

#if MODE == GATHER
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
#else
SM90_INLINE raw load_one(const sm90_element *at, bool is_there) {
  raw out;
  __asm__ volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\t" CLEAR "%0" NOTHING "@p " LOAD
                   "%0, [%1];\n\t}"
                   : REGISTER(out)
                   : "l"(at), "r"((uint32_t)is_there));
  return out;
}

/* Two elements of a row, or zeros: both or neither are there. */
SM90_INLINE void load_pair(const sm90_element *at, bool is_there, raw out[2]) {
#  if FLOAT
  __asm__ volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tmov.f32 %0, 0f00000000;\n\tmov.f32 %1, "
      "0f00000000;\n\t"
      "@p ld.global.v2.f32 {%0, %1}, [%2];\n\t}"
      : "=f"(out[0]), "=f"(out[1])
      : "l"(at), "r"((uint32_t)is_there));
#  else
  uint32_t both;
  __asm__ volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t@p ld.global.b32 %0, "
      "[%1];\n\t}"
      : "=r"(both)
      : "l"(at), "r"((uint32_t)is_there));
  out[0] = (raw)both;
  out[1] = (raw)(both >> 16);
#  endif
}

/* The first tap of a row has an odd column and rows have an even length, so taps 1 and 2, 3 and 4,
 * 5 and 6 are pairs; tap 0 and a zero stand behind them. */
SM90_INLINE void fetch(
    const arguments *a, const place *at, const tap *t, uint32_t thread, raw out[UNITS * 8]) {
  const om_conv_matrix_params *p = &a->p;
  EACH(i, UNITS) {
    const uint32_t unit = t->chunk * OCTETS + thread / TILE + i * OCTET_STEP;
    const uint32_t channel = unit / a->kernel_h;
    const uint32_t y = (uint32_t)(at->y + (int32_t)(unit - channel * a->kernel_h));
    const bool is_inside = y < p->in_h && channel < p->in_channels;
    const sm90_element *row = at->image + (is_inside ? (channel * p->in_h + y) * p->in_w : 0);
    EACH(k, 3) {
      const int32_t x = at->x + 1 + (int32_t)(2 * k);
      load_pair(row + x,
                is_inside && (uint32_t)x < p->in_w && 2 * k + 1 < a->kernel_w,
                out + 8 * i + 2 * k);
    }
    out[8 * i + 6] = load_one(row + at->x, is_inside && (uint32_t)at->x < p->in_w);
    out[8 * i + 7] = (raw)0;
  }
}
#endif

/* The slice's part of the sums. */
SM90_INLINE void sum_up(const arguments *a, const slice *s, splitting *how, tile_sums *sums) {
  const place at = locate(a, s->first + s->thread % TILE);
  const uint32_t own = s->window_area + (s->thread / TILE * ROW_COUNT + s->thread % TILE) * 16;
  tap t = first_tap(a, s->begin);
  raw next[UNITS * 8];
  uint32_t stage = 0;
  fetch(a, &at, &t, s->thread, next);
#define KEEP(buffer) \
  EACH(k, UNITS)     \
  keep_octet(own + (buffer) * WINDOW_BYTES + k * OCTET_STEP * ROW_COUNT * 16, next + 8 * k, how)
  KEEP(0);
#if IS_SHORT
  do_step(s, s->begin, s->window_area, &stage, sums);
  end_step(sums);
#else
  next_tap(a, &t);
  if (s->begin + 1 < s->end) fetch(a, &at, &t, s->thread, next);
  SM90_LOOP for (uint32_t i = s->begin; i < s->end; ++i) {
    const uint32_t buffer = WINDOWS == 1 ? 0 : (i - s->begin) & 1;
    do_step(s, i, s->window_area + buffer * WINDOW_BYTES, &stage, sums);
    if (WINDOWS == 1) { /* which the others have read now */
      wait_for_sums(sums);
      slice_barrier(s);
    }
    if (i + 1 < s->end) KEEP(WINDOWS == 1 ? 0 : buffer ^ 1);
    next_tap(a, &t);
    if (i + 2 < s->end) fetch(a, &at, &t, s->thread, next);
    end_step(sums);
  }
#endif
}

#endif
