/* Lists of tensors as results: see op_nested.h. */
#include "ops/op_nested.h"

#include "graph/om_value_copy.h"
#include "ops/om_rule.h"

static size_t list_bytes(size_t count) {
  return om_size_align(count * sizeof(om_tensor), OM_VALUE_ALIGNMENT);
}

void om_nested_add(om_nested_size *size, const om_tensor *elem) {
  size_t bytes = 0;
  bool needs_data = elem->dtype == OM_DTYPE_STRING || om_dtype_is_nested(elem->dtype);
  size->count += 1;
  if (needs_data && !om_rule_is_known(elem)) {
    size->is_open = true;
  } else if (!om_value_bytes(elem, &bytes) || !om_size_add(size->bytes, bytes, &size->bytes)) {
    size->is_too_big = true;
  }
}

om_status om_nested_set(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t output,
                        om_dtype dtype,
                        const om_nested_size *size) {
  int64_t dims[1] = {(int64_t)size->count};
  om_tensor *out = om_rule_output(call, output);
  if (size->is_open) {
    om_rule_set_unknown(call, output, dtype);
    return OM_OK;
  }
  size_t bytes = list_bytes(size->count);
  if (size->is_too_big || !om_size_add(bytes, size->bytes, &bytes) || bytes > OM_RULE_MAX_BYTES) {
    return OM_FAIL(ctx,
                   OM_E_OUT_OF_MEMORY,
                   "A %s of %zu elements is too large, or nests too deep.",
                   om_dtype_name(dtype),
                   size->count);
  }
  OM_TRY(om_rule_set(ctx, call, output, dtype, 1, dims));
  if (out) out->data_bytes = bytes;
  return OM_OK;
}

om_nested_writer om_nested_begin(om_tensor *output) {
  size_t count = om_tensor_elems(output);
  return (om_nested_writer){.elems = output->data,
                            .at = (unsigned char *)output->data + list_bytes(count)};
}

void om_nested_write(om_nested_writer *writer, const om_tensor *elem) {
  size_t bytes = 0;
  if (!om_value_bytes(elem, &bytes)) bytes = 0; /* om_nested_add has seen it */
  om_value_copy(elem, writer->at, &writer->elems[writer->count++]);
  writer->at += bytes;
}

om_status om_nested_infer_copy(om_ctx *ctx, const om_op_call *call, const om_tensor *value) {
  size_t bytes = 0;
  om_tensor *out = om_rule_output(call, 0);
  bool needs_data = om_dtype_is_nested(value->dtype) || value->dtype == OM_DTYPE_STRING;
  if (needs_data && !om_rule_is_known(value)) {
    om_rule_set_unknown(call, 0, value->dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_set(ctx, call, 0, value->dtype, value->rank, value->dims));
  if (!om_value_bytes(value, &bytes)) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "A value nests too deep or is too large.");
  }
  if (out) out->data_bytes = bytes;
  return OM_OK;
}

void om_nested_run_copy(const om_op_call *call, const om_tensor *value) {
  om_tensor *out = om_rule_output(call, 0);
  if (out) om_value_copy(value, out->data, out);
}
