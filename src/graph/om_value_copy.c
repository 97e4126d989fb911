/* Whole copies of values: see om_value_copy.h. */
#include "graph/om_value_copy.h"

static bool add(size_t *total, size_t bytes) {
  size_t padded = 0;
  if (!om_size_add(bytes, OM_VALUE_ALIGNMENT - 1, &padded)) return false;
  return om_size_add(*total, padded / OM_VALUE_ALIGNMENT * OM_VALUE_ALIGNMENT, total);
}

static bool add_strings(const om_tensor *value, size_t *total) {
  const om_string *strings = value->data;
  size_t count = om_tensor_elems(value), bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!om_size_add(bytes, strings[i].bytes, &bytes)) return false;
  }
  return add(total, bytes);
}

static bool add_value(const om_tensor *value, uint32_t depth, size_t *total) {
  size_t bytes = 0;
  if (depth > OM_VALUE_DEPTH) return false;
  if (!om_shape_bytes(value->dtype, value->rank, value->dims, &bytes)) return false;
  if (!add(total, bytes)) return false;
  if (value->dtype == OM_DTYPE_STRING) return add_strings(value, total);
  if (!om_dtype_is_nested(value->dtype)) return true;
  const om_tensor *elems = value->data;
  for (size_t i = 0; i < bytes / sizeof *elems; ++i) {
    if (!add_value(&elems[i], depth + 1, total)) return false;
  }
  return true;
}

bool om_value_bytes(const om_tensor *value, size_t *out_bytes) {
  *out_bytes = 0;
  return add_value(value, 1, out_bytes);
}

static unsigned char *copy_strings(om_tensor *copy, unsigned char *at) {
  om_string *strings = copy->data;
  size_t count = om_tensor_elems(copy), used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strings[i].bytes > 0) memcpy(at + used, strings[i].data, strings[i].bytes);
    strings[i].data = (const char *)at + used;
    used += strings[i].bytes;
  }
  return at + om_size_align(used, OM_VALUE_ALIGNMENT);
}

/* Writes at `at`; returns the place behind. As deep as om_value_bytes allowed. */
static unsigned char *copy_value(const om_tensor *value, unsigned char *at, om_tensor *out_copy) {
  size_t bytes = 0;
  om_tensor copy = *value;
  if (!om_shape_bytes(value->dtype, value->rank, value->dims, &bytes)) bytes = 0;
  if (bytes > 0) memcpy(at, value->data, bytes);
  copy.data = at;
  copy.data_bytes = bytes;
  at += om_size_align(bytes, OM_VALUE_ALIGNMENT);
  if (value->dtype == OM_DTYPE_STRING) at = copy_strings(&copy, at);
  if (om_dtype_is_nested(value->dtype)) {
    om_tensor *elems = copy.data;
    for (size_t i = 0; i < bytes / sizeof *elems; ++i) at = copy_value(&elems[i], at, &elems[i]);
  }
  *out_copy = copy;
  return at;
}

void om_value_copy(const om_tensor *value, void *memory, om_tensor *out_copy) {
  (void)copy_value(value, memory, out_copy);
}
