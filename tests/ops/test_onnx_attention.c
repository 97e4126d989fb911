/* ONNX's Attention (opset 23 on), which is composed of others, against its text in double. */
#include <math.h>

#include "harness/om_test.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS, INPUTS };

/* One operand as [batch, heads, length, size], with what lies before it. */
typedef struct ref_side {
  const om_ref_tensor *x, *past; /* past->values NULL: none */
  int64_t heads, length, size, past_length;
  bool is_flat;
} ref_side;

static ref_side side_of(const om_ref_tensor *x, const om_ref_tensor *past, int64_t heads) {
  ref_side s = {.x = x, .past = past, .is_flat = x->rank == 3};
  s.heads = s.is_flat ? heads : x->dims[1];
  s.length = s.is_flat ? x->dims[1] : x->dims[2];
  s.size = s.is_flat ? x->dims[2] / heads : x->dims[3];
  s.past_length = past->values ? past->dims[2] : 0;
  return s;
}

static double at(const ref_side *s, int64_t batch, int64_t head, int64_t row, int64_t col) {
  if (row < s->past_length) {
    return s->past->values[((batch * s->heads + head) * s->past_length + row) * s->size + col];
  }
  row -= s->past_length;
  if (s->is_flat) {
    return s->x->values[((batch * s->length + row) * s->heads + head) * s->size + col];
  }
  return s->x->values[((batch * s->heads + head) * s->length + row) * s->size + col];
}

typedef struct ref_case {
  const om_node *node;
  const om_ref_tensor *in[INPUTS];
  ref_side q, k, v;
  int64_t keys;
} ref_case;

/* What is added to a score; also the mask, which is shorter than the keys from opset 24 on. */
static double bias_of(const ref_case *c, int64_t batch, int64_t head, int64_t row, int64_t key) {
  const om_ref_tensor *mask = c->in[MASK], *lengths = c->in[LENGTHS];
  const int64_t index[] = {batch, head, row, key};
  double bias = 0.0;
  if (mask->values) {
    const int64_t last = mask->dims[mask->rank - 1];
    const bool is_short = key >= last && (last > 1 || c->node->opset >= 24);
    int64_t place[OM_MAX_RANK];
    for (uint32_t d = 0; d < mask->rank; ++d) {
      place[d] = mask->dims[d] == 1 ? 0 : index[4 - mask->rank + d];
    }
    if (is_short) {
      bias = -INFINITY;
    } else {
      const double value = mask->values[om_ref_ravel(mask, place)];
      bias = mask->dtype != OM_DTYPE_BOOL ? value : value != 0.0 ? 0.0 : -INFINITY;
    }
  }
  int64_t before = c->k.past_length;
  if (lengths->values && key >= (int64_t)lengths->values[batch]) bias = -INFINITY;
  if (lengths->values) before = (int64_t)lengths->values[batch] - c->q.length;
  if (om_ref_int(c->node, "is_causal", 0) && key > row + before) bias = -INFINITY;
  return bias;
}

static void write_present(const ref_side *s, om_ref_tensor *y) {
  for (size_t i = 0; y->values && i < y->elems; ++i) {
    int64_t index[OM_MAX_RANK];
    om_ref_unravel(y, i, index);
    y->values[i] = at(s, index[0], index[1], index[2], index[3]);
  }
}

static void write_row(const ref_case *c,
                      int64_t batch,
                      int64_t head,
                      int64_t row,
                      om_ref_tensor *y,
                      om_ref_tensor *scores_out) {
  static double scores[4096];
  const double size = (double)c->q.size;
  const double scale = om_ref_float(c->node, "scale", 1.0 / sqrt(size));
  const double cap = om_ref_float(c->node, "softcap", 0.0);
  const int64_t mode = om_ref_int(c->node, "qk_matmul_output_mode", 0);
  const int64_t kv_head = head / (c->q.heads / c->k.heads);
  const int64_t out_row = (batch * c->q.heads + head) * c->q.length + row;
  double *shown = scores_out ? scores_out->values + out_row * c->keys : NULL;
  double largest = -INFINITY, sum = 0.0, highest = -INFINITY;
  for (int64_t key = 0; key < c->keys; ++key) {
    const double bias = bias_of(c, batch, head, row, key);
    double score = 0.0;
    for (int64_t d = 0; d < c->q.size; ++d) {
      score += at(&c->q, batch, head, row, d) * at(&c->k, batch, kv_head, key, d);
    }
    score *= scale;
    if (shown && mode == 0) shown[key] = score;
    if (cap != 0.0) score = cap * tanh(score / cap);
    if (shown && mode == 1) shown[key] = score;
    score += bias;
    if (shown && mode == 2) shown[key] = score;
    scores[key] = score;
    if (score > largest) largest = score;
    if (bias > highest) highest = bias;
  }
  for (int64_t key = 0; key < c->keys; ++key) sum += scores[key] = exp(scores[key] - largest);
  for (int64_t key = 0; key < c->keys; ++key) {
    scores[key] = highest == -INFINITY ? 0.0 : scores[key] / sum;
    if (shown && mode == 3) shown[key] = scores[key];
  }
  for (int64_t col = 0; col < c->v.size; ++col) {
    double value = 0.0;
    for (int64_t key = 0; key < c->keys; ++key) {
      value += scores[key] * at(&c->v, batch, kv_head, key, col);
    }
    const int64_t place = c->q.is_flat
                              ? ((batch * c->q.length + row) * c->q.heads + head) * c->v.size + col
                              : out_row * c->v.size + col;
    y->values[place] = value;
  }
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  static const om_ref_tensor absent;
  ref_case c = {.node = node};
  for (size_t i = 0; i < INPUTS; ++i) c.in[i] = i < input_count ? &inputs[i] : &absent;
  const int64_t kv_heads = om_ref_int(node, "kv_num_heads", 0);
  c.q = side_of(c.in[Q], &absent, om_ref_int(node, "q_num_heads", 0));
  c.k = side_of(c.in[K], c.in[PAST_K], kv_heads);
  c.v = side_of(c.in[V], c.in[PAST_V], kv_heads);
  c.keys = c.k.past_length + c.k.length;
  for (int64_t batch = 0; batch < c.in[Q]->dims[0]; ++batch) {
    for (int64_t head = 0; head < c.q.heads; ++head) {
      for (int64_t row = 0; row < c.q.length; ++row) {
        om_ref_tensor *shown = output_count > 3 && outputs[3].values ? &outputs[3] : NULL;
        write_row(&c, batch, head, row, &outputs[0], shown);
      }
    }
  }
  if (output_count > 1) write_present(&c.k, &outputs[1]);
  if (output_count > 2) write_present(&c.v, &outputs[2]);
}

#define OM_23 .opset = 23
#define OM_24 .opset = 24

static const om_op_case cases[] = {
    {.name = "rank_4", OM_23, .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"}},
    {.name = "rank_4_sizes_differ",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x10"},
     .shapes = {"2x3x4x10"}},
    {.name = "rank_3",
     OM_23,
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x30"},
     .attrs = "q_num_heads=3 kv_num_heads=3",
     .shapes = {"2x4x30"}},
    {.name = "scaled",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"},
     .attrs = "scale=0.01f"},
    {.name = "long",
     OM_23,
     .inputs = {"f32 1x2x70x64", "f32 1x2x300x64", "f32 1x2x300x64"},
     .scaled_error = 3e-6},
    {.name = "mask_float",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x6"}},
    {.name = "mask_rank_3",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 3x4x6"}},
    {.name = "mask_rank_4",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 2x3x4x6"}},
    {.name = "mask_bool",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "b8 2x1x4x6 = 1 0 1 1 1 0 1"}},
    {.name = "mask_hides_a_row",
     OM_23,
     .inputs = {"f32 1x1x2x4", "f32 1x1x3x4", "f32 1x1x3x4", "b8 2x3 = 0 0 0 1 0 1"}},
    {.name = "mask_hides_a_row_flat",
     OM_23,
     .inputs = {"f32 1x2x8", "f32 1x3x8", "f32 1x3x8", "f32 2x3 = -inf -inf -inf 0 -1 0"},
     .attrs = "q_num_heads=2 kv_num_heads=2"},
    {.name = "causal",
     OM_23,
     .inputs = {"f32 2x3x5x8", "f32 2x3x5x8", "f32 2x3x5x8"},
     .attrs = "is_causal=1"},
    {.name = "causal_more_keys",
     OM_23,
     .inputs = {"f32 2x5x24", "f32 2x9x24", "f32 2x9x24"},
     .attrs = "is_causal=1 q_num_heads=3 kv_num_heads=3"},
    {.name = "causal_mask_bool",
     OM_23,
     .inputs = {"f32 2x3x5x8", "f32 2x3x5x8", "f32 2x3x5x8", "b8 5x5 = 0 1 1 1 0 1"},
     .attrs = "is_causal=1"},
    {.name = "causal_mask_float",
     OM_23,
     .inputs = {"f32 2x3x5x8", "f32 2x3x5x8", "f32 2x3x5x8", "f32 2x1x5x5"},
     .attrs = "is_causal=1"},
    {.name = "past",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "-", "f32 2x3x5x8", "f32 2x3x5x8"},
     .output_count = 3,
     .shapes = {"2x3x4x8", "2x3x11x8", "2x3x11x8"}},
    {.name = "past_causal_flat",
     OM_23,
     .inputs = {"f32 2x4x24", "f32 2x4x24", "f32 2x4x24", "f32 4x9", "f32 2x3x5x8", "f32 2x3x5x8"},
     .attrs = "is_causal=1 q_num_heads=3 kv_num_heads=3",
     .output_count = 3},
    {.name = "past_of_nothing",
     OM_23,
     .inputs = {"f32 2x4x24", "f32 2x4x24", "f32 2x4x24", "-", "f32 2x3x0x8", "f32 2x3x0x8"},
     .attrs = "is_causal=1 q_num_heads=3 kv_num_heads=3",
     .output_count = 3},
    {.name = "shared_heads",
     OM_23,
     .inputs = {"f32 2x6x4x8", "f32 2x3x6x8", "f32 2x3x6x10"},
     .shapes = {"2x6x4x10"}},
    {.name = "shared_heads_flat",
     OM_23,
     .inputs = {"f32 2x4x48", "f32 2x6x24", "f32 2x6x24"},
     .attrs = "q_num_heads=6 kv_num_heads=3"},
    {.name = "one_head_of_keys",
     OM_23,
     .inputs = {"f32 2x4x48", "f32 2x6x8", "f32 2x6x8", "f32 4x6"},
     .attrs = "q_num_heads=6 kv_num_heads=1"},
    {.name = "shared_heads_mask",
     OM_23,
     .inputs = {"f32 2x6x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "b8 2x1x4x6 = 1 0 1 1 1 0 1"}},
    {.name = "shared_heads_mask_by_head",
     OM_23,
     .inputs = {"f32 2x6x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 6x4x6"}},
    {.name = "shared_heads_past",
     OM_23,
     .inputs = {"f32 2x4x48", "f32 2x4x24", "f32 2x4x24", "-", "f32 2x3x5x8", "f32 2x3x5x8"},
     .attrs = "is_causal=1 q_num_heads=6 kv_num_heads=3",
     .output_count = 3},
    {.name = "softcap",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x6"},
     .attrs = "softcap=0.5f"},
    {.name = "scores_0",
     OM_23,
     .inputs = {"f32 2x6x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x6"},
     .attrs = "softcap=2.0f",
     .output_count = 4},
    {.name = "scores_1",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x6"},
     .attrs = "softcap=2.0f qk_matmul_output_mode=1",
     .output_count = 4},
    {.name = "scores_2",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x6"},
     .attrs = "softcap=2.0f qk_matmul_output_mode=2",
     .output_count = 4},
    {.name = "scores_3",
     OM_23,
     .inputs = {"f32 1x1x2x4", "f32 1x1x3x4", "f32 1x1x3x4", "b8 2x3 = 0 0 0 1 0 1"},
     .attrs = "qk_matmul_output_mode=3",
     .output_count = 4},
    {.name = "precision_double",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"},
     .attrs = "softmax_precision=11",
     .declined = "float64"},
    {.name = "short_mask",
     OM_24,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "f32 4x5"}},
    {.name = "short_mask_bool_past",
     OM_24,
     .inputs = {"f32 2x3x4x8",
                "f32 2x3x6x8",
                "f32 2x3x6x8",
                "b8 4x8 = 1 1 0",
                "f32 2x3x5x8",
                "f32 2x3x5x8"},
     .output_count = 3},
    {.name = "lengths",
     OM_24,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "-", "-", "-", "i64 2 const = 3 6"}},
    {.name = "lengths_of_the_run",
     OM_24,
     .inputs =
         {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "b8 4x6 = 1 1 0", "-", "-", "i64 2 = 4 6"},
     .attrs = "is_causal=1 q_num_heads=3 kv_num_heads=3"},
    {.name = "lengths_below_the_rows",
     OM_24,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "-", "-", "-", "i64 2 = 2 6"},
     .attrs = "is_causal=1"},
    {.name = "f16",
     OM_24,
     .inputs = {"f16 2x4x24", "f16 2x6x24", "f16 2x6x24", "f16 4x6"},
     .attrs = "q_num_heads=3 kv_num_heads=3",
     .scaled_error = 4e-3},
    {.name = "bf16",
     OM_24,
     .inputs = {"bf16 2x3x4x8", "bf16 2x3x6x8", "bf16 2x3x6x8"},
     .scaled_error = 4e-2,
     .declined = "bfloat16"},
    {.name = "f64",
     OM_24,
     .inputs = {"f64 2x3x4x8", "f64 2x3x6x8", "f64 2x3x6x8", "f64 4x6"},
     .attrs = "is_causal=1 softcap=2.0f",
     .declined = "float64"},
    {.name = "heads_unknown",
     OM_23,
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24"},
     .error = "'q_num_heads' is 0"},
    {.name = "heads_do_not_share",
     OM_23,
     .inputs = {"f32 2x4x30", "f32 2x6x20", "f32 2x6x20"},
     .attrs = "q_num_heads=3 kv_num_heads=2",
     .error = "do not share"},
    {.name = "half_a_past",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8", "-", "f32 2x3x5x8"},
     .error = "go together"},
    {.name = "past_and_lengths",
     OM_24,
     .inputs = {"f32 2x3x4x8",
                "f32 2x3x6x8",
                "f32 2x3x6x8",
                "-",
                "f32 2x3x5x8",
                "f32 2x3x5x8",
                "i64 2 = 2 6"},
     .error = "only one"},
    {.name = "windows",
     OM_24,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"},
     .attrs = "left_window_size=2",
     .error = "windows are not known"},
    {.name = "mode_4",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"},
     .attrs = "qk_matmul_output_mode=4",
     .error = "'qk_matmul_output_mode' is 4"},
    {.name = "precision_of_int",
     OM_23,
     .inputs = {"f32 2x3x4x8", "f32 2x3x6x8", "f32 2x3x6x8"},
     .attrs = "softmax_precision=7",
     .error = "'softmax_precision' is 7"},
};

static const om_op_suite suites[] = {
    {.op_type = "Attention",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .is_composed = true},
};

OM_OP_TESTS(suites)
