/* RotaryEmbedding. */
#include "harness/om_test.h"

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &inputs[0], *cos = &inputs[1], *sin = &inputs[2];
  const om_ref_tensor *positions = input_count > 3 && inputs[3].values ? &inputs[3] : NULL;
  const bool is_flat = x->rank == 3, is_interleaved = om_ref_int(node, "interleaved", 0) != 0;
  const int64_t half = cos->dims[cos->rank - 1];
  int64_t heads = is_flat ? om_ref_int(node, "num_heads", 0) : x->dims[1];
  if (heads == 0) heads = x->dims[2] / half / 2;
  const int64_t size = x->dims[x->rank - 1] / (is_flat ? heads : 1);
  const int64_t length = x->dims[is_flat ? 1 : 2];
  (void)output_count;
  for (int64_t i = 0; i < (int64_t)x->elems; ++i) {
    const int64_t place = i % size;
    const int64_t row = is_flat ? i / size / heads % length : i / size % length;
    int64_t table = i / (size * heads * length) * length + row;
    if (positions) table = (int64_t)positions->values[table];
    if (table < 0) table += cos->dims[0];
    outputs[0].values[i] = x->values[i];
    if (place >= 2 * half) continue;
    const bool is_second = is_interleaved ? place % 2 == 1 : place >= half;
    const int64_t number = is_interleaved ? place / 2 : place % half;
    const int64_t away = is_interleaved ? 1 : half;
    const double c = cos->values[table * half + number], s = sin->values[table * half + number];
    const double other = x->values[is_second ? i - away : i + away];
    outputs[0].values[i] = is_second ? s * other + c * x->values[i] : c * x->values[i] - s * other;
  }
}

#define TABLE "range -1 1"

static const om_op_case cases[] = {
    {.name = "rank_4",
     .opset = 23,
     .inputs =
         {"f32 2x3x4x8", "f32 50x4 " TABLE, "f32 50x4 " TABLE, "i64 2x4 = 0 1 2 3 49 7 7 -1"}},
    {.name = "rank_3",
     .opset = 23,
     .inputs = {"f32 2x4x24", "f32 50x4 " TABLE, "f32 50x4 " TABLE, "i64 2x4 const = 0 1 2 3"},
     .attrs = "num_heads=3"},
    {.name = "heads_from_the_tables",
     .opset = 23,
     .inputs = {"f32 2x4x24", "f32 50x4 const " TABLE, "f32 50x4 const " TABLE, "i64 2x4 ramp"}},
    {.name = "interleaved",
     .opset = 23,
     .inputs = {"f32 2x3x4x8", "f32 50x4 " TABLE, "f32 50x4 " TABLE, "i64 2x4 ramp"},
     .attrs = "interleaved=1"},
    {.name = "part",
     .opset = 23,
     .inputs = {"f32 2x3x4x10", "f32 50x3 " TABLE, "f32 50x3 " TABLE, "i64 2x4 ramp"},
     .attrs = "rotary_embedding_dim=6"},
    {.name = "part_interleaved",
     .opset = 23,
     .inputs = {"f32 2x4x30", "f32 50x3 " TABLE, "f32 50x3 " TABLE, "i64 2x4 ramp"},
     .attrs = "rotary_embedding_dim=6 interleaved=1 num_heads=3"},
    {.name = "no_positions",
     .opset = 23,
     .inputs = {"f32 2x3x4x8", "f32 2x4x4 " TABLE, "f32 2x4x4 " TABLE}},
    {.name = "no_positions_flat",
     .opset = 23,
     .inputs = {"f32 2x4x24", "f32 2x4x4 " TABLE, "f32 2x4x4 " TABLE},
     .attrs = "num_heads=3 interleaved=1"},
    {.name = "odd_lengths",
     .opset = 23,
     .inputs = {"f32 3x5x7x66", "f32 9x33 " TABLE, "f32 9x33 " TABLE, "i64 3x7 = 8 0 3 5"}},
    {.name = "edges",
     .opset = 23,
     .inputs = {"f32 1x2x4x8 edges", "f32 1x4x4 " TABLE, "f32 1x4x4 " TABLE}},
    {.name = "f16",
     .opset = 23,
     .inputs = {"f16 2x3x4x8", "f16 50x4 " TABLE, "f16 50x4 " TABLE, "i64 2x4 ramp"}},
    {.name = "f16_part",
     .opset = 23,
     .inputs = {"f16 2x5x3x11", "f16 2x3x4 " TABLE, "f16 2x3x4 " TABLE},
     .attrs = "rotary_embedding_dim=8 interleaved=1"},
    {.name = "bf16",
     .opset = 23,
     .inputs = {"bf16 2x3x4x10", "bf16 2x4x4 " TABLE, "bf16 2x4x4 " TABLE},
     .attrs = "rotary_embedding_dim=8",
     .declined = "bfloat16"},
    {.name = "f64",
     .opset = 23,
     .inputs = {"f64 2x3x4x10", "f64 2x4x4 " TABLE, "f64 2x4x4 " TABLE},
     .attrs = "rotary_embedding_dim=8 interleaved=1",
     .declined = "float64"},
    {.name = "empty",
     .opset = 23,
     .inputs = {"f32 2x3x0x8", "f32 50x4", "f32 50x4", "i64 2x0"},
     .declined = "empty"},
    {.name = "position_too_large",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x4", "f32 5x4", "i64 1x2 = 0 5"},
     .error = "index 5 is out of range"},
    {.name = "position_made_on_the_device",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x4", "f32 5x4", "i64 1x2 = 0 4", "i64 1x2 = 0 1"},
     .graph = "p = Add(x3, x4); y0 = RotaryEmbedding(x0, x1, x2, p)",
     .error = "out of range"},
    {.name = "rank_2", .opset = 23, .inputs = {"f32 3x8", "f32 5x4", "f32 5x4"}, .error = "input"},
    {.name = "table_of_vectors",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 4", "f32 4"},
     .error = "cos_cache"},
    {.name = "table_too_short",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x3", "f32 5x3", "i64 1x2 = 0 1"},
     .error = "cos_cache"},
    {.name = "tables_differ",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x4", "f32 5x3", "i64 1x2 = 0 1"},
     .error = "sin_cache"},
    {.name = "positions_differ",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x4", "f32 5x4", "i64 1x3 = 0 1"},
     .error = "position_ids"},
    {.name = "odd_part",
     .opset = 23,
     .inputs = {"f32 1x3x2x8", "f32 5x4", "f32 5x4", "i64 1x2 = 0 1"},
     .attrs = "rotary_embedding_dim=3",
     .error = "'rotary_embedding_dim' are 0 and 3"},
    {.name = "heads_do_not_divide",
     .opset = 23,
     .inputs = {"f32 1x2x8", "f32 5x4", "f32 5x4", "i64 1x2 = 0 1"},
     .attrs = "num_heads=3",
     .error = "input"},
};

OM_OP_TEST("RotaryEmbedding", cases, reference)
