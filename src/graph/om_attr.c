/* A node's attributes by name and kind. */
#include "graph/om_graph.h"

static const char *kind_name(om_attr_kind kind) {
  static const char *const names[] = {
      [OM_ATTR_NONE] = "nothing",
      [OM_ATTR_FLOAT] = "a float",
      [OM_ATTR_INT] = "an integer",
      [OM_ATTR_STRING] = "a string",
      [OM_ATTR_TENSOR] = "a tensor",
      [OM_ATTR_GRAPH] = "a graph",
      [OM_ATTR_FLOATS] = "a list of floats",
      [OM_ATTR_INTS] = "a list of integers",
      [OM_ATTR_STRINGS] = "a list of strings",
      [OM_ATTR_OTHER] = "of another kind",
      [OM_ATTR_REFERENCE] = "a function's",
  };
  return (size_t)kind < OM_COUNT_OF(names) ? names[kind] : "?";
}

bool om_string_is(om_string string, const char *text) {
  size_t bytes = strlen(text);
  return string.bytes == bytes && (bytes == 0 || memcmp(string.data, text, bytes) == 0);
}

bool om_string_same(om_string a, om_string b) {
  return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

const om_attr *om_node_attr(const om_node *node, const char *name) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
  }
  return NULL;
}

/* The attribute or NULL; one of another kind is an error. */
static om_status find_kind(om_ctx *ctx,
                           const om_node *node,
                           const char *name,
                           om_attr_kind kind,
                           const om_attr **out_attr) {
  const om_attr *attr = om_node_attr(node, name);
  *out_attr = attr;
  if (!attr || attr->kind == kind) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "Attribute '%s' is %s, but must be %s.",
                 name,
                 kind_name(attr->kind),
                 kind_name(kind));
}

om_status om_node_attr_int(
    om_ctx *ctx, const om_node *node, const char *name, int64_t fallback, int64_t *out) {
  const om_attr *attr = NULL;
  OM_TRY(find_kind(ctx, node, name, OM_ATTR_INT, &attr));
  *out = attr ? attr->i : fallback;
  return OM_OK;
}

om_status om_node_attr_float(
    om_ctx *ctx, const om_node *node, const char *name, float fallback, float *out) {
  const om_attr *attr = NULL;
  OM_TRY(find_kind(ctx, node, name, OM_ATTR_FLOAT, &attr));
  *out = attr ? attr->f : fallback;
  return OM_OK;
}

om_status om_node_attr_text(
    om_ctx *ctx, const om_node *node, const char *name, const char *fallback, om_string *out) {
  const om_attr *attr = NULL;
  OM_TRY(find_kind(ctx, node, name, OM_ATTR_STRING, &attr));
  *out = attr ? attr->s : (om_string){.data = fallback, .bytes = fallback ? strlen(fallback) : 0};
  return OM_OK;
}

om_status om_node_attr_ints(
    om_ctx *ctx, const om_node *node, const char *name, const int64_t **out, size_t *out_count) {
  const om_attr *attr = NULL;
  OM_TRY(find_kind(ctx, node, name, OM_ATTR_INTS, &attr));
  *out = attr ? attr->ints : NULL;
  *out_count = attr ? attr->count : 0;
  return OM_OK;
}
