/* Operators that move data: strided copies as ops/op_layout.h and ops/op_slice.h describe them,
 * Concat (four inputs a dispatch) and Pad (a kernel of its own).
 */
#include "abi/concat_params.h"
#include "abi/pad_params.h"
#include "base/om_float16.h"
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

typedef struct om_concat_part { /* what one dispatch joins */
  om_gpu_operand operands[OM_CONCAT_INPUTS];
  uint32_t widths[OM_CONCAT_INPUTS]; /* words, or bytes of small elements; 0: unused */
} om_concat_part;

/* Appends the dispatch for a part whose inputs lie side by side in the target's rows from
 * params->begin on; moves begin behind them. */
static const char *add_concat(om_gpu_binder *b,
                              om_concat_rows_params *params,
                              om_shader shader,
                              uint32_t unit,
                              const om_concat_part *part,
                              om_gpu_operand target) {
  om_concat_rows_params own = *params;
  uint32_t widths[OM_CONCAT_INPUTS];
  own.width = 0;
  for (uint32_t i = 0; i < OM_CONCAT_INPUTS; ++i) {
    widths[i] = part->widths[i] / unit;
    own.width += widths[i];
  }
  params->begin += own.width * unit;
  memcpy(&own.width_0, widths, sizeof widths);
  own.begin /= unit;
  own.row_words /= unit;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &own, sizeof own);
  d->params_bytes = sizeof own;
  memcpy(d->operands, part->operands, sizeof part->operands);
  d->operands[OM_CONCAT_INPUTS] = target;
  d->operand_count = OM_CONCAT_INPUTS + 1;
  uint64_t threads = (uint64_t)own.rows * own.width;
  if (shader == OM_SHADER_CONCAT_BYTES) threads = (threads + 3) / 4;
  om_gpu_spread_groups(b, om_gpu_pieces(threads, OM_THREADS), d->groups);
  return NULL;
}

/* Words (or bytes) that an input has behind the axis and in it. */
static uint32_t concat_width(const om_gpu_binder *b, uint32_t input, uint32_t axis) {
  const om_tensor *x = om_gpu_input(b, input);
  return (uint32_t)(om_rule_product(x->dims, axis, x->rank) * om_gpu_words(x->dtype));
}

/* The first input from `input` on that adds something, or UINT32_MAX. */
static uint32_t concat_next(const om_gpu_binder *b, uint32_t input, uint32_t axis) {
  while (input < om_gpu_binder_node(b)->input_count) {
    if (concat_width(b, input, axis) > 0) return input;
    ++input;
  }
  return UINT32_MAX;
}

/* Rows whose parts do not begin at words: a dispatch makes whole words, so it makes all of what it
 * writes. More than four inputs are joined one after the other by way of scratch. */
static const char *concat_bytes(om_gpu_binder *b,
                                const om_concat_rows_params *whole,
                                uint32_t axis) {
  om_concat_part part = {.widths = {0}};
  uint32_t joined = 0; /* bytes of a row */
  uint32_t used = 0;   /* inputs of the part */
  for (uint32_t i = concat_next(b, 0, axis), next; i != UINT32_MAX; i = next) {
    next = concat_next(b, i + 1, axis);
    part.operands[used] = om_gpu_read(b, i);
    part.widths[used] = concat_width(b, i, axis);
    joined += part.widths[used++];
    const bool is_last = next == UINT32_MAX;
    if (!is_last && used < OM_CONCAT_INPUTS) continue;
    om_concat_rows_params params = {.rows = whole->rows, .row_words = joined};
    const om_gpu_operand target =
        is_last ? om_gpu_write(b, 0) : om_gpu_scratch(b, (uint64_t)whole->rows * joined);
    const char *reason = add_concat(b, &params, OM_SHADER_CONCAT_BYTES, 1, &part, target);
    if (reason) return reason;
    part = (om_concat_part){.operands = {target}, .widths = {joined}};
    used = 1;
  }
  return NULL;
}

/* Rows of words: each dispatch writes its part of the rows. */
static const char *concat_words(om_gpu_binder *b,
                                om_concat_rows_params *params,
                                uint32_t axis,
                                uint32_t word) {
  for (uint32_t next = concat_next(b, 0, axis); next != UINT32_MAX;) {
    om_concat_part part = {.widths = {0}};
    uint32_t all = params->begin | params->row_words;
    for (uint32_t i = 0; i < OM_CONCAT_INPUTS && next != UINT32_MAX; ++i) {
      part.operands[i] = om_gpu_read(b, next);
      part.widths[i] = concat_width(b, next, axis);
      all |= part.widths[i];
      next = concat_next(b, next + 1, axis);
    }
    const bool is_quad = all % (4 * word) == 0;
    const char *reason = add_concat(b,
                                    params,
                                    is_quad ? OM_SHADER_CONCAT_VEC4 : OM_SHADER_CONCAT,
                                    is_quad ? 4 * word : word,
                                    &part,
                                    om_gpu_write(b, 0));
    if (reason) return reason;
  }
  return NULL;
}

static const char *bind_concat(om_gpu_binder *b) {
  const om_node *node = om_gpu_binder_node(b);
  const om_concat_params *p = node->params;
  const om_tensor *y = om_gpu_output(b, 0);
  uint32_t all = 0;
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
  for (uint32_t i = 0; i < node->input_count; ++i) all |= concat_width(b, i, axis);
  if (!om_gpu_is_small(y->dtype)) return concat_words(b, &params, axis, 1);
  return all % 4 == 0 ? concat_words(b, &params, axis, 4) : concat_bytes(b, &params, axis);
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

/* The element's bits; opsets below 11 have a float, which is rounded to the type. */
static void read_pad_value(const om_pad_params *p,
                           om_dtype dtype,
                           const om_tensor *value,
                           om_pad_words_params *params) {
  uint32_t bits[2] = {0};
  const double wide = (double)p->value;
  uint16_t half = dtype == OM_DTYPE_F16 ? om_f16_from_f32(p->value) : om_bf16_from_f32(p->value);
  if (dtype == OM_DTYPE_F32) memcpy(bits, &p->value, sizeof p->value);
  if (dtype == OM_DTYPE_F64) memcpy(bits, &wide, sizeof wide);
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) bits[0] = half;
  if (value) memset(bits, 0, sizeof bits);
  if (value && om_dtype_bits(dtype) == 8) bits[0] = *(const uint8_t *)value->data;
  if (value && om_dtype_bits(dtype) == 16) bits[0] = *(const uint16_t *)value->data;
  if (value && om_dtype_bits(dtype) >= 32) memcpy(bits, value->data, om_dtype_bits(dtype) / 8);
  params->value = bits[0];
  params->value_high = bits[1];
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
  const uint32_t size = om_gpu_words(y->dtype);
  const bool is_small = om_gpu_is_small(y->dtype);
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
  read_pad_value(p, y->dtype, call.inputs[2], &params);

  const om_gpu_operand from = om_gpu_read(b, 0);
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, is_small ? OM_SHADER_PAD_BYTES : OM_SHADER_PAD);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = (uint32_t)p->mode;
  d->constants[1] = size;
  d->constant_count = 2;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  const uint64_t each = (uint64_t)OM_THREADS * (is_small ? 4 / size : 1);
  om_gpu_spread_groups(b, om_gpu_pieces(params.elems, each), d->groups);
  return NULL;
}

#define OM_MOVE(name, function) \
  {.domain = "", .type = (name), .dtypes = OM_DT_MOVED, .has_exact = true, .bind = (function)}

const om_gpu_op om_gpu_ops_layout[] = {
    OM_MOVE("Concat", bind_concat),
    OM_MOVE("DepthToSpace", bind_depth_to_space),
    OM_MOVE("Expand", bind_expand),
    {.domain = "", .type = "Pad", .dtypes = OM_DT_MOVED, .has_exact = true, .bind = bind_pad},
    OM_MOVE("Slice", bind_slice),
    OM_MOVE("SpaceToDepth", bind_space_to_depth),
    OM_MOVE("Split", bind_split),
    OM_MOVE("Tile", bind_tile),
    OM_MOVE("Transpose", bind_transpose),
    {.type = NULL},
};
