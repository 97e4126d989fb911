/* Convolutions, inside always with the channels last. Operands with the channels first are turned
 * before and after. A window's row over few channels is one run of terms; where the input is padded
 * along that row, it gets its pads in scratch. */
#include "cpu/exact/om_conv.h"
#include "cpu/fast/om_fast_pass.h"

_Static_assert((int)OM_FAST_AXES == (int)OM_CONV_AXES, "the same axes");

enum { FEW_CHANNELS = 16 };

/* ---- Passes ---- */

/* How many phases an axis has. */
static int64_t phases_of(const om_fast_conv *c, int axis) {
  if (!c->is_transposed) return 1;
  return c->stride[axis] < c->out[axis] ? c->stride[axis] : c->out[axis];
}

static om_conv_axis axis_of(const om_fast_conv *c, int i, int64_t first) {
  return c->is_transposed ? om_conv_axis_transposed(c->in[i],
                                                    c->out[i],
                                                    c->kernel[i],
                                                    c->stride[i],
                                                    c->dilation[i],
                                                    c->pad_begin[i],
                                                    first)
                          : om_conv_axis_forward(c->in[i],
                                                 c->out[i],
                                                 c->kernel[i],
                                                 c->stride[i],
                                                 c->dilation[i],
                                                 c->pad_begin[i]);
}

/* 24 channels are three vectors of 8, each in one line of the cache. Two of 16 overlap, and every
 * other one lies across two lines. */
static const om_tile_set *set_apart(size_t channels) {
  return om_tile_set_for(channels == 24 ? 8 : channels);
}

static bool is_apart(const om_fast_conv *c) {
  return c->groups > 1 && c->groups == c->in_channels && c->groups == c->out_channels &&
         om_tile_set_for((size_t)c->groups);
}

/* Weights are [groups * out, in, kernel...], those of a ConvTranspose [groups * in, out,
 * kernel...]. */
static om_fast_order order_of(const om_fast_conv *c,
                              const om_conv_axis axes[OM_FAST_AXES],
                              const om_fast_kernel *kernel) {
  const int64_t in = c->in_channels / c->groups;
  const int64_t out = c->out_channels / c->groups;
  om_fast_order o;
  int64_t stride = 1;
  memset(&o, 0, sizeof o); /* compared as a whole */
  for (int i = OM_FAST_AXES; i-- > 0; stride *= c->kernel[i]) {
    o.taps[i] = axes[i].taps;
    o.tap_strides[i] = axes[i].kernel_step * stride;
    o.first += axes[i].kernel_first * stride;
  }
  o.groups = c->groups;
  o.cols = out;
  o.depth = in;
  o.group_stride = stride * in * out;
  o.col_stride = c->is_transposed ? stride : stride * in;
  o.depth_stride = c->is_transposed ? stride * out : stride;
  o.width = 2 * (int64_t)kernel->set->lanes;
  if (kernel->is_apart) {
    o.col_stride = o.group_stride;
    o.cols = o.width = c->groups;
    o.groups = 1;
  }
  if (om_fast_winograd_suits(c)) {
    o.is_winograd = 1;
    o.taps[1] = o.taps[2] = 4;
  }
  return o;
}

/* Elements from one place along each axis to the next, with the channels last. */
static void place_strides(const int64_t *extents, int64_t channels, int64_t *out_strides) {
  for (int i = OM_FAST_AXES; i-- > 0; channels *= extents[i]) out_strides[i] = channels;
}

/* The results whose taps all lie inside of the input. */
static void set_inside(const om_conv_axis *a, int axis, om_fast_pass *pass) {
  const int64_t last = (a->taps - 1) * a->tap_step;
  const int64_t least = pass->in_first[axis] + (last < 0 ? last : 0);
  const int64_t room = pass->in[axis] - 1 - pass->in_first[axis] - (last < 0 ? 0 : last);
  int64_t begin = least < 0 ? (-least + a->in_step - 1) / a->in_step : 0;
  int64_t end = room < 0 ? 0 : room / a->in_step + 1;
  if (end > a->count) end = a->count;
  if (begin > end) begin = end;
  pass->inside_begin[axis] = begin;
  pass->inside_end[axis] = end;
  if (begin > 0 || end < a->count) pass->is_all_inside = false;
}

static om_status add_taps(om_ctx *ctx, const om_conv_axis axes[OM_FAST_AXES], om_fast_pass *pass) {
  om_status st = OM_OK;
  size_t at = 0;
  pass->tap_count = (size_t)(axes[0].taps * axes[1].taps * axes[2].taps);
  OM_GO_NEW(pass->taps, pass->tap_count);
  for (int64_t i = 0; i < axes[0].taps; ++i) {
    for (int64_t j = 0; j < axes[1].taps; ++j) {
      for (int64_t k = 0; k < axes[2].taps; ++k) {
        const int64_t places[] = {i * axes[0].tap_step, j * axes[1].tap_step, k * axes[2].tap_step};
        om_tile_tap *tap = &pass->taps[at++];
        for (int axis = 0; axis < OM_FAST_AXES; ++axis) {
          tap->at[axis] = (int32_t)places[axis];
          tap->offset += places[axis] * pass->x_strides[axis];
        }
      }
    }
  }
  pass->is_all_inside = true;
  for (int axis = 0; axis < OM_FAST_AXES; ++axis) set_inside(&axes[axis], axis, pass);
done:
  return st;
}

static void describe(const om_fast_conv *c,
                     const om_conv_axis axes[OM_FAST_AXES],
                     om_fast_pass *pass) {
  int64_t y_strides[OM_FAST_AXES];
  place_strides(c->in, c->in_channels, pass->x_strides);
  place_strides(c->out, c->out_channels, y_strides);
  for (int i = 0; i < OM_FAST_AXES; ++i) {
    pass->count[i] = axes[i].count;
    pass->in[i] = c->in[i];
    pass->in_step[i] = axes[i].in_step;
    pass->in_first[i] = axes[i].tap_first;
    pass->y_first += axes[i].out_first * y_strides[i];
    pass->y_strides[i] = axes[i].out_step * y_strides[i];
    pass->residual_strides[i] = pass->y_strides[i];
  }
  pass->residual_first = pass->y_first;
  pass->residual_step = 1;
  pass->batch_axes = 1;
  pass->batch[0] = c->batch;
  pass->x_steps[0] = c->in[0] * pass->x_strides[0];
  pass->y_steps[0] = pass->residual_steps[0] = c->out[0] * y_strides[0];
  pass->depth = (size_t)(c->in_channels / c->groups);
}

/* A window of one element that goes over all elements needs no grid: its rows follow each other. */
static void flatten(om_fast_pass *pass) {
  int64_t count = 1;
  if (pass->tap_count != 1 || !pass->is_all_inside) return;
  for (int i = 0; i < OM_FAST_AXES; ++i, count *= pass->count[i - 1]) {
    if (pass->in_step[i] != 1 || pass->in_first[i] != 0 || pass->in[i] != pass->count[i]) return;
  }
  if (pass->y_strides[0] != pass->y_strides[1] * pass->count[1] ||
      pass->y_strides[1] != pass->y_strides[2] * pass->count[2]) {
    return;
  }
  for (int i = 0; i < OM_FAST_AXES; ++i) {
    pass->count[i] = pass->in[i] = pass->inside_end[i] = i == 2 ? count : 1;
  }
}

/* ---- Operands in scratch ---- */

typedef struct turn_axes { /* of a copy: the batch is axis 0 */
  int channel, place;
} turn_axes;

/* A copy of operands that lie in `places` and `channels` order; the source's strides and extents.
 */
static void describe_turn(const om_fast_conv *c,
                          const int64_t *extents,
                          int64_t channels,
                          bool is_channels_last,
                          turn_axes *out_axes,
                          om_strided *out_turn) {
  const int64_t places = extents[0] * extents[1] * extents[2];
  *out_axes = (turn_axes){.channel = is_channels_last ? 4 : 1, .place = is_channels_last ? 1 : 2};
  *out_turn = (om_strided){.rank = 2 + OM_FAST_AXES};
  int64_t stride = is_channels_last ? channels : 1;
  for (int i = OM_FAST_AXES; i-- > 0; stride *= extents[i]) {
    out_turn->extents[out_axes->place + i] = extents[i];
    out_turn->source_strides[out_axes->place + i] = stride;
  }
  out_turn->extents[0] = c->batch;
  out_turn->source_strides[0] = places * channels;
  out_turn->extents[out_axes->channel] = channels;
  out_turn->source_strides[out_axes->channel] = is_channels_last ? 1 : places;
}

/* Lets the pass read windows' rows as runs of terms; true: x needs its pads along them. */
static bool join_rows(const om_fast_conv *c, om_conv_axis axes[OM_FAST_AXES], om_fast_pass *pass) {
  if (c->is_transposed || c->groups > 1 || c->in_channels > FEW_CHANNELS) return false;
  if (axes[2].taps < 2 || axes[2].tap_step != 1) return false;
  const int64_t reach = (axes[2].count - 1) * axes[2].in_step + axes[2].taps;
  const bool is_padded = axes[2].tap_first < 0 || axes[2].tap_first + reach > c->in[2];
  pass->depth *= (size_t)axes[2].taps;
  axes[2].taps = 1;
  if (!is_padded) return false;
  for (int i = 0; i < OM_FAST_AXES; ++i) { /* all pads, when it has to be copied */
    const int64_t last = (axes[i].taps - 1) * axes[i].tap_step;
    pass->in[i] = i == 2 ? reach : (axes[i].count - 1) * axes[i].in_step + last + 1;
    pass->in_first[i] = 0;
  }
  place_strides(pass->in, c->in_channels, pass->x_strides);
  pass->x_steps[0] = pass->in[0] * pass->x_strides[0];
  return true;
}

static void turn_x(const om_fast_conv *c, bool is_padded, om_fast_kernel *kernel) {
  const om_fast_pass *pass = kernel->passes;
  om_strided *turn = &kernel->x_turn;
  turn_axes axes;
  const int64_t places = c->in[0] * c->in[1] * c->in[2];
  const bool is_turned = !c->is_channels_last && c->in_channels > 1 && places > 1;
  if (!is_padded && !is_turned) return;
  kernel->turns_x = true;
  describe_turn(c, c->in, c->in_channels, !is_turned, &axes, turn);
  turn->target_strides[0] = pass->x_steps[0];
  turn->target_strides[axes.channel] = 1;
  memcpy(turn->target_strides + axes.place, pass->x_strides, sizeof pass->x_strides);
  if (is_padded) {
    for (int i = 0; i < OM_FAST_AXES; ++i) {
      const int64_t room = pass->in[i] - c->pad_begin[i];
      turn->target_offset += c->pad_begin[i] * pass->x_strides[i];
      if (c->in[i] > room) turn->extents[axes.place + i] = room > 0 ? room : 0;
    }
  }
  om_strided_simplify(turn);
  kernel->x_bytes = om_size_align((size_t)(c->batch * pass->x_steps[0]) * sizeof(float), 64);
}

static void turn_y(const om_fast_conv *c, om_fast_kernel *kernel) {
  om_strided *turn = &kernel->y_turn;
  turn_axes axes;
  const int64_t places = c->out[0] * c->out[1] * c->out[2];
  if (c->is_channels_last || c->out_channels == 1 || places == 1) return;
  kernel->turns_y = true;
  describe_turn(c, c->out, c->out_channels, false, &axes, turn);
  memcpy(turn->target_strides, turn->source_strides, sizeof turn->target_strides);
  turn->source_strides[axes.channel] = 1;
  place_strides(c->out, c->out_channels, turn->source_strides + axes.place);
  om_strided_simplify(turn);
  kernel->y_bytes =
      om_size_align((size_t)(c->batch * places * c->out_channels) * sizeof(float), 64);
}

/* ---- Create ---- */

static om_status add_pass(om_ctx *ctx,
                          om_fast *fast,
                          const om_fast_conv *c,
                          const int64_t first[OM_FAST_AXES],
                          om_fast_kernel *kernel,
                          om_fast_pass *pass) {
  om_conv_axis axes[OM_FAST_AXES];
  for (int i = 0; i < OM_FAST_AXES; ++i) axes[i] = axis_of(c, i, first[i]);
  pass->order = order_of(c, axes, kernel);
  OM_TRY(om_fast_pack_get(ctx, fast, &c->w, &pass->order, kernel, &pass->packed));
  describe(c, axes, pass);
  const bool is_padded = join_rows(c, axes, pass);
  turn_x(c, is_padded, kernel);
  OM_TRY(add_taps(ctx, axes, pass));
  flatten(pass);
  if (pass->order.is_winograd) om_fast_winograd_cut(ctx, kernel);
  return OM_OK;
}

om_status om_fast_conv_create(om_ctx *ctx,
                              om_fast *fast,
                              const om_fast_conv *conv,
                              om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  om_fast_kernel *kernel = NULL;
  int64_t phases[OM_FAST_AXES];
  int64_t count = 1;
  *out_kernel = NULL;
  for (int i = 0; i < OM_FAST_AXES; ++i) count *= phases[i] = phases_of(conv, i);
  OM_GO(om_fast_kernel_new(ctx, &conv->epilogue, (size_t)count, &kernel));
  kernel->is_apart = is_apart(conv);
  if (kernel->is_apart) kernel->set = set_apart((size_t)conv->groups);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first[] = {i / (phases[1] * phases[2]), i / phases[2] % phases[1], i % phases[2]};
    OM_GO(add_pass(ctx, fast, conv, first, kernel, &kernel->passes[i]));
  }
  turn_y(conv, kernel);
  OM_GO(om_fast_kernel_complete(ctx, kernel));
  *out_kernel = kernel;
  kernel = NULL; /* the caller owns it now */
done:
  om_fast_kernel_destroy(ctx, kernel);
  return st;
}
