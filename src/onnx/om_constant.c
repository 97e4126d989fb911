/* Constant nodes are weights like any others: their attribute becomes the value's constant, and
 * the node is not kept. */
#include "onnx/om_loader.h"

/* A tensor of one element or a list, whose data live as long as the graph. */
static void set_tensor(om_tensor *tensor, om_dtype dtype, const om_attr *attr, const void *data) {
  tensor->dtype = dtype;
  tensor->data = (void *)(uintptr_t)data; /* never written */
  bool is_list =
      attr->kind == OM_ATTR_FLOATS || attr->kind == OM_ATTR_INTS || attr->kind == OM_ATTR_STRINGS;
  tensor->rank = is_list ? 1 : 0;
  if (is_list) tensor->dims[0] = (int64_t)attr->count;
  tensor->data_bytes = (is_list ? attr->count : 1) * (om_dtype_bits(dtype) / 8);
}

typedef struct value_rule {
  const char *name;
  om_attr_kind kind;
} value_rule;

static const value_rule value_rules[] = {
    {"value", OM_ATTR_TENSOR},
    {"value_float", OM_ATTR_FLOAT},
    {"value_floats", OM_ATTR_FLOATS},
    {"value_int", OM_ATTR_INT},
    {"value_ints", OM_ATTR_INTS},
    {"value_string", OM_ATTR_STRING},
    {"value_strings", OM_ATTR_STRINGS},
    {"sparse_value", OM_ATTR_TENSOR}, /* dense by now */
};

/* The one attribute that holds the value. */
static om_status find_value(om_ctx *ctx, const om_node *node, const om_attr **out_attr) {
  const om_attr *found = NULL;
  for (size_t i = 0; i < OM_COUNT_OF(value_rules); ++i) {
    const om_attr *attr = om_node_attr(node, value_rules[i].name);
    if (!attr) continue;
    if (attr->kind != value_rules[i].kind) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Attribute '%s' is of the wrong kind (%d).",
                     attr->name,
                     attr->kind);
    }
    if (found) {
      return OM_FAIL(
          ctx, OM_E_INVALID_MODEL, "It has both '%s' and '%s'.", found->name, attr->name);
    }
    found = attr;
  }
  if (!found) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has no attribute that holds its value.");
  *out_attr = found;
  return OM_OK;
}

om_status om_loader_constant_of(om_ctx *ctx, const om_node *node, om_tensor *out_tensor) {
  const om_attr *attr = NULL;
  *out_tensor = (om_tensor){0};
  OM_TRY(find_value(ctx, node, &attr));
  if (attr->kind == OM_ATTR_TENSOR) *out_tensor = *attr->tensor;
  if (attr->kind == OM_ATTR_FLOAT) set_tensor(out_tensor, OM_DTYPE_F32, attr, &attr->f);
  if (attr->kind == OM_ATTR_FLOATS) set_tensor(out_tensor, OM_DTYPE_F32, attr, attr->floats);
  if (attr->kind == OM_ATTR_INT) set_tensor(out_tensor, OM_DTYPE_I64, attr, &attr->i);
  if (attr->kind == OM_ATTR_INTS) set_tensor(out_tensor, OM_DTYPE_I64, attr, attr->ints);
  if (attr->kind == OM_ATTR_STRING) set_tensor(out_tensor, OM_DTYPE_STRING, attr, &attr->s);
  if (attr->kind == OM_ATTR_STRINGS) set_tensor(out_tensor, OM_DTYPE_STRING, attr, attr->strings);
  return OM_OK;
}
