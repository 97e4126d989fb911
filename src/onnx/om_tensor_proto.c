/* A TensorProto may hold its data in one of eight ways: raw bytes, a file beside the model, or
 * one of six typed lists that depend on the element type. The first pass over the message keeps
 * ranges and counts numbers; then the counts are held against the shape; a second pass writes the
 * numbers of a typed list. */
#include "onnx/om_tensor_proto.h"

#include <inttypes.h>

#include "graph/om_graph.h"
#include "onnx/om_wire.h"

typedef enum field {
  FIELD_FLOAT,
  FIELD_INT32,
  FIELD_INT64,
  FIELD_DOUBLE,
  FIELD_UINT64,
  FIELD_COUNT,
} field;

typedef struct typed_rule {
  uint8_t field;      /* the list that holds elements of this type */
  uint8_t elem_bytes; /* of one number of the list, as it is stored */
  uint8_t per_elem;   /* numbers an element */
  int64_t range[2];   /* of a number that is narrower here than in the list */
} typed_rule;

static const typed_rule rules[OM_DTYPE_COUNT] = {
    [OM_DTYPE_F32] = {FIELD_FLOAT, 4, 1, {0, 0}},
    [OM_DTYPE_C64] = {FIELD_FLOAT, 4, 2, {0, 0}},
    [OM_DTYPE_F64] = {FIELD_DOUBLE, 8, 1, {0, 0}},
    [OM_DTYPE_C128] = {FIELD_DOUBLE, 8, 2, {0, 0}},
    [OM_DTYPE_I64] = {FIELD_INT64, 8, 1, {0, 0}},
    [OM_DTYPE_U64] = {FIELD_UINT64, 8, 1, {0, 0}},
    [OM_DTYPE_U32] = {FIELD_UINT64, 4, 1, {0, UINT32_MAX}},
    [OM_DTYPE_I32] = {FIELD_INT32, 4, 1, {INT32_MIN, INT32_MAX}},
    [OM_DTYPE_I16] = {FIELD_INT32, 2, 1, {INT16_MIN, INT16_MAX}},
    [OM_DTYPE_I8] = {FIELD_INT32, 1, 1, {INT8_MIN, INT8_MAX}},
    [OM_DTYPE_U16] = {FIELD_INT32, 2, 1, {0, UINT16_MAX}},
    [OM_DTYPE_U8] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
    [OM_DTYPE_BOOL] = {FIELD_INT32, 1, 1, {0, 1}},
    [OM_DTYPE_F16] = {FIELD_INT32, 2, 1, {0, UINT16_MAX}},
    [OM_DTYPE_BF16] = {FIELD_INT32, 2, 1, {0, UINT16_MAX}},
    [OM_DTYPE_F8E4M3FN] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
    [OM_DTYPE_F8E4M3FNUZ] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
    [OM_DTYPE_F8E5M2] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
    [OM_DTYPE_F8E5M2FNUZ] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
    [OM_DTYPE_U4] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}}, /* a number is two elements */
    [OM_DTYPE_I4] = {FIELD_INT32, 1, 1, {INT8_MIN, UINT8_MAX}},
    [OM_DTYPE_F4E2M1] = {FIELD_INT32, 1, 1, {0, UINT8_MAX}},
};

/* What the first pass finds. */
typedef struct parts {
  om_string bytes; /* the message */
  om_string name, raw;
  om_wire_list strings, entries;
  om_wire_numbers dims;
  om_wire_numbers typed[FIELD_COUNT];
  int32_t dtype;    /* 0: none */
  int32_t location; /* 0: here; 1: in another file */
} parts;

static void set_typed(om_wire_Tensor *wire, field which, om_wire_numbers *numbers) {
  pb_callback_t callback = om_wire_keep_numbers(numbers);
  if (which == FIELD_FLOAT) wire->float_data = callback;
  if (which == FIELD_INT32) wire->int32_data = callback;
  if (which == FIELD_INT64) wire->int64_data = callback;
  if (which == FIELD_DOUBLE) wire->double_data = callback;
  if (which == FIELD_UINT64) wire->uint64_data = callback;
}

static om_wire_format format_of(field which) {
  if (which == FIELD_FLOAT) return OM_WIRE_FIXED32;
  return which == FIELD_DOUBLE ? OM_WIRE_FIXED64 : OM_WIRE_VARINT;
}

static om_status read_parts(om_ctx *ctx, parts *p, om_tensor *out) {
  p->strings.ctx = ctx;
  p->entries.ctx = ctx;
  p->dims = (om_wire_numbers){.format = OM_WIRE_VARINT,
                              .out = (unsigned char *)out->dims,
                              .capacity = OM_MAX_RANK,
                              .elem_bytes = sizeof(int64_t)};
  om_wire_Tensor wire = {0};
  wire.dims = om_wire_keep_numbers(&p->dims);
  wire.name = om_wire_keep(&p->name);
  wire.raw_data = om_wire_keep(&p->raw);
  wire.string_data = om_wire_keep_all(&p->strings);
  wire.external_data = om_wire_keep_all(&p->entries);
  for (field f = 0; f < FIELD_COUNT; ++f) {
    p->typed[f].format = format_of(f);
    set_typed(&wire, f, &p->typed[f]);
  }
  OM_TRY(om_wire_decode(ctx, p->bytes, om_wire_Tensor_fields, &wire, "tensor"));
  p->dtype = wire.has_dtype ? wire.dtype : 0;
  p->location = wire.has_location ? wire.location : 0;
  return OM_OK;
}

/* Sets type, rank and byte count. */
static om_status check_shape(om_ctx *ctx, const parts *p, om_tensor *out) {
  int32_t dtype = p->dtype;
  if (dtype == 0) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has no element type.");
  if (dtype < 0 || dtype >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Its element type %" PRId32 " is not known.", dtype);
  }
  if (p->dims.count > OM_MAX_RANK) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Its rank is %zu; at most %d is supported.",
                   p->dims.count,
                   OM_MAX_RANK);
  }
  out->dtype = (om_dtype)dtype;
  out->rank = (uint32_t)p->dims.count;
  for (uint32_t i = 0; i < out->rank; ++i) {
    if (out->dims[i] >= 0) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its extent %" PRId64 " is negative.", out->dims[i]);
  }
  if (om_shape_bytes(out->dtype, out->rank, out->dims, &out->data_bytes)) return OM_OK;
  char shape[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The size of its shape %s overflows.",
                 om_shape_text(shape, sizeof shape, out->rank, out->dims));
}

static om_status fail_count(
    om_ctx *ctx, const om_tensor *tensor, const char *what, size_t got, size_t needed) {
  char shape[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "It holds %zu %s, but %s %s needs %zu.",
                 got,
                 what,
                 om_dtype_name(tensor->dtype),
                 om_shape_text(shape, sizeof shape, tensor->rank, tensor->dims),
                 needed);
}

/* The data stand in one place only. */
static om_status check_one_place(om_ctx *ctx, const parts *p) {
  unsigned places = 0;
  if (p->raw.data) ++places;
  if (p->strings.count) ++places;
  if (p->location == 1) ++places;
  for (field f = 0; f < FIELD_COUNT; ++f) {
    if (p->typed[f].count) ++places;
  }
  if (places <= 1) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "It holds data in %u fields; only one may be used.", places);
}

static om_status read_strings(om_ctx *ctx, om_pool *pool, const parts *p, om_tensor *out) {
  size_t elems = om_tensor_elems(out);
  if (p->strings.count != elems) return fail_count(ctx, out, "strings", p->strings.count, elems);
  om_string *data = OM_POOL_NEW(ctx, pool, om_string, elems);
  if (!data) return OM_E_OUT_OF_MEMORY;
  if (elems > 0) memcpy(data, p->strings.items, elems * sizeof *data);
  out->data = data;
  return OM_OK;
}

static om_status read_typed(om_ctx *ctx, om_pool *pool, parts *p, om_tensor *out) {
  const typed_rule *rule = &rules[out->dtype];
  size_t elems = om_tensor_elems(out);
  size_t needed = om_dtype_bits(out->dtype) < 8 ? out->data_bytes : elems * rule->per_elem;
  om_wire_numbers *numbers = &p->typed[rule->field];
  if (numbers->count != needed) return fail_count(ctx, out, "numbers", numbers->count, needed);
  unsigned char *data = om_pool_new_bytes(ctx, pool, out->data_bytes, 1);
  if (!data) return OM_E_OUT_OF_MEMORY;
  numbers->count = 0;
  numbers->out = data;
  numbers->capacity = needed;
  numbers->elem_bytes = rule->elem_bytes;
  numbers->range = rule->range;
  om_wire_Tensor wire = {0};
  set_typed(&wire, rule->field, numbers);
  OM_TRY(om_wire_decode(ctx, p->bytes, om_wire_Tensor_fields, &wire, "tensor"));
  if (numbers->is_outside) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "It holds the number %" PRId64 ", which is no %s.",
                   numbers->outside,
                   om_dtype_name(out->dtype));
  }
  out->data = data;
  return OM_OK;
}

bool om_tensor_is_aligned(const om_tensor *tensor) {
  size_t bytes = om_dtype_bits(tensor->dtype) / 8;
  if (tensor->dtype == OM_DTYPE_C64 || tensor->dtype == OM_DTYPE_C128) bytes /= 2;
  if (tensor->dtype == OM_DTYPE_STRING || om_dtype_is_nested(tensor->dtype)) bytes = sizeof(void *);
  return bytes <= 1 || (uintptr_t)tensor->data % bytes == 0;
}

/* Data as bytes: in place, or copied where that was asked for. */
static om_status take_bytes(om_ctx *ctx,
                            const om_tensor_reading *how,
                            const unsigned char *data,
                            om_tensor *out) {
  out->data = (void *)(uintptr_t)data; /* never written */
  if (out->dtype == OM_DTYPE_BOOL) {
    for (size_t i = 0; i < out->data_bytes; ++i) {
      if (data[i] <= 1) continue;
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its byte %zu is %u, which is no bool.", i, data[i]);
    }
  }
  if (om_tensor_is_aligned(out) || out->data_bytes >= how->align_below_bytes) return OM_OK;
  out->data = om_pool_new_bytes(ctx, how->pool, out->data_bytes, 1);
  if (!out->data) return OM_E_OUT_OF_MEMORY;
  if (out->data_bytes > 0) memcpy(out->data, data, out->data_bytes);
  return OM_OK;
}

/* Lists that the host reads are brought to memory, whatever their size. */
static bool is_for_host(om_dtype dtype) {
  return dtype == OM_DTYPE_I64 || dtype == OM_DTYPE_I32 || dtype == OM_DTYPE_U64 ||
         dtype == OM_DTYPE_U32 || dtype == OM_DTYPE_BOOL;
}

static om_status read_external(om_ctx *ctx,
                               const om_tensor_reading *how,
                               const parts *p,
                               om_tensor *out) {
  om_external_place place = {0};
  om_external_constant here;
  OM_TRY(om_external_find(
      ctx, how->external, p->entries.items, p->entries.count, out->data_bytes, &place));
  if (!place.location) return take_bytes(ctx, how, place.data, out);
  om_external_constant_init(how->external, &place, out, how->keep ? how->keep : &here);
  if (how->keep && out->data_bytes >= OM_STORED_FROM_BYTES && !is_for_host(out->dtype)) {
    return OM_OK;
  }
  const om_tensor *tensor = how->keep ? &how->keep->stored.tensor : &here.stored.tensor;
  OM_TRY(om_constant_ask(ctx, tensor, 0, out->data_bytes));
  void *data = om_pool_new_bytes(ctx, how->pool, out->data_bytes > 0 ? out->data_bytes : 1, 1);
  if (!data) return OM_E_OUT_OF_MEMORY;
  if (out->data_bytes > 0) OM_TRY(om_constant_read(ctx, tensor, 0, out->data_bytes, data));
  return take_bytes(ctx, how, data, out);
}

static om_status read_data(om_ctx *ctx, const om_tensor_reading *how, parts *p, om_tensor *out) {
  bool is_external = p->location == 1;
  if (p->location != 0 && !is_external) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "Its data location %" PRId32 " is not known.", p->location);
  }
  OM_TRY(check_one_place(ctx, p));
  if (out->dtype == OM_DTYPE_STRING) {
    if (!is_external && !p->raw.data) return read_strings(ctx, how->pool, p, out);
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "It holds strings, which cannot be raw or external data.");
  }
  if (is_external) return read_external(ctx, how, p, out);
  if (!p->raw.data) return read_typed(ctx, how->pool, p, out);
  if (p->raw.bytes != out->data_bytes) {
    return fail_count(ctx, out, "bytes", p->raw.bytes, out->data_bytes);
  }
  return take_bytes(ctx, how, (const unsigned char *)p->raw.data, out);
}

om_status om_tensor_proto_read(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_string bytes,
                               om_tensor *out_tensor,
                               om_string *out_name) {
  om_status st = OM_OK;
  parts p = {.bytes = bytes};
  om_tensor tensor = {0};
  *out_name = (om_string){0};

  OM_GO(read_parts(ctx, &p, &tensor));
  OM_GO(check_shape(ctx, &p, &tensor));
  OM_GO(read_data(ctx, how, &p, &tensor));
  *out_tensor = tensor;
  *out_name = p.name;
done:
  if (st != OM_OK && p.name.data) {
    int shown = (int)(p.name.bytes < 200 ? p.name.bytes : 200);
    om_error_prefix(ctx, "Tensor '%.*s'", shown, p.name.data);
  }
  om_wire_list_deinit(&p.strings);
  om_wire_list_deinit(&p.entries);
  return st;
}
