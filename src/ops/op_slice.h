/* Attributes of the operators that take a part of a tensor or repeat it, and what they copy; as in
 * op_layout.h. */
#ifndef OP_SLICE_H
#define OP_SLICE_H

#include "cpu/exact/om_strided.h"
#include "ops/om_rule.h"

typedef struct om_slice_params { /* opset 1; from opset 10 on these are inputs */
  om_rule_list starts, ends, axes;
} om_slice_params;

typedef enum om_pad_mode {
  OM_PAD_CONSTANT,
  OM_PAD_REFLECT,
  OM_PAD_EDGE,
  OM_PAD_WRAP,
} om_pad_mode;

typedef struct om_pad_params {
  om_pad_mode mode;
  om_rule_list pads; /* opsets below 11; later they are input 1 */
  float value;       /* opsets below 11 */
} om_pad_params;

/* Pads of a node: elements added (negative: removed) before and behind each axis. */
typedef struct om_pads {
  int64_t before[OM_MAX_RANK];
  int64_t behind[OM_MAX_RANK];
} om_pads;

void om_slice_copy(const om_op_call *call, om_strided *out);
void om_expand_copy(const om_op_call *call, om_strided *out);
void om_tile_copy(const om_op_call *call, om_strided *out);

void om_pad_read(const om_op_call *call, om_pads *out);

#endif
