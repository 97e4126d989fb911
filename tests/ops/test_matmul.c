/* MatMul and Gemm: broadcasting in all forms, depths around blocks (32) and groups (128) of terms,
 * sizes around the kernels' tiles (16, 32, 64). */
#include "harness/om_test.h"

/* Offset of the operand's matrix for one element of the result's batch. */
static size_t matrix_offset(const om_ref_tensor *x,
                            const om_ref_tensor *y,
                            uint32_t y_batch_rank,
                            size_t batch) {
  int64_t index[OM_MAX_RANK] = {0};
  size_t offset = 0;
  const uint32_t own = x->rank > 2 ? x->rank - 2 : 0;
  for (uint32_t i = y_batch_rank; i-- > 0;) {
    index[i] = (int64_t)(batch % (size_t)y->dims[i]);
    batch /= (size_t)y->dims[i];
  }
  for (uint32_t i = 0; i < own; ++i) {
    const int64_t at = x->dims[i] == 1 ? 0 : index[y_batch_rank - own + i];
    offset = offset * (size_t)x->dims[i] + (size_t)at;
  }
  const int64_t rows = x->rank > 1 ? x->dims[x->rank - 2] : 1;
  return offset * (size_t)(rows * x->dims[x->rank - 1]);
}

static void matmul_reference(const om_node *node,
                             const om_ref_tensor *inputs,
                             size_t input_count,
                             om_ref_tensor *outputs,
                             size_t output_count) {
  (void)node, (void)input_count, (void)output_count;
  const om_ref_tensor *a = &inputs[0];
  const om_ref_tensor *b = &inputs[1];
  om_ref_tensor *y = &outputs[0];
  const size_t depth = (size_t)a->dims[a->rank - 1];
  const size_t rows = a->rank > 1 ? (size_t)a->dims[a->rank - 2] : 1;
  const size_t cols = b->rank > 1 ? (size_t)b->dims[b->rank - 1] : 1;
  const uint32_t batch_rank = y->rank - (a->rank > 1) - (b->rank > 1);
  for (size_t i = 0; i < y->elems; ++i) {
    const size_t batch = i / (rows * cols);
    const size_t a_at = matrix_offset(a, y, batch_rank, batch) + i / cols % rows * depth;
    /* A list as second operand is a column. */
    const size_t b_at = b->rank > 1 ? matrix_offset(b, y, batch_rank, batch) + i % cols : 0;
    double sum = 0.0;
    for (size_t k = 0; k < depth; ++k) sum += a->values[a_at + k] * b->values[b_at + k * cols];
    y->values[i] = sum;
  }
}

static const om_op_case matmul_cases[] = {
    {.name = "square", .inputs = {"f32 4x4", "f32 4x4"}},
    {.name = "values", .inputs = {"f32 2x3 ramp", "f32 3x2 ramp"}, .expected = {"10 13 28 40"}},
    {.name = "constant_b", .inputs = {"f32 40x120", "f32 120x360 const"}},
    {.name = "constant_b_uneven", .inputs = {"f32 5x37", "f32 37x53 const"}},
    {.name = "constant_a", .inputs = {"f32 6x10 const", "f32 10x9"}},
    {.name = "one_by_one", .inputs = {"f32 1x1", "f32 1x1"}},
    {.name = "row_times_column", .inputs = {"f32 1x300", "f32 300x1"}},
    {.name = "column_times_row", .inputs = {"f32 33x1", "f32 1x17"}},
    {.name = "depth_31", .inputs = {"f32 17x31", "f32 31x18"}},
    {.name = "depth_32", .inputs = {"f32 17x32", "f32 32x20"}},
    {.name = "depth_33", .inputs = {"f32 17x33", "f32 33x20"}},
    {.name = "depth_127", .inputs = {"f32 3x127", "f32 127x5"}},
    {.name = "depth_128", .inputs = {"f32 16x128", "f32 128x16"}},
    {.name = "depth_129", .inputs = {"f32 16x129", "f32 129x16"}},
    {.name = "depth_1000", .inputs = {"f32 9x1000", "f32 1000x31"}},
    {.name = "depth_1025_const", .inputs = {"f32 1x1025", "f32 1025x33 const"}},
    {.name = "few_rows", .inputs = {"f32 7x1300", "f32 1300x33 const"}},
    {.name = "few_rows_batch", .inputs = {"f32 3x2x90", "f32 3x90x36"}},
    {.name = "chunks", .inputs = {"f32 33x2000", "f32 2000x40"}},
    {.name = "chunks_uneven", .inputs = {"f32 66x1293", "f32 1293x35"}},
    {.name = "tiles_of_32", .inputs = {"f32 200x70", "f32 70x610"}},
    {.name = "tiles_of_32_quads", .inputs = {"f32 200x72", "f32 72x612"}},
    {.name = "tiles_of_64", .inputs = {"f32 8x195x67", "f32 8x67x259"}},
    {.name = "tiles_of_64_quads", .inputs = {"f32 8x195x68", "f32 8x68x260"}},
    {.name = "tiles_of_64_groups", .inputs = {"f32 8x193x164", "f32 164x260 const"}},
    /* On matrix hardware these are products of parts in fast mode, by the tile in the name; whole
     * ones have no steps past the depth and no columns past a quad. */
    {.name = "split_32x32", .inputs = {"f32 99x132", "f32 132x131 const"}},
    {.name = "split_32x64", .inputs = {"f32 67x132", "f32 132x1541 const"}},
    {.name = "split_64x64", .inputs = {"f32 515x132", "f32 132x515 const"}},
    {.name = "split_64x64_deeper", .inputs = {"f32 515x260", "f32 260x643 const"}},
    {.name = "split_96x128", .inputs = {"f32 1050x132", "f32 132x1530 const"}},
    {.name = "split_128x128", .inputs = {"f32 1030x132", "f32 132x1541 const"}},
    {.name = "split_chunks", .inputs = {"f32 131x1540", "f32 1540x260 const"}},
    {.name = "split_whole_32x32", .inputs = {"f32 97x128", "f32 128x132 const"}},
    {.name = "split_whole_32x64", .inputs = {"f32 515x256", "f32 256x260 const"}},
    {.name = "split_whole_64x64", .inputs = {"f32 515x64", "f32 64x260 const"}},
    {.name = "split_whole_96x128", .inputs = {"f32 515x64", "f32 64x1028 const"}},
    {.name = "split_whole_128x128", .inputs = {"f32 1540x64", "f32 64x1028 const"}},
    {.name = "split_batch_as_rows", .inputs = {"f32 3x50x132", "f32 132x259 const"}},
    {.name = "split_tiny_values",
     .inputs = {"f32 131x260 range -1e-6 1e-6", "f32 260x132 const range -1e-6 1e-6"}},
    {.name = "split_huge_values",
     .inputs = {"f32 131x260 range -1e6 1e6", "f32 260x132 const range -1e6 1e6"}},
    {.name = "split_mixed_values",
     .inputs = {"f32 131x260 range -1e-6 1e-6", "f32 260x132 const range -1e6 1e6"}},
    {.name = "split_far_apart",
     .inputs = {"f32 131x260 range -1e30 1e30", "f32 260x132 const range -1e-25 1e-25"}},
    /* The same by Hopper's own instructions, which take others of these too: some workgroups have
     * two tiles in the first. */
    {.name = "sm90_64x64", .inputs = {"f32 900x136", "f32 136x772 const"}},
    {.name = "sm90_64x96", .inputs = {"f32 131x136", "f32 136x3000 const"}},
    {.name = "sm90_128x96", .inputs = {"f32 1540x136", "f32 136x900 const"}},
    {.name = "sm90_chunks", .inputs = {"f32 70x3080", "f32 3080x132 const"}},
    {.name = "sm90_huge_values",
     .inputs = {"f32 900x136 range -1e9 1e9", "f32 136x772 const range -1e6 1e6"}},
    /* Exact ones there: depths that end within a block, a group and a quad of columns. */
    {.name = "sm90_exact_128x96", .inputs = {"f32 1500x164", "f32 164x772 const"}},
    {.name = "sm90_exact_96x96", .inputs = {"f32 1030x100", "f32 100x772 const"}},
    {.name = "sm90_exact_64x96", .inputs = {"f32 1030x292", "f32 292x388"}},
    {.name = "sm90_exact_64x48", .inputs = {"f32 1030x292", "f32 292x300"}},
    {.name = "sm90_exact_64x48_deep", .inputs = {"f32 1000x1540", "f32 1540x376"}},
    {.name = "sm90_exact_groups", .inputs = {"f32 70x1572", "f32 1572x132 const"}},
    {.name = "list_times_list", .inputs = {"f32 70", "f32 70"}},
    {.name = "list_times_matrix", .inputs = {"f32 12", "f32 12x5"}},
    {.name = "matrix_times_list", .inputs = {"f32 5x12", "f32 12"}},
    {.name = "list_times_batch", .inputs = {"f32 6", "f32 3x6x4"}},
    {.name = "batch_times_list", .inputs = {"f32 3x4x6", "f32 6"}},
    {.name = "same_batch", .inputs = {"f32 3x5x6", "f32 3x6x7"}},
    {.name = "heads", .inputs = {"f32 1x8x40x15", "f32 1x8x15x40"}},
    {.name = "b_without_batch", .inputs = {"f32 2x3x5x6", "f32 6x7"}},
    {.name = "a_without_batch", .inputs = {"f32 5x6", "f32 2x3x6x7"}},
    {.name = "b_batch_of_one", .inputs = {"f32 4x5x6", "f32 1x6x7"}},
    {.name = "both_broadcast", .inputs = {"f32 2x1x5x6", "f32 1x3x6x7"}},
    {.name = "crossed", .inputs = {"f32 2x1x3x4x6", "f32 5x1x6x8"}},
    {.name = "rank_7", .inputs = {"f32 2x1x2x1x2x3x4", "f32 2x2x2x1x2x4x4"}},
    {.name = "rank_8", .inputs = {"f32 2x1x2x1x2x1x3x4", "f32 1x2x1x2x1x2x4x4"}},
    {.name = "rank_8_const", .inputs = {"f32 2x1x3x1x2x1x9x40", "f32 1x2x1x2x1x2x40x5 const"}},
    {.name = "half_rank_6", .inputs = {"f16 2x1x3x1x9x7", "f16 1x2x1x2x7x5"}},
    {.name = "no_terms",
     .inputs = {"f32 3x0", "f32 0x2"},
     .expected = {"0 0 0 0 0 0"},
     .declined = "empty"},
    {.name = "no_rows", .inputs = {"f32 0x3", "f32 3x2"}, .shapes = {"0x2"}, .declined = "empty"},
    {.name = "edges", .inputs = {"f32 4x40 range -3e30 3e30", "f32 40x4 range -1e-20 1e-20"}},
    {.name = "double", .inputs = {"f64 5x200", "f64 200x19"}, .declined = "float64"},
    {.name = "double_batch", .inputs = {"f64 2x5x20", "f64 20x19"}, .declined = "float64"},
    {.name = "half", .inputs = {"f16 3x40", "f16 40x5"}},
    {.name = "half_mixed", .inputs = {"f16 3x4", "f32 4x5"}, .error = "float16"},
    {.name = "half_quads", .inputs = {"f16 17x36", "f16 36x20"}},
    {.name = "half_const", .inputs = {"f16 17x33", "f16 33x19 const"}},
    {.name = "half_depth_1000", .inputs = {"f16 9x1000", "f16 1000x31"}},
    {.name = "half_few_rows", .inputs = {"f16 7x1300", "f16 1300x33 const"}},
    {.name = "half_few_rows_batch", .inputs = {"f16 3x2x90", "f16 3x90x36"}},
    {.name = "half_chunks", .inputs = {"f16 33x2000", "f16 2000x40"}},
    {.name = "half_chunks_uneven", .inputs = {"f16 66x1293", "f16 1293x35"}},
    {.name = "half_tiles_of_32", .inputs = {"f16 200x70", "f16 70x610"}},
    {.name = "half_tiles_of_32_quads", .inputs = {"f16 200x72", "f16 72x612"}},
    {.name = "half_tiles_of_64", .inputs = {"f16 8x195x67", "f16 8x67x259"}},
    {.name = "half_tiles_of_64_groups", .inputs = {"f16 8x193x164", "f16 164x260 const"}},
    {.name = "half_wide_const", .inputs = {"f16 515x260", "f16 260x643 const"}},
    {.name = "few_one_row", .inputs = {"f32 1x1284", "f32 1284x37 const"}, .scaled_error = 2e-6},
    {.name = "few_seven_rows", .inputs = {"f32 7x516", "f32 516x1003 const"}, .scaled_error = 2e-6},
    {.name = "few_two_rows_of_run_time", .inputs = {"f32 2x8", "f32 8x4"}},
    {.name = "few_odd_depth", .inputs = {"f32 3x131", "f32 131x12 const"}},
    {.name = "half_few_one_row", .inputs = {"f16 1x260", "f16 260x37 const"}},
    {.name = "half_few_eight_rows", .inputs = {"f16 8x1028", "f16 1028x100 const"}},
    /* These are for matrix hardware. */
    {.name = "half_matrix_32x32", .inputs = {"f16 99x136", "f16 136x131 const"}},
    {.name = "half_matrix_32x64", .inputs = {"f16 67x136", "f16 136x1541 const"}},
    {.name = "half_matrix_64x64", .inputs = {"f16 515x264", "f16 264x643 const"}},
    {.name = "half_matrix_96x64", .inputs = {"f16 770x72", "f16 72x643 const"}},
    {.name = "half_matrix_96x128", .inputs = {"f16 515x392", "f16 392x1530 const"}},
    {.name = "half_matrix_128x128", .inputs = {"f16 1540x72", "f16 72x1030 const"}},
    {.name = "half_matrix_chunks", .inputs = {"f16 131x1544", "f16 1544x260 const"}},
    {.name = "half_whole_32x32", .inputs = {"f16 64x512", "f16 512x256 const"}},
    {.name = "half_whole_32x64", .inputs = {"f16 515x128", "f16 128x260 const"}},
    {.name = "half_whole_64x64", .inputs = {"f16 515x128", "f16 128x516 const"}},
    {.name = "half_whole_96x64", .inputs = {"f16 1540x64", "f16 64x132 const"}},
    {.name = "half_whole_96x128", .inputs = {"f16 1000x392", "f16 392x772 const"}},
    {.name = "half_whole_128x128", .inputs = {"f16 1540x64", "f16 64x1028 const"}},
    {.name = "half_sm90_64x32", .inputs = {"f16 515x200", "f16 200x900 const"}},
    {.name = "half_sm90_64x128", .inputs = {"f16 131x200", "f16 200x3000 const"}},
    {.name = "half_sm90_64x192", .inputs = {"f16 1030x72", "f16 72x2300 const"}},
    {.name = "half_sm90_chunks", .inputs = {"f16 70x3080", "f16 3080x132 const"}},
    {.name = "half_list_times_list", .inputs = {"f16 70", "f16 70"}},
    {.name = "half_both_broadcast", .inputs = {"f16 2x1x5x6", "f16 1x3x6x7"}},
    {.name = "half_overflow",
     .inputs = {"f16 4x40 range 100 300", "f16 40x4 range -300 300"},
     .scaled_error = 2e-3},
    {.name = "half_small", .inputs = {"f16 4x40 range -2e-3 2e-3", "f16 40x4 range -0.1 0.1"}},
    {.name = "bfloat16", .inputs = {"bf16 3x40", "bf16 40x5"}, .declined = "bfloat16"},
    {.name = "int32", .inputs = {"i32 3x40", "i32 40x70"}, .declined = "int32"},
    {.name = "uint32", .inputs = {"u32 3x4", "u32 4x5"}, .declined = "uint32"},
    {.name = "int64", .inputs = {"i64 2x3x4", "i64 4x5"}, .declined = "int64"},
    {.name = "uint64", .inputs = {"u64 3x4", "u64 4x5"}, .declined = "uint64"},
    {.name = "opset_1", .opset = 7, .inputs = {"f32 3x4", "f32 4x5"}},
    {.name = "inner_differs",
     .inputs = {"f32 2x3", "f32 4x5"},
     .error = "[2, 3] and float32 [4, 5]"},
    {.name = "batch_differs", .inputs = {"f32 2x3x4", "f32 3x4x5"}, .error = "do not broadcast"},
    {.name = "scalar", .inputs = {"f32 scalar", "f32 4x5"}, .error = "cannot be multiplied"},
};

static void gemm_reference(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  (void)output_count;
  const om_ref_tensor *a = &inputs[0];
  const om_ref_tensor *b = &inputs[1];
  om_ref_tensor *y = &outputs[0];
  const bool turns_a = om_ref_int(node, "transA", 0) != 0;
  const bool turns_b = om_ref_int(node, "transB", 0) != 0;
  const double alpha = om_ref_float(node, "alpha", 1.0);
  const double beta = om_ref_float(node, "beta", 1.0);
  const size_t cols = (size_t)y->dims[1];
  const size_t depth = (size_t)a->dims[turns_a ? 0 : 1];
  for (size_t i = 0; i < y->elems; ++i) {
    const size_t row = i / cols;
    const size_t col = i % cols;
    double sum = 0.0;
    for (size_t k = 0; k < depth; ++k) {
      sum += a->values[turns_a ? k * (size_t)a->dims[1] + row : row * depth + k] *
             b->values[turns_b ? col * depth + k : k * cols + col];
    }
    const bool has_c = input_count > 2 && inputs[2].values && beta != 0.0;
    y->values[i] = alpha * sum + (has_c ? beta * om_ref_broadcast(&inputs[2], y, i) : 0.0);
  }
}

static const om_op_case gemm_cases[] = {
    {.name = "plain", .inputs = {"f32 5x6", "f32 6x7"}},
    {.name = "row_bias", .inputs = {"f32 5x6", "f32 6x7 const", "f32 7 const"}},
    {.name = "row_bias_of_rank_2", .inputs = {"f32 5x6", "f32 6x7", "f32 1x7"}},
    {.name = "column_bias", .inputs = {"f32 5x6", "f32 6x7", "f32 5x1"}},
    {.name = "full_c", .inputs = {"f32 5x6", "f32 6x7", "f32 5x7"}},
    {.name = "scalar_c", .inputs = {"f32 5x6", "f32 6x7", "f32 scalar"}},
    {.name = "one_c", .inputs = {"f32 5x6", "f32 6x7", "f32 1 const"}},
    {.name = "turned_a", .inputs = {"f32 6x5", "f32 6x7"}, .attrs = "transA=1"},
    {.name = "turned_b", .inputs = {"f32 5x6", "f32 7x6"}, .attrs = "transB=1"},
    {.name = "turned_b_const", .inputs = {"f32 5x36", "f32 37x36 const"}, .attrs = "transB=1"},
    {.name = "split_turned_b",
     .inputs = {"f32 128x388", "f32 259x388 const", "f32 259 const"},
     .attrs = "transB=1 alpha=0.5f"},
    {.name = "turned_both",
     .inputs = {"f32 136x20", "f32 17x136", "f32 17"},
     .attrs = "transA=1 transB=1"},
    {.name = "alpha", .inputs = {"f32 5x6", "f32 6x7"}, .attrs = "alpha=0.3f"},
    {.name = "alpha_beta_const",
     .inputs = {"f32 5x6", "f32 6x7", "f32 7 const"},
     .attrs = "alpha=0.3f beta=-1.7f"},
    {.name = "beta_zero", .inputs = {"f32 5x6", "f32 6x7", "f32 7"}, .attrs = "beta=0.0f"},
    {.name = "beta_runtime", .inputs = {"f32 5x6", "f32 6x7", "f32 7"}, .attrs = "beta=0.5f"},
    {.name = "beta_full_c", .inputs = {"f32 5x6", "f32 6x7", "f32 5x7"}, .attrs = "beta=0.7f"},
    {.name = "beta_one_c",
     .inputs = {"f32 5x6", "f32 6x7", "f32 1 const"},
     .attrs = "alpha=0.1f beta=0.7f"},
    {.name = "opset_7", .opset = 7, .inputs = {"f32 5x6", "f32 6x7", "f32 7"}},
    {.name = "opset_9", .opset = 9, .inputs = {"f32 5x6", "f32 7x6", "f32 7"}, .attrs = "transB=1"},
    {.name = "double",
     .inputs = {"f64 5x60", "f64 7x60", "f64 7"},
     .attrs = "transB=1 alpha=0.5f beta=0.25f",
     .declined = "float64"},
    {.name = "half",
     .inputs = {"f16 5x60", "f16 7x60", "f16 7"},
     .attrs = "transB=1 alpha=0.5f beta=0.25f"},
    {.name = "half_const",
     .inputs = {"f16 40x130", "f16 37x130 const", "f16 37 const"},
     .attrs = "transB=1 alpha=0.7f beta=-1.3f"},
    {.name = "half_turned_a", .inputs = {"f16 6x5", "f16 6x7", "f16 5x1"}, .attrs = "transA=1"},
    {.name = "half_chunks",
     .inputs = {"f16 64x1536", "f16 1536x64 const", "f16 64 const"},
     .attrs = "beta=0.3f"},
    {.name = "int32", .inputs = {"i32 5x6", "i32 6x7", "i32 5x1"}, .declined = "int32"},
    {.name = "int64", .inputs = {"i64 5x6", "i64 6x7", "i64 7"}, .declined = "int64"},
    {.name = "int32_alpha",
     .inputs = {"i32 5x6", "i32 6x7"},
     .attrs = "alpha=0.5f",
     .error = "both must be 1"},
    {.name = "rank_3", .inputs = {"f32 1x2x3", "f32 3x4"}, .error = "cannot be multiplied"},
    {.name = "c_does_not_fit",
     .inputs = {"f32 2x3", "f32 3x4", "f32 3"},
     .error = "float32 [3], does not broadcast to a result of 2 by 4"},
};

static const om_op_case chain_cases[] = {
    {.name = "no_terms_constant",
     .inputs = {"f32 3x0 const", "f32 0x2 const", "f32 3x2"},
     .graph = "p = MatMul(x0, x1); y0 = Add(p, x2)"},
    {.name = "bias_and_relu",
     .inputs = {"f32 40x120", "f32 120x60 const", "f32 60 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Relu(s)"},
    {.name = "bias_of_large_tiles",
     .inputs = {"f32 8x195x68", "f32 68x260 const", "f32 260 const", "f32 8x195x260"},
     .graph = "p = MatMul(x0, x1); s = Add(x2, p); y0 = Add(s, x3)"},
    {.name = "half_bias_and_relu",
     .inputs = {"f16 40x120", "f16 120x60 const", "f16 60 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Relu(s)"},
    {.name = "half_chunks_and_gelu",
     .inputs = {"f16 64x1536", "f16 1536x64 const", "f16 64 const", "f16 64x64"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); g = Gelu(s); y0 = Add(g, x3)"},
    {.name = "half_beta_and_sigmoid",
     .inputs = {"f16 5x60", "f16 7x60", "f16 7"},
     .graph = "p = Gemm(x0, x1, x2) transB=1 alpha=0.5f beta=0.3f; s = Sigmoid(p); y0 = Mul(p, s)"},
    {.name = "chunks_and_bias",
     .inputs = {"f32 64x1536", "f32 1536x64 const", "f32 64 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Relu(s)"},
    {.name = "split_bias_and_relu",
     .inputs = {"f32 131x388", "f32 388x259 const", "f32 259 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Relu(s)"},
    {.name = "split_bias_of_large_tiles",
     .inputs = {"f32 515x132", "f32 132x515 const", "f32 515 const", "f32 515x515"},
     .graph = "p = MatMul(x0, x1); s = Add(x2, p); y0 = Add(s, x3)"},
    /* What kernels for Hopper make of all values at once, and what they go through item by item: by
     * its operations, or because rows are not of whole units. */
    {.name = "sm90_usual_chain",
     .inputs = {"f32 1030x136", "f32 136x772 const", "f32 772 const", "f32 1030x772"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); g = Gelu(s); y0 = Add(g, x3)"},
    {.name = "sm90_usual_chain_of_few_rows",
     .inputs = {"f32 131x136", "f32 136x3000 const", "f32 3000 const", "f32 131x3000"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); g = Gelu(s); y0 = Add(g, x3)"},
    {.name = "sm90_other_chain",
     .inputs = {"f32 1030x136", "f32 136x772 const", "f32 772 const", "f32 1030x772"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); r = Relu(s); y0 = Mul(r, x3)"},
    {.name = "sm90_exact_gelu_of_parts",
     .inputs = {"f32 1030x100",
                "f32 100x776 const",
                "f32 776 const",
                "f32 1030x776",
                "f32 scalar const = 1.41421354",
                "f32 scalar const = 1",
                "f32 scalar const = 0.5"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); d = Div(s, x4); e = Erf(d); a = Add(e, x5); "
              "m = Mul(s, a); g = Mul(m, x6); y0 = Add(g, x3)"},
    {.name = "sm90_exact_gelu_of_all_magnitudes",
     .inputs = {"f32 1030x100",
                "f32 100x776 const = 0 1e-15 1e9 1",
                "f32 776 const = 0 1e-20 3 0 -1e30",
                "f32 scalar const = 1.41421354",
                "f32 scalar const = 1",
                "f32 scalar const = 0.5"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); d = Div(s, x3); e = Erf(d); a = Add(e, x4); "
              "m = Mul(s, a); y0 = Mul(m, x5)"},
    {.name = "sm90_chain_of_odd_columns",
     .inputs = {"f32 1030x136", "f32 136x771 const", "f32 771 const", "f32 1030x771"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); g = Gelu(s); y0 = Add(g, x3)"},
    /* One step, so that half of a workgroup has none; what it adds is made right before. */
    {.name = "sm90_chain_behind_a_product",
     .inputs = {"f32 900x64", "f32 64x520 const", "f32 900x3072", "f32 3072x520 const"},
     .graph = "q = MatMul(x2, x3); p = MatMul(x0, x1); y0 = Add(p, q)"},
    {.name = "half_sm90_usual_chain",
     .inputs = {"f16 1030x72", "f16 72x2300 const", "f16 2300 const", "f16 1030x2300"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); g = Gelu(s); y0 = Add(g, x3)"},
    /* Gelu far from 0, of infinities and NaN: rows of one term. */
    {.name = "gelu_of_all_magnitudes",
     .inputs = {"f32 600x1 range -12 12", "f32 1x4 const = 1 1e9 1e-9 1e38", "f32 4 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Gelu(s)"},
    {.name = "gelu_of_large_tiles",
     .inputs = {"f32 1030x64", "f32 64x520 const range -4 4", "f32 520 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Gelu(s)"},
    {.name = "half_gelu_of_large_tiles",
     .inputs = {"f16 1030x64", "f16 64x520 const range -4 4", "f16 520 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = Gelu(s)"},
    {.name = "gelu_of_infinities",
     .inputs = {"f32 131x387", "f32 388x264 const", "f32 131x1 = 1 1e9 inf 2 nan 3 -inf"},
     .graph = "t = Concat(x0, x2) axis=1; p = MatMul(t, x1); y0 = Gelu(p)"},
    /* Rows with one infinity or NaN among their terms, and large numbers beside them. */
    {.name = "split_infinities",
     .inputs = {"f32 131x387", "f32 388x259 const", "f32 131x1 = 1 1e9 inf 2 nan 3 -inf"},
     .graph = "t = Concat(x0, x2) axis=1; y0 = MatMul(t, x1)"},
    {.name = "gemm_and_relu",
     .inputs = {"f32 40x120", "f32 60x120 const", "f32 60 const"},
     .graph = "p = Gemm(x0, x1, x2) transB=1 alpha=0.5f; y0 = Relu(p)"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("MatMul", matmul_cases, matmul_reference),
    OM_OP_SUITE("Gemm", gemm_cases, gemm_reference),
    OM_OP_SUITE("MatMul", chain_cases, NULL),
};
OM_OP_TESTS(suites)
