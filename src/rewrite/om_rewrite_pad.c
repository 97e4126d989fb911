/* A Conv takes the zeros in front of it along as pads of its own, where its result alone reads
 * them:
 *
 *     Conv(Pad(x, sizes))  pads         Conv(x)  pads + sizes
 *
 * A term outside of the input is 0 times the weight either way: the bits stay, for both modes.
 */
#include <string.h>

#include "ops/op_window.h"
#include "rewrite/om_rewrite.h"

enum { ENDS = 2, FEATURES = 2 }; /* of an axis; axes in front of the spatial ones */

typedef struct pads {
  size_t count; /* of an end's spatial axes */
  int64_t sizes[ENDS * OM_WINDOW_AXES];
} pads;

/* Whether the Pad's element is +0. */
static bool pads_zeros(const om_rewriter *rw, const om_node *pad) {
  float value = 0.0f, zero = 0.0f;
  if (pad->input_count < 3 || pad->inputs[2] == OM_NO_VALUE) return true;
  return om_rewriter_scalar(rw, pad->inputs[2], &value) && memcmp(&value, &zero, sizeof zero) == 0;
}

/* The sizes of a Pad that adds zeros, along spatial axes alone; false: it is none. */
static om_status read_pad(
    om_ctx *ctx, const om_rewriter *rw, const om_node *pad, pads *out, bool *out_fits) {
  om_string mode;
  *out_fits = false;
  OM_TRY(om_node_attr_text(ctx, pad, "mode", "constant", &mode));
  if (pad->opset < 11 || pad->input_count < 2 || pad->input_count > 3) return OM_OK;
  const om_tensor *sizes = om_rewriter_constant(rw, pad->inputs[1]);
  if (!om_string_is(mode, "constant") || !pads_zeros(rw, pad) || !sizes || !sizes->data) {
    return OM_OK;
  }
  const size_t count = om_tensor_elems(sizes);
  const size_t rank = count / ENDS;
  if (sizes->dtype != OM_DTYPE_I64 || count % ENDS != 0 || rank <= FEATURES ||
      rank > FEATURES + OM_WINDOW_AXES) {
    return OM_OK;
  }
  out->count = rank - FEATURES;
  for (size_t i = 0; i < count; ++i) {
    const int64_t size = ((const int64_t *)sizes->data)[i];
    const size_t end = i / rank, axis = i % rank;
    if (size < 0 || size > INT32_MAX || (axis < FEATURES && size != 0)) return OM_OK;
    if (axis >= FEATURES) out->sizes[end * out->count + axis - FEATURES] = size;
  }
  *out_fits = true;
  return OM_OK;
}

/* Adds those of the Conv; false: it has others, or the sums are more than it may have. */
static om_status add_own(om_ctx *ctx, const om_node *conv, pads *p, bool *out_fits) {
  const int64_t *own = NULL;
  size_t count = 0;
  om_string automatic;
  OM_TRY(om_node_attr_text(ctx, conv, "auto_pad", "NOTSET", &automatic));
  OM_TRY(om_node_attr_ints(ctx, conv, "pads", &own, &count));
  *out_fits = om_string_is(automatic, "NOTSET") && (count == 0 || count == ENDS * p->count);
  for (size_t i = 0; *out_fits && i < count; ++i) {
    p->sizes[i] += own[i];
    *out_fits = p->sizes[i] <= INT32_MAX;
  }
  return OM_OK;
}

static om_status become(om_ctx *ctx, om_rewriter *rw, om_node_id id, om_value_id x, const pads *p) {
  const om_node *conv = &rw->graph->nodes[id];
  const size_t count = ENDS * p->count;
  om_attr *attrs = OM_POOL_NEW(ctx, &rw->graph->pool, om_attr, conv->attr_count + 1);
  om_value_id *inputs = OM_POOL_NEW(ctx, &rw->graph->pool, om_value_id, conv->input_count);
  int64_t *sizes = OM_POOL_NEW(ctx, &rw->graph->pool, int64_t, count);
  uint32_t kept = 0;
  if (!attrs || !inputs || !sizes) return OM_E_OUT_OF_MEMORY;
  memcpy(sizes, p->sizes, count * sizeof *sizes);
  memcpy(inputs, conv->inputs, conv->input_count * sizeof *inputs);
  inputs[0] = x;
  for (uint32_t i = 0; i < conv->attr_count; ++i) {
    if (strcmp(conv->attrs[i].name, "pads") != 0) attrs[kept++] = conv->attrs[i];
  }
  attrs[kept++] = (om_attr){.name = "pads", .kind = OM_ATTR_INTS, .count = count, .ints = sizes};
  return om_rewriter_become(ctx,
                            rw,
                            id,
                            &(om_rewritten_node){.type = "Conv",
                                                 .opset = conv->opset,
                                                 .inputs = inputs,
                                                 .input_count = conv->input_count,
                                                 .attrs = attrs,
                                                 .attr_count = kept});
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *conv = &rw->graph->nodes[id];
    pads p;
    bool fits = false;
    if (!conv->type || conv->domain[0] != '\0' || strcmp(conv->type, "Conv") != 0) continue;
    const om_node_id pad = om_rewriter_maker(rw, conv->inputs[0], "Pad");
    if (pad == OM_NO_NODE || !om_rewriter_is_read_once(rw, conv->inputs[0])) continue;
    OM_TRY(read_pad(ctx, rw, &rw->graph->nodes[pad], &p, &fits));
    if (fits) OM_TRY(add_own(ctx, conv, &p, &fits));
    if (!fits) continue;
    OM_TRY(become(ctx, rw, id, rw->graph->nodes[pad].inputs[0], &p));
    OM_TRY(om_rewriter_drop(
        ctx, rw, pad, "part of '%.100s': pads of its own", rw->graph->nodes[id].name));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_pad = {
    .name = "pad",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_FOR_CPU,
    .apply = apply,
};
