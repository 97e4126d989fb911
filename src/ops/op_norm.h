/* The parameters of normalisations. */
#ifndef OP_NORM_H
#define OP_NORM_H

#include "cpu/exact/om_norm.h"
#include "ops/om_rule.h"

/* Every operator of the family but BatchNormalization. */
typedef struct om_norm_params {
  om_norm_kind kind;
  float epsilon;
  int64_t axis;          /* of LayerNormalization, RMSNormalization and LpNormalization */
  int64_t group_count;   /* of GroupNormalization */
  bool scale_is_grouped; /* GroupNormalization before opset 21: one scale a group */
  om_rule_list axes;     /* of MeanVarianceNormalization */
} om_norm_params;

typedef struct om_batch_norm_params {
  float epsilon;
  float momentum;   /* of the running statistics, in training */
  bool is_training; /* the batch's own statistics are used */
} om_batch_norm_params;

/* InstanceNormalization, GroupNormalization: the rows, and how scale and bias lie against them. */
void om_channel_norm_rows(const om_norm_params *params,
                          const om_tensor *input,
                          om_rows *out_rows,
                          om_norm_place *out_place);

/* LayerNormalization, RMSNormalization: how scale and bias lie against a row of the axes from
 * `axis` on. False: not one run of its dimensions. */
bool om_layer_norm_place(const om_tensor *input,
                         uint32_t axis,
                         const om_tensor *scale,
                         om_norm_place *out_place);

#endif
