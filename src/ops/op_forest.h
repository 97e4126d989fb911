/* Decision trees as TreeEnsemble and the two older operators run them: whatever the attributes'
 * spelling, nodes in one array, and the votes of a leaf behind one another.
 *
 *     nodes  [feature, split, mode, next if false, next if true] ...
 *     next   below OM_FOREST_LEAF: a node; else OM_FOREST_LEAF + a leaf
 *     leaf   votes first_vote[leaf] .. first_vote[leaf + 1]: a target and a weight each
 */
#ifndef OP_FOREST_H
#define OP_FOREST_H

#include "ops/op_ml.h"

#define OM_FOREST_LEAF ((uint32_t)1 << 31)

typedef enum om_forest_mode { /* ONNX's own numbers */
                              OM_FOREST_LEQ,
                              OM_FOREST_LT,
                              OM_FOREST_GTE,
                              OM_FOREST_GT,
                              OM_FOREST_EQ,
                              OM_FOREST_NEQ,
                              OM_FOREST_MEMBER,
} om_forest_mode;

enum { OM_FOREST_AVERAGE, OM_FOREST_SUM, OM_FOREST_MIN, OM_FOREST_MAX };

typedef struct om_forest_node {
  double split;
  uint64_t feature;
  uint32_t next[2];      /* if the comparison is false, if it is true */
  uint32_t first_member; /* of the set that the value must be in */
  uint8_t mode;
  bool missing_is_true; /* NaN takes the true branch */
} om_forest_node;

typedef struct om_forest_vote {
  double weight;
  uint32_t target;
} om_forest_vote;

typedef struct om_forest { /* the arrays lie in the graph's pool */
  om_forest_node *nodes;
  size_t node_count;
  uint32_t *roots; /* as next */
  size_t root_count;
  om_forest_vote *votes;
  uint32_t *first_vote; /* leaf_count + 1 */
  size_t leaf_count;
  const om_tensor *members; /* sets behind one another, each ended by NaN; may be NULL */
  uint64_t feature_count;   /* what a row must have at least */
  uint32_t target_count;
  uint32_t aggregate;
} om_forest;

/* Adds up a row's votes: sums[target_count], each from 0. OM_E_INVALID_MODEL where a way goes in a
 * circle. `has_vote` has target_count elements: whether anything voted for the target. */
om_status om_forest_score(om_ctx *ctx,
                          const om_forest *forest,
                          const om_tensor *x,
                          size_t row,
                          double *sums,
                          bool *has_vote);

/* Scratch that om_forest_score's results and one more sum take. */
size_t om_forest_scratch(const om_forest *forest);

/* Rows with all features; OM_E_INVALID_INPUT if they lack some. */
om_status om_forest_check_rows(om_ctx *ctx,
                               const om_forest *forest,
                               const om_tensor *x,
                               size_t *out_rows);

/* ---- Making one ---- */

/* The trees of TreeEnsembleRegressor and TreeEnsembleClassifier: nodes named by a tree and a
 * number, whose leaves are nodes, too. `votes` is "target" or "class": how their attributes begin.
 */
om_status om_forest_of_named_nodes(om_ctx *ctx,
                                   om_pool *pool,
                                   const om_node *node,
                                   const char *votes,
                                   size_t target_count,
                                   om_forest *out_forest);

/* Numbers that are a list of floats, or a tensor of doubles whose name has "_as_tensor" behind. */
typedef struct om_forest_numbers {
  om_ml_floats floats;
  const om_tensor *tensor;
  size_t count;
} om_forest_numbers;

om_status om_forest_numbers_attr(om_ctx *ctx,
                                 const om_node *node,
                                 const char *name,
                                 om_forest_numbers *out);
double om_forest_number(const om_forest_numbers *numbers, size_t index);

#endif
