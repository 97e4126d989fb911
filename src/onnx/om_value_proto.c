/* Declared types and shapes: ValueInfoProto down to its dimensions, a decode call a level. */
#include <inttypes.h>

#include "graph/om_value_copy.h"
#include "onnx/om_loader.h"

static om_status read_dim(
    om_ctx *ctx, om_loader *loader, om_string bytes, int64_t *out_dim, const char **out_symbol) {
  om_string symbol = {0};
  om_wire_Dimension wire = {.symbol = om_wire_keep(&symbol)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Dimension_fields, &wire, "dimension"));
  *out_dim = -1;
  *out_symbol = NULL;
  if (wire.has_value && wire.value < -1) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its extent %" PRId64 " is negative.", wire.value);
  }
  if (wire.has_value) {
    *out_dim = wire.value; /* -1: some exporters write that for an extent they do not know */
  } else if (symbol.bytes > 0) {
    *out_symbol = om_pool_text(ctx, &loader->graph->pool, symbol.data, symbol.bytes);
    if (!*out_symbol) return OM_E_OUT_OF_MEMORY;
  }
  return OM_OK;
}

static om_status read_shape(om_ctx *ctx, om_loader *loader, om_string bytes, om_value *value) {
  om_status st = OM_OK;
  om_wire_list dims = {.ctx = ctx};
  om_wire_Shape wire = {.dims = om_wire_keep_all(&dims)};
  OM_GO(om_wire_decode(ctx, bytes, om_wire_Shape_fields, &wire, "shape"));
  if (dims.count > OM_MAX_RANK) {
    OM_GO(OM_FAIL(ctx,
                  OM_E_UNSUPPORTED,
                  "Its rank is %zu; at most %d is supported.",
                  dims.count,
                  OM_MAX_RANK));
  }
  for (size_t i = 0; i < dims.count; ++i) {
    OM_GO(read_dim(ctx, loader, dims.items[i], &value->dims[i], &value->dim_names[i]));
  }
  value->has_rank = true;
  value->rank = (uint32_t)dims.count;
done:
  om_wire_list_deinit(&dims);
  return st;
}

static om_status read_tensor_type(om_ctx *ctx,
                                  om_loader *loader,
                                  om_string tensor,
                                  om_value *value) {
  om_string shape = {0};
  om_wire_TensorType type = {.shape = om_wire_keep(&shape)};
  OM_TRY(om_wire_decode(ctx, tensor, om_wire_TensorType_fields, &type, "tensor type"));
  int32_t dtype = type.has_dtype ? type.dtype : 0;
  if (dtype < 0 || dtype >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Its element type %" PRId32 " is not known.", dtype);
  }
  value->dtype = (om_dtype)dtype;
  return shape.data ? read_shape(ctx, loader, shape, value) : OM_OK;
}

/* The type of what a sequence or an optional holds, or of a map's values. */
static om_status read_nested_type(om_ctx *ctx, om_string bytes, om_value *value, om_string *elem) {
  if (value->dtype != OM_DTYPE_MAP) {
    om_wire_NestedType nested = {.elem = om_wire_keep(elem)};
    return om_wire_decode(ctx, bytes, om_wire_NestedType_fields, &nested, "nested type");
  }
  om_wire_MapType map = {.value = om_wire_keep(elem)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_MapType_fields, &map, "map type"));
  const int32_t key = map.has_key ? map.key : 0;
  if (key < 0 || key >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Its keys' type %" PRId32 " is not known.", key);
  }
  value->key_dtype = (om_dtype)key;
  return OM_OK;
}

/* The types of nested values are a chain; types deeper than values nest are not known. */
static om_status read_type(om_ctx *ctx, om_loader *loader, om_string bytes, om_value *value) {
  for (uint32_t depth = 0; depth < OM_VALUE_DEPTH; ++depth) {
    om_string tensor = {0}, sequence = {0}, optional = {0}, map = {0}, elem = {0};
    om_wire_Type wire = {.tensor = om_wire_keep(&tensor),
                         .sequence = om_wire_keep(&sequence),
                         .optional = om_wire_keep(&optional),
                         .map = om_wire_keep(&map)};
    OM_TRY(om_wire_decode(ctx, bytes, om_wire_Type_fields, &wire, "type"));
    if (tensor.data) return read_tensor_type(ctx, loader, tensor, value);
    if (!sequence.data && !optional.data && !map.data) return OM_OK; /* stays OM_DTYPE_NONE */
    value->dtype = sequence.data ? OM_DTYPE_SEQUENCE : map.data ? OM_DTYPE_MAP : OM_DTYPE_OPTIONAL;
    OM_TRY(read_nested_type(ctx,
                            sequence.data ? sequence
                            : map.data    ? map
                                          : optional,
                            value,
                            &elem));
    om_value *inner = OM_POOL_NEW(ctx, &loader->graph->pool, om_value, 1);
    if (!inner) return OM_E_OUT_OF_MEMORY;
    inner->name = "";
    value->elem = inner;
    value = inner;
    bytes = elem;
  }
  return OM_OK;
}

om_status om_loader_read_value_info(om_ctx *ctx,
                                    om_loader *loader,
                                    om_string bytes,
                                    om_string *out_name,
                                    om_value *out_value,
                                    bool *out_has_type) {
  om_string type = {0};
  *out_name = (om_string){0};
  *out_value = (om_value){.producer = OM_NO_NODE};
  *out_has_type = false;
  om_wire_ValueInfo wire = {.name = om_wire_keep(out_name), .type = om_wire_keep(&type)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_ValueInfo_fields, &wire, "value description"));
  if (!type.data) return OM_OK;
  *out_has_type = true;
  om_status st = read_type(ctx, loader, type, out_value);
  if (st != OM_OK && out_name->bytes > 0) {
    int shown = (int)(out_name->bytes < 200 ? out_name->bytes : 200);
    om_error_prefix(ctx, "Value '%.*s'", shown, out_name->data);
  }
  return st;
}
