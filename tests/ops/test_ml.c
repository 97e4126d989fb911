/* ai.onnx.ml. */
#include "harness/om_test.h"

static const om_op_case extractor_cases[] = {
    {.name = "matrix",
     .inputs = {"f32 2x4 ramp", "i64 2 = 3 1"},
     .expected = {"3 1 7 5"},
     .shapes = {"2x2"}},
    {.name = "vector",
     .inputs = {"i64 4 ramp", "i64 1x2 = 3 1"},
     .expected = {"3 1"},
     .shapes = {"1x2"}},
    {.name = "strings", .inputs = {"str 3 = a bc d", "i64 2 = 1 1"}, .expected = {"bc bc"}},
    {.name = "rank_3",
     .inputs = {"f64 2x2x2 ramp", "i64 1 = 1"},
     .expected = {"1 3 5 7"},
     .shapes = {"2x2x1"}},
    {.name = "outside", .inputs = {"i32 4", "i64 1 = 4"}, .error = "index 4 is out of range"},
    {.name = "negative", .inputs = {"i32 4", "i64 1 = -1"}, .error = "index -1 is out of range"},
    {.name = "no_indices", .inputs = {"i32 4", "i64 0"}, .error = "no int64 indices"},
};

static const om_op_case binarizer_cases[] = {
    {.name = "threshold",
     .inputs = {"f32 5 = 0 1 1.5 2 nan"},
     .attrs = "threshold=1.0f",
     .expected = {"0 0 1 1 0"}},
    {.name = "default", .inputs = {"i64 3 = -1 0 1"}, .expected = {"0 0 1"}},
    {.name = "f64", .inputs = {"f64 2 = -1 1e-300"}, .expected = {"0 1"}},
    {.name = "i32", .inputs = {"i32 2 = -1 7"}, .attrs = "threshold=6.5f", .expected = {"0 1"}},
};

static const om_op_case label_cases[] = {
    {.name = "strings_to_ints",
     .inputs = {"str 4 = b a c a"},
     .attrs = "keys_strings=\"a\",\"b\" values_int64s=5,6 default_int64=42",
     .expected = {"6 5 42 5"}},
    {.name = "ints_to_strings",
     .inputs = {"i64 3 = 1 2 3"},
     .attrs = "keys_int64s=1,3 values_strings=\"x\",\"y\"",
     .expected = {"x _Unused y"}},
    {.name = "floats",
     .inputs = {"f32 3 = 1.5 nan 2"},
     .attrs = "keys_floats=1.5,nan values_floats=7.0,8.0",
     .expected = {"7 8 -0"}},
    {.name = "last_key",
     .inputs = {"i64 2 = 1 2"},
     .attrs = "keys_int64s=1,1 values_int64s=5,6",
     .expected = {"6 -1"}},
    {.name = "tensors",
     .inputs = {"f64 2 = 1 2"},
     .attrs = "keys_tensor={f64 1 = 2} values_tensor={i16 1 = 9} default_tensor={i16 1 = 4}",
     .expected = {"4 9"}},
    {.name = "one_to_one",
     .inputs = {"i32 2x2 = 1 2 3 1"},
     .attrs = "keys_tensor={i32 2 = 1 3} values_tensor={f64 2 = 0.5 1.5}",
     .expected = {"0.5 -0 1.5 0.5"}},
    {.name = "version_1_to_ints",
     .opset = 1,
     .inputs = {"str 3 = b a c"},
     .attrs = "classes_strings=\"a\",\"b\" default_int64=7",
     .expected = {"1 0 7"}},
    {.name = "version_1_to_strings",
     .opset = 1,
     .inputs = {"i64 3 = 1 0 2"},
     .attrs = "classes_strings=\"a\",\"b\"",
     .expected = {"b a _Unused"}},
    {.name = "input_type",
     .inputs = {"i64 2"},
     .attrs = "keys_floats=1.0,2.0 values_int64s=5,6",
     .error = "keys are float32"},
    {.name = "counts",
     .inputs = {"i64 2"},
     .attrs = "keys_int64s=1,2,3 values_int64s=5,6",
     .error = "3 keys, but 2 values"},
    {.name = "no_values",
     .inputs = {"i64 2"},
     .attrs = "keys_int64s=1,2",
     .error = "2 keys, but 0 values"},
};

#define TREE                                                                                \
  "tree_roots=0,2 nodes_featureids=0,1,0 nodes_truenodeids=1,0,2 nodes_falsenodeids=2,1,3 " \
  "nodes_trueleafs=0,1,1 nodes_falseleafs=1,1,1 leaf_targetids=0,1,0,1 n_targets=2 "        \
  "nodes_modes={u8 3 = 0 1 3} nodes_splits={f32 3 = 1.5 2 0} leaf_weights={f32 4 = 1 2 4 8} "
#define ONE(mode, split)                                                                    \
  "tree_roots=[0] nodes_featureids=[0] nodes_truenodeids=[0] nodes_falsenodeids=[1] "       \
  "nodes_trueleafs=[1] nodes_falseleafs=[1] leaf_targetids=0,0 leaf_weights={f32 2 = 1 2} " \
  "nodes_modes={u8 1 = " mode "} nodes_splits={f32 1 = " split "} "

static const om_op_case tree_cases[] = {
    {.name = "two_trees",
     .inputs = {"f32 3x2 = 1 1 1 3 2 0"},
     .attrs = TREE,
     .expected = {"5 0 4 2 8 0"},
     .shapes = {"3x2"}},
    {.name = "mean",
     .inputs = {"f32 3x2 = 1 1 1 3 2 0"},
     .attrs = TREE "aggregate_function=0",
     .expected = {"2.5 0 2 1 4 0"}},
    {.name = "least",
     .inputs = {"f32 1x2 = 1 1"},
     .attrs = TREE "aggregate_function=2",
     .expected = {"1 0"}},
    {.name = "largest",
     .inputs = {"f32 1x2 = 1 1"},
     .attrs = TREE "aggregate_function=3",
     .expected = {"4 0"}},
    {.name = "softmax",
     .inputs = {"f32 1x2 = 2 0"},
     .attrs = TREE "post_transform=1",
     .expected = {"0.99966464 0.00033535"}},
    {.name = "logistic",
     .inputs = {"f32 1x2 = 1 1"},
     .attrs = TREE "post_transform=2",
     .expected = {"0.99330715 0.5"}},
    {.name = "softmax_zero",
     .inputs = {"f32 1x2 = 1 1"},
     .attrs = TREE "post_transform=3",
     .expected = {"1 0"}},
    {.name = "equal",
     .inputs = {"f32 3x1 = 1 2 nan"},
     .attrs = ONE("4", "2"),
     .expected = {"2 1 2"}},
    {.name = "not_equal", .inputs = {"f32 2x1 = 1 2"}, .attrs = ONE("5", "2"), .expected = {"1 2"}},
    {.name = "not_less",
     .inputs = {"f32 3x1 = 1 2 3"},
     .attrs = ONE("2", "2"),
     .expected = {"2 1 1"}},
    {.name = "missing",
     .inputs = {"f32 2x1 = nan 1"},
     .attrs = ONE("0", "0") "nodes_missing_value_tracks_true=[1]",
     .expected = {"1 2"}},
    {.name = "member",
     .inputs = {"f32 3x1 = 1 2 3"},
     .attrs = ONE("6", "0") "membership_values={f32 3 = 1 3 nan}",
     .expected = {"1 2 1"}},
    {.name = "f64", .inputs = {"f64 1x2 = 1 1"}, .attrs = TREE, .expected = {"5 0"}},
    {.name = "f16", .inputs = {"f16 1x2 = 1 1"}, .attrs = TREE, .expected = {"5 0"}},
    {.name = "features", .inputs = {"f32 1x1"}, .attrs = TREE, .error = "all features"},
    {.name = "probit",
     .inputs = {"f32 1x1 = 1"},
     .attrs = ONE("0", "2") "post_transform=4",
     .expected = {"inf"}},
    {.name = "transform",
     .inputs = {"f32 1x2"},
     .attrs = TREE "post_transform=5",
     .error = "post_transform is 5"},
    {.name = "aggregate",
     .inputs = {"f32 1x2"},
     .attrs = TREE "aggregate_function=4",
     .error = "aggregate_function is 4"},
    {.name = "circle",
     .inputs = {"f32 1x1"},
     .error = "in a circle",
     .attrs = "tree_roots=[0] nodes_featureids=[0] nodes_truenodeids=[0] nodes_falsenodeids=[0] "
              "nodes_trueleafs=[0] "
              "nodes_falseleafs=[0] leaf_targetids=[0] leaf_weights={f32 1 = 1} nodes_modes={u8 1 "
              "= 0} nodes_splits={f32 1 = 0}"},
    {.name = "no_leaf",
     .inputs = {"f32 1x1"},
     .error = "do not go together",
     .attrs = "tree_roots=[0] nodes_featureids=[0] nodes_truenodeids=[7] nodes_falsenodeids=[0] "
              "nodes_trueleafs=[1] "
              "nodes_falseleafs=[1] leaf_targetids=[0] leaf_weights={f32 1 = 1} nodes_modes={u8 1 "
              "= 0} nodes_splits={f32 1 = 0}"},
    {.name = "no_modes",
     .inputs = {"f32 1x1"},
     .attrs = "tree_roots=[0]",
     .error = "nodes_modes is no tensor"},
};

static const om_op_case mapper_cases[] = {
    {.name = "to_ints",
     .inputs = {"str 2x2 = b a c a"},
     .attrs = "cats_strings=\"a\",\"b\" cats_int64s=5,6",
     .expected = {"6 5 -1 5"}},
    {.name = "to_strings",
     .inputs = {"i64 3 = 6 5 7"},
     .attrs = "cats_strings=\"a\",\"b\" cats_int64s=5,6 default_string=\"none\"",
     .expected = {"b a none"}},
    {.name = "counts",
     .inputs = {"i64 3"},
     .attrs = "cats_strings=\"a\",\"b\" cats_int64s=[5]",
     .error = "2 strings, but 1 integers"},
};

#define OM_ML_SUITE(type, table)                     \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = "",                                   \
   .domain = "ai.onnx.ml"}

static const om_op_suite suites[] = {
    OM_ML_SUITE("ArrayFeatureExtractor", extractor_cases),
    OM_ML_SUITE("Binarizer", binarizer_cases),
    OM_ML_SUITE("LabelEncoder", label_cases),
    OM_ML_SUITE("CategoryMapper", mapper_cases),
    OM_ML_SUITE("TreeEnsemble", tree_cases),
};

OM_OP_TESTS(suites)
