/* Operators between DequantizeLinear and QuantizeLinear as those on bytes, for the CPU:
 *
 *     Conv, Gemm, MatMul              QLinearConv, QGemm, QLinearMatMul, of constant weights
 *     Add, Mul, GlobalAveragePool     QLinearAdd, QLinearMul, QLinearGlobalAveragePool
 *     MaxPool, Flatten, Reshape, ...  the same on bytes, where both sides have the same scale
 *
 * A Relu or Clip in front of QuantizeLinear goes where it takes off no more than bytes do anyway.
 * Sums are integers then, and round once where float32 rounds at every step, so a result may be the
 * next byte (docs/exact.md). In exact mode there are those alone whose bits are the same; a Conv is
 * onemodel's QuantizedConv, which sees to that. This comes before DequantizeLinear of weights is
 * folded.
 */
#include <math.h>

#include "cpu/exact/om_exact_math.h"
#include "rewrite/om_rewrite.h"

typedef struct scaled { /* bytes (of a bias: int32) and what they stand for */
  om_value_id bytes, scale, zero;
  om_dtype dtype;
  const om_tensor *scales, *zeros; /* constants in memory; zeros NULL: none */
  int64_t axis;                    /* of the scales, where they are more than one */
  int64_t terms;                   /* of weights: products that one sum has */
} scaled;

static size_t elems_of(const scaled *s) {
  return om_tensor_elems(s->scales);
}

static float scale_at(const scaled *s, size_t index) {
  float scale;
  memcpy(&scale, (const char *)s->scales->data + (elems_of(s) == 1 ? 0 : index) * 4, sizeof scale);
  return scale;
}

static int zero_of(const scaled *s) {
  const uint8_t byte = *(const uint8_t *)s->zeros->data;
  return s->dtype == OM_DTYPE_I8 && byte > 127 ? byte - 256 : byte;
}

static bool has_byte_zeros(const scaled *s) {
  return s->zeros && s->zeros->data && (s->dtype == OM_DTYPE_I8 || s->dtype == OM_DTYPE_U8) &&
         om_tensor_elems(s->zeros) == elems_of(s);
}

/* In exact mode products of floats must neither vanish nor overflow. */
static bool is_fit(const om_rewriter *rw, float scale) {
  if (rw->mode == OM_MODE_EXACT) return scale > 0x1p-40f && scale < 0x1p40f;
  return scale > 0.0f && scale < INFINITY;
}

/* The scale and the zero point of a node of either type. False: they are not known, or not fit. */
static bool read_scale(const om_rewriter *rw, const om_node *node, scaled *out) {
  const om_value_id zero = node->input_count > 2 ? node->inputs[2] : OM_NO_VALUE;
  int64_t block = 0;
  *out = (scaled){.bytes = node->inputs[0],
                  .scale = node->inputs[1],
                  .zero = zero,
                  .scales = om_rewriter_constant(rw, node->inputs[1]),
                  .zeros = om_rewriter_constant(rw, zero)};
  const om_attr *axis = om_node_attr(node, "axis"), *blocks = om_node_attr(node, "block_size");
  out->axis = axis && axis->kind == OM_ATTR_INT ? axis->i : 1;
  if (blocks && blocks->kind == OM_ATTR_INT) block = blocks->i;
  if (!out->scales || !out->scales->data || out->scales->dtype != OM_DTYPE_F32) return false;
  if (block != 0 || out->scales->rank > 1 || (zero != OM_NO_VALUE && !out->zeros)) return false;
  if (out->zeros) out->dtype = out->zeros->dtype;
  for (size_t i = 0; i < elems_of(out); ++i) {
    if (!is_fit(rw, scale_at(out, i))) return false;
  }
  return elems_of(out) > 0;
}

/* What a float32 was dequantized from. */
static bool read_operand(const om_rewriter *rw, om_value_id value, scaled *out) {
  const om_node_id id = om_rewriter_maker(rw, value, "DequantizeLinear");
  if (id == OM_NO_NODE) return false;
  const om_node *node = &rw->graph->nodes[id];
  const om_attr *dtype = om_node_attr(node, "output_dtype");
  if (dtype && dtype->i != 0 && dtype->i != OM_DTYPE_F32) return false;
  return read_scale(rw, node, out);
}

static bool read_bytes(const om_rewriter *rw, om_value_id value, scaled *out) {
  return read_operand(rw, value, out) && has_byte_zeros(out) && elems_of(out) == 1;
}

/* Whether sums of so many products of bytes, and `on_top` with them, fit in int32, which wraps. */
static bool sums_fit(int64_t terms, int64_t on_top) {
  const int64_t most = INT32_MAX - (int64_t)(UINT8_MAX * UINT8_MAX) * terms;
  return terms <= INT32_MAX / (UINT8_MAX * UINT8_MAX) && on_top <= most && on_top >= -most;
}

/* Constant weights with a scale for each index of an axis, or one. */
static bool read_weights(
    const om_rewriter *rw, om_value_id value, uint32_t rank, uint32_t axis, scaled *out) {
  if (!read_operand(rw, value, out) || !has_byte_zeros(out)) return false;
  const om_tensor *w = om_rewriter_constant(rw, out->bytes);
  if (!w || w->dtype != out->dtype || w->rank < 2 || (rank != 0 && w->rank != rank)) return false;
  if (w->dims[axis] == 0) return false;
  out->terms = (int64_t)om_tensor_elems(w) / w->dims[axis];
  if (!sums_fit(out->terms, 0)) return false;
  if (elems_of(out) == 1) return true;
  const int64_t own = out->axis < 0 ? out->axis + (int64_t)w->rank : out->axis;
  return own == (int64_t)axis && (int64_t)elems_of(out) == w->dims[axis];
}

/* A constant int32 bias whose scale is that of the sums, or none: out_bias->bytes. */
static bool read_bias(
    const om_rewriter *rw, om_value_id value, const scaled *x, const scaled *w, scaled *out_bias) {
  *out_bias = (scaled){.bytes = OM_NO_VALUE};
  if (value == OM_NO_VALUE) return true;
  if (!read_operand(rw, value, out_bias)) return false;
  const om_tensor *b = om_rewriter_constant(rw, out_bias->bytes);
  if (!b || !b->data || b->dtype != OM_DTYPE_I32 || b->rank != 1) return false;
  const size_t count = (size_t)b->dims[0];
  if (elems_of(out_bias) != 1 && elems_of(out_bias) != count) return false;
  if (elems_of(w) != 1 && elems_of(w) != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const float want = scale_at(x, 0) * scale_at(w, i);
    int32_t on_top;
    memcpy(&on_top, (const char *)b->data + i * sizeof on_top, sizeof on_top);
    if (!(fabsf(scale_at(out_bias, i) - want) <= 1e-6f * want)) return false;
    if (!sums_fit(w->terms, on_top)) return false;
  }
  const om_tensor *zeros = out_bias->zeros;
  for (size_t i = 0; zeros && i < zeros->data_bytes; ++i) {
    if (!zeros->data || ((const uint8_t *)zeros->data)[i] != 0) return false;
  }
  return true;
}

/* ---- What stands in front of QuantizeLinear ---- */

static float quantized(const scaled *y, float value) {
  return om_round(value / scale_at(y, 0)) + (float)zero_of(y);
}

/* Whether bytes reach neither below `low` nor above `high`. */
static bool is_saturated_by(const scaled *y, float low, float high) {
  const float least = y->dtype == OM_DTYPE_I8 ? INT8_MIN : 0;
  const float most = y->dtype == OM_DTYPE_I8 ? INT8_MAX : UINT8_MAX;
  return quantized(y, low) <= least && quantized(y, high) >= most;
}

static bool is_relu(const om_rewriter *rw, const om_node *node, const scaled *y) {
  float low = -INFINITY, high = INFINITY;
  if (strcmp(node->type, "Relu") == 0) return is_saturated_by(y, 0.0f, high);
  if (strcmp(node->type, "Clip") != 0 || node->opset < 11) return false;
  for (uint32_t i = 1; i < node->input_count; ++i) {
    if (node->inputs[i] == OM_NO_VALUE) continue;
    if (!om_rewriter_scalar(rw, node->inputs[i], i == 1 ? &low : &high)) return false;
  }
  return is_saturated_by(y, low, high);
}

static om_node_id only_maker(const om_rewriter *rw, om_value_id value) {
  if (value == OM_NO_VALUE || rw->uses[value] != 1 || rw->graph->values[value].is_output) {
    return OM_NO_NODE;
  }
  const om_node_id id = rw->graph->values[value].producer;
  if (id == OM_NO_NODE || !rw->graph->nodes[id].type || rw->graph->nodes[id].domain[0]) {
    return OM_NO_NODE;
  }
  return rw->graph->nodes[id].outputs[0] == value ? id : OM_NO_NODE;
}

/* ---- The operators ---- */

enum { MOST_INPUTS = 10 };

typedef struct match {
  const om_rewriter *rw;
  const om_node *node; /* what makes floats of bytes */
  scaled y;
  const char *type, *domain;
  int32_t opset;
  om_value_id inputs[MOST_INPUTS];
  uint32_t input_count;
  bool has_attrs; /* those of the node */
} match;

static void add_input(match *m, om_value_id value) {
  m->inputs[m->input_count++] = value;
}

static void add_scaled(match *m, const scaled *s) {
  add_input(m, s->bytes);
  add_input(m, s->scale);
  add_input(m, s->zero);
}

static void add_result_scale(match *m) {
  add_input(m, m->y.scale);
  add_input(m, m->y.zero);
}

static om_value_id input_of(const om_node *node, uint32_t index) {
  return index < node->input_count ? node->inputs[index] : OM_NO_VALUE;
}

static bool match_conv(match *m) {
  scaled x, w, bias;
  const bool is_exact = m->rw->mode == OM_MODE_EXACT;
  if (!read_bytes(m->rw, m->node->inputs[0], &x)) return false;
  if (!read_weights(m->rw, m->node->inputs[1], 0, 0, &w)) return false;
  if (!read_bias(m->rw, input_of(m->node, 2), &x, &w, &bias)) return false;
  m->domain = is_exact ? "onemodel" : NULL;
  m->type = is_exact ? "QuantizedConv" : "QLinearConv";
  m->opset = is_exact ? 1 : 10;
  m->has_attrs = true;
  add_scaled(m, &x);
  add_scaled(m, &w);
  add_result_scale(m);
  if (bias.bytes == OM_NO_VALUE) return true;
  add_input(m, bias.bytes);
  if (is_exact) add_input(m, bias.scale);
  return true;
}

static float float_attr(const om_node *node, const char *name, float fallback) {
  const om_attr *attr = om_node_attr(node, name);
  return attr && attr->kind == OM_ATTR_FLOAT ? attr->f : fallback;
}

static bool match_gemm(match *m) {
  scaled a, b, bias;
  const om_attr *turns = om_node_attr(m->node, "transB");
  const bool is_turned = turns && turns->kind == OM_ATTR_INT && turns->i != 0;
  if (float_attr(m->node, "alpha", 1.0f) != 1.0f || float_attr(m->node, "beta", 1.0f) != 1.0f) {
    return false;
  }
  if (!read_bytes(m->rw, m->node->inputs[0], &a)) return false;
  if (!read_weights(m->rw, m->node->inputs[1], 2, is_turned ? 0 : 1, &b)) return false;
  if (!read_bias(m->rw, input_of(m->node, 2), &a, &b, &bias)) return false;
  m->type = "QGemm";
  m->domain = "com.microsoft";
  m->opset = 1;
  m->has_attrs = true;
  add_scaled(m, &a);
  add_scaled(m, &b);
  add_input(m, bias.bytes);
  add_result_scale(m);
  return true;
}

static bool match_matmul(match *m) {
  scaled a, b;
  if (!read_bytes(m->rw, m->node->inputs[0], &a)) return false;
  if (!read_weights(m->rw, m->node->inputs[1], 2, 1, &b)) return false;
  m->type = "QLinearMatMul";
  m->opset = 10;
  add_scaled(m, &a);
  add_scaled(m, &b);
  add_result_scale(m);
  return true;
}

static bool match_binary(match *m) {
  scaled a, b;
  if (!read_bytes(m->rw, m->node->inputs[0], &a)) return false;
  if (!read_bytes(m->rw, m->node->inputs[1], &b)) return false;
  if (a.dtype != m->y.dtype || b.dtype != m->y.dtype) return false;
  m->type = strcmp(m->node->type, "Add") == 0 ? "QLinearAdd" : "QLinearMul";
  m->domain = "com.microsoft";
  m->opset = 1;
  add_scaled(m, &a);
  add_scaled(m, &b);
  add_result_scale(m);
  return true;
}

static bool match_mean(match *m) {
  scaled x;
  if (!read_bytes(m->rw, m->node->inputs[0], &x) || x.dtype != m->y.dtype) return false;
  m->type = "QLinearGlobalAveragePool";
  m->domain = "com.microsoft";
  m->opset = 1;
  add_scaled(m, &x);
  add_result_scale(m);
  return true;
}

/* Bytes that come out as they went in. */
static bool match_move(match *m) {
  scaled x;
  if (!read_bytes(m->rw, m->node->inputs[0], &x) || x.dtype != m->y.dtype) return false;
  if (scale_at(&x, 0) != scale_at(&m->y, 0) || zero_of(&x) != zero_of(&m->y)) return false;
  for (uint32_t i = 1; i < m->node->output_count; ++i) {
    if (m->node->outputs[i] != OM_NO_VALUE) return false;
  }
  if (m->node->input_count > MOST_INPUTS) return false;
  m->type = m->node->type;
  m->opset = m->node->opset;
  m->has_attrs = true;
  add_input(m, x.bytes);
  for (uint32_t i = 1; i < m->node->input_count; ++i) add_input(m, m->node->inputs[i]);
  return true;
}

static const struct {
  const char *type;
  bool (*match)(match *m);
  bool in_exact;
} patterns[] = {
    {"Add", match_binary, true},
    {"Conv", match_conv, true},
    {"Flatten", match_move, true},
    {"Gemm", match_gemm, false},
    {"GlobalAveragePool", match_mean, false},
    {"MatMul", match_matmul, false},
    {"MaxPool", match_move, true},
    {"Mul", match_binary, true},
    {"Reshape", match_move, true},
    {"Squeeze", match_move, true},
    {"Transpose", match_move, true},
    {"Unsqueeze", match_move, true},
};

static bool match_node(match *m) {
  const bool is_exact = m->rw->mode == OM_MODE_EXACT;
  for (size_t i = 0; i < OM_COUNT_OF(patterns); ++i) {
    if (strcmp(patterns[i].type, m->node->type) != 0) continue;
    return (patterns[i].in_exact || !is_exact) && patterns[i].match(m);
  }
  return false;
}

/* ---- The rewrite ---- */

static om_status drop_part(om_ctx *ctx, om_rewriter *rw, om_node_id id, om_node_id by) {
  return om_rewriter_drop(
      ctx, rw, id, "part of '%.100s': done by its kernel", rw->graph->nodes[by].name);
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, om_node_id quantize) {
  const om_node *q = &rw->graph->nodes[quantize];
  const om_value_id result = q->outputs[0];
  match m = {.rw = rw};
  if (q->input_count < 2 || result == OM_NO_VALUE) return OM_OK;
  if (!read_scale(rw, q, &m.y) || !has_byte_zeros(&m.y) || elems_of(&m.y) != 1) return OM_OK;
  om_node_id relu = OM_NO_NODE, id = only_maker(rw, q->inputs[0]);
  if (id != OM_NO_NODE && is_relu(rw, &rw->graph->nodes[id], &m.y)) {
    relu = id;
    id = only_maker(rw, rw->graph->nodes[relu].inputs[0]);
  }
  if (id == OM_NO_NODE) return OM_OK;
  m.node = &rw->graph->nodes[id];
  if (!match_node(&m)) return OM_OK;
  const om_value_id before = m.node->outputs[0];
  OM_TRY(drop_part(ctx, rw, quantize, id));
  if (relu != OM_NO_NODE) OM_TRY(drop_part(ctx, rw, relu, id));
  OM_TRY(
      om_rewriter_become(ctx,
                         rw,
                         id,
                         &(om_rewritten_node){.domain = m.domain,
                                              .type = m.type,
                                              .opset = m.opset,
                                              .inputs = m.inputs,
                                              .input_count = m.input_count,
                                              .attrs = m.node->attrs,
                                              .attr_count = m.has_attrs ? m.node->attr_count : 0}));
  return om_rewriter_set_output(ctx, rw, id, before, result);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  const size_t node_count = rw->graph->node_count;
  for (om_node_id id = 0; id < node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!node->type || node->domain[0] || strcmp(node->type, "QuantizeLinear") != 0) continue;
    OM_TRY(replace(ctx, rw, id));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_quantized = {
    .name = "quantized_from_parts",
    .in_fast = true,
    .in_exact = true,
    .is_early = true,
    .asker = OM_REWRITE_FOR_CPU,
    .apply = apply,
};
