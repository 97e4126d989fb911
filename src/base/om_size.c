/* Sizes of shapes, checked, and shapes as text. */
#include <inttypes.h>
#include <stdio.h>

#include "base/om_base.h"

bool om_shape_elems(uint32_t rank, const int64_t *dims, size_t *out_elems) {
  /* Strides are products of extents, of an empty shape too: none may overflow, in bytes either. */
  const size_t most = SIZE_MAX / 32;
  bool is_empty = false;
  size_t product = 1;
  if (rank > OM_MAX_RANK) return false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0) is_empty = true;
    if (dims[i] == 0) continue;
    if ((uint64_t)dims[i] > most / product) return false;
    product *= (size_t)dims[i];
  }
  *out_elems = is_empty ? 0 : product;
  return true;
}

bool om_shape_bytes(om_dtype dtype, uint32_t rank, const int64_t *dims, size_t *out_bytes) {
  size_t elems = 0;
  size_t bits = om_dtype_bits(dtype);
  if (bits == 0 || !om_shape_elems(rank, dims, &elems)) return false;
  if (bits < 8) { /* packed: two elements a byte, the last byte may be half used */
    *out_bytes = elems / 2 + elems % 2;
    return true;
  }
  return om_size_mul(elems, bits / 8, out_bytes);
}

const char *om_shape_text(char *buffer, size_t buffer_bytes, uint32_t rank, const int64_t *dims) {
  size_t used = 0;
  for (uint32_t i = 0; i <= rank && used < buffer_bytes; ++i) {
    const char *lead = i == 0 ? "[" : ", ";
    int written = i < rank
                      ? snprintf(buffer + used, buffer_bytes - used, "%s%" PRId64, lead, dims[i])
                      : snprintf(buffer + used, buffer_bytes - used, "%s", i == 0 ? "[]" : "]");
    if (written < 0) break;
    used += (size_t)written;
  }
  return buffer;
}

om_tensor om_tensor_of(om_dtype dtype, uint32_t rank, const int64_t *dims, void *data) {
  om_tensor tensor = {.dtype = dtype, .rank = rank, .data = data};
  if (!om_shape_bytes(dtype, rank, dims, &tensor.data_bytes)) tensor.data_bytes = 0;
  for (uint32_t i = 0; i < rank && rank <= OM_MAX_RANK; ++i) tensor.dims[i] = dims[i];
  return tensor;
}

om_tensor om_sequence_of(size_t count, om_tensor *elems) {
  return om_tensor_of(OM_DTYPE_SEQUENCE, 1, (int64_t[]){(int64_t)count}, elems);
}

om_tensor om_optional_of(om_tensor *elem) {
  return om_tensor_of(OM_DTYPE_OPTIONAL, 1, (int64_t[]){elem ? 1 : 0}, elem);
}

om_tensor om_map_of(om_tensor keys_and_values[2]) {
  return om_tensor_of(OM_DTYPE_MAP, 1, (int64_t[]){2}, keys_and_values);
}

size_t om_tensor_elems(const om_tensor *tensor) {
  size_t elems = 0;
  return om_shape_elems(tensor->rank, tensor->dims, &elems) ? elems : 0;
}
