/* The weights of the portable convolutions: by term, channels in quads; those of a ConvTranspose by
 * phase. Constant ones are packed on the host once a session, others on the device in each run.
 */
#include "abi/conv_pack_params.h"
#include "abi/conv_phases_params.h"
#include "gpu/om_gpu_conv.h"

/* What the host packs: [group][phase][term][channel], channels padded to a multiple of 4. */
typedef struct packing {
  const om_gpu_conv *c;
  const void *weights; /* of the model */
} packing;

/* The phase's taps of one axis, as conv_gemm.comp finds them: the first, and how many. */
static void phase_taps(
    const om_gpu_conv *c, int axis, uint32_t phase, uint32_t *first, uint32_t *count) {
  const om_window *w = c->w;
  *first = *count = 0;
  for (uint32_t k = 0; k < c->kernel_step[axis] && k < w->kernel[axis]; ++k) {
    if ((phase + w->pad_begin[axis] - k * w->dilation[axis]) % w->stride[axis] != 0) continue;
    *first = k;
    *count = ((uint32_t)w->kernel[axis] - 1 - k) / c->kernel_step[axis] + 1;
    return;
  }
}

static void move_elem(
    const om_gpu_conv *c, void *target, size_t to, const void *source, size_t from) {
  if (c->elem_bytes == sizeof(float)) {
    memcpy((char *)target + to * 4, (const char *)source + from * 4, 4);
  } else {
    memcpy((char *)target + to * 2, (const char *)source + from * 2, 2);
  }
}

static void pack_conv(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const om_gpu_conv *c = arg;
  size_t at = 0; /* target is zeroed */
  for (uint32_t group = 0; group < c->shape.group; ++group) {
    for (uint32_t m = 0; m < c->out_channels; ++m) {
      for (uint32_t k = 0; k < c->terms; ++k) {
        move_elem(c, target, ((size_t)group * c->terms + k) * c->columns * 4 + m, source, at++);
      }
    }
  }
}

/* One group and phase of a ConvTranspose's weights [C, M/group, kernel]. */
static void pack_phase(const packing *p, uint32_t group, uint32_t phase, char *to) {
  const om_gpu_conv *c = p->c;
  const om_window *w = c->w;
  const size_t kernel = om_window_elems(w->kernel);
  uint32_t first[OM_WINDOW_AXES];
  uint32_t count[OM_WINDOW_AXES];
  for (int axis = OM_WINDOW_AXES - 1; axis >= 0; --axis) {
    const uint32_t stride = (uint32_t)w->stride[axis];
    phase_taps(c, axis, phase % stride, &first[axis], &count[axis]);
    phase /= stride;
  }
  const uint32_t taps = count[0] * count[1] * count[2];
  for (uint32_t channel = 0; channel < c->in_channels; ++channel) {
    for (uint32_t tap = 0; tap < taps; ++tap, to += c->columns * 4 * c->elem_bytes) {
      const size_t kz = first[0] + tap / count[2] / count[1] * c->kernel_step[0];
      const size_t ky = first[1] + tap / count[2] % count[1] * c->kernel_step[1];
      const size_t kx = first[2] + tap % count[2] * c->kernel_step[2];
      const size_t from = ((size_t)group * c->in_channels + channel) * c->out_channels * kernel +
                          (kz * (size_t)w->kernel[1] + ky) * (size_t)w->kernel[2] + kx;
      for (uint32_t m = 0; m < c->out_channels; ++m) {
        move_elem(c, to, m, p->weights, from + m * kernel);
      }
    }
  }
}

static void pack_transposed(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const om_gpu_conv *c = arg;
  const packing p = {c, source};
  for (uint32_t group = 0; group < c->shape.group; ++group) {
    for (uint32_t phase = 0; phase < c->phases; ++phase) {
      const size_t slice = (size_t)group * c->phases + phase;
      pack_phase(
          &p, group, phase, (char *)target + slice * c->terms * c->columns * 4 * c->elem_bytes);
    }
  }
}

static om_conv_phases_params phases_params(const om_gpu_conv *c, uint64_t bytes) {
  const om_window *w = c->w;
  om_conv_phases_params params = {
      .in_channels = c->in_channels,
      .out_channels = c->out_channels,
      .columns = c->columns * 4,
      .rows = c->terms,
      .elems = (uint32_t)(bytes / c->elem_bytes),
  };
  uint32_t axes[5][OM_WINDOW_AXES];
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    axes[0][i] = (uint32_t)w->kernel[i];
    axes[1][i] = (uint32_t)w->stride[i];
    axes[2][i] = (uint32_t)w->pad_begin[i];
    axes[3][i] = (uint32_t)w->dilation[i];
    axes[4][i] = c->kernel_step[i];
  }
  memcpy(&params.kernel_d, axes, sizeof axes);
  return params;
}

/* Packs weights that are made during the run. */
static om_gpu_operand pack_on_device(om_gpu_binder *b, const om_gpu_conv *c, uint64_t bytes) {
  const om_conv_phases_params phases = phases_params(c, bytes);
  const om_conv_pack_params params = {
      .out_channels = phases.out_channels,
      .columns = phases.columns,
      .rows = phases.rows,
      .elems = phases.elems,
  };
  const om_gpu_operand packed = om_gpu_scratch(b, bytes);
  const om_gpu_operand weights = om_gpu_read(b, 1);
  const bool has_phases = c->shape.is_transposed;
  const bool is_half = c->dtype == OM_DTYPE_F16;
  static const om_shader shaders[2][2] = {
      {OM_SHADER_CONV_PACK, OM_SHADER_CONV_PACK_HALF},
      {OM_SHADER_CONV_PHASES, OM_SHADER_CONV_PHASES_HALF},
  };
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shaders[has_phases][is_half]);
  if (!d) return packed;
  d->params_bytes = has_phases ? sizeof phases : sizeof params;
  memcpy(d->params, has_phases ? (const void *)&phases : &params, d->params_bytes);
  d->operands[0] = weights;
  d->operands[1] = packed;
  d->operand_count = 2;
  om_gpu_spread_groups(b, om_gpu_pieces(params.elems, OM_CONV_FLAT_THREADS), d->groups);
  return packed;
}

const char *om_gpu_packed_conv(om_gpu_binder *b,
                               const om_gpu_conv *c,
                               om_gpu_operand *out_weights) {
  const om_tensor *weights = om_gpu_input(b, 1);
  const uint64_t bytes =
      (uint64_t)c->shape.group * c->phases * c->terms * c->columns * 4 * c->elem_bytes;
  if (bytes > om_gpu_binder_limits(b)->max_binding_bytes || bytes > UINT32_MAX) {
    return om_gpu_reason(b,
                         "its packed weights of %llu bytes are above the device's binding limit",
                         (unsigned long long)bytes);
  }
  if (!weights->data) {
    *out_weights = pack_on_device(b, c, bytes);
  } else if (c->shape.is_transposed) {
    *out_weights = om_gpu_made_once(b, 1, "phases", bytes, pack_transposed, c);
  } else if (c->shape.group == 1) {
    *out_weights = om_gpu_made_constant(b, 1, "conv weights by term", bytes, pack_conv, c);
  } else { /* the recipe would have to name the group */
    *out_weights = om_gpu_made_once(b, 1, "groups", bytes, pack_conv, c);
  }
  return NULL;
}
