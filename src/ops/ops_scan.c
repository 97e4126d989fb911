/* Scan: a body runs along an axis of its inputs and stacks up what it makes.
 *
 *     operands    states ..., inputs ...          body    states ..., slices ...
 *     results     states ..., stacks ...                  ->  states ..., parts ...
 *
 * Opset 8 has a batch in front of everything, and lengths as the first operand: each sample is a
 * scan of its own, along axis 1.
 */
#include <inttypes.h>

#include "ops/om_rule.h"
#include "ops/op_body.h"
#include "ops/op_nibbles.h"

typedef struct om_scan_params {
  bool has_batch; /* opset 8 */
  uint32_t state_count, input_count, stack_count;
  uint32_t first; /* operand */
  om_rule_list input_axes, output_axes, input_directions, output_directions;
} om_scan_params;

static int64_t item(const om_rule_list *list, size_t index) {
  return list->is_given ? list->values[index] : 0;
}

static om_status read_list(
    om_ctx *ctx, const om_node *node, const char *name, size_t count, om_rule_list *out) {
  OM_TRY(om_rule_list_attr(ctx, node, name, out));
  if (!out->is_given || out->count == count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute '%s' has %zu elements, not %zu.",
                 name,
                 out->count,
                 count);
}

static om_status read_directions(
    om_ctx *ctx, const om_node *node, const char *name, size_t count, om_rule_list *out) {
  OM_TRY(read_list(ctx, node, name, count, out));
  for (size_t i = 0; i < count; ++i) {
    int64_t direction = item(out, i);
    if (direction == 0 || direction == 1) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "'%s' has %" PRId64 ", not 0 or 1.", name, direction);
  }
  return OM_OK;
}

static om_status scan_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_scan_params *p = params;
  int64_t input_count = 0;
  p->has_batch = node->opset < 9;
  p->first = p->has_batch ? 1 : 0;
  const uint32_t formal = om_node_formal_count(node);
  OM_TRY(om_node_attr_int(ctx, node, "num_scan_inputs", 0, &input_count));
  if (input_count < 1 || formal < p->first || input_count > (int64_t)(formal - p->first)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "num_scan_inputs is %" PRId64 ", but there are %" PRIu32 " inputs.",
                   input_count,
                   formal - p->first);
  }
  p->input_count = (uint32_t)input_count;
  p->state_count = formal - p->first - p->input_count;
  if (node->output_count < p->state_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "It has %" PRIu32 " outputs, but carries %" PRIu32 " values.",
                   node->output_count,
                   p->state_count);
  }
  p->stack_count = node->output_count - p->state_count;
  const char *directions = p->has_batch ? "directions" : "scan_input_directions";
  OM_TRY(read_directions(ctx, node, directions, p->input_count, &p->input_directions));
  if (!p->has_batch) {
    OM_TRY(read_list(ctx, node, "scan_input_axes", p->input_count, &p->input_axes));
    OM_TRY(read_list(ctx, node, "scan_output_axes", p->stack_count, &p->output_axes));
    OM_TRY(read_directions(
        ctx, node, "scan_output_directions", p->stack_count, &p->output_directions));
  }
  return om_op_check_body(
      ctx, node, "body", (size_t)p->state_count + p->input_count, node->output_count);
}

typedef struct scan { /* one run, or one sample's */
  const om_op_call *call;
  const om_scan_params *params;
  int64_t length, turn;
  om_tensor *sources; /* what is scanned */
  uint32_t *axes;
  om_tensor *inputs, *outputs; /* of the body */
  om_stack *stacks;
} scan;

/* Slot 0 has the lists; a state and a stack have two, a scanned input one for its slice. */
static uint32_t state_slot(uint32_t state, bool is_odd) {
  return 1 + 2 * state + (is_odd ? 1 : 0);
}

static uint32_t slice_slot(const om_scan_params *p, uint32_t input) {
  return state_slot(p->state_count + p->stack_count, false) + input;
}

static om_status make_lists(om_ctx *ctx, scan *s) {
  const om_op_call *call = s->call;
  const om_scan_params *p = s->params;
  void *memory = NULL;
  size_t inputs = (size_t)p->state_count + p->input_count, outputs = call->output_count;
  size_t bytes = (inputs + outputs + p->input_count) * sizeof(om_tensor) +
                 p->stack_count * sizeof(om_stack) + p->input_count * sizeof(uint32_t);
  OM_TRY(call->bodies->reserve(ctx, call->bodies, 0, bytes, &memory));
  s->inputs = memory;
  s->outputs = s->inputs + inputs;
  s->sources = s->outputs + outputs;
  s->stacks = (om_stack *)(void *)(s->sources + p->input_count);
  s->axes = (uint32_t *)(void *)(s->stacks + p->stack_count);
  return OM_OK;
}

/* All scanned inputs have the same length. */
static om_status find_length(om_ctx *ctx, scan *s) {
  const om_scan_params *p = s->params;
  for (uint32_t i = 0; i < p->input_count; ++i) {
    const om_tensor *source = &s->sources[i];
    OM_TRY(om_rule_axis(ctx, item(&p->input_axes, i), source->rank, &s->axes[i]));
    int64_t length = source->dims[s->axes[i]];
    if (i == 0) s->length = length;
    if (length == s->length) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Its scanned inputs have %" PRId64 " and %" PRId64 " elements along their axes.",
                   s->length,
                   length);
  }
  return OM_OK;
}

static om_status begin(om_ctx *ctx, scan *s) {
  const om_scan_params *p = s->params;
  OM_TRY(find_length(ctx, s));
  for (uint32_t i = 0; i < p->stack_count; ++i) {
    s->stacks[i] = (om_stack){.slot = state_slot(p->state_count + i, false),
                              .axis = item(&p->output_axes, i),
                              .is_reversed = item(&p->output_directions, i) == 1,
                              .turn_count = s->length};
  }
  return OM_OK;
}

/* A slice of 4-bit elements, which may begin within a byte. */
static om_status take_nibbles(om_ctx *ctx, scan *s, uint32_t index, size_t turn, om_tensor *out) {
  const om_tensor *source = &s->sources[index];
  const uint32_t axis = s->axes[index];
  const size_t run = om_rule_product(source->dims, axis + 1, source->rank);
  const size_t outer = om_rule_product(source->dims, 0, axis);
  const size_t bytes = outer * run / 2 + 1;
  OM_TRY(s->call->bodies->reserve(
      ctx, s->call->bodies, slice_slot(s->params, index), bytes, &out->data));
  memset(out->data, 0, bytes);
  for (size_t o = 0; o < outer; ++o) {
    const size_t from = (o * (size_t)s->length + turn) * run;
    om_nibbles_copy(source->data, from, out->data, o * run, run);
  }
  return OM_OK;
}

/* The part of a source that this turn reads; in place where the axis is the first. */
static om_status take_slice(om_ctx *ctx, scan *s, uint32_t index, om_tensor *out) {
  const om_tensor *source = &s->sources[index];
  const uint32_t axis = s->axes[index];
  bool is_backward = item(&s->params->input_directions, index) == 1;
  const size_t turn = (size_t)(is_backward ? s->length - 1 - s->turn : s->turn);
  const size_t bytes =
      om_rule_product(source->dims, axis + 1, source->rank) * om_rule_elem_bytes(source->dtype);
  const size_t outer = om_rule_product(source->dims, 0, axis);
  char *data = (char *)source->data + turn * bytes;
  *out = (om_tensor){.dtype = source->dtype, .rank = source->rank - 1};
  for (uint32_t i = 0, to = 0; i < source->rank; ++i) {
    if (i != axis) out->dims[to++] = source->dims[i];
  }
  if (om_is_nibble(source->dtype)) return take_nibbles(ctx, s, index, turn, out);
  out->data = data;
  if (outer == 1) return OM_OK;
  OM_TRY(s->call->bodies->reserve(
      ctx, s->call->bodies, slice_slot(s->params, index), outer * bytes, &out->data));
  for (size_t o = 0; o < outer; ++o) {
    memcpy((char *)out->data + o * bytes, data + o * (size_t)s->length * bytes, bytes);
  }
  return OM_OK;
}

static om_status run_turn(om_ctx *ctx, scan *s) {
  const om_op_call *call = s->call;
  const om_scan_params *p = s->params;
  for (uint32_t i = 0; i < p->input_count; ++i) {
    OM_TRY(take_slice(ctx, s, i, &s->inputs[p->state_count + i]));
  }
  OM_TRY(call->bodies->run(ctx, call->bodies, 0, s->inputs, s->outputs));
  for (uint32_t i = 0; i < p->state_count; ++i) {
    uint32_t slot = state_slot(i, (s->turn & 1) != 0); /* not the one that the body has read */
    OM_TRY(om_body_keep(ctx, call, slot, &s->outputs[i], &s->inputs[i]));
  }
  for (uint32_t i = 0; i < p->stack_count; ++i) {
    OM_TRY(om_stack_add(ctx, call, &s->stacks[i], &s->outputs[p->state_count + i]));
  }
  return OM_OK;
}

static om_status run_turns(om_ctx *ctx, scan *s, int64_t turn_count) {
  for (s->turn = 0; s->turn < turn_count; ++s->turn) {
    om_status st = run_turn(ctx, s);
    if (st == OM_OK) continue;
    om_error_prefix(ctx, "Turn %" PRId64, s->turn);
    return st;
  }
  return OM_OK;
}

static om_status finish_stack(om_ctx *ctx, scan *s, uint32_t index) {
  const om_graph *body = om_op_body(s->call->node, "body");
  uint32_t output = s->params->state_count + index;
  const om_value *declared = &body->values[body->outputs[output]];
  return om_stack_finish(ctx, s->call, &s->stacks[index], declared, output);
}

static om_status scan_run(om_ctx *ctx, const om_op_call *call) {
  scan s = {.call = call, .params = call->params};
  const om_scan_params *p = call->params;
  OM_TRY(make_lists(ctx, &s));
  for (uint32_t i = 0; i < p->input_count; ++i) s.sources[i] = *call->inputs[p->state_count + i];
  for (uint32_t i = 0; i < p->state_count; ++i) {
    OM_TRY(om_body_keep(ctx, call, state_slot(i, true), call->inputs[i], &s.inputs[i]));
  }
  OM_TRY(begin(ctx, &s));
  OM_TRY(run_turns(ctx, &s, s.length));
  for (uint32_t i = 0; i < p->state_count; ++i) om_body_set_output(call, i, &s.inputs[i]);
  for (uint32_t i = 0; i < p->stack_count; ++i) OM_TRY(finish_stack(ctx, &s, i));
  return OM_OK;
}

/* ---- Opset 8: a batch ---- */

static om_status check_batch(om_ctx *ctx, const om_op_call *call, int64_t *out_batch) {
  const om_scan_params *p = call->params;
  for (uint32_t i = 1; i < om_node_formal_count(call->node); ++i) {
    const om_tensor *x = call->inputs[i];
    bool is_scanned = i > p->state_count;
    OM_TRY(om_rule_check_bytes(ctx, x));
    if (i == 1 && x->rank > 0) *out_batch = x->dims[0];
    if (x->rank > (is_scanned ? 1 : 0) && x->dims[0] == *out_batch) continue;
    char shape[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input %" PRIu32 " of shape %s does not fit a batch of %" PRId64 ".",
                   i,
                   om_shape_text(shape, sizeof shape, x->rank, x->dims),
                   *out_batch);
  }
  if (*out_batch > 0) return OM_OK;
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "A batch of 0 is not supported.");
}

static om_tensor sample_of(const om_tensor *x, int64_t sample) {
  om_tensor part = {.dtype = x->dtype, .rank = x->rank - 1};
  for (uint32_t i = 1; i < x->rank; ++i) part.dims[i - 1] = x->dims[i];
  size_t bytes = om_rule_product(x->dims, 1, x->rank) * om_rule_elem_bytes(x->dtype);
  part.data = (char *)x->data + (size_t)sample * bytes;
  return part;
}

static om_status read_length(om_ctx *ctx, const scan *s, int64_t sample, int64_t *out_length) {
  const om_tensor *lengths = s->call->inputs[0];
  *out_length = s->length;
  if (!lengths) return OM_OK;
  OM_TRY(om_rule_check_int(ctx, lengths, "sequence lengths"));
  if (lengths->rank != 1 || lengths->dims[0] <= sample) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "There are fewer lengths than samples.");
  }
  *out_length = om_rule_int(lengths, (size_t)sample);
  if (*out_length >= 0 && *out_length <= s->length) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The length %" PRId64 " is outside 0..%" PRId64 ".",
                 *out_length,
                 s->length);
}

/* A sample's results behind those before it; what is past its length is zero. */
static om_status join_sample(
    om_ctx *ctx, const scan *s, uint32_t output, uint32_t slot, int64_t sample, int64_t batch) {
  void *data = NULL;
  om_tensor *out = om_rule_output(s->call, output);
  if (!out) return OM_OK;
  om_tensor part = *out;
  bool is_stack = output >= s->params->state_count;
  if (part.rank >= OM_MAX_RANK || part.dtype == OM_DTYPE_STRING || om_is_nibble(part.dtype)) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "A batch of such results is not supported.");
  }
  size_t bytes = om_rule_product(part.dims, 0, part.rank) * om_rule_elem_bytes(part.dtype);
  if (is_stack) part.dims[0] = s->length;
  size_t room = om_rule_product(part.dims, 0, part.rank) * om_rule_elem_bytes(part.dtype);
  OM_TRY(s->call->bodies->reserve(ctx, s->call->bodies, slot, room * (size_t)batch, &data));
  char *place = (char *)data + (size_t)sample * room;
  memcpy(place, part.data, bytes);
  memset(place + bytes, 0, room - bytes);
  if (sample + 1 < batch) return OM_OK;
  om_tensor whole = {.dtype = part.dtype, .rank = part.rank + 1, .data = data};
  whole.dims[0] = batch;
  for (uint32_t i = 0; i < part.rank; ++i) whole.dims[i + 1] = part.dims[i];
  *out = whole;
  return OM_OK;
}

static om_status run_sample(om_ctx *ctx, scan *s, int64_t sample, int64_t batch) {
  const om_op_call *call = s->call;
  const om_scan_params *p = s->params;
  int64_t length = 0;
  for (uint32_t i = 0; i < p->input_count; ++i) {
    s->sources[i] = sample_of(call->inputs[p->first + p->state_count + i], sample);
  }
  for (uint32_t i = 0; i < p->state_count; ++i) {
    om_tensor state = sample_of(call->inputs[p->first + i], sample);
    OM_TRY(om_body_keep(ctx, call, state_slot(i, true), &state, &s->inputs[i]));
  }
  OM_TRY(begin(ctx, s));
  OM_TRY(read_length(ctx, s, sample, &length));
  OM_TRY(run_turns(ctx, s, length));
  for (uint32_t i = 0; i < p->state_count; ++i) om_body_set_output(call, i, &s->inputs[i]);
  for (uint32_t i = 0; i < p->stack_count; ++i) OM_TRY(finish_stack(ctx, s, i));
  uint32_t slot = slice_slot(p, p->input_count);
  for (uint32_t i = 0; i < call->output_count; ++i) {
    OM_TRY(join_sample(ctx, s, i, slot + i, sample, batch));
  }
  return OM_OK;
}

static om_status scan_batch_run(om_ctx *ctx, const om_op_call *call) {
  scan s = {.call = call, .params = call->params};
  int64_t batch = 0;
  OM_TRY(check_batch(ctx, call, &batch));
  OM_TRY(make_lists(ctx, &s));
  for (int64_t i = 0; i < batch; ++i) OM_TRY(run_sample(ctx, &s, i, batch));
  return OM_OK;
}

const om_op om_ops_scan[] = {
    {.domain = "",
     .type = "Scan",
     .first_opset = 8,
     .last_opset = 8,
     OM_RULE_COUNTS(0, UINT8_MAX, 1, UINT8_MAX),
     .params_bytes = sizeof(om_scan_params),
     .bodies = {"body"},
     .resolve = scan_resolve,
     .run = scan_batch_run},
    {.domain = "",
     .type = "Scan",
     .first_opset = 9,
     OM_RULE_COUNTS(1, UINT8_MAX, 1, UINT8_MAX),
     .params_bytes = sizeof(om_scan_params),
     .bodies = {"body"},
     .resolve = scan_resolve,
     .run = scan_run},
    {.type = NULL},
};
