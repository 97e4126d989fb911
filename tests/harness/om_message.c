/* The field numbers are those of src/onnx/onnx.proto. Writing past the end stops the test. */
#include "harness/om_message.h"

#include <stdlib.h>

static void put(om_message *out, const void *bytes, size_t count) {
  if (count > OM_MESSAGE_BYTES - out->count) abort();
  if (count > 0) memcpy(out->bytes + out->count, bytes, count);
  out->count += count;
}

void om_message_varint(om_message *out, uint64_t value) {
  do {
    unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    put(out, &byte, 1);
    value >>= 7;
  } while (value > 0);
}

void om_message_number(om_message *out, uint32_t field, int64_t value) {
  om_message_varint(out, field << 3);
  om_message_varint(out, (uint64_t)value);
}

void om_message_float(om_message *out, uint32_t field, float value) {
  om_message_varint(out, field << 3 | 5);
  put(out, &value, sizeof value);
}

void om_message_bytes(om_message *out, uint32_t field, const void *bytes, size_t count) {
  om_message_varint(out, field << 3 | 2);
  om_message_varint(out, count);
  put(out, bytes, count);
}

void om_message_text(om_message *out, uint32_t field, const char *text) {
  om_message_bytes(out, field, text, strlen(text));
}

void om_message_nest(om_message *out, uint32_t field, const om_message *message) {
  om_message_bytes(out, field, message->bytes, message->count);
}

static void put_names(om_message *out, uint32_t field, const char *names) {
  for (const char *at = names; at;) {
    const char *comma = strchr(at, ',');
    om_message_bytes(out, field, at, comma ? (size_t)(comma - at) : strlen(at));
    at = comma ? comma + 1 : NULL;
  }
}

om_message om_message_node(const char *type,
                           const char *name,
                           const char *inputs,
                           const char *outputs) {
  om_message node = {.count = 0};
  put_names(&node, 1, inputs);
  put_names(&node, 2, outputs);
  if (name) om_message_text(&node, 3, name);
  om_message_text(&node, 4, type);
  return node;
}

om_message om_message_tensor(const char *name, int64_t elems) {
  om_message tensor = {.count = 0};
  float data[256];
  if (elems < 0 || elems > 256) abort();
  for (int64_t i = 0; i < elems; ++i) data[i] = (float)(i + 1);
  om_message_number(&tensor, 1, elems);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, name);
  om_message_bytes(&tensor, 9, data, (size_t)elems * sizeof *data);
  return tensor;
}

om_message om_message_value(const char *name, int64_t extent) {
  om_message dim = {.count = 0};
  om_message shape = {.count = 0};
  om_message tensor = {.count = 0};
  om_message type = {.count = 0};
  om_message value = {.count = 0};
  om_message_number(&dim, 1, extent);
  om_message_nest(&shape, 1, &dim);
  om_message_number(&tensor, 1, OM_DTYPE_F32);
  om_message_nest(&tensor, 2, &shape);
  om_message_nest(&type, 1, &tensor);
  om_message_text(&value, 1, name);
  om_message_nest(&value, 2, &type);
  return value;
}

om_message om_message_model(const om_message *graph) {
  om_message opset = {.count = 0};
  om_message model = {.count = 0};
  om_message_number(&opset, 2, 13);
  om_message_number(&model, 1, 8);
  om_message_nest(&model, 7, graph);
  om_message_nest(&model, 8, &opset);
  return model;
}

void om_message_attr(om_message *node, const char *name, int kind, const om_message *value) {
  om_message attr = {.count = 0};
  om_message_text(&attr, 1, name);
  memcpy(attr.bytes + attr.count, value->bytes, value->count);
  attr.count += value->count;
  if (kind) om_message_number(&attr, 20, kind);
  om_message_nest(node, 5, &attr);
}

om_message om_message_small_graph(void) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Add", "my_add", "x,w", "y");
  om_message w = om_message_tensor("w", 4);
  om_message x = om_message_value("x", 4);
  om_message y = om_message_value("y", 4);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 5, &w);
  om_message_nest(&graph, 11, &x);
  om_message_nest(&graph, 12, &y);
  return graph;
}
