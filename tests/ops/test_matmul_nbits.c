/* MatMulNBits of com.microsoft. */
#include <math.h>

#include "harness/om_test.h"

/* Element `index` of bytes that hold so many bits each, the low ones first. */
static double unpacked(const om_ref_tensor *bytes, size_t index, size_t bits) {
  const unsigned byte = (unsigned)bytes->values[index * bits / 8];
  return byte >> index * bits % 8 & ((1u << bits) - 1);
}

static double zero_of(
    const om_ref_tensor *zeros, size_t col, size_t group, size_t groups, size_t bits) {
  if (!zeros || !zeros->values) return (double)(1u << (bits - 1));
  if (zeros->dtype != OM_DTYPE_U8) return zeros->values[col * groups + group];
  const size_t col_bytes = (groups * bits + 7) / 8;
  return unpacked(zeros, col * col_bytes * 8 / bits + group, bits);
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const size_t depth = (size_t)om_ref_int(node, "K", 0), cols = (size_t)om_ref_int(node, "N", 0);
  const size_t bits = (size_t)om_ref_int(node, "bits", 4);
  const size_t block = (size_t)om_ref_int(node, "block_size", 0);
  const size_t groups = (depth + block - 1) / block;
  const om_ref_tensor *zeros = input_count > 3 ? &inputs[3] : NULL;
  const bool has_order = input_count > 4 && inputs[4].values;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const size_t row = i / cols, col = i % cols;
    double sum = input_count > 5 && inputs[5].values ? inputs[5].values[col] : 0.0;
    for (size_t k = 0; k < depth; ++k) {
      const size_t group = has_order ? (size_t)inputs[4].values[k] : k / block;
      const double q = unpacked(&inputs[1], col * groups * block + k, bits);
      const double b =
          (q - zero_of(zeros, col, group, groups, bits)) * inputs[2].values[col * groups + group];
      sum += inputs[0].values[row * depth + k] * b;
    }
    outputs[0].values[i] = sum;
  }
}

#define ATTRS(k, n, block) "K=" k " N=" n " block_size=" block " bits=4"

static const om_op_case cases[] = {
    {.name = "small",
     .inputs = {"f32 1x4 = 1 2 3 4", "u8 1x1x8 = 33 67 0 0 0 0 0 0", "f32 1 = 0.5"},
     .attrs = ATTRS("4", "1", "16"),
     .expected = {"-25"}},
    {.name = "blocks",
     .inputs = {"f32 3x64", "u8 5x4x8 range 0 256", "f32 20"},
     .attrs = ATTRS("64", "5", "16")},
    {.name = "zeros",
     .inputs =
         {"f32 2x3x96", "u8 7x3x16 range 0 256 const", "f32 7x3 const", "u8 14 range 0 256 const"},
     .attrs = ATTRS("96", "7", "32"),
     .shapes = {"2x3x7"}},
    {.name = "float_zeros",
     .inputs = {"f32 2x40", "u8 3x3x8 range 0 256", "f32 9", "f32 9 range 0 16"},
     .attrs = ATTRS("40", "3", "16")},
    {.name = "order_and_bias",
     .inputs = {"f32 4x32", "u8 2x2x8 range 0 256", "f32 4", "-", "i32 32 = 1 0 0 1 1", "f32 2"},
     .attrs = ATTRS("32", "2", "16")},
    {.name = "many_columns",
     .inputs = {"f32 1x128", "u8 300x4x16 range 0 256 const", "f32 1200 const"},
     .attrs = ATTRS("128", "300", "32")},
    {.name = "eight_bits",
     .inputs = {"f32 2x33", "u8 3x3x16 range 0 256", "f32 9", "u8 9 range 0 256"},
     .attrs = "K=33 N=3 block_size=16 bits=8"},
    {.name = "two_bits",
     .inputs = {"f32 2x33", "u8 3x3x4 range 0 256", "f32 9", "u8 3 range 0 256"},
     .attrs = "K=33 N=3 block_size=16 bits=2"},
    {.name = "parts", /* 128 rows and 2, 32 columns and 5, 256 terms and 44 */
     .inputs = {"f32 130x300", "u8 37x5x32 range 0 256 const", "f32 185", "-", "-", "f32 37"},
     .attrs = ATTRS("300", "37", "64")},
    {.name = "long_blocks",
     .inputs = {"f32 3x300", "u8 18x2x128 range 0 256", "f32 36", "f32 36 range 0 16"},
     .attrs = ATTRS("300", "18", "256")},
    {.name = "f16",
     .inputs = {"f16 2x64", "u8 5x4x8 range 0 256", "f16 20 range 0 0.25", "-", "-", "f16 5"},
     .attrs = ATTRS("64", "5", "16")},
    {.name = "bf16",
     .inputs = {"bf16 2x64", "u8 5x4x8 range 0 256", "bf16 20 range 0 0.25"},
     .attrs = ATTRS("64", "5", "16")},
    {.name = "no_rows",
     .inputs = {"f32 0x16", "u8 2x1x8", "f32 2"},
     .attrs = ATTRS("16", "2", "16"),
     .shapes = {"0x2"}},
    {.name = "bits",
     .inputs = {"f32 1x16", "u8 1x1x8", "f32 1"},
     .attrs = "K=16 N=1 block_size=16 bits=3",
     .error = "bits 3"},
    {.name = "depth",
     .inputs = {"f32 1x15", "u8 1x1x8", "f32 1"},
     .attrs = ATTRS("16", "1", "16"),
     .error = "A has shape [1, 15]"},
    {.name = "scales",
     .inputs = {"f32 1x16", "u8 1x1x8", "f32 2"},
     .attrs = ATTRS("16", "1", "16"),
     .error = "do not go together"},
    {.name = "group",
     .inputs = {"f32 1x16", "u8 1x1x8", "f32 1", "-", "i32 16 = 0 1"},
     .attrs = ATTRS("16", "1", "16"),
     .error = "g_idx[1] is 1; there are 1 groups"},
};

static const om_op_suite suites[] = {
    {.op_type = "MatMulNBits",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .declined = "",
     .domain = "com.microsoft"},
};

OM_OP_TESTS(suites)
