/* onemodel.Attention by itself, and the patterns that rewrites make it from. */
#include <math.h>

#include "harness/om_test.h"

/* ---- The operator ---- */

typedef struct ref_view {
  uint32_t rank;
  int64_t dims[OM_MAX_RANK], strides[OM_MAX_RANK];
  int64_t offset;
  const double *values;
} ref_view;

static ref_view view_of(const om_node *node, const om_ref_tensor *x, int part, const char *perm) {
  ref_view v = {.rank = x->rank, .values = x->values};
  const int64_t heads = part < 3 ? om_ref_ints(node, "heads", (size_t)part, 0) : 0;
  const int64_t width = part < 3 ? om_ref_ints(node, "widths", (size_t)part, 0) : 0;
  ref_view from;
  int64_t stride = 1;
  for (uint32_t d = x->rank; d-- > 0;) {
    v.dims[d] = x->dims[d];
    v.strides[d] = stride;
    stride *= x->dims[d];
  }
  if (width > 0) {
    v.offset = om_ref_ints(node, "firsts", (size_t)part, 0);
    v.dims[x->rank - 1] = width;
  }
  if (heads > 0) {
    const int64_t size = v.dims[x->rank - 1] / heads;
    v.dims[x->rank - 1] = heads;
    v.strides[x->rank - 1] = size;
    v.dims[x->rank] = size;
    v.strides[x->rank] = 1;
    v.rank += 1;
  }
  from = v;
  for (uint32_t d = 0; d < v.rank; ++d) {
    const int64_t axis = perm ? om_ref_ints(node, perm, d, d) : (int64_t)d;
    v.dims[d] = from.dims[axis];
    v.strides[d] = from.strides[axis];
  }
  return v;
}

/* The element at (batch index, row, col); axes of one element repeat. */
static double at(const ref_view *v, uint32_t rank, const int64_t *batch, int64_t row, int64_t col) {
  int64_t place = v->offset;
  for (uint32_t d = 0; d < v->rank; ++d) {
    const uint32_t axis = rank - v->rank + d;
    int64_t i = axis + 2 < rank ? batch[axis] : axis + 2 == rank ? row : col;
    if (v->dims[d] > 1) place += i * v->strides[d];
  }
  return v->values[place];
}

static double scale_of(const om_node *node, const om_ref_tensor *x, const char *divides) {
  if (!x->values) return 1.0;
  return om_ref_int(node, divides, 0) ? 1.0 / x->values[0] : x->values[0];
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  static const om_ref_tensor absent;
  const om_ref_tensor *all[7];
  om_ref_tensor *y = &outputs[0];
  static double scores[4096];
  int64_t last[OM_MAX_RANK];
  double sum = 0.0;
  (void)output_count;
  for (size_t i = 0; i < 7; ++i) all[i] = i < input_count ? &inputs[i] : &absent;
  if (node->input_count > input_count) { /* the graph's inputs are x0 and the mask */
    all[3] = all[1];
    all[1] = all[2] = all[0];
  }
  const ref_view q = view_of(node, all[0], 0, "q_perm");
  const ref_view k = view_of(node, all[1], 1, "k_perm");
  const ref_view v = view_of(node, all[2], 2, "v_perm");
  const ref_view m = view_of(node, all[3], 3, NULL);
  const double scale = scale_of(node, all[4], "q_divides") * scale_of(node, all[5], "k_divides") *
                       scale_of(node, all[6], "divides");
  const int64_t depth = q.dims[q.rank - 1];
  const int64_t keys = v.dims[v.rank - 2];
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t index[OM_MAX_RANK], own[OM_MAX_RANK];
    double largest = -INFINITY, result = 0.0;
    om_ref_unravel(y, i, index);
    for (uint32_t d = 0; d < y->rank; ++d) own[om_ref_ints(node, "y_perm", d, d)] = index[d];
    const int64_t row = own[y->rank - 2];
    /* A row's elements have the scores in common. */
    const bool is_last_row = i > 0 && memcmp(own, last, (y->rank - 1) * sizeof own[0]) == 0;
    memcpy(last, own, y->rank * sizeof own[0]);
    if (!is_last_row) sum = 0.0;
    for (int64_t key = 0; key < keys && !is_last_row; ++key) {
      double score = 0.0;
      for (int64_t d = 0; d < depth; ++d) {
        score += at(&q, y->rank, own, row, d) * at(&k, y->rank, own, d, key);
      }
      score *= scale;
      const double mask = m.values ? at(&m, y->rank, own, row, key) : 0.0;
      score = !om_ref_int(node, "selects", 0) ? score + mask : mask == 0.0 ? score : mask;
      scores[key] = score;
      if (score > largest) largest = score;
    }
    for (int64_t key = 0; key < keys && !is_last_row; ++key) {
      sum += scores[key] = exp(scores[key] - largest);
    }
    for (int64_t key = 0; key < keys; ++key) {
      double p = scores[key] / sum;
      if (isnan(p) && om_ref_int(node, "zeroes_nan", 0)) p = 0.0;
      result += p * at(&v, y->rank, own, key, own[y->rank - 1]);
    }
    y->values[i] = result;
  }
}

static const om_op_case cases[] = {
    {.name = "plain", .inputs = {"f32 2x5x8", "f32 2x8x7", "f32 2x7x8"}},
    {.name = "matrices", .inputs = {"f32 3x4", "f32 4x9", "f32 9x2"}},
    {.name = "one_key", .inputs = {"f32 1x3x4", "f32 1x4x1", "f32 1x1x5"}},
    {.name = "masked",
     .inputs = {"f32 2x3x17x32", "f32 2x3x32x40", "f32 2x3x40x32", "f32 2x1x1x40"},
     .scaled_error = 3e-6},
    {.name = "mask_of_rows",
     .inputs = {"f32 1x2x20x16", "f32 1x2x16x33", "f32 1x2x33x24", "f32 20x33"}},
    {.name = "one_value_per_row",
     .inputs = {"f32 2x20x16", "f32 2x16x33", "f32 2x33x24", "f32 2x20x1"}},
    {.name = "mask_of_one", .inputs = {"f32 2x4x8", "f32 2x8x6", "f32 2x6x8", "f32 scalar"}},
    {.name = "mask_widens",
     .inputs = {"f32 1x1x8", "f32 1x8x6", "f32 1x6x8", "f32 3x5x6"},
     .shapes = {"3x5x8"}},
    {.name = "scaled",
     .inputs = {"f32 1x2x5x64",
                "f32 1x2x64x70",
                "f32 1x2x70x64",
                "f32 1x1x5x70",
                "f32 1 const = 0.35",
                "f32 scalar const = 0.35",
                "f32 scalar const = 1.7"},
     .attrs = "divides=1 k_divides=0"},
    {.name = "divided",
     .inputs = {"f32 2x5x8",
                "f32 2x8x7",
                "f32 2x7x8",
                "-",
                "f32 scalar const = 3",
                "f32 scalar const = 0.7",
                "f32 scalar const = 1.1"},
     .attrs = "q_divides=1 k_divides=1"},
    {.name = "divided_by_eight",
     .inputs =
         {"f32 2x5x8", "f32 2x8x7", "f32 2x7x8", "f32 2x1x7", "-", "-", "f32 scalar const = 8"},
     .attrs = "divides=1"},
    /* 1 by it is no normal number. */
    {.name = "divided_by_the_greatest",
     .inputs =
         {"f32 2x5x8", "f32 2x8x7", "f32 2x7x8", "-", "-", "-", "f32 scalar const = 1.7014118e38"},
     .attrs = "divides=1"},
    {.name = "by_keys_divided_by_eight",
     .inputs = {"f32 2x70x64 range -9 9",
                "f32 2x201x64",
                "f32 2x201x64",
                "-",
                "-",
                "-",
                "f32 scalar const = 8"},
     .attrs = "divides=1 k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_divided_by_six",
     .inputs = {"f32 2x70x64 range -2 2",
                "f32 2x101x64 range -2 2",
                "f32 2x101x64",
                "f32 2x1x101",
                "-",
                "-",
                "f32 scalar const = 6"},
     .attrs = "divides=1 k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "heads_behind",
     .inputs = {"f32 2x9x3x32", "f32 2x11x3x32", "f32 2x11x3x32", "f32 2x1x1x11"},
     .attrs = "q_perm=0,2,1,3 k_perm=0,2,3,1 v_perm=0,2,1,3 y_perm=0,2,1,3",
     .shapes = {"2x9x3x32"}},
    {.name = "split",
     .inputs = {"f32 2x9x96", "f32 2x11x96", "f32 2x11x96"},
     .attrs = "heads=3,3,3 q_perm=0,2,1,3 k_perm=0,2,3,1 v_perm=0,2,1,3 y_perm=0,2,1,3",
     .shapes = {"2x9x3x32"}},
    {.name = "packed",
     .inputs = {"f32 2x9x288", "f32 2x1x1x9"},
     .graph = "y0 = Attention(x0, x0, x0, x1) heads=3,3,3 firsts=0,96,192 "
              "widths=96,96,96 q_perm=0,2,1,3 k_perm=0,2,3,1 "
              "v_perm=0,2,1,3 y_perm=0,2,1,3",
     .scaled_error = 3e-6,
     .shapes = {"2x9x3x32"}},
    {.name = "keys_and_values_packed",
     .inputs = {"f32 2x5x32", "f32 2x9x76", "f32 2x9x76"},
     .attrs = "heads=2,2,2 firsts=0,4,36 widths=0,32,40 q_perm=0,2,1,3 k_perm=0,2,3,1 "
              "v_perm=0,2,1,3 y_perm=0,2,1,3",
     .scaled_error = 3e-6,
     .shapes = {"2x5x2x20"}},
    {.name = "part_without_heads",
     .inputs = {"f32 2x5x9", "f32 2x8x7", "f32 2x7x8"},
     .attrs = "firsts=1,0,0 widths=8,0,0"},
    {.name = "rank_3_turned",
     .inputs = {"f32 9x4x16", "f32 12x4x16", "f32 12x4x16"},
     .attrs = "q_perm=1,0,2 k_perm=1,2,0 v_perm=1,0,2 y_perm=1,0,2"},
    {.name = "many_keys",
     .inputs = {"f32 1x3x64", "f32 1x64x1500", "f32 1x1500x64", "f32 1x3x1500"},
     .scaled_error = 2e-6},
    {.name = "one_row",
     .inputs = {"f32 2x3x1x32 range -1 1",
                "f32 2x3x32x700 range -1 1",
                "f32 2x3x700x32",
                "f32 2x1x1x700"},
     .attrs = "y_perm=0,2,1,3",
     .scaled_error = 3e-6},
    {.name = "few_rows_wide",
     .inputs = {"f32 2x20x40 range -1 1", "f32 2x40x521 range -1 1", "f32 2x521x70"},
     .scaled_error = 3e-6},
    {.name = "few_rows_head_128",
     .inputs = {"f32 3x128 range -1 1", "f32 128x640 range -1 1", "f32 640x128"},
     .scaled_error = 3e-6},
    {.name = "few_rows_head_300",
     .inputs = {"f32 3x9 range -1 1", "f32 9x600 range -1 1", "f32 600x300"},
     .scaled_error = 3e-6},
    {.name = "keys_256",
     .inputs = {"f32 2x17x32", "f32 2x32x256", "f32 2x256x32"},
     .scaled_error = 3e-6},
    {.name = "keys_257",
     .inputs = {"f32 2x17x32", "f32 2x32x257", "f32 2x257x32"},
     .scaled_error = 3e-6},
    {.name = "head_128", .inputs = {"f32 2x5x128", "f32 2x128x40", "f32 2x40x128"}},
    {.name = "head_129", .inputs = {"f32 2x5x129", "f32 2x129x40", "f32 2x40x129"}},
    {.name = "head_256", .inputs = {"f32 1x18x256 range -1 1", "f32 1x256x40", "f32 1x40x256"}},
    {.name = "head_300",
     .inputs = {"f32 1x5x300 range -1 1", "f32 1x300x40", "f32 1x40x300"},
     .scaled_error = 3e-6},
    {.name = "narrow_values", .inputs = {"f32 2x5x70", "f32 2x70x40", "f32 2x40x3"}},
    {.name = "half", .inputs = {"f16 2x5x8", "f16 2x8x7", "f16 2x7x8"}},
    {.name = "half_masked",
     .inputs = {"f16 2x3x5x8",
                "f16 2x3x8x9",
                "f16 2x3x9x8",
                "f16 2x1x1x9",
                "-",
                "-",
                "f16 1 const = 0.25"}},
    {.name = "half_packed",
     .inputs = {"f16 2x9x288", "f16 2x1x1x9"},
     .graph = "y0 = Attention(x0, x0, x0, x1) heads=3,3,3 firsts=0,96,192 "
              "widths=96,96,96 q_perm=0,2,1,3 k_perm=0,2,3,1 "
              "v_perm=0,2,1,3 y_perm=0,2,1,3",
     .scaled_error = 2e-3},
    {.name = "half_chunks",
     .inputs = {"f16 1x3x64", "f16 1x64x1500", "f16 1x1500x64", "f16 1x3x1500"}},
    {.name = "half_rows_64", .inputs = {"f16 270x65x2", "f16 270x2x3", "f16 270x3x40"}},
    {.name = "half_rows_32_head_128", .inputs = {"f16 270x3x2", "f16 270x2x3", "f16 270x3x100"}},
    /* As projections leave them, for kernels on matrix hardware: K by keys, in pieces. */
    {.name = "by_keys_32",
     .inputs = {"f32 2x70x32", "f32 2x70x32", "f32 2x70x32"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_64",
     .inputs = {"f32 1x9x64", "f32 1x200x64", "f32 1x200x64", "f32 1x9x200"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_128",
     .inputs = {"f32 1x9x128", "f32 1x77x128", "f32 1x77x128", "f32 1x1x77"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_two_warpgroups",
     .inputs = {"f32 140x65x36", "f32 140x9x36", "f32 140x9x8"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_two_warpgroups_32",
     .inputs = {"f32 140x65x8", "f32 140x9x8", "f32 140x9x12"},
     .attrs = "k_perm=0,2,1"},
    {.name = "by_keys_three_warpgroups",
     .inputs = {"f32 100x129x36", "f32 100x9x36", "f32 100x9x8"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_large_values",
     .inputs = {"f32 1x12x64 range -1e-6 1e-6",
                "f32 1x150x64 range -1e6 1e6",
                "f32 1x150x64 range -1e20 1e20"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    /* Masks that hide all keys of rows, or leave one of them as the least hidden. */
    {.name = "by_keys_lowest",
     .inputs = {"f32 1x9x64", "f32 1x70x64", "f32 1x70x64", "f32 1x1x70 = -3.4028235e38"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_lowest_of_rows",
     .inputs = {"f32 1x9x32",
                "f32 1x70x32",
                "f32 1x70x32",
                "f32 1x9x70 = -3.4028235e38 -inf -inf -3.4028235e38 -inf"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_96x96",
     .inputs = {"f32 3x5x300x36 range -1 1", "f32 3x5x201x36 range -1 1", "f32 3x5x201x36"},
     .attrs = "k_perm=0,1,3,2",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_128",
     .inputs = {"f32 2x3x70x64 range -1 1",
                "f32 2x3x128x64 range -1 1",
                "f32 2x3x128x64",
                "f32 2x1x1x128"},
     .attrs = "k_perm=0,1,3,2",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_77",
     .inputs = {"f32 3x33x100 range -1 1", "f32 3x77x100 range -1 1", "f32 3x77x48", "f32 3x33x77"},
     .attrs = "k_perm=0,2,1 scale=0.3",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_700",
     .inputs = {"f32 2x70x16", "f32 2x702x16", "f32 2x702x8", "f32 2x1x702"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_1600",
     .inputs = {"f32 1x9x16", "f32 1x1601x16", "f32 1x1601x8"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "by_keys_exact_wide",
     .inputs = {"f32 4x100x8", "f32 4x170x8", "f32 4x170x100", "f32 4x1x170"},
     .attrs = "k_perm=0,2,1",
     .scaled_error = 3e-6},
    {.name = "half_by_keys_32",
     .inputs = {"f16 2x70x32", "f16 2x140x32", "f16 2x140x32", "f16 2x1x140"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_by_keys_64",
     .inputs = {"f16 1x9x64", "f16 1x200x64", "f16 1x200x64", "f16 1x9x200"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_by_keys_128",
     .inputs = {"f16 1x9x128", "f16 1x77x128", "f16 1x77x128", "f16 1x1x77"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_by_keys_many_32",
     .inputs = {"f16 140x65x8", "f16 140x9x8", "f16 140x9x16"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_by_keys_many_64",
     .inputs = {"f16 140x65x40", "f16 140x9x40", "f16 140x9x8"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_by_keys_three_warpgroups",
     .inputs = {"f16 100x129x40", "f16 100x9x40", "f16 100x9x8"},
     .attrs = "k_perm=0,2,1"},
    {.name = "half_head_300", .inputs = {"f16 2x5x300", "f16 2x300x40", "f16 2x40x300"}},
    {.name = "half_mixed",
     .inputs = {"f16 2x5x8", "f16 2x8x7", "f32 2x7x8"},
     .error = "V of shape"},
    {.name = "many_rows", .inputs = {"f32 40x70x8", "f32 40x8x9", "f32 40x9x8"}},
    {.name = "more_rows", .inputs = {"f32 270x70x2", "f32 270x2x3", "f32 270x3x2"}},
    {.name = "more_rows_64", .inputs = {"f32 270x65x2", "f32 270x2x3", "f32 270x3x40"}},
    {.name = "rows_32_head_128", .inputs = {"f32 270x3x2", "f32 270x2x3", "f32 270x3x100"}},
    {.name = "shared_keys", .inputs = {"f32 3x4x5x8", "f32 3x1x8x7", "f32 7x8"}},
    {.name = "rank_5", .inputs = {"f32 2x2x2x3x4", "f32 2x2x2x4x5", "f32 2x2x2x5x4"}},
    {.name = "mask_of_three_runs",
     .inputs = {"f32 2x3x9x4x8", "f32 2x3x7x4x8", "f32 2x3x7x4x8", "f32 2x1x1x1x7"},
     .attrs = "q_perm=0,1,3,2,4 k_perm=0,1,3,4,2 v_perm=0,1,3,2,4 y_perm=0,1,3,2,4",
     .shapes = {"2x3x9x4x8"}},
    {.name = "half_mask_of_three_runs",
     .inputs = {"f16 2x3x9x4x8", "f16 2x3x7x4x8", "f16 2x3x7x4x8", "f16 2x1x1x9x1"},
     .attrs = "q_perm=0,1,3,2,4 k_perm=0,1,3,4,2 v_perm=0,1,3,2,4 y_perm=0,1,3,2,4",
     .shapes = {"2x3x9x4x8"}},
    {.name = "batch_of_three_runs",
     .inputs = {"f32 2x1x2x3x4", "f32 1x2x2x4x5", "f32 2x2x1x5x4"},
     .declined = "more than two runs"},
    {.name = "scale_of_the_run",
     .inputs = {"f32 2x3x4", "f32 2x4x5", "f32 2x5x4", "-", "f32 1"},
     .declined = "run time only"},
    {.name = "no_rows", .inputs = {"f32 2x0x4", "f32 2x4x5", "f32 2x5x4"}, .declined = "empty"},
    {.name = "no_keys", .inputs = {"f32 2x3x4", "f32 2x4x0", "f32 2x0x4"}, .declined = "no terms"},
    {.name = "depths_differ", .inputs = {"f32 2x4", "f32 5x3", "f32 3x4"}, .error = "K of shape"},
    {.name = "keys_differ", .inputs = {"f32 2x4", "f32 4x3", "f32 5x4"}, .error = "V of shape"},
    {.name = "mask_differs",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4", "f32 2x2"},
     .error = "The mask of shape"},
    {.name = "vector", .inputs = {"f32 4", "f32 4x3", "f32 3x4"}, .error = "Q of shape"},
    {.name = "axis_twice",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4"},
     .attrs = "q_perm=0,0",
     .error = "occurs twice"},
    {.name = "perm_of_another_rank",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4"},
     .attrs = "y_perm=0,1,2",
     .error = "A result of shape"},
    {.name = "heads_do_not_divide",
     .inputs = {"f32 2x3x7", "f32 2x3x7", "f32 2x3x7"},
     .attrs = "heads=2,1,1",
     .error = "Q of shape"},
    {.name = "two_heads",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4"},
     .attrs = "heads=2,2",
     .error = "'heads' does not fit"},
    {.name = "columns_past_the_end",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4"},
     .attrs = "firsts=0,0,2 widths=0,0,3",
     .error = "V of shape"},
    {.name = "scale_of_two",
     .inputs = {"f32 2x4", "f32 4x3", "f32 3x4", "-", "f32 2 const"},
     .error = "A scale of shape"},
};

/* Rows that see no key are NaN, or 0 where that is asked for. */
static const om_op_case special_cases[] = {
    {.name = "invisible",
     .inputs = {"f32 2x1 = 1 1", "f32 1x2 = 1 1", "f32 2x1 = 5 5", "f32 2x2 = -inf -inf -inf 0"},
     .expected = {"nan 5"}},
    {.name = "invisible_zero",
     .inputs = {"f32 2x1 = 1 1", "f32 1x2 = 1 1", "f32 2x1 = 5 5", "f32 2x2 = -inf -inf -inf 0"},
     .attrs = "zeroes_nan=1",
     .expected = {"0 5"}},
    {.name = "lowest",
     .inputs = {"f32 2x1 = 1 1",
                "f32 1x2 = 1 1",
                "f32 2x1 = 4 8",
                "f32 2x2 = -3.4028235e38 -3.4028235e38 -3.4028235e38 0"},
     .expected = {"6 8"}},
    {.name = "selected",
     .inputs = {"f32 2x1 = 1 1",
                "f32 1x2 = 1 nan",
                "f32 2x1 = 4 8",
                "f32 2x2 = 0 -3.4028235e38 -3.4028235e38 -3.4028235e38"},
     .attrs = "selects=1",
     .expected = {"4 6"}},
    {.name = "selected_by_rows",
     .inputs = {"f32 3x4x5", "f32 3x5x6", "f32 3x6x7", "f32 4x1 = 0 -1 0 -inf"},
     .attrs = "selects=1",
     .scaled_error = 1e-6},
    {.name = "selected_by_columns",
     .inputs = {"f32 3x4x5", "f32 3x5x37", "f32 3x37x7", "f32 4x37 = 0 -1 0 0 -9"},
     .attrs = "selects=1",
     .scaled_error = 1e-6},
    {.name = "selected_nothing",
     .inputs = {"f32 2x1 = 1 1", "f32 1x2 = 1 1", "f32 2x1 = 4 8", "f32 2x2 = 0 -inf -inf -inf"},
     .attrs = "selects=1",
     .expected = {"4 nan"}},
    {.name = "infinite",
     .inputs = {"f32 1x1 = 1", "f32 1x2 = 1 inf", "f32 2x1 = 4 8"},
     .expected = {"nan"}},
    {.name = "invisible_chunks",
     .inputs = {"f32 1x1 = 1", "f32 1x640 = 1", "f32 640x1 = 5", "f32 1x640 = -inf"},
     .attrs = "zeroes_nan=1",
     .expected = {"0"}},
    {.name = "invisible_long",
     .inputs = {"f32 1x1 = 1", "f32 1x640 = 1", "f32 640x1 = 5", "f32 1x640 = -inf"},
     .expected = {"nan"}},
    {.name = "infinite_value",
     .inputs = {"f32 9x4 = 0", "f32 2x4 = 0", "f32 2x4 = 1 2 inf 4 3 nan 5 -inf"},
     .attrs = "k_perm=1,0",
     .expected = {"2 nan inf -inf 2 nan inf -inf 2 nan inf -inf 2 nan inf -inf 2 nan inf -inf 2 "
                  "nan inf -inf "
                  "2 nan inf -inf 2 nan inf -inf 2 nan inf -inf"}},
    {.name = "invisible_row_of_nine",
     .inputs = {"f32 9x4 = 0",
                "f32 2x4 = 0",
                "f32 2x4 = 1 2 3 4 3 4 5 6",
                "f32 9x2 = 0 0 0 0 0 0 0 0 -inf -inf 0 0 0 0 0 0 0 0"},
     .attrs = "k_perm=1,0",
     .expected =
         {"2 3 4 5 2 3 4 5 2 3 4 5 2 3 4 5 nan nan nan nan 2 3 4 5 2 3 4 5 2 3 4 5 2 3 4 5"}},
    {.name = "nan",
     .inputs = {"f32 1x1 = 1", "f32 1x2 = 1 nan", "f32 2x1 = 4 8"},
     .expected = {"nan"}},
};

/* The parts, which a rewrite joins: on the device as on the CPU. */
static const om_op_case part_cases[] = {
    {.name = "heads",
     .inputs = {"f32 2x9x3x32", "f32 2x11x3x32", "f32 2x11x3x32", "f32 2x1x1x11"},
     .graph = "q = Transpose(x0) perm=0,2,1,3; k = Transpose(x1) perm=0,2,3,1; "
              "v = Transpose(x2) perm=0,2,1,3; s = MatMul(q, k); m = Add(s, x3); "
              "p = Softmax(m) axis=-1; r = MatMul(p, v); y0 = Transpose(r) perm=0,2,1,3",
     .shapes = {"2x9x3x32"}},
    {.name = "scaled",
     .inputs = {"f32 1x2x40x16", "f32 1x2x40x16", "f32 1x2x40x16", "f32 scalar const = 0.5"},
     .graph = "q = Mul(x0, x3); t = Transpose(x1) perm=0,1,3,2; k = Mul(t, x3); "
              "s = MatMul(q, k); p = Softmax(s) axis=3; y0 = MatMul(p, x2)",
     .shapes = {"1x2x40x16"}},
    {.name = "projections",
     .inputs = {"f32 2x9x24",
                "f32 24x24 const",
                "f32 24x24 const",
                "f32 24x24 const",
                "f32 24 const",
                "f32 24 const",
                "f32 24 const",
                "i64 4 const = 0 -1 3 8"},
     .graph = "a = MatMul(x0, x1); b = Add(x4, a); c = Reshape(b, x7); "
              "q = Transpose(c) perm=0,2,1,3; d = MatMul(x0, x2); e = Add(d, x5); "
              "f = Reshape(e, x7); k = Transpose(f) perm=0,2,3,1; g = MatMul(x0, x3); "
              "h = Add(g, x6); i = Reshape(h, x7); v = Transpose(i) perm=0,2,1,3; "
              "s = MatMul(q, k); p = Softmax(s) axis=-1; r = MatMul(p, v); "
              "y0 = Transpose(r) perm=0,2,1,3",
     .shapes = {"2x9x3x8"}},
};

/* More scores than the exact kernel keeps at once. */
static const om_op_case large_cases[] = {
    {.name = "in_turns", .inputs = {"f32 5x1900x2", "f32 5x2x1900", "f32 5x1900x2"}},
};

static const om_op_suite suites[] = {
    {.op_type = "Attention",
     .domain = "onemodel",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference},
    {.op_type = "Attention",
     .domain = "onemodel",
     .cases = special_cases,
     .case_count = sizeof special_cases / sizeof special_cases[0]},
    OM_OP_SUITE("Softmax", part_cases, NULL),
    {.op_type = "Attention",
     .domain = "onemodel",
     .cases = large_cases,
     .case_count = sizeof large_cases / sizeof large_cases[0]},
};

OM_OP_TESTS(suites)
