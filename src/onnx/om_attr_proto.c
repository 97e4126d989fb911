/* Attributes: the declared kind against the field that is used. */
#include <inttypes.h>

#include "onnx/om_loader.h"

/* Everything an AttributeProto may hold, found by one decode call. */
typedef struct parts {
  om_string bytes; /* the message */
  om_string name, s, t, g, type, reference, sparse;
  om_wire_numbers floats, ints;
  om_wire_list strings;
  om_wire_list others; /* lists of tensors, graphs, types: nothing here reads them */
  om_wire_Attribute wire;
} parts;

static om_status read_parts(om_ctx *ctx, parts *p) {
  p->strings.ctx = ctx;
  p->others.ctx = ctx;
  p->floats = (om_wire_numbers){.format = OM_WIRE_FIXED32};
  p->ints = (om_wire_numbers){.format = OM_WIRE_VARINT};
  p->wire.name = om_wire_keep(&p->name);
  p->wire.s = om_wire_keep(&p->s);
  p->wire.t = om_wire_keep(&p->t);
  p->wire.g = om_wire_keep(&p->g);
  p->wire.tp = om_wire_keep(&p->type);
  p->wire.reference = om_wire_keep(&p->reference);
  p->wire.sparse = om_wire_keep(&p->sparse);
  p->wire.floats = om_wire_keep_numbers(&p->floats);
  p->wire.ints = om_wire_keep_numbers(&p->ints);
  p->wire.strings = om_wire_keep_all(&p->strings);
  p->wire.tensors = om_wire_keep_all(&p->others);
  p->wire.graphs = om_wire_keep_all(&p->others);
  p->wire.types = om_wire_keep_all(&p->others);
  p->wire.sparses = om_wire_keep_all(&p->others);
  return om_wire_decode(ctx, p->bytes, om_wire_Attribute_fields, &p->wire, "attribute");
}

/* A bit for each kind whose field is there. */
static unsigned present_kinds(const parts *p) {
  unsigned kinds = 0;
  if (p->wire.has_f) kinds |= 1u << OM_ATTR_FLOAT;
  if (p->wire.has_i) kinds |= 1u << OM_ATTR_INT;
  if (p->s.data) kinds |= 1u << OM_ATTR_STRING;
  if (p->t.data) kinds |= 1u << OM_ATTR_TENSOR;
  if (p->g.data) kinds |= 1u << OM_ATTR_GRAPH;
  if (p->floats.count) kinds |= 1u << OM_ATTR_FLOATS;
  if (p->ints.count) kinds |= 1u << OM_ATTR_INTS;
  if (p->strings.count) kinds |= 1u << OM_ATTR_STRINGS;
  if (p->others.count || p->type.data || p->sparse.data) kinds |= 1u << OM_ATTR_OTHER;
  return kinds;
}

/* ONNX's number of the kind, from 9 on collected in OM_ATTR_OTHER. */
enum { WIRE_KIND_LAST = 14 };

static om_status find_kind(om_ctx *ctx, const parts *p, om_attr_kind *out_kind) {
  unsigned present = present_kinds(p);
  int32_t declared = p->wire.has_kind ? p->wire.kind : 0;
  if (declared < 0 || declared > WIRE_KIND_LAST) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its kind %" PRId32 " is not known.", declared);
  }
  if (declared == 0) { /* files of the first versions do not say: the field that is there tells */
    for (unsigned k = 1; k <= OM_ATTR_OTHER; ++k) {
      if (present == 1u << k) declared = (int32_t)k;
    }
  }
  if (declared == 0) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It does not say its kind.");
  om_attr_kind kind = declared < OM_ATTR_OTHER ? (om_attr_kind)declared : OM_ATTR_OTHER;
  unsigned expected = 1u << kind;
  if (present & ~expected) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Its kind is %" PRId32 ", but it holds something of another kind.",
                   declared);
  }
  /* Numbers, text and lists that are zero or empty may be left out. */
  unsigned needed = 1u << OM_ATTR_TENSOR | 1u << OM_ATTR_GRAPH;
  if ((expected & needed) && !(present & expected)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Its kind is %" PRId32 " (a %s), but it holds none.",
                   declared,
                   kind == OM_ATTR_GRAPH ? "graph" : "tensor");
  }
  *out_kind = kind;
  return OM_OK;
}

/* The second pass over the message: writes the numbers of a list that was counted. */
static om_status read_list(
    om_ctx *ctx, om_pool *pool, const parts *p, bool is_float, om_attr *attr) {
  om_wire_numbers numbers = is_float ? p->floats : p->ints;
  numbers.elem_bytes = is_float ? sizeof(float) : sizeof(int64_t);
  numbers.capacity = numbers.count;
  numbers.count = 0;
  numbers.out = om_pool_new_bytes(ctx, pool, numbers.capacity, numbers.elem_bytes);
  if (!numbers.out) return OM_E_OUT_OF_MEMORY;
  om_wire_Attribute wire = {0};
  if (is_float) wire.floats = om_wire_keep_numbers(&numbers);
  if (!is_float) wire.ints = om_wire_keep_numbers(&numbers);
  OM_TRY(om_wire_decode(ctx, p->bytes, om_wire_Attribute_fields, &wire, "attribute"));
  attr->count = numbers.capacity;
  if (is_float) attr->floats = (const float *)(const void *)numbers.out;
  if (!is_float) attr->ints = (const int64_t *)(const void *)numbers.out;
  return OM_OK;
}

static om_status read_strings(om_ctx *ctx, om_pool *pool, const parts *p, om_attr *attr) {
  om_string *strings = OM_POOL_NEW(ctx, pool, om_string, p->strings.count);
  if (!strings) return OM_E_OUT_OF_MEMORY;
  if (p->strings.count) memcpy(strings, p->strings.items, p->strings.count * sizeof *strings);
  attr->strings = strings;
  attr->count = p->strings.count;
  return OM_OK;
}

static om_status read_tensor(om_ctx *ctx, const om_loader *loader, const parts *p, om_attr *attr) {
  om_string name;
  om_tensor *tensor = OM_POOL_NEW(ctx, &loader->graph->pool, om_tensor, 1);
  if (!tensor) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_tensor_proto_read(ctx, &loader->file->reading, p->t, tensor, &name));
  attr->tensor = tensor;
  return OM_OK;
}

/* A sparse tensor is a tensor like others once it is read. */
static om_status read_sparse(om_ctx *ctx, om_loader *loader, const parts *p, om_attr *attr) {
  om_string name;
  om_tensor *tensor = OM_POOL_NEW(ctx, &loader->graph->pool, om_tensor, 1);
  if (!tensor) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_loader_read_sparse(ctx, loader, p->sparse, tensor, &name));
  attr->kind = OM_ATTR_TENSOR;
  attr->tensor = tensor;
  return OM_OK;
}

static om_status read_value(om_ctx *ctx, om_loader *loader, const parts *p, om_attr *attr) {
  om_pool *pool = &loader->graph->pool;
  if (p->reference.bytes > 0 && loader->is_function) {
    attr->kind = OM_ATTR_REFERENCE;
    attr->s = p->reference;
    return OM_OK;
  }
  if (p->reference.bytes > 0) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It refers to a function's attribute outside of one.");
  }
  OM_TRY(find_kind(ctx, p, &attr->kind));
  if (attr->kind == OM_ATTR_FLOAT) attr->f = p->wire.f;
  if (attr->kind == OM_ATTR_INT) attr->i = p->wire.i;
  if (attr->kind == OM_ATTR_STRING) attr->s = p->s.data ? p->s : (om_string){.data = ""};
  if (attr->kind == OM_ATTR_GRAPH) {
    return om_loader_read_body(ctx, loader, p->g, attr->name, &attr->graph);
  }
  if (attr->kind == OM_ATTR_TENSOR) return read_tensor(ctx, loader, p, attr);
  if (attr->kind == OM_ATTR_FLOATS) return read_list(ctx, pool, p, true, attr);
  if (attr->kind == OM_ATTR_INTS) return read_list(ctx, pool, p, false, attr);
  if (attr->kind == OM_ATTR_STRINGS) return read_strings(ctx, pool, p, attr);
  if (attr->kind == OM_ATTR_OTHER && p->sparse.data) return read_sparse(ctx, loader, p, attr);
  return OM_OK;
}

om_status om_loader_read_attr(om_ctx *ctx, om_loader *loader, om_string bytes, om_attr *out_attr) {
  om_status st = OM_OK;
  parts p = {.bytes = bytes};
  *out_attr = (om_attr){0};
  OM_GO(read_parts(ctx, &p));
  if (p.name.bytes == 0) OM_GO(OM_FAIL(ctx, OM_E_INVALID_MODEL, "An attribute has no name."));
  out_attr->name = om_pool_text(ctx, &loader->graph->pool, p.name.data, p.name.bytes);
  if (!out_attr->name) OM_GO(OM_E_OUT_OF_MEMORY);
  OM_GO(read_value(ctx, loader, &p, out_attr));
done:
  if (st != OM_OK && p.name.bytes > 0 && om_loader_may_name(ctx, loader)) {
    int shown = (int)(p.name.bytes < 200 ? p.name.bytes : 200);
    om_error_prefix(ctx, "Attribute '%.*s'", shown, p.name.data);
  }
  om_wire_list_deinit(&p.strings);
  om_wire_list_deinit(&p.others);
  return st;
}
