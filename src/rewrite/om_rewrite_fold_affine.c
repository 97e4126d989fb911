/* A convolution and what scales and shifts its channels afterwards, with constant weights:
 *
 *     Conv(x, W, B) -> BatchNormalization | Mul by a constant | Add of a constant -> ...
 *     becomes Conv(x, W * s, B * s + t)
 *
 * A constant has one value, or one per channel. s and t are gathered along the chain, value by
 * value and each operation rounded (docs/exact.md), then worked into the weights once:
 *
 *     BatchNormalization  f = scale / sqrt(variance + epsilon), g = bias - mean * f
 *                         s = s * f, t = t * f + g
 *     Mul                 s = s * c, t = t * c
 *     Add                 t = t + c
 *
 * Of float32 it is applied in both modes and for every executor alike, so exact mode stays one
 * definition. Of float16 it is for fast mode: exact mode rounds behind each operator, as the model
 * says. There the new weights are rounded once, and all stays apart where a channel's would leave
 * float16's range or its full precision.
 */
#include <math.h>

#include "base/om_float16.h"
#include "cpu/exact/om_exact_math.h"
#include "rewrite/om_rewrite.h"

/* Weight (row, c, i) belongs to channel group(row) * group_channels + c. Conv has one row and all
 * channels in it; ConvTranspose has a row for each input channel. */
typedef struct conv_shape {
  const om_tensor *weights;
  const om_tensor *bias; /* NULL: none */
  size_t channels;       /* of the output */
  size_t group_channels;
  size_t rows_per_group;
  size_t inner; /* elements of one kernel */
} conv_shape;

enum { MOST_NODES = 16 }; /* of a chain; what is behind them stays */

typedef struct chain {       /* what follows the convolution */
  float *s, *t;              /* scratch; a value per channel */
  bool has_scale, has_shift; /* s, t hold more than 1 and 0 */
  om_value_id result;        /* of the last node */
  om_node_id nodes[MOST_NODES];
  size_t node_count;
} chain;

/* Element `i` of constant data, which may lie anywhere in the model file. */
static float load(om_dtype dtype, const void *data, size_t i) {
  float value;
  uint16_t half;
  if (dtype == OM_DTYPE_F16) {
    memcpy(&half, (const char *)data + i * sizeof half, sizeof half);
    return om_f16_to_f32(half);
  }
  memcpy(&value, (const char *)data + i * sizeof value, sizeof value);
  return value;
}

static void store(om_dtype dtype, void *data, size_t i, float value) {
  if (dtype == OM_DTYPE_F16) {
    ((uint16_t *)data)[i] = om_f16_from_f32(value);
  } else {
    ((float *)data)[i] = value;
  }
}

static float element(const om_tensor *tensor, size_t i) {
  return load(tensor->dtype, tensor->data, i);
}

static bool is_foldable(const om_rewriter *rw, om_dtype dtype) {
  return dtype == OM_DTYPE_F32 || (dtype == OM_DTYPE_F16 && rw->mode == OM_MODE_FAST);
}

/* ---- The convolution ---- */

static const om_tensor *float_vector(const om_rewriter *rw, om_value_id value, size_t count) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  if (!tensor || !is_foldable(rw, tensor->dtype) || tensor->rank != 1) return NULL;
  return tensor->dims[0] == (int64_t)count ? tensor : NULL;
}

/* The same, in memory. */
static om_status get_vector(om_ctx *ctx,
                            const om_rewriter *rw,
                            om_value_id value,
                            size_t count,
                            const om_tensor **out_vector) {
  *out_vector = float_vector(rw, value, count);
  if (!*out_vector) return OM_OK;
  OM_TRY(om_constant_hold(ctx, rw->graph, value));
  *out_vector = om_rewriter_constant(rw, value);
  return OM_OK;
}

/* Conv: weights are [M, C/group, k...]. ConvTranspose: [C, M/group, k...]. */
static om_status match_conv(
    om_ctx *ctx, const om_rewriter *rw, const om_node *conv, conv_shape *shape, bool *out_fits) {
  int64_t groups = 1;
  *out_fits = false;
  if (conv->input_count < 2 || conv->output_count != 1) return OM_OK;
  const om_tensor *w = om_rewriter_constant(rw, conv->inputs[1]);
  if (!w || !is_foldable(rw, w->dtype) || w->rank < 3 || om_tensor_elems(w) == 0) return OM_OK;
  OM_TRY(om_node_attr_int(ctx, conv, "group", 1, &groups));
  if (groups < 1 || groups > w->dims[0] || w->dims[0] % groups != 0) return OM_OK;
  bool is_transposed = strcmp(conv->type, "ConvTranspose") == 0;
  size_t rows = is_transposed ? (size_t)w->dims[0] : 1;
  *shape = (conv_shape){.weights = w};
  shape->group_channels = (size_t)w->dims[is_transposed ? 1 : 0];
  shape->channels = shape->group_channels * (is_transposed ? (size_t)groups : 1);
  shape->rows_per_group = rows / (is_transposed ? (size_t)groups : 1);
  shape->inner = om_tensor_elems(w) / (rows * shape->group_channels);
  *out_fits = true;
  if (conv->input_count > 2 && conv->inputs[2] != OM_NO_VALUE) {
    OM_TRY(get_vector(ctx, rw, conv->inputs[2], shape->channels, &shape->bias));
    *out_fits = shape->bias != NULL;
  }
  return OM_OK;
}

/* ---- What follows ---- */

static void scale_by(chain *f, size_t channel, float factor) {
  f->s[channel] = f->s[channel] * factor;
  if (f->has_shift) f->t[channel] = f->t[channel] * factor;
}

static om_status add_norm(om_ctx *ctx,
                          const om_rewriter *rw,
                          const om_node *norm,
                          const conv_shape *shape,
                          chain *f,
                          bool *out_fits) {
  const om_tensor *params[4];
  int64_t is_training = 0;
  float epsilon;
  *out_fits = false;
  if (norm->opset < 7 || norm->input_count != 5) return OM_OK;
  for (uint32_t i = 1; i < norm->output_count; ++i) {
    if (norm->outputs[i] != OM_NO_VALUE && rw->uses[norm->outputs[i]] > 0) return OM_OK;
  }
  OM_TRY(om_node_attr_int(ctx, norm, "training_mode", 0, &is_training));
  OM_TRY(om_node_attr_float(ctx, norm, "epsilon", 1e-5f, &epsilon));
  if (is_training != 0) return OM_OK;
  for (uint32_t i = 0; i < 4; ++i) {
    OM_TRY(get_vector(ctx, rw, norm->inputs[i + 1], shape->channels, &params[i]));
    if (!params[i]) return OM_OK;
  }
  for (size_t c = 0; c < shape->channels; ++c) {
    /* Each operation rounded on its own, by the exact primitives. */
    float factor = om_div(element(params[0], c), om_sqrt(element(params[3], c) + epsilon));
    float moved = element(params[2], c) * factor;
    float shift = element(params[1], c) - moved;
    scale_by(f, c, factor);
    f->t[c] = f->has_shift ? f->t[c] + shift : shift;
  }
  f->has_scale = f->has_shift = true;
  *out_fits = true;
  return OM_OK;
}

/* A constant that broadcasts over the convolution's result as one value or one per channel, and
 * does not make the result larger. */
static const om_tensor *channel_constant(const om_rewriter *rw,
                                         om_value_id value,
                                         const conv_shape *shape) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  uint32_t rank = shape->weights->rank;
  if (!tensor || tensor->dtype != shape->weights->dtype || tensor->rank > rank) return NULL;
  size_t elems = om_tensor_elems(tensor);
  if (elems == 1) return tensor;
  uint32_t from_end = rank - 1; /* of the channels' axis: the result is [N, M, spatial...] */
  if (elems != shape->channels || tensor->rank < from_end) return NULL;
  return tensor->dims[tensor->rank - from_end] == (int64_t)elems ? tensor : NULL;
}

static om_status add_constant(om_ctx *ctx,
                              const om_rewriter *rw,
                              const om_node *node,
                              const conv_shape *shape,
                              chain *f,
                              bool *out_fits) {
  om_value_id other = node->inputs[0] == f->result ? node->inputs[1] : node->inputs[0];
  bool is_add = strcmp(node->type, "Add") == 0;
  *out_fits = channel_constant(rw, other, shape) != NULL;
  if (!*out_fits) return OM_OK;
  OM_TRY(om_constant_hold(ctx, rw->graph, other));
  const om_tensor *constant = om_rewriter_constant(rw, other);
  for (size_t c = 0; c < shape->channels; ++c) {
    float value = element(constant, om_tensor_elems(constant) == 1 ? 0 : c);
    if (is_add) {
      f->t[c] = f->has_shift ? f->t[c] + value : value;
    } else {
      scale_by(f, c, value);
    }
  }
  if (is_add) f->has_shift = true;
  if (!is_add) f->has_scale = true;
  return OM_OK;
}

/* Takes the node that alone reads the chain's result, if it fits. */
static om_status extend(
    om_ctx *ctx, const om_rewriter *rw, const conv_shape *shape, chain *f, om_node_id *out_node) {
  static const char *const types[] = {"BatchNormalization", "Mul", "Add"};
  om_node_id id = OM_NO_NODE;
  bool does_fit = false;
  *out_node = OM_NO_NODE;
  for (size_t i = 0; id == OM_NO_NODE && i < OM_COUNT_OF(types); ++i) {
    id = om_rewriter_sole_reader(rw, f->result, types[i]);
  }
  if (id == OM_NO_NODE) return OM_OK;
  const om_node *node = &rw->graph->nodes[id];
  if (strcmp(node->type, "BatchNormalization") != 0) {
    if (node->opset >= 7) OM_TRY(add_constant(ctx, rw, node, shape, f, &does_fit));
  } else if (node->inputs[0] == f->result) {
    OM_TRY(add_norm(ctx, rw, node, shape, f, &does_fit));
  }
  if (!does_fit) return OM_OK;
  f->result = node->outputs[0];
  *out_node = id;
  return OM_OK;
}

/* ---- The new weights ---- */

/* Whether values up to this, of a channel, keep float16's bits: the largest is not too small for
 * its 11 bits, nor for those of values 4 times smaller, and not infinite. */
static bool keeps_half(float largest) {
  return largest == 0.0f || (largest >= 0x1p-12f && largest < 65504.0f);
}

/* weights: a copy of the convolution's. False if they do not fit the type. */
static bool scale_weights(const conv_shape *shape, const float *s, void *weights) {
  const om_dtype dtype = shape->weights->dtype;
  bool does_fit = true;
  for (size_t c = 0; c < shape->channels; ++c) {
    float largest = 0;
    size_t first_row = c / shape->group_channels * shape->rows_per_group;
    for (size_t row = first_row; row < first_row + shape->rows_per_group; ++row) {
      size_t at = (row * shape->group_channels + c % shape->group_channels) * shape->inner;
      for (size_t i = at; i < at + shape->inner; ++i) {
        const float value = load(dtype, weights, i) * s[c];
        largest = fmaxf(largest, fabsf(value));
        store(dtype, weights, i, value);
      }
    }
    does_fit = does_fit && (dtype != OM_DTYPE_F16 || keeps_half(largest));
  }
  return does_fit;
}

/* False if they do not fit the type. */
static bool make_biases(const conv_shape *shape, const chain *f, void *biases) {
  const om_dtype dtype = shape->weights->dtype;
  bool does_fit = true;
  for (size_t c = 0; c < shape->channels; ++c) {
    float bias = f->t[c];
    if (shape->bias) {
      const float scaled = element(shape->bias, c) * f->s[c];
      bias = f->has_shift ? scaled + f->t[c] : scaled;
    }
    store(dtype, biases, c, bias);
    does_fit = does_fit && (dtype != OM_DTYPE_F16 || fabsf(bias) < 65504.0f);
  }
  return does_fit;
}

static om_status drop_nodes(om_ctx *ctx, om_rewriter *rw, const om_node *conv, const chain *f) {
  for (size_t i = 0; i < f->node_count; ++i) {
    OM_TRY(
        om_rewriter_drop(ctx, rw, f->nodes[i], "merged into the weights of '%.150s'", conv->name));
  }
  return OM_OK;
}

static om_status replace(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, const conv_shape *shape, const chain *f) {
  const om_node *conv = &rw->graph->nodes[id];
  const om_tensor *w = shape->weights;
  const om_tensor vector = {.dtype = w->dtype, .rank = 1, .dims = {(int64_t)shape->channels}};
  om_value_id inputs[3] = {conv->inputs[0], conv->inputs[1], OM_NO_VALUE};
  bool has_bias = shape->bias || f->has_shift;
  bool does_fit = true;
  void *data;
  if (f->has_scale) {
    const size_t bytes = w->data_bytes;
    OM_TRY(om_constant_ask(ctx, w, 0, bytes));
    OM_TRY(om_rewriter_add_constant(ctx, rw, conv->name, w, &data, &inputs[1]));
    OM_TRY(om_constant_read(ctx, w, 0, bytes, data));
    does_fit = scale_weights(shape, f->s, data);
  }
  if (has_bias) {
    OM_TRY(om_rewriter_add_constant(ctx, rw, conv->name, &vector, &data, &inputs[2]));
    does_fit = make_biases(shape, f, data) && does_fit;
  }
  if (!does_fit) return OM_OK;
  if (f->has_scale) om_graph_constant_copied(rw->graph, w);
  OM_TRY(drop_nodes(ctx, rw, conv, f));
  OM_TRY(om_rewriter_set_inputs(ctx, rw, id, inputs, has_bias ? 3 : 2));
  return om_rewriter_set_output(ctx, rw, id, conv->outputs[0], f->result);
}

static om_status fold_conv(om_ctx *ctx, om_rewriter *rw, om_node_id id, const conv_shape *shape) {
  om_status st = OM_OK;
  chain f = {.result = rw->graph->nodes[id].outputs[0]};
  om_node_id node;
  if (rw->uses[f.result] != 1) return OM_OK;
  OM_GO_NEW(f.s, shape->channels);
  OM_GO_NEW(f.t, shape->channels);
  for (size_t c = 0; c < shape->channels; ++c) f.s[c] = 1.0f;
  while (f.node_count < MOST_NODES) {
    OM_GO(extend(ctx, rw, shape, &f, &node));
    if (node == OM_NO_NODE) break;
    f.nodes[f.node_count++] = node;
  }
  if (f.node_count > 0) OM_GO(replace(ctx, rw, id, shape, &f));
done:
  om_delete(ctx, f.s);
  om_delete(ctx, f.t);
  return st;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  /* Nodes do not move while the rewrite goes, and none is added: ids hold. */
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    conv_shape shape;
    bool does_fit = false;
    if (!node->type || node->domain[0] != '\0') continue;
    if (strcmp(node->type, "Conv") != 0 && strcmp(node->type, "ConvTranspose") != 0) continue;
    OM_TRY(match_conv(ctx, rw, node, &shape, &does_fit));
    if (does_fit) OM_TRY(fold_conv(ctx, rw, id, &shape));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_fold_affine = {
    .name = "fold_affine",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
