/* onemodel.Conv and onemodel.ConvTranspose: those of ONNX in float32 with the channels of X, Y and
 * Z last, then the addition of Z and an activation. Rewrites make them for the CPU's fast mode.
 *
 *     inputs: X [N, spatial..., C], W as in ONNX, B (optional) [M], Z (optional), which broadcasts
 *     attributes: those of ONNX, and op_epilogue.h
 *
 * Without a fast kernel the exact one runs, with turned copies of X and Y:
 *
 *     scratch: [x, channels first] [y, channels first] [y, channels last] [the exact kernel's own]
 */
#include "ops/om_rule.h"
#include "ops/op_channels_last.h"
#include "ops/op_conv.h"
#include "ops/op_epilogue.h"
#include "ops/op_fast.h"

extern const om_op om_ops_channels_last[];

enum { X = 0, W = 1, B = 2, Z = 3 };

typedef struct last_conv_params {
  om_conv_params conv; /* first: Conv's functions read it */
  om_epilogue_params epilogue;
} last_conv_params;

static const om_op *first_op(const last_conv_params *p) {
  return om_op_find("", p->conv.is_transposed ? "ConvTranspose" : "Conv", 22, NULL);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  last_conv_params *p = params;
  OM_TRY(om_conv_resolve(ctx, node, &p->conv));
  return om_epilogue_resolve(ctx, node, &p->epilogue);
}

static om_status resolve_transposed(om_ctx *ctx, const om_node *node, void *params) {
  last_conv_params *p = params;
  OM_TRY(om_conv_resolve_transposed(ctx, node, &p->conv));
  return om_epilogue_resolve(ctx, node, &p->epilogue);
}

/* The call of the operator of ONNX: shapes with the channels first. */
typedef struct first_call {
  om_tensor x, y;
  const om_tensor *inputs[3];
  om_tensor *outputs[1];
  om_op_call call;
} first_call;

static void make_first_call(const om_op_call *call, first_call *out) {
  out->x = om_channels_first(call->inputs[X]);
  out->y = (om_tensor){.dtype = OM_DTYPE_F32};
  out->inputs[0] = &out->x;
  out->inputs[1] = call->inputs[W];
  out->inputs[2] = om_rule_input(call, B);
  out->outputs[0] = &out->y;
  out->call = *call;
  out->call.inputs = out->inputs;
  out->call.input_count = 3;
  out->call.outputs = out->outputs;
  out->call.output_count = 1;
}

/* The result of the convolution alone, channels first, into out->y. */
static om_status infer_first(om_ctx *ctx, const om_op_call *call, first_call *out) {
  make_first_call(call, out);
  return first_op(call->params)->infer(ctx, &out->call);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *z = om_rule_input(call, Z);
  first_call first;
  int64_t dims[OM_MAX_RANK + 2] = {0};
  uint32_t rank = 0;
  OM_TRY(infer_first(ctx, call, &first));
  const om_tensor y = om_channels_last(&first.y);
  OM_TRY(om_rule_broadcast(ctx, &y, &rank, dims));
  if (z) OM_TRY(om_rule_broadcast(ctx, z, &rank, dims));
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, rank, dims);
}

typedef struct layout { /* offsets in bytes */
  size_t x, y_first, y_last, own, bytes;
} layout;

static size_t take(size_t *total, size_t bytes) {
  size_t at = *total;
  *total += om_size_align(bytes, 64);
  return at;
}

/* What infer has accepted cannot fail here: no context is needed. */
static bool lay_out(const om_op_call *call, first_call *first, layout *out) {
  if (infer_first(NULL, call, first) != OM_OK) return false;
  const size_t y_bytes = om_tensor_elems(&first->y) * sizeof(float);
  *out = (layout){.bytes = 0};
  out->x = take(&out->bytes, om_tensor_elems(&first->x) * sizeof(float));
  out->y_first = take(&out->bytes, y_bytes);
  out->y_last = take(&out->bytes, y_bytes);
  out->own = take(&out->bytes, first_op(call->params)->scratch_bytes(&first->call));
  return true;
}

static size_t scratch_bytes(const om_op_call *call) {
  first_call first;
  layout l;
  return lay_out(call, &first, &l) ? l.bytes : 0;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const last_conv_params *p = call->params;
  first_call first;
  layout l;
  uint8_t *scratch = call->scratch;
  if (om_tensor_elems(call->outputs[0]) == 0 || !lay_out(call, &first, &l)) return OM_OK;
  om_tensor y = om_channels_last(&first.y);
  first.x.data = scratch + l.x;
  first.y.data = scratch + l.y_first;
  y.data = scratch + l.y_last;
  first.call.scratch = scratch + l.own;
  om_channels_turn(ctx, &first.x, false, call->inputs[X]->data, first.x.data);
  OM_TRY(first_op(p)->run(ctx, &first.call));
  om_channels_turn(ctx, &first.y, true, first.y.data, y.data);
  om_epilogue_run(ctx, &p->epilogue, &y, om_rule_input(call, Z), call->outputs[0]);
  return OM_OK;
}

static bool has_same_shape(const om_tensor *a, const om_tensor *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

/* Z broadcasts: it is added to a result in scratch, behind what the kernel needs. */
static om_status run_apart(om_ctx *ctx, const om_op_call *call, void *state) {
  const last_conv_params *p = call->params;
  first_call first;
  OM_TRY(infer_first(ctx, call, &first));
  om_tensor y = om_channels_last(&first.y);
  y.data = (uint8_t *)call->scratch + om_fast_scratch_bytes(state);
  const om_tensor *bias = om_rule_input(call, B);
  const om_fast_operands operands = {.x = call->inputs[X]->data,
                                     .w = call->inputs[W]->data,
                                     .bias = bias ? bias->data : NULL,
                                     .y = y.data,
                                     .scratch = call->scratch};
  OM_TRY(om_fast_run(ctx, state, &operands));
  om_epilogue_run(ctx, &p->epilogue, &y, om_rule_input(call, Z), call->outputs[0]);
  return OM_OK;
}

static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  const last_conv_params *p = call->params;
  const om_tensor *z = om_rule_input(call, Z);
  const om_tensor x = om_channels_first(call->inputs[X]);
  first_call first;
  om_fast_conv conv;
  om_fast_kernel *kernel = NULL;
  if (!call->inputs[W]->data || om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  if (om_tensor_elems(&x) == 0) return OM_OK;
  OM_TRY(infer_first(ctx, call, &first));
  const om_tensor y = om_channels_last(&first.y);
  OM_TRY(om_fast_conv_of(ctx, &p->conv, &x, call->inputs[W], &conv));
  conv.is_channels_last = true;
  conv.w = om_fast_weights_of(call, W, kept_inputs);
  const bool is_apart = z && !has_same_shape(z, &y);
  const om_epilogue_params none = {.activation = OM_FAST_NONE};
  om_epilogue_describe(is_apart ? &none : &p->epilogue,
                       om_rule_input(call, B) != NULL,
                       is_apart ? NULL : z,
                       &conv.epilogue);
  OM_TRY(om_fast_conv_create(ctx, fast, &conv, &kernel));
  om_fast_make_ready(kernel, is_apart ? run_apart : om_fast_run_call, true, out_ready);
  if (is_apart) out_ready->scratch_bytes += om_tensor_elems(call->outputs[0]) * sizeof(float);
  return OM_OK;
}

#define ENTRY(name, resolve_fn)              \
  {.domain = "onemodel",                     \
   .type = name,                             \
   .first_opset = 1,                         \
   OM_RULE_COUNTS(2, 4, 1, 1),               \
   .dtypes = OM_DT(OM_DTYPE_F32),            \
   .params_bytes = sizeof(last_conv_params), \
   .resolve = resolve_fn,                    \
   .infer = infer,                           \
   .scratch_bytes = scratch_bytes,           \
   .run = run,                               \
   .make_ready = make_ready}

const om_op om_ops_channels_last[] = {
    ENTRY("Conv", resolve),
    ENTRY("ConvTranspose", resolve_transposed),
    {.type = NULL},
};
