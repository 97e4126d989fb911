/* A convolution and the BatchNormalization that alone reads it, with constant weights:
 *
 *     Conv(x, W, B) -> BatchNormalization(scale, bias, mean, var)
 *     becomes Conv(x, W * s, B * s + t),  s = scale / sqrt(var + epsilon),  t = bias - mean * s
 *
 * with s per output channel. The new weights are made by the exact primitives, in both modes and
 * for every executor alike, so exact mode stays one definition (docs/exact.md).
 */
#include "rewrite/om_batchnorm_factors.h"
#include "rewrite/om_rewrite.h"

typedef struct match {
  om_node_id conv, norm;
  const om_tensor *weights;
  const om_tensor *bias;      /* NULL: none */
  const om_tensor *params[4]; /* scale, bias, mean, variance */
  float epsilon;
  size_t channels;     /* of the output */
  size_t outer, inner; /* weight (o, c, i) belongs to channel group_of(o) + c */
  size_t group_channels;
  bool is_transposed;
} match;

static const om_tensor *float_vector(const om_rewriter *rw, om_value_id value, size_t count) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  if (!tensor || tensor->dtype != OM_DTYPE_F32 || tensor->rank != 1) return NULL;
  return tensor->dims[0] == (int64_t)count ? tensor : NULL;
}

/* Conv: weights are [M, C/group, k...]. ConvTranspose: [C, M/group, k...]. */
static om_status match_conv(
    om_ctx *ctx, const om_rewriter *rw, const om_node *conv, match *m, bool *out_fits) {
  int64_t groups = 1;
  *out_fits = false;
  if (conv->input_count < 2 || conv->output_count != 1) return OM_OK;
  const om_tensor *w = om_rewriter_constant(rw, conv->inputs[1]);
  if (!w || w->dtype != OM_DTYPE_F32 || w->rank < 3 || om_tensor_elems(w) == 0) return OM_OK;
  OM_TRY(om_node_attr_int(ctx, conv, "group", 1, &groups));
  if (groups < 1 || groups > w->dims[0] || w->dims[0] % groups != 0) return OM_OK;
  m->weights = w;
  m->is_transposed = strcmp(conv->type, "ConvTranspose") == 0;
  if (m->is_transposed) {
    m->outer = (size_t)w->dims[0];
    m->group_channels = (size_t)w->dims[1];
    m->channels = m->group_channels * (size_t)groups;
  } else {
    m->outer = 1;
    m->group_channels = (size_t)w->dims[0];
    m->channels = m->group_channels;
  }
  m->inner = om_tensor_elems(w) / (m->outer * m->group_channels);
  *out_fits = true;
  if (conv->input_count > 2 && conv->inputs[2] != OM_NO_VALUE) {
    m->bias = float_vector(rw, conv->inputs[2], m->channels);
    *out_fits = m->bias != NULL;
  }
  return OM_OK;
}

static om_status match_norm(
    om_ctx *ctx, const om_rewriter *rw, const om_node *norm, match *m, bool *out_fits) {
  int64_t is_training = 0;
  *out_fits = false;
  if (norm->opset < 7 || norm->input_count != 5) return OM_OK;
  for (uint32_t i = 1; i < norm->output_count; ++i) {
    if (norm->outputs[i] != OM_NO_VALUE && rw->uses[norm->outputs[i]] > 0) return OM_OK;
  }
  OM_TRY(om_node_attr_int(ctx, norm, "training_mode", 0, &is_training));
  OM_TRY(om_node_attr_float(ctx, norm, "epsilon", 1e-5f, &m->epsilon));
  if (is_training != 0) return OM_OK;
  for (uint32_t i = 0; i < 4; ++i) {
    m->params[i] = float_vector(rw, norm->inputs[i + 1], m->channels);
    if (!m->params[i]) return OM_OK;
  }
  *out_fits = true;
  return OM_OK;
}

/* Element `i` of a constant, whose data may lie anywhere in the model file. */
static float element(const om_tensor *tensor, size_t i) {
  float value;
  memcpy(&value, (const char *)tensor->data + i * sizeof value, sizeof value);
  return value;
}

/* Weights and biases with s and t worked in. */
static void scale_weights(const match *m, float *weights, float *biases) {
  const om_tensor *const *p = m->params;
  size_t rows_per_group = m->outer * m->group_channels / m->channels;
  for (size_t c = 0; c < m->channels; ++c) {
    float s, t;
    om_batchnorm_factors(
        element(p[0], c), element(p[1], c), element(p[2], c), element(p[3], c), m->epsilon, &s, &t);
    float scaled = m->bias ? element(m->bias, c) * s : 0.0f;
    biases[c] = m->bias ? scaled + t : t;
    /* The blocks of this channel: one for Conv, one per input channel of the group otherwise. */
    size_t first_row = c / m->group_channels * rows_per_group;
    for (size_t row = first_row; row < first_row + rows_per_group; ++row) {
      size_t at = (row * m->group_channels + c % m->group_channels) * m->inner;
      for (size_t i = 0; i < m->inner; ++i) weights[at + i] = element(m->weights, at + i) * s;
    }
  }
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, const match *m) {
  om_graph *graph = rw->graph;
  const om_node *conv = &graph->nodes[m->conv], *norm = &graph->nodes[m->norm];
  om_value_id result = norm->outputs[0];
  om_value_id inputs[3] = {conv->inputs[0]};
  float *weights, *biases;
  OM_TRY(om_rewriter_add_constant(ctx, rw, conv->name, m->weights, &weights, &inputs[1]));
  OM_TRY(om_rewriter_add_constant(ctx, rw, conv->name, m->params[0], &biases, &inputs[2]));
  scale_weights(m, weights, biases);
  OM_TRY(om_rewriter_set_inputs(ctx, rw, m->conv, inputs, 3));
  OM_TRY(om_rewriter_drop(ctx, rw, m->norm, "merged into the weights of '%.150s'", conv->name));
  return om_rewriter_set_output(ctx, rw, m->conv, conv->outputs[0], result);
}

static om_status try_node(om_ctx *ctx, om_rewriter *rw, om_node_id id) {
  match m = {.conv = id};
  bool does_fit = false;
  const om_node *conv = &rw->graph->nodes[id];
  OM_TRY(match_conv(ctx, rw, conv, &m, &does_fit));
  if (!does_fit) return OM_OK;
  m.norm = om_rewriter_sole_reader(rw, conv->outputs[0], "BatchNormalization");
  if (m.norm == OM_NO_NODE || rw->graph->nodes[m.norm].inputs[0] != conv->outputs[0]) return OM_OK;
  OM_TRY(match_norm(ctx, rw, &rw->graph->nodes[m.norm], &m, &does_fit));
  return does_fit ? replace(ctx, rw, &m) : OM_OK;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  /* Nodes do not move while the rewrite goes, and none is added: ids hold. */
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!node->type || node->domain[0] != '\0') continue;
    if (strcmp(node->type, "Conv") != 0 && strcmp(node->type, "ConvTranspose") != 0) continue;
    OM_TRY(try_node(ctx, rw, id));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_fold_batchnorm = {
    .name = "fold_batchnorm",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
