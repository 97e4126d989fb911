/* LSTM, GRU and RNN of float32: the products of all inputs with W, then one dispatch with all steps
 * (recurrent.comp), whose workgroups are the items of the batch in each direction.
 *
 * Weights are constants: they are turned, so that neighbouring invocations read neighbouring gates.
 */
#include "abi/recurrent_inputs_params.h"
#include "abi/recurrent_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_elementwise.h"
#include "ops/op_recurrent.h"

enum {
  MOST_HIDDEN = 1024, /* as recurrent.comp has room for */
  GATES = 4,          /* of an element in memory; those that a kind lacks are 0 */
  VECTORS = 3,        /* of an element: two biases, and peepholes */
  GROUP_THREADS = 256,
};

typedef struct layer {
  const om_recurrent_params *params;
  size_t directions, steps, batch, input, hidden, gates;
} layer;

static layer layer_of(const om_gpu_binder *b) {
  const om_recurrent_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, OM_RECURRENT_X);
  return (layer){.params = params,
                 .directions = params->direction_count,
                 .steps = (size_t)x->dims[params->is_batch_first ? 1 : 0],
                 .batch = (size_t)x->dims[params->is_batch_first ? 0 : 1],
                 .input = (size_t)x->dims[2],
                 .hidden = (size_t)om_gpu_input(b, OM_RECURRENT_R)->dims[2],
                 .gates = om_recurrent_gates(params->kind)};
}

/* ---- Constants ---- */

typedef struct turning { /* [direction, gate * hidden, depth] to [direction, depth, hidden, GATES]
                          */
  size_t directions, gates, hidden, depth;
} turning;

static void fill_turned(om_ctx *ctx, const void *arg, const void *source, void *target) {
  const turning *t = arg;
  float *out = target;
  (void)ctx;
  for (size_t d = 0; d < t->directions; ++d) {
    for (size_t row = 0; row < t->gates * t->hidden; ++row) {
      const size_t from = (d * t->gates * t->hidden + row) * t->depth;
      const size_t to = row % t->hidden * GATES + row / t->hidden;
      for (size_t k = 0; k < t->depth; ++k) {
        out[(d * t->depth + k) * t->hidden * GATES + to] = om_gpu_float_at(source, from + k);
      }
    }
  }
}

static om_gpu_operand turned(om_gpu_binder *b, const layer *l, uint32_t input, size_t depth) {
  static const char *const recipes[] = {
      [OM_RNN] = "turned rnn", [OM_GRU] = "turned gru", [OM_LSTM] = "turned lstm"};
  const turning t = {l->directions, l->gates, l->hidden, depth};
  const uint64_t bytes = (uint64_t)l->directions * depth * l->hidden * GATES * sizeof(float);
  return om_gpu_made_constant(b, input, recipes[l->params->kind], bytes, fill_turned, &t);
}

typedef struct vectors { /* data of inputs; NULL: absent */
  const layer *l;
  const void *bias, *peepholes, *lengths;
} vectors;

static void fill_vectors(om_ctx *ctx, const void *arg, const void *source, void *target) {
  const vectors *v = arg;
  const layer *l = v->l;
  const size_t width = l->gates * l->hidden;
  float *out = target;
  (void)ctx;
  (void)source;
  for (size_t d = 0; d < l->directions; ++d) {
    for (size_t i = 0; v->bias && i < 2 * width; ++i) {
      const size_t element = d * l->hidden + i % l->hidden;
      const size_t at = element * VECTORS + i / width;
      out[at * GATES + i / l->hidden % l->gates] = om_gpu_float_at(v->bias, d * 2 * width + i);
    }
    for (size_t i = 0; v->peepholes && i < 3 * l->hidden; ++i) {
      const size_t element = d * l->hidden + i % l->hidden;
      out[(element * VECTORS + 2) * GATES + i / l->hidden] =
          om_gpu_float_at(v->peepholes, d * 3 * l->hidden + i);
    }
  }
  for (size_t i = 0; v->lengths && i < l->batch; ++i) {
    int32_t length;
    memcpy(&length, (const int32_t *)v->lengths + i, sizeof length);
    out[(l->directions * l->hidden * VECTORS + i) * GATES] = (float)length;
  }
}

static om_gpu_operand make_vectors(om_gpu_binder *b, const layer *l) {
  const vectors v = {.l = l,
                     .bias = om_gpu_data(b, OM_RECURRENT_B),
                     .peepholes = om_gpu_data(b, OM_RECURRENT_P),
                     .lengths = om_gpu_data(b, OM_RECURRENT_LENGTHS)};
  const uint64_t count = (uint64_t)l->directions * l->hidden * VECTORS + l->batch;
  const uint64_t bytes = count * GATES * sizeof(float);
  return om_gpu_made_constant(b, UINT32_MAX, "recurrent vectors", bytes, fill_vectors, &v);
}

/* ---- Checks ---- */

static const char *check_known(const om_gpu_binder *b) {
  static const struct {
    uint32_t input;
    const char *reason;
  } known[] = {
      {OM_RECURRENT_W, "its weights are known at run time only"},
      {OM_RECURRENT_R, "its weights are known at run time only"},
      {OM_RECURRENT_B, "its biases are known at run time only"},
      {OM_RECURRENT_LENGTHS, "its sequence lengths are known at run time only"},
      {OM_RECURRENT_P, "its peepholes are known at run time only"},
  };
  for (size_t i = 0; i < OM_COUNT_OF(known); ++i) {
    const om_tensor *t = om_gpu_input(b, known[i].input);
    if (t && !t->data) return known[i].reason;
  }
  return NULL;
}

static const char *check_sizes(om_gpu_binder *b, const layer *l) {
  const uint64_t each = (uint64_t)l->directions * l->hidden * GATES * sizeof(float);
  const uint64_t limit = om_gpu_binder_limits(b)->max_binding_bytes;
  if (l->hidden > MOST_HIDDEN) {
    return om_gpu_reason(b, "its hidden size is above %u", (unsigned)MOST_HIDDEN);
  }
  if (each * l->steps * l->batch > limit || each * l->input > limit || each * l->hidden > limit) {
    return "its gates or weights are larger than a buffer binding";
  }
  return NULL;
}

/* ---- Dispatches ---- */

static const char *add_inputs(om_gpu_binder *b, const layer *l, om_gpu_operand gates) {
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  const uint64_t elems = (uint64_t)l->directions * l->steps * l->batch * l->hidden;
  const om_gpu_operand operands[] = {
      om_gpu_read(b, OM_RECURRENT_X), turned(b, l, OM_RECURRENT_W, l->input), gates};
  const om_recurrent_inputs_params params = {.elems = (uint32_t)elems,
                                             .rows = (uint32_t)(l->steps * l->batch),
                                             .hidden = (uint32_t)l->hidden,
                                             .depth = (uint32_t)l->input};
  om_gpu_dispatch *d = om_gpu_add_dispatch(
      b, is_exact ? OM_SHADER_RECURRENT_INPUTS_EXACT : OM_SHADER_RECURRENT_INPUTS);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = OM_COUNT_OF(operands);
  d->flops = elems * l->input * GATES * 2;
  om_gpu_spread_groups(b, om_gpu_pieces(elems, GROUP_THREADS), d->groups);
  return NULL;
}

static uint32_t function_of(const om_recurrent_activation *a) {
  static const struct {
    uint8_t number;
    uint32_t function;
  } plain[] = {
      {OM_ELEMENTWISE_Sigmoid, OM_ACTIVATION_SIGMOID},
      {OM_ELEMENTWISE_Tanh, OM_ACTIVATION_TANH},
      {OM_ELEMENTWISE_Relu, OM_ACTIVATION_RELU},
      {OM_ELEMENTWISE_Softsign, OM_ACTIVATION_SOFTSIGN},
      {OM_ELEMENTWISE_Softplus, OM_ACTIVATION_SOFTPLUS},
      {OM_ELEMENTWISE_LeakyRelu, OM_ACTIVATION_LEAKY_RELU},
      {OM_ELEMENTWISE_ThresholdedRelu, OM_ACTIVATION_THRESHOLDED_RELU},
      {OM_ELEMENTWISE_Elu, OM_ACTIVATION_ELU},
      {OM_ELEMENTWISE_HardSigmoid, OM_ACTIVATION_HARD_SIGMOID},
  };
  if (a->form == OM_RECURRENT_AFFINE) return OM_ACTIVATION_AFFINE;
  for (size_t i = 0; a->form == OM_RECURRENT_PLAIN && i < OM_COUNT_OF(plain); ++i) {
    if (plain[i].number == a->number) return plain[i].function;
  }
  return OM_ACTIVATION_SCALED_TANH;
}

static uint32_t flags_of(const om_gpu_binder *b, const layer *l) {
  const om_recurrent_params *p = l->params;
  const struct {
    bool is_set;
    uint32_t flag;
  } all[] = {
      {om_gpu_input(b, OM_RECURRENT_B) != NULL, OM_RECURRENT_HAS_BIAS},
      {om_gpu_input(b, OM_RECURRENT_P) != NULL, OM_RECURRENT_HAS_PEEPHOLES},
      {om_gpu_input(b, OM_RECURRENT_LENGTHS) != NULL, OM_RECURRENT_HAS_LENGTHS},
      {om_gpu_input(b, OM_RECURRENT_H0) != NULL, OM_RECURRENT_HAS_H},
      {om_gpu_input(b, OM_RECURRENT_C0) != NULL, OM_RECURRENT_HAS_C},
      {om_gpu_output(b, 0) != NULL, OM_RECURRENT_WRITES_Y},
      {om_gpu_output(b, 1) != NULL, OM_RECURRENT_WRITES_H},
      {om_gpu_output(b, 2) != NULL, OM_RECURRENT_WRITES_C},
      {p->couples, OM_RECURRENT_COUPLES},
      {p->resets_after, OM_RECURRENT_RESETS_AFTER},
      {p->clips, OM_RECURRENT_CLIPS},
      {p->is_reverse, OM_RECURRENT_IS_REVERSE},
  };
  uint32_t flags = 0;
  for (size_t i = 0; i < OM_COUNT_OF(all); ++i) flags |= all[i].is_set ? all[i].flag : 0;
  return flags;
}

static om_recurrent_steps_params steps_of(const layer *l) {
  const om_recurrent_params *p = l->params;
  const bool batch_first = p->is_batch_first;
  float alphas[2 * OM_RECURRENT_ACTIVATIONS], betas[2 * OM_RECURRENT_ACTIVATIONS];
  om_recurrent_steps_params params = {
      .groups = (uint32_t)(l->directions * l->batch),
      .directions = (uint32_t)l->directions,
      .steps = (uint32_t)l->steps,
      .batch = (uint32_t)l->batch,
      .hidden = (uint32_t)l->hidden,
      .row_step = (uint32_t)(batch_first ? 1 : l->batch),
      .row_batch = (uint32_t)(batch_first ? l->steps : 1),
      .y_step = (uint32_t)(l->directions * l->hidden * (batch_first ? 1 : l->batch)),
      .y_batch = (uint32_t)(l->hidden * (batch_first ? l->steps * l->directions : 1)),
      .state_batch = (uint32_t)(l->hidden * (batch_first ? l->directions : 1)),
      .direction = (uint32_t)(l->hidden * (batch_first ? 1 : l->batch)),
      .clip = p->clip,
  };
  for (size_t i = 0; i < 2 * OM_RECURRENT_ACTIVATIONS; ++i) {
    const om_recurrent_activation *a =
        &p->activations[i / OM_RECURRENT_ACTIVATIONS][i % OM_RECURRENT_ACTIVATIONS];
    alphas[i] = a->scalars[0];
    betas[i] = a->scalars[1];
  }
  memcpy(&params.alpha_0, alphas, sizeof alphas);
  memcpy(&params.beta_0, betas, sizeof betas);
  return params;
}

static om_gpu_operand read_if(om_gpu_binder *b, uint32_t input) {
  return om_gpu_input(b, input) ? om_gpu_read(b, input) : (om_gpu_operand){.kind = OM_GPU_NOTHING};
}

static om_gpu_operand result_or_scratch(om_gpu_binder *b, uint32_t output) {
  return om_gpu_output(b, output) ? om_gpu_write(b, output) : om_gpu_scratch(b, sizeof(float));
}

static const char *add_steps(om_gpu_binder *b, const layer *l, om_gpu_operand gates) {
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  const om_gpu_operand operands[] = {gates,
                                     turned(b, l, OM_RECURRENT_R, l->hidden),
                                     make_vectors(b, l),
                                     read_if(b, OM_RECURRENT_H0),
                                     read_if(b, OM_RECURRENT_C0),
                                     result_or_scratch(b, 0),
                                     result_or_scratch(b, 1),
                                     result_or_scratch(b, 2)};
  const om_recurrent_steps_params params = steps_of(l);
  om_gpu_dispatch *d =
      om_gpu_add_dispatch(b, is_exact ? OM_SHADER_RECURRENT_EXACT : OM_SHADER_RECURRENT);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constants[0] = (uint32_t)l->params->kind;
  d->constants[1] = flags_of(b, l);
  for (uint32_t i = 0; i < 2 * OM_RECURRENT_ACTIVATIONS; ++i) {
    const om_recurrent_activation *a =
        &l->params->activations[i / OM_RECURRENT_ACTIVATIONS][i % OM_RECURRENT_ACTIVATIONS];
    d->constants[2] |= function_of(a) << (4 * i);
  }
  d->constant_count = 3;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = OM_COUNT_OF(operands);
  d->flops = (uint64_t)params.groups * l->steps * l->hidden * l->hidden * GATES * 2;
  om_gpu_spread_groups(b, params.groups, d->groups);
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  if (!om_gpu_output(b, 0) && !om_gpu_output(b, 1) && !om_gpu_output(b, 2)) {
    return "nothing reads its result";
  }
  const layer l = layer_of(b);
  const char *reason = check_known(b);
  if (!reason) reason = check_sizes(b, &l);
  if (reason) return reason;
  const uint64_t rows = (uint64_t)l.steps * l.batch;
  const om_gpu_operand gates =
      om_gpu_scratch(b, l.directions * rows * l.hidden * GATES * sizeof(float));
  reason = add_inputs(b, &l, gates);
  return reason ? reason : add_steps(b, &l, gates);
}

#define OM_GPU_RECURRENT(name)                                                           \
  {.domain = "",                                                                         \
   .type = (name),                                                                       \
   .dtypes = OM_DT(OM_DTYPE_F32),                                                        \
   .has_exact = true,                                                                    \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_FUNCTIONS, \
   .bind = bind}

const om_gpu_op om_gpu_ops_recurrent[] = {
    OM_GPU_RECURRENT("GRU"),
    OM_GPU_RECURRENT("LSTM"),
    OM_GPU_RECURRENT("RNN"),
    {.type = NULL},
};
