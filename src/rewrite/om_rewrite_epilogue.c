/* What follows a product or a convolution goes into its kernel, for the CPU's fast mode:
 *
 *     MatMul, Add (a bias), Add (a residual), Gelu        one onemodel.MatMul
 *     onemodel.Conv, Add (a residual), Relu               one onemodel.Conv
 *
 * Each in this order and where nothing else reads what lies between. Products have constant weights
 * of two axes; convolutions are those of channels_last.
 */
#include "ops/op_epilogue.h"
#include "rewrite/om_rewrite.h"

enum { X = 0, WEIGHTS = 1, BIAS = 2, RESIDUAL = 3, INPUTS = 4 };

typedef struct fused {
  om_node_id node; /* the product or the convolution */
  om_value_id inputs[INPUTS];
  om_value_id result;
  om_epilogue_params epilogue;
  bool is_changed;
} fused;

static bool is_node(const om_node *node, const char *domain, const char *type) {
  return node->type && strcmp(node->domain, domain) == 0 && strcmp(node->type, type) == 0;
}

/* The one node that reads the result and nobody else; OM_NO_NODE: there is none. */
static om_node_id sole_reader(const om_rewriter *rw, om_value_id value) {
  if (rw->uses[value] != 1 || rw->graph->values[value].is_output) return OM_NO_NODE;
  const om_node_id reader = rw->readers[value];
  if (reader == OM_NO_NODE || !rw->graph->nodes[reader].type) return OM_NO_NODE;
  return rw->graph->nodes[reader].domain[0] == '\0' ? reader : OM_NO_NODE;
}

static om_status absorb(om_ctx *ctx, om_rewriter *rw, fused *f, om_node_id reader) {
  f->result = rw->graph->nodes[reader].outputs[0];
  f->is_changed = true;
  return om_rewriter_drop(
      ctx, rw, reader, "part of '%.100s': done by its kernel", rw->graph->nodes[f->node].name);
}

/* A constant with an element for each column, of one axis. */
static bool is_bias(const om_rewriter *rw, const fused *f, om_value_id value) {
  const om_tensor *weights = om_rewriter_constant(rw, f->inputs[WEIGHTS]);
  const om_tensor *bias = om_rewriter_constant(rw, value);
  return bias && bias->dtype == OM_DTYPE_F32 && bias->rank == 1 &&
         bias->dims[0] == weights->dims[1];
}

static om_status absorb_addition(
    om_ctx *ctx, om_rewriter *rw, fused *f, om_node_id reader, bool *out_done) {
  const om_node *add = &rw->graph->nodes[reader];
  const bool is_product = rw->graph->nodes[f->node].domain[0] == '\0';
  *out_done = false;
  if (!is_node(add, "", "Add") || add->opset < 7 || add->input_count != 2) return OM_OK;
  const om_value_id other = add->inputs[add->inputs[0] == f->result ? 1 : 0];
  if (other == OM_NO_VALUE) return OM_OK;
  if (is_product && f->inputs[BIAS] == OM_NO_VALUE && f->inputs[RESIDUAL] == OM_NO_VALUE &&
      is_bias(rw, f, other)) {
    f->inputs[BIAS] = other;
  } else if (f->inputs[RESIDUAL] == OM_NO_VALUE && !om_rewriter_constant(rw, other)) {
    f->inputs[RESIDUAL] = other;
  } else {
    return OM_OK;
  }
  *out_done = true;
  return absorb(ctx, rw, f, reader);
}

static om_status absorb_activation(om_ctx *ctx, om_rewriter *rw, fused *f, om_node_id reader) {
  const om_node *node = &rw->graph->nodes[reader];
  const om_tensor *constants[3] = {NULL, NULL, NULL};
  if (node->input_count < 1 || node->input_count > 3 || node->inputs[0] != f->result) return OM_OK;
  for (uint32_t i = 1; i < node->input_count; ++i) {
    constants[i] = om_rewriter_constant(rw, node->inputs[i]);
  }
  OM_TRY(om_epilogue_of_node(ctx, node, constants, &f->epilogue));
  return f->epilogue.activation == OM_FAST_NONE ? OM_OK : absorb(ctx, rw, f, reader);
}

static om_status collect(om_ctx *ctx, om_rewriter *rw, fused *f) {
  bool is_done = true;
  while (is_done) {
    const om_node_id reader = sole_reader(rw, f->result);
    if (reader == OM_NO_NODE) return OM_OK;
    OM_TRY(absorb_addition(ctx, rw, f, reader, &is_done));
    if (!is_done) OM_TRY(absorb_activation(ctx, rw, f, reader));
  }
  return OM_OK;
}

/* The node's own attributes, then the epilogue's. */
static om_status become(om_ctx *ctx, om_rewriter *rw, const fused *f) {
  const om_node *node = &rw->graph->nodes[f->node];
  const om_attr own[] = {
      {.name = "activation", .kind = OM_ATTR_INT, .i = (int64_t)f->epilogue.activation},
      {.name = "alpha", .kind = OM_ATTR_FLOAT, .f = f->epilogue.alpha},
      {.name = "beta", .kind = OM_ATTR_FLOAT, .f = f->epilogue.beta},
  };
  const uint32_t count = node->attr_count + (uint32_t)OM_COUNT_OF(own);
  om_attr *attrs = OM_POOL_NEW(ctx, &rw->graph->pool, om_attr, count);
  const char *type = strcmp(node->type, "ConvTranspose") == 0 ? "ConvTranspose"
                     : strcmp(node->type, "Conv") == 0        ? "Conv"
                                                              : "MatMul";
  const om_value_id before = node->outputs[0];
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  if (node->attr_count > 0) memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  memcpy(attrs + node->attr_count, own, sizeof own);
  OM_TRY(om_rewriter_become(ctx,
                            rw,
                            f->node,
                            &(om_rewritten_node){.domain = "onemodel",
                                                 .type = type,
                                                 .opset = 1,
                                                 .inputs = f->inputs,
                                                 .input_count = INPUTS,
                                                 .attrs = attrs,
                                                 .attr_count = count}));
  return om_rewriter_set_output(ctx, rw, f->node, before, f->result);
}

static bool is_wanted(const om_rewriter *rw, const om_node *node) {
  if (is_node(node, "onemodel", "Conv") || is_node(node, "onemodel", "ConvTranspose")) return true;
  if (!is_node(node, "", "MatMul")) return false;
  const om_tensor *weights = om_rewriter_constant(rw, node->inputs[WEIGHTS]);
  return weights && weights->dtype == OM_DTYPE_F32 && weights->rank == 2;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  if (!rw->has_fast_kernels || !om_op_find("onemodel", "MatMul", 1, NULL)) return OM_OK;
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!is_wanted(rw, node)) continue;
    fused f = {.node = id, .result = node->outputs[0]};
    for (uint32_t i = 0; i < INPUTS; ++i) {
      f.inputs[i] = i < node->input_count ? node->inputs[i] : OM_NO_VALUE;
    }
    OM_TRY(collect(ctx, rw, &f));
    if (f.is_changed) OM_TRY(become(ctx, rw, &f));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_epilogue = {
    .name = "epilogue",
    .in_fast = true,
    .in_exact = false,
    .asker = OM_REWRITE_FOR_CPU,
    .apply = apply,
};
