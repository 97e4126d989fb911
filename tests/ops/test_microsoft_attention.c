/* Microsoft's attention operators, which are composed of others, against their text in double. */
#include <math.h>

#include "harness/om_test.h"

enum { MOST = 8192 };

typedef struct ref_attention { /* dense, [batch, heads, length, size] */
  int64_t batch, q_heads, kv_heads, rows, keys, size, v_size;
  double scale, cap;
  double q[MOST], k[MOST], v[MOST];
  double bias[MOST]; /* [batch, heads, rows, keys] */
} ref_attention;

static ref_attention a;

static const om_ref_tensor *input_of(const om_ref_tensor *inputs, size_t count, size_t index) {
  static const om_ref_tensor absent;
  return index < count ? &inputs[index] : &absent;
}

/* Element (batch, row, col of all) of x, plus the bias' column. */
static void split(const double *x,
                  const double *bias,
                  int64_t batch,
                  int64_t length,
                  int64_t heads,
                  int64_t size,
                  double *to) {
  for (int64_t i = 0; i < batch * heads * length * size; ++i) {
    const int64_t d = i % size, row = i / size % length, head = i / size / length % heads;
    const int64_t b = i / size / length / heads, col = head * size + d;
    to[i] = x[(b * length + row) * heads * size + col] + (bias ? bias[col] : 0.0);
  }
}

/* The past, then the new rows; *to has room for both. */
static int64_t join(const om_ref_tensor *past,
                    const double *added,
                    int64_t piles,
                    int64_t length,
                    int64_t size,
                    double *to) {
  const int64_t before = past->values ? past->dims[2] : 0, all = before + length;
  for (int64_t i = 0; i < piles * all * size; ++i) {
    const int64_t d = i % size, row = i / size % all, pile = i / size / all;
    to[i] = row < before ? past->values[(pile * before + row) * size + d]
                         : added[(pile * length + row - before) * size + d];
  }
  return all;
}

/* Writes the result flat. */
static void attend(double *y) {
  static double p[MOST];
  for (int64_t i = 0; i < a.batch * a.q_heads * a.rows; ++i) {
    const int64_t row = i % a.rows, head = i / a.rows % a.q_heads, b = i / a.rows / a.q_heads;
    const int64_t pile = b * a.kv_heads + head / (a.q_heads / a.kv_heads);
    double largest = -INFINITY, sum = 0.0;
    for (int64_t key = 0; key < a.keys; ++key) {
      double score = 0.0;
      for (int64_t d = 0; d < a.size; ++d) {
        score += a.q[i * a.size + d] * a.k[(pile * a.keys + key) * a.size + d];
      }
      score *= a.scale;
      if (a.cap != 0.0) score = a.cap * tanh(score / a.cap);
      p[key] = score + a.bias[i * a.keys + key];
      if (p[key] > largest) largest = p[key];
    }
    for (int64_t key = 0; key < a.keys; ++key) sum += p[key] = exp(p[key] - largest);
    for (int64_t d = 0; d < a.v_size; ++d) {
      double value = 0.0;
      for (int64_t key = 0; key < a.keys; ++key) {
        value += p[key] / sum * a.v[(pile * a.keys + key) * a.v_size + d];
      }
      y[((b * a.rows + row) * a.q_heads + head) * a.v_size + d] = value;
    }
  }
}

/* The mask of integers and the bias of scores. */
static void make_bias(const om_node *node, const om_ref_tensor *mask, const om_ref_tensor *bias) {
  const double hidden = om_ref_float(node, "mask_filter_value", -10000.0);
  const bool is_causal = om_ref_int(node, "unidirectional", 0) != 0;
  for (int64_t i = 0; i < a.batch * a.q_heads * a.rows * a.keys; ++i) {
    const int64_t key = i % a.keys, row = i / a.keys % a.rows;
    const int64_t head = i / a.keys / a.rows % a.q_heads, b = i / a.keys / a.rows / a.q_heads;
    bool is_seen = !is_causal || key <= row + a.keys - a.rows;
    if (mask->values && mask->rank == 1) is_seen = is_seen && key < (int64_t)mask->values[b];
    if (mask->values && mask->rank == 2) is_seen = is_seen && mask->values[b * a.keys + key] != 0.0;
    if (mask->values && mask->rank == 3) {
      is_seen = is_seen && mask->values[(b * a.rows + row) * a.keys + key] != 0.0;
    }
    a.bias[i] = is_seen ? 0.0 : hidden;
    if (bias->values) {
      const int64_t place[OM_MAX_RANK] = {
          bias->dims[0] == 1 ? 0 : b, bias->dims[1] == 1 ? 0 : head, row, key};
      a.bias[i] += bias->values[om_ref_ravel(bias, place)];
    }
  }
}

static void set_scale(const om_node *node) {
  a.scale = om_ref_float(node, "scale", 0.0);
  if (a.scale == 0.0) a.scale = 1.0 / sqrt((double)a.size);
  a.cap = om_ref_float(node, "softcap", 0.0);
}

static void copy_out(const double *from, om_ref_tensor *to) {
  for (size_t i = 0; to->values && i < to->elems; ++i) to->values[i] = from[i];
}

/* ---- MultiHeadAttention ---- */

static void multi_head(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       om_ref_tensor *outputs,
                       size_t output_count) {
  static double k[MOST], v[MOST];
  const om_ref_tensor *q = &inputs[0], *key = &inputs[1], *value = &inputs[2];
  const double *bias = input_of(inputs, input_count, 3)->values;
  const om_ref_tensor *past_k = input_of(inputs, input_count, 6);
  const om_ref_tensor *past_v = input_of(inputs, input_count, 7);
  const int64_t heads = om_ref_int(node, "num_heads", 1), width = q->dims[2];
  a.batch = q->dims[0];
  a.q_heads = a.kv_heads = heads;
  a.rows = q->dims[1];
  a.size = width / heads;
  split(q->values, bias, a.batch, a.rows, heads, a.size, a.q);
  if (key->rank == 4) {
    a.keys = key->dims[2];
    a.v_size = value->dims[3];
    memcpy(a.k, key->values, key->elems * sizeof *a.k);
    memcpy(a.v, value->values, value->elems * sizeof *a.v);
  } else {
    const int64_t length = key->dims[1];
    a.v_size = value->dims[2] / heads;
    split(key->values, bias ? bias + width : NULL, a.batch, length, heads, a.size, k);
    split(value->values, bias ? bias + 2 * width : NULL, a.batch, length, heads, a.v_size, v);
    a.keys = join(past_k, k, a.batch * heads, length, a.size, a.k);
    join(past_v, v, a.batch * heads, length, a.v_size, a.v);
  }
  set_scale(node);
  make_bias(node, input_of(inputs, input_count, 4), input_of(inputs, input_count, 5));
  attend(outputs[0].values);
  if (output_count > 1) copy_out(a.k, &outputs[1]);
  if (output_count > 2) copy_out(a.v, &outputs[2]);
}

#define HEADS_3 .opset = 1, .attrs = "num_heads=3"

static const om_op_case multi_head_cases[] = {
    {.name = "plain", .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24"}, HEADS_3},
    {.name = "bias", .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "f32 72 const"}, HEADS_3},
    {.name = "mask",
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "-", "i32 2x6 = 1 1 0 1"},
     HEADS_3},
    {.name = "mask_of_rows",
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "-", "i32 2x4x6 = 1 1 0 1 0"},
     HEADS_3},
    {.name = "lengths",
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "-", "i32 2 = 3 6"},
     HEADS_3},
    {.name = "scores_bias",
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "-", "-", "f32 1x3x4x6"},
     HEADS_3},
    {.name = "causal_scaled",
     .opset = 1,
     .inputs = {"f32 2x4x24", "f32 2x4x24", "f32 2x4x24"},
     .attrs = "num_heads=3 unidirectional=1 scale=0.5f mask_filter_value=-100.0"},
    {.name = "keys_of_another", .inputs = {"f32 2x4x24", "f32 2x3x6x8", "f32 2x3x6x8"}, HEADS_3},
    {.name = "past",
     .inputs = {"f32 2x4x24",
                "f32 2x4x24",
                "f32 2x4x24",
                "f32 72 const",
                "-",
                "-",
                "f32 2x3x5x8",
                "f32 2x3x5x8"},
     .output_count = 3,
     HEADS_3},
    {.name = "packed", .inputs = {"f32 2x4x3x3x8"}, HEADS_3, .error = "Packed forms"},
    {.name = "no_heads",
     .opset = 1,
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24"},
     .error = "'num_heads' is 0"},
    {.name = "bias_of_two",
     .inputs = {"f32 2x4x24", "f32 2x6x24", "f32 2x6x24", "f32 50 const"},
     HEADS_3,
     .error = "a third"},
};

/* ---- Attention ---- */

static void self_attention(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  static double all[MOST], parts[3][MOST], added[MOST];
  const om_ref_tensor *x = &inputs[0], *w = &inputs[1];
  const double *bias = input_of(inputs, input_count, 2)->values;
  const om_ref_tensor *past = input_of(inputs, input_count, 4);
  const int64_t heads = om_ref_int(node, "num_heads", 1), width = w->dims[1], third = width / 3;
  a.batch = x->dims[0];
  a.rows = x->dims[1];
  a.q_heads = a.kv_heads = heads;
  a.size = a.v_size = third / heads;
  for (int64_t i = 0; i < a.batch * a.rows * width; ++i) {
    all[i] = bias ? bias[i % width] : 0.0;
    for (int64_t k = 0; k < x->dims[2]; ++k) {
      all[i] += x->values[i / width * x->dims[2] + k] * w->values[k * width + i % width];
    }
    parts[i % width / third][i / width * third + i % width % third] = all[i];
  }
  split(parts[0], NULL, a.batch, a.rows, heads, a.size, a.q);
  for (int part = 0; part < 2; ++part) {
    om_ref_tensor half = {.rank = 4};
    if (past->values) {
      half.dims[2] = past->dims[3];
      half.values = past->values + (size_t)part * past->elems / 2;
    }
    split(parts[1 + part], NULL, a.batch, a.rows, heads, a.size, added);
    a.keys = join(&half, added, a.batch * heads, a.rows, a.size, part == 0 ? a.k : a.v);
  }
  set_scale(node);
  make_bias(node, input_of(inputs, input_count, 3), input_of(inputs, input_count, 5));
  attend(outputs[0].values);
  if (output_count < 2) return;
  for (size_t i = 0; i < outputs[1].elems; ++i) {
    const size_t half = outputs[1].elems / 2;
    outputs[1].values[i] = i < half ? a.k[i] : a.v[i - half];
  }
}

static const om_op_case self_cases[] = {
    {.name = "plain",
     .inputs = {"f32 2x4x10", "f32 10x72 const", "f32 72 const"},
     .scaled_error = 2e-6,
     HEADS_3},
    {.name = "mask",
     .inputs = {"f32 2x4x10", "f32 10x72 const", "f32 72 const", "i32 2x4 = 1 1 1 0"},
     .scaled_error = 2e-6,
     HEADS_3},
    {.name = "lengths",
     .inputs = {"f32 2x4x10", "f32 10x72 const", "f32 72 const", "i32 2 = 3 4"},
     .scaled_error = 2e-6,
     HEADS_3},
    {.name = "past",
     .opset = 1,
     .inputs = {"f32 2x4x10", "f32 10x72 const", "f32 72 const", "-", "f32 2x2x3x5x8"},
     .attrs = "num_heads=3 unidirectional=1",
     .scaled_error = 2e-6,
     .output_count = 2},
    {.name = "rotary",
     .opset = 1,
     .inputs = {"f32 2x4x10", "f32 10x72 const", "f32 72 const"},
     .attrs = "num_heads=3 do_rotary=1",
     .error = "'do_rotary'"},
};

/* ---- RotaryEmbedding, GroupQueryAttention ---- */

static void turn(double *x,
                 int64_t piles,
                 int64_t length,
                 int64_t size,
                 int64_t heads,
                 const double *positions,
                 const om_ref_tensor *cos_table,
                 const om_ref_tensor *sin_table) {
  const int64_t half = cos_table->dims[1];
  for (int64_t i = 0; i < piles * length * half; ++i) {
    const int64_t n = i % half, row = i / half % length, pile = i / half / length;
    const int64_t position = (int64_t)positions[pile / heads * length + row];
    double *first = x + (pile * length + row) * size + n, *second = first + half;
    const double c = cos_table->values[position * half + n];
    const double s = sin_table->values[position * half + n];
    const double turned = *first * c - *second * s;
    *second = *first * s + *second * c;
    *first = turned;
  }
}

static void rotary(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  static double positions[MOST];
  const om_ref_tensor *x = &inputs[0];
  const int64_t length = x->dims[2];
  (void)node;
  (void)input_count;
  (void)output_count;
  for (int64_t i = 0; i < x->dims[0] * length; ++i) {
    const bool is_first = inputs[1].rank == 1;
    positions[i] = is_first ? inputs[1].values[0] + (double)(i % length) : inputs[1].values[i];
  }
  memcpy(a.q, x->values, x->elems * sizeof *a.q);
  turn(a.q,
       x->dims[0] * x->dims[1],
       length,
       x->dims[3],
       x->dims[1],
       positions,
       &inputs[2],
       &inputs[3]);
  copy_out(a.q, &outputs[0]);
}

static const om_op_case rotary_cases[] = {
    {.name = "first",
     .opset = 1,
     .inputs = {"f32 2x3x4x8", "i64 1 = 5", "f32 20x4 range -1 1", "f32 20x4 range -1 1"}},
    {.name = "each",
     .opset = 1,
     .inputs = {"f32 2x3x4x8", "i64 2x4 = 5 0 19 2", "f32 20x4 range -1 1", "f32 20x4 range -1 1"}},
    {.name = "scaled",
     .opset = 1,
     .inputs = {"f32 2x3x4x8", "i64 1 = 5", "f32 20x4", "f32 20x4"},
     .attrs = "scale=2.0f",
     .error = "'scale'"},
};

static void group_query(const om_node *node,
                        const om_ref_tensor *inputs,
                        size_t input_count,
                        om_ref_tensor *outputs,
                        size_t output_count) {
  static double k[MOST], v[MOST], positions[MOST];
  const om_ref_tensor *q = &inputs[0], *past = &inputs[3], *past_v = &inputs[4];
  const int64_t window = om_ref_int(node, "local_window_size", -1);
  a.batch = q->dims[0];
  a.rows = q->dims[1];
  a.q_heads = om_ref_int(node, "num_heads", 1);
  a.kv_heads = om_ref_int(node, "kv_num_heads", 1);
  a.size = a.v_size = q->dims[2] / a.q_heads;
  const int64_t past_rows = past->values ? past->dims[2] : 0, piles = a.batch * a.kv_heads;
  a.keys = past_rows + a.rows;
  split(q->values, NULL, a.batch, a.rows, a.q_heads, a.size, a.q);
  split(inputs[1].values, NULL, a.batch, a.rows, a.kv_heads, a.size, k);
  split(inputs[2].values, NULL, a.batch, a.rows, a.kv_heads, a.size, v);
  for (int64_t i = 0; i < a.batch * a.rows; ++i) {
    const double before = inputs[5].values[i / a.rows] + 1.0 - (double)a.rows;
    positions[i] = (before > 0.0 ? before : 0.0) + (double)(i % a.rows);
  }
  if (om_ref_int(node, "do_rotary", 0) && input_count > 8) {
    turn(a.q, a.batch * a.q_heads, a.rows, a.size, a.q_heads, positions, &inputs[7], &inputs[8]);
    turn(k, piles, a.rows, a.size, a.kv_heads, positions, &inputs[7], &inputs[8]);
  }
  memset(a.k, 0, sizeof a.k);
  memset(a.v, 0, sizeof a.v);
  for (int64_t i = 0; i < piles * a.keys * a.size; ++i) {
    const int64_t d = i % a.size, row = i / a.size % a.keys, pile = i / a.size / a.keys;
    const int64_t added = row - (int64_t)positions[pile / a.kv_heads * a.rows];
    if (row < past_rows) {
      a.k[i] = past->values[(pile * past_rows + row) * a.size + d];
      a.v[i] = past_v->values[(pile * past_rows + row) * a.size + d];
    }
    if (added < 0 || added >= a.rows) continue;
    a.k[i] = k[(pile * a.rows + added) * a.size + d];
    a.v[i] = v[(pile * a.rows + added) * a.size + d];
  }
  for (int64_t i = 0; i < a.batch * a.q_heads * a.rows * a.keys; ++i) {
    const int64_t key = i % a.keys, row = i / a.keys % a.rows, b = i / a.keys / a.rows / a.q_heads;
    const int64_t place = (int64_t)positions[b * a.rows + row];
    const bool is_seen = key <= place && (window <= 0 || key > place - window);
    a.bias[i] = is_seen ? 0.0 : -INFINITY;
  }
  set_scale(node);
  attend(outputs[0].values);
  if (output_count > 1) copy_out(a.k, &outputs[1]);
  if (output_count > 2) copy_out(a.v, &outputs[2]);
}

#define GROUPS .opset = 1, .output_count = 3, .attrs = "num_heads=6 kv_num_heads=3"
#define PAST_5 "f32 2x3x5x8", "f32 2x3x5x8"

static const om_op_case group_query_cases[] = {
    {.name = "first_run",
     .inputs = {"f32 2x4x48",
                "f32 2x4x24",
                "f32 2x4x24",
                "f32 2x3x0x8",
                "f32 2x3x0x8",
                "i32 2 = 3 2",
                "i32 1 const = 4"},
     GROUPS},
    {.name = "next",
     .inputs = {"f32 2x1x48", "f32 2x1x24", "f32 2x1x24", PAST_5, "i32 2 = 5 5", "i32 1 const = 6"},
     GROUPS},
    {.name = "lengths_differ",
     .inputs = {"f32 2x1x48", "f32 2x1x24", "f32 2x1x24", PAST_5, "i32 2 = 5 3", "i32 1 const = 6"},
     GROUPS},
    {.name = "several_rows",
     .inputs = {"f32 2x3x48", "f32 2x3x24", "f32 2x3x24", PAST_5, "i32 2 = 7 7", "i32 1 const = 8"},
     GROUPS},
    {.name = "no_past",
     .inputs =
         {"f32 2x4x48", "f32 2x4x24", "f32 2x4x24", "-", "-", "i32 2 = 3 3", "i32 1 const = 4"},
     GROUPS},
    {.name = "rotary",
     .opset = 1,
     .output_count = 3,
     .inputs = {"f32 2x2x48",
                "f32 2x2x24",
                "f32 2x2x24",
                PAST_5,
                "i32 2 = 6 6",
                "i32 1 const = 7",
                "f32 20x4 range -1 1",
                "f32 20x4 range -1 1"},
     .attrs = "num_heads=6 kv_num_heads=3 do_rotary=1"},
    {.name = "window_and_cap",
     .opset = 1,
     .output_count = 3,
     .inputs = {"f32 2x3x48", "f32 2x3x24", "f32 2x3x24", PAST_5, "i32 2 = 7 7", "i32 1 const = 8"},
     .attrs = "num_heads=6 kv_num_heads=3 local_window_size=3 softcap=2.0f scale=0.5f"},
    {.name = "tables_missing",
     .opset = 1,
     .output_count = 3,
     .inputs = {"f32 2x1x48", "f32 2x1x24", "f32 2x1x24", PAST_5, "i32 2 = 5 5", "i32 1 const = 6"},
     .attrs = "num_heads=6 kv_num_heads=3 do_rotary=1",
     .error = "needs cos_cache"},
};

#define SUITE(type, table, function)               \
  {.op_type = (type),                              \
   .domain = "com.microsoft",                      \
   .cases = (table),                               \
   .case_count = sizeof(table) / sizeof(table)[0], \
   .reference = (function),                        \
   .is_composed = true}

static const om_op_suite suites[] = {
    SUITE("Attention", self_cases, self_attention),
    SUITE("GroupQueryAttention", group_query_cases, group_query),
    SUITE("MultiHeadAttention", multi_head_cases, multi_head),
    SUITE("RotaryEmbedding", rotary_cases, rotary),
};

OM_OP_TESTS(suites)
