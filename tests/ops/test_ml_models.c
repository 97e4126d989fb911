/* Linear models, support vectors and the older trees of ai.onnx.ml. The values of cases with a
 * comment are those of ONNX's reference, and of ONNX Runtime 1.21 unless the comment says so. */
#include "harness/om_test.h"

#define TWO_SCORES "coefficients=1.0,0.0,0.0,1.0 "

static const om_op_case regressor_cases[] = {
    {.name = "two_targets",
     .inputs = {"f32 2x3 = 1 2 3 4 5 6"},
     .attrs = "coefficients=1.0,0.0,1.0,0.5,0.5,0.5 intercepts=1.0,-1.0 targets=2",
     .expected = {"5 2 11 6.5"},
     .shapes = {"2x2"}},
    {.name = "one_row",
     .inputs = {"i64 2 = 3 4"},
     .attrs = "coefficients=2.0,1.0",
     .expected = {"10"},
     .shapes = {"1x1"}},
    {.name = "f64", .inputs = {"f64 1x1 = 0.5"}, .attrs = "coefficients=[2.0]", .expected = {"1"}},
    {.name = "softmax",
     .inputs = {"f32 1x2 = 1 2"},
     .attrs = TWO_SCORES "targets=2 post_transform=\"SOFTMAX\"",
     .expected = {"0.26894142 0.73105858"}},
    {.name = "softmax_zero",
     .inputs = {"f32 2x2 = 0 1 0 0"},
     .attrs = TWO_SCORES "targets=2 post_transform=\"SOFTMAX_ZERO\"",
     .expected = {"0 1 0 0"}},
    {.name = "probit",
     .inputs = {"f32 3x1 = 0.3 0.5 0.8"},
     .attrs = "coefficients=[1.0] post_transform=\"PROBIT\"",
     .expected = {"-0.52444589 0 0.84175611"},
     .scaled_error = 1e-5},
    {.name = "features",
     .inputs = {"f32 1x3"},
     .attrs = TWO_SCORES,
     .error = "A row has 3 features; there are coefficients for 4"},
    {.name = "counts",
     .inputs = {"f32 1x2"},
     .attrs = TWO_SCORES "targets=3",
     .error = "4 coefficients and 0 intercepts do not give 3 scores"},
    {.name = "transform",
     .inputs = {"f32 1x2"},
     .attrs = TWO_SCORES "post_transform=\"SOFT\"",
     .error = "post_transform is 'SOFT'"},
};

static const om_op_case classifier_cases[] = {
    {.name = "labels",
     .inputs = {"f32 3x2 = 1 2 2 1 1 1"},
     .attrs = TWO_SCORES "classlabels_strings=\"x\",\"y\"",
     .output_count = 2,
     .expected = {"y x x", "1 2 2 1 1 1"},
     .shapes = {"3", "3x2"}},
    {.name = "one_score", /* ONNX Runtime */
     .inputs = {"f32 2x1 = 0.25 -0.25"},
     .attrs = "coefficients=[1.0] intercepts=[0.0] classlabels_ints=5,6",
     .output_count = 2,
     .expected = {"6 5", "0.75 0.25 1.25 -0.25"}},
    {.name = "one_score_logistic", /* ONNX's reference; ONNX Runtime transforms nothing here */
     .inputs = {"f32 2x1 = 0.25 -0.25"},
     .attrs =
         "coefficients=[1.0] intercepts=[0.0] classlabels_ints=5,6 post_transform=\"LOGISTIC\"",
     .output_count = 2,
     .expected = {"6 5", "0.4378235 0.5621765 0.5621765 0.4378235"}},
    {.name = "one_label",
     .inputs = {"i32 2x1 = 2 -2"},
     .attrs = "coefficients=[1.0] classlabels_ints=[5]",
     .output_count = 2,
     .expected = {"5 0", "2 -2"}},
    {.name = "no_labels",
     .inputs = {"f32 1x2"},
     .attrs = TWO_SCORES,
     .output_count = 2,
     .error = "0 integer labels and 0 string labels"},
    {.name = "list",
     .inputs = {"f32 1x2"},
     .attrs = "coefficients=1,2 classlabels_ints=[5]",
     .output_count = 2,
     .error = "coefficients is no list of floats"},
};

#define VECTORS "support_vectors=1.0,0.0,0.0,1.0 coefficients=1.0,-2.0 n_supports=2 rho=[0.5] "

static const om_op_case svm_regressor_cases[] = {
    {.name = "linear",
     .inputs = {"f32 2x2 = 1 2 3 4"},
     .attrs = VECTORS,
     .expected = {"-2.5 -4.5"},
     .shapes = {"2x1"}},
    {.name = "poly",
     .inputs = {"f32 1x2 = 1 2"},
     .attrs = VECTORS "kernel_type=\"POLY\" kernel_params=0.5,1.0,3.0",
     .expected = {"-12.125"}},
    {.name = "rbf", /* exp(-0.5 * 4) - 2 exp(-0.5 * 2) + 0.5 */
     .inputs = {"f32 1x2 = 1 2"},
     .attrs = VECTORS "kernel_type=\"RBF\" kernel_params=0.5,0.0,0.0",
     .expected = {"-0.10042360"}},
    {.name = "sigmoid", /* tanh(1.5) - 2 tanh(2) + 0.5 */
     .inputs = {"f64 1x2 = 1 2"},
     .attrs = VECTORS "kernel_type=\"SIGMOID\" kernel_params=0.5,1.0,0.0",
     .expected = {"-0.52290691"}},
    {.name = "one_class",
     .inputs = {"i64 2x2 = 1 2 3 0"},
     .attrs = VECTORS "one_class=1",
     .expected = {"-1 1"}},
    {.name = "no_vectors",
     .inputs = {"f32 1x2 = 1 2"},
     .attrs = "coefficients=2.0,3.0 rho=[0.5]",
     .expected = {"8.5"}},
    {.name = "features",
     .inputs = {"f32 1x3"},
     .attrs = VECTORS,
     .error = "A row has 3 features; the model is for 2"},
    {.name = "counts",
     .inputs = {"f32 1x2"},
     .attrs = "support_vectors=1.0,0.0,0.0 coefficients=1.0,-2.0 n_supports=2 rho=[0.5]",
     .error = "do not go together"},
    {.name = "rho",
     .inputs = {"f32 1x2"},
     .attrs = "coefficients=2.0,3.0",
     .error = "0 values of rho"},
};

/* Three classes of one vector each: kernels are 1, 2, 3 for the row 1 2 3. */
#define THREE                                                                                    \
  "support_vectors=1.0,0.0,0.0,0.0,1.0,0.0,0.0,0.0,1.0 vectors_per_class=1,1,1 rho=0.1,0.2,0.3 " \
  "coefficients=1.0,-1.0,0.5,2.0,-1.0,0.5 classlabels_ints=7,8,9 "
#define TWO                                                                                \
  "support_vectors=1.0,0.0,0.0,1.0 vectors_per_class=1,1 rho=[0.5] coefficients=1.0,-2.0 " \
  "classlabels_strings=\"p\",\"q\" "

static const om_op_case svm_classifier_cases[] = {
    {.name = "pairs", /* 0.1 + 1 - 2, 0.2 + 2 + 1.5, 0.3 - 2 + 1.5 */
     .inputs = {"f32 1x3 = 1 2 3"},
     .attrs = THREE,
     .output_count = 2,
     .expected = {"7", "-0.9 3.7 -0.2"},
     .shapes = {"1", "1x3"}},
    {.name = "two",
     .inputs = {"f32 2x2 = 1 2 3 1"},
     .attrs = TWO,
     .output_count = 2,
     .expected = {"q p", "2.5 -2.5 -1.5 1.5"},
     .shapes = {"2", "2x2"}},
    {.name = "two_logistic", /* ONNX's reference; ONNX Runtime has 1 - s and s */
     .inputs = {"f32 1x2 = 1 2"},
     .attrs = TWO "post_transform=\"LOGISTIC\"",
     .output_count = 2,
     .expected = {"q", "0.92414182 0.07585818"}},
    {.name = "probabilities", /* ONNX Runtime; ONNX's reference takes a dot product for a product */
     .inputs = {"f32 1x3 = 1 2 3"},
     .attrs = THREE "prob_a=-1.0,-0.5,-2.0 prob_b=0.1,-0.2,0.3",
     .output_count = 2,
     .expected = {"7", "0.35145497 0.40839592 0.24014919"},
     .scaled_error = 1e-5},
    {.name = "linear",
     .inputs = {"f32 2x2 = 1 2 2 1"},
     .attrs = TWO_SCORES "rho=[0.5] classlabels_ints=4,5",
     .output_count = 2,
     .expected = {"5 4", "1.5 2.5 2.5 1.5"}},
    {.name = "vectors",
     .inputs = {"f32 1x3"},
     .attrs = "support_vectors=1.0,0.0 vectors_per_class=1,5 rho=[0.5] coefficients=1.0,-2.0 "
              "classlabels_ints=4,5",
     .output_count = 2,
     .error = "do not go together"},
    {.name = "pairs_lack",
     .inputs = {"f32 1x3"},
     .attrs = "support_vectors=1.0,0.0,1.0 vectors_per_class=1,1,1 rho=[0.5] "
              "coefficients=1.0,-2.0,1.0,1.0,1.0,1.0 classlabels_ints=4,5,6",
     .output_count = 2,
     .error = "do not go together"},
};

/* Two trees: x0 <= 1.5 ? a : (x1 < 0 ? b : c), and a leaf alone. Nodes out of order. */
#define NODES                                                                         \
  "nodes_treeids=3,3,3,3,3,9 nodes_nodeids=0,2,1,4,3,0 nodes_featureids=0,1,0,0,0,0 " \
  "nodes_truenodeids=1,3,0,0,0,0 nodes_falsenodeids=2,4,0,0,0,0 "                     \
  "nodes_values=1.5,0.0,0.0,0.0,0.0,0.0 nodes_missing_value_tracks_true=0,1,0,0,0,0 " \
  "nodes_modes=\"BRANCH_LEQ\",\"BRANCH_LT\",\"LEAF\",\"LEAF\",\"LEAF\",\"LEAF\" "
#define VOTES(prefix, ids)                                                            \
  prefix "_treeids=3,3,3,9 " prefix "_nodeids=1,3,4,0 " prefix "_ids=" ids " " prefix \
         "_weights=1.0,2.0,4.0,0.25 "
#define ROWS "f32 4x2 = 1 0 2 -1 2 1 nan nan"

static const om_op_case tree_regressor_cases[] = {
    {.name = "sum",
     .inputs = {ROWS},
     .attrs = NODES VOTES("target", "0,0,1,1") "n_targets=2",
     .expected = {"1 0.25 2 0.25 0 4.25 2 0.25"},
     .shapes = {"4x2"}},
    {.name = "mean",
     .inputs = {ROWS},
     .attrs = NODES VOTES("target", "0,0,0,0") "aggregate_function=\"AVERAGE\" base_values=[10.0]",
     .expected = {"10.625 11.125 12.125 11.125"}},
    {.name = "least",
     .inputs = {ROWS},
     .attrs = NODES VOTES("target", "0,0,0,0") "aggregate_function=\"MIN\"",
     .expected = {"0.25 0.25 0.25 0.25"}},
    {.name = "largest",
     .inputs = {ROWS},
     .attrs = NODES VOTES("target", "0,0,0,0") "aggregate_function=\"MAX\"",
     .expected = {"1 2 4 2"}},
    {.name = "doubles",
     .opset = 3,
     .inputs = {"f64 1x2 = 2 1"},
     .attrs = NODES "target_treeids=3,3,3,9 target_nodeids=1,3,4,0 target_ids=0,0,0,0 "
                    "target_weights_as_tensor={f64 4 = 1 2 0.1 0.2}",
     .expected = {"0.3"}},
    {.name = "integers",
     .inputs = {"i64 2x2 = 1 0 2 7"},
     .attrs = NODES VOTES("target", "0,0,0,0") "post_transform=\"LOGISTIC\"",
     .expected = {"0.77729986 0.98593640"}},
    {.name = "features",
     .inputs = {"f32 1x1"},
     .attrs = NODES VOTES("target", "0,0,0,0"),
     .error = "all features of the trees, 2, are expected"},
    {.name = "no_such_node",
     .inputs = {"f32 1x2"},
     .attrs = NODES "target_treeids=[3] target_nodeids=[7] target_ids=[0] target_weights=[1.0]",
     .error = "Tree 3 has no node 7"},
    {.name = "no_leaf",
     .inputs = {"f32 1x2"},
     .attrs = NODES "target_treeids=[3] target_nodeids=[2] target_ids=[0] target_weights=[1.0]",
     .error = "at no leaf"},
    {.name = "target",
     .inputs = {"f32 1x2"},
     .attrs = NODES VOTES("target", "0,0,1,1"),
     .error = "for target 1 of 1"},
    {.name = "bases",
     .inputs = {"f32 1x2"},
     .attrs = NODES VOTES("target", "0,0,0,0") "base_values=1.0,2.0",
     .error = "2 base values for 1 targets"},
    {.name = "mode",
     .inputs = {"f32 1x2"},
     .attrs = "nodes_treeids=[0] nodes_nodeids=[0] nodes_featureids=[0] nodes_truenodeids=[0] "
              "nodes_falsenodeids=[0] nodes_values=[0.0] nodes_modes=[\"BRANCH\"]",
     .error = "A node's mode is 'BRANCH'"},
    {.name = "circle",
     .inputs = {"f32 1x2 = 1 1"},
     .attrs = "nodes_treeids=[0] nodes_nodeids=[0] nodes_featureids=[0] nodes_truenodeids=[0] "
              "nodes_falsenodeids=[0] nodes_values=[0.0] nodes_modes=[\"BRANCH_EQ\"]",
     .error = "Tree 0 goes in a circle"},
    {.name = "counts",
     .inputs = {"f32 1x2"},
     .attrs = "nodes_treeids=0,0 nodes_nodeids=[0]",
     .error = "2 nodes and 0 votes do not go together"},
};

static const om_op_case tree_classifier_cases[] = {
    {.name = "classes",
     .inputs = {ROWS},
     .attrs = NODES VOTES("class", "0,1,2,2") "classlabels_strings=\"a\",\"b\",\"c\"",
     .output_count = 2,
     .expected = {"a b c b", "1 0 0.25 0 2 0.25 0 0 4.25 0 2 0.25"},
     .shapes = {"4", "4x3"}},
    {.name = "softmax_and_bases",
     .inputs = {"i32 1x2 = 1 0"},
     .attrs = NODES VOTES(
         "class",
         "0,1,2,2") "classlabels_int64s=5,6,7 base_values=0.0,1.0,0.75 post_transform=\"SOFTMAX\"",
     .output_count = 2,
     .expected = {"5", "0.33333333 0.33333333 0.33333333"}},
    {.name = "one_probability", /* all votes for the first of two: they speak for the second */
     .inputs = {ROWS},
     .attrs = NODES "class_treeids=3,3,3,9 class_nodeids=1,3,4,0 class_ids=0,0,0,0 "
                    "class_weights=0.125,0.5,0.25,0.125 classlabels_int64s=5,6",
     .output_count = 2,
     .expected = {"5 6 5 6", "0.75 0.25 0.375 0.625 0.625 0.375 0.375 0.625"}},
    {.name = "one_signed_score",
     .inputs = {ROWS},
     .attrs = NODES "class_treeids=3,3,3,9 class_nodeids=1,3,4,0 class_ids=0,0,0,0 "
                    "class_weights=-1.0,0.5,0.25,0.125 classlabels_int64s=5,6",
     .output_count = 2,
     .expected = {"5 6 6 6", "0.875 -0.875 -0.625 0.625 -0.375 0.375 -0.625 0.625"}},
    {.name = "one_logistic_score",
     .inputs = {"f32 1x2 = 1 0"},
     .attrs = NODES "class_treeids=3,3,3,9 class_nodeids=1,3,4,0 class_ids=0,0,0,0 "
                    "class_weights=-1.0,0.5,0.25,0.125 classlabels_int64s=5,6 "
                    "base_values=[0.5] post_transform=\"LOGISTIC\"",
     .output_count = 2,
     .expected = {"5", "0.59266660 0.40733340"}},
    {.name = "bases",
     .inputs = {"f32 1x2"},
     .attrs = NODES VOTES("class", "0,1,2,2") "classlabels_int64s=5,6,7 base_values=1.0,2.0",
     .output_count = 2,
     .error = "2 base values for 3 labels"},
};

#define OM_ML_SUITE(type, table)                     \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = "",                                   \
   .domain = "ai.onnx.ml"}

static const om_op_suite suites[] = {
    OM_ML_SUITE("LinearRegressor", regressor_cases),
    OM_ML_SUITE("LinearClassifier", classifier_cases),
    OM_ML_SUITE("SVMRegressor", svm_regressor_cases),
    OM_ML_SUITE("SVMClassifier", svm_classifier_cases),
    OM_ML_SUITE("TreeEnsembleRegressor", tree_regressor_cases),
    OM_ML_SUITE("TreeEnsembleClassifier", tree_classifier_cases),
};

OM_OP_TESTS(suites)
