/* Operators of text: StringConcat, StringSplit, StringNormalizer. Lengths are bytes, of UTF-8. */
#include "ops/om_rule.h"
#include "ops/op_text.h"

/* ---- StringConcat ---- */

/* The element of `input` that is broadcast to the result's element `elem`. */
static const om_string *broadcast(const om_tensor *input, const om_tensor *shape, size_t elem) {
  size_t index = 0, stride = 1;
  for (uint32_t i = shape->rank; i-- > 0;) {
    size_t extent = (size_t)shape->dims[i], at = elem % extent;
    elem /= extent;
    if (i + input->rank < shape->rank) break;
    int64_t own = input->dims[i + input->rank - shape->rank];
    if (own != 1) index += at * stride;
    stride *= (size_t)own;
  }
  return (const om_string *)input->data + index;
}

static om_status concat_infer(om_ctx *ctx, const om_op_call *call) {
  om_tensor shape = {.dtype = OM_DTYPE_STRING};
  const om_tensor *a = call->inputs[0], *b = call->inputs[1];
  size_t bytes = 0;
  if (b->dtype != OM_DTYPE_STRING) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its second input is %s.", om_dtype_name(b->dtype));
  }
  OM_TRY(om_rule_broadcast(ctx, a, &shape.rank, shape.dims));
  OM_TRY(om_rule_broadcast(ctx, b, &shape.rank, shape.dims));
  if (!om_rule_is_known(a) || !om_rule_is_known(b)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_STRING);
    return OM_OK;
  }
  OM_TRY(om_rule_set(ctx, call, 0, OM_DTYPE_STRING, shape.rank, shape.dims));
  for (size_t i = 0; i < om_tensor_elems(&shape); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    if (!om_size_add(bytes, broadcast(a, &shape, i)->bytes, &bytes)) bytes = SIZE_MAX;
    if (!om_size_add(bytes, broadcast(b, &shape, i)->bytes, &bytes)) bytes = SIZE_MAX;
  }
  return om_text_set(ctx, call, shape.rank, shape.dims, bytes);
}

static void append(char **place, om_string text) {
  if (text.bytes > 0) memcpy(*place, text.data, text.bytes);
  *place += text.bytes;
}

static om_status concat_run(om_ctx *ctx, const om_op_call *call) {
  om_tensor *out = call->outputs[0];
  om_string *strings = out->data;
  char *place = om_text_place(out);
  for (size_t i = 0; i < om_tensor_elems(out); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    strings[i].data = place;
    append(&place, *broadcast(call->inputs[0], out, i));
    append(&place, *broadcast(call->inputs[1], out, i));
    strings[i].bytes = (size_t)(place - strings[i].data);
  }
  return OM_OK;
}

/* ---- StringSplit ---- */

typedef struct om_split_params {
  om_string delimiter; /* empty: white space */
  int64_t most;        /* splits; negative: any number */
} om_split_params;

static om_status split_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_split_params *p = params;
  OM_TRY(om_node_attr_text(ctx, node, "delimiter", "", &p->delimiter));
  return om_node_attr_int(ctx, node, "maxsplit", -1, &p->most);
}

static bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The place of the delimiter in text, or text.bytes. */
static size_t find_delimiter(om_string text, om_string delimiter) {
  for (size_t at = 0; at + delimiter.bytes <= text.bytes; ++at) {
    if (memcmp(text.data + at, delimiter.data, delimiter.bytes) == 0) return at;
  }
  return text.bytes;
}

static void skip(om_string *text, size_t bytes) {
  text->data += bytes;
  text->bytes -= bytes;
}

static void skip_blanks(om_string *text) {
  while (text->bytes > 0 && is_blank(text->data[0])) skip(text, 1);
}

/* Takes the next part off *rest; false at the end. `splits` counts those made. */
static bool next_part(const om_split_params *p, om_string *rest, size_t splits, om_string *out) {
  bool is_last = p->most >= 0 && splits >= (uint64_t)p->most;
  if (!rest->data) return false;
  if (p->delimiter.bytes > 0) {
    size_t end = is_last ? rest->bytes : find_delimiter(*rest, p->delimiter);
    *out = (om_string){rest->data, end};
    if (end == rest->bytes) {
      rest->data = NULL;
    } else {
      skip(rest, end + p->delimiter.bytes);
    }
    return true;
  }
  skip_blanks(rest);
  if (rest->bytes == 0) return false;
  size_t end = is_last ? rest->bytes : 0;
  while (end < rest->bytes && !is_blank(rest->data[end])) ++end;
  *out = (om_string){rest->data, end};
  skip(rest, end);
  return true;
}

static om_status count_parts(om_ctx *ctx, const om_split_params *p, om_string text, size_t *out) {
  om_string part;
  if (!text.data) text.data = "";
  for (*out = 0; next_part(p, &text, *out, &part); ++*out) OM_TRY(om_check_cancelled(ctx));
  return OM_OK;
}

/* Parts point into the input's text. */
static om_status split_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  int64_t dims[OM_MAX_RANK + 1] = {0};
  size_t most = 0;
  OM_TRY(om_rule_set(ctx, call, 1, OM_DTYPE_I64, x->rank, x->dims));
  if (!om_rule_is_known(x)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_STRING);
    return OM_OK;
  }
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    size_t count = 0;
    OM_TRY(count_parts(ctx, call->params, ((const om_string *)x->data)[i], &count));
    if (count > most) most = count;
  }
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  dims[x->rank] = (int64_t)most;
  return om_rule_set(ctx, call, 0, OM_DTYPE_STRING, x->rank + 1, dims);
}

static om_status split_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_tensor *out = call->outputs[0], *counts = om_rule_output(call, 1);
  om_string *parts = out->data;
  const size_t width = (size_t)out->dims[x->rank];
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    om_string rest = ((const om_string *)x->data)[i];
    size_t count = 0;
    if (!rest.data) rest.data = "";
    while (count < width && next_part(call->params, &rest, count, &parts[i * width + count])) {
      OM_TRY(om_check_cancelled(ctx));
      ++count;
    }
    if (counts) ((int64_t *)counts->data)[i] = (int64_t)count;
    for (; count < width; ++count) parts[i * width + count] = (om_string){.data = ""};
  }
  return OM_OK;
}

/* ---- StringNormalizer ---- */

typedef enum case_change { CASE_KEPT, CASE_LOWER, CASE_UPPER } case_change;

typedef struct om_normalizer_params {
  case_change change;
  bool is_case_sensitive;
  const om_string *stopwords;
  size_t stopword_count;
} om_normalizer_params;

static om_status normalizer_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_normalizer_params *p = params;
  om_string action;
  int64_t is_sensitive = 0;
  const om_attr *words = om_node_attr(node, "stopwords");
  OM_TRY(om_node_attr_text(ctx, node, "case_change_action", "NONE", &action));
  OM_TRY(om_node_attr_int(ctx, node, "is_case_sensitive", 0, &is_sensitive));
  p->is_case_sensitive = is_sensitive != 0;
  if (om_string_is(action, "LOWER")) p->change = CASE_LOWER;
  if (om_string_is(action, "UPPER")) p->change = CASE_UPPER;
  if (p->change == CASE_KEPT && !om_string_is(action, "NONE")) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "case_change_action is '%.*s'; LOWER, UPPER or NONE is expected.",
                   (int)(action.bytes < 40 ? action.bytes : 40),
                   action.data);
  }
  if (!words) return OM_OK;
  if (words->kind != OM_ATTR_STRINGS) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Attribute 'stopwords' is no list of strings.");
  }
  p->stopwords = words->strings;
  p->stopword_count = words->count;
  return OM_OK;
}

static bool is_stopword(const om_normalizer_params *p, om_string text) {
  for (size_t i = 0; i < p->stopword_count; ++i) {
    bool is_same = p->is_case_sensitive ? om_string_same(p->stopwords[i], text)
                                        : om_text_same_lower(p->stopwords[i], text);
    if (is_same) return true;
  }
  return false;
}

static om_status normalizer_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  char shape[OM_SHAPE_TEXT];
  int64_t count = 0;
  size_t bytes = 0;
  if (x->rank != 1 && !(x->rank == 2 && x->dims[0] == 1)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The text has the shape %s; [C] or [1, C] is expected.",
                   om_shape_text(shape, sizeof shape, x->rank, x->dims));
  }
  if (!om_rule_is_known(x)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_STRING);
    return OM_OK;
  }
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    om_string text = ((const om_string *)x->data)[i];
    if (is_stopword(call->params, text)) continue;
    if (!om_size_add(bytes, text.bytes, &bytes)) bytes = SIZE_MAX;
    count += 1;
  }
  int64_t length = count > 0 ? count : 1; /* an empty string stands for nothing */
  return om_text_set(ctx, call, x->rank, x->rank == 1 ? &length : (int64_t[]){1, length}, bytes);
}

static om_status normalizer_run(om_ctx *ctx, const om_op_call *call) {
  const om_normalizer_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  om_tensor *out = call->outputs[0];
  om_string *strings = out->data;
  char *place = om_text_place(out);
  strings[0] = (om_string){.data = ""};
  for (size_t i = 0, to = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    om_string text = ((const om_string *)x->data)[i];
    if (is_stopword(p, text)) continue;
    strings[to++] = (om_string){place, text.bytes};
    if (p->change == CASE_UPPER) om_text_upper(text, place);
    if (p->change == CASE_LOWER) om_text_lower(text, place);
    if (p->change == CASE_KEPT && text.bytes > 0) memcpy(place, text.data, text.bytes);
    place += text.bytes;
  }
  return OM_OK;
}

const om_op om_ops_string[] = {
    {.domain = "",
     .type = "StringConcat",
     .first_opset = 20,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_STRING),
     .infer = concat_infer,
     .run = concat_run},
    {.domain = "",
     .type = "StringSplit",
     .first_opset = 20,
     OM_RULE_COUNTS(1, 1, 1, 2),
     .dtypes = OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_split_params),
     .resolve = split_resolve,
     .infer = split_infer,
     .run = split_run},
    {.domain = "",
     .type = "StringNormalizer",
     .first_opset = 10,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_normalizer_params),
     .resolve = normalizer_resolve,
     .infer = normalizer_infer,
     .run = normalizer_run},
    {.type = NULL},
};
