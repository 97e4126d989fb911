/* Operators of ai.onnx.ml that prepare features. */
#include "harness/om_test.h"

static const om_op_case scaler_cases[] = {
    {.name = "each",
     .inputs = {"f32 2x3 = 1 2 3 4 5 6"},
     .attrs = "offset=1.0,2.0,4.0 scale=2.0,0.5,-1.0",
     .expected = {"0 0 1 6 1.5 -2"},
     .shapes = {"2x3"}},
    {.name = "one_for_all",
     .inputs = {"i32 3 = 1 2 3"},
     .attrs = "offset=[0.5f] scale=[2.0f]",
     .expected = {"1 3 5"}},
    {.name = "nothing", .inputs = {"i64 2 = 3 -4"}, .expected = {"3 -4"}},
    {.name = "f64",
     .inputs = {"f64 1x2 = 1 1e10"},
     .attrs = "offset=[1.0] scale=[2.0]",
     .expected = {"0 2e10"}},
    {.name = "counts",
     .inputs = {"f32 1x3"},
     .attrs = "offset=1.0,2.0",
     .error = "offset has 2 values for 3 features"},
};

static const om_op_case normalizer_cases[] = {
    {.name = "largest", .inputs = {"f32 2x2 = 1 -4 -2 -1"}, .expected = {"1 -4 2 1"}},
    {.name = "l1",
     .inputs = {"f32 3x2 = 1 -3 0 0 2 2"},
     .attrs = "norm=\"L1\"",
     .expected = {"0.25 -0.75 0 0 0.5 0.5"}},
    {.name = "l2",
     .inputs = {"i64 2 = 3 -4"},
     .attrs = "norm=\"L2\"",
     .expected = {"0.6 -0.8"},
     .shapes = {"2"}},
    {.name = "f64", .inputs = {"f64 1x2 = 3 4"}, .attrs = "norm=\"L2\"", .expected = {"0.6 0.8"}},
    {.name = "no_rows", .inputs = {"f32 0x3"}, .shapes = {"0x3"}},
    {.name = "kind", .inputs = {"f32 1x2"}, .attrs = "norm=\"L3\"", .error = "norm is 'L3'"},
    {.name = "rank", .inputs = {"f32 1x2x2"}, .error = "rank 3"},
};

static const om_op_case imputer_cases[] = {
    {.name = "nan",
     .inputs = {"f32 2x2 = nan 1 2 nan"},
     .attrs = "imputed_value_floats=7.0,8.0 replaced_value_float=nan",
     .expected = {"7 1 2 8"}},
    {.name = "value",
     .inputs = {"f64 3 = 1 0 -0"},
     .attrs = "imputed_value_floats=[0.5]",
     .expected = {"1 0.5 0.5"}},
    {.name = "integers",
     .inputs = {"i64 2x2 = -1 1 -1 -1"},
     .attrs = "imputed_value_int64s=5,6 replaced_value_int64=-1",
     .expected = {"5 1 5 6"}},
    {.name = "i32",
     .inputs = {"i32 3 = -1 1 2"},
     .attrs = "imputed_value_int64s=[9] replaced_value_int64=2",
     .expected = {"-1 1 9"}},
    {.name = "kind",
     .inputs = {"i32 3"},
     .attrs = "imputed_value_floats=[9.0]",
     .error = "imputed_value_int64s has 0 values"},
};

static const om_op_case vectorizer_cases[] = {
    {.name = "rows",
     .inputs = {"f32 2x2 = 1 2 3 4", "i64 2 = 5 6", "f64 2x1 = 7 8"},
     .attrs = "inputdimensions=2,1,1",
     .expected = {"1 2 5 7 3 4 6 8"},
     .shapes = {"2x4"}},
    {.name = "cut_and_filled",
     .inputs = {"i32 2x2 = 1 2 3 4", "f32 2x1 = 5 6"},
     .attrs = "inputdimensions=1,2",
     .expected = {"1 5 0 3 6 0"}},
    {.name = "no_widths", .inputs = {"f32 1x2 = 1 2", "f32 1 = 3"}, .expected = {"1 2 3"}},
    {.name = "row_counts", .inputs = {"f32 1x2", "f32 2x2"}, .error = "rows of the first"},
    {.name = "widths",
     .inputs = {"f32 1x2"},
     .attrs = "inputdimensions=1,2",
     .error = "how wide each of 1 inputs"},
};

static const om_op_case encoder_cases[] = {
    {.name = "integers",
     .inputs = {"i64 3 = 3 1 4"},
     .attrs = "cats_int64s=1,3",
     .expected = {"0 1 1 0 0 0"},
     .shapes = {"3x2"}},
    {.name = "strings",
     .inputs = {"str 1x2 = b a"},
     .attrs = "cats_strings=\"a\",\"b\"",
     .expected = {"0 1 1 0"},
     .shapes = {"1x2x2"}},
    {.name = "floats",
     .inputs = {"f32 2 = 1.5 -0.5"},
     .attrs = "cats_int64s=0,1",
     .expected = {"0 1 1 0"}},
    {.name = "scalar", .inputs = {"i32 scalar = 2"}, .attrs = "cats_int64s=2,3", .shapes = {"2"}},
    {.name = "unknown",
     .inputs = {"i64 2 = 1 2"},
     .attrs = "cats_int64s=[1] zeros=0",
     .error = "Element 1 is none of the categories"},
    {.name = "no_categories",
     .inputs = {"str 1 = a"},
     .attrs = "cats_int64s=[1]",
     .error = "no categories for an input of string"},
};

#define OM_ML_SUITE(type, table)                     \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = "",                                   \
   .domain = "ai.onnx.ml"}

static const om_op_suite suites[] = {
    OM_ML_SUITE("Scaler", scaler_cases),
    OM_ML_SUITE("Normalizer", normalizer_cases),
    OM_ML_SUITE("Imputer", imputer_cases),
    OM_ML_SUITE("FeatureVectorizer", vectorizer_cases),
    OM_ML_SUITE("OneHotEncoder", encoder_cases),
};

OM_OP_TESTS(suites)
