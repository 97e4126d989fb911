/* RNN, GRU and LSTM: a plain reading of ONNX's equations, one element at a time. */
#include <math.h>
#include <stdio.h>

#include "harness/om_test.h"

enum { MAX_HIDDEN = 32, X = 0, W, R, B, LENGTHS, H0, C0, P };

typedef struct layer {
  const om_node *node;
  const om_ref_tensor *in;
  size_t in_count, direction, gates;
  size_t steps, batch, input, hidden, directions;
  bool is_batch_first;
  double h[MAX_HIDDEN], c[MAX_HIDDEN];
} layer;

static const om_ref_tensor *operand(const layer *l, size_t index) {
  return index < l->in_count && l->in[index].values ? &l->in[index] : NULL;
}

static const om_attr *list(const om_node *node, const char *name) {
  return om_node_attr(node, name);
}

/* The value of activation_alpha or _beta that belongs to the activation at `index`: those before
 * it have taken theirs. */
static double parameter(const layer *l, const char *name, size_t index, bool is_beta) {
  static const char *const takers[] = {
      "LeakyRelu", "ThresholdedRelu", "Elu", "HardSigmoid", "Affine", "ScaledTanh"};
  static const double alphas[] = {(double)0.01f, 1.0, 1.0, (double)0.2f, 1.0, 1.0};
  static const double betas[] = {0.0, 0.0, 0.0, 0.5, 0.0, 1.0};
  const om_attr *names = list(l->node, "activations");
  const om_attr *values = list(l->node, is_beta ? "activation_beta" : "activation_alpha");
  size_t used = 0;
  for (size_t i = 0; names && i < index; ++i) {
    for (size_t k = is_beta ? 3 : 0; k < 6; ++k) used += om_string_is(names->strings[i], takers[k]);
  }
  if (values && used < values->count) return (double)values->floats[used];
  for (size_t k = 0; k < 6; ++k) {
    if (strcmp(name, takers[k]) == 0) return is_beta ? betas[k] : alphas[k];
  }
  return 0.0;
}

static double function(const layer *l, size_t which, double x) {
  const om_attr *names = list(l->node, "activations");
  const size_t each = l->gates == 1 ? 1 : l->gates - 1;
  const size_t index = l->direction * each + which;
  const double clip = om_ref_float(l->node, "clip", INFINITY);
  char name[20] = "Tanh";
  if (l->gates > 1 && which == 0) strcpy(name, "Sigmoid");
  if (names) snprintf(name, sizeof name, "%s", names->strings[index].data);
  const double alpha = parameter(l, name, index, false);
  const double beta = parameter(l, name, index, true);
  x = fmin(fmax(x, -clip), clip);
  if (strcmp(name, "Sigmoid") == 0) return 1.0 / (1.0 + exp(-x));
  if (strcmp(name, "Relu") == 0) return fmax(x, 0.0);
  if (strcmp(name, "Softsign") == 0) return x / (1.0 + fabs(x));
  if (strcmp(name, "Softplus") == 0) return log1p(exp(x));
  if (strcmp(name, "LeakyRelu") == 0) return x < 0.0 ? alpha * x : x;
  if (strcmp(name, "ThresholdedRelu") == 0) return x > alpha ? x : 0.0;
  if (strcmp(name, "Elu") == 0) return x < 0.0 ? alpha * expm1(x) : x;
  if (strcmp(name, "HardSigmoid") == 0) return fmax(0.0, fmin(1.0, alpha * x + beta));
  if (strcmp(name, "Affine") == 0) return alpha * x + beta;
  if (strcmp(name, "ScaledTanh") == 0) return alpha * tanh(beta * x);
  return tanh(x);
}

/* Biases of W and of R for a gate's element. */
static double bias(const layer *l, size_t gate, size_t j, bool is_of_r) {
  const om_ref_tensor *b = operand(l, B);
  const size_t width = l->gates * l->hidden;
  return b ? b->values[l->direction * 2 * width + (is_of_r ? width : 0) + gate * l->hidden + j]
           : 0.0;
}

static double from_input(const layer *l, size_t gate, size_t j, const double *x) {
  const double *w = l->in[W].values + ((l->direction * l->gates + gate) * l->hidden + j) * l->input;
  double sum = bias(l, gate, j, false);
  for (size_t k = 0; k < l->input; ++k) sum += w[k] * x[k];
  return sum;
}

static double from_state(const layer *l, size_t gate, size_t j, const double *h) {
  const double *r =
      l->in[R].values + ((l->direction * l->gates + gate) * l->hidden + j) * l->hidden;
  double sum = bias(l, gate, j, true);
  for (size_t k = 0; k < l->hidden; ++k) sum += r[k] * h[k];
  return sum;
}

static double peephole(const layer *l, size_t gate, size_t j, double c) {
  const om_ref_tensor *p = operand(l, P);
  return p ? p->values[(l->direction * 3 + gate) * l->hidden + j] * c : 0.0;
}

static void step_lstm(layer *l, const double *x) {
  double h[MAX_HIDDEN];
  for (size_t j = 0; j < l->hidden; ++j) {
    const double old = l->c[j];
    const double i =
        function(l, 0, from_input(l, 0, j, x) + from_state(l, 0, j, l->h) + peephole(l, 0, j, old));
    double f =
        function(l, 0, from_input(l, 2, j, x) + from_state(l, 2, j, l->h) + peephole(l, 2, j, old));
    if (om_ref_int(l->node, "input_forget", 0)) f = 1.0 - i;
    const double g = function(l, 1, from_input(l, 3, j, x) + from_state(l, 3, j, l->h));
    l->c[j] = f * old + i * g;
    const double o = function(
        l, 0, from_input(l, 1, j, x) + from_state(l, 1, j, l->h) + peephole(l, 1, j, l->c[j]));
    h[j] = o * function(l, 2, l->c[j]);
  }
  memcpy(l->h, h, sizeof h);
}

static void step_gru(layer *l, const double *x) {
  double h[MAX_HIDDEN], z[MAX_HIDDEN], r[MAX_HIDDEN], reset[MAX_HIDDEN];
  const bool is_after = om_ref_int(l->node, "linear_before_reset", 0) != 0;
  for (size_t j = 0; j < l->hidden; ++j) {
    z[j] = function(l, 0, from_input(l, 0, j, x) + from_state(l, 0, j, l->h));
    r[j] = function(l, 0, from_input(l, 1, j, x) + from_state(l, 1, j, l->h));
    reset[j] = r[j] * l->h[j];
  }
  for (size_t j = 0; j < l->hidden; ++j) {
    const double u = is_after ? r[j] * from_state(l, 2, j, l->h) : from_state(l, 2, j, reset);
    const double n = function(l, 1, from_input(l, 2, j, x) + u);
    h[j] = (1.0 - z[j]) * n + z[j] * l->h[j];
  }
  memcpy(l->h, h, sizeof h);
}

static void step_rnn(layer *l, const double *x) {
  double h[MAX_HIDDEN];
  for (size_t j = 0; j < l->hidden; ++j) {
    h[j] = function(l, 0, from_input(l, 0, j, x) + from_state(l, 0, j, l->h));
  }
  memcpy(l->h, h, sizeof h);
}

static size_t state_at(const layer *l, size_t item) {
  return (l->is_batch_first ? item * l->directions + l->direction
                            : l->direction * l->batch + item) *
         l->hidden;
}

static void run_item(layer *l, size_t item, om_ref_tensor *outputs, size_t output_count) {
  const om_ref_tensor *lengths = operand(l, LENGTHS);
  const size_t length = lengths ? (size_t)lengths->values[item] : l->steps;
  const bool is_reverse =
      l->direction == 1 || om_ref_text_is(l->node, "direction", "forward", "reverse");
  const size_t state = state_at(l, item);
  for (size_t j = 0; j < l->hidden; ++j) {
    l->h[j] = operand(l, H0) ? l->in[H0].values[state + j] : 0.0;
    l->c[j] = operand(l, C0) ? l->in[C0].values[state + j] : 0.0;
  }
  for (size_t t = 0; t < length; ++t) {
    const size_t at = is_reverse ? length - 1 - t : t;
    const size_t row = l->is_batch_first ? item * l->steps + at : at * l->batch + item;
    const double *x = l->in[X].values + row * l->input;
    if (l->gates == 4) step_lstm(l, x);
    if (l->gates == 3) step_gru(l, x);
    if (l->gates == 1) step_rnn(l, x);
    const size_t y = l->is_batch_first
                         ? (row * l->directions + l->direction) * l->hidden
                         : ((at * l->directions + l->direction) * l->batch + item) * l->hidden;
    if (outputs[0].values) memcpy(outputs[0].values + y, l->h, l->hidden * sizeof(double));
  }
  if (output_count > 1 && outputs[1].values) {
    memcpy(outputs[1].values + state, l->h, l->hidden * sizeof(double));
  }
  if (output_count > 2 && outputs[2].values) {
    memcpy(outputs[2].values + state, l->c, l->hidden * sizeof(double));
  }
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  layer l = {.node = node, .in = inputs, .in_count = input_count};
  l.is_batch_first = om_ref_int(node, "layout", 0) == 1;
  l.steps = (size_t)inputs[X].dims[l.is_batch_first ? 1 : 0];
  l.batch = (size_t)inputs[X].dims[l.is_batch_first ? 0 : 1];
  l.input = (size_t)inputs[X].dims[2];
  l.directions = (size_t)inputs[R].dims[0];
  l.hidden = (size_t)inputs[R].dims[2];
  l.gates = strcmp(node->type, "LSTM") == 0 ? 4 : strcmp(node->type, "GRU") == 0 ? 3 : 1;
  if (outputs[0].values) memset(outputs[0].values, 0, outputs[0].elems * sizeof(double));
  for (l.direction = 0; l.direction < l.directions; ++l.direction) {
    for (size_t item = 0; item < l.batch; ++item) run_item(&l, item, outputs, output_count);
  }
}

static const om_op_case lstm_cases[] = {
    {.name = "weights_at_run_time",
     .inputs = {"f32 2x1x3", "f32 1x16x3", "f32 1x16x4 const"},
     .declined = "its weights are known at run time only"},
    {.name = "state_weights_at_run_time",
     .inputs = {"f32 2x1x3", "f32 1x16x3 const", "f32 1x16x4"},
     .declined = "its weights are known at run time only"},
    {.name = "biases_at_run_time",
     .inputs = {"f32 2x1x3", "f32 1x16x3 const", "f32 1x16x4 const", "f32 1x32"},
     .declined = "its biases are known at run time only"},
    {.name = "lengths_at_run_time",
     .inputs = {"f32 2x1x3", "f32 1x16x3 const", "f32 1x16x4 const", "-", "i32 1 = 1"},
     .declined = "its sequence lengths are known at run time only"},
    {.name = "peepholes_at_run_time",
     .inputs =
         {"f32 2x1x3", "f32 1x16x3 const", "f32 1x16x4 const", "-", "-", "-", "-", "f32 1x12"},
     .declined = "its peepholes are known at run time only"},
    {.name = "plain",
     .inputs = {"f32 5x3x7", "f32 1x20x7 const range -1 1", "f32 1x20x5 const range -1 1"},
     .attrs = "hidden_size=5",
     .output_count = 3,
     .shapes = {"5x1x3x5", "1x3x5", "1x3x5"}},
    {.name = "bias_states",
     .inputs = {"f32 4x2x3",
                "f32 1x16x3 const range -1 1",
                "f32 1x16x4 const range -1 1",
                "f32 1x32 const",
                "-",
                "f32 1x2x4",
                "f32 1x2x4"},
     .attrs = "hidden_size=4",
     .output_count = 3},
    {.name = "peepholes",
     .inputs = {"f32 4x2x3",
                "f32 1x16x3 const",
                "f32 1x16x4 const",
                "f32 1x32 const",
                "-",
                "-",
                "-",
                "f32 1x12 const"},
     .attrs = "hidden_size=4",
     .output_count = 3},
    {.name = "bidirectional",
     .inputs = {"f32 4x3x5",
                "f32 2x24x5 const range -1 1",
                "f32 2x24x6 const range -1 1",
                "f32 2x48 const",
                "i32 3 const = 4 2 0",
                "f32 2x3x6",
                "f32 2x3x6",
                "f32 2x18 const"},
     .attrs = "hidden_size=6 direction=\"bidirectional\"",
     .output_count = 3},
    {.name = "reverse_lens",
     .inputs = {"f32 4x3x5",
                "f32 1x24x5 const",
                "f32 1x24x6 const",
                "f32 1x48 const",
                "i32 3 const = 1 4 3"},
     .attrs = "direction=\"reverse\"",
     .output_count = 3},
    {.name = "layout_1",
     .inputs = {"f32 3x4x5",
                "f32 2x24x5 const",
                "f32 2x24x6 const",
                "f32 2x48 const",
                "i32 3 const = 4 1 2",
                "f32 3x2x6",
                "f32 3x2x6"},
     .attrs = "layout=1 direction=\"bidirectional\"",
     .output_count = 3,
     .shapes = {"3x4x2x6", "3x2x6", "3x2x6"}},
    {.name = "clip",
     .inputs = {"f32 4x2x3", "f32 1x16x3 const", "f32 1x16x4 const", "f32 1x32 const"},
     .attrs = "clip=0.5f",
     .output_count = 3},
    {.name = "input_forget",
     .inputs = {"f32 4x2x3", "f32 1x16x3 const", "f32 1x16x4 const", "f32 1x32 const"},
     .attrs = "input_forget=1",
     .output_count = 3},
    {.name = "activations",
     .inputs = {"f32 3x2x3", "f32 2x16x3 const", "f32 2x16x4 const", "f32 2x32 const"},
     .attrs = "direction=\"bidirectional\" activations=\"HardSigmoid\",\"Softsign\",\"ScaledTanh\","
              "\"Sigmoid\",\"Affine\",\"Softplus\" activation_alpha=0.3f,0.7f,1.5f "
              "activation_beta=0.4f,1.25f,-0.5f",
     .output_count = 3},
    {.name = "more_activations",
     .inputs = {"f32 3x2x3", "f32 2x16x3 const", "f32 2x16x4 const", "f32 2x32 const"},
     .attrs =
         "direction=\"bidirectional\" activations=\"Sigmoid\",\"LeakyRelu\",\"ThresholdedRelu\","
         "\"HardSigmoid\",\"Elu\",\"Relu\" activation_alpha=[0.125f]",
     .output_count = 3},
    {.name = "wide",
     .inputs = {"f32 2x3x300", "f32 1x128x300 const range -0.1 0.1", "f32 1x128x32 const"},
     .output_count = 3,
     .scaled_error = 4e-6},
    {.name = "last_alone",
     .inputs = {"f32 1x2x3", "f32 1x8x3 const", "f32 1x8x2 const"},
     .graph = "\"\", y0 = LSTM(x0, x1, x2)"},
    {.name = "no_steps",
     .inputs =
         {"f32 0x2x3", "f32 1x8x3 const", "f32 1x8x2 const", "-", "-", "f32 1x2x2", "f32 1x2x2"},
     .output_count = 3,
     .declined = "empty"},
    {.name = "no_batch",
     .inputs = {"f32 3x0x3", "f32 1x8x3 const", "f32 1x8x2 const"},
     .output_count = 3,
     .declined = "empty"},
    {.name = "f64",
     .inputs = {"f64 3x2x3", "f64 1x16x3", "f64 1x16x4", "f64 1x32", "-", "-", "-", "f64 1x12"},
     .attrs = "clip=2.5f",
     .output_count = 3,
     .declined = "no kernel for"},
    {.name = "f16",
     .inputs = {"f16 3x2x3", "f16 1x16x3", "f16 1x16x4", "f16 1x32", "i32 2 = 2 3"},
     .output_count = 3,
     .declined = "no kernel for"},
    {.name = "bf16",
     .opset = 22,
     .inputs = {"bf16 3x2x3", "bf16 1x16x3", "bf16 1x16x4"},
     .output_count = 3,
     .declined = "no kernel for"},
    {.name = "opset_7",
     .opset = 7,
     .inputs = {"f32 3x2x3", "f32 1x16x3 const", "f32 1x16x4 const"},
     .attrs = "hidden_size=4",
     .output_count = 3},
    {.name = "rank", .inputs = {"f32 3x2", "f32 1x16x3", "f32 1x16x4"}, .error = "rank"},
    {.name = "hidden",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "hidden_size=3",
     .error = "hidden size of 3"},
    {.name = "weights", .inputs = {"f32 3x2x3", "f32 1x12x3", "f32 1x16x4"}, .error = "Input 1"},
    {.name = "length",
     .inputs = {"f32 3x2x3", "f32 1x16x3 const", "f32 1x16x4 const", "-", "i32 2 = 3 4"},
     .error = "there are 3 steps",
     .declined = "its sequence lengths are known at run time only"},
    {.name = "known_length",
     .inputs = {"f32 3x2x3", "f32 1x16x3 const", "f32 1x16x4 const", "-", "i32 2 const = 3 4"},
     .error = "there are 3 steps"},
    {.name = "activation",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "activations=\"Sigmoid\",\"Tanh\",\"Cube\"",
     .error = "Cube"},
    {.name = "activation_count",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "activations=\"Sigmoid\",\"Tanh\"",
     .error = "3 names"},
    {.name = "alpha",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "activation_alpha=1,2",
     .error = "list of floats"},
    {.name = "direction",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "direction=\"up\"",
     .error = "direction"},
    {.name = "layout",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "layout=2",
     .error = "layout"},
    {.name = "negative_clip",
     .inputs = {"f32 3x2x3", "f32 1x16x3", "f32 1x16x4"},
     .attrs = "clip=-1.0f",
     .error = "clip"},
};

static const om_op_case gru_cases[] = {
    {.name = "plain",
     .inputs = {"f32 5x3x7", "f32 1x15x7 const range -1 1", "f32 1x15x5 const range -1 1"},
     .attrs = "hidden_size=5",
     .output_count = 2,
     .shapes = {"5x1x3x5", "1x3x5"}},
    {.name = "after",
     .inputs =
         {"f32 5x3x7", "f32 1x15x7 const", "f32 1x15x5 const", "f32 1x30 const", "-", "f32 1x3x5"},
     .attrs = "linear_before_reset=1",
     .output_count = 2},
    {.name = "before",
     .inputs =
         {"f32 5x3x7", "f32 1x15x7 const", "f32 1x15x5 const", "f32 1x30 const", "-", "f32 1x3x5"},
     .output_count = 2},
    {.name = "bidirectional",
     .inputs = {"f32 4x3x5",
                "f32 2x18x5 const",
                "f32 2x18x6 const",
                "f32 2x36 const",
                "i32 3 const = 4 0 3",
                "f32 2x3x6"},
     .attrs = "direction=\"bidirectional\" clip=1.5f",
     .output_count = 2},
    {.name = "bidirectional_after",
     .inputs = {"f32 3x4x5",
                "f32 2x18x5 const",
                "f32 2x18x6 const",
                "f32 2x36 const",
                "i32 3 const = 4 0 3",
                "f32 3x2x6"},
     .attrs = "direction=\"bidirectional\" linear_before_reset=1 layout=1",
     .output_count = 2},
    {.name = "activations",
     .inputs = {"f32 3x2x3", "f32 1x12x3 const", "f32 1x12x4 const", "f32 1x24 const"},
     .attrs = "activations=\"HardSigmoid\",\"Relu\"",
     .output_count = 2},
    {.name = "f64",
     .inputs = {"f64 3x2x3", "f64 1x12x3", "f64 1x12x4", "f64 1x24"},
     .output_count = 2,
     .declined = "no kernel for"},
    {.name = "f16",
     .inputs = {"f16 3x2x3", "f16 1x12x3", "f16 1x12x4", "f16 1x24"},
     .attrs = "linear_before_reset=1",
     .output_count = 2,
     .declined = "no kernel for"},
    {.name = "bias",
     .inputs = {"f32 3x2x3", "f32 1x12x3", "f32 1x12x4", "f32 1x12"},
     .error = "Input 3"},
};

static const om_op_case rnn_cases[] = {
    {.name = "plain",
     .inputs = {"f32 5x3x7", "f32 1x5x7 const", "f32 1x5x5 const"},
     .attrs = "hidden_size=5",
     .output_count = 2,
     .scaled_error = 2e-6},
    {.name = "bias",
     .inputs = {"f32 5x3x7",
                "f32 1x5x7 const range -1 1",
                "f32 1x5x5 const range -1 1",
                "f32 1x10 const"},
     .output_count = 2},
    {.name = "bidirectional",
     .inputs = {"f32 4x3x5",
                "f32 2x6x5 const range -1 1",
                "f32 2x6x6 const range -1 1",
                "f32 2x12 const",
                "i32 3 const = 4 2 1",
                "f32 2x3x6"},
     .attrs = "direction=\"bidirectional\" activations=\"Relu\",\"Tanh\"",
     .output_count = 2},
    {.name = "f64",
     .inputs = {"f64 3x2x3", "f64 1x4x3", "f64 1x4x4", "f64 1x8"},
     .attrs = "activations=[\"Affine\"] activation_alpha=[0.5f] activation_beta=[0.25f]",
     .output_count = 2,
     .declined = "no kernel for"},
    {.name = "bf16",
     .opset = 22,
     .inputs = {"bf16 3x2x3", "bf16 1x4x3", "bf16 1x4x4"},
     .output_count = 2,
     .declined = "no kernel for"},
    {.name = "one",
     .inputs = {"f32 1x1x1", "f32 1x1x1 const", "f32 1x1x1 const"},
     .output_count = 2},
};

/* Too wide for the reference: executors are compared with one another. */
static const om_op_case wide_cases[] = {
    {.name = "lines",
     .inputs = {"f32 3x2x70",
                "f32 2x1200x70 const range -0.1 0.1",
                "f32 2x1200x300 const range -0.06 0.06",
                "f32 2x2400 const"},
     .attrs = "direction=\"bidirectional\"",
     .output_count = 3,
     .scaled_error = 4e-6},
    {.name = "too_wide",
     .inputs = {"f32 1x1x1", "f32 1x4100x1 const", "f32 1x4100x1025 const"},
     .declined = "hidden size is above 1024"},
};

#define OM_RECURRENT_SUITE(type, table)              \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = reference}

static const om_op_suite suites[] = {
    OM_RECURRENT_SUITE("LSTM", lstm_cases),
    OM_RECURRENT_SUITE("GRU", gru_cases),
    OM_RECURRENT_SUITE("RNN", rnn_cases),
    OM_OP_SUITE("LSTM", wide_cases, NULL),
};

OM_OP_TESTS(suites)
