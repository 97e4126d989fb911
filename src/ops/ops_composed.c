/* Composed operators: their versions and operands. What they stand for is in src/rewrite/
 * (om_compose.h). */
#include "ops/om_rule.h"

#define OM_COMPOSED(domain_name, name, first, least, most, most_outputs) \
  {.domain = (domain_name),                                              \
   .type = (name),                                                       \
   .first_opset = (first),                                               \
   OM_RULE_COUNTS(least, most, 1, most_outputs),                         \
   .dtypes = OM_DT_ALL,                                                  \
   .is_composed = true}

#define OM_MICROSOFT "com.microsoft"

const om_op om_ops_composed[] = {
    {.domain = "",
     .type = "Attention",
     .first_opset = 23,
     .last_opset = 23,
     OM_RULE_COUNTS(3, 6, 1, 4),
     .dtypes = OM_DT_FLOAT,
     .is_composed = true},
    OM_COMPOSED("", "Attention", 24, 3, 7, 4),
    OM_COMPOSED("", "SimplifiedLayerNormalization", 1, 2, 2, 2),
    OM_COMPOSED(OM_MICROSOFT, "Attention", 1, 2, 7, 2),
    OM_COMPOSED(OM_MICROSOFT, "BiasGelu", 1, 2, 2, 1),
    OM_COMPOSED(OM_MICROSOFT, "EmbedLayerNormalization", 1, 1, 9, 3),
    OM_COMPOSED(OM_MICROSOFT, "FastGelu", 1, 1, 2, 1),
    OM_COMPOSED(OM_MICROSOFT, "FusedMatMul", 1, 2, 2, 1),
    OM_COMPOSED(OM_MICROSOFT, "Gelu", 1, 1, 1, 1),
    OM_COMPOSED(OM_MICROSOFT, "GroupQueryAttention", 1, 1, 12, 3),
    OM_COMPOSED(OM_MICROSOFT, "MultiHeadAttention", 1, 1, 10, 4),
    OM_COMPOSED(OM_MICROSOFT, "QLinearAveragePool", 1, 1, 5, 1),
    OM_COMPOSED(OM_MICROSOFT, "QLinearSoftmax", 1, 1, 5, 1),
    OM_COMPOSED(OM_MICROSOFT, "QLinearWhere", 1, 1, 9, 1),
    OM_COMPOSED(OM_MICROSOFT, "QuickGelu", 1, 1, 1, 1),
    OM_COMPOSED(OM_MICROSOFT, "RotaryEmbedding", 1, 4, 4, 1),
    OM_COMPOSED(OM_MICROSOFT, "SimplifiedLayerNormalization", 1, 2, 2, 2),
    OM_COMPOSED(OM_MICROSOFT, "SkipLayerNormalization", 1, 3, 5, 4),
    OM_COMPOSED(OM_MICROSOFT, "SkipSimplifiedLayerNormalization", 1, 3, 4, 4),
    {.type = NULL},
};
