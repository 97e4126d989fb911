/* onemodel placement: where each operator runs, and why. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const char *place_word(om_place place) {
  return place == OM_PLACE_DEVICE ? "device" : place == OM_PLACE_FOLDED ? "folded" : "cpu";
}

/* "If_3.then_branch/Conv_1": the way through the bodies, as deep as they nest. */
static void path_of(const om_diagnostics *d, size_t index, char *path, size_t bytes) {
  const om_node_diagnostics *n = &d->nodes[index];
  size_t used = 0;
  path[0] = '\0';
  if (n->outer != OM_NO_OUTER) {
    path_of(d, n->outer, path, bytes);
    used = strlen(path);
    snprintf(path + used, bytes - used, ".%s/", n->body);
    used = strlen(path);
  }
  snprintf(path + used, bytes - used, "%s", n->name);
}

static void print_table(const om_diagnostics *d) {
  char path[1024];
  for (size_t i = 0; i < d->node_count; ++i) {
    const om_node_diagnostics *n = &d->nodes[i];
    char region[16] = "-";
    if (n->region != OM_NO_REGION) snprintf(region, sizeof region, "%d", (int)n->region);
    path_of(d, i, path, sizeof path);
    printf("%-6s %3s %-6s %-22s %-40s %s\n",
           place_word(n->place),
           region,
           n->is_fused ? "fused" : "",
           n->op_type,
           path,
           n->reason);
  }
  for (size_t i = 0; i < d->region_count; ++i) {
    const om_region_diagnostics *r = &d->regions[i];
    char up[32], down[32];
    printf("region %zu: %zu operator%s, %s up, %s down",
           i,
           r->node_count,
           r->node_count == 1 ? "" : "s",
           byte_words(up, sizeof up, r->bytes_up),
           byte_words(down, sizeof down, r->bytes_down));
    if (*r->split_by) printf(", ended by %s: %s", r->split_by, r->split_reason);
    printf("\n");
  }
  printf("%zu on the device in %zu region%s, %zu on the CPU, %zu folded\n",
         d->nodes_on_device,
         d->region_count,
         d->region_count == 1 ? "" : "s",
         d->nodes_on_cpu,
         d->nodes_folded);
}

static void print_json(const om_diagnostics *d) {
  char path[1024];
  printf("{\"nodes\": [");
  for (size_t i = 0; i < d->node_count; ++i) {
    const om_node_diagnostics *n = &d->nodes[i];
    printf("%s{\"name\": ", i ? ", " : "");
    path_of(d, i, path, sizeof path);
    json_text(stdout, path);
    printf(", \"type\": ");
    json_text(stdout, n->op_type);
    printf(", \"place\": \"%s\", \"region\": %d, \"fused\": %s, \"reason\": ",
           place_word(n->place),
           (int)n->region,
           n->is_fused ? "true" : "false");
    json_text(stdout, n->reason);
    printf("}");
  }
  printf("], \"regions\": [");
  for (size_t i = 0; i < d->region_count; ++i) {
    const om_region_diagnostics *r = &d->regions[i];
    printf("%s{\"nodes\": %zu, \"bytes_up\": %llu, \"bytes_down\": %llu, \"split_by\": ",
           i ? ", " : "",
           r->node_count,
           (unsigned long long)r->bytes_up,
           (unsigned long long)r->bytes_down);
    json_text(stdout, r->split_by);
    printf(", \"split_reason\": ");
    json_text(stdout, r->split_reason);
    printf("}");
  }
  printf("], \"on_device\": %zu, \"on_cpu\": %zu, \"folded\": %zu}\n",
         d->nodes_on_device,
         d->nodes_on_cpu,
         d->nodes_folded);
}

int command_placement(int argc, char **argv) {
  options o;
  opened it = {0};
  om_error error;
  om_model *model = NULL;
  tensors inputs = {0};
  const om_diagnostics *d = NULL;
  if (!options_parse(argc, argv, COMMAND_PLACEMENT, &o)) return EXIT_USAGE;
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  code = make_inputs(&o, om_model_get_info(model), &inputs);
  if (code == EXIT_DONE) code = open_session(&o, model, o.device, o.mode, false, NULL, 0, &it);
  if (code == EXIT_DONE) {
    progress_begin("building the plan");
    om_status status = om_session_diagnose(it.session, inputs.items, inputs.count, &d, &error);
    progress_end();
    if (status != OM_OK) {
      code = report_error(&error);
    } else if (o.as_json) {
      print_json(d);
    } else {
      print_table(d);
    }
  }
  free_tensors(&inputs);
  close_session(&it);
  om_model_destroy(model);
  return code;
}
