/* What the shape rules of many operators have in common: axes, lists of integers, results.
 *
 * Every function names values in its errors; the node's name is added by the caller of infer.
 */
#ifndef OM_RULE_H
#define OM_RULE_H

#include <string.h>

#include "graph/om_op.h"

/* The most bytes one result may take: a shape computed from data can ask for any size, and a
 * request beyond this is refused before anything is allocated. */
#define OM_RULE_MAX_BYTES ((uint64_t)1 << 38)

/* All types whose elements are whole bytes. */
#define OM_DT_BYTES \
  (OM_DT_ALL & ~(OM_DT(OM_DTYPE_U4) | OM_DT(OM_DTYPE_I4) | OM_DT(OM_DTYPE_F4E2M1)))

/* How many inputs and outputs an entry of the operator table takes. */
#define OM_RULE_COUNTS(least_inputs, most_inputs, least_outputs, most_outputs)               \
  .min_inputs = (least_inputs), .max_inputs = (most_inputs), .min_outputs = (least_outputs), \
  .max_outputs = (most_outputs)

/* The input, or NULL where it is absent. */
static inline const om_tensor *om_rule_input(const om_op_call *call, uint32_t index) {
  return index < call->input_count ? call->inputs[index] : NULL;
}

/* The output, or NULL where nothing reads it. */
static inline om_tensor *om_rule_output(const om_op_call *call, uint32_t index) {
  return index < call->output_count ? call->outputs[index] : NULL;
}

/* True if the tensor's elements can be read now: its data is there, or it has none. */
bool om_rule_is_known(const om_tensor *tensor);

/* Bytes of one element; 0 where elements are smaller than a byte. */
size_t om_rule_elem_bytes(om_dtype dtype);

/* OM_E_UNSUPPORTED where elements are smaller than a byte. */
om_status om_rule_check_bytes(om_ctx *ctx, const om_tensor *tensor);

/* *out_axis = axis, counted from the end where it is negative; it must lie in -rank..rank-1. */
om_status om_rule_axis(om_ctx *ctx, int64_t axis, uint32_t rank, uint32_t *out_axis);

/* The same for a list; an axis that occurs twice is an error. */
om_status om_rule_axes(
    om_ctx *ctx, const int64_t *axes, size_t axis_count, uint32_t rank, uint32_t *out_axes);

/* Checks a list of int32 or int64 (a 0-d tensor is a list of one) of at most `capacity` elements.
 * `what` is its name in messages, such as "axes". */
om_status om_rule_check_list(om_ctx *ctx,
                             const om_tensor *tensor,
                             const char *what,
                             uint32_t capacity);

/* Reads a known list that om_rule_check_list accepted; returns its count. */
uint32_t om_rule_read_list(const om_tensor *tensor, int64_t *out_values);

/* Both. */
om_status om_rule_ints(om_ctx *ctx,
                       const om_tensor *tensor,
                       const char *what,
                       uint32_t capacity,
                       int64_t *out_values,
                       uint32_t *out_count);

/* Checks that the type is one that lists and indices have: int32 or int64. */
om_status om_rule_check_int(om_ctx *ctx, const om_tensor *tensor, const char *what);

/* The element of a tensor that om_rule_check_int accepted; its data may lie unaligned. */
static inline int64_t om_rule_int(const om_tensor *tensor, size_t index) {
  int64_t wide;
  int32_t narrow;
  if (tensor->dtype == OM_DTYPE_I64) {
    memcpy(&wide, (const char *)tensor->data + index * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, (const char *)tensor->data + index * sizeof narrow, sizeof narrow);
  return narrow;
}

/* *out_index = index, counted from the end where it is negative. OM_E_INVALID_INPUT, "<type> index
 * 40 is out of range for an extent of 40.", where it lies outside -extent..extent-1. */
om_status om_rule_index(
    om_ctx *ctx, const char *type, int64_t index, int64_t extent, size_t *out_index);

/* A list that is an input where it is there, else an attribute (borrowed from the node). */
typedef struct om_rule_list {
  const int64_t *values;
  size_t count;
  bool is_given;
} om_rule_list;
om_status om_rule_list_attr(om_ctx *ctx, const om_node *node, const char *name, om_rule_list *out);

/* Sets the output's type and shape; OM_E_INVALID_INPUT if that is more than a tensor may take. An
 * output that nothing reads is checked, too. */
om_status om_rule_set(om_ctx *ctx,
                      const om_op_call *call,
                      uint32_t output,
                      om_dtype dtype,
                      uint32_t rank,
                      const int64_t *dims);

/* The shape depends on data that is not there yet. */
void om_rule_set_unknown(const om_op_call *call, uint32_t output, om_dtype dtype);

/* Merges a shape into the broadcast result in *rank, dims (right-aligned, numpy's rule). */
om_status om_rule_broadcast(om_ctx *ctx, const om_tensor *tensor, uint32_t *rank, int64_t *dims);

/* True if x has rows, of its last axis, and each of `rows` equal parts of it is some of them. */
bool om_rule_has_whole_rows(const om_tensor *x, size_t rows);

/* True if x is NULL, one element, or a row that broadcasts to all rows of y. */
bool om_rule_is_row(const om_tensor *x, const om_tensor *y);

/* The product of dims[begin..end), which is a part of a shape that exists. */
static inline size_t om_rule_product(const int64_t *dims, uint32_t begin, uint32_t end) {
  size_t product = 1;
  for (uint32_t i = begin; i < end; ++i) product *= (size_t)dims[i];
  return product;
}

#endif
