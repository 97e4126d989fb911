/* The input is copied into planes (om_conv_planes.h), where a tap is a constant distance from a
 * result's place. Results are computed for all places in a row; those behind the end of a row of
 * planes are left out when y is stored.
 *
 * Many channels are a product: two strips of 32 places by 256 channels of y or fewer, which
 * threads take in any order. The terms of a strip are brought into a panel (om_byte_group.h), whose
 * sign is the other one than that of w. Of a channel alone (depthwise) the panel holds rows of its
 * plane, four taps one above the other, and windows overlap in it; or om_conv_windows.h does it.
 *
 *     scratch: [what is added to each channel] [offsets of terms] [planes of an image] [slots]
 *     slot:    [sums] [bytes on their way to y] [panel]; of a channel alone its planes, too
 *
 * Where y is as floats give it (om_conv_doubt.h), there are limits of channels and roundings of
 * terms, too, and in a slot places of doubtful results and the bytes that one's terms meet.
 */
#include "cpu/exact/om_conv_bytes.h"

#include "base/om_thread.h"
#include "cpu/exact/om_byte_group.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_conv_doubt.h"
#include "cpu/exact/om_conv_planes.h"
#include "cpu/exact/om_conv_windows.h"

enum {
  AXES = OM_CONV_AXES,
  LANES = OM_BYTE_LANES,
  STRIPS = 2,     /* side by side: lines of y are written in full, weights read half as often */
  PART = 256,     /* channels of y that share a panel, at most */
  FEWEST = 4,     /* pieces for more than one thread */
  BLOCK = 32,     /* of them, whose sums stand in the first cache */
  CHUNK = 512,    /* places of a depthwise channel at a time */
  MAX_SHIFT = 64, /* and how far their windows may reach */
  MAX_LINES = 16, /* and how many rows of four taps there may be */
  MAX_SLOTS = 32, /* pieces of parallel work, each with its own scratch */
  SLACK = 64,     /* bytes behind the planes: whole vectors are read */
};

typedef struct plan {
  om_conv_planes x;
  bool is_depthwise;
  bool has_floats;
  size_t terms;
  size_t planes_bytes; /* of an image, or of a depthwise channel */
  size_t slot_bytes;   /* aligned */
  size_t slot_count;
  size_t items;         /* of an image */
  size_t places, parts; /* that the items of a group are cut into */
  size_t part;          /* channels of each but the last */
  size_t lines;         /* of a depthwise panel */
  size_t span;          /* columns of each */
} plan;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static size_t aligned(size_t bytes) {
  return bytes > SIZE_MAX - 64 ? SIZE_MAX : om_size_align(bytes, 64);
}

static size_t quads_of(size_t terms) {
  return (terms + 3) / 4;
}

/* Of results that may be doubtful at once, what they are settled by, and the bytes that one's terms
 * meet, in whole quads. */
static size_t doubts_bytes(const plan *p, size_t results) {
  const size_t lists = results * sizeof(uint32_t) + OM_DOUBT_FLOATS * sizeof(float);
  return p->has_floats ? aligned(om_size_plus(lists, om_size_plus(p->terms, 3))) : 0;
}

typedef struct doubts { /* parts of a slot */
  uint32_t *at;
  float *floats;
  uint8_t *met;
} doubts;

static doubts doubts_at(const plan *p, uint8_t *slot, size_t results) {
  doubts d = {.at = (uint32_t *)(void *)(slot + p->slot_bytes - doubts_bytes(p, results))};
  d.floats = (float *)(void *)(d.at + results);
  d.met = (uint8_t *)(d.floats + OM_DOUBT_FLOATS);
  return d;
}

/* Whether it is one channel's rows and columns, of windows that reach not too far. */
static bool is_depthwise(const om_conv_pass *pass, const plan *p) {
  const om_conv_axis *a = pass->axes;
  const size_t lines = om_size_times(quads_of((size_t)a[1].taps), (size_t)p->x.axes[2].phases);
  return pass->in_channels == 1 && pass->out_channels == 1 && om_conv_is_own_place(&a[0]) &&
         a[0].in == 1 && a[1].taps > 1 && lines <= MAX_LINES && a[2].taps <= MAX_LINES &&
         om_plane_shift(&p->x.axes[2], &a[2], a[2].taps - 1) <= MAX_SHIFT;
}

/* Quads of taps one above the other, column by column. */
typedef struct quads {
  uint8_t weights[MAX_LINES * MAX_LINES * 4], ones[MAX_LINES * MAX_LINES * 4];
  uint32_t offsets[MAX_LINES * MAX_LINES]; /* in the panel */
  size_t count;
} quads;

static void plan_depthwise(const om_conv_pass *pass, plan *p) {
  p->lines = quads_of((size_t)pass->axes[1].taps) * (size_t)p->x.axes[2].phases;
  p->span = om_size_align(
      CHUNK + (size_t)om_plane_shift(&p->x.axes[2], &pass->axes[2], pass->axes[2].taps - 1), LANES);
  p->planes_bytes = aligned(om_size_plus(p->x.channel, SLACK + CHUNK));
  p->items = (size_t)pass->groups;
  const size_t chunk =
      om_size_align(sizeof(quads), 64) + 2 * CHUNK * sizeof(uint32_t) + p->lines * p->span * 4;
  p->slot_bytes = om_size_plus(aligned(om_size_plus(om_size_plus(chunk, p->planes_bytes),
                                                    om_size_plus(p->x.results, OM_BYTE_LOOSE))),
                               doubts_bytes(p, CHUNK));
}

/* Few places of a small picture are as few pieces for all channels, and each part brings them into
 * panels once more: only threads are worth that. */
static size_t part_of(const om_conv_pass *pass, const plan *p, bool is_alone) {
  const size_t out_channels = (size_t)pass->out_channels;
  const size_t pieces = om_size_times((size_t)pass->groups, p->places);
  if (is_alone || pieces >= FEWEST) return PART;
  const size_t parts = (FEWEST + pieces - 1) / larger(pieces, 1);
  const size_t channels = om_size_align((out_channels + parts - 1) / parts, BLOCK);
  return at_most(larger(channels, BLOCK), PART);
}

static void plan_product(const om_conv_pass *pass, bool is_alone, plan *p) {
  const size_t out_channels = (size_t)pass->out_channels;
  const size_t channels = (size_t)(pass->groups * pass->in_channels);
  p->places = (p->x.results + STRIPS * LANES - 1) / (STRIPS * LANES);
  p->part = part_of(pass, p, is_alone);
  p->parts = (out_channels + p->part - 1) / p->part;
  p->items = om_size_times((size_t)pass->groups, om_size_times(p->places, p->parts));
  p->planes_bytes =
      p->x.is_in_place ? 0 : aligned(om_size_plus(om_size_times(p->x.channel, channels), SLACK));
  const size_t sums = (STRIPS + BLOCK) * LANES * sizeof(uint32_t) + BLOCK * LANES;
  const size_t panels = om_size_times(quads_of(p->terms) * 4, STRIPS * LANES);
  p->slot_bytes = om_size_plus(aligned(om_size_plus(sums, panels)), doubts_bytes(p, BLOCK * LANES));
}

/* Sums of integers are the same in any pieces. */
static plan plan_of(const om_conv_pass *pass, bool has_floats, bool is_alone) {
  plan p = {.x = om_conv_planes_of(pass), .has_floats = has_floats};
  p.terms = (size_t)om_conv_terms(pass);
  p.is_depthwise = is_depthwise(pass, &p);
  if (p.is_depthwise) {
    plan_depthwise(pass, &p);
  } else {
    plan_product(pass, is_alone, &p);
  }
  p.slot_count = at_most(p.items, MAX_SLOTS);
  return p;
}

static size_t out_channels_of(const om_conv_pass *pass) {
  return (size_t)(pass->groups * pass->out_channels);
}

static size_t adds_bytes(const om_conv_pass *pass) {
  return om_size_align(out_channels_of(pass) * sizeof(uint32_t), 64);
}

static size_t offsets_bytes(const plan *p) {
  const bool has_none = p->x.is_in_place || (p->is_depthwise && !p->has_floats);
  return has_none ? 0 : aligned(om_size_times(p->terms, sizeof(size_t)));
}

static size_t limits_bytes(const om_conv_pass *pass, const plan *p) {
  return p->has_floats ? om_size_align(out_channels_of(pass) * sizeof(float), 64) : 0;
}

static size_t roundings_bytes(const plan *p) {
  return p->has_floats ? aligned(om_size_times(p->terms, sizeof(int16_t))) : 0;
}

size_t om_conv_bytes_scratch(const om_conv_pass *pass, bool has_floats) {
  const plan p = plan_of(pass, has_floats, false); /* no fewer slots than those of one thread */
  const size_t own =
      om_size_plus(om_size_times(p.slot_bytes, p.slot_count), p.is_depthwise ? 0 : p.planes_bytes);
  const size_t lists = om_size_plus(limits_bytes(pass, &p), roundings_bytes(&p));
  const size_t windows =
      om_conv_windows_fit(pass) ? om_conv_windows_scratch(pass, p.slot_count) : 0;
  return om_size_plus(om_size_plus(om_size_plus(adds_bytes(pass), aligned(p.terms)), lists),
                      larger(windows, om_size_plus(offsets_bytes(&p), own)));
}

typedef struct job {
  const om_ctx *ctx; /* asked between pieces of a slot whether the run is cancelled */
  const om_conv_bytes *c;
  const plan *p;
  bool has_w_zeros;
  bool has_tiles; /* om_byte_has_tiles, of products */
  uint8_t flip;   /* what gives x the other sign than w's */
  uint32_t zero;  /* x_zero with that sign */
  uint32_t *adds; /* of each channel: its bias, and what zero points make of its weights */
  float *limits;  /* likewise */
  uint8_t *ones;  /* as many as terms */
  int16_t *roundings;
  size_t *offsets;
  uint8_t *planes; /* of `image`, or x's */
  uint8_t *slots;
  size_t image;
} job;

/* ---- What is added to a channel's sums ---- */

static void sum_channels(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const om_conv_bytes *c = j->c;
  const size_t terms = j->p->terms;
  if (j->zero != 0) {
    om_byte_dots_run(&(om_byte_dots){.a = j->ones,
                                     .b = c->w + begin * terms,
                                     .b_stride = terms,
                                     .is_a_signed = !c->is_w_signed,
                                     .terms = terms,
                                     .count = end - begin,
                                     .is_first = true,
                                     .sums = j->adds + begin});
  }
  for (size_t i = begin; i < end; ++i) {
    const uint32_t bias = c->bias ? (uint32_t)c->bias[i] : 0;
    const uint32_t zeros = (uint32_t)c->w_zeros[i] * (uint32_t)terms;
    if (c->floats) j->limits[i] = om_doubt_limit(c, i, terms, j->roundings);
    j->adds[i] = j->zero == 0 ? bias : bias - j->zero * (j->adds[i] - zeros);
  }
}

static size_t out_elems(const om_conv_pass *pass) {
  return (size_t)(pass->axes[0].count * pass->axes[1].count * pass->axes[2].count);
}

/* Channel `channel` of all groups, of the job's image. */
static const uint8_t *channel_of(const job *j, size_t channel) {
  const om_conv_pass *pass = j->c->pass;
  const size_t channels = (size_t)(pass->groups * pass->in_channels);
  return j->c->x + (j->image * channels + channel) * om_conv_in_elems(pass);
}

static const uint8_t *end_of(const job *j) {
  const om_conv_pass *pass = j->c->pass;
  return j->c->x +
         (size_t)(pass->batch * pass->groups * pass->in_channels) * om_conv_in_elems(pass);
}

static void fill_planes(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  for (size_t i = begin; i < end; ++i) {
    uint8_t *planes = j->planes + i * j->p->x.channel;
    om_conv_planes_fill(
        j->c->pass, &j->p->x, channel_of(j, i), end_of(j), (uint8_t)j->c->x_zero, planes);
  }
}

/* Where each term of a group's sums begins in its planes. */
static void list_offsets(const om_conv_pass *pass, const plan *p, size_t *offsets) {
  int64_t tap[AXES] = {0};
  size_t channel = 0;
  for (size_t k = 0; k < p->terms; ++k) {
    size_t phase = 0, shift = 0;
    for (int i = 0; i < AXES; ++i) {
      phase = phase * (size_t)p->x.axes[i].phases +
              (size_t)om_plane_phase(&p->x.axes[i], &pass->axes[i], tap[i]);
      shift = shift * (size_t)p->x.axes[i].places +
              (size_t)om_plane_shift(&p->x.axes[i], &pass->axes[i], tap[i]);
    }
    offsets[k] = channel * p->x.channel + phase * p->x.plane + shift;
    int i = AXES - 1;
    for (; i >= 0 && ++tap[i] == pass->axes[i].taps; --i) tap[i] = 0;
    if (i < 0) ++channel;
  }
}

/* ---- The way to y ---- */

/* sums -= w_zero * (the sum of the columns of x). */
OM_CLONES static void take_zero(size_t lanes, uint32_t w_zero, const uint32_t *cols, uint32_t *y) {
  for (size_t i = 0; i < lanes; ++i) y[i] -= w_zero * cols[i];
}

OM_CLONES static void store_sums(size_t count, const uint32_t *sums, uint32_t add, uint32_t *y) {
  for (size_t i = 0; i < count; ++i) y[i] = sums[i] + add;
}

/* Results that are neighbours in y, too: `count` of them from place `first` on. */
typedef struct run {
  size_t first, count;
  size_t out; /* in a channel of y */
} run;

/* The next run at or behind a place, of those before `end`; count 0: there is none. */
static run next_run(const plan *p, size_t place, size_t end) {
  const om_plane_axis *az = &p->x.axes[0], *ay = &p->x.axes[1], *ax = &p->x.axes[2];
  if (p->x.is_in_place) return (run){.first = place, .count = end - place, .out = place};
  while (place < end) {
    const size_t x = place % (size_t)ax->places;
    const size_t y = place / (size_t)ax->places % (size_t)ay->places;
    const size_t z = place / (size_t)ax->places / (size_t)ay->places;
    const size_t row_end = place - x + (size_t)ax->places;
    if (x < (size_t)ax->count && y < (size_t)ay->count && z < (size_t)az->count) {
      const size_t out = (z * (size_t)ay->count + y) * (size_t)ax->count + x;
      return (run){
          .first = place, .count = at_most((size_t)ax->count - x, end - place), .out = out};
    }
    place = row_end;
  }
  return (run){.first = end};
}

/* ---- Products ---- */

typedef struct strip {
  size_t place, width;
  uint8_t *panel;
  uint32_t *cols; /* sums of its columns, where w has zero points */
} strip;

typedef struct product_slot { /* parts of a slot */
  uint32_t *sums;
  doubts doubts;
  uint8_t *bytes;
  strip strips[STRIPS];
  size_t strip_count;
} product_slot;

static size_t panel_bytes(const plan *p) {
  return quads_of(p->terms) * 4 * LANES;
}

static product_slot product_slot_at(const plan *p, uint8_t *slot) {
  product_slot s = {.sums = (uint32_t *)(void *)slot};
  uint32_t *cols = s.sums + BLOCK * LANES;
  s.bytes = (uint8_t *)(cols + STRIPS * LANES);
  uint8_t *panels = s.bytes + BLOCK * LANES;
  for (size_t i = 0; i < STRIPS; ++i) {
    s.strips[i].cols = cols + i * LANES;
    s.strips[i].panel = panels + i * panel_bytes(p);
  }
  s.doubts = doubts_at(p, slot, BLOCK * LANES);
  return s;
}

/* The strips from a place on. */
static void cut_strips(const plan *p, size_t place, product_slot *own) {
  own->strip_count = 0;
  for (; own->strip_count < STRIPS && place < p->x.results; place += LANES) {
    strip *s = &own->strips[own->strip_count++];
    s->place = place;
    s->width = at_most(p->x.results - place, LANES);
  }
}

/* What the terms of a column met. */
static void read_column(const job *j, const strip *s, size_t lane, uint8_t *met) {
  for (size_t k = 0; k < j->p->terms; k += 4) {
    uint32_t four;
    memcpy(&four, s->panel + (k / 4 * LANES + lane) * 4, sizeof four);
    four ^= j->flip * 0x01010101u;
    memcpy(met + k, &four, sizeof four);
  }
}

static void finish_block(const job *j,
                         const product_slot *own,
                         const strip *s,
                         size_t channel,
                         const om_byte_finish *f) {
  const size_t terms = j->p->terms;
  om_byte_finish_run(f);
  for (size_t i = 0; f->limits && i < *f->doubt_count; ++i) {
    const doubts *d = &own->doubts;
    const size_t row = d->at[i] / LANES, lane = d->at[i] % LANES;
    read_column(j, s, lane, d->met);
    f->y[row * f->y_stride + lane] = om_doubt_settle(j->c, channel + row, terms, d->met, d->floats);
  }
}

/* Sums of `rows` channels from `channel` (of all groups) on. */
static void store_block(
    const job *j, const product_slot *own, const strip *s, size_t channel, size_t rows) {
  const om_conv_bytes *c = j->c;
  const size_t elems = out_elems(c->pass);
  const size_t y = (j->image * out_channels_of(c->pass) + channel) * elems;
  const size_t end = s->place + s->width;
  if (!c->sums) {
    const bool is_whole = j->p->x.is_in_place;
    size_t doubt_count = 0;
    finish_block(j,
                 own,
                 s,
                 channel,
                 &(om_byte_finish){.sums = own->sums,
                                   .stride = LANES,
                                   .rows = rows,
                                   .width = s->width,
                                   .adds = j->adds + channel,
                                   .factors = c->factors + channel,
                                   .zero = c->y_zero,
                                   .is_signed = c->is_y_signed,
                                   .y = is_whole ? c->y + y + s->place : own->bytes,
                                   .y_stride = is_whole ? elems : LANES,
                                   .limits = c->floats ? j->limits + channel : NULL,
                                   .doubts = own->doubts.at,
                                   .doubt_count = &doubt_count});
    if (is_whole) return;
  }
  for (size_t place = s->place; place < end;) {
    const run r = next_run(j->p, place, end);
    for (size_t row = 0; row < rows && r.count > 0; ++row) {
      const size_t from = row * LANES + r.first - s->place;
      const size_t to = y + row * elems + r.out;
      if (c->sums) {
        store_sums(r.count, own->sums + from, j->adds[channel + row], c->sums + to);
      } else {
        om_byte_copy(own->bytes + from, r.count, c->y + to);
      }
    }
    place = r.first + r.count;
  }
}

static void fill_strip(const job *j, size_t group, const strip *s) {
  const plan *p = j->p;
  const size_t channel = group * (size_t)j->c->pass->in_channels;
  const uint8_t *planes =
      p->x.is_in_place ? channel_of(j, channel) : j->planes + channel * p->x.channel;
  om_byte_panel_fill(&(om_byte_panel){.from = planes + s->place,
                                      .offsets = p->x.is_in_place ? NULL : j->offsets,
                                      .step = p->x.plane,
                                      .terms = p->terms,
                                      .columns = LANES,
                                      .width = p->x.is_in_place ? s->width : LANES,
                                      .flip = j->flip,
                                      .panel = s->panel});
  if (!j->has_w_zeros) return;
  om_byte_group_run(&(om_byte_group){.a = j->ones,
                                     .rows = 1,
                                     .is_a_signed = j->c->is_w_signed,
                                     .panel = s->panel,
                                     .terms = p->terms,
                                     .is_first = true,
                                     .sums = s->cols});
}

static void run_block(
    const job *j, const product_slot *own, const strip *s, size_t channel, size_t rows) {
  const om_conv_bytes *c = j->c;
  const size_t terms = j->p->terms;
  om_byte_group_run(&(om_byte_group){.a = c->w + channel * terms,
                                     .a_stride = terms,
                                     .rows = rows,
                                     .is_a_signed = c->is_w_signed,
                                     .panel = s->panel,
                                     .terms = terms,
                                     .is_first = true,
                                     .has_tiles = j->has_tiles,
                                     .sums = own->sums});
  for (size_t row = 0; j->has_w_zeros && row < rows; ++row) {
    take_zero(LANES, (uint32_t)c->w_zeros[channel + row], s->cols, own->sums + row * LANES);
  }
  store_block(j, own, s, channel, rows);
}

static void run_item(const job *j, size_t item, product_slot *own) {
  const plan *p = j->p;
  const size_t per_group = (size_t)j->c->pass->out_channels;
  const size_t part = item / p->places % p->parts * p->part;
  const size_t group = item / p->places / p->parts;
  const size_t begin = group * per_group + part;
  const size_t end = begin + at_most(per_group - part, p->part);
  cut_strips(p, item % p->places * STRIPS * LANES, own);
  for (size_t i = 0; i < own->strip_count; ++i) fill_strip(j, group, &own->strips[i]);
  for (size_t channel = begin; channel < end && !om_is_cancelled(j->ctx); channel += BLOCK) {
    const size_t rows = at_most(end - channel, BLOCK);
    for (size_t i = 0; i < own->strip_count; ++i) {
      run_block(j, own, &own->strips[i], channel, rows);
    }
  }
}

static void run_products(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const plan *p = j->p;
  for (size_t i = begin; i < end; ++i) {
    product_slot own = product_slot_at(p, j->slots + i * p->slot_bytes);
    const size_t last = p->items * (i + 1) / p->slot_count;
    size_t item = p->items * i / p->slot_count;
    for (; item < last && !om_is_cancelled(j->ctx); ++item) run_item(j, item, &own);
  }
}

/* ---- A channel alone ---- */

typedef struct depthwise_slot {
  quads *taps;
  uint32_t *sums, *cols; /* of a chunk */
  uint8_t *panel;
  uint8_t *planes;
  uint8_t *bytes; /* of all places */
  doubts doubts;
} depthwise_slot;

static depthwise_slot depthwise_slot_at(const plan *p, uint8_t *slot) {
  depthwise_slot s = {.taps = (quads *)(void *)slot};
  s.sums = (uint32_t *)(void *)(slot + om_size_align(sizeof(quads), 64));
  s.cols = s.sums + CHUNK;
  s.panel = (uint8_t *)(s.cols + CHUNK);
  s.planes = s.panel + p->lines * p->span * 4;
  s.bytes = s.planes + p->planes_bytes;
  s.doubts = doubts_at(p, slot, CHUNK);
  return s;
}

static void list_quads(const job *j, const uint8_t *w, quads *q) {
  const plan *p = j->p;
  const om_conv_axis *ay = &j->c->pass->axes[1], *ax = &j->c->pass->axes[2];
  const om_plane_axis *px = &p->x.axes[2];
  q->count = 0;
  for (int64_t y = 0; y < ay->taps; y += 4) {
    for (int64_t x = 0; x < ax->taps; ++x, ++q->count) {
      const size_t line = (size_t)(y / 4 * px->phases + om_plane_phase(px, ax, x));
      q->offsets[q->count] = (uint32_t)(line * p->span + (size_t)om_plane_shift(px, ax, x));
      for (int64_t i = 0; i < 4; ++i) {
        const bool is_there = y + i < ay->taps;
        q->weights[q->count * 4 + (size_t)i] = is_there ? w[(y + i) * ax->taps + x] : 0;
        q->ones[q->count * 4 + (size_t)i] = is_there;
      }
    }
  }
}

/* The panel of places [place, place + CHUNK). */
static void fill_lines(const job *j, size_t place, const depthwise_slot *own) {
  const plan *p = j->p;
  const om_conv_axis *ay = &j->c->pass->axes[1];
  const om_plane_axis *py = &p->x.axes[1], *px = &p->x.axes[2];
  const size_t left = om_size_align(p->x.results - place, LANES) + (p->span - CHUNK);
  uint8_t *panel = own->panel;
  for (int64_t y = 0; y < ay->taps; y += 4) {
    for (int64_t x = 0; x < px->phases; ++x, panel += p->span * 4) {
      size_t offsets[4];
      const size_t count = at_most((size_t)(ay->taps - y), 4);
      for (size_t i = 0; i < count; ++i) {
        const int64_t tap = y + (int64_t)i;
        offsets[i] = (size_t)(om_plane_phase(py, ay, tap) * px->phases + x) * p->x.plane +
                     (size_t)(om_plane_shift(py, ay, tap) * px->places);
      }
      om_byte_panel_fill(&(om_byte_panel){.from = own->planes + place,
                                          .offsets = offsets,
                                          .terms = count,
                                          .columns = p->span,
                                          .width = at_most(p->span, left),
                                          .flip = j->flip,
                                          .panel = panel});
    }
  }
}

static void sum_chunk(const job *j, size_t channel, size_t lanes, const depthwise_slot *own) {
  const quads *q = own->taps;
  om_byte_taps t = {.a = q->weights,
                    .is_a_signed = j->c->is_w_signed,
                    .panel = own->panel,
                    .offsets = q->offsets,
                    .quads = q->count,
                    .lanes = lanes,
                    .sums = own->sums};
  om_byte_taps_run(&t);
  if (!j->has_w_zeros) return;
  t.a = q->ones;
  t.sums = own->cols;
  om_byte_taps_run(&t);
  take_zero(lanes, (uint32_t)j->c->w_zeros[channel], own->cols, own->sums);
}

/* Results of `width` places from `place` on, of the sums in the slot. */
static void finish_chunk(
    const job *j, size_t channel, size_t place, size_t width, const depthwise_slot *own) {
  const om_conv_bytes *c = j->c;
  const doubts *d = &own->doubts;
  const size_t terms = j->p->terms;
  uint8_t *y = own->bytes + place;
  size_t doubt_count = 0;
  om_byte_finish_run(&(om_byte_finish){.sums = own->sums,
                                       .stride = CHUNK,
                                       .rows = 1,
                                       .width = width,
                                       .adds = j->adds + channel,
                                       .factors = c->factors + channel,
                                       .zero = c->y_zero,
                                       .is_signed = c->is_y_signed,
                                       .y = y,
                                       .limits = c->floats ? j->limits + channel : NULL,
                                       .doubts = d->at,
                                       .doubt_count = &doubt_count});
  for (size_t i = 0; i < doubt_count; ++i) {
    const uint8_t *from = own->planes + place + d->at[i];
    for (size_t k = 0; k < terms; ++k) d->met[k] = from[j->offsets[k]];
    y[d->at[i]] = om_doubt_settle(c, channel, terms, d->met, d->floats);
  }
}

static void run_channel(const job *j, size_t channel, const depthwise_slot *own) {
  const om_conv_bytes *c = j->c;
  const plan *p = j->p;
  const size_t y = (j->image * out_channels_of(c->pass) + channel) * out_elems(c->pass);
  om_conv_planes_fill(
      c->pass, &p->x, channel_of(j, channel), end_of(j), (uint8_t)c->x_zero, own->planes);
  list_quads(j, c->w + channel * p->terms, own->taps);
  for (size_t place = 0; place < p->x.results; place += CHUNK) {
    const size_t width = at_most(p->x.results - place, CHUNK);
    fill_lines(j, place, own);
    sum_chunk(j, channel, om_size_align(width, OM_BYTE_RUN), own);
    if (!c->sums) finish_chunk(j, channel, place, width, own);
    for (size_t at = place; c->sums && at < place + width;) {
      const run r = next_run(p, at, place + width);
      store_sums(r.count, own->sums + r.first - place, j->adds[channel], c->sums + y + r.out);
      at = r.first + r.count;
    }
  }
  if (c->sums) return;
  const size_t count = (size_t)p->x.axes[2].count, places = (size_t)p->x.axes[2].places;
  const size_t rows = (size_t)p->x.axes[1].count;
  for (size_t row = 0; row < rows; ++row) {
    const uint8_t *from = own->bytes + row * places;
    uint8_t *to = c->y + y + row * count;
    if (om_size_align(count, OM_BYTE_LOOSE) <= (rows - row) * count) {
      om_byte_copy_loosely(from, count, to); /* the next rows are written behind it */
    } else {
      om_byte_copy(from, count, to);
    }
  }
}

static void run_channels(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const plan *p = j->p;
  for (size_t i = begin; i < end; ++i) {
    const depthwise_slot own = depthwise_slot_at(p, j->slots + i * p->slot_bytes);
    const size_t last = p->items * (i + 1) / p->slot_count;
    size_t item = p->items * i / p->slot_count;
    for (; item < last && !om_is_cancelled(j->ctx); ++item) run_channel(j, item, &own);
  }
}

/* ---- All of it ---- */

static void run_images(om_ctx *ctx, job *j) {
  const om_conv_pass *pass = j->c->pass;
  enum { CHANNELS = 4 }; /* whose planes are filled at once */
  for (j->image = 0; j->image < (size_t)pass->batch; ++j->image) {
    if (j->p->is_depthwise) {
      om_parallel_for(ctx, j->p->slot_count, 1, run_channels, j);
      continue;
    }
    if (!j->p->x.is_in_place) {
      om_parallel_for(ctx, (size_t)(pass->groups * pass->in_channels), CHANNELS, fill_planes, j);
    }
    om_parallel_for(ctx, j->p->slot_count, 1, run_products, j);
  }
}

void om_conv_bytes_run(om_ctx *ctx, const om_conv_bytes *c, void *scratch) {
  enum { CHANNELS = 16 }; /* whose weights are added up at once */
  const plan p = plan_of(c->pass, c->floats != NULL, ctx->thread_count == 1);
  const size_t out_channels = out_channels_of(c->pass);
  const uint32_t flip = c->is_x_signed == c->is_w_signed ? 0x80 : 0;
  job j = {.ctx = ctx,
           .c = c,
           .p = &p,
           .flip = (uint8_t)flip,
           .zero = (uint32_t)c->x_zero + (c->is_x_signed ? flip : 0u - flip),
           .adds = scratch};
  j.ones = (uint8_t *)scratch + adds_bytes(c->pass);
  j.limits = (float *)(void *)(j.ones + aligned(p.terms));
  j.roundings = (int16_t *)(void *)((uint8_t *)j.limits + limits_bytes(c->pass, &p));
  j.offsets = (size_t *)(void *)((uint8_t *)j.roundings + roundings_bytes(&p));
  j.planes = (uint8_t *)j.offsets + offsets_bytes(&p);
  j.slots = j.planes + (p.is_depthwise ? 0 : p.planes_bytes);
  bool is_finite = true; /* all factors: windows do not know NaN */
  for (size_t i = 0; i < out_channels; ++i) j.has_w_zeros = j.has_w_zeros || c->w_zeros[i] != 0;
  for (size_t i = 0; c->y && i < out_channels; ++i) {
    is_finite = is_finite && c->factors[i] - c->factors[i] == 0.0f;
  }
  memset(j.ones, 1, p.terms);
  if (c->floats) om_doubt_list_roundings(p.terms, j.roundings);
  om_parallel_for(ctx, out_channels, CHANNELS, sum_channels, &j);
  if (c->y && is_finite && !j.has_w_zeros && om_conv_windows_fit(c->pass)) {
    const om_conv_windows w = {c, j.adds, j.limits, p.slot_count};
    om_conv_windows_run(ctx, &w, j.offsets);
    return;
  }
  j.has_tiles = !p.is_depthwise && om_byte_has_tiles();
  if (offsets_bytes(&p) > 0) list_offsets(c->pass, &p, j.offsets);
  run_images(ctx, &j);
}
