/* BatchNormalization: with the statistics that the model brings, or, in training mode, with those
 * of the batch, which it then also works into the running ones. */
#include "ops/op_norm.h"
#include "ops/op_types.h"

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_batch_norm_params *p = params;
  int64_t spatial = 1;
  int64_t training_mode = 0;
  OM_TRY(om_node_attr_float(ctx, node, "epsilon", 1e-5f, &p->epsilon));
  OM_TRY(om_node_attr_float(ctx, node, "momentum", 0.9f, &p->momentum));
  OM_TRY(om_node_attr_int(ctx, node, "training_mode", 0, &training_mode));
  p->is_training = training_mode != 0;
  OM_TRY(om_node_attr_int(ctx, node, "spatial", 1, &spatial));
  if (spatial != 1) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "BatchNormalization with spatial = 0 is not implemented.");
  }
  return OM_OK;
}

/* Outputs 1 and 2, the running mean and variance, are there in training from opset 14 on. */
static om_status infer_statistics(om_ctx *ctx, const om_op_call *call, int64_t channels) {
  const om_batch_norm_params *params = call->params;
  if (params->is_training && call->inputs[0]->dtype == OM_DTYPE_F64) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Training with float64 is not implemented.");
  }
  for (uint32_t i = 1; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    if (!params->is_training || i > 2) {
      return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Output %u is one of training.", i);
    }
    OM_TRY(om_rule_set(ctx, call, i, call->inputs[i + 2]->dtype, 1, &channels));
  }
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *in = call->inputs[0];
  int64_t channels = in->rank > 1 ? in->dims[1] : 1;
  for (uint32_t i = 1; i < 5; ++i) {
    const om_tensor *t = call->inputs[i];
    if (t->rank != 1 || t->dims[0] != channels) {
      char text[OM_SHAPE_TEXT];
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input %u has shape %s, but there are %lld channels.",
                     i,
                     om_shape_text(text, sizeof text, t->rank, t->dims),
                     (long long)channels);
    }
    if (!(OM_DT(t->dtype) & OM_DT_FLOAT)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Input %u is %s, but it must be a float.",
                     i,
                     om_dtype_name(t->dtype));
    }
  }
  OM_TRY(infer_statistics(ctx, call, channels));
  return om_rule_set(ctx, call, 0, in->dtype, in->rank, in->dims);
}

/* The mean and the variance of each channel, float32. */
static size_t scratch_bytes(const om_op_call *call) {
  const om_batch_norm_params *params = call->params;
  return params->is_training ? (size_t)call->inputs[1]->dims[0] * 2 * sizeof(float) : 0;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_batch_norm_params *params = call->params;
  const om_tensor *in = call->inputs[0];
  om_tensor measured[2] = {*call->inputs[3], *call->inputs[4]};
  size_t inner = in->rank > 2 ? om_rule_product(in->dims, 2, in->rank) : 1;
  om_batch_norm_job job = {.epsilon = params->epsilon,
                           .scale = call->inputs[1],
                           .bias = call->inputs[2],
                           .mean = call->inputs[3],
                           .variance = call->inputs[4],
                           .channels = in->rank > 1 ? (size_t)in->dims[1] : 1,
                           .inner = inner,
                           .in = in,
                           .out = call->outputs[0]};
  if (params->is_training) {
    for (size_t i = 0; i < 2; ++i) {
      measured[i].dtype = OM_DTYPE_F32;
      measured[i].data = (float *)call->scratch + i * job.channels;
    }
    om_batch_norm_measure(ctx, in, measured[0].data, measured[1].data);
    job.mean = &measured[0];
    job.variance = &measured[1];
    for (uint32_t i = 1; i <= 2; ++i) {
      om_tensor *out = om_rule_output(call, i);
      if (out) om_batch_norm_update(call->inputs[i + 2], &measured[i - 1], params->momentum, out);
    }
  }
  om_batch_norm_run(ctx, &job);
  return OM_OK;
}

const om_op om_ops_batchnorm[] = {
    {.domain = "",
     .type = "BatchNormalization",
     .first_opset = 1,
     OM_RULE_COUNTS(5, 5, 1, 5),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_batch_norm_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
