/* Operators that move data: strided copies as ops/op_layout.h and ops/op_slice.h describe them,
 * Concat (four inputs a dispatch) and Pad (a kernel of its own).
 */
#include "abi/concat_params.h"
#include "abi/pad_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_layout.h"
#include "ops/op_slice.h"

enum { OM_THREADS = 256, OM_CALL_INPUTS = 5 };

/* The step as the shape rules see it. */
typedef struct om_gpu_call {
  om_op_call call;
  const om_tensor *inputs[OM_CALL_INPUTS];
  om_tensor result; /* a copy */
  om_tensor *outputs[1];
} om_gpu_call;

static void make_call(const om_gpu_binder *b, om_gpu_call *out) {
  const om_node *node = om_gpu_binder_node(b);
  *out = (om_gpu_call){.result = {.dtype = OM_DTYPE_NONE}};
  for (uint32_t i = 0; i < OM_CALL_INPUTS; ++i) out->inputs[i] = om_gpu_input(b, i);
  if (om_gpu_output(b, 0)) out->result = *om_gpu_output(b, 0);
  out->outputs[0] = &out->result;
  out->call = (om_op_call){
      .node = node,
      .params = node->params,
      .inputs = out->inputs,
      .input_count = node->input_count < OM_CALL_INPUTS ? node->input_count : OM_CALL_INPUTS,
      .outputs = out->outputs,
      .output_count = 1,
  };
}

/* One copy from input 0 to output 0. */
static const char *bind_single(om_gpu_binder *b, const om_strided *copy) {
  const om_tensor *x = om_gpu_input(b, 0);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (!x->data && om_gpu_copy_is_view(copy, om_tensor_elems(x))) {
    om_gpu_make_view(b);
    return NULL;
  }
  return om_gpu_bind_copy(b, copy, x->dtype, om_gpu_read(b, 0), om_gpu_write(b, 0));
}

typedef void (*om_describe_fn)(const om_op_call *call, om_strided *out);

static const char *bind_described(om_gpu_binder *b, om_describe_fn describe) {
  om_gpu_call call;
  om_strided copy;
  make_call(b, &call);
  for (uint32_t i = 1; i < call.call.input_count; ++i) {
    if (call.inputs[i] && !om_rule_is_known(call.inputs[i])) {
      return "what it takes is only known at run time";
    }
  }
  describe(&call.call, &copy);
  return bind_single(b, &copy);
}

static const char *bind_transpose(om_gpu_binder *b) {
  return bind_described(b, om_layout_transpose);
}

static const char *bind_slice(om_gpu_binder *b) {
  return bind_described(b, om_slice_copy);
}

static const char *bind_expand(om_gpu_binder *b) {
  return bind_described(b, om_expand_copy);
}

static const char *bind_tile(om_gpu_binder *b) {
  return bind_described(b, om_tile_copy);
}

static const char *bind_depth_to_space(om_gpu_binder *b) {
  return bind_described(b, om_layout_depth_to_space);
}

static const char *bind_space_to_depth(om_gpu_binder *b) {
  return bind_described(b, om_layout_space_to_depth);
}

/* ---- Split ---- */

static const char *bind_split(om_gpu_binder *b) {
  const om_tensor *x = om_gpu_input(b, 0);
  const om_node *node = om_gpu_binder_node(b);
  om_gpu_call call;
  make_call(b, &call);
  call.call.output_count = node->output_count; /* counted, not looked at */
  if (call.inputs[1] && !om_rule_is_known(call.inputs[1])) {
    return "its sizes are only known at run time";
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    om_strided copy;
    if (!om_gpu_output(b, i)) continue;
    om_layout_split(&call.call, i, &copy);
    const char *reason =
        om_gpu_bind_copy(b, &copy, x->dtype, om_gpu_read(b, 0), om_gpu_write(b, i));
    if (reason) return reason;
  }
  return NULL;
}

/* ---- Concat ---- */

enum { OM_CONCAT_INPUTS = 4 }; /* of one dispatch */

/* Appends the dispatch for inputs first..first + count - 1, which lie side by side in the result's
 * rows from params->begin on; moves begin behind them. */
static const char *add_concat(om_gpu_binder *b,
                              om_concat_rows_params *params,
                              const uint32_t *widths,
                              uint32_t first,
                              uint32_t count) {
  om_gpu_operand operands[OM_CONCAT_INPUTS + 1] = {{.kind = OM_GPU_NOTHING}};
  om_concat_rows_params own = *params;
  uint32_t all = own.begin | own.row_words;
  own.width = 0;
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = om_gpu_read(b, first + i);
    own.width += widths[i];
    all |= widths[i];
  }
  operands[OM_CONCAT_INPUTS] = om_gpu_write(b, 0);
  params->begin += own.width;
  const uint32_t quad = all % 4 == 0 ? 4 : 1;
  const uint32_t divided[4] = {
      widths[0] / quad, widths[1] / quad, widths[2] / quad, widths[3] / quad};
  memcpy(&own.width_0, divided, sizeof divided);
  own.width /= quad;
  own.begin /= quad;
  own.row_words /= quad;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, quad == 4 ? OM_SHADER_CONCAT_VEC4 : OM_SHADER_CONCAT);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &own, sizeof own);
  d->params_bytes = sizeof own;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = OM_CONCAT_INPUTS + 1;
  const uint64_t threads = (uint64_t)own.rows * own.width;
  om_gpu_spread_groups(b, (threads + OM_THREADS - 1) / OM_THREADS, d->groups);
  return NULL;
}

static const char *bind_concat(om_gpu_binder *b) {
  const om_node *node = om_gpu_binder_node(b);
  const om_concat_params *p = node->params;
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + y->rank : p->axis);
  const size_t inner = om_rule_product(y->dims, axis + 1, y->rank) * om_gpu_words(y->dtype);
  om_concat_rows_params params = {
      .rows = (uint32_t)om_rule_product(y->dims, 0, axis),
      .row_words = (uint32_t)((size_t)y->dims[axis] * inner),
  };
  if (node->input_count == 1 && !om_gpu_input(b, 0)->data) {
    om_gpu_make_view(b);
    return NULL;
  }
  for (uint32_t first = 0; first < node->input_count && !reason; first += OM_CONCAT_INPUTS) {
    uint32_t widths[OM_CONCAT_INPUTS] = {0};
    uint32_t count = 0;
    for (; count < OM_CONCAT_INPUTS && first + count < node->input_count; ++count) {
      widths[count] = (uint32_t)((size_t)om_gpu_input(b, first + count)->dims[axis] * inner);
    }
    reason = add_concat(b, &params, widths, first, count);
  }
  return reason;
}

/* ---- Pad ---- */

/* Axes without padding join the one inside them, as long as that has none either or is whole. */
static uint32_t pad_axes(const om_tensor *x, const om_pads *pads, om_pad_words_params *params) {
  uint32_t result[OM_MAX_RANK] = {0};
  uint32_t source[OM_MAX_RANK] = {0};
  int32_t before[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  bool is_open = false; /* the last axis taken has no padding */
  for (uint32_t axis = x->rank; axis-- > 0;) {
    const bool is_plain = pads->before[axis] == 0 && pads->behind[axis] == 0;
    if (is_plain && is_open) {
      result[rank - 1] *= (uint32_t)x->dims[axis];
      source[rank - 1] *= (uint32_t)x->dims[axis];
      continue;
    }
    source[rank] = (uint32_t)x->dims[axis];
    result[rank] = (uint32_t)(x->dims[axis] + pads->before[axis] + pads->behind[axis]);
    before[rank] = (int32_t)pads->before[axis];
    is_open = is_plain;
    ++rank;
  }
  memcpy(&params->result_0, result, sizeof result);
  memcpy(&params->source_0, source, sizeof source);
  memcpy(&params->before_0, before, sizeof before);
  return rank;
}

static const char *bind_pad(om_gpu_binder *b) {
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *y = om_gpu_output(b, 0);
  om_pad_words_params params = {.elems = 0};
  om_gpu_call call;
  om_pads pads;
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  make_call(b, &call);
  const om_pad_params *p = call.call.params;
  for (uint32_t i = 1; i < call.call.input_count; ++i) {
    if (call.inputs[i] && !om_rule_is_known(call.inputs[i])) {
      return "its pads or its value are only known at run time";
    }
  }
  om_pad_read(&call.call, &pads);
  params.elems = (uint32_t)om_tensor_elems(y);
  params.rank = pad_axes(x, &pads, &params);
  memcpy(&params.value, &p->value, sizeof params.value);
  if (call.inputs[2]) memcpy(&params.value, call.inputs[2]->data, sizeof params.value);

  const om_gpu_operand from = om_gpu_read(b, 0);
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_PAD);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = (uint32_t)p->mode;
  d->constant_count = 1;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  om_gpu_spread_groups(b, ((uint64_t)params.elems + OM_THREADS - 1) / OM_THREADS, d->groups);
  return NULL;
}

#define OM_MOVE(name, function) \
  {.domain = "", .type = (name), .dtypes = OM_DT_WORDS, .has_exact = true, .bind = (function)}

const om_gpu_op om_gpu_ops_layout[] = {
    OM_MOVE("Concat", bind_concat),
    OM_MOVE("DepthToSpace", bind_depth_to_space),
    OM_MOVE("Expand", bind_expand),
    {.domain = "",
     .type = "Pad",
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_U32),
     .has_exact = true,
     .bind = bind_pad},
    OM_MOVE("Slice", bind_slice),
    OM_MOVE("SpaceToDepth", bind_space_to_depth),
    OM_MOVE("Split", bind_split),
    OM_MOVE("Tile", bind_tile),
    OM_MOVE("Transpose", bind_transpose),
    {.type = NULL},
};
