/* Reading an equation, and laying operands over it. */
#include "ops/op_einsum.h"

#include <inttypes.h>

static bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static om_status fail(om_ctx *ctx, om_string text, const char *why) {
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The equation '%.*s' %s.",
                 (int)(text.bytes < 60 ? text.bytes : 60),
                 text.data,
                 why);
}

/* The label of a letter, a new one if it has none yet. */
static uint8_t label_of(om_einsum_equation *e, char letter) {
  for (uint8_t i = 0; i < e->letter_count; ++i) {
    if (e->letters[i] == letter) return i;
  }
  e->letters[e->letter_count] = letter;
  return e->letter_count++;
}

/* Reads one term up to a comma, an arrow or the end; *at moves behind it. */
static om_status parse_term(
    om_ctx *ctx, om_string text, size_t *at, om_einsum_equation *e, om_einsum_term *term) {
  bool has_dots = false;
  for (; *at < text.bytes; ++*at) {
    const char c = text.data[*at];
    if (c == ',' || c == '-') break;
    if (c == ' ') continue;
    const bool is_dots = text.bytes - *at >= 3 && memcmp(text.data + *at, "...", 3) == 0;
    if (!is_dots && !is_letter(c)) {
      return fail(ctx, text, "has a character that is neither a letter nor part of '...'");
    }
    if (is_dots && has_dots) return fail(ctx, text, "has a term with two ellipses");
    if (term->count == OM_COUNT_OF(term->labels)) {
      return fail(ctx, text, "has a term with more letters than a tensor has axes");
    }
    has_dots = has_dots || is_dots;
    term->labels[term->count++] = is_dots ? OM_EINSUM_DOTS : label_of(e, c);
    if (is_dots) *at += 2;
  }
  return OM_OK;
}

static bool has_label(const om_einsum_term *term, uint8_t label) {
  for (uint8_t i = 0; i < term->count; ++i) {
    if (term->labels[i] == label) return true;
  }
  return false;
}

static bool operands_have(const om_einsum_equation *e, uint8_t label) {
  for (uint8_t t = 0; t < e->term_count; ++t) {
    if (has_label(&e->terms[t], label)) return true;
  }
  return false;
}

/* Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order. */
static om_status make_result(om_ctx *ctx, om_string text, om_einsum_equation *e) {
  if (operands_have(e, OM_EINSUM_DOTS)) e->result.labels[e->result.count++] = OM_EINSUM_DOTS;
  for (int c = 'A'; c <= 'z'; ++c) {
    uint32_t uses = 0;
    uint8_t label = 0;
    for (uint8_t t = 0; t < e->term_count; ++t) {
      for (uint8_t i = 0; i < e->terms[t].count; ++i) {
        const uint8_t l = e->terms[t].labels[i];
        if (l == OM_EINSUM_DOTS || e->letters[l] != (char)c) continue;
        label = l;
        ++uses;
      }
    }
    if (uses != 1) continue;
    if (e->result.count == OM_COUNT_OF(e->result.labels)) {
      return fail(ctx, text, "gives a result with more axes than a tensor has");
    }
    e->result.labels[e->result.count++] = label;
  }
  return OM_OK;
}

static om_status check_result(om_ctx *ctx, om_string text, const om_einsum_equation *e) {
  const om_einsum_term *r = &e->result;
  if (operands_have(e, OM_EINSUM_DOTS) && !has_label(r, OM_EINSUM_DOTS)) {
    return fail(ctx, text, "has an ellipsis that its result lacks");
  }
  for (uint8_t i = 0; i < r->count; ++i) {
    if (!operands_have(e, r->labels[i])) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "The equation '%.*s' has '%.*s' in its result alone.",
                     (int)(text.bytes < 60 ? text.bytes : 60),
                     text.data,
                     r->labels[i] == OM_EINSUM_DOTS ? 3 : 1,
                     r->labels[i] == OM_EINSUM_DOTS ? "..." : &e->letters[r->labels[i]]);
    }
    for (uint8_t k = 0; k < i; ++k) {
      if (r->labels[k] == r->labels[i]) return fail(ctx, text, "has a letter twice in its result");
    }
  }
  return OM_OK;
}

om_status om_einsum_parse(om_ctx *ctx, om_string text, om_einsum_equation *out) {
  size_t at = 0;
  for (;;) {
    if (out->term_count == OM_EINSUM_TERMS) {
      return OM_FAIL(ctx, OM_E_UNSUPPORTED, "An equation of more than %d terms.", OM_EINSUM_TERMS);
    }
    OM_TRY(parse_term(ctx, text, &at, out, &out->terms[out->term_count++]));
    if (at == text.bytes || text.data[at] != ',') break;
    ++at;
  }
  if (at == text.bytes) return make_result(ctx, text, out);
  if (text.bytes - at < 2 || text.data[at + 1] != '>') return fail(ctx, text, "has a '-' alone");
  at += 2;
  OM_TRY(parse_term(ctx, text, &at, out, &out->result));
  if (at < text.bytes) return fail(ctx, text, "goes on behind its result");
  return check_result(ctx, text, out);
}

/* ---- Shapes ---- */

/* Axes that the ellipsis of a term stands for in a tensor; negative: it has too few. */
static int64_t dots_of(const om_einsum_term *term, const om_tensor *t) {
  const bool has_dots = has_label(term, OM_EINSUM_DOTS);
  const int64_t rest = (int64_t)t->rank - (int64_t)term->count + (has_dots ? 1 : 0);
  return has_dots || rest == 0 ? rest : -1;
}

/* The labels of a term's axes, with an ellipsis of `dots` axes. */
static uint32_t spell(const om_einsum_term *term, int64_t dots, uint8_t *out_labels) {
  uint32_t count = 0;
  for (uint8_t i = 0; i < term->count; ++i) {
    if (term->labels[i] != OM_EINSUM_DOTS) out_labels[count++] = term->labels[i];
    for (int64_t d = 0; term->labels[i] == OM_EINSUM_DOTS && d < dots; ++d) {
      out_labels[count++] = (uint8_t)(OM_EINSUM_ELLIPSIS + d);
    }
  }
  return count;
}

/* Axes of the ellipsis in all operands; -1: there is none. */
static int64_t dots_of_all(const om_einsum_equation *e, const om_op_call *call) {
  for (uint32_t i = 0; i < e->term_count; ++i) {
    if (has_label(&e->terms[i], OM_EINSUM_DOTS)) return dots_of(&e->terms[i], call->inputs[i]);
  }
  return -1;
}

void om_einsum_fit(const om_einsum_equation *equation,
                   const om_op_call *call,
                   om_einsum_shape *out) {
  uint8_t labels[2 * OM_MAX_RANK] = {0};
  for (uint32_t i = 0; i < OM_EINSUM_LABELS; ++i) out->extents[i] = -1;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const om_tensor *t = call->inputs[i];
    const uint32_t count = spell(&equation->terms[i], dots_of(&equation->terms[i], t), labels);
    for (uint32_t d = 0; d < count; ++d) {
      int64_t *extent = &out->extents[labels[d]];
      if (*extent == -1 || *extent == 1) *extent = t->dims[d];
    }
  }
  out->rank = spell(&equation->result, dots_of_all(equation, call), labels);
  memcpy(out->labels, labels, sizeof out->labels);
}

static om_status check_rank(
    om_ctx *ctx, const om_einsum_equation *e, const om_tensor *t, uint32_t index, int64_t dots) {
  const om_einsum_term *term = &e->terms[index];
  const int64_t own = dots_of(term, t);
  if (own < 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input %" PRIu32 " has rank %" PRIu32 ", but its term names %" PRIu8 " axes.",
                   index,
                   t->rank,
                   term->count);
  }
  if (!has_label(term, OM_EINSUM_DOTS) || own == dots) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The ellipsis stands for %" PRId64 " axes of input %" PRIu32 ", but for %" PRId64
                 " before.",
                 own,
                 index,
                 dots);
}

static om_status check_extents(om_ctx *ctx,
                               const om_einsum_equation *e,
                               const om_tensor *t,
                               uint32_t index,
                               const om_einsum_shape *shape) {
  uint8_t labels[2 * OM_MAX_RANK];
  const uint32_t count = spell(&e->terms[index], dots_of(&e->terms[index], t), labels);
  for (uint32_t d = 0; d < count; ++d) {
    const bool is_dots = labels[d] >= OM_EINSUM_ELLIPSIS;
    if (t->dims[d] == shape->extents[labels[d]] || t->dims[d] == 1) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "'%.*s' has an extent of %" PRId64 " in input %" PRIu32 ", but of %" PRId64
                   " before.",
                   is_dots ? 3 : 1,
                   is_dots ? "..." : &e->letters[labels[d]],
                   t->dims[d],
                   index,
                   shape->extents[labels[d]]);
  }
  return OM_OK;
}

om_status om_einsum_check(om_ctx *ctx, const om_einsum_equation *equation, const om_op_call *call) {
  const int64_t dots = dots_of_all(equation, call);
  om_einsum_shape shape;
  uint32_t used = 0;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    OM_TRY(check_rank(ctx, equation, call->inputs[i], i, dots));
  }
  om_einsum_fit(equation, call, &shape);
  for (uint32_t i = 0; i < call->input_count; ++i) {
    OM_TRY(check_extents(ctx, equation, call->inputs[i], i, &shape));
  }
  for (uint32_t i = 0; i < OM_EINSUM_LABELS; ++i) used += shape.extents[i] >= 0;
  if (used <= OM_STRIDED_MAX_RANK && shape.rank <= OM_MAX_RANK) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_UNSUPPORTED,
                 "The equation has %" PRIu32 " axes, %" PRIu32
                 " of them in the result; at most %d and %d are supported.",
                 used,
                 shape.rank,
                 OM_STRIDED_MAX_RANK,
                 OM_MAX_RANK);
}

om_einsum_operand om_einsum_operand_of(const om_einsum_equation *equation,
                                       const om_tensor *tensor,
                                       uint32_t index) {
  uint8_t labels[2 * OM_MAX_RANK];
  int64_t strides[OM_MAX_RANK] = {0};
  om_einsum_operand operand = {.data = tensor->data};
  const om_einsum_term *term = &equation->terms[index];
  const uint32_t count = spell(term, dots_of(term, tensor), labels);
  om_dense_strides(tensor->rank, tensor->dims, strides);
  for (uint32_t d = 0; d < count; ++d) {
    uint32_t at = 0;
    while (at < operand.count && operand.labels[at] != labels[d]) ++at;
    if (at == operand.count) operand.labels[operand.count++] = labels[d];
    if (tensor->dims[d] != 1) operand.strides[at] += strides[d];
  }
  return operand;
}
