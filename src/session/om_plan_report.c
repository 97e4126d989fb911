/* The diagnostics of a plan: for every node of the model where it runs and why, and the regions
 * with what they move and what ended them. */
#include "session/om_plan.h"

typedef struct listing {
  om_node_diagnostics *nodes;
  size_t count;
} listing;

static void add_gone(listing *list, const om_node *node, const char *reason) {
  list->nodes[list->count++] = (om_node_diagnostics){.name = node->name,
                                                     .op_type = node->type,
                                                     .domain = node->domain,
                                                     .place = OM_PLACE_FOLDED,
                                                     .region = OM_NO_REGION,
                                                     .reason = reason,
                                                     .outer = OM_NO_OUTER,
                                                     .body = ""};
}

static om_status name_outputs(om_ctx *ctx,
                              om_plan *plan,
                              const om_node *node,
                              const char *const **out_names) {
  const char **names = OM_POOL_NEW(ctx, &plan->pool, const char *, node->output_count);
  if (!names) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const om_value_id id = node->outputs[i];
    names[i] = id == OM_NO_VALUE ? "" : plan->source.graph->values[id].name;
  }
  *out_names = names;
  return OM_OK;
}

static om_status add_step(om_ctx *ctx, om_plan *plan, listing *list, const om_step *step) {
  const om_node *node = step->call.node;
  const char *const *names = NULL;
  OM_TRY(name_outputs(ctx, plan, node, &names));
  const char *reason = step->is_fused ? "done in the pass of the step before it" : step->reason;
  list->nodes[list->count++] =
      (om_node_diagnostics){.name = node->name,
                            .op_type = node->type,
                            .domain = node->domain,
                            .place = step->is_accepted ? OM_PLACE_DEVICE : OM_PLACE_CPU,
                            .region = step->is_accepted ? (int32_t)step->region : OM_NO_REGION,
                            .is_fused = step->is_fused,
                            .reason = reason,
                            .output_names = names,
                            .output_count = node->output_count,
                            .outer = OM_NO_OUTER,
                            .body = ""};
  return OM_OK;
}

static om_status list_nodes(om_ctx *ctx, om_plan *plan, listing *list) {
  const om_plan_source *source = &plan->source;
  for (size_t i = 0; i < source->note_count; ++i) {
    const om_node_note *note = &source->notes[i];
    list->nodes[list->count++] = (om_node_diagnostics){.name = note->name,
                                                       .op_type = note->type,
                                                       .domain = note->domain,
                                                       .place = OM_PLACE_FOLDED,
                                                       .region = OM_NO_REGION,
                                                       .reason = note->reason,
                                                       .outer = OM_NO_OUTER,
                                                       .body = ""};
  }
  for (size_t i = 0; i < source->graph->node_count; ++i) {
    const om_node *node = &source->graph->nodes[i];
    if (plan->fates[i] == OM_FATE_FOLDED) {
      add_gone(list, node, "computed while planning: all it reads is known for these shapes");
    } else if (plan->fates[i] == OM_FATE_DEAD) {
      add_gone(list, node, "left out: nothing reads its result for these shapes");
    }
  }
  for (size_t i = 0; i < plan->step_count; ++i) {
    OM_TRY(add_step(ctx, plan, list, &plan->steps[plan->order[i]]));
  }
  return OM_OK;
}

static uint64_t sum_bytes(const om_plan *plan, const uint32_t *values, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += om_tensor_need(&plan->tensors[values[i]]);
  return total;
}

static om_region_diagnostics describe_region(const om_plan *plan, const om_plan_region *region) {
  om_region_diagnostics d = {.node_count = region->step_count,
                             .bytes_up = sum_bytes(plan, region->reads, region->read_count),
                             .bytes_down = sum_bytes(plan, region->writes, region->write_count),
                             .split_by = "",
                             .split_reason = ""};
  size_t next = (size_t)plan->steps[region->steps[0]].item + 1;
  if (next < plan->item_count) {
    const om_step *step = &plan->steps[plan->items[next].index];
    d.split_by = step->call.node->name;
    d.split_reason = step->reason;
  }
  return d;
}

static void count_places(om_diagnostics *d) {
  for (size_t i = 0; i < d->node_count; ++i) {
    switch (d->nodes[i].place) {
      case OM_PLACE_CPU:
        d->nodes_on_cpu += 1;
        break;
      case OM_PLACE_DEVICE:
        d->nodes_on_device += 1;
        break;
      case OM_PLACE_FOLDED:
        d->nodes_folded += 1;
        break;
    }
  }
}

om_status om_plan_report(om_ctx *ctx, om_plan *plan) {
  size_t most = plan->source.note_count + plan->source.graph->node_count;
  om_region_diagnostics *regions =
      OM_POOL_NEW(ctx, &plan->pool, om_region_diagnostics, plan->region_count);
  listing list = {.nodes = OM_POOL_NEW(ctx, &plan->pool, om_node_diagnostics, most)};
  if (!regions || !list.nodes) return OM_E_OUT_OF_MEMORY;
  OM_TRY(list_nodes(ctx, plan, &list));
  for (size_t i = 0; i < plan->region_count; ++i) {
    regions[i] = describe_region(plan, &plan->regions[i]);
  }
  plan->diagnostics = (om_diagnostics){.nodes = list.nodes,
                                       .node_count = list.count,
                                       .regions = regions,
                                       .region_count = plan->region_count};
  count_places(&plan->diagnostics);
  return OM_OK;
}
