/* Cast and CastLike. Types are their numbers in the attribute `to`: 1 float32, 2 uint8, 3 int8,
 * 5 int16, 6 int32, 7 int64, 9 bool, 10 float16, 11 float64, 12 uint32, 13 uint64, 16 bfloat16. */
#include "harness/om_test.h"

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  (void)node;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) outputs[0].values[i] = inputs[0].values[i];
}

/* Small whole numbers, which every type holds. */
#define EVERY(type)                                                                        \
  {.name = type "_to_f32", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=1"},        \
      {.name = type "_to_u8", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=2"},     \
      {.name = type "_to_i8", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=3"},     \
      {.name = type "_to_u16", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=4"},    \
      {.name = type "_to_i16", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=5"},    \
      {.name = type "_to_i32", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=6"},    \
      {.name = type "_to_i64", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=7"},    \
      {.name = type "_to_f16",                                                             \
       .inputs = {type " 131 = 0 1 2 3 5 7"},                                              \
       .attrs = "to=10",                                                                   \
       .bit_exact = true},                                                                 \
      {.name = type "_to_f64", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=11"},   \
      {.name = type "_to_u32", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=12"},   \
      {.name = type "_to_u64", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=13"}, { \
    .name = type "_to_bf16", .inputs = {type " 131 = 0 1 2 3 5 7"}, .attrs = "to=16",      \
    .bit_exact = true                                                                      \
  }

static const om_op_case every_cases[] = {
    EVERY("f32"),
    EVERY("f64"),
    EVERY("f16"),
    EVERY("bf16"),
    EVERY("i8"),
    EVERY("i16"),
    EVERY("i32"),
    EVERY("i64"),
    EVERY("u8"),
    EVERY("u16"),
    EVERY("u32"),
    EVERY("u64"),
    {.name = "long", .inputs = {"f32 40007"}, .attrs = "to=11"},
    {.name = "empty", .inputs = {"f32 0x3"}, .attrs = "to=7"},
};

static const om_op_case value_cases[] = {
    {.name = "toward_zero",
     .inputs = {"f32 6 = 1.9 -1.9 0.5 -0.5 50.9 -50.9"},
     .attrs = "to=6",
     .expected = {"1 -1 0 0 50 -50"}},
    {.name = "saturates",
     .inputs = {"f32 6 = 300 -300 nan inf -inf 127.5"},
     .attrs = "to=3",
     .expected = {"127 -128 0 127 -128 127"}},
    {.name = "saturates_u8",
     .inputs = {"f64 5 = 300 -3 nan 255.9 -0.9"},
     .attrs = "to=2",
     .expected = {"255 0 0 255 0"}},
    {.name = "saturates_i64",
     .inputs = {"f32 3 = 1e30 -1e30 nan"},
     .attrs = "to=7",
     .expected = {"9223372036854775807 -9223372036854775808 0"}},
    {.name = "low_bits",
     .inputs = {"i64 3 = 4294967297 2147483648 -2147483649"},
     .attrs = "to=6",
     .expected = {"1 -2147483648 2147483647"}},
    {.name = "low_bits_u8", .inputs = {"i32 2 = 257 -1"}, .attrs = "to=2", .expected = {"1 255"}},
    {.name = "to_bool",
     .inputs = {"f32 6 = 0 -0 0.25 nan inf -1"},
     .attrs = "to=9",
     .expected = {"0 0 1 1 1 1"}},
    {.name = "from_bool", .inputs = {"b8 2 = 0 1"}, .attrs = "to=1", .expected = {"0 1"}},
    {.name = "to_half",
     .inputs = {"f32 6 = 65504 65519.99 65520 1e6 1.00048828125 1.00146484375"},
     .attrs = "to=10",
     .expected = {"65504 65504 inf inf 1 1.001953125"}},
    {.name = "int_to_half_once", /* by way of float32 it would be a tie */
     .inputs = {"i32 2 = 2049 2051"},
     .attrs = "to=10",
     .expected = {"2048 2052"}},
    {.name = "double_to_half_once",
     .inputs = {"f64 1 = 1.00048828126"},
     .attrs = "to=10",
     .expected = {"1.0009765625"}},
    {.name = "double_to_bfloat_once",
     .inputs = {"f64 1 = 1.0039062501"},
     .attrs = "to=16",
     .expected = {"1.0078125"}},
    {.name = "long_to_float",
     .inputs = {"i64 2 = 16777217 9007199791611905"},
     .attrs = "to=1",
     .expected = {"16777216 9007200328482816"}},
    {.name = "no_type", .inputs = {"f32 1"}, .attrs = "to=0", .error = "is no element type"},
    {.name = "unknown_type", .inputs = {"f32 1"}, .attrs = "to=99", .error = "is no element type"},
};

static const om_op_case like_cases[] = {
    {.name = "i32", .inputs = {"f32 3 = 1.5 -2.5 3", "i32 1"}, .expected = {"1 -2 3"}},
    {.name = "f16", .inputs = {"f32 2 = 65520 1", "f16 4"}, .expected = {"inf 1"}},
    {.name = "same", .inputs = {"f32 2 = 5 nan", "f32 4"}, .expected = {"5 nan"}},
};

/* There and back again: what the small types hold. */
static const om_op_case small_cases[] = {
    {.name = "e4m3fn",
     .inputs = {"f32 9 = 0 -0 1 0.0019531250 448 449 1e9 nan -1.0625"},
     .graph = "t = Cast(x0) to=17; y0 = Cast(t) to=1",
     .expected = {"0 -0 1 0.0019531250 448 448 448 nan -1"}},
    {.name = "e4m3fn_overflow",
     .inputs = {"f32 3 = 448 480 -inf"},
     .graph = "t = Cast(x0) to=17 saturate=0; y0 = Cast(t) to=1",
     .expected = {"448 nan nan"}},
    {.name = "e5m2",
     .inputs = {"f32 6 = 57344 61440 inf 1.125 1.375 0.0000152587890625"},
     .graph = "t = Cast(x0) to=19 saturate=0; y0 = Cast(t) to=1",
     .expected = {"57344 inf inf 1 1.5 0.0000152587890625"}},
    {.name = "fnuz",
     .inputs = {"f32 4 = -0 240 250 nan"},
     .graph = "t = Cast(x0) to=18; y0 = Cast(t) to=1",
     .expected = {"0 240 240 nan"}},
    {.name = "int4",
     .inputs = {"f32 5 = -9 -8 3.9 7 99"},
     .graph = "t = Cast(x0) to=22; y0 = Cast(t) to=1",
     .expected = {"-8 -8 3 7 7"}},
    {.name = "uint4",
     .inputs = {"i32 5 = 0 15 16 17 -1"},
     .graph = "t = Cast(x0) to=21; y0 = Cast(t) to=6",
     .expected = {"0 15 0 1 15"}},
    {.name = "float4",
     .inputs = {"f32 7 = 0.25 0.75 -1.25 2.5 5 100 -0.3"},
     .graph = "t = Cast(x0) to=23; y0 = Cast(t) to=1",
     .expected = {"0 1 -1 2 4 6 -0.5"}},
};

#define SUITE(type, table, function)                 \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = (function),                          \
   .declined = "no kernel"}

static const om_op_suite suites[] = {
    SUITE("Cast", every_cases, reference),
    SUITE("Cast", value_cases, NULL),
    SUITE("Cast", small_cases, NULL),
    SUITE("CastLike", like_cases, NULL),
};

OM_OP_TESTS(suites)
