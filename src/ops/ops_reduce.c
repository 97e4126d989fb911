/* Reductions, and the places of the largest and smallest. */
#include "ops/op_reduce.h"
#include "ops/op_types.h"

static const struct {
  const char *type;
  om_reduce_kind kind;
} kinds[] = {
    {"ReduceSum", OM_REDUCE_SUM},
    {"ReduceMean", OM_REDUCE_MEAN},
    {"ReduceMax", OM_REDUCE_MAX},
    {"ReduceMin", OM_REDUCE_MIN},
    {"ReduceProd", OM_REDUCE_PROD},
    {"ReduceL1", OM_REDUCE_L1},
    {"ReduceL2", OM_REDUCE_L2},
    {"ReduceSumSquare", OM_REDUCE_SUM_SQUARE},
    {"ReduceLogSum", OM_REDUCE_LOG_SUM},
    {"ReduceLogSumExp", OM_REDUCE_LOG_SUM_EXP},
};

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_reduce_params *p = params;
  int64_t keeps_dims = 1;
  int64_t empty_is_none = 0;
  for (size_t i = 0; i < OM_COUNT_OF(kinds); ++i) {
    if (strcmp(kinds[i].type, node->type) == 0) p->kind = kinds[i].kind;
  }
  OM_TRY(om_node_attr_int(ctx, node, "keepdims", 1, &keeps_dims));
  OM_TRY(om_node_attr_int(ctx, node, "noop_with_empty_axes", 0, &empty_is_none));
  p->keeps_dims = keeps_dims != 0;
  p->empty_is_none = empty_is_none != 0;
  return om_rule_list_attr(ctx, node, "axes", &p->axes);
}

om_status om_reduce_axes(om_ctx *ctx,
                         const om_reduce_params *params,
                         const om_tensor *input,
                         const om_tensor *axes,
                         uint32_t *out_mask) {
  int64_t values[OM_MAX_RANK];
  uint32_t normal[OM_MAX_RANK];
  uint32_t count = 0;
  *out_mask = 0;
  if (axes) {
    OM_TRY(om_rule_ints(ctx, axes, "axes", OM_MAX_RANK, values, &count));
    OM_TRY(om_rule_axes(ctx, values, count, input->rank, normal));
  } else if (params->axes.is_given) {
    if (params->axes.count > OM_MAX_RANK) {
      return OM_FAIL(
          ctx, OM_E_INVALID_MODEL, "There are %zu axes, but at most 8.", params->axes.count);
    }
    count = (uint32_t)params->axes.count;
    OM_TRY(om_rule_axes(ctx, params->axes.values, count, input->rank, normal));
  }
  for (uint32_t i = 0; i < count; ++i) *out_mask |= 1u << normal[i];
  if (count == 0) *out_mask = params->empty_is_none ? OM_REDUCE_NOTHING : (1u << input->rank) - 1;
  return OM_OK;
}

/* The result's shape: reduced axes become 1 or vanish. */
static om_status set_shape(
    om_ctx *ctx, const om_op_call *call, om_dtype dtype, uint32_t mask, bool keeps_dims) {
  const om_tensor *in = call->inputs[0];
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  for (uint32_t d = 0; d < in->rank; ++d) {
    bool is_reduced = (mask & (1u << d)) != 0;
    if (is_reduced && !keeps_dims) continue;
    dims[rank++] = is_reduced ? 1 : in->dims[d];
  }
  return om_rule_set(ctx, call, 0, dtype, rank, dims);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_reduce_params *params = call->params;
  const om_tensor *axes = om_rule_input(call, 1);
  uint32_t mask = 0;
  if (axes) {
    OM_TRY(om_rule_check_list(ctx, axes, "axes", OM_MAX_RANK));
    if (!om_rule_is_known(axes)) {
      om_rule_set_unknown(call, 0, call->inputs[0]->dtype);
      return OM_OK;
    }
  }
  OM_TRY(om_reduce_axes(ctx, params, call->inputs[0], axes, &mask));
  bool is_nothing = (mask & OM_REDUCE_NOTHING) != 0;
  return set_shape(ctx, call, call->inputs[0]->dtype, is_nothing ? 0 : mask, params->keeps_dims);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_reduce_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  uint32_t mask = 0;
  om_rows rows;
  OM_TRY(om_reduce_axes(ctx, params, in, om_rule_input(call, 1), &mask));
  if (mask & OM_REDUCE_NOTHING) {
    size_t bytes = 0;
    if (om_shape_bytes(in->dtype, in->rank, in->dims, &bytes) && bytes > 0) {
      memcpy(call->outputs[0]->data, in->data, bytes);
    }
    return OM_OK;
  }
  om_rows_init(&rows, in, mask);
  om_reduce_run(ctx, &rows, params->kind, in->data, call->outputs[0]->data);
  return OM_OK;
}

/* ---- ArgMax, ArgMin ---- */

static om_status resolve_arg(om_ctx *ctx, const om_node *node, void *params) {
  om_arg_params *p = params;
  int64_t keeps_dims = 1;
  int64_t wants_last = 0;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "keepdims", 1, &keeps_dims));
  OM_TRY(om_node_attr_int(ctx, node, "select_last_index", 0, &wants_last));
  p->keeps_dims = keeps_dims != 0;
  p->job.wants_last = wants_last != 0;
  p->job.wants_largest = strcmp(node->type, "ArgMax") == 0;
  return OM_OK;
}

static om_status infer_arg(om_ctx *ctx, const om_op_call *call) {
  const om_arg_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  uint32_t axis = 0;
  OM_TRY(om_rule_axis(ctx, params->axis, in->rank, &axis));
  OM_TRY(set_shape(ctx, call, OM_DTYPE_I64, 1u << axis, params->keeps_dims));
  if (in->dims[axis] == 0 && om_rule_product(in->dims, 0, axis) > 0 &&
      om_rule_product(in->dims, axis + 1, in->rank) > 0) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Axis %u has no elements to choose from.", axis);
  }
  return OM_OK;
}

static om_status run_arg(om_ctx *ctx, const om_op_call *call) {
  const om_arg_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  uint32_t axis = 0;
  om_rows rows;
  OM_TRY(om_rule_axis(ctx, params->axis, in->rank, &axis));
  om_rows_init(&rows, in, 1u << axis);
  om_arg_run(ctx, &rows, &params->job, in->data, call->outputs[0]->data);
  return OM_OK;
}

/* ---- Entries ---- */

#define OM_REDUCTION(name, set)              \
  {.domain = "",                             \
   .type = (name),                           \
   .first_opset = 1,                         \
   OM_RULE_COUNTS(1, 2, 1, 1),               \
   .dtypes = (set),                          \
   .params_bytes = sizeof(om_reduce_params), \
   .resolve = resolve,                       \
   .infer = infer,                           \
   .run = run}
#define OM_ARG(name)                      \
  {.domain = "",                          \
   .type = (name),                        \
   .first_opset = 1,                      \
   OM_RULE_COUNTS(1, 1, 1, 1),            \
   .dtypes = OM_DT_NUMBER,                \
   .params_bytes = sizeof(om_arg_params), \
   .resolve = resolve_arg,                \
   .infer = infer_arg,                    \
   .run = run_arg}

const om_op om_ops_reduce[] = {
    OM_REDUCTION("ReduceSum", OM_DT_NUMBER),
    OM_REDUCTION("ReduceMean", OM_DT_NUMBER),
    OM_REDUCTION("ReduceMax", OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL)),
    OM_REDUCTION("ReduceMin", OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL)),
    OM_REDUCTION("ReduceProd", OM_DT_NUMBER),
    OM_REDUCTION("ReduceL1", OM_DT_NUMBER),
    OM_REDUCTION("ReduceL2", OM_DT_NUMBER),
    OM_REDUCTION("ReduceSumSquare", OM_DT_NUMBER),
    OM_REDUCTION("ReduceLogSum", OM_DT_NUMBER),
    OM_REDUCTION("ReduceLogSumExp", OM_DT_NUMBER),
    OM_ARG("ArgMax"),
    OM_ARG("ArgMin"),
    {.type = NULL},
};
