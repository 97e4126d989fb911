/* Attention in its general form, for the operators that are composed of it. */
#ifndef OM_COMPOSE_ATTENTION_H
#define OM_COMPOSE_ATTENTION_H

#include "rewrite/om_compose.h"

typedef struct om_attention_form {
  om_value_id q, k, v;
  bool is_q_flat;             /* [batch, length, heads * size]; else [batch, heads, length, size] */
  bool is_k_flat;             /* k and v likewise */
  int64_t q_heads, kv_heads;  /* 0: not known; a flat operand's must be */
  om_value_id past_k, past_v; /* [batch, kv_heads, past, size], before k and v; OM_NO_VALUE: none */
  om_value_id allowed;        /* bool: the keys that a row sees; broadcasts; OM_NO_VALUE: all */
  om_value_id bias;           /* added to the scores; OM_NO_VALUE: none */
  uint32_t mask_rank;         /* the larger rank of these two; OM_RANK_UNKNOWN */
  bool mask_has_heads;        /* their axis of the heads may be longer than 1 */
  om_value_id lengths;        /* int64 [batch]: keys beyond are not seen; OM_NO_VALUE: none */
  bool is_causal;             /* row i sees the keys up to i plus the keys before the rows */
  om_value_id scale;          /* a scalar, of the scores; OM_NO_VALUE: none */
  bool scales_operands;       /* q and k are each multiplied by it instead */
  float hidden;               /* what a hidden key's score gets */
  bool zeroes_hidden_rows;    /* a row that sees no key is 0 */
  float softcap;              /* 0: none */
  om_dtype precision;         /* of the Softmax; OM_DTYPE_NONE: that of the scores */
  /* Filled: */
  om_value_id y; /* flat where q is; else as q */
  om_value_id present_k, present_v;
  om_value_id scores[4]; /* the products; with the cap; with the masks; the probabilities */
} om_attention_form;

/* wants_scores: the scores will be read, [batch, heads, rows, keys]. */
void om_compose_attention(om_composer *c, om_attention_form *f, bool wants_scores);

/* A flat operand with its heads in front. */
om_value_id om_compose_split_heads(om_composer *c, om_value_id x, int64_t heads);

#endif
