/* Values that hold tensors: see om_nested_proto.h. */
#include "onnx/om_nested_proto.h"

#include "onnx/om_wire.h"

static om_tensor list_of(om_dtype dtype, size_t count, om_tensor *elems) {
  return om_tensor_of(dtype, 1, (int64_t[]){(int64_t)count}, elems);
}

static om_status read_elem(
    om_ctx *ctx, const om_tensor_reading *how, om_string bytes, size_t index, om_tensor *out) {
  om_string name;
  om_status st = om_tensor_proto_read(ctx, how, bytes, out, &name);
  if (st != OM_OK) om_error_prefix(ctx, "Element %zu", index);
  return st;
}

static om_status read_sequence(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_string bytes,
                               om_tensor *out) {
  om_status st = OM_OK;
  om_wire_list tensors = {.ctx = ctx}, others = {.ctx = ctx};
  om_wire_Sequence wire = {.tensors = om_wire_keep_all(&tensors),
                           .sparses = om_wire_keep_all(&others),
                           .sequences = om_wire_keep_all(&others),
                           .maps = om_wire_keep_all(&others),
                           .optionals = om_wire_keep_all(&others)};
  OM_GO(om_wire_decode(ctx, bytes, om_wire_Sequence_fields, &wire, "sequence"));
  if (others.count > 0) {
    OM_GO(OM_FAIL(ctx, OM_E_UNSUPPORTED, "The sequence holds something else than tensors."));
  }
  om_tensor *elems = OM_POOL_NEW(ctx, how->pool, om_tensor, tensors.count);
  if (!elems) OM_GO(OM_E_OUT_OF_MEMORY);
  for (size_t i = 0; i < tensors.count; ++i) {
    OM_GO(read_elem(ctx, how, tensors.items[i], i, &elems[i]));
  }
  *out = list_of(OM_DTYPE_SEQUENCE, tensors.count, elems);
done:
  om_wire_list_deinit(&tensors);
  om_wire_list_deinit(&others);
  return st;
}

static om_status read_optional(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_string bytes,
                               om_tensor *out) {
  om_string tensor = {0}, sequence = {0}, sparse = {0}, map = {0}, optional = {0};
  om_wire_Optional wire = {.tensor = om_wire_keep(&tensor),
                           .sparse = om_wire_keep(&sparse),
                           .sequence = om_wire_keep(&sequence),
                           .map = om_wire_keep(&map),
                           .optional = om_wire_keep(&optional)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Optional_fields, &wire, "optional"));
  if (sparse.data || map.data || optional.data) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "The optional holds something else than a tensor or a sequence.");
  }
  if (tensor.data && sequence.data) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The optional holds a tensor and a sequence.");
  }
  om_tensor *elem = OM_POOL_NEW(ctx, how->pool, om_tensor, 1);
  if (!elem) return OM_E_OUT_OF_MEMORY;
  if (tensor.data) OM_TRY(read_elem(ctx, how, tensor, 0, elem));
  if (sequence.data) OM_TRY(read_sequence(ctx, how, sequence, elem));
  *out = list_of(OM_DTYPE_OPTIONAL, tensor.data || sequence.data ? 1 : 0, elem);
  return OM_OK;
}

om_status om_nested_proto_read(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_dtype kind,
                               om_string bytes,
                               om_tensor *out_value) {
  om_string name;
  if (kind == OM_DTYPE_SEQUENCE) return read_sequence(ctx, how, bytes, out_value);
  if (kind == OM_DTYPE_OPTIONAL) return read_optional(ctx, how, bytes, out_value);
  return om_tensor_proto_read(ctx, how, bytes, out_value, &name);
}
