/* Operator set imports, of a model or of a function. */
#include <inttypes.h>

#include "onnx/om_loader.h"
#include "onnx/om_model.h"

static om_status read_opset(om_ctx *ctx, om_pool *pool, om_string bytes, om_opset *out) {
  om_string domain = {0};
  om_wire_Opset wire = {.domain = om_wire_keep(&domain)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Opset_fields, &wire, "operator set import"));
  if (om_string_is(domain, "ai.onnx")) domain.bytes = 0;
  int64_t version = wire.has_version ? wire.version : 0;
  const char *name = om_pool_text(ctx, pool, domain.data, domain.bytes);
  if (!name) return OM_E_OUT_OF_MEMORY;
  const char *shown = name[0] ? name : "ai.onnx";
  if (version < 1) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "The model imports version %" PRId64 " of '%s'.", version, shown);
  }
  int64_t newest = name[0] ? INT32_MAX : OM_NEWEST_OPSET;
  if (version > newest) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The model imports version %" PRId64 " of '%s'; the newest known is %" PRId64
                   ".",
                   version,
                   shown,
                   newest);
  }
  *out = (om_opset){.domain = name, .version = version};
  return OM_OK;
}

om_status om_loader_read_opsets(om_ctx *ctx,
                                om_pool *pool,
                                const om_wire_list *list,
                                const om_opset **out_opsets,
                                size_t *out_count) {
  if (list->count > OM_MAX_OPSETS) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The model imports %zu operator sets.", list->count);
  }
  om_opset *opsets = OM_POOL_NEW(ctx, pool, om_opset, list->count);
  if (!opsets) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < list->count; ++i) {
    OM_TRY(read_opset(ctx, pool, list->items[i], &opsets[i]));
    for (size_t k = 0; k < i; ++k) {
      if (strcmp(opsets[k].domain, opsets[i].domain) != 0) continue;
      const char *shown = opsets[i].domain[0] ? opsets[i].domain : "ai.onnx";
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The model imports '%s' twice.", shown);
    }
  }
  *out_opsets = opsets;
  *out_count = list->count;
  return OM_OK;
}
