/* The parameters of onemodel.Attention, an operator that rewrites make (ops_attention.c). */
#ifndef OP_ATTENTION_H
#define OP_ATTENTION_H

#include "cpu/exact/om_attention.h"
#include "cpu/exact/om_view.h"
#include "ops/om_rule.h"

enum { /* inputs */
       OM_ATTENTION_Q = 0,
       OM_ATTENTION_K = 1,
       OM_ATTENTION_V = 2,
       OM_ATTENTION_MASK = 3,    /* optional */
       OM_ATTENTION_Q_SCALE = 4, /* optional, one element each */
       OM_ATTENTION_K_SCALE = 5,
       OM_ATTENTION_SCALE = 6,
       OM_ATTENTION_INPUTS = 7,
};

typedef struct om_attention_perm {
  uint32_t rank; /* 0: as it lies */
  uint32_t axes[OM_MAX_RANK];
} om_attention_perm;

/* What of an operand's last axis is read, before its permutation. */
typedef struct om_attention_columns {
  int64_t first, width; /* width 0: all of them */
  int64_t heads;        /* above 0: they are heads times a size; the heads become an axis */
} om_attention_columns;

typedef struct om_attention_params {
  om_attention_columns columns[3]; /* of Q, K and V */
  om_attention_perm perms[3];      /* of Q, K and V, before they are multiplied */
  om_view views[4];                /* of rank above 0: the operand, in place of these two; of the
                                      mask as well */
  om_attention_perm y_perm;        /* of the result */
  bool divides[3];                 /* Q, K, the scores are divided by their scale, not multiplied */
  bool selects;                    /* om_attention.selects */
  bool zeroes_nan;
} om_attention_params;

/* How the operands lie. Shapes and types are checked here, the scales' values are read where they
 * are known. *out_y: type and shape of the result. */
om_status om_attention_describe(om_ctx *ctx,
                                const om_attention_params *params,
                                const om_tensor *const inputs[OM_ATTENTION_INPUTS],
                                om_attention *out_attention,
                                om_tensor *out_y);

#endif
