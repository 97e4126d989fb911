/* Results are cut into groups of at most 16 neighbours in y: a part of a row, or whole short rows.
 * A group's sums are made of quads, four neighbouring taps of a row of the kernel; a quad reads a
 * stretch of x, and its pattern says which bytes of it each result's taps meet.
 *
 *     scratch: [groups] [stretches: of each group, a quad after the other] [those of parts of rows]
 *              [patterns] [slots]
 *     slot:    [floats] [weights by quads] [bytes that a doubtful result's terms meet]
 *              [which results of each group are doubtful] [a plane with room behind it]
 */
#include "cpu/exact/om_conv_windows.h"

#include "base/om_thread.h"
#include "cpu/exact/om_conv_doubt.h"
#include "cpu/exact/om_conv_planes.h"
#include "cpu/exact/om_widths.h"

#if defined(__x86_64__)

#  include <immintrin.h>

enum {
  LANES = 16,
  REACH = 64,     /* bytes of a stretch */
  MOST_TAPS = 16, /* of each axis of the kernel */
  MOST_PATTERNS = 256,
  WEIGHTS_BYTES = MOST_TAPS * MOST_TAPS,
};

typedef struct group {
  uint32_t out; /* its first result, in a channel of y */
  uint32_t count;
} group;

typedef struct stretch {
  uint32_t from;    /* in a channel of x */
  uint32_t pattern; /* in bytes */
} stretch;

typedef struct plan {
  const om_conv_axis *ay, *ax;
  size_t rows, cols;    /* results of a group: rows * cols, in a whole one */
  size_t bands, chunks; /* groups in y and x */
  size_t quads;         /* of a row of the kernel */
  size_t stretches;     /* of a group */
  size_t patterns;      /* the last one is all padding */
  size_t plane, results, terms;
  bool is_short; /* stretches are half as long */
} plan;

static size_t at_most(size_t value, size_t most) {
  return value < most ? value : most;
}

/* From the first byte of a stretch to behind the last. */
static size_t reach_of(const plan *p) {
  const size_t down = (p->rows - 1) * (size_t)(p->ay->in_step * p->ax->in);
  const size_t taps = at_most((size_t)p->ax->taps, 4) - 1;
  return down + (p->cols - 1) * (size_t)p->ax->in_step + taps * (size_t)p->ax->tap_step + 1;
}

static plan plan_of(const om_conv_pass *pass) {
  plan p = {.ay = &pass->axes[1], .ax = &pass->axes[2]};
  const size_t width = (size_t)p.ax->count, height = (size_t)p.ay->count;
  p.cols = at_most(width, LANES);
  p.rows = width > 0 && width < LANES ? at_most(LANES / width, height) : 1;
  p.quads = ((size_t)p.ax->taps + 3) / 4;
  p.stretches = p.quads * (size_t)p.ay->taps;
  while (p.rows > 1 && reach_of(&p) > REACH) --p.rows;
  if (height / p.rows * p.stretches > MOST_PATTERNS) p.rows = 1; /* has few, for all rows */
  p.is_short = reach_of(&p) <= REACH / 2;
  p.chunks = p.cols > 0 ? (width + p.cols - 1) / p.cols : 0;
  p.bands = p.rows > 0 ? (height + p.rows - 1) / p.rows : 0;
  p.patterns = 1 + (p.rows > 1 ? p.bands * p.stretches : p.chunks * p.quads);
  p.plane = (size_t)(p.ay->in * p.ax->in);
  p.results = width * height;
  p.terms = (size_t)om_conv_terms(pass);
  return p;
}

bool om_conv_windows_fit(const om_conv_pass *pass) {
  const om_conv_axis *a = pass->axes;
  if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vnni")) return false;
  if (pass->in_channels != 1 || pass->out_channels != 1) return false;
  if (!om_conv_is_own_place(&a[0]) || a[0].in != 1) return false;
  for (int i = 1; i < OM_CONV_AXES; ++i) {
    if (a[i].count < 1 || a[i].taps > MOST_TAPS || a[i].in_step > REACH || a[i].tap_step > REACH) {
      return false;
    }
  }
  if (om_size_times((size_t)a[1].in, (size_t)a[2].in) > UINT32_MAX / 2) return false;
  const plan p = plan_of(pass);
  if (p.results > UINT32_MAX / 2 || a[1].taps < 2 || reach_of(&p) > REACH) return false;
  /* Of narrow rows the lists would be far larger than x. */
  return p.bands * p.chunks * p.stretches * sizeof(stretch) <= 8 * p.plane + 4096;
}

static size_t groups_bytes(const plan *p) {
  return om_size_align(p->bands * p->chunks * sizeof(group), 64);
}

static size_t stretches_bytes(const plan *p) {
  return om_size_align(p->bands * p->chunks * p->stretches * sizeof(stretch), 64);
}

static size_t in_row_bytes(const plan *p) {
  return om_size_align(p->chunks * p->quads * sizeof(stretch), 64);
}

static size_t met_bytes(const plan *p) {
  return om_size_align(p->terms, 64);
}

static size_t doubts_bytes(const plan *p) {
  return om_size_align(p->bands * p->chunks * sizeof(uint16_t), 64);
}

static size_t slot_bytes(const plan *p) {
  return OM_DOUBT_FLOATS * sizeof(float) + WEIGHTS_BYTES + met_bytes(p) + doubts_bytes(p) +
         om_size_align(p->plane + REACH, 64);
}

size_t om_conv_windows_scratch(const om_conv_pass *pass, size_t slot_count) {
  const plan p = plan_of(pass);
  return groups_bytes(&p) + stretches_bytes(&p) + in_row_bytes(&p) + p.patterns * REACH +
         slot_count * slot_bytes(&p);
}

typedef struct job {
  const om_ctx *ctx;
  const om_conv_windows *w;
  const plan *p;
  group *groups;
  stretch *stretches;
  stretch *in_row; /* of parts of rows: a quad after the other for each, in x's first row */
  uint8_t *patterns;
  uint8_t *slots;
  size_t image;
  uint8_t flip; /* what gives x the sign that w has not */
} job;

/* ---- Patterns ---- */

/* The place in x of a result's place along an axis and a tap; outside of x: negative. */
static int64_t place_of(const om_conv_axis *a, size_t result, size_t tap) {
  const int64_t at = (int64_t)result * a->in_step + a->tap_first + (int64_t)tap * a->tap_step;
  return at < a->in ? at : -1;
}

/* The quad at (ky, kx) of the group at (y, x): its place and its pattern. Of a part of a row they
 * are those in a row of x. */
static stretch fill_pattern(const plan *p,
                            const group *g,
                            size_t y,
                            size_t x,
                            size_t ky,
                            size_t kx,
                            uint8_t pattern[REACH]) {
  uint32_t places[REACH], first = UINT32_MAX;
  for (size_t i = 0; i < REACH; ++i) {
    const size_t lane = i / 4, tap = kx + i % 4;
    places[i] = UINT32_MAX;
    if (lane >= g->count || tap >= (size_t)p->ax->taps) continue;
    const int64_t at_y = p->rows > 1 ? place_of(p->ay, y + lane / p->cols, ky) : 0;
    const int64_t at_x = place_of(p->ax, x + lane % p->cols, tap);
    if (at_y < 0 || at_x < 0) continue;
    places[i] = (uint32_t)(at_y * p->ax->in + at_x);
    if (places[i] < first) first = places[i];
  }
  for (size_t i = 0; i < REACH; ++i) {
    pattern[i] = places[i] == UINT32_MAX ? REACH : (uint8_t)(places[i] - first);
  }
  return (stretch){.from = first == UINT32_MAX ? 0 : first};
}

/* Whole rows have patterns of their own. */
static void plan_rows(const job *j) {
  const plan *p = j->p;
  for (size_t i = 0; i < p->bands * p->stretches; ++i) {
    const size_t band = i / p->stretches, quad = i % p->stretches;
    j->stretches[i] = fill_pattern(p,
                                   &j->groups[band],
                                   band * p->rows,
                                   0,
                                   quad / p->quads,
                                   quad % p->quads * 4,
                                   j->patterns + i * REACH);
    j->stretches[i].pattern = (uint32_t)(i * REACH);
  }
}

/* Parts of rows have the same in all rows, unless those are padding. */
static void plan_parts(const job *j) {
  const plan *p = j->p;
  const uint32_t padding = (uint32_t)((p->patterns - 1) * REACH);
  stretch *s = j->stretches;
  for (size_t i = 0; i < p->chunks * p->quads; ++i) {
    const size_t chunk = i / p->quads;
    j->in_row[i] = fill_pattern(
        p, &j->groups[chunk], 0, chunk * p->cols, 0, i % p->quads * 4, j->patterns + i * REACH);
    j->in_row[i].pattern = (uint32_t)(i * REACH);
  }
  for (size_t i = 0; i < p->bands * p->chunks; ++i) {
    const stretch *in_row = j->in_row + i % p->chunks * p->quads;
    for (size_t ky = 0; ky < (size_t)p->ay->taps; ++ky) {
      const int64_t at = place_of(p->ay, i / p->chunks, ky);
      for (size_t quad = 0; quad < p->quads; ++quad) {
        *s = (stretch){.pattern = padding};
        if (at >= 0) *s = in_row[quad];
        if (at >= 0) s->from += (uint32_t)(at * p->ax->in);
        ++s;
      }
    }
  }
}

static void plan_groups(const job *j) {
  const plan *p = j->p;
  const size_t width = (size_t)p->ax->count;
  for (size_t i = 0; i < p->bands * p->chunks; ++i) {
    const size_t y = i / p->chunks * p->rows, x = i % p->chunks * p->cols;
    const size_t rows = at_most((size_t)p->ay->count - y, p->rows);
    j->groups[i] = (group){.out = (uint32_t)(y * width + x),
                           .count = (uint32_t)(rows * at_most(width - x, p->cols))};
  }
  memset(j->patterns + (p->patterns - 1) * REACH, REACH, REACH);
  if (p->rows > 1) {
    plan_rows(j);
  } else {
    plan_parts(j);
  }
}

/* ---- Channels ---- */

#  define TARGET __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vnni")))

typedef struct channel { /* while it is computed */
  const uint8_t *x;
  uint8_t *y, *y_end; /* up to where may be written */
  const uint8_t *w;
  size_t number; /* of all groups */
  uint8_t *met;
  float *floats;
  int32_t *weights; /* by quads */
  uint16_t *doubts; /* bit i of a group's: its result i is doubtful */
} channel;

/* Which text a channel takes: constants of its copies. */
typedef struct form {
  bool is_w_signed, flips;
  bool is_short;    /* of the plan */
  size_t stretches; /* likewise; 0: any number */
} form;

/* The bytes of a quad for all lanes. */
TARGET static inline __attribute__((always_inline)) __m512i
load_quad(const job *j, const uint8_t *x, const stretch *s, form f, __m512i padding) {
  const uint8_t *from = x + s->from;
  const __m512i places = _mm512_loadu_si512(j->patterns + s->pattern);
  const __m512i bytes =
      f.is_short ? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)(const void *)from))
                 : _mm512_loadu_si512(from);
  const __m512i quad = _mm512_permutex2var_epi8(bytes, places, padding);
  return f.flips ? _mm512_xor_si512(quad, _mm512_set1_epi8((char)j->flip)) : quad;
}

/* One to four bytes, with zeros behind them. */
static inline int32_t load_taps(const uint8_t *w, size_t count) {
  const uint32_t second = count > 1 ? w[1] : 0, third = count > 2 ? w[2] : 0;
  return (int32_t)(w[0] | second << 8 | third << 16 | (count > 3 ? (uint32_t)w[3] : 0) << 24);
}

static void list_weights(const plan *p, const uint8_t *w, int32_t *weights) {
  const size_t taps = (size_t)p->ax->taps;
  for (size_t ky = 0; ky < (size_t)p->ay->taps; ++ky, w += taps) {
    for (size_t kx = 0; kx < taps; kx += 4) *weights++ = load_taps(w + kx, at_most(taps - kx, 4));
  }
}

/* The float results of the lanes that bits name. */
static void settle(const job *j, const channel *c, size_t at, uint32_t bits) {
  const plan *p = j->p;
  const om_conv_bytes *conv = j->w->c;
  for (; bits != 0; bits &= bits - 1) {
    const size_t lane = (size_t)__builtin_ctz(bits);
    const stretch *s = j->stretches + at * p->stretches;
    for (size_t k = 0; k < p->terms; ++k) {
      const size_t ky = k / (size_t)p->ax->taps, kx = k % (size_t)p->ax->taps;
      const stretch *own = s + ky * p->quads + kx / 4;
      const uint8_t place = j->patterns[own->pattern + lane * 4 + kx % 4];
      c->met[k] = place == REACH ? (uint8_t)conv->x_zero : c->x[own->from + place];
    }
    c->y[j->groups[at].out + lane] = om_doubt_settle(conv, c->number, p->terms, c->met, c->floats);
  }
}

/* By bits: results that floats might round to another whole number. */
TARGET static inline uint32_t find_doubts(__m512 kept, __m512 rounded, __m512 limit) {
  const __m512 away = _mm512_abs_ps(_mm512_sub_ps(kept, rounded));
  return _mm512_cmp_ps_mask(away, limit, _CMP_NLT_UQ);
}

/* True: there are doubtful results. */
TARGET static inline __attribute__((always_inline)) bool run_channel(const job *j,
                                                                     const channel *c,
                                                                     form f) {
  const plan *p = j->p;
  const om_conv_bytes *conv = j->w->c;
  const int32_t least = (conv->is_y_signed ? INT8_MIN : 0) - conv->y_zero;
  const int32_t most = (conv->is_y_signed ? INT8_MAX : UINT8_MAX) - conv->y_zero;
  const __m512 low = _mm512_set1_ps((float)least), high = _mm512_set1_ps((float)most);
  const __m512 shift = _mm512_set1_ps(0x1.8p23f); /* its addition rounds (om_byte_group.inc) */
  const __m512i back = _mm512_set1_epi32(conv->y_zero - 0x4b400000);
  const __m512i padding = _mm512_set1_epi8((char)conv->x_zero);
  const __m512i add = _mm512_set1_epi32((int32_t)j->w->adds[c->number]);
  const __m512 factor = _mm512_set1_ps(conv->factors[c->number]);
  const __m512 limit = _mm512_set1_ps(conv->floats ? j->w->limits[c->number] : 1.0f);
  const size_t stretches = f.stretches > 0 ? f.stretches : p->stretches;
  const stretch *s = j->stretches;
  uint32_t any = 0;
  list_weights(p, c->w, c->weights);
  const int32_t *restrict weights = c->weights; /* no result is stored there */
  for (size_t i = 0; i < p->bands * p->chunks; ++i) {
    const group g = j->groups[i];
    __m512i sum = add;
    OM_UNROLL for (size_t q = 0; q < stretches; ++q, ++s) {
      const __m512i quad = load_quad(j, c->x, s, f, padding), w = _mm512_set1_epi32(weights[q]);
      sum = f.is_w_signed ? _mm512_dpbusd_epi32(sum, quad, w) : _mm512_dpbusd_epi32(sum, w, quad);
    }
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor);
    const __m512 kept = _mm512_max_ps(_mm512_min_ps(x, high), low);
    const __m512 shifted = _mm512_add_ps(kept, shift);
    const __m512i whole = _mm512_add_epi32(_mm512_castps_si512(shifted), back);
    uint8_t *y = c->y + g.out;
    if ((size_t)(c->y_end - y) >= LANES) { /* what is written behind it comes later */
      _mm_storeu_si128((__m128i_u *)(void *)y, _mm512_cvtepi32_epi8(whole));
    } else {
      const __mmask16 own = (__mmask16)((1u << g.count) - 1);
      _mm512_mask_cvtepi32_storeu_epi8(y, own, whole);
    }
    if (!conv->floats) continue;
    const uint32_t found = find_doubts(kept, _mm512_sub_ps(shifted, shift), limit);
    const uint32_t bits = found & ((1u << g.count) - 1);
    c->doubts[i] = (uint16_t)bits;
    any |= bits;
  }
  return any != 0;
}

#  define OM_FORM(name, ...)                                        \
    TARGET static bool run_##name(const job *j, const channel *c) { \
      return run_channel(j, c, (form){__VA_ARGS__});                \
    }
OM_FORM(any_signed, .is_w_signed = true, .flips = true)
OM_FORM(any_unsigned, .flips = true)
OM_FORM(3_short, .is_w_signed = true, .is_short = true, .stretches = 3)
OM_FORM(3_long, .is_w_signed = true, .stretches = 3)

typedef bool (*channel_fn)(const job *j, const channel *c);

static channel_fn form_of(const job *j) {
  if (!j->w->c->is_w_signed) return run_any_unsigned;
  if (j->flip != 0 || j->p->stretches != 3) return run_any_signed;
  return j->p->is_short ? run_3_short : run_3_long;
}

static void run_slots(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const plan *p = j->p;
  const om_conv_bytes *conv = j->w->c;
  const channel_fn run = form_of(j);
  const size_t channels = (size_t)conv->pass->groups, images = (size_t)conv->pass->batch;
  for (size_t i = begin; i < end; ++i) {
    uint8_t *slot = j->slots + i * slot_bytes(p);
    channel c = {.floats = (float *)(void *)slot,
                 .weights = (int32_t *)(void *)(slot + OM_DOUBT_FLOATS * sizeof(float)),
                 .number = channels * i / j->w->slot_count};
    c.met = (uint8_t *)c.weights + WEIGHTS_BYTES;
    c.doubts = (uint16_t *)(void *)(c.met + met_bytes(p));
    uint8_t *plane = (uint8_t *)c.doubts + doubts_bytes(p);
    const size_t last = channels * (i + 1) / j->w->slot_count;
    const size_t first_of_image = j->image * channels;
    c.y_end = conv->y + (first_of_image + last) * p->results;
    for (; c.number < last && !om_is_cancelled(j->ctx); ++c.number) {
      const size_t at = first_of_image + c.number;
      c.x = conv->x + at * p->plane;
      c.y = conv->y + at * p->results;
      c.w = conv->w + c.number * p->terms;
      if ((images * channels - at) * p->plane < p->plane + REACH) { /* nothing behind x is read */
        memcpy(plane, c.x, p->plane);
        c.x = plane;
      }
      if (!run(j, &c)) continue;
      for (size_t g = 0; g < p->bands * p->chunks; ++g) settle(j, &c, g, c.doubts[g]);
    }
  }
}

void om_conv_windows_run(om_ctx *ctx, const om_conv_windows *w, void *scratch) {
  const om_conv_bytes *c = w->c;
  const plan p = plan_of(c->pass);
  job j = {.ctx = ctx,
           .w = w,
           .p = &p,
           .groups = scratch,
           .flip = c->is_x_signed == c->is_w_signed ? 0x80 : 0};
  j.stretches = (stretch *)(void *)((uint8_t *)scratch + groups_bytes(&p));
  j.in_row = (stretch *)(void *)((uint8_t *)j.stretches + stretches_bytes(&p));
  j.patterns = (uint8_t *)j.in_row + in_row_bytes(&p);
  j.slots = j.patterns + p.patterns * REACH;
  plan_groups(&j);
  for (; j.image < (size_t)c->pass->batch; ++j.image) {
    om_parallel_for(ctx, w->slot_count, 1, run_slots, &j);
  }
}

#else

bool om_conv_windows_fit(const om_conv_pass *pass) {
  (void)pass;
  return false;
}

size_t om_conv_windows_scratch(const om_conv_pass *pass, size_t slot_count) {
  (void)pass;
  (void)slot_count;
  return 0;
}

void om_conv_windows_run(om_ctx *ctx, const om_conv_windows *w, void *scratch) {
  (void)ctx;
  (void)w;
  (void)scratch;
}
#endif
