/* Random values, and Dropout: RandomUniform, RandomNormal, their Like forms, Bernoulli,
 * Multinomial (docs/exact.md, "Random values").
 *
 * A node's key is its seed or, without one, its name; so a run gives what the run before gave.
 */
#include <inttypes.h>

#include "base/om_thread.h"
#include "cpu/exact/om_random.h"
#include "cpu/exact/om_real.h"
#include "ops/om_rule.h"

enum { OM_RANDOM_GRAIN = 4096 };

typedef struct om_random_params {
  om_random_key key;
  om_dtype dtype; /* OM_DTYPE_NONE: the input's */
  bool is_normal;
  float low, high; /* of RandomNormal: mean and scale */
  om_rule_list shape;
  int64_t sample_size;
} om_random_params;

static om_status resolve_key(om_ctx *ctx, const om_node *node, om_random_key *out) {
  const om_attr *attr = om_node_attr(node, "seed");
  float seed = 0.0f;
  *out = om_random_key_of_name(node->name);
  if (!attr) return OM_OK;
  if (attr->kind == OM_ATTR_INT) { /* Dropout's */
    *out = om_random_key_of_seed((float)attr->i);
    return OM_OK;
  }
  OM_TRY(om_node_attr_float(ctx, node, "seed", 0.0f, &seed));
  *out = om_random_key_of_seed(seed);
  return OM_OK;
}

static om_status resolve_dtype(
    om_ctx *ctx, const om_node *node, int64_t fallback, om_dtype_set allowed, om_dtype *out) {
  int64_t dtype = 0;
  OM_TRY(om_node_attr_int(ctx, node, "dtype", fallback, &dtype));
  *out = (om_dtype)dtype;
  if (dtype == 0 && fallback == 0) return OM_OK;
  if (dtype > 0 && dtype < OM_DTYPE_COUNT && OM_DT(dtype) & allowed) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute dtype is %" PRId64 ".", dtype);
}

/* ---- RandomUniform, RandomNormal ---- */

static om_status resolve_random(om_ctx *ctx, const om_node *node, om_random_params *p) {
  p->is_normal = strncmp(node->type, "RandomNormal", 12) == 0;
  OM_TRY(resolve_key(ctx, node, &p->key));
  OM_TRY(om_node_attr_float(ctx, node, p->is_normal ? "mean" : "low", 0.0f, &p->low));
  return om_node_attr_float(ctx, node, p->is_normal ? "scale" : "high", 1.0f, &p->high);
}

static om_status resolve_shaped(om_ctx *ctx, const om_node *node, void *params) {
  om_random_params *p = params;
  OM_TRY(resolve_dtype(ctx, node, OM_DTYPE_F32, OM_DT_FLOAT, &p->dtype));
  OM_TRY(om_rule_list_attr(ctx, node, "shape", &p->shape));
  if (p->shape.is_given && p->shape.count <= OM_MAX_RANK) return resolve_random(ctx, node, p);
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute shape has %zu extents.", p->shape.count);
}

static om_status resolve_like(om_ctx *ctx, const om_node *node, void *params) {
  om_random_params *p = params;
  OM_TRY(resolve_dtype(ctx, node, 0, OM_DT_FLOAT, &p->dtype));
  return resolve_random(ctx, node, p);
}

static om_status infer_shaped(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  return om_rule_set(ctx, call, 0, p->dtype, (uint32_t)p->shape.count, p->shape.values);
}

static om_status infer_like(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_dtype dtype = p->dtype ? p->dtype : x->dtype;
  if (OM_DT(dtype) & OM_DT_FLOAT) return om_rule_set(ctx, call, 0, dtype, x->rank, x->dims);
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are no random values of %s; the attribute dtype is absent.",
                 om_dtype_name(dtype));
}

static void run_random_range(void *arg, size_t begin, size_t end) {
  const om_op_call *call = arg;
  const om_random_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  const om_real real = om_real_of(y->dtype);
  const double low = (double)p->low;
  const double factor = p->is_normal ? (double)p->high : om_real_round(real, (double)p->high - low);
  for (size_t i = begin; i < end; ++i) {
    const double value = p->is_normal ? om_random_normal(p->key, i, real.is_wide)
                                      : om_random_uniform(p->key, i, real.is_wide);
    om_real_store(y, i, om_real_round(real, low + om_real_round(real, value * factor)));
  }
}

static om_status run_random(om_ctx *ctx, const om_op_call *call) {
  om_op_call copy = *call;
  om_parallel_for(ctx, om_tensor_elems(call->outputs[0]), OM_RANDOM_GRAIN, run_random_range, &copy);
  return OM_OK;
}

/* ---- Bernoulli ---- */

static om_status resolve_bernoulli(om_ctx *ctx, const om_node *node, void *params) {
  om_random_params *p = params;
  OM_TRY(resolve_dtype(ctx, node, 0, OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL), &p->dtype));
  return resolve_key(ctx, node, &p->key);
}

static om_status infer_bernoulli(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  return om_rule_set(ctx, call, 0, p->dtype ? p->dtype : x->dtype, x->rank, x->dims);
}

static om_status run_bernoulli(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_real real = om_real_of(x->dtype);
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const double u = om_random_uniform(p->key, i, real.is_wide);
    om_real_store(call->outputs[0], i, u < om_real_load(x, i) ? 1.0 : 0.0);
  }
  return OM_OK;
}

/* ---- Multinomial ---- */

static om_status resolve_multinomial(om_ctx *ctx, const om_node *node, void *params) {
  om_random_params *p = params;
  const om_dtype_set indices = OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64);
  OM_TRY(resolve_dtype(ctx, node, OM_DTYPE_I32, indices, &p->dtype));
  OM_TRY(om_node_attr_int(ctx, node, "sample_size", 1, &p->sample_size));
  if (p->sample_size >= 0) return resolve_key(ctx, node, &p->key);
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "The attribute sample_size is %" PRId64 ".", p->sample_size);
}

static om_status infer_multinomial(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  if (x->rank != 2 || x->dims[1] < 1) {
    char text[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The input has shape %s; a batch of at least one class is expected.",
                   om_shape_text(text, sizeof text, x->rank, x->dims));
  }
  const int64_t dims[2] = {x->dims[0], p->sample_size};
  return om_rule_set(ctx, call, 0, p->dtype, 2, dims);
}

/* exp(x - largest) of class i. */
static double weight(om_real real, const om_tensor *x, size_t at, double largest) {
  return om_real_exp(real, om_real_round(real, om_real_load(x, at) - largest));
}

static om_status run_multinomial(om_ctx *ctx, const om_op_call *call) {
  const om_random_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_real real = om_real_of(x->dtype);
  const size_t classes = (size_t)x->dims[1];
  const size_t samples = (size_t)p->sample_size;
  for (size_t row = 0; row < (size_t)x->dims[0]; ++row) {
    const size_t first = row * classes;
    double largest = om_real_load(x, first);
    double total = 0.0;
    for (size_t i = 1; i < classes; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      const double value = om_real_load(x, first + i);
      if (value > largest) largest = value;
    }
    for (size_t i = 0; i < classes; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      total = om_real_round(real, total + weight(real, x, first + i, largest));
    }
    for (size_t s = 0; s < samples; ++s) {
      OM_TRY(om_check_cancelled(ctx));
      const double u = om_random_uniform(p->key, row * samples + s, real.is_wide);
      const double limit = om_real_round(real, u * total);
      double sum = 0.0;
      size_t chosen = 0;
      for (; chosen + 1 < classes; ++chosen) {
        sum = om_real_round(real, sum + weight(real, x, first + chosen, largest));
        if (sum > limit) break;
      }
      om_real_store(call->outputs[0], row * samples + s, (double)chosen);
    }
  }
  return OM_OK;
}

/* ---- Dropout ---- */

typedef struct om_dropout_params {
  om_random_key key;
} om_dropout_params;

static om_status resolve_dropout(om_ctx *ctx, const om_node *node, void *params) {
  om_dropout_params *p = params;
  return resolve_key(ctx, node, &p->key);
}

/* The mask was of the input's type before opset 10. */
static om_status infer_dropout(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_dtype mask = call->node->opset < 10 ? x->dtype : OM_DTYPE_BOOL;
  for (uint32_t i = 1; i < call->input_count; ++i) {
    const om_tensor *t = call->inputs[i];
    const om_dtype_set allowed = i == 1 ? OM_DT_FLOAT | OM_DT_FLOAT8 : OM_DT(OM_DTYPE_BOOL);
    if (!t || (om_tensor_elems(t) == 1 && OM_DT(t->dtype) & allowed)) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The %s is no single %s.",
                   i == 1 ? "ratio" : "training_mode",
                   i == 1 ? "float" : "bool");
  }
  OM_TRY(om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims));
  return om_rule_set(ctx, call, 1, mask, x->rank, x->dims);
}

/* Keeps an element where its random value is not below the ratio. */
static om_status drop(om_ctx *ctx, const om_op_call *call, double ratio) {
  const om_dropout_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *mask = om_rule_output(call, 1);
  const om_real real = om_real_of(x->dtype);
  const double scale = om_real_round(real, 1.0 / om_real_round(real, 1.0 - ratio));
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const bool is_kept = om_random_uniform(p->key, i, real.is_wide) >= ratio;
    const double value = is_kept ? om_real_round(real, om_real_load(x, i) * scale) : 0.0;
    if (call->outputs[0]) om_real_store(call->outputs[0], i, value);
    if (mask) om_real_store(mask, i, is_kept ? 1.0 : 0.0);
  }
  return OM_OK;
}

static om_status run_dropout(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *given = om_rule_input(call, 1);
  const om_tensor *training = om_rule_input(call, 2);
  const om_tensor *mask = om_rule_output(call, 1);
  const double ratio = given ? om_real_load(given, 0) : 0.5;
  if (training && *(const uint8_t *)training->data != 0 && ratio != 0.0) {
    if (!(ratio >= 0.0 && ratio < 1.0)) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The ratio is %g; it must be in [0, 1).", ratio);
    }
    return drop(ctx, call, ratio);
  }
  for (size_t i = 0; mask && i < om_tensor_elems(mask); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    om_real_store(mask, i, 1.0);
  }
  if (call->outputs[0]) {
    memcpy(call->outputs[0]->data, x->data, om_tensor_elems(x) * om_rule_elem_bytes(x->dtype));
  }
  return OM_OK;
}

#define OM_RANDOM_ENTRY(name, first, inputs, types, resolve_fn, infer_fn, run_fn) \
  {.domain = "",                                                                  \
   .type = name,                                                                  \
   .first_opset = first,                                                          \
   OM_RULE_COUNTS(inputs, inputs, 1, 1),                                          \
   .dtypes = types,                                                               \
   .params_bytes = sizeof(om_random_params),                                      \
   .is_random = true,                                                             \
   .resolve = resolve_fn,                                                         \
   .infer = infer_fn,                                                             \
   .run = run_fn}
#define OM_DROPOUT_ENTRY(first, last, most_inputs) \
  {.domain = "",                                   \
   .type = "Dropout",                              \
   .first_opset = first,                           \
   .last_opset = last,                             \
   OM_RULE_COUNTS(1, most_inputs, 1, 2),           \
   .dtypes = OM_DT_FLOAT | OM_DT_FLOAT8,           \
   .params_bytes = sizeof(om_dropout_params),      \
   .resolve = resolve_dropout,                     \
   .infer = infer_dropout,                         \
   .run = run_dropout}

const om_op om_ops_random[] = {
    OM_RANDOM_ENTRY("RandomUniform", 1, 0, 0, resolve_shaped, infer_shaped, run_random),
    OM_RANDOM_ENTRY("RandomNormal", 1, 0, 0, resolve_shaped, infer_shaped, run_random),
    OM_RANDOM_ENTRY("RandomUniformLike", 1, 1, OM_DT_ALL, resolve_like, infer_like, run_random),
    OM_RANDOM_ENTRY("RandomNormalLike", 1, 1, OM_DT_ALL, resolve_like, infer_like, run_random),
    OM_RANDOM_ENTRY(
        "Bernoulli", 15, 1, OM_DT_FLOAT, resolve_bernoulli, infer_bernoulli, run_bernoulli),
    OM_RANDOM_ENTRY(
        "Multinomial", 7, 1, OM_DT_FLOAT, resolve_multinomial, infer_multinomial, run_multinomial),
    OM_DROPOUT_ENTRY(1, 11, 1),
    OM_DROPOUT_ENTRY(12, 0, 3),
    {.type = NULL},
};
