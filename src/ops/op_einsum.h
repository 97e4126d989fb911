/* An Einsum's equation, and what it says about operands of given shapes.
 *
 * Letters become labels, numbered as they first appear; the axes of an ellipsis are the labels from
 * OM_EINSUM_ELLIPSIS on.
 */
#ifndef OP_EINSUM_H
#define OP_EINSUM_H

#include "cpu/exact/om_strided.h"
#include "ops/om_rule.h"

enum {
  OM_EINSUM_TERMS = 16,    /* operands at most */
  OM_EINSUM_ELLIPSIS = 52, /* the first label of an ellipsis's axis */
  OM_EINSUM_LABELS = OM_EINSUM_ELLIPSIS + OM_MAX_RANK,
  OM_EINSUM_DOTS = 255, /* in a term: the ellipsis */
};

typedef uint64_t om_einsum_set; /* bit n: label n */
#define OM_EINSUM_BIT(label) ((om_einsum_set)1 << (label))

typedef struct om_einsum_term {
  uint8_t labels[OM_MAX_RANK + 1]; /* or OM_EINSUM_DOTS, once at most */
  uint8_t count;
} om_einsum_term;

typedef struct om_einsum_equation {
  char letters[OM_EINSUM_ELLIPSIS]; /* of each label */
  uint8_t letter_count;
  uint8_t term_count;
  om_einsum_term terms[OM_EINSUM_TERMS];
  om_einsum_term result;
} om_einsum_equation;

/* Reads "ij,jk->ik". OM_E_INVALID_MODEL says what is wrong with it. */
om_status om_einsum_parse(om_ctx *ctx, om_string text, om_einsum_equation *out);

/* An operand, or what a part of them has been joined to: an axis for each label. */
typedef struct om_einsum_operand {
  const void *data;
  uint32_t count;
  uint8_t labels[OM_STRIDED_MAX_RANK];
  int64_t strides[OM_STRIDED_MAX_RANK]; /* elements; 0 where the axis repeats */
} om_einsum_operand;

/* The extent of each label (-1: it does not occur), and the labels of the result in order. */
typedef struct om_einsum_shape {
  int64_t extents[OM_EINSUM_LABELS];
  uint32_t rank;
  uint8_t labels[OM_MAX_RANK];
} om_einsum_shape;

/* OM_E_INVALID_INPUT where the operands' shapes do not go with the equation or with each other. */
om_status om_einsum_check(om_ctx *ctx, const om_einsum_equation *equation, const om_op_call *call);

/* The shape for operands that have passed om_einsum_check. */
void om_einsum_fit(const om_einsum_equation *equation,
                   const om_op_call *call,
                   om_einsum_shape *out);

/* Operand `index` with its axes by label; a letter that occurs twice is one axis. */
om_einsum_operand om_einsum_operand_of(const om_einsum_equation *equation,
                                       const om_tensor *tensor,
                                       uint32_t index);

#endif
