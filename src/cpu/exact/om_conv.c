/* What a convolution's pass is, and its element types.
 *
 * The computation is in om_conv_pass.inc. Each result keeps its own order of terms; many results
 * are computed side by side, which changes nothing in any of them.
 */
#include "cpu/exact/om_conv.h"

#include "base/om_thread.h"
#include "cpu/exact/om_conv_block.h"

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
  LANES = OM_CONV_LANES, /* results of one tile: neighbours in the flattened result */
  BLOCK_TERMS = 32,      /* docs/exact.md */
  GROUP_BLOCKS = 4,      /* docs/exact.md */
  TILE_CHANNELS = 256,   /* of one tile; with LANES, 2 * 16 KiB of float sums stay in the cache */
  MAX_SLOTS = 64,        /* pieces of parallel work, each with its own scratch */
};

static int64_t tile_channels(const om_conv_pass *pass) {
  return pass->out_channels < TILE_CHANNELS ? pass->out_channels : TILE_CHANNELS;
}

static int64_t pixel_count(const om_conv_pass *pass) {
  return pass->axes[0].count * pass->axes[1].count * pass->axes[2].count;
}

static int64_t tiles_per_image(const om_conv_pass *pass) {
  return (pixel_count(pass) + LANES - 1) / LANES;
}

static int64_t chunk_count(const om_conv_pass *pass) {
  const int64_t tile = tile_channels(pass);
  return tile == 0 ? 0 : (pass->out_channels + tile - 1) / tile;
}

static size_t item_count(const om_conv_pass *pass) {
  return (size_t)(pass->batch * pass->groups * chunk_count(pass) * tiles_per_image(pass));
}

static size_t slot_count(const om_conv_pass *pass) {
  const size_t items = item_count(pass);
  return items < MAX_SLOTS ? items : MAX_SLOTS;
}

/* A slot holds a panel of terms, the sums of a block, and the sums of a tile's channels: groups,
 * then totals. */
static size_t slot_elems(const om_conv_pass *pass) {
  return (size_t)(BLOCK_TERMS + OM_CONV_ROWS + 2 * tile_channels(pass)) * LANES;
}

size_t om_conv_scratch_bytes(const om_conv_pass *pass, size_t elem_bytes) {
  return slot_count(pass) * slot_elems(pass) * elem_bytes;
}

/* Consecutive lanes of a tile in one row of results. */
typedef struct segment {
  uint32_t first_lane;
  uint32_t lane_count;
  int64_t in[OM_CONV_AXES]; /* of its first lane, before a tap's offset */
  int64_t out_offset;       /* of its first lane in a channel of y */
} segment;

typedef struct tile {
  int64_t image;
  int64_t group;
  int64_t channel; /* first one, in the group */
  int64_t channels;
  uint32_t lane_count;
  uint32_t segment_count;
  segment segments[LANES];
} tile;

static void tile_at(const om_conv_pass *pass, size_t item, tile *out_tile) {
  const om_conv_axis *axes = pass->axes;
  const int64_t tiles = tiles_per_image(pass);
  const int64_t chunks = chunk_count(pass);
  const int64_t size = tile_channels(pass);
  int64_t rest = (int64_t)item;
  int64_t pixel = rest % tiles * LANES;
  tile *t = out_tile;
  rest /= tiles;
  t->channel = rest % chunks * size;
  t->channels = pass->out_channels - t->channel < size ? pass->out_channels - t->channel : size;
  rest /= chunks;
  t->group = rest % pass->groups;
  t->image = rest / pass->groups;
  const int64_t left = pixel_count(pass) - pixel;
  t->lane_count = left < LANES ? (uint32_t)left : LANES;
  t->segment_count = 0;
  for (uint32_t lane = 0; lane < t->lane_count;) {
    segment *s = &t->segments[t->segment_count++];
    const int64_t j[OM_CONV_AXES] = {pixel / (axes[1].count * axes[2].count),
                                     pixel / axes[2].count % axes[1].count,
                                     pixel % axes[2].count};
    const int64_t row_left = axes[2].count - j[2];
    s->first_lane = lane;
    s->lane_count = t->lane_count - lane;
    if (s->lane_count > row_left) s->lane_count = (uint32_t)row_left;
    s->out_offset = 0;
    for (int axis = 0; axis < OM_CONV_AXES; ++axis) {
      s->in[axis] = j[axis] * axes[axis].in_step;
      s->out_offset =
          s->out_offset * axes[axis].out + axes[axis].out_first + j[axis] * axes[axis].out_step;
    }
    lane += s->lane_count;
    pixel += s->lane_count;
  }
}

#define REAL       float
#define NAME(name) name##_f32
#include "cpu/exact/om_conv_pass.inc"
#undef REAL
#undef NAME

#define REAL       double
#define NAME(name) name##_f64
#include "cpu/exact/om_conv_pass.inc"
#undef REAL
#undef NAME

#define REAL       uint32_t
#define NAME(name) name##_u32
#include "cpu/exact/om_conv_pass.inc"
