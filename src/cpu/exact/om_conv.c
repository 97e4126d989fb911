/* What a convolution's pass is, its element types, and which of two ways it goes.
 *
 * With many channels it is a product: a tile of pixels is gathered into panels, which each channel
 * multiplies by its weights (om_conv_pass.inc). With few, gathering would cost more than the
 * product: then a band of input is copied with its padding around it, where each tap is a
 * constant distance (om_conv_direct.inc). One pixel is a product by a matrix that is turned
 * (om_matmul.h). Each result keeps its own order of terms in every way.
 */
#include "cpu/exact/om_conv.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_matmul.h"
#include "cpu/exact/om_product_group.h"

int64_t om_conv_terms(const om_conv_pass *pass) {
  int64_t terms = pass->in_channels;
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) terms *= pass->axes[axis].taps;
  return terms;
}

om_conv_axis om_conv_axis_forward(
    int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  return (om_conv_axis){
      .in = in,
      .out = out,
      .kernel = kernel,
      .count = out,
      .in_step = stride,
      .out_step = 1,
      .taps = kernel,
      .tap_first = -pad,
      .tap_step = dilation,
      .kernel_step = 1,
  };
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

om_conv_axis om_conv_axis_transposed(int64_t in,
                                     int64_t out,
                                     int64_t kernel,
                                     int64_t stride,
                                     int64_t dilation,
                                     int64_t pad,
                                     int64_t out_first) {
  const int64_t divisor = greatest_divisor(stride, dilation);
  om_conv_axis axis = {
      .in = in,
      .out = out,
      .kernel = kernel,
      .count = out > out_first ? (out - out_first - 1) / stride + 1 : 0,
      .in_step = 1,
      .out_first = out_first,
      .out_step = stride,
      .tap_step = -(dilation / divisor),
      .kernel_step = stride / divisor,
  };
  /* The tap k hits the input element (out_first + pad - k * dilation) / stride, if that is whole.
   * The remainders repeat after stride / divisor taps. */
  for (int64_t k = 0; k < axis.kernel_step && k < kernel; ++k) {
    const int64_t position = out_first + pad - k * dilation;
    if (position % stride != 0) continue;
    axis.kernel_first = k;
    axis.tap_first = position / stride;
    axis.taps = (kernel - 1 - k) / axis.kernel_step + 1;
    break;
  }
  return axis;
}

enum {
  LANES = OM_GROUP_LANES,
  RUN = 8,          /* elements moved at a time */
  FEW_CHANNELS = 7, /* of a group, up to which the direct way is taken */
  MAX_SLOTS = 32,   /* pieces of parallel work, each with its own scratch */
};

static int64_t at_most(int64_t value, int64_t most) {
  return value < most ? value : most;
}

static size_t slots_of(int64_t items) {
  return (size_t)at_most(items, MAX_SLOTS);
}

/* Whether each result reads the element that stands at its own place. */
static bool is_pointwise(const om_conv_axis *a) {
  return a->taps == 1 && a->tap_first == 0 && a->in_step == 1 && a->out_step == 1 &&
         a->out_first == 0 && a->count == a->in && a->count == a->out;
}

/* The same pass with neighbouring pointwise axes as one, so that rows are as long as they can be.
 */
static om_conv_pass flatten(const om_conv_pass *pass) {
  om_conv_pass flat = *pass;
  for (int axis = 0; axis + 1 < OM_CONV_AXES; ++axis) {
    om_conv_axis *outer = &flat.axes[axis];
    om_conv_axis *inner = &flat.axes[axis + 1];
    if (!is_pointwise(outer) || !is_pointwise(inner)) continue;
    inner->in = inner->out = inner->count = outer->count * inner->count;
    outer->in = outer->out = outer->count = 1;
  }
  return flat;
}

/* ---- One pixel ---- */

/* Whether a result is all channels by one row of the weights. */
static bool is_row(const om_conv_pass *pass) {
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
    if (!is_pointwise(&pass->axes[axis]) || pass->axes[axis].count != 1) return false;
  }
  return pass->groups == 1;
}

/* y [batch, out_channels] = x [batch, in_channels] by the weights. */
static om_matmul product_of(const om_conv_pass *pass) {
  const size_t depth = (size_t)pass->in_channels;
  return (om_matmul){.rows = (size_t)pass->batch,
                     .cols = (size_t)pass->out_channels,
                     .depth = depth,
                     .a_row_stride = depth,
                     .a_depth_stride = 1,
                     .b_depth_stride = 1,
                     .b_col_stride = depth};
}

/* ---- Tiles of pixels ---- */

enum {
  PANELS = 4,
  TILE_PIXELS = PANELS * LANES, /* neighbours in the flattened result */
  TILE_CHANNELS = 256,          /* their totals are 64 KiB of floats */
  LISTED_TERMS = 4096,          /* up to here all terms are listed once: 128 KiB */
};

/* Consecutive pixels of a panel in one row of results. */
typedef struct segment {
  uint32_t first_lane;      /* of the tile */
  uint32_t lane_count;      /* at most LANES */
  bool is_inside;           /* every tap of every lane hits an element */
  int64_t in[OM_CONV_AXES]; /* of its first lane, before a tap's offset */
  int64_t in_offset;        /* the same, in elements of a channel of x */
} segment;

/* Consecutive pixels of a tile that are out_step apart in a channel of y. */
typedef struct out_run {
  uint32_t first_lane;
  uint32_t lane_count;
  int64_t offset;
} out_run;

typedef struct term {
  int64_t offset; /* in x, from the tile's first channel */
  int64_t at[OM_CONV_AXES];
} term;

/* In a slot's scratch. */
typedef struct tile {
  int64_t image;
  int64_t group;
  int64_t channel; /* first one, in the group */
  int64_t channels;
  uint32_t lane_count;
  uint32_t segment_count, run_count;
  segment segments[TILE_PIXELS];
  out_run runs[TILE_PIXELS];
  term terms[OM_PRODUCT_GROUP]; /* of a group, where not all are listed */
} tile;

static int64_t tile_channels(const om_conv_pass *pass) {
  return at_most(pass->out_channels, TILE_CHANNELS);
}

static int64_t pixel_count(const om_conv_pass *pass) {
  return pass->axes[0].count * pass->axes[1].count * pass->axes[2].count;
}

/* Elements of a channel of y. */
static int64_t plane_of(const om_conv_pass *pass) {
  return pass->axes[0].out * pass->axes[1].out * pass->axes[2].out;
}

static int64_t tiles_per_image(const om_conv_pass *pass) {
  return (pixel_count(pass) + TILE_PIXELS - 1) / TILE_PIXELS;
}

static int64_t chunk_count(const om_conv_pass *pass) {
  const int64_t size = tile_channels(pass);
  return size == 0 ? 0 : (pass->out_channels + size - 1) / size;
}

static int64_t tile_count(const om_conv_pass *pass) {
  return pass->batch * pass->groups * chunk_count(pass) * tiles_per_image(pass);
}

/* A slot holds a tile, its panels, and the totals of its channels. */
static size_t tile_slot_bytes(const om_conv_pass *pass, size_t elem_bytes) {
  const size_t rows = (size_t)(OM_PRODUCT_GROUP + tile_channels(pass));
  return om_size_align(sizeof(tile), 64) + rows * TILE_PIXELS * elem_bytes;
}

static bool is_segment_inside(const om_conv_axis *axes, const segment *s) {
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
    const om_conv_axis *a = &axes[axis];
    const int64_t reach = (a->taps - 1) * a->tap_step;
    const int64_t lanes = axis == 2 ? ((int64_t)s->lane_count - 1) * a->in_step : 0;
    const int64_t first = s->in[axis] + a->tap_first;
    if (first + (reach < 0 ? reach : 0) < 0) return false;
    if (first + (reach > 0 ? reach : 0) + lanes >= a->in) return false;
  }
  return true;
}

/* Adds pixels to the last run, if they go on where it ends. */
static void add_run(uint32_t lane, uint32_t count, int64_t offset, int64_t step, tile *t) {
  out_run *last = &t->runs[t->run_count];
  if (t->run_count > 0 && last[-1].offset + last[-1].lane_count * step == offset) {
    last[-1].lane_count += count;
    return;
  }
  *last = (out_run){.first_lane = lane, .lane_count = count, .offset = offset};
  ++t->run_count;
}

static void cut_segments(const om_conv_axis *axes, int64_t pixel, tile *t) {
  t->segment_count = t->run_count = 0;
  for (uint32_t lane = 0; lane < t->lane_count;) {
    segment *s = &t->segments[t->segment_count++];
    const int64_t j[OM_CONV_AXES] = {pixel / (axes[1].count * axes[2].count),
                                     pixel / axes[2].count % axes[1].count,
                                     pixel % axes[2].count};
    const int64_t row_left = axes[2].count - j[2];
    s->first_lane = lane;
    s->lane_count =
        (uint32_t)at_most(at_most(t->lane_count - lane, LANES - lane % LANES), row_left);
    int64_t out_offset = 0;
    s->in_offset = 0;
    for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
      s->in[axis] = j[axis] * axes[axis].in_step;
      s->in_offset = s->in_offset * axes[axis].in + s->in[axis];
      out_offset =
          out_offset * axes[axis].out + axes[axis].out_first + j[axis] * axes[axis].out_step;
    }
    add_run(lane, s->lane_count, out_offset, axes[2].out_step, t);
    s->is_inside = is_segment_inside(axes, s);
    lane += s->lane_count;
    pixel += s->lane_count;
  }
}

static void tile_at(const om_conv_pass *pass, int64_t item, tile *t) {
  const int64_t tiles = tiles_per_image(pass);
  const int64_t chunks = chunk_count(pass);
  const int64_t size = tile_channels(pass);
  const int64_t pixel = item % tiles * TILE_PIXELS;
  item /= tiles;
  t->channel = item % chunks * size;
  t->channels = at_most(pass->out_channels - t->channel, size);
  item /= chunks;
  t->group = item % pass->groups;
  t->image = item / pass->groups;
  t->lane_count = (uint32_t)at_most(pixel_count(pass) - pixel, TILE_PIXELS);
  cut_segments(pass->axes, pixel, t);
}

/* Where the next term of a sum lies. */
typedef struct cursor {
  int64_t channel; /* of the group */
  int64_t tap[OM_CONV_AXES];
} cursor;

static void list_terms(const om_conv_axis *axes, cursor *at, int64_t count, term *terms) {
  for (int64_t i = 0; i < count; ++i) {
    terms[i].offset = at->channel;
    for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
      terms[i].at[axis] = axes[axis].tap_first + at->tap[axis] * axes[axis].tap_step;
      terms[i].offset = terms[i].offset * axes[axis].in + terms[i].at[axis];
    }
    int axis = OM_CONV_AXES - 1;
    for (; axis >= 0 && ++at->tap[axis] == axes[axis].taps; --axis) at->tap[axis] = 0;
    if (axis < 0) ++at->channel;
  }
}

/* ---- Terms that miss the input ---- */

/* Taps [begin, end) of an axis. */
typedef struct tap_range {
  int64_t begin;
  int64_t end;
} tap_range;

static bool reaches_outside(const om_conv_axis *a) {
  const int64_t reach = (a->taps - 1) * a->tap_step;
  const int64_t low = a->tap_first + (reach < 0 ? reach : 0);
  const int64_t high = a->tap_first + (reach > 0 ? reach : 0) + (a->count - 1) * a->in_step;
  return low < 0 || high >= a->in;
}

/* Whether a tile may have groups of nothing but zeros: each adds 0 to a sum that is no -0, so that
 * it can be left out wherever the weights are numbers. */
static bool has_empty_groups(const om_conv_pass *pass) {
  const om_conv_axis *a = pass->axes;
  return a[0].taps * a[1].taps * a[2].taps >= OM_PRODUCT_GROUP &&
         (reaches_outside(&a[0]) || reaches_outside(&a[1]) || reaches_outside(&a[2]));
}

/* Those that hit an element for some result whose place, before a tap's offset, is in low..high. */
static tap_range taps_between(const om_conv_axis *a, int64_t low, int64_t high) {
  const int64_t step = a->tap_step < 0 ? -a->tap_step : a->tap_step;
  int64_t first = -a->tap_first - high; /* offsets that are taken */
  int64_t last = a->in - 1 - a->tap_first - low;
  if (a->tap_step < 0) {
    const int64_t kept = first;
    first = -last;
    last = -kept;
  }
  const tap_range r = {.begin = first <= 0 ? 0 : (first + step - 1) / step,
                       .end = last < 0 ? 0 : at_most(last / step + 1, a->taps)};
  return r;
}

static void tile_taps(const om_conv_axis *axes, const tile *t, tap_range ranges[OM_CONV_AXES]) {
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (uint32_t i = 0; i < t->segment_count; ++i) {
      const segment *s = &t->segments[i];
      const int64_t lanes = axis == 2 ? ((int64_t)s->lane_count - 1) * axes[2].in_step : 0;
      if (s->in[axis] < low) low = s->in[axis];
      if (s->in[axis] + lanes > high) high = s->in[axis] + lanes;
    }
    ranges[axis] = taps_between(&axes[axis], low, high);
  }
}

static cursor term_at(const om_conv_axis *a, int64_t k) {
  return (cursor){
      .channel = k / (a[0].taps * a[1].taps * a[2].taps),
      .tap = {k / (a[1].taps * a[2].taps) % a[0].taps, k / a[2].taps % a[1].taps, k % a[2].taps}};
}

/* The first term at or behind term k whose taps are all in their ranges; `terms`: there is none. */
static int64_t next_term(const om_conv_axis *a,
                         const tap_range ranges[OM_CONV_AXES],
                         int64_t terms,
                         int64_t k) {
  cursor at = term_at(a, k);
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
    if (ranges[axis].begin >= ranges[axis].end) return terms;
  }
  for (int axis = OM_CONV_AXES - 1; axis >= 0; --axis) {
    const bool is_behind = at.tap[axis] >= ranges[axis].end;
    if (!is_behind && at.tap[axis] >= ranges[axis].begin) continue;
    for (int inner = axis; inner < OM_CONV_AXES; ++inner) at.tap[inner] = ranges[inner].begin;
    if (is_behind) ++*(axis > 0 ? &at.tap[axis - 1] : &at.channel);
  }
  k = ((at.channel * a[0].taps + at.tap[0]) * a[1].taps + at.tap[1]) * a[2].taps + at.tap[2];
  return at_most(k, terms);
}

/* ---- Bands of padded input ---- */

enum {
  BAND_ELEMS = 4096, /* about as many of all channels: 16 KiB of floats */
  BAND_COLS = 1024,
  DIRECT_TERMS = OM_PRODUCT_GROUP, /* one group */
};

/* Along an axis the input of results 0..count-1 is count * in_step + ..., an element at
 * low + q * in_step + phase. A tap has a phase, and then only shifts q. */
typedef struct band_axis {
  int64_t count; /* results of a band */
  int64_t bands;
  int64_t low;    /* place in x of q = 0, phase = 0, for the first result */
  int64_t phases; /* that some tap reads */
  int64_t places; /* q, of a band */
} band_axis;

typedef struct band_plan {
  band_axis y, x;
  int64_t plane;   /* elements of one phase of one channel */
  int64_t planes;  /* phases of all channels */
  int64_t results; /* of a band, in rows of x.places: of the last, x.count */
} band_plan;

static band_axis band_axis_of(const om_conv_axis *a, int64_t most) {
  const int64_t reach = (a->taps - 1) * a->tap_step;
  const int64_t span = reach < 0 ? -reach : reach;
  const int64_t bands = most > 1 ? (a->count + most - 1) / most : a->count;
  const int64_t count = bands == 0 ? 0 : (a->count + bands - 1) / bands; /* about equal */
  return (band_axis){.count = count,
                     .bands = count == 0 ? 0 : (a->count + count - 1) / count,
                     .low = a->tap_first + (reach < 0 ? reach : 0),
                     .phases = at_most(a->in_step, span + 1),
                     .places = count + span / a->in_step};
}

static band_plan band_plan_of(const om_conv_pass *pass) {
  const om_conv_axis *axes = pass->axes;
  const int64_t elems = BAND_ELEMS / pass->in_channels; /* of a channel: at least 32 */
  band_plan p = {.x = band_axis_of(&axes[2], elems < BAND_COLS ? elems : BAND_COLS)};
  const int64_t rows = elems / (p.x.places * p.x.phases);
  p.y = band_axis_of(&axes[1], rows / at_most(axes[1].in_step, axes[1].taps));
  p.plane = p.x.places * p.y.places;
  p.planes = pass->in_channels * p.x.phases * p.y.phases;
  p.results = p.x.places * (p.y.count - 1) + p.x.count;
  return p;
}

static bool is_direct(const om_conv_pass *pass) {
  const om_conv_axis *z = &pass->axes[0];
  const int64_t terms = om_conv_terms(pass);
  return pass->out_channels <= FEW_CHANNELS && terms >= 1 && terms <= DIRECT_TERMS &&
         is_pointwise(z) && z->count == 1 && pass->axes[1].count > 0 && pass->axes[2].count > 0;
}

static int64_t band_count(const om_conv_pass *pass) {
  const band_plan p = band_plan_of(pass);
  return pass->batch * pass->groups * p.y.bands * p.x.bands;
}

/* A slot holds the offsets of taps, the planes, and the results of a channel: vectors may go beyond
 * the end of both. */
static size_t band_slot_bytes(const om_conv_pass *pass, size_t elem_bytes) {
  const band_plan p = band_plan_of(pass);
  const size_t elems = om_size_align((size_t)(p.plane * p.planes) + LANES, LANES) +
                       om_size_align((size_t)p.results, LANES);
  return DIRECT_TERMS * sizeof(uint32_t) + elems * elem_bytes;
}

/* How far from a result's place in the planes each term lies. */
static void list_offsets(const om_conv_pass *pass, const band_plan *p, uint32_t *offsets) {
  const om_conv_axis *ay = &pass->axes[1];
  const om_conv_axis *ax = &pass->axes[2];
  for (int64_t channel = 0; channel < pass->in_channels; ++channel) {
    for (int64_t ty = 0; ty < ay->taps; ++ty) {
      const int64_t y = ay->tap_first + ty * ay->tap_step - p->y.low;
      for (int64_t tx = 0; tx < ax->taps; ++tx) {
        const int64_t x = ax->tap_first + tx * ax->tap_step - p->x.low;
        const int64_t plane =
            (channel * p->y.phases + y % ay->in_step) * p->x.phases + x % ax->in_step;
        *offsets++ = (uint32_t)(plane * p->plane + y / ay->in_step * p->x.places + x / ax->in_step);
      }
    }
  }
}

/* ---- Scratch ---- */

/* Of the terms that are listed once, with those of any other pass of the same ConvTranspose. */
static size_t list_bytes(const om_conv_pass *pass) {
  int64_t terms = pass->in_channels;
  for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
    const om_conv_axis *a = &pass->axes[axis];
    terms = at_most(terms, LISTED_TERMS) * ((a->kernel - 1) / a->kernel_step + 1);
  }
  return om_size_align((size_t)at_most(terms, LISTED_TERMS) * sizeof(term), 64); /* as list_all */
}

static size_t own_bytes(const om_conv_pass *flat, size_t elem_bytes) {
  if (is_row(flat)) {
    const om_matmul m = product_of(flat);
    return om_matmul_scratch_bytes(&m, elem_bytes);
  }
  if (is_direct(flat)) return slots_of(band_count(flat)) * band_slot_bytes(flat, elem_bytes);
  return slots_of(tile_count(flat)) * tile_slot_bytes(flat, elem_bytes);
}

/* The axis as another pass of the same ConvTranspose may have it. */
static void shrink_axis(om_conv_axis *a, bool has_fewer_results, bool has_fewer_taps) {
  a->taps = (a->kernel - 1) / a->kernel_step + (has_fewer_taps ? 0 : 1);
  if (has_fewer_results && a->count > 0) --a->count;
}

/* The passes of a ConvTranspose differ by one in their results and taps, and in no more. What tiles
 * need grows with the results; bands are cut anew for each. */
size_t om_conv_scratch_bytes(const om_conv_pass *pass, size_t elem_bytes) {
  om_conv_pass other = flatten(pass);
  size_t most = own_bytes(&other, elem_bytes);
  const size_t tiles =
      list_bytes(pass) + slots_of(tile_count(&other)) * tile_slot_bytes(&other, elem_bytes);
  if (tiles > most) most = tiles;
  for (uint32_t i = 0; i < 16 && pass->axes[2].kernel > 0 && pass->axes[1].kernel > 0; ++i) {
    other = *pass;
    shrink_axis(&other.axes[1], i & 1, i & 2);
    shrink_axis(&other.axes[2], i & 4, i & 8);
    const size_t bytes = is_direct(&other) ? own_bytes(&other, elem_bytes) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* ---- Element types ---- */

#define TYPE       float
#define NAME(name) name##_f32
#include "cpu/exact/om_conv_pass.inc"

#define TYPE       double
#define NAME(name) name##_f64
#include "cpu/exact/om_conv_pass.inc"
