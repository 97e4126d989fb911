/* Sequences: lists of tensors of one element type. */
#include <inttypes.h>

#include "graph/om_value_copy.h"
#include "ops/om_rule.h"
#include "ops/op_body.h"
#include "ops/op_nested.h"

static const om_tensor *elems_of(const om_tensor *sequence) {
  return sequence->data;
}

static size_t count_of(const om_tensor *sequence) {
  return (size_t)sequence->dims[0];
}

static om_status check_same_type(om_ctx *ctx, const om_tensor *first, const om_tensor *other) {
  if (first->dtype == other->dtype) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A tensor of %s does not fit a sequence of %s.",
                 om_dtype_name(other->dtype),
                 om_dtype_name(first->dtype));
}

/* ---- SequenceConstruct, SequenceEmpty ---- */

static om_status construct_infer(om_ctx *ctx, const om_op_call *call) {
  om_nested_size size = {0};
  for (uint32_t i = 0; i < call->input_count; ++i) {
    OM_TRY(check_same_type(ctx, call->inputs[0], call->inputs[i]));
    om_nested_add(&size, call->inputs[i]);
  }
  return om_nested_set(ctx, call, 0, OM_DTYPE_SEQUENCE, &size);
}

static om_status construct_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  for (uint32_t i = 0; i < call->input_count; ++i) om_nested_write(&writer, call->inputs[i]);
  return OM_OK;
}

/* ---- SequenceInsert, SequenceErase, SequenceAt, SequenceLength ---- */

/* The position in 0..end-1, counted from the end where it is negative; `fallback` where none is
 * given. */
static om_status read_position(om_ctx *ctx,
                               const om_op_call *call,
                               uint32_t input,
                               size_t end,
                               size_t fallback,
                               size_t *out_position) {
  const om_tensor *position = om_rule_input(call, input);
  int64_t value = 0;
  *out_position = fallback;
  if (!position) return OM_OK;
  OM_TRY(om_body_scalar(ctx, position, "position", &value));
  size_t count = count_of(call->inputs[0]);
  int64_t low = -(int64_t)count, high = (int64_t)end - 1;
  if (value < low || value > high) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The position %" PRId64 " is outside a sequence of %zu.",
                   value,
                   count);
  }
  *out_position = (size_t)(value < 0 ? value + (int64_t)count : value);
  return OM_OK;
}

static bool is_known(const om_op_call *call, uint32_t input) {
  const om_tensor *tensor = om_rule_input(call, input);
  return !tensor || om_rule_is_known(tensor);
}

static om_status insert_infer(om_ctx *ctx, const om_op_call *call) {
  om_nested_size size = {0};
  const om_tensor *sequence = call->inputs[0];
  size_t position = 0;
  if (!om_rule_is_known(sequence)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_SEQUENCE);
    return OM_OK;
  }
  size_t count = count_of(sequence);
  if (is_known(call, 2)) OM_TRY(read_position(ctx, call, 2, count + 1, count, &position));
  if (count > 0) OM_TRY(check_same_type(ctx, &elems_of(sequence)[0], call->inputs[1]));
  for (size_t i = 0; i < count; ++i) om_nested_add(&size, &elems_of(sequence)[i]);
  om_nested_add(&size, call->inputs[1]);
  return om_nested_set(ctx, call, 0, OM_DTYPE_SEQUENCE, &size);
}

static om_status insert_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *sequence = call->inputs[0];
  size_t count = count_of(sequence), position = 0;
  OM_TRY(read_position(ctx, call, 2, count + 1, count, &position));
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  for (size_t i = 0; i <= count; ++i) {
    if (i == position) om_nested_write(&writer, call->inputs[1]);
    if (i < count) om_nested_write(&writer, &elems_of(sequence)[i]);
  }
  return OM_OK;
}

static om_status erase_infer(om_ctx *ctx, const om_op_call *call) {
  om_nested_size size = {0};
  const om_tensor *sequence = call->inputs[0];
  size_t position = 0;
  if (!om_rule_is_known(sequence) || !is_known(call, 1)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_SEQUENCE);
    return OM_OK;
  }
  size_t count = count_of(sequence);
  if (count == 0) return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The sequence is empty.");
  OM_TRY(read_position(ctx, call, 1, count, count - 1, &position));
  for (size_t i = 0; i < count; ++i) {
    if (i != position) om_nested_add(&size, &elems_of(sequence)[i]);
  }
  return om_nested_set(ctx, call, 0, OM_DTYPE_SEQUENCE, &size);
}

static om_status erase_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *sequence = call->inputs[0];
  size_t count = count_of(sequence), position = 0;
  OM_TRY(read_position(ctx, call, 1, count, count - 1, &position));
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  for (size_t i = 0; i < count; ++i) {
    if (i != position) om_nested_write(&writer, &elems_of(sequence)[i]);
  }
  return OM_OK;
}

static om_status at_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *sequence = call->inputs[0];
  size_t position = 0;
  if (!om_rule_is_known(sequence) || !om_rule_is_known(call->inputs[1])) {
    om_rule_set_unknown(call, 0, OM_DTYPE_NONE);
    return OM_OK;
  }
  OM_TRY(read_position(ctx, call, 1, count_of(sequence), 0, &position));
  return om_nested_infer_copy(ctx, call, &elems_of(sequence)[position]);
}

static om_status at_run(om_ctx *ctx, const om_op_call *call) {
  size_t position = 0;
  OM_TRY(read_position(ctx, call, 1, count_of(call->inputs[0]), 0, &position));
  om_nested_run_copy(call, &elems_of(call->inputs[0])[position]);
  return OM_OK;
}

static om_status length_infer(om_ctx *ctx, const om_op_call *call) {
  return om_rule_set(ctx, call, 0, OM_DTYPE_I64, 0, NULL);
}

static om_status length_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  *(int64_t *)call->outputs[0]->data = call->inputs[0]->dims[0];
  return OM_OK;
}

/* ---- SplitToSequence ---- */

typedef struct om_split_sequence_params {
  int64_t axis, keepdims;
} om_split_sequence_params;

static om_status split_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_split_sequence_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  return om_node_attr_int(ctx, node, "keepdims", 1, &p->keepdims);
}

typedef struct parts {            /* along the axis */
  const om_tensor *input, *sizes; /* sizes NULL: parts of 1 */
  uint32_t axis;
  bool drops_axis;
  size_t count;
  int64_t extent, each; /* each: the size of all but the last; 0: `sizes` is a list */
} parts;

static om_status count_parts(om_ctx *ctx, parts *p) {
  if (p->sizes && p->sizes->rank == 1) {
    int64_t sum = 0;
    p->count = om_tensor_elems(p->sizes);
    for (size_t i = 0; i < p->count; ++i) {
      int64_t size = om_rule_int(p->sizes, i);
      if (size < 0 || size > p->extent - sum) sum = INT64_MIN / 2;
      sum += size;
    }
    if (sum == p->extent) return OM_OK;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The sizes of the parts do not add up to the %" PRId64 " elements of axis %u.",
                   p->extent,
                   p->axis);
  }
  p->each = 1;
  if (p->sizes) OM_TRY(om_body_scalar(ctx, p->sizes, "size of the parts", &p->each));
  if (p->each < 1) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Parts of %" PRId64 " elements cannot be.", p->each);
  }
  p->count = (size_t)(p->extent / p->each + (p->extent % p->each != 0));
  return OM_OK;
}

static om_status find_parts(om_ctx *ctx, const om_op_call *call, parts *p) {
  const om_split_sequence_params *params = call->params;
  *p = (parts){.input = call->inputs[0], .sizes = om_rule_input(call, 1)};
  OM_TRY(om_rule_check_bytes(ctx, p->input));
  OM_TRY(om_rule_axis(ctx, params->axis, p->input->rank, &p->axis));
  if (p->sizes) OM_TRY(om_rule_check_int(ctx, p->sizes, "sizes of the parts"));
  p->drops_axis = !p->sizes && params->keepdims == 0;
  p->extent = p->input->dims[p->axis];
  return count_parts(ctx, p);
}

/* Type and shape of a part; the data are still the input's. */
static om_tensor shape_part(const parts *p, size_t index, int64_t begin) {
  om_tensor part = *p->input;
  int64_t size = p->each > 0 ? p->each : om_rule_int(p->sizes, index);
  if (size > p->extent - begin) size = p->extent - begin;
  part.dims[p->axis] = size;
  if (!p->drops_axis) return part;
  for (uint32_t i = p->axis; i + 1 < part.rank; ++i) part.dims[i] = part.dims[i + 1];
  part.rank -= 1;
  return part;
}

/* Each string of the input is in one part, so all of their bytes are; every part is aligned. */
static void add_text(const parts *p, om_nested_size *size) {
  const om_string *strings = p->input->data;
  for (size_t i = 0; i < om_tensor_elems(p->input); ++i) {
    if (!om_size_add(size->bytes, strings[i].bytes, &size->bytes)) size->is_too_big = true;
  }
  if (!om_size_add(size->bytes, p->count * OM_VALUE_ALIGNMENT, &size->bytes)) {
    size->is_too_big = true;
  }
}

static void add_part(const om_tensor *part, om_nested_size *size) {
  size_t bytes = om_rule_product(part->dims, 0, part->rank) * om_rule_elem_bytes(part->dtype);
  size->count += 1;
  if (!om_size_add(size->bytes, om_size_align(bytes, OM_VALUE_ALIGNMENT), &size->bytes)) {
    size->is_too_big = true;
  }
}

static om_status split_infer(om_ctx *ctx, const om_op_call *call) {
  parts p;
  om_nested_size size = {0};
  int64_t begin = 0;
  bool is_text = call->inputs[0]->dtype == OM_DTYPE_STRING;
  if (!is_known(call, 1) || (is_text && !is_known(call, 0))) {
    om_rule_set_unknown(call, 0, OM_DTYPE_SEQUENCE);
    return OM_OK;
  }
  OM_TRY(find_parts(ctx, call, &p));
  for (size_t i = 0; i < p.count; ++i) {
    om_tensor part = shape_part(&p, i, begin);
    add_part(&part, &size);
    begin += p.each > 0 ? p.each : om_rule_int(p.sizes, i);
  }
  if (is_text) add_text(&p, &size);
  return om_nested_set(ctx, call, 0, OM_DTYPE_SEQUENCE, &size);
}

/* The strings' bytes go behind the part. */
static void move_text(om_tensor *part, om_nested_writer *writer) {
  om_string *strings = part->data;
  size_t used = 0;
  for (size_t i = 0; i < om_tensor_elems(part); ++i) {
    if (strings[i].bytes > 0) memcpy(writer->at + used, strings[i].data, strings[i].bytes);
    strings[i].data = (const char *)writer->at + used;
    used += strings[i].bytes;
  }
  writer->at += om_size_align(used, OM_VALUE_ALIGNMENT);
}

static om_status split_run(om_ctx *ctx, const om_op_call *call) {
  parts p;
  int64_t begin = 0;
  OM_TRY(find_parts(ctx, call, &p));
  const size_t step = om_rule_product(p.input->dims, p.axis + 1, p.input->rank) *
                      om_rule_elem_bytes(p.input->dtype);
  const size_t outer = om_rule_product(p.input->dims, 0, p.axis);
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  for (size_t i = 0; i < p.count; ++i) {
    om_tensor *part = &writer.elems[i];
    int64_t size = p.each > 0 ? p.each : om_rule_int(p.sizes, i);
    if (size > p.extent - begin) size = p.extent - begin;
    *part = shape_part(&p, i, begin);
    part->data = writer.at;
    part->data_bytes = outer * (size_t)size * step;
    for (size_t o = 0; o < outer && size > 0; ++o) {
      memcpy(writer.at + o * (size_t)size * step,
             (const char *)p.input->data + (o * (size_t)p.extent + (size_t)begin) * step,
             (size_t)size * step);
    }
    writer.at += om_size_align(part->data_bytes, OM_VALUE_ALIGNMENT);
    if (part->dtype == OM_DTYPE_STRING) move_text(part, &writer);
    begin += size;
  }
  return OM_OK;
}

/* ---- ConcatFromSequence ---- */

typedef struct om_concat_sequence_params {
  int64_t axis, new_axis;
} om_concat_sequence_params;

static om_status concat_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_concat_sequence_params *p = params;
  if (!om_node_attr(node, "axis")) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute 'axis' is missing.");
  }
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  return om_node_attr_int(ctx, node, "new_axis", 0, &p->new_axis);
}

/* All but the axis must be the same. */
static om_status check_joined(
    om_ctx *ctx, const om_tensor *first, const om_tensor *elem, size_t index, int64_t axis) {
  bool does_fit = elem->dtype == first->dtype && elem->rank == first->rank;
  for (uint32_t i = 0; does_fit && i < elem->rank; ++i) {
    if (elem->dims[i] != first->dims[i] && i != axis) does_fit = false;
  }
  if (does_fit) return OM_OK;
  char shape[OM_SHAPE_TEXT], other[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Element %zu is %s %s, which cannot be joined to %s %s.",
                 index,
                 om_dtype_name(elem->dtype),
                 om_shape_text(shape, sizeof shape, elem->rank, elem->dims),
                 om_dtype_name(first->dtype),
                 om_shape_text(other, sizeof other, first->rank, first->dims));
}

static om_status concat_infer(om_ctx *ctx, const om_op_call *call) {
  const om_concat_sequence_params *p = call->params;
  const om_tensor *sequence = call->inputs[0];
  uint32_t axis = 0;
  int64_t dims[OM_MAX_RANK + 1] = {0};
  if (!om_rule_is_known(sequence)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_NONE);
    return OM_OK;
  }
  size_t count = count_of(sequence);
  if (count == 0) return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The sequence is empty.");
  const om_tensor *first = &elems_of(sequence)[0];
  bool is_new = p->new_axis != 0;
  uint32_t rank = first->rank + (is_new ? 1 : 0);
  OM_TRY(om_rule_check_bytes(ctx, first));
  OM_TRY(om_rule_axis(ctx, p->axis, rank, &axis));
  for (uint32_t i = 0, from = 0; i < rank; ++i) {
    dims[i] = is_new && i == axis ? (int64_t)count : first->dims[from++];
  }
  for (size_t i = 1; i < count; ++i) {
    const om_tensor *elem = &elems_of(sequence)[i];
    OM_TRY(check_joined(ctx, first, elem, i, is_new ? -1 : (int64_t)axis));
    if (!is_new && elem->dims[axis] > INT64_MAX - dims[axis]) dims[axis] = -1;
    if (!is_new && dims[axis] >= 0) dims[axis] += elem->dims[axis];
  }
  return om_rule_set(ctx, call, 0, first->dtype, rank, dims);
}

static om_status concat_run(om_ctx *ctx, const om_op_call *call) {
  const om_concat_sequence_params *p = call->params;
  const om_tensor *elems = elems_of(call->inputs[0]);
  om_tensor *out = call->outputs[0];
  uint32_t axis = 0;
  OM_TRY(om_rule_axis(ctx, p->axis, out->rank, &axis));
  const size_t elem_bytes = om_rule_elem_bytes(out->dtype);
  const size_t outer = om_rule_product(out->dims, 0, axis);
  const size_t row = om_rule_product(out->dims, axis, out->rank) * elem_bytes;
  size_t place = 0;
  for (size_t i = 0; i < count_of(call->inputs[0]); ++i) {
    size_t run = om_rule_product(elems[i].dims, axis, elems[i].rank) * elem_bytes;
    for (size_t o = 0; o < outer && run > 0; ++o) {
      memcpy((char *)out->data + o * row + place, (const char *)elems[i].data + o * run, run);
    }
    place += run;
  }
  return OM_OK;
}

/* ---- SequenceMap ----
 *
 *     operands    sequence, sequences or tensors ...     body    element, elements or tensors ...
 *     results     sequences ...                          ->  elements ...
 */

static om_status map_resolve(om_ctx *ctx, const om_node *node, void *params) {
  (void)params;
  return om_op_check_body(ctx, node, "body", om_node_formal_count(node), node->output_count);
}

typedef struct mapping { /* one run */
  const om_op_call *call;
  uint32_t input_count;
  size_t count;
  om_tensor *inputs, *outputs; /* of the body */
  om_tensor *lists;            /* what each output holds: count elements each */
} mapping;

static om_status map_check(om_ctx *ctx, mapping *m) {
  for (uint32_t i = 0; i < m->input_count; ++i) {
    const om_tensor *input = m->call->inputs[i];
    if (input->dtype != OM_DTYPE_SEQUENCE || count_of(input) == m->count) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input %u has %zu elements, but the first has %zu.",
                   i,
                   count_of(input),
                   m->count);
  }
  return OM_OK;
}

static om_status map_begin(om_ctx *ctx, mapping *m) {
  const om_op_call *call = m->call;
  void *memory = NULL;
  size_t lists = 0, bytes = 0;
  size_t fixed = (size_t)m->input_count + call->output_count;
  if (!om_size_mul(m->count, call->output_count, &lists) || !om_size_add(lists, fixed, &bytes) ||
      !om_size_mul(bytes, sizeof(om_tensor), &bytes)) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "A sequence of %zu elements is too long.", m->count);
  }
  OM_TRY(call->bodies->reserve(ctx, call->bodies, 0, bytes, &memory));
  m->inputs = memory;
  m->outputs = m->inputs + m->input_count;
  m->lists = m->outputs + call->output_count;
  return OM_OK;
}

static om_status map_run(om_ctx *ctx, const om_op_call *call) {
  mapping m = {.call = call,
               .input_count = om_node_formal_count(call->node),
               .count = count_of(call->inputs[0])};
  OM_TRY(map_check(ctx, &m));
  OM_TRY(map_begin(ctx, &m));
  for (size_t i = 0; i < m.count; ++i) {
    for (uint32_t k = 0; k < m.input_count; ++k) {
      const om_tensor *input = call->inputs[k];
      m.inputs[k] = input->dtype == OM_DTYPE_SEQUENCE ? elems_of(input)[i] : *input;
    }
    OM_TRY(call->bodies->run(ctx, call->bodies, 0, m.inputs, m.outputs));
    for (uint32_t k = 0; k < call->output_count; ++k) {
      /* An element has a slot of its own: the sequence's elements are in one piece by themselves.
       */
      uint32_t slot = 1 + (uint32_t)i * call->output_count + k;
      OM_TRY(om_body_keep(ctx, call, slot, &m.outputs[k], &m.lists[k * m.count + i]));
    }
  }
  for (uint32_t k = 0; k < call->output_count; ++k) {
    om_tensor list = om_sequence_of(m.count, m.lists + k * m.count);
    om_body_set_output(call, k, &list);
  }
  return OM_OK;
}

const om_op om_ops_sequence[] = {
    {.domain = "",
     .type = "SequenceConstruct",
     .first_opset = 11,
     OM_RULE_COUNTS(1, UINT8_MAX, 1, 1),
     .dtypes = OM_DT_ALL,
     .infer = construct_infer,
     .run = construct_run},
    {.domain = "",
     .type = "SequenceEmpty",
     .first_opset = 11,
     OM_RULE_COUNTS(0, 0, 1, 1),
     .infer = construct_infer,
     .run = construct_run},
    {.domain = "",
     .type = "SequenceInsert",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 3, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .infer = insert_infer,
     .run = insert_run},
    {.domain = "",
     .type = "SequenceErase",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 2, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .infer = erase_infer,
     .run = erase_run},
    {.domain = "",
     .type = "SequenceAt",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .infer = at_infer,
     .run = at_run},
    {.domain = "",
     .type = "SequenceLength",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .shaped_inputs = 1u << 0,
     .infer = length_infer,
     .run = length_run},
    {.domain = "",
     .type = "SplitToSequence",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 2, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_split_sequence_params),
     .resolve = split_resolve,
     .infer = split_infer,
     .run = split_run},
    {.domain = "",
     .type = "ConcatFromSequence",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .params_bytes = sizeof(om_concat_sequence_params),
     .resolve = concat_resolve,
     .infer = concat_infer,
     .run = concat_run},
    {.domain = "",
     .type = "SequenceMap",
     .first_opset = 17,
     OM_RULE_COUNTS(1, UINT8_MAX, 1, UINT8_MAX),
     .dtypes = OM_DT(OM_DTYPE_SEQUENCE),
     .params_bytes = 1,
     .bodies = {"body"},
     .resolve = map_resolve,
     .run = map_run},
    {.type = NULL},
};
