/* Operator calls on the CPU: see om_call.h. */
#include "session/om_call.h"

static om_status named(om_ctx *ctx, const om_op_call *call, om_status st) {
  /* Names of many bodies around a place would push out what was found there. */
  bool has_room = strlen(ctx->error->message) < OM_MAX_MESSAGE / 2;
  if (st != OM_OK && st != OM_E_OUT_OF_MEMORY && has_room) {
    om_error_prefix(ctx, "Node '%s' (%s)", call->node->name, call->node->type);
  }
  return st;
}

static om_status check_first_input(om_ctx *ctx, const om_op_call *call) {
  const om_op *op = call->node->op;
  if (op->dtypes == 0 || call->input_count == 0 || !call->inputs[0]) return OM_OK;
  om_dtype dtype = call->inputs[0]->dtype;
  if ((unsigned)dtype < 32 && (op->dtypes & OM_DT(dtype)) != 0) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_UNSUPPORTED, "There is no kernel for an input of type %s.", om_dtype_name(dtype));
}

static om_status check_results(om_ctx *ctx, const om_op_call *call) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    const om_tensor *out = call->outputs[i];
    size_t bytes;
    if (!out || out->rank == OM_RANK_UNKNOWN) continue;
    if (out->rank > OM_MAX_RANK) {
      return OM_FAIL(ctx,
                     OM_E_UNSUPPORTED,
                     "Its result has rank %u, above the limit of %d.",
                     out->rank,
                     OM_MAX_RANK);
    }
    if (!om_shape_bytes(out->dtype, out->rank, out->dims, &bytes)) {
      char shape[OM_SHAPE_TEXT];
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "The size of its result of shape %s overflows.",
                     om_shape_text(shape, sizeof shape, out->rank, out->dims));
    }
  }
  return OM_OK;
}

om_status om_call_infer(om_ctx *ctx, const om_op_call *call) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (call->outputs[i]) call->outputs[i]->data_bytes = 0;
  }
  om_status st = check_first_input(ctx, call);
  if (st == OM_OK) st = call->node->op->infer(ctx, call);
  if (st == OM_OK) st = check_results(ctx, call);
  return named(ctx, call, st);
}

om_status om_call_check_declared(om_ctx *ctx, const om_op_call *call, const om_graph *graph) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    const om_value *value = &graph->values[call->node->outputs[i]];
    om_dtype have = call->outputs[i]->dtype;
    if (have == OM_DTYPE_NONE && call->outputs[i]->rank == OM_RANK_UNKNOWN) continue;
    if (value->dtype == OM_DTYPE_NONE || value->dtype == have) continue;
    return named(ctx,
                 call,
                 OM_FAIL(ctx,
                         OM_E_INVALID_MODEL,
                         "Its result '%.100s' is %s, but the model declares %s.",
                         value->name,
                         om_dtype_name(have),
                         om_dtype_name(value->dtype)));
  }
  return OM_OK;
}

bool om_call_is_open(const om_op_call *call) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (call->outputs[i] && call->outputs[i]->rank == OM_RANK_UNKNOWN) return true;
  }
  return false;
}

bool om_call_is_foldable(const om_op_call *call) {
  const om_op *op = call->node->op;
  if (op->is_random) return false;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const bool is_read = i >= 32 || !(op->shaped_inputs >> i & 1u);
    if (is_read && call->inputs[i] && !call->inputs[i]->data) return false;
  }
  return true;
}

size_t om_tensor_need(const om_tensor *tensor) {
  size_t bytes = 0;
  return om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes) ? bytes : 0;
}

size_t om_result_bytes(const om_tensor *result) {
  size_t bytes = om_tensor_need(result);
  bool may_be_more = result->dtype == OM_DTYPE_STRING || om_dtype_is_nested(result->dtype);
  return may_be_more && result->data_bytes > bytes ? result->data_bytes : bytes;
}

size_t om_call_scratch_bytes(const om_op_call *call) {
  const om_op *op = call->node->op;
  return op->scratch_bytes ? op->scratch_bytes(call) : 0;
}

om_status om_call_run(om_ctx *ctx, const om_op_call *call) {
  om_status st = call->bodies ? check_first_input(ctx, call) : OM_OK; /* there was no infer */
  return named(ctx, call, st == OM_OK ? call->node->op->run(ctx, call) : st);
}

om_status om_call_run_ready(om_ctx *ctx, const om_op_call *call, const om_op_ready *ready) {
  return named(ctx, call, ready->run(ctx, call, ready->state));
}

/* True, and the budget is charged, if all outputs and the scratch fit in it. */
static bool charge(const om_op_call *call, size_t scratch_bytes, om_fold_budget *budget) {
  size_t total = 0;
  if (scratch_bytes > budget->total_bytes) return false;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    size_t bytes = om_result_bytes(call->outputs[i]);
    if (bytes > budget->value_bytes || !om_size_add(total, bytes, &total)) return false;
  }
  if (total > budget->total_bytes) return false;
  budget->total_bytes -= total;
  return true;
}

bool om_call_is_affordable(const om_op_call *call, const om_fold_budget *budget) {
  om_fold_budget rest = *budget;
  return charge(call, om_call_scratch_bytes(call), &rest);
}

static void forget_data(const om_op_call *call) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (call->outputs[i]) call->outputs[i]->data = NULL;
  }
}

om_status om_call_fold(
    om_ctx *ctx, om_op_call *call, om_pool *pool, om_fold_budget *budget, bool *out_is_done) {
  om_status st = OM_OK;
  size_t scratch_bytes = om_call_scratch_bytes(call);
  void *scratch = NULL;
  *out_is_done = false;
  if (!charge(call, scratch_bytes, budget)) return OM_OK;

  /* A place, too, where no bytes are asked for: operators reckon with pointers into it. */
  scratch = om_new_bytes(ctx, scratch_bytes > 0 ? scratch_bytes : 1, 1);
  if (!scratch) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    om_tensor *out = call->outputs[i];
    if (!out) continue;
    out->data_bytes = om_result_bytes(out);
    /* A tensor without elements gets a place too: NULL means "not known". */
    out->data = om_pool_new_bytes(ctx, pool, out->data_bytes > 0 ? out->data_bytes : 1, 1);
    if (!out->data) st = OM_E_OUT_OF_MEMORY;
  }
  call->scratch = scratch;
  if (st == OM_OK) st = om_call_run(ctx, call);
  call->scratch = NULL;
  om_delete(ctx, scratch);

  *out_is_done = st == OM_OK;
  if (st != OM_OK) forget_data(call);
  if (st == OM_E_OUT_OF_MEMORY) return st;
  if (st != OM_OK) om_error_clear(ctx->error); /* the step stays, and its run says it again */
  return OM_OK;
}
