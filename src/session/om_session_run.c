/* A run of a plan: places for the values, the items in order, and the results handed out. It can
 * stop where a region is at work on the device, and go on later.
 *
 * An output in the caller's memory is written there directly where that is safe: the memory is
 * aligned, large enough, and overlaps neither an input nor another output. Else it is copied.
 */
#include "graph/om_value_copy.h"
#include "session/om_session.h"
#include "session/om_text.h"

/* ---- Outputs asked for ---- */

static om_plan_output *find_output(om_plan *plan, const char *name) {
  const om_graph *graph = plan->source.graph;
  for (size_t i = 0; i < graph->output_count; ++i) {
    if (strcmp(graph->values[graph->outputs[i]].name, name) == 0) return &plan->outputs[i];
  }
  return NULL;
}

static om_status fail_output_name(om_ctx *ctx, const om_plan *plan, const char *name) {
  char buffer[512];
  const om_graph *graph = plan->source.graph;
  om_text list = om_text_in(buffer, sizeof buffer);
  for (size_t i = 0; i < graph->output_count; ++i) {
    om_text_add(&list, "%s'%.100s'", i == 0 ? "" : ", ", graph->values[graph->outputs[i]].name);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "There is no output '%.100s'; the model's outputs are: %s.",
                 name,
                 buffer);
}

/* What a result takes; a sequence or an optional with all that it holds. */
static size_t whole_bytes(const om_tensor *result) {
  size_t bytes = om_tensor_need(result);
  if (!om_dtype_is_nested(result->dtype)) return bytes;
  return om_value_bytes(result, &bytes) ? bytes : SIZE_MAX;
}

static om_status check_capacity(om_ctx *ctx,
                                const om_named_tensor *output,
                                const om_tensor *result) {
  if (!output->tensor.data) return OM_OK;
  size_t need = whole_bytes(result);
  if (output->tensor.data_bytes >= need) return OM_OK;
  char shape[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Output '%.100s' is %s of shape %s and takes %zu bytes, but the memory given for "
                 "it has %zu.",
                 output->name,
                 om_dtype_name(result->dtype),
                 om_shape_text(shape, sizeof shape, result->rank, result->dims),
                 need,
                 output->tensor.data_bytes);
}

static om_status check_outputs(om_ctx *ctx,
                               om_plan *plan,
                               const om_named_tensor *outputs,
                               size_t output_count) {
  for (size_t i = 0; i < output_count; ++i) {
    if (!outputs[i].name) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The name of output %zu is NULL.", i);
    }
    const om_plan_output *output = find_output(plan, outputs[i].name);
    if (!output) return fail_output_name(ctx, plan, outputs[i].name);
    if (!plan->values[output->value].is_static) continue; /* checked when the size is known */
    if (om_dtype_is_nested(plan->tensors[output->value].dtype)) continue;
    OM_TRY(check_capacity(ctx, &outputs[i], &plan->tensors[output->value]));
  }
  return OM_OK;
}

/* ---- Places ---- */

static bool do_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  if (a_bytes == 0 || b_bytes == 0) return false;
  return x < y ? y - x < a_bytes : x - y < b_bytes;
}

static bool is_safe_target(const om_session *session,
                           const om_named_tensor *outputs,
                           size_t output_count,
                           size_t index,
                           size_t need) {
  const void *target = outputs[index].tensor.data;
  if ((uintptr_t)target % 16 != 0) return false;
  for (size_t i = 0; i < session->scope.graph.input_count; ++i) {
    const om_tensor *input = &session->scope.bound[i];
    if (do_overlap(target, need, input->data, om_tensor_need(input))) return false;
  }
  for (size_t i = 0; i < output_count; ++i) {
    const om_tensor *other = &outputs[i].tensor;
    if (i == index || !other->data) continue;
    if (do_overlap(target, need, other->data, other->data_bytes)) return false;
  }
  return true;
}

/* Results of known size go straight to the caller where that is safe. */
static void set_targets(om_session *session,
                        om_plan *plan,
                        const om_named_tensor *outputs,
                        size_t output_count) {
  for (size_t i = 0; i < output_count; ++i) {
    const om_plan_output *output = find_output(plan, outputs[i].name);
    if (!outputs[i].tensor.data || !output->is_made) continue;
    if (!plan->values[output->value].is_static) continue;
    if (om_dtype_is_nested(plan->tensors[output->value].dtype)) continue;
    om_tensor *tensor = &plan->tensors[output->value];
    size_t need = om_result_bytes(tensor);
    if (!is_safe_target(session, outputs, output_count, i, need)) continue;
    tensor->data = outputs[i].tensor.data;
  }
}

/* ---- Regions ---- */

bool om_session_never_waits(const om_session *session) {
  const om_provider *provider = session->provider;
  return provider && provider->never_waits && provider->never_waits(session->provider_session);
}

static om_status go_on_region(
    om_ctx *ctx, om_session *session, om_turn *turn, size_t index, bool waits, bool *out_is_done) {
  om_plan *plan = turn->plan;
  *out_is_done = false;
  if (waits && om_session_never_waits(session)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A browser cannot wait for the GPU: use om_session_run_begin and om_run_poll.");
  }
  if (!turn->is_region_begun) OM_TRY(om_scope_begin_region(ctx, plan, index));
  turn->is_region_begun = true;
  if (!waits) {
    OM_TRY(plan->source.provider->is_done(ctx, plan->provider_plan, index, out_is_done));
    if (!*out_is_done) return OM_OK;
  }
  turn->is_region_begun = false;
  *out_is_done = true;
  return om_scope_finish_region(ctx, plan, index);
}

/* ---- Results ---- */

static om_status hand_out(om_ctx *ctx, om_plan *plan, om_named_tensor *output) {
  om_plan_output *source = find_output(plan, output->name);
  const om_tensor *result = &plan->tensors[source->value];
  size_t bytes = whole_bytes(result);
  void *target = output->tensor.data;
  OM_TRY(check_capacity(ctx, output, result));
  if (target && om_dtype_is_nested(result->dtype)) {
    om_value_copy(result, target, &output->tensor);
  } else if (!target) {
    OM_TRY(om_scope_take_output(ctx, plan, source, &output->tensor));
  } else {
    if (target != result->data && bytes > 0) memmove(target, result->data, bytes);
    output->tensor = *result;
    output->tensor.data = target;
  }
  output->tensor.data_bytes = bytes;
  return OM_OK;
}

/* ---- Turns ---- */

static om_status begin_turn(om_ctx *ctx, om_session *session, om_turn *turn) {
  OM_TRY(om_session_bind_inputs(ctx, session, turn->inputs, turn->input_count, true));
  OM_TRY(om_session_get_plan(ctx, session, &turn->plan));
  OM_TRY(check_outputs(ctx, turn->plan, turn->outputs, turn->output_count));
  om_scope_set_places(turn->plan);
  set_targets(session, turn->plan, turn->outputs, turn->output_count);
  return OM_OK;
}

static om_status go_on(
    om_ctx *ctx, om_session *session, om_turn *turn, bool waits, bool *out_is_done) {
  om_plan *plan = turn->plan;
  for (; turn->item < plan->item_count; ++turn->item) {
    const om_plan_item *item = &plan->items[turn->item];
    OM_TRY(om_check_cancelled(ctx));
    if (!item->is_region) {
      OM_TRY(om_scope_run_step(ctx, plan, &plan->steps[item->index]));
      continue;
    }
    OM_TRY(go_on_region(ctx, session, turn, item->index, waits, out_is_done));
    if (!*out_is_done) return OM_OK;
  }
  *out_is_done = true;
  OM_TRY(om_check_cancelled(ctx));
  for (size_t i = 0; i < turn->output_count; ++i) {
    OM_TRY(hand_out(ctx, plan, &turn->outputs[i]));
  }
  return om_session_keep_strings(ctx, session, turn->outputs, turn->output_count);
}

om_status om_session_go_on(
    om_ctx *ctx, om_session *session, om_turn *turn, bool waits, bool *out_is_done) {
  om_status st = OM_OK;
  *out_is_done = false;
  ctx->cancel = turn->cancel;
  if (!turn->plan) OM_GO(begin_turn(ctx, session, turn));
  uint64_t state = om_flush_subnormals_begin();
  st = go_on(ctx, session, turn, waits, out_is_done);
  om_flush_subnormals_end(state);
  if (st != OM_OK || *out_is_done) session->run_count += 1;
done:
  ctx->cancel = NULL;
  return st;
}
