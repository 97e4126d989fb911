/* Cast and CastLike. */
#include "cpu/exact/om_cast.h"
#include "ops/om_rule.h"
#include "ops/op_elementwise.h"
#include "ops/op_text.h"
#include "ops/op_types.h"

static om_status resolve_saturate(om_ctx *ctx, const om_node *node, om_cast_params *params) {
  int64_t saturate = 1;
  OM_TRY(om_node_attr_int(ctx, node, "saturate", 1, &saturate));
  params->saturates = saturate != 0;
  return OM_OK;
}

static om_status resolve_cast(om_ctx *ctx, const om_node *node, void *params) {
  om_cast_params *p = params;
  int64_t to = 0;
  OM_TRY(om_node_attr_int(ctx, node, "to", 0, &to));
  if (to <= OM_DTYPE_NONE || to >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute 'to' is %lld, which is no element type.",
                   (long long)to);
  }
  p->to = (om_dtype)to;
  return resolve_saturate(ctx, node, p);
}

static om_status resolve_cast_like(om_ctx *ctx, const om_node *node, void *params) {
  return resolve_saturate(ctx, node, params);
}

/* Numbers that text is made of: not those of less than a byte, nor complex ones. */
static bool has_text(om_dtype dtype) {
  return (OM_DT(dtype) & (OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL))) != 0;
}

static om_status infer_text(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *in = call->inputs[0];
  char text[OM_NUMBER_TEXT];
  size_t bytes = 0;
  if (!om_rule_is_known(in)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_STRING);
    return OM_OK;
  }
  for (size_t i = 0; i < om_tensor_elems(in); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    bytes += om_text_of_number(in, i, text);
  }
  return om_text_set(ctx, call, in->rank, in->dims, bytes);
}

static om_status write_text(om_ctx *ctx, const om_tensor *in, om_tensor *out) {
  om_string *strings = out->data;
  char text[OM_NUMBER_TEXT], *place = om_text_place(out);
  for (size_t i = 0; i < om_tensor_elems(in); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    strings[i] = (om_string){.data = place, .bytes = om_text_of_number(in, i, text)};
    memcpy(place, text, strings[i].bytes);
    place += strings[i].bytes;
  }
  return OM_OK;
}

static om_status read_text(om_ctx *ctx, const om_tensor *in, om_tensor *out) {
  const om_string *strings = in->data;
  for (size_t i = 0; i < om_tensor_elems(in); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    OM_TRY(om_number_of_text(ctx, strings[i], out, i));
  }
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_cast_params *params = call->params;
  om_tensor *out = call->outputs[0];
  om_dtype from = call->inputs[0]->dtype;
  om_dtype to = params->to == OM_DTYPE_NONE ? call->inputs[1]->dtype : params->to;
  if (to == OM_DTYPE_STRING && has_text(from)) return infer_text(ctx, call);
  om_copy_type_and_shape(call->inputs[0], out);
  out->dtype = to;
  if (from == OM_DTYPE_STRING && has_text(to)) return OM_OK;
  if (out->dtype != call->inputs[0]->dtype &&
      !om_cast_is_there(call->inputs[0]->dtype, out->dtype)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A conversion from %s to %s is not implemented.",
                   om_dtype_name(call->inputs[0]->dtype),
                   om_dtype_name(out->dtype));
  }
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_cast_params *params = call->params;
  om_dtype from = call->inputs[0]->dtype, to = call->outputs[0]->dtype;
  if (from == OM_DTYPE_STRING && to != from) {
    return read_text(ctx, call->inputs[0], call->outputs[0]);
  }
  if (to == OM_DTYPE_STRING && to != from) {
    return write_text(ctx, call->inputs[0], call->outputs[0]);
  }
  om_cast_run(ctx, call->inputs[0], call->outputs[0], params->saturates);
  return OM_OK;
}

const om_op om_ops_cast[] = {
    {.domain = "",
     .type = "Cast",
     .first_opset = 6,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_cast_params),
     .resolve = resolve_cast,
     .infer = infer,
     .run = run},
    {.domain = "",
     .type = "CastLike",
     .first_opset = 15,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_cast_params),
     .resolve = resolve_cast_like,
     .shaped_inputs = 1u << 1,
     .infer = infer,
     .run = run},
    {.type = NULL},
};
