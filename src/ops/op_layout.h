/* Attributes of the operators that move data, and what each of them copies.
 *
 * The om_layout_* functions describe an operator as strided copies (cpu/exact/om_strided.h); the
 * CPU and the device run the same descriptions. They are called after infer has passed, with the
 * operands that decide (axes, starts, repeats) known.
 */
#ifndef OP_LAYOUT_H
#define OP_LAYOUT_H

#include "cpu/exact/om_strided.h"
#include "ops/om_rule.h"

typedef struct om_transpose_params {
  om_rule_list perm; /* not given: the axes in reverse */
} om_transpose_params;

typedef struct om_concat_params {
  int64_t axis;
} om_concat_params;

typedef struct om_split_params {
  int64_t axis;
  om_rule_list sizes; /* opsets below 13; later they are input 1 */
  int64_t part_count; /* opset 18: num_outputs; 0: not given */
} om_split_params;

typedef struct om_block_params { /* DepthToSpace, SpaceToDepth */
  int64_t block;
  bool is_crd; /* DepthToSpace: the channel is the slowest, "CRD" */
} om_block_params;

typedef struct om_reverse_params {
  int64_t batch_axis, time_axis;
} om_reverse_params;

void om_layout_transpose(const om_op_call *call, om_strided *out);
void om_layout_split(const om_op_call *call, uint32_t output, om_strided *out);
void om_layout_depth_to_space(const om_op_call *call, om_strided *out);
void om_layout_space_to_depth(const om_op_call *call, om_strided *out);

#endif
