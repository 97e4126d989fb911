/* A case on the operator's entry alone: resolve, infer, run, as the plan and the executor call
 * them. The shape rule must say the same with and without its inputs' data. */
#include "base/om_thread.h"
#include "graph/om_op.h"
#include "harness/om_fault.h"
#include "harness/om_test_case.h"
#include "session/om_call.h"

typedef struct direct_run {
  om_graph graph;
  om_tensor inputs[OM_CASE_INPUTS];
  const om_tensor *input_ptrs[OM_CASE_INPUTS];
  om_tensor outputs[OM_CASE_OUTPUTS];
  om_tensor *output_ptrs[OM_CASE_OUTPUTS];
  void *blocks[OM_CASE_OUTPUTS]; /* owned: the outputs' data and their guards */
  size_t bytes[OM_CASE_OUTPUTS];
  om_op_call call;
} direct_run;

static om_status call_infer(om_ctx *ctx, direct_run *r, const om_test_model *model, bool has_data) {
  for (uint32_t i = 0; i < model->input_count; ++i) {
    r->inputs[i] = model->inputs[i].tensor;
    if (!has_data && !model->inputs[i].is_constant) r->inputs[i].data = NULL;
    r->input_ptrs[i] = model->inputs[i].is_absent ? NULL : &r->inputs[i];
  }
  for (uint32_t i = 0; i < r->call.output_count; ++i) {
    r->outputs[i] = (om_tensor){0};
    r->output_ptrs[i] = &r->outputs[i];
  }
  return r->call.node->op->infer(ctx, &r->call);
}

static om_status infer_shapes(om_ctx *ctx, direct_run *r, const om_test_model *model) {
  om_tensor blind[OM_CASE_OUTPUTS];
  OM_TRY(call_infer(ctx, r, model, false));
  memcpy(blind, r->outputs, sizeof blind);
  OM_TRY(call_infer(ctx, r, model, true));
  for (uint32_t i = 0; i < r->call.output_count; ++i) {
    const om_tensor *output = &r->outputs[i];
    if (output->rank == OM_RANK_UNKNOWN) {
      return OM_FAIL(
          ctx, OM_E_INTERNAL, "infer leaves y%u's shape open though all inputs are known.", i);
    }
    if (blind[i].dtype != output->dtype) {
      return OM_FAIL(
          ctx, OM_E_INTERNAL, "infer gives y%u another type without the inputs' data.", i);
    }
    if (blind[i].rank == OM_RANK_UNKNOWN) continue;
    if (blind[i].rank != output->rank ||
        memcmp(blind[i].dims, output->dims, output->rank * sizeof output->dims[0]) != 0) {
      return OM_FAIL(
          ctx, OM_E_INTERNAL, "infer gives y%u another shape without the inputs' data.", i);
    }
  }
  return OM_OK;
}

static om_status allocate_outputs(om_ctx *ctx, direct_run *r) {
  for (uint32_t i = 0; i < r->call.output_count; ++i) {
    om_tensor *output = &r->outputs[i];
    size_t bytes = 0;
    if (!om_shape_bytes(output->dtype, output->rank, output->dims, &bytes)) {
      return OM_FAIL(ctx, OM_E_INTERNAL, "infer gives y%u an impossible shape.", i);
    }
    bytes = om_result_bytes(output); /* text and lists may take more than their elements */
    r->blocks[i] = om_new_bytes(ctx, bytes + 2 * OM_GUARD_BYTES, 1);
    if (!r->blocks[i]) return OM_E_OUT_OF_MEMORY;
    r->bytes[i] = bytes;
    output->data = om_guard_init(r->blocks[i], bytes);
    output->data_bytes = bytes;
    memset(output->data, 0x5a, bytes); /* a result that is not written shows */
  }
  return OM_OK;
}

static om_status call_run(om_ctx *ctx, direct_run *r) {
  const om_op *op = r->call.node->op;
  const size_t scratch_bytes = op->scratch_bytes ? op->scratch_bytes(&r->call) : 0;
  void *block = om_new_bytes(ctx, scratch_bytes + 2 * OM_GUARD_BYTES, 1);
  if (!block) return OM_E_OUT_OF_MEMORY;
  r->call.scratch = om_guard_init(block, scratch_bytes);
  memset(r->call.scratch, 0x5a, scratch_bytes);
  r->call.mode = OM_MODE_EXACT;
  const uint64_t state = om_flush_subnormals_begin();
  om_status st = op->run(ctx, &r->call);
  om_flush_subnormals_end(state);
  if (st == OM_OK && !om_guard_is_intact(block, scratch_bytes)) {
    st = OM_FAIL(ctx, OM_E_INTERNAL, "run wrote outside its %zu bytes of scratch.", scratch_bytes);
  }
  for (uint32_t i = 0; st == OM_OK && i < r->call.output_count; ++i) {
    if (!om_guard_is_intact(r->blocks[i], r->bytes[i])) {
      st = OM_FAIL(ctx, OM_E_INTERNAL, "run wrote outside y%u.", i);
    }
  }
  om_delete(ctx, block);
  return st;
}

static om_status resolve_node(om_ctx *ctx, direct_run *r) {
  OM_TRY(om_graph_resolve_ops(ctx, &r->graph));
  const om_node *node = &r->graph.nodes[0];
  if (!node->op) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "There is no entry for %s of opset %d.",
                   node->type,
                   (int)node->opset);
  }
  r->call = (om_op_call){.node = node,
                         .params = node->params,
                         .inputs = r->input_ptrs,
                         .input_count = node->input_count,
                         .outputs = r->output_ptrs,
                         .output_count = node->output_count};
  return OM_OK;
}

om_status om_test_run_direct(om_ctx *ctx,
                             const om_test_model *model,
                             om_test_results *out_results) {
  om_status st = OM_OK;
  direct_run *r = NULL;
  memset(out_results, 0, sizeof *out_results);
  OM_GO_NEW(r, 1);
  OM_GO(om_test_model_graph(ctx, model, &r->graph));
  OM_GO(resolve_node(ctx, r));
  OM_GO(infer_shapes(ctx, r, model));
  OM_GO(allocate_outputs(ctx, r));
  OM_GO(call_run(ctx, r));
  out_results->count = r->call.output_count;
  for (uint32_t i = 0; i < out_results->count; ++i) {
    OM_GO(om_test_results_copy(ctx, &r->outputs[i], out_results, i));
  }
done:
  for (uint32_t i = 0; r && i < OM_CASE_OUTPUTS; ++i) om_delete(ctx, r->blocks[i]);
  if (r) om_graph_deinit(ctx, &r->graph);
  om_delete(ctx, r);
  return st;
}
