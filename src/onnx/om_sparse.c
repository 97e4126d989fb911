/* Sparse tensors become dense ones when they are read.
 *
 * That is the one place where a file asks for more memory than it has bytes, so the dense size has
 * a limit. Indices are either positions in the dense tensor, [count], or coordinates,
 * [count, rank]; they must ascend, so that none stands twice. */
#include <inttypes.h>

#include "onnx/om_loader.h"

/* Of a model's sparse tensors together: 64 MiB. */
#define DENSE_LIMIT_BYTES ((size_t)64 << 20)

typedef struct parts {
  om_string values_bytes, indices_bytes;
  om_tensor values, indices;
  om_string name;
} parts;

static om_status read_parts(
    om_ctx *ctx, om_loader *loader, om_string bytes, parts *p, om_tensor *out) {
  om_string unused;
  om_wire_numbers dims = {.format = OM_WIRE_VARINT,
                          .out = (unsigned char *)out->dims,
                          .capacity = OM_MAX_RANK,
                          .elem_bytes = sizeof(int64_t)};
  om_wire_SparseTensor wire = {.values = om_wire_keep(&p->values_bytes),
                               .indices = om_wire_keep(&p->indices_bytes),
                               .dims = om_wire_keep_numbers(&dims)};
  om_tensor_reading how = loader->file->reading;
  how.align_below_bytes = SIZE_MAX; /* they are computed with here */
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_SparseTensor_fields, &wire, "sparse tensor"));
  if (!p->values_bytes.data || !p->indices_bytes.data) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "A sparse tensor has no values or no indices.");
  }
  OM_TRY(om_tensor_proto_read(ctx, &how, p->values_bytes, &p->values, &p->name));
  OM_TRY(om_tensor_proto_read(ctx, &how, p->indices_bytes, &p->indices, &unused));
  if (dims.count > OM_MAX_RANK) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Its rank is %zu; at most %d is supported.",
                   dims.count,
                   OM_MAX_RANK);
  }
  out->rank = (uint32_t)dims.count;
  out->dtype = p->values.dtype;
  return OM_OK;
}

static om_status check_parts(om_ctx *ctx, om_loader *loader, const parts *p, om_tensor *out) {
  char shape[OM_SHAPE_TEXT];
  const om_tensor *indices = &p->indices;
  if (p->values.rank != 1 || indices->dtype != OM_DTYPE_I64) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "Its values must have rank 1 and its indices must be int64.");
  }
  bool is_linear = indices->rank == 1;
  bool is_table = indices->rank == 2 && indices->dims[1] == (int64_t)out->rank;
  if ((!is_linear && !is_table) || indices->dims[0] != p->values.dims[0]) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Its indices have the shape %s, which does not fit %" PRId64 " values.",
                   om_shape_text(shape, sizeof shape, indices->rank, indices->dims),
                   p->values.dims[0]);
  }
  if (om_dtype_bits(out->dtype) < 8 || out->dtype == OM_DTYPE_STRING) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Sparse tensors of %s are not supported.",
                   om_dtype_name(out->dtype));
  }
  bool has_size = om_shape_bytes(out->dtype, out->rank, out->dims, &out->data_bytes);
  if (has_size && out->data_bytes <= DENSE_LIMIT_BYTES - loader->file->dense_bytes) {
    loader->file->dense_bytes += out->data_bytes;
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 has_size ? OM_E_UNSUPPORTED : OM_E_INVALID_MODEL,
                 "Its dense shape %s is too large: a model's sparse tensors may make %zu bytes.",
                 om_shape_text(shape, sizeof shape, out->rank, out->dims),
                 DENSE_LIMIT_BYTES);
}

/* The position of value `i`, or an error for an index outside of the shape. */
static om_status find_position(
    om_ctx *ctx, const parts *p, const om_tensor *dense, size_t i, size_t *out_position) {
  const int64_t *indices = p->indices.data;
  uint32_t parts_count = p->indices.rank == 1 ? 1 : dense->rank;
  size_t elems = om_tensor_elems(dense);
  size_t position = 0;
  for (uint32_t k = 0; k < parts_count; ++k) {
    int64_t index = indices[i * parts_count + k];
    uint64_t extent = p->indices.rank == 1 ? elems : (uint64_t)dense->dims[k];
    if (index < 0 || (uint64_t)index >= extent) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Its index %" PRId64 " is outside of an extent of %" PRIu64 ".",
                     index,
                     extent);
    }
    position = position * (size_t)extent + (size_t)index;
  }
  *out_position = position;
  return OM_OK;
}

static om_status fill(om_ctx *ctx, const parts *p, om_tensor *dense) {
  size_t elem_bytes = om_dtype_bits(dense->dtype) / 8;
  size_t count = om_tensor_elems(&p->values);
  const unsigned char *values = p->values.data;
  unsigned char *data = dense->data;
  size_t next = 0; /* the least position that may follow */
  for (size_t i = 0; i < count; ++i) {
    size_t position = 0;
    OM_TRY(find_position(ctx, p, dense, i, &position));
    if (position < next) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its indices do not ascend at %zu.", i);
    }
    memcpy(data + position * elem_bytes, values + i * elem_bytes, elem_bytes);
    next = position + 1;
  }
  return OM_OK;
}

om_status om_loader_read_sparse(
    om_ctx *ctx, om_loader *loader, om_string bytes, om_tensor *out_tensor, om_string *out_name) {
  parts p = {0};
  om_tensor dense = {0};
  om_status st = read_parts(ctx, loader, bytes, &p, &dense);
  if (st == OM_OK) st = check_parts(ctx, loader, &p, &dense);
  if (st == OM_OK) {
    dense.data = om_pool_new_bytes(ctx, &loader->graph->pool, dense.data_bytes, 1);
    st = dense.data ? fill(ctx, &p, &dense) : OM_E_OUT_OF_MEMORY;
  }
  if (st == OM_OK) {
    *out_tensor = dense;
    *out_name = p.name;
  } else if (p.name.data) {
    int shown = (int)(p.name.bytes < 200 ? p.name.bytes : 200);
    om_error_prefix(ctx, "Sparse tensor '%.*s'", shown, p.name.data);
  }
  return st;
}
