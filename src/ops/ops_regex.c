/* RegexFullMatch, by PCRE2's matcher that walks all alternatives at once (pcre2_dfa_match): like
 * RE2, whose syntax ONNX names, it needs no backtracking, so no pattern takes exponential time, and
 * it knows no references back. What PCRE2 reads more than RE2 is not refused.
 *
 * A pattern is compiled by each run, into the run's scratch: PCRE2 gets its memory from there.
 */
#include "ops/om_rule.h"

#ifdef OM_WITH_PCRE2

#  define PCRE2_CODE_UNIT_WIDTH 8
#  include <pcre2.h>
#  include <stdio.h>

enum {
  ARENA_BYTES = 192 << 10, /* a compiled pattern has at most 64 KiB; its names and tables beside */
  WORKSPACE_INTS = 8192,   /* of the matcher: alternatives that are open at once */
};

typedef struct arena { /* hands out memory that is never given back */
  unsigned char *bytes;
  size_t used;
} arena;

static void *take(size_t bytes, void *user) {
  arena *a = user;
  size_t need = om_size_align(bytes, 16);
  if (need < bytes || need > ARENA_BYTES - a->used) return NULL;
  a->used += need;
  return a->bytes + a->used - need;
}

static void give_back(void *ptr, void *user) {
  (void)ptr, (void)user;
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_string *pattern = params;
  if (!om_node_attr(node, "pattern")) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute 'pattern' is missing.");
  }
  return om_node_attr_text(ctx, node, "pattern", "", pattern);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return om_rule_set(ctx, call, 0, OM_DTYPE_BOOL, x->rank, x->dims);
}

static size_t scratch_bytes(const om_op_call *call) {
  (void)call;
  return ARENA_BYTES + WORKSPACE_INTS * sizeof(int);
}

static om_status fail_pcre2(om_ctx *ctx, const char *what, int code) {
  PCRE2_UCHAR text[128] = {0};
  (void)pcre2_get_error_message(code, text, sizeof text);
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "%s: %s.", what, (const char *)text);
}

typedef struct matcher {
  pcre2_code *code;
  pcre2_match_data *data;
  int *workspace;
} matcher;

static om_status compile(om_ctx *ctx, const om_op_call *call, arena *a, matcher *out) {
  const om_string *pattern = call->params;
  /* As in RE2: classes such as \w are ASCII's, and $ is the very end. */
  const uint32_t options = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY |
                           PCRE2_NEVER_BACKSLASH_C;
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_general_context *memory = pcre2_general_context_create(take, give_back, a);
  pcre2_compile_context *how = memory ? pcre2_compile_context_create(memory) : NULL;
  if (!how) return OM_FAIL(ctx, OM_E_INTERNAL, "PCRE2 has no memory.");
  out->code =
      pcre2_compile((PCRE2_SPTR)pattern->data, pattern->bytes, options, &code, &offset, how);
  if (!out->code) {
    char what[96];
    (void)snprintf(
        what, sizeof what, "The pattern cannot be read, at its byte %zu", (size_t)offset);
    return fail_pcre2(ctx, what, code);
  }
  out->data = pcre2_match_data_create(1, memory);
  if (!out->data) return OM_FAIL(ctx, OM_E_INTERNAL, "PCRE2 has no memory.");
  return OM_OK;
}

static om_status match(om_ctx *ctx, const matcher *m, om_string text, uint8_t *out) {
  const char *data = text.data ? text.data : "";
  int code = pcre2_dfa_match(
      m->code, (PCRE2_SPTR)data, text.bytes, 0, 0, m->data, NULL, m->workspace, WORKSPACE_INTS);
  *out = code >= 0; /* 0: it matches in more ways than are asked for */
  bool is_text = code > PCRE2_ERROR_UTF8_ERR1 || code < PCRE2_ERROR_UTF8_ERR21;
  if (code >= 0 || code == PCRE2_ERROR_NOMATCH || !is_text) return OM_OK; /* no UTF-8: no match */
  return fail_pcre2(ctx, "A text cannot be matched", code);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  arena a = {.bytes = call->scratch};
  matcher m = {.workspace = (int *)(void *)((unsigned char *)call->scratch + ARENA_BYTES)};
  OM_TRY(compile(ctx, call, &a, &m));
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    uint8_t *out = (uint8_t *)call->outputs[0]->data + i;
    OM_TRY(om_check_cancelled(ctx));
    OM_TRY(match(ctx, &m, ((const om_string *)x->data)[i], out));
  }
  return OM_OK;
}

#endif

const om_op om_ops_regex[] = {
#ifdef OM_WITH_PCRE2
    {.domain = "",
     .type = "RegexFullMatch",
     .first_opset = 20,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_string),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
#endif
    {.type = NULL},
};
