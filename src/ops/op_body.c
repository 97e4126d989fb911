/* Bodies, kept values and stacks: see op_body.h. */
#include "ops/op_body.h"

#include <inttypes.h>

#include "graph/om_value_copy.h"
#include "ops/om_rule.h"
#include "ops/op_nibbles.h"

const om_graph *om_op_body(const om_node *node, const char *name) {
  return om_node_attr(node, name)->graph;
}

om_status om_op_check_body(
    om_ctx *ctx, const om_node *node, const char *name, size_t input_count, size_t output_count) {
  const om_attr *attr = om_node_attr(node, name);
  if (!attr) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute '%s' is missing.", name);
  if (attr->kind != OM_ATTR_GRAPH) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute '%s' is no graph.", name);
  }
  const om_graph *body = attr->graph;
  if (om_body_formal_count(body) != input_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Its '%s' has %zu inputs, but gets %zu.",
                   name,
                   om_body_formal_count(body),
                   input_count);
  }
  if (body->output_count == output_count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "Its '%s' has %zu outputs, but %zu are expected.",
                 name,
                 body->output_count,
                 output_count);
}

om_status om_body_keep(om_ctx *ctx,
                       const om_op_call *call,
                       uint32_t slot,
                       const om_tensor *value,
                       om_tensor *out_copy) {
  size_t bytes = 0;
  void *memory = NULL;
  if (!om_value_bytes(value, &bytes)) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "A value nests too deep or is too large to be kept.");
  }
  OM_TRY(call->bodies->reserve(ctx, call->bodies, slot, bytes, &memory));
  om_value_copy(value, memory, out_copy);
  return OM_OK;
}

void om_body_set_output(const om_op_call *call, uint32_t output, const om_tensor *value) {
  om_tensor *out = om_rule_output(call, output);
  if (out) *out = *value;
}

om_status om_body_scalar(om_ctx *ctx, const om_tensor *tensor, const char *what, int64_t *out) {
  char shape[OM_SHAPE_TEXT];
  bool is_known_type = tensor->dtype == OM_DTYPE_BOOL || tensor->dtype == OM_DTYPE_I64 ||
                       tensor->dtype == OM_DTYPE_I32;
  if (!is_known_type || om_tensor_elems(tensor) != 1) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The %s is %s of shape %s, not one element.",
                   what,
                   om_dtype_name(tensor->dtype),
                   om_shape_text(shape, sizeof shape, tensor->rank, tensor->dims));
  }
  *out =
      tensor->dtype == OM_DTYPE_BOOL ? *(const uint8_t *)tensor->data != 0 : om_rule_int(tensor, 0);
  return OM_OK;
}

/* ---- Stacks ---- */

static bool has_shape_of(const om_tensor *a, const om_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  return memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

/* The first turn's shape holds for all. */
static om_status check_elem(om_ctx *ctx, om_stack *stack, const om_tensor *value) {
  char shape[OM_SHAPE_TEXT], first[OM_SHAPE_TEXT];
  if (om_dtype_is_nested(value->dtype) || value->rank >= OM_MAX_RANK) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A %s of rank %" PRIu32 " cannot be stacked.",
                   om_dtype_name(value->dtype),
                   value->rank);
  }
  if (stack->count == 0) {
    uint32_t axis = 0;
    OM_TRY(om_rule_axis(ctx, stack->axis, value->rank + 1, &axis));
    stack->axis = axis;
    stack->elem = *value;
  }
  if (has_shape_of(value, &stack->elem)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "What the body makes in turn %" PRId64 " is %s %s, but it was %s %s before.",
                 stack->count,
                 om_dtype_name(value->dtype),
                 om_shape_text(shape, sizeof shape, value->rank, value->dims),
                 om_dtype_name(stack->elem.dtype),
                 om_shape_text(first, sizeof first, stack->elem.rank, stack->elem.dims));
}

/* Room for `need` bytes in a slot that doubles. */
static om_status make_room(om_ctx *ctx,
                           const om_op_call *call,
                           uint32_t slot,
                           size_t need,
                           size_t *capacity,
                           void **out_data) {
  size_t wanted = *capacity;
  if (need > wanted) wanted = wanted > SIZE_MAX / 2 || need > wanted * 2 ? need : wanted * 2;
  OM_TRY(call->bodies->reserve(ctx, call->bodies, slot, wanted, out_data));
  *capacity = wanted;
  return OM_OK;
}

/* The strings' bytes move to the stack's own memory, which may move again: until the end the
 * strings hold offsets into it. */
static om_status take_text(
    om_ctx *ctx, const om_op_call *call, om_stack *stack, const om_string *from, om_string *to) {
  void *text = NULL;
  size_t need = 0;
  if (!om_size_add(stack->text_bytes, from->bytes, &need)) need = SIZE_MAX;
  OM_TRY(make_room(ctx, call, stack->slot + 1, need, &stack->text_capacity, &text));
  if (from->bytes > 0) memcpy((char *)text + stack->text_bytes, from->data, from->bytes);
  to->bytes = from->bytes;
  to->data = (const char *)(uintptr_t)stack->text_bytes;
  stack->text_bytes = need;
  return OM_OK;
}

/* `count` elements; places are counted in elements. */
static om_status copy_run(om_ctx *ctx,
                          const om_op_call *call,
                          om_stack *stack,
                          const om_tensor *value,
                          size_t from,
                          void *data,
                          size_t to,
                          size_t count) {
  const size_t elem_bytes = om_rule_elem_bytes(value->dtype);
  if (om_is_nibble(value->dtype)) {
    om_nibbles_copy(value->data, from, data, to, count);
    return OM_OK;
  }
  if (value->dtype != OM_DTYPE_STRING) {
    const char *source = (const char *)value->data + from * elem_bytes;
    if (count > 0) memcpy((char *)data + to * elem_bytes, source, count * elem_bytes);
    return OM_OK;
  }
  const om_string *source = (const om_string *)value->data + from;
  om_string *target = (om_string *)data + to;
  for (size_t i = 0; i < count; ++i) {
    OM_TRY(take_text(ctx, call, stack, &source[i], &target[i]));
  }
  return OM_OK;
}

om_status om_stack_add(om_ctx *ctx,
                       const om_op_call *call,
                       om_stack *stack,
                       const om_tensor *value) {
  OM_TRY(check_elem(ctx, stack, value));
  void *data = NULL;
  size_t need = 0;
  const uint32_t axis = (uint32_t)stack->axis;
  const size_t bits = om_dtype_bits(value->dtype);
  const size_t run = om_rule_product(value->dims, axis, value->rank);
  const size_t outer = om_rule_product(value->dims, 0, axis);
  const size_t turns = (size_t)(stack->turn_count < 0 ? stack->count + 1 : stack->turn_count);
  if (!om_size_mul(outer * run, turns, &need) || need > OM_RULE_MAX_BYTES / bits) {
    return OM_FAIL(
        ctx, OM_E_OUT_OF_MEMORY, "%zu turns of %zu elements are too many.", turns, outer * run);
  }
  need = (need * bits + 7) / 8;
  OM_TRY(make_room(ctx, call, stack->slot, need, &stack->bytes, &data));
  int64_t place = stack->is_reversed ? stack->turn_count - 1 - stack->count : stack->count;
  for (size_t o = 0; o < outer; ++o) {
    const size_t to = (o * turns + (size_t)place) * run;
    OM_TRY(copy_run(ctx, call, stack, value, o * run, data, to, run));
  }
  stack->count += 1;
  return OM_OK;
}

static om_tensor empty_elem(const om_value *declared) {
  om_tensor elem = {.dtype = declared->dtype, .rank = declared->has_rank ? declared->rank : 0};
  for (uint32_t i = 0; i < elem.rank; ++i) {
    elem.dims[i] = declared->dims[i] < 0 ? 0 : declared->dims[i];
  }
  return elem;
}

om_status om_stack_finish(om_ctx *ctx,
                          const om_op_call *call,
                          om_stack *stack,
                          const om_value *declared,
                          uint32_t output) {
  void *data = NULL, *text = NULL;
  if (stack->count == 0) {
    uint32_t axis = 0;
    stack->elem = empty_elem(declared);
    OM_TRY(om_rule_axis(ctx, stack->axis, stack->elem.rank + 1, &axis));
    stack->axis = axis;
  }
  om_tensor whole = {.dtype = stack->elem.dtype, .rank = stack->elem.rank + 1};
  for (uint32_t i = 0, from = 0; i < whole.rank; ++i) {
    whole.dims[i] = i == (uint32_t)stack->axis ? stack->count : stack->elem.dims[from++];
  }
  OM_TRY(call->bodies->reserve(ctx, call->bodies, stack->slot, stack->bytes, &data));
  if (whole.dtype == OM_DTYPE_STRING) {
    om_string *strings = data;
    OM_TRY(call->bodies->reserve(ctx, call->bodies, stack->slot + 1, stack->text_bytes, &text));
    for (size_t i = 0; i < om_tensor_elems(&whole); ++i) {
      strings[i].data = (const char *)text + (uintptr_t)strings[i].data;
    }
  }
  whole.data = data;
  const size_t elems = om_tensor_elems(&whole);
  if (om_is_nibble(whole.dtype) && elems % 2 != 0) ((uint8_t *)data)[elems / 2] &= 15;
  om_body_set_output(call, output, &whole);
  return OM_OK;
}
