/* Sequences and optionals as results: what they take is known from their elements, and they are
 * written as one piece (graph/om_value_copy.h). */
#ifndef OP_NESTED_H
#define OP_NESTED_H

#include "graph/om_op.h"

/* While infer adds up what a result takes. */
typedef struct om_nested_size {
  size_t count, bytes;
  bool is_open;    /* an element's size is not known yet */
  bool is_too_big; /* or nests too deep */
} om_nested_size;

void om_nested_add(om_nested_size *size, const om_tensor *elem);

/* Sets the output to a list of what was added; unknown where it is open. */
om_status om_nested_set(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t output,
                        om_dtype dtype,
                        const om_nested_size *size);

/* While run writes a result. */
typedef struct om_nested_writer {
  om_tensor *elems;
  unsigned char *at;
  size_t count;
} om_nested_writer;

/* The output must be read by something. */
om_nested_writer om_nested_begin(om_tensor *output);
void om_nested_write(om_nested_writer *writer, const om_tensor *elem);

/* The output is the value as it is: unknown where it is not there. */
om_status om_nested_infer_copy(om_ctx *ctx, const om_op_call *call, const om_tensor *value);
void om_nested_run_copy(const om_op_call *call, const om_tensor *value);

#endif
