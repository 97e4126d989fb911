/* A run of a plan: places for the values, the items in order, and the results handed out.
 *
 * An output in the caller's memory is written there directly where that is safe: the memory is
 * aligned, large enough, and overlaps neither an input nor another output. Else it is copied.
 */
#include "session/om_session.h"
#include "session/om_text.h"

/* ---- Outputs asked for ---- */

static const om_plan_output *find_output(const om_plan *plan, const char *name) {
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

static om_status check_capacity(om_ctx *ctx,
                                const om_named_tensor *output,
                                const om_tensor *result) {
  size_t need = om_tensor_need(result);
  if (!output->tensor.data || output->tensor.data_bytes >= need) return OM_OK;
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
                               const om_plan *plan,
                               const om_named_tensor *outputs,
                               size_t output_count) {
  for (size_t i = 0; i < output_count; ++i) {
    if (!outputs[i].name) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The name of output %zu is NULL.", i);
    }
    const om_plan_output *output = find_output(plan, outputs[i].name);
    if (!output) return fail_output_name(ctx, plan, outputs[i].name);
    if (!plan->values[output->value].is_static) continue; /* checked when the size is known */
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
  for (size_t i = 0; i < session->graph.input_count; ++i) {
    const om_tensor *input = &session->bound[i];
    if (do_overlap(target, need, input->data, om_tensor_need(input))) return false;
  }
  for (size_t i = 0; i < output_count; ++i) {
    const om_tensor *other = &outputs[i].tensor;
    if (i == index || !other->data) continue;
    if (do_overlap(target, need, other->data, other->data_bytes)) return false;
  }
  return true;
}

static void set_places(om_session *session,
                       om_plan *plan,
                       const om_named_tensor *outputs,
                       size_t output_count) {
  uint8_t *block = session->block;
  const om_graph *graph = &session->graph;
  for (size_t i = 0; i < graph->input_count; ++i) {
    const void *data = session->bound[i].data;
    memcpy(&plan->tensors[graph->inputs[i]].data, &data, sizeof data);
    if (!data) plan->tensors[graph->inputs[i]].data = block; /* no elements: NULL is "not known" */
  }
  for (size_t i = 0; i < plan->placed_count; ++i) {
    plan->tensors[plan->placed[i].value].data = block + plan->placed[i].offset;
  }
  for (size_t i = 0; i < output_count; ++i) {
    const om_plan_output *output = find_output(plan, outputs[i].name);
    if (!outputs[i].tensor.data || !output->is_made) continue;
    if (!plan->values[output->value].is_static) continue;
    om_tensor *tensor = &plan->tensors[output->value];
    size_t need = om_tensor_need(tensor);
    if (!is_safe_target(session, outputs, output_count, i, need)) continue;
    tensor->data = outputs[i].tensor.data;
  }
}

/* ---- Items ---- */

static om_status ensure_buffer(om_ctx *ctx, om_dynamic_buffer *buffer, size_t bytes) {
  size_t need = bytes > 0 ? bytes : 1;
  if (buffer->data && buffer->bytes >= need) return OM_OK;
  om_delete(ctx, buffer->data);
  buffer->bytes = 0;
  buffer->data = om_new_bytes(ctx, need, 1);
  if (!buffer->data) return OM_E_OUT_OF_MEMORY;
  buffer->bytes = need;
  return OM_OK;
}

/* Shapes and memory of a step that had to wait for data. */
static om_status settle_dynamic(om_ctx *ctx, om_plan *plan, om_step *step) {
  const om_op_call *call = &step->call;
  OM_TRY(om_call_infer(ctx, call));
  OM_TRY(om_call_check_declared(ctx, call, plan->source.graph));
  if (om_call_is_open(call)) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Node '%s' (%s): its shape stays unknown with all data there.",
                   call->node->name,
                   call->node->type);
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    om_dynamic_buffer *buffer = &plan->dynamic[call->node->outputs[i]];
    OM_TRY(ensure_buffer(ctx, buffer, om_tensor_need(call->outputs[i])));
    call->outputs[i]->data = buffer->data;
  }
  size_t scratch_bytes = om_call_scratch_bytes(call);
  OM_TRY(ensure_buffer(ctx, &plan->dynamic_scratch, scratch_bytes));
  step->call.scratch = plan->dynamic_scratch.data;
  return OM_OK;
}

static om_status run_step(om_ctx *ctx, om_session *session, om_plan *plan, om_step *step) {
  if (step->is_dynamic) {
    OM_TRY(settle_dynamic(ctx, plan, step));
  } else {
    step->call.scratch = (uint8_t *)session->block + step->scratch_offset;
  }
  return om_call_run(ctx, &step->call);
}

/* What goes to the session's own block can stay where the provider has it, if it lends that. */
static bool can_be_lent(const om_session *session,
                        const om_plan *plan,
                        size_t index,
                        size_t write) {
  const om_provider *provider = plan->source.provider;
  const om_tensor *tensor = &plan->tensors[plan->regions[index].writes[write]];
  return provider->lend && do_overlap(tensor->data, 1, session->block, session->block_bytes) &&
         provider->lend(plan->provider_plan, index, write) != NULL;
}

static om_status run_region(om_ctx *ctx, const om_session *session, om_plan *plan, size_t index) {
  const om_provider *provider = plan->source.provider;
  const om_plan_region *region = &plan->regions[index];
  const void **reads = plan->region_reads[index];
  void **writes = plan->region_writes[index];
  for (size_t i = 0; i < region->read_count; ++i) reads[i] = plan->tensors[region->reads[i]].data;
  for (size_t i = 0; i < region->write_count; ++i) {
    writes[i] = plan->tensors[region->writes[i]].data;
    if (can_be_lent(session, plan, index, i)) writes[i] = NULL;
  }
  OM_TRY(provider->run(ctx, plan->provider_plan, index, reads, writes));
  for (size_t i = 0; i < region->write_count; ++i) {
    if (writes[i]) continue;
    const void *data = provider->lend(plan->provider_plan, index, i);
    memcpy(&plan->tensors[region->writes[i]].data, &data, sizeof data);
  }
  return OM_OK;
}

/* ---- Results ---- */

static om_status hand_out(om_ctx *ctx,
                          om_session *session,
                          om_plan *plan,
                          om_named_tensor *output) {
  const om_plan_output *source = find_output(plan, output->name);
  const om_tensor *result = &plan->tensors[source->value];
  size_t bytes = om_tensor_need(result);
  void *target = output->tensor.data;
  OM_TRY(check_capacity(ctx, output, result));
  if (!target && source->is_made) {
    target = result->data;
  } else if (!target) {
    target = (uint8_t *)session->block + source->copy_offset;
  }
  if (target != result->data && bytes > 0) memmove(target, result->data, bytes);
  output->tensor = *result;
  output->tensor.data = target;
  output->tensor.data_bytes = bytes;
  return OM_OK;
}

om_status om_session_run_plan(om_ctx *ctx,
                              om_session *session,
                              om_plan *plan,
                              om_named_tensor *outputs,
                              size_t output_count) {
  OM_TRY(check_outputs(ctx, plan, outputs, output_count));
  set_places(session, plan, outputs, output_count);
  for (size_t i = 0; i < plan->item_count; ++i) {
    const om_plan_item *item = &plan->items[i];
    if (item->is_region) {
      OM_TRY(run_region(ctx, session, plan, item->index));
    } else {
      OM_TRY(run_step(ctx, session, plan, &plan->steps[item->index]));
    }
  }
  for (size_t i = 0; i < output_count; ++i) OM_TRY(hand_out(ctx, session, plan, &outputs[i]));
  return om_session_keep_strings(ctx, session, outputs, output_count);
}
