/* Results that are strings: their bytes may lie in the caller's inputs, which are the caller's
 * again once the run ends. So the bytes move to the session, and the results point there until the
 * next run. */
#include "session/om_session.h"

static size_t count_bytes(const om_named_tensor *outputs, size_t output_count) {
  size_t total = 0;
  for (size_t i = 0; i < output_count; ++i) {
    const om_string *strings = outputs[i].tensor.data;
    if (outputs[i].tensor.dtype != OM_DTYPE_STRING) continue;
    for (size_t k = 0; k < om_tensor_elems(&outputs[i].tensor); ++k) {
      if (!om_size_add(total, strings[k].bytes, &total)) return SIZE_MAX;
    }
  }
  return total;
}

static char *move_strings(om_tensor *tensor, char *target) {
  om_string *strings = tensor->data;
  for (size_t k = 0; k < om_tensor_elems(tensor); ++k) {
    if (strings[k].bytes > 0) memcpy(target, strings[k].data, strings[k].bytes);
    strings[k].data = target;
    target += strings[k].bytes;
  }
  return target;
}

om_status om_session_keep_strings(om_ctx *ctx,
                                  om_session *session,
                                  om_named_tensor *outputs,
                                  size_t output_count) {
  size_t bytes = count_bytes(outputs, output_count);
  if (bytes == 0) return OM_OK;
  /* A new block each time: results of the run before may be what this run was given. */
  char *block = om_new_bytes(ctx, bytes, 1);
  if (!block) return OM_E_OUT_OF_MEMORY;
  char *target = block;
  for (size_t i = 0; i < output_count; ++i) {
    om_tensor *tensor = &outputs[i].tensor;
    if (tensor->dtype == OM_DTYPE_STRING) target = move_strings(tensor, target);
  }
  om_delete(ctx, session->strings);
  session->strings = block;
  return OM_OK;
}
