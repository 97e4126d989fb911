/* Writes protobuf messages byte by byte, also wrong ones, for tests of the loader.
 *
 *     om_message node = {0};
 *     om_message_text(&node, 4, "Relu");
 *     om_message_nest(&graph, 1, &node);
 */
#ifndef OM_MESSAGE_H
#define OM_MESSAGE_H

#include "base/om_base.h"

enum { OM_MESSAGE_BYTES = 8192 };

typedef struct om_message {
  unsigned char bytes[OM_MESSAGE_BYTES];
  size_t count;
} om_message;

/* A number in the wire's variable length; the bare parts of a field are written with it. */
void om_message_varint(om_message *out, uint64_t value);
void om_message_number(om_message *out, uint32_t field, int64_t value);
void om_message_float(om_message *out, uint32_t field, float value);
void om_message_bytes(om_message *out, uint32_t field, const void *bytes, size_t count);
void om_message_text(om_message *out, uint32_t field, const char *text);
void om_message_nest(om_message *out, uint32_t field, const om_message *message);

/* ---- Parts of models ---- */

/* A node with inputs and outputs as "a,b"; name may be NULL. */
om_message om_message_node(const char *type,
                           const char *name,
                           const char *inputs,
                           const char *outputs);

/* Gives a node an attribute; value is the field that holds its value. kind 0: it is not said. */
void om_message_attr(om_message *node, const char *name, int kind, const om_message *value);

/* A float32 tensor with raw data 1, 2, 3, ...; rank 1. */
om_message om_message_tensor(const char *name, int64_t elems);

/* A ValueInfo: float32 with one extent. */
om_message om_message_value(const char *name, int64_t extent);

/* A graph, y = Add(x, w), with w an initializer; the node is my_add. */
om_message om_message_small_graph(void);

/* A model around a graph: IR version 8, opset 13. */
om_message om_message_model(const om_message *graph);

#endif
