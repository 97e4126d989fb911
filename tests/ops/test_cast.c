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
#define TO(type, label, number, is_exact, reason) \
  {.name = type "_to_" label,                     \
   .inputs = {type " 132 = 0 1 2 3 5 7"},         \
   .attrs = "to=" number,                         \
   .bit_exact = (is_exact),                       \
   .declined = (reason)}
#define TO_DEVICE_TYPES(type, reason)                                        \
  TO(type, "f32", "1", true, reason), TO(type, "u8", "2", true, reason),     \
      TO(type, "i8", "3", true, reason), TO(type, "i32", "6", true, reason), \
      TO(type, "i64", "7", true, reason)
#define TO_OTHER_TYPES(type, reason)                                            \
  TO(type, "u16", "4", true, reason), TO(type, "i16", "5", true, reason),       \
      TO(type, "f64", "11", true, reason), TO(type, "u32", "12", true, reason), \
      TO(type, "u64", "13", true, reason), TO(type, "bf16", "16", true, reason)
#define FROM_DEVICE(type) \
  TO_DEVICE_TYPES(type, NULL), TO(type, "f16", "10", true, NULL), TO_OTHER_TYPES(type, "result of")
#define FROM_OTHER(type, reason) \
  TO_DEVICE_TYPES(type, reason), TO(type, "f16", "10", true, reason), TO_OTHER_TYPES(type, reason)

static const om_op_case every_cases[] = {
    FROM_DEVICE("f32"),
    FROM_DEVICE("f16"),
    FROM_DEVICE("i8"),
    FROM_DEVICE("i32"),
    FROM_DEVICE("i64"),
    FROM_DEVICE("u8"),
    FROM_OTHER("f64", "float64"),
    FROM_OTHER("bf16", "bfloat16"),
    FROM_OTHER("i16", "int16"),
    FROM_OTHER("u16", "uint16"),
    FROM_OTHER("u32", "uint32"),
    FROM_OTHER("u64", "uint64"),
    {.name = "long", .inputs = {"f32 40006 range -9 9"}, .attrs = "to=10", .bit_exact = true},
    {.name = "halves", .inputs = {"f16 4098 edges"}, .attrs = "to=1", .bit_exact = true},
    {.name = "to_halves", .inputs = {"f32 1002 edges"}, .attrs = "to=10", .bit_exact = true},
    {.name = "one", .inputs = {"f32 scalar = 7"}, .attrs = "to=7"},
    {.name = "empty", .inputs = {"f32 0x3"}, .attrs = "to=7", .declined = "empty"},
};

static const om_op_case value_cases[] = {
    {.name = "toward_zero",
     .inputs = {"f32 6 = 1.9 -1.9 0.5 -0.5 50.9 -50.9"},
     .attrs = "to=6",
     .expected = {"1 -1 0 0 50 -50"}},
    {.name = "saturates",
     .inputs = {"f32 8 = 300 -300 nan inf -inf 127.5 -128.5 -0.5"},
     .attrs = "to=3",
     .expected = {"127 -128 0 127 -128 127 -128 0"}},
    {.name = "saturates_u8",
     .inputs = {"f32 8 = 300 -3 nan 255.9 -0.9 7 inf -inf"},
     .attrs = "to=2",
     .expected = {"255 0 0 255 0 7 255 0"}},
    {.name = "part_of_a_word",
     .inputs = {"f32 5 = 1 2 3 4 5"},
     .attrs = "to=2",
     .expected = {"1 2 3 4 5"}},
    {.name = "saturates_f64",
     .inputs = {"f64 5 = 300 -3 nan 255.9 -0.9"},
     .attrs = "to=2",
     .expected = {"255 0 0 255 0"},
     .declined = "float64"},
    {.name = "from_halves",
     .inputs = {"f16 6 = 65504 -65504 nan inf -inf 0.5"},
     .attrs = "to=5",
     .expected = {"32767 -32768 0 32767 -32768 0"},
     .declined = "int16"},
    {.name = "saturates_i64",
     .inputs = {"f32 3 = 1e30 -1e30 nan"},
     .attrs = "to=7",
     .expected = {"9223372036854775807 -9223372036854775808 0"}},
    {.name = "wide",
     .inputs = {"f32 6 = 1e15 -1e15 4294967296 -4294967296 9e18 -8388609"},
     .attrs = "to=7",
     .expected = {"999999986991104 -999999986991104 4294967296 -4294967296 9000000202358128640 "
                  "-8388609"}},
    {.name = "low_bits",
     .inputs = {"i64 3 = 4294967297 2147483648 -2147483649"},
     .attrs = "to=6",
     .expected = {"1 -2147483648 2147483647"}},
    {.name = "low_bits_u8",
     .inputs = {"i32 4 = 257 -1 0 256"},
     .attrs = "to=2",
     .expected = {"1 255 0 0"}},
    {.name = "to_bool",
     .inputs = {"f32 8 = 0 -0 0.25 nan inf -1 1e-30 0"},
     .attrs = "to=9",
     .expected = {"0 0 1 1 1 1 1 0"}},
    {.name = "from_bool", .inputs = {"b8 4 = 0 1 1 0"}, .attrs = "to=1", .expected = {"0 1 1 0"}},
    {.name = "to_half",
     .inputs = {"f32 6 = 65504 65519.99 65520 1e6 1.00048828125 1.00146484375"},
     .attrs = "to=10",
     .expected = {"65504 65504 inf inf 1 1.001953125"}},
    {.name = "int_to_half_once", /* by way of float32 it would be a tie */
     .inputs = {"i32 2 = 2049 2051"},
     .attrs = "to=10",
     .expected = {"2048 2052"}},
    {.name = "int_to_half_limits",
     .inputs = {"i64 7 = 65519 65520 -65519 -65520 4294967297 -9223372036854775808 0"},
     .attrs = "to=10",
     .expected = {"65504 inf -65504 -inf inf -inf 0"}},
    {.name = "bool_to_half", .inputs = {"b8 5 = 0 1"}, .attrs = "to=10", .expected = {"0 1 0 1 0"}},
    {.name = "double_to_half_once",
     .inputs = {"f64 1 = 1.00048828126"},
     .attrs = "to=10",
     .expected = {"1.0009765625"},
     .declined = "float64"},
    {.name = "double_to_bfloat_once",
     .inputs = {"f64 1 = 1.0039062501"},
     .attrs = "to=16",
     .expected = {"1.0078125"},
     .declined = "float64"},
    {.name = "long_to_float",
     .inputs = {"i64 6 = 16777217 9007199791611905 -16777219 4294967295 -4294967297 0"},
     .attrs = "to=1",
     .expected = {"16777216 9007200328482816 -16777220 4294967296 -4294967296 0"}},
    {.name = "int_to_float",
     .inputs = {"i32 4 = 2147483647 -2147483648 -16777217 33554434"},
     .attrs = "to=1",
     .expected = {"2147483648 -2147483648 -16777216 33554432"}},
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

static const om_op_suite suites[] = {
    OM_OP_SUITE("Cast", every_cases, reference),
    OM_OP_SUITE("Cast", value_cases, NULL),
    OM_OP_SUITE("CastLike", like_cases, NULL),
    {.op_type = "Cast",
     .cases = small_cases,
     .case_count = sizeof small_cases / sizeof small_cases[0],
     .declined = "no kernel for"},
};

OM_OP_TESTS(suites)
