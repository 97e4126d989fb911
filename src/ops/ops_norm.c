/* Normalisations: over the last axes (LayerNormalization, RMSNormalization), over the space of a
 * channel (InstanceNormalization), of a group of channels (GroupNormalization), by a norm
 * (LpNormalization), over any axes (MeanVarianceNormalization). */
#include "ops/op_norm.h"
#include "ops/op_types.h"

/* ---- Attributes ---- */

static om_status resolve_last_axes(om_ctx *ctx, const om_node *node, void *params) {
  om_norm_params *p = params;
  p->kind = strcmp(node->type, "RMSNormalization") == 0 ? OM_NORM_ROOT_MEAN : OM_NORM_DEVIATION;
  OM_TRY(om_node_attr_int(ctx, node, "axis", -1, &p->axis));
  return om_node_attr_float(ctx, node, "epsilon", 1e-5f, &p->epsilon);
}

static om_status resolve_channels(om_ctx *ctx, const om_node *node, void *params) {
  om_norm_params *p = params;
  p->kind = OM_NORM_DEVIATION;
  OM_TRY(om_node_attr_float(ctx, node, "epsilon", 1e-5f, &p->epsilon));
  p->scale_is_grouped = node->opset < 21;
  return om_node_attr_int(ctx, node, "num_groups", 0, &p->group_count);
}

static om_status resolve_lp(om_ctx *ctx, const om_node *node, void *params) {
  om_norm_params *p = params;
  int64_t order = 2;
  OM_TRY(om_node_attr_int(ctx, node, "axis", -1, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "p", 2, &order));
  if (order != 1 && order != 2) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute 'p' is %lld, but it must be 1 or 2.",
                   (long long)order);
  }
  p->kind = order == 1 ? OM_NORM_L1 : OM_NORM_L2;
  return OM_OK;
}

static om_status resolve_mean_variance(om_ctx *ctx, const om_node *node, void *params) {
  static const int64_t standard[] = {0, 2, 3};
  om_norm_params *p = params;
  p->kind = OM_NORM_SHARP;
  p->epsilon = 1e-9f;
  OM_TRY(om_rule_list_attr(ctx, node, "axes", &p->axes));
  if (!p->axes.is_given) p->axes = (om_rule_list){standard, OM_COUNT_OF(standard), true};
  return OM_OK;
}

/* ---- Shapes ---- */

static om_status check_length(om_ctx *ctx,
                              const om_op_call *call,
                              uint32_t index,
                              size_t expected) {
  const om_tensor *t = om_rule_input(call, index);
  size_t elems = 0;
  if (!t) return OM_OK;
  if (!om_shape_elems(t->rank, t->dims, &elems) || elems != expected) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input %u has %zu elements, but there must be %zu.",
                   index,
                   elems,
                   expected);
  }
  if (!(OM_DT(t->dtype) & OM_DT_FLOAT)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Input %u is %s, but it must be a float.",
                   index,
                   om_dtype_name(t->dtype));
  }
  return OM_OK;
}

bool om_layer_norm_place(const om_tensor *input,
                         uint32_t axis,
                         const om_tensor *scale,
                         om_norm_place *out_place) {
  uint32_t d = input->rank;
  uint32_t from_inside = 0;
  size_t inner = 1;
  size_t period = 1;
  *out_place = (om_norm_place){1, 0, 1, 1};
  if (scale->rank > input->rank) return false;
#define OM_SCALE_DIM(i) ((i) < scale->rank ? scale->dims[scale->rank - 1 - (i)] : 1)
  for (; d > axis && OM_SCALE_DIM(from_inside) == 1; --d, ++from_inside) {
    inner *= (size_t)input->dims[d - 1];
  }
  for (; d > axis && OM_SCALE_DIM(from_inside) == input->dims[d - 1]; --d, ++from_inside) {
    period *= (size_t)input->dims[d - 1];
  }
  for (; from_inside < scale->rank; ++from_inside) {
    if (OM_SCALE_DIM(from_inside) != 1) return false;
  }
#undef OM_SCALE_DIM
  out_place->inner = inner == 0 ? 1 : inner;
  out_place->period = period == 0 ? 1 : period;
  return true;
}

static om_status infer_last_axes(om_ctx *ctx, const om_op_call *call) {
  const om_norm_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  int64_t dims[OM_MAX_RANK] = {0};
  om_norm_place first = {0};
  om_norm_place other = {0};
  uint32_t axis = 0;
  OM_TRY(om_rule_axis(ctx, params->axis, in->rank, &axis));
  for (uint32_t i = 1; i <= 2; ++i) {
    const om_tensor *t = om_rule_input(call, i);
    if (!t) continue;
    om_norm_place *place = i == 1 ? &first : &other;
    bool fits = om_layer_norm_place(in, axis, t, place);
    if (fits && i == 2) fits = first.inner == other.inner && first.period == other.period;
    if (!fits) {
      char text[OM_SHAPE_TEXT];
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input %u of shape %s does not fit the axes that are normalised.",
                     i,
                     om_shape_text(text, sizeof text, t->rank, t->dims));
    }
    OM_TRY(check_length(ctx, call, i, place->period));
  }
  const om_dtype dtype = params->kind == OM_NORM_ROOT_MEAN ? call->inputs[1]->dtype : in->dtype;
  OM_TRY(om_rule_set(ctx, call, 0, dtype, in->rank, in->dims));
  for (uint32_t d = 0; d < in->rank; ++d) dims[d] = d < axis ? in->dims[d] : 1;
  for (uint32_t i = 1; i < call->output_count; ++i) {
    OM_TRY(om_rule_set(ctx, call, i, OM_DTYPE_F32, in->rank, dims));
  }
  return OM_OK;
}

static om_status check_channels(om_ctx *ctx, const om_tensor *in, uint32_t least_rank) {
  if (in->rank >= least_rank) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input 0 has rank %u, but it must be at least %u.",
                 in->rank,
                 least_rank);
}

static om_status infer_channels(om_ctx *ctx, const om_op_call *call) {
  const om_norm_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  OM_TRY(check_channels(ctx, in, 2));
  bool has_groups = strcmp(call->node->type, "GroupNormalization") == 0;
  size_t length = (size_t)in->dims[1];
  if (has_groups) {
    if (params->group_count <= 0 || in->dims[1] % params->group_count != 0) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "%lld channels do not divide into %lld groups.",
                     (long long)in->dims[1],
                     (long long)params->group_count);
    }
    if (params->scale_is_grouped) length = (size_t)params->group_count;
  }
  OM_TRY(check_length(ctx, call, 1, length));
  OM_TRY(check_length(ctx, call, 2, length));
  return om_rule_set(ctx, call, 0, in->dtype, in->rank, in->dims);
}

static om_status infer_lp(om_ctx *ctx, const om_op_call *call) {
  const om_norm_params *params = call->params;
  uint32_t axis = 0;
  OM_TRY(om_rule_axis(ctx, params->axis, call->inputs[0]->rank, &axis));
  om_copy_type_and_shape(call->inputs[0], call->outputs[0]);
  return OM_OK;
}

static om_status mean_variance_axes(om_ctx *ctx,
                                    const om_norm_params *params,
                                    const om_tensor *in,
                                    uint32_t *out_mask) {
  uint32_t axes[OM_MAX_RANK];
  *out_mask = 0;
  if (params->axes.count > OM_MAX_RANK) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "There are %zu axes, but at most 8.", params->axes.count);
  }
  OM_TRY(om_rule_axes(ctx, params->axes.values, params->axes.count, in->rank, axes));
  for (size_t i = 0; i < params->axes.count; ++i) *out_mask |= 1u << axes[i];
  return OM_OK;
}

static om_status infer_mean_variance(om_ctx *ctx, const om_op_call *call) {
  uint32_t mask = 0;
  OM_TRY(mean_variance_axes(ctx, call->params, call->inputs[0], &mask));
  om_copy_type_and_shape(call->inputs[0], call->outputs[0]);
  return OM_OK;
}

/* ---- CPU ---- */

static om_norm_job job_of(const om_op_call *call) {
  const om_norm_params *params = call->params;
  return (om_norm_job){.kind = params->kind,
                       .epsilon = params->epsilon,
                       .scale = om_rule_input(call, 1),
                       .bias = om_rule_input(call, 2),
                       .place = {1, 0, 1, 1},
                       .in = call->inputs[0]->data,
                       .out = call->outputs[0]->data,
                       .out_dtype = call->outputs[0]->dtype,
                       .mean = om_rule_output(call, 1),
                       .inverse = om_rule_output(call, 2)};
}

static om_status run_last_axes(om_ctx *ctx, const om_op_call *call) {
  const om_norm_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  om_norm_job job = job_of(call);
  uint32_t axis = 0;
  om_rows rows;
  OM_TRY(om_rule_axis(ctx, params->axis, in->rank, &axis));
  if (!om_layer_norm_place(in, axis, call->inputs[1], &job.place)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "The scale's shape was not checked.");
  }
  om_rows_init(&rows, in, ((1u << in->rank) - 1) & ~((1u << axis) - 1));
  om_norm_run(ctx, &rows, &job);
  return OM_OK;
}

/* The groups of channels become an axis of their own. */
void om_channel_norm_rows(const om_norm_params *params,
                          const om_tensor *input,
                          om_rows *out_rows,
                          om_norm_place *out_place) {
  size_t channels = (size_t)input->dims[1];
  bool has_groups = params->group_count > 0;
  size_t groups = has_groups ? (size_t)params->group_count : channels;
  size_t space = om_rule_product(input->dims, 2, input->rank);
  size_t group_channels = groups == 0 ? 1 : channels / groups;
  bool is_by_channel = has_groups && !params->scale_is_grouped;
  om_tensor grouped = {.dtype = input->dtype, .rank = 3};
  grouped.dims[0] = input->dims[0];
  grouped.dims[1] = (int64_t)groups;
  grouped.dims[2] = (int64_t)(group_channels * space);
  out_place->row_period = groups == 0 ? 1 : groups;
  out_place->row_step = is_by_channel ? group_channels : 1;
  out_place->inner = space == 0 ? 1 : space;
  out_place->period = is_by_channel && group_channels > 0 ? group_channels : 1;
  om_rows_init(out_rows, &grouped, 1u << 2);
}

static om_status run_channels(om_ctx *ctx, const om_op_call *call) {
  om_norm_job job = job_of(call);
  om_rows rows;
  om_channel_norm_rows(call->params, call->inputs[0], &rows, &job.place);
  om_norm_run(ctx, &rows, &job);
  return OM_OK;
}

static om_status run_lp(om_ctx *ctx, const om_op_call *call) {
  const om_norm_params *params = call->params;
  om_norm_job job = job_of(call);
  uint32_t axis = 0;
  om_rows rows;
  OM_TRY(om_rule_axis(ctx, params->axis, call->inputs[0]->rank, &axis));
  om_rows_init(&rows, call->inputs[0], 1u << axis);
  om_norm_run(ctx, &rows, &job);
  return OM_OK;
}

static om_status run_mean_variance(om_ctx *ctx, const om_op_call *call) {
  om_norm_job job = job_of(call);
  uint32_t mask = 0;
  om_rows rows;
  OM_TRY(mean_variance_axes(ctx, call->params, call->inputs[0], &mask));
  om_rows_init(&rows, call->inputs[0], mask);
  om_norm_run(ctx, &rows, &job);
  return OM_OK;
}

#define OM_NORM_ENTRY(name, first, least, most, most_outputs, resolve_fn, infer_fn, run_fn) \
  {.domain = "",                                                                            \
   .type = (name),                                                                          \
   .first_opset = (first),                                                                  \
   OM_RULE_COUNTS(least, most, 1, most_outputs),                                            \
   .dtypes = OM_DT_FLOAT,                                                                   \
   .params_bytes = sizeof(om_norm_params),                                                  \
   .resolve = (resolve_fn),                                                                 \
   .infer = (infer_fn),                                                                     \
   .run = (run_fn)}

const om_op om_ops_norm[] = {
    OM_NORM_ENTRY(
        "LayerNormalization", 17, 2, 3, 3, resolve_last_axes, infer_last_axes, run_last_axes),
    OM_NORM_ENTRY(
        "RMSNormalization", 23, 2, 2, 1, resolve_last_axes, infer_last_axes, run_last_axes),
    OM_NORM_ENTRY(
        "InstanceNormalization", 1, 3, 3, 1, resolve_channels, infer_channels, run_channels),
    OM_NORM_ENTRY(
        "GroupNormalization", 18, 3, 3, 1, resolve_channels, infer_channels, run_channels),
    OM_NORM_ENTRY("LpNormalization", 1, 1, 1, 1, resolve_lp, infer_lp, run_lp),
    OM_NORM_ENTRY("MeanVarianceNormalization",
                  9,
                  1,
                  1,
                  1,
                  resolve_mean_variance,
                  infer_mean_variance,
                  run_mean_variance),
    {.type = NULL},
};
