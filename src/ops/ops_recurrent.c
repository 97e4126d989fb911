/* RNN, GRU and LSTM (docs/exact.md, "Recurrent layers").
 *
 * With layout 1 the batch comes first in x, y and the states; strides take care of that. 16-bit
 * floats are widened: every input and result has a float32 copy in scratch.
 */
#include "ops/op_fast.h"
#include "ops/op_recurrent.h"

#include <inttypes.h>

#include "base/om_thread.h"
#include "cpu/exact/om_elementwise.h"
#include "ops/op_widen.h"

enum {
  SHARED_TERMS = 1 << 20
}; /* of a step's product, that are worth several threads: some 20 us of one */

/* ---- Attributes ---- */

typedef struct om_activation_entry {
  const char *name;
  om_recurrent_form form;
  uint8_t number;
  uint8_t scalar_count;
  float fallbacks[2];
} om_activation_entry;

static const om_activation_entry activation_entries[] = {
    {"Sigmoid", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Sigmoid, 0, {0.0f, 0.0f}},
    {"Tanh", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Tanh, 0, {0.0f, 0.0f}},
    {"Relu", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Relu, 0, {0.0f, 0.0f}},
    {"Softsign", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Softsign, 0, {0.0f, 0.0f}},
    {"Softplus", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Softplus, 0, {0.0f, 0.0f}},
    {"LeakyRelu", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_LeakyRelu, 1, {0.01f, 0.0f}},
    {"ThresholdedRelu", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_ThresholdedRelu, 1, {1.0f, 0.0f}},
    {"Elu", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_Elu, 1, {1.0f, 0.0f}},
    {"HardSigmoid", OM_RECURRENT_PLAIN, OM_ELEMENTWISE_HardSigmoid, 2, {0.2f, 0.5f}},
    {"Affine", OM_RECURRENT_AFFINE, 0, 2, {1.0f, 0.0f}},
    {"ScaledTanh", OM_RECURRENT_SCALED_TANH, OM_ELEMENTWISE_Tanh, 2, {1.0f, 1.0f}},
};

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Exporters spell the names in any case. */
static bool is_spelled(om_string text, const char *name) {
  size_t i = 0;
  while (i < text.bytes && name[i] && lower(text.data[i]) == lower(name[i])) ++i;
  return i == text.bytes && !name[i];
}

/* Values of activation_alpha or activation_beta, taken by the functions that have one, in order. */
typedef struct om_activation_values {
  const float *values;
  size_t count, used;
} om_activation_values;

static om_status read_values(om_ctx *ctx,
                             const om_node *node,
                             const char *name,
                             om_activation_values *out) {
  const om_attr *attr = om_node_attr(node, name);
  if (!attr) return OM_OK;
  if (attr->kind != OM_ATTR_FLOATS && attr->count > 0) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s is no list of floats.", name);
  }
  out->values = attr->floats;
  out->count = attr->count;
  return OM_OK;
}

static float next_value(om_activation_values *from, float fallback) {
  return from->used < from->count ? from->values[from->used++] : fallback;
}

static om_status resolve_activation(om_ctx *ctx,
                                    om_string name,
                                    om_activation_values values[2],
                                    om_recurrent_activation *out) {
  for (size_t i = 0; i < OM_COUNT_OF(activation_entries); ++i) {
    const om_activation_entry *e = &activation_entries[i];
    if (!is_spelled(name, e->name)) continue;
    *out = (om_recurrent_activation){e->form, e->number, {e->fallbacks[0], e->fallbacks[1]}};
    for (uint8_t k = 0; k < e->scalar_count; ++k) {
      out->scalars[k] = next_value(&values[k], e->fallbacks[k]);
    }
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The activation '%.*s' is none that ONNX names.",
                 (int)(name.bytes < 40 ? name.bytes : 40),
                 name.data);
}

static om_status resolve_activations(om_ctx *ctx, const om_node *node, om_recurrent_params *p) {
  static const char *const fallbacks[][OM_RECURRENT_ACTIVATIONS] = {
      [OM_RNN] = {"Tanh"}, [OM_GRU] = {"Sigmoid", "Tanh"}, [OM_LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
  const uint32_t each = p->kind == OM_RNN ? 1 : p->kind == OM_GRU ? 2 : 3;
  const om_attr *attr = om_node_attr(node, "activations");
  om_activation_values values[2] = {{.values = NULL}, {.values = NULL}};
  if (attr && (attr->kind != OM_ATTR_STRINGS || attr->count != each * p->direction_count)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute activations has %zu elements; %" PRIu32 " names are expected.",
                   attr->count,
                   each * p->direction_count);
  }
  OM_TRY(read_values(ctx, node, "activation_alpha", &values[0]));
  OM_TRY(read_values(ctx, node, "activation_beta", &values[1]));
  for (uint32_t d = 0; d < p->direction_count; ++d) {
    for (uint32_t i = 0; i < each; ++i) {
      const char *fallback = fallbacks[p->kind][i];
      om_string name = {fallback, strlen(fallback)};
      if (attr) name = attr->strings[d * each + i];
      OM_TRY(resolve_activation(ctx, name, values, &p->activations[d][i]));
    }
  }
  return OM_OK;
}

static om_status resolve_direction(om_ctx *ctx, const om_node *node, om_recurrent_params *p) {
  om_string direction;
  OM_TRY(om_node_attr_text(ctx, node, "direction", "forward", &direction));
  p->direction_count = om_string_is(direction, "bidirectional") ? 2 : 1;
  p->is_reverse = om_string_is(direction, "reverse");
  if (p->direction_count == 2 || p->is_reverse || om_string_is(direction, "forward")) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute direction is '%.*s', but it must be 'forward', 'reverse' or "
                 "'bidirectional'.",
                 (int)(direction.bytes < 40 ? direction.bytes : 40),
                 direction.data);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_recurrent_params *p = params;
  int64_t layout = 0;
  int64_t couples = 0;
  int64_t resets_after = 0;
  p->kind = OM_LSTM;
  if (strcmp(node->type, "GRU") == 0) p->kind = OM_GRU;
  if (strcmp(node->type, "RNN") == 0) p->kind = OM_RNN;
  OM_TRY(resolve_direction(ctx, node, p));
  OM_TRY(om_node_attr_int(ctx, node, "layout", 0, &layout));
  OM_TRY(om_node_attr_int(ctx, node, "hidden_size", 0, &p->hidden_size));
  OM_TRY(om_node_attr_int(ctx, node, "input_forget", 0, &couples));
  OM_TRY(om_node_attr_int(ctx, node, "linear_before_reset", 0, &resets_after));
  OM_TRY(om_node_attr_float(ctx, node, "clip", 0.0f, &p->clip));
  p->clips = om_node_attr(node, "clip") != NULL;
  p->couples = couples != 0;
  p->resets_after = resets_after != 0;
  p->is_batch_first = layout == 1;
  if (layout < 0 || layout > 1) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute layout is %" PRId64 "; 0 or 1 is expected.",
                   layout);
  }
  if (p->clips && !(p->clip >= 0.0f)) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute clip is %g.", (double)p->clip);
  }
  return resolve_activations(ctx, node, p);
}

/* ---- Shapes ---- */

static om_status check_operand(
    om_ctx *ctx, const om_op_call *call, uint32_t index, uint32_t rank, const int64_t *dims) {
  const om_tensor *t = om_rule_input(call, index);
  const om_dtype dtype =
      index == OM_RECURRENT_LENGTHS ? OM_DTYPE_I32 : call->inputs[OM_RECURRENT_X]->dtype;
  char have[OM_SHAPE_TEXT];
  char want[OM_SHAPE_TEXT];
  if (!t) return OM_OK;
  if (t->dtype == dtype && t->rank == rank && memcmp(t->dims, dims, rank * sizeof *dims) == 0) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input %" PRIu32 " is %s %s; %s %s is expected.",
                 index,
                 om_dtype_name(t->dtype),
                 om_shape_text(have, sizeof have, t->rank, t->dims),
                 om_dtype_name(dtype),
                 om_shape_text(want, sizeof want, rank, dims));
}

static om_status check_lengths(om_ctx *ctx, const om_tensor *lengths, int64_t steps) {
  if (!lengths || !om_rule_is_known(lengths)) return OM_OK;
  for (size_t i = 0; i < om_tensor_elems(lengths); ++i) {
    const int64_t length = om_rule_int(lengths, i);
    if (length >= 0 && length <= steps) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Element %zu of the sequence lengths is %" PRId64 ", but there are %" PRId64
                   " steps.",
                   i,
                   length,
                   steps);
  }
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_recurrent_params *p = call->params;
  const om_tensor *x = call->inputs[OM_RECURRENT_X];
  const om_tensor *r = call->inputs[OM_RECURRENT_R];
  if (x->rank != 3 || r->rank != 3 || (p->hidden_size && p->hidden_size != r->dims[2])) {
    char text[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The input has rank %" PRIu32
                   " and R is %s; rank 3 and a hidden size of %" PRId64 " are expected.",
                   x->rank,
                   om_shape_text(text, sizeof text, r->rank, r->dims),
                   p->hidden_size);
  }
  const int64_t d = p->direction_count;
  const int64_t hidden = r->dims[2];
  const int64_t steps = x->dims[p->is_batch_first ? 1 : 0];
  const int64_t batch = x->dims[p->is_batch_first ? 0 : 1];
  const int64_t gates = (int64_t)om_recurrent_gates(p->kind) * hidden;
  const int64_t state[3] = {p->is_batch_first ? batch : d, p->is_batch_first ? d : batch, hidden};
  const int64_t y[4] = {p->is_batch_first ? batch : steps,
                        p->is_batch_first ? steps : d,
                        p->is_batch_first ? d : batch,
                        hidden};
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_W, 3, (const int64_t[]){d, gates, x->dims[2]}));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_R, 3, (const int64_t[]){d, gates, hidden}));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_B, 2, (const int64_t[]){d, 2 * gates}));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_LENGTHS, 1, &batch));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_H0, 3, state));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_C0, 3, state));
  OM_TRY(check_operand(ctx, call, OM_RECURRENT_P, 2, (const int64_t[]){d, 3 * hidden}));
  OM_TRY(check_lengths(ctx, om_rule_input(call, OM_RECURRENT_LENGTHS), steps));
  OM_TRY(om_rule_set(ctx, call, 0, x->dtype, 4, y));
  for (uint32_t i = 1; i < call->output_count; ++i) {
    OM_TRY(om_rule_set(ctx, call, i, x->dtype, 3, state));
  }
  return OM_OK;
}

/* ---- Running ---- */

/* The layer with the data of its first direction, or of copies in scratch. */
static om_recurrent describe(const om_op_call *call) {
  const om_recurrent_params *p = call->params;
  const om_tensor *x = call->inputs[OM_RECURRENT_X];
  const size_t hidden = (size_t)call->inputs[OM_RECURRENT_R]->dims[2];
  const size_t d = p->direction_count;
  const bool is_batch_first = p->is_batch_first;
  om_recurrent r = {
      .kind = p->kind,
      .dtype = x->dtype == OM_DTYPE_F64 ? OM_DTYPE_F64 : OM_DTYPE_F32,
      .steps = (size_t)x->dims[is_batch_first ? 1 : 0],
      .batch = (size_t)x->dims[is_batch_first ? 0 : 1],
      .input = (size_t)x->dims[2],
      .hidden = hidden,
      .couples = p->couples,
      .resets_after = p->resets_after,
      .clips = p->clips,
      .clip = p->clip,
  };
  r.x_step_stride = is_batch_first ? 1 : r.batch;
  r.x_batch_stride = is_batch_first ? r.steps : 1;
  r.y_step_stride = d * hidden * (is_batch_first ? 1 : r.batch);
  r.y_batch_stride = hidden * (is_batch_first ? r.steps * d : 1);
  r.state_batch_stride = is_batch_first ? d * hidden : hidden;
  return r;
}

static size_t wide_bytes(const om_tensor *t) {
  return t ? om_size_align(om_tensor_elems(t) * sizeof(float), 64) : 0;
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_recurrent_params *p = call->params;
  const om_recurrent r = describe(call);
  size_t bytes = p->direction_count * om_recurrent_scratch_bytes(&r);
  if (!om_widen_needed(call->inputs[0]->dtype)) return bytes;
  for (uint32_t i = 0; i < call->input_count; ++i) bytes += wide_bytes(call->inputs[i]);
  for (uint32_t i = 0; i < call->output_count; ++i) bytes += wide_bytes(call->outputs[i]);
  return bytes;
}

typedef struct om_recurrent_data { /* of the computing type */
  const void *inputs[OM_RECURRENT_P + 1];
  void *outputs[3];
  char *rest; /* of the scratch */
} om_recurrent_data;

static om_recurrent_data gather_data(const om_op_call *call) {
  const bool is_wide = om_widen_needed(call->inputs[0]->dtype);
  om_recurrent_data data = {.rest = call->scratch};
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const om_tensor *t = call->inputs[i];
    if (!t) continue;
    data.inputs[i] = t->data;
    if (!is_wide || i == OM_RECURRENT_LENGTHS) continue;
    data.inputs[i] = om_widen(t, (float *)(void *)data.rest);
    data.rest += wide_bytes(t);
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    om_tensor *t = call->outputs[i];
    if (!t) continue;
    data.outputs[i] = is_wide ? data.rest : t->data;
    if (is_wide) data.rest += wide_bytes(t);
  }
  return data;
}

typedef struct om_recurrent_fast {                   /* by direction */
  om_fast_kernel *kernels[2][OM_RECURRENT_PRODUCTS]; /* owned */
} om_recurrent_fast;

static void multiply_fast(
    om_ctx *ctx, void *products, om_recurrent_product which, const void *a, void *y) {
  om_fast_kernel *const *kernels = products;
  const om_fast_operands operands = {.x = a, .y = y};
  OM_IGNORE(om_fast_run(ctx, kernels[which], &operands)); /* of a product nothing in it can fail */
}

static const void *part(const void *data, size_t elems, size_t elem_bytes) {
  return data ? (const char *)data + elems * elem_bytes : NULL;
}

static void *part_to_write(void *data, size_t elems, size_t elem_bytes) {
  return data ? (char *)data + elems * elem_bytes : NULL;
}

typedef struct om_recurrent_directions {
  om_ctx *ctx;
  const om_op_call *call;
  const om_recurrent_data *data;
  om_recurrent_fast *products; /* fast mode's, or NULL */
} om_recurrent_directions;

static void run_direction(const om_recurrent_directions *job, size_t d) {
  const om_op_call *call = job->call;
  const om_recurrent_data *data = job->data;
  const om_recurrent_params *p = call->params;
  om_recurrent r = describe(call);
  const size_t bytes = r.dtype == OM_DTYPE_F64 ? sizeof(double) : sizeof(float);
  const size_t gates = om_recurrent_gates(p->kind) * r.hidden;
  const size_t state = d * (p->is_batch_first ? 1 : r.batch) * r.hidden;
  r.is_reverse = p->is_reverse || d == 1;
  memcpy(r.activations, p->activations[d], sizeof r.activations);
  r.x = data->inputs[OM_RECURRENT_X];
  r.w = part(data->inputs[OM_RECURRENT_W], d * gates * r.input, bytes);
  r.r = part(data->inputs[OM_RECURRENT_R], d * gates * r.hidden, bytes);
  r.bias = part(data->inputs[OM_RECURRENT_B], d * 2 * gates, bytes);
  r.lengths = data->inputs[OM_RECURRENT_LENGTHS];
  r.h0 = part(data->inputs[OM_RECURRENT_H0], state, bytes);
  r.c0 = part(data->inputs[OM_RECURRENT_C0], state, bytes);
  r.peepholes = part(data->inputs[OM_RECURRENT_P], d * 3 * r.hidden, bytes);
  r.y = part_to_write(data->outputs[0], state, bytes);
  r.last_h = part_to_write(data->outputs[1], state, bytes);
  r.last_c = part_to_write(data->outputs[2], state, bytes);
  if (job->products) {
    r.multiply = multiply_fast;
    r.products = job->products->kernels[d];
  }
  om_recurrent_run(job->ctx, &r, data->rest + d * om_recurrent_scratch_bytes(&r));
}

static void run_directions(void *arg, size_t begin, size_t end) {
  for (size_t d = begin; d < end; ++d) run_direction(arg, d);
}

/* Whether two directions run beside each other: a step's product has too little for several
 * threads, or two threads are all there are. */
static bool are_side_by_side(const om_ctx *ctx, const om_recurrent *r) {
  const double terms =
      (double)r->batch * (double)r->hidden * (double)(om_recurrent_gates(r->kind) * r->hidden);
  return ctx->thread_count <= 2 || terms < (double)SHARED_TERMS;
}

static om_status run_all(om_ctx *ctx, const om_op_call *call, om_recurrent_fast *products) {
  const om_recurrent_params *p = call->params;
  const om_recurrent_data data = gather_data(call);
  const om_tensor *y = om_rule_output(call, 0);
  const om_recurrent r = describe(call);
  OM_TRY(check_lengths(ctx, om_rule_input(call, OM_RECURRENT_LENGTHS), (int64_t)r.steps));
  if (y) {
    const size_t bytes = r.dtype == OM_DTYPE_F64 ? sizeof(double) : sizeof(float);
    memset(data.outputs[0], 0, om_tensor_elems(y) * bytes);
  }
  om_recurrent_directions job = {.ctx = ctx, .call = call, .data = &data, .products = products};
  om_parallel_for(ctx, p->direction_count, are_side_by_side(ctx, &r) ? 1 : 2, run_directions, &job);
  if (!om_widen_needed(call->inputs[0]->dtype)) return OM_OK;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (call->outputs[i]) om_narrow(data.outputs[i], call->outputs[i]);
  }
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  return run_all(ctx, call, NULL);
}

/* ---- Fast mode: constant weights, packed ---- */

static om_status run_fast(om_ctx *ctx, const om_op_call *call, void *state) {
  return run_all(ctx, call, state);
}

static void destroy_fast(om_ctx *ctx, void *state) {
  om_recurrent_fast *fast = state;
  if (!fast) return;
  for (size_t i = 0; i < OM_COUNT_OF(fast->kernels); ++i) {
    for (size_t k = 0; k < OM_RECURRENT_PRODUCTS; ++k) {
      om_fast_kernel_destroy(ctx, fast->kernels[i][k]);
    }
  }
  om_delete(ctx, fast);
}

/* Rows times [cols, depth], turned. */
static om_status make_product(om_ctx *ctx,
                              om_fast *fast,
                              const size_t extents[3], /* rows, depth, cols */
                              om_fast_weights weights,
                              om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  const int64_t rows = (int64_t)extents[0];
  const int64_t depth = (int64_t)extents[1];
  const int64_t cols = (int64_t)extents[2];
  om_fast_product *product = NULL; /* large for the stack */
  OM_GO_NEW(product, 1);
  *product = (om_fast_product){.rank = 2,
                               .a_dims = {rows, depth},
                               .a_strides = {depth, 1},
                               .b_dims = {depth, cols},
                               .b_strides = {1, depth},
                               .y_dims = {rows, cols},
                               .b = weights,
                               .epilogue = {.scale = 1.0f}};
  OM_GO(om_fast_product_create(ctx, fast, product, out_kernel));
done:
  om_delete(ctx, product);
  return st;
}

static om_status make_products(om_ctx *ctx,
                               const om_op_call *call,
                               uint32_t kept_inputs,
                               om_fast *fast,
                               size_t d,
                               om_fast_kernel *out_kernels[OM_RECURRENT_PRODUCTS]) {
  const om_recurrent r = describe(call);
  const size_t width = om_recurrent_gates(r.kind) * r.hidden;
  const size_t early = om_recurrent_early(&r);
  const size_t inputs[3] = {r.steps * r.batch, r.input, width};
  const size_t states[3] = {r.batch, r.hidden, early};
  const size_t resets[3] = {r.batch, r.hidden, width - early};
  om_fast_weights w = om_fast_weights_of(call, OM_RECURRENT_W, kept_inputs);
  om_fast_weights own = om_fast_weights_of(call, OM_RECURRENT_R, kept_inputs);
  w.data += d * width * r.input;
  own.data += d * width * r.hidden;
  OM_TRY(make_product(ctx, fast, inputs, w, &out_kernels[OM_RECURRENT_INPUTS]));
  OM_TRY(make_product(ctx, fast, states, own, &out_kernels[OM_RECURRENT_EARLY]));
  own.data += early * r.hidden;
  if (early == width) return OM_OK;
  return make_product(ctx, fast, resets, own, &out_kernels[OM_RECURRENT_LATE]);
}

static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  om_status st = OM_OK;
  const om_recurrent_params *p = call->params;
  const om_recurrent r = describe(call);
  om_recurrent_fast *state = NULL;
  if (call->inputs[OM_RECURRENT_X]->dtype != OM_DTYPE_F32 || !call->inputs[OM_RECURRENT_W]->data ||
      !call->inputs[OM_RECURRENT_R]->data || r.steps * r.batch * r.input * r.hidden == 0) {
    return OM_OK;
  }
  OM_GO_NEW(state, 1);
  for (size_t d = 0; d < p->direction_count; ++d) {
    OM_GO(make_products(ctx, call, kept_inputs, fast, d, state->kernels[d]));
  }
  *out_ready = (om_op_ready){.run = run_fast,
                             .destroy = destroy_fast,
                             .state = state,
                             .scratch_bytes = scratch_bytes(call),
                             .packed_inputs = 1u << OM_RECURRENT_W | 1u << OM_RECURRENT_R};
  state = NULL; /* the step owns it now */
done:
  destroy_fast(ctx, state);
  return st;
}

#define OM_RECURRENT_ENTRY(name, most_inputs, most_outputs) \
  {.domain = "",                                            \
   .type = name,                                            \
   .first_opset = 7,                                        \
   OM_RULE_COUNTS(3, most_inputs, 0, most_outputs),         \
   .dtypes = OM_DT_FLOAT,                                   \
   .params_bytes = sizeof(om_recurrent_params),             \
   .resolve = resolve,                                      \
   .infer = infer,                                          \
   .scratch_bytes = scratch_bytes,                          \
   .run = run,                                              \
   .make_ready = make_ready}

const om_op om_ops_recurrent[] = {
    OM_RECURRENT_ENTRY("RNN", 6, 2),
    OM_RECURRENT_ENTRY("GRU", 6, 2),
    OM_RECURRENT_ENTRY("LSTM", 8, 3),
    {.type = NULL},
};
