/* Where the CPU keeps values between the items of a plan: one block, shared over time.
 *
 *     item      0      1      2      3      end
 *     a         [------------]
 *     b                [------------]
 *     y (out)                 [-------------]      outputs stay until the next run
 *     copy                                  []     of an output that no step writes
 *     scratch          []                          of the step at item 1
 *
 * What only a region touches has no place here: it lives on the device.
 */
#include "base/om_interval.h"
#include "graph/om_stored.h"
#include "session/om_plan.h"

typedef struct layout {
  om_interval *blocks; /* scratch; same order as the targets */
  size_t **offsets;    /* scratch; where each offset goes */
  size_t count;
} layout;

static void add_block(layout *l, size_t bytes, uint32_t first, uint32_t last, size_t *out_offset) {
  l->blocks[l->count] = (om_interval){.bytes = bytes, .first = first, .last = last};
  l->offsets[l->count++] = out_offset;
}

/* last_read[value]: the last item that reads it; the item count for what the caller reads. */
static void find_last_reads(const om_plan *plan, uint32_t *last_read) {
  for (size_t s = 0; s < plan->step_count; ++s) {
    const om_plan_step *step = &plan->view_steps[s];
    uint32_t item = plan->steps[s].item;
    for (uint32_t i = 0; i < step->input_count; ++i) {
      uint32_t value = step->inputs[i];
      if (value != (uint32_t)OM_PLAN_NO_VALUE && last_read[value] < item) last_read[value] = item;
    }
  }
  for (size_t i = 0; i < plan->source.graph->output_count; ++i) {
    last_read[plan->source.graph->outputs[i]] = (uint32_t)plan->item_count;
  }
}

static void place_value(
    om_plan *plan, layout *l, uint32_t value, uint32_t item, const uint32_t *last_read) {
  om_placed *placed = &plan->placed[plan->placed_count++];
  uint32_t last = last_read[value] > item ? last_read[value] : item;
  placed->value = value;
  add_block(l, om_result_bytes(&plan->tensors[value]), item, last, &placed->offset);
}

static void place_cpu_step(om_plan *plan, layout *l, uint32_t index, const uint32_t *last_read) {
  om_step *step = &plan->steps[index];
  const om_node *node = step->call.node;
  if (step->is_dynamic) return;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (step->call.outputs[i]) place_value(plan, l, node->outputs[i], step->item, last_read);
  }
  step->scratch_bytes =
      step->ready.run ? step->ready.scratch_bytes : om_call_scratch_bytes(&step->call);
  if (step->scratch_bytes == 0) return;
  add_block(l, step->scratch_bytes, step->item, step->item, &step->scratch_offset);
}

static void place_items(om_plan *plan, layout *l, const uint32_t *last_read) {
  for (uint32_t item = 0; item < plan->item_count; ++item) {
    uint32_t index = plan->items[item].index;
    if (!plan->items[item].is_region) {
      place_cpu_step(plan, l, index, last_read);
      continue;
    }
    const om_plan_region *region = &plan->regions[index];
    for (size_t i = 0; i < region->write_count; ++i) {
      place_value(plan, l, region->writes[i], item, last_read);
    }
  }
}

static void place_outputs(om_plan *plan, layout *l) {
  const om_graph *graph = plan->source.graph;
  uint32_t end = (uint32_t)plan->item_count;
  for (size_t i = 0; i < graph->output_count; ++i) {
    om_plan_output *output = &plan->outputs[i];
    output->value = graph->outputs[i];
    output->is_made = plan->maker[output->value] != OM_NO_ITEM;
    if (output->is_made) continue;
    add_block(l, om_tensor_need(&plan->tensors[output->value]), end, end, &output->copy_offset);
  }
}

/* ---- Results of dynamic steps ---- */

static om_status prepare_dynamic(om_ctx *ctx, om_plan *plan) {
  const size_t count = plan->view.value_count;
  bool has_any = false;
  for (size_t s = 0; s < plan->step_count; ++s) has_any = has_any || plan->steps[s].is_dynamic;
  if (!has_any) return OM_OK;
  plan->slots = OM_POOL_NEW(ctx, &plan->pool, om_dynamic_slot, count);
  plan->slot_of = OM_POOL_NEW(ctx, &plan->pool, uint32_t, count);
  plan->last_read = OM_POOL_NEW(ctx, &plan->pool, uint32_t, count);
  if (!plan->slots || !plan->slot_of || !plan->last_read) return OM_E_OUT_OF_MEMORY;
  find_last_reads(plan, plan->last_read);
  return OM_OK;
}

om_status om_dynamic_buffer_ensure(om_ctx *ctx, om_dynamic_buffer *buffer, size_t bytes) {
  size_t need = bytes > 0 ? bytes : 1;
  if (buffer->data && buffer->bytes >= need) return OM_OK;
  om_delete(ctx, buffer->data);
  buffer->bytes = 0;
  buffer->data = om_new_bytes(ctx, need, 1);
  if (!buffer->data) return OM_E_OUT_OF_MEMORY;
  buffer->bytes = need;
  return OM_OK;
}

static bool is_free(const om_dynamic_slot *slot, uint32_t item) {
  return !slot->is_held || slot->last < item;
}

enum { SPARE_BYTES = 4096 }; /* what may be left over in a slot, beside as much as is asked for */

/* The slot that fits best; NULL: none does. */
static om_dynamic_slot *find_slot(om_plan *plan, uint32_t item, size_t bytes) {
  om_dynamic_slot *best = NULL;
  for (size_t i = 0; i < plan->slot_count; ++i) {
    om_dynamic_slot *slot = &plan->slots[i];
    const size_t has = slot->buffer.bytes;
    if (slot->is_kept || !is_free(slot, item) || has < bytes) continue;
    if (has - bytes > bytes && has - bytes > SPARE_BYTES) continue;
    if (!best || has < best->buffer.bytes) best = slot;
  }
  return best;
}

/* One more; where each value has had one, one that nobody holds. */
static om_dynamic_slot *add_slot(om_plan *plan, uint32_t item) {
  if (plan->slot_count < plan->view.value_count) return &plan->slots[plan->slot_count++];
  size_t i = 0;
  while (plan->slots[i].is_kept || !is_free(&plan->slots[i], item)) ++i;
  return &plan->slots[i];
}

om_status om_plan_take_slot(
    om_ctx *ctx, om_plan *plan, uint32_t value, uint32_t item, size_t bytes, void **out_data) {
  const om_dtype dtype = plan->tensors[value].dtype;
  const uint32_t last = plan->last_read[value];
  om_dynamic_slot *old = plan->slot_of[value] > 0 ? &plan->slots[plan->slot_of[value] - 1] : NULL;
  om_dynamic_slot *slot = old;
  const bool is_kept = dtype == OM_DTYPE_STRING || om_dtype_is_nested(dtype);
  if (!old || !is_free(old, item) || (!old->is_kept && old->buffer.bytes < bytes)) {
    slot = is_kept ? NULL : find_slot(plan, item, bytes);
    if (!slot) slot = old && is_free(old, item) ? old : add_slot(plan, item);
  }
  slot->is_kept = is_kept;
  slot->is_held = true;
  slot->last = last > item ? last : item;
  plan->slot_of[value] = (uint32_t)(slot - plan->slots) + 1;
  OM_TRY(om_dynamic_buffer_ensure(ctx, &slot->buffer, bytes));
  *out_data = slot->buffer.data;
  return OM_OK;
}

/* ---- The block ---- */

static bool has_stored(const om_plan *plan, const om_node *node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id value = node->inputs[i];
    if (value == OM_NO_VALUE) continue;
    if (om_stored_of(plan->source.graph->values[value].constant)) return true;
  }
  return false;
}

om_status om_plan_place(om_ctx *ctx, om_plan *plan) {
  om_status st = OM_OK;
  om_status late = OM_OK;
  layout l = {0};
  uint32_t *last_read = NULL; /* scratch */
  const om_graph *graph = plan->source.graph;
  size_t most = plan->view.value_count + plan->step_count + graph->output_count;

  plan->placed = OM_POOL_NEW(ctx, &plan->pool, om_placed, plan->view.value_count);
  plan->outputs = OM_POOL_NEW(ctx, &plan->pool, om_plan_output, graph->output_count);
  if (!plan->placed || !plan->outputs) return OM_E_OUT_OF_MEMORY;
  OM_TRY(prepare_dynamic(ctx, plan));
  for (size_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].is_accepted) continue;
    const om_step *step = &plan->steps[s];
    const uint32_t packed = step->ready.packed_inputs;
    if (step->ready_key && !has_stored(plan, step->call.node)) continue; /* its run does that */
    OM_TRY(om_put_off(om_plan_align_constants(ctx, plan, step->call.node, packed), &late));
  }
  for (size_t i = 0; i < graph->output_count; ++i) {
    const om_value_id value = graph->outputs[i];
    if (!om_stored_of(graph->values[value].constant) || plan->tensors[value].data) continue;
    OM_TRY(om_put_off(om_plan_align_value(ctx, plan, value), &late));
  }
  OM_TRY(late);

  OM_GO_NEW(l.blocks, most);
  OM_GO_NEW(l.offsets, most);
  OM_GO_NEW(last_read, plan->view.value_count);
  find_last_reads(plan, last_read);
  place_items(plan, &l, last_read);
  place_outputs(plan, &l);
  OM_GO(om_interval_place(ctx, l.blocks, l.count, 64, &plan->block_bytes));
  for (size_t i = 0; i < l.count; ++i) *l.offsets[i] = l.blocks[i].offset;
done:
  om_delete(ctx, l.blocks);
  om_delete(ctx, l.offsets);
  om_delete(ctx, last_read);
  return st;
}
