/* onemodel compare: two executors on the same inputs.
 *
 * With --by-node every intermediate value is an output of both sessions, which keeps operators
 * from being fused or rewritten across it: a difference that comes only from a fusion does not
 * show there. With --attribute (attribute.c) all executors are compared with float64 instead, at
 * the values that each of them makes in an ordinary run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute.h"
#include "difference.h"

typedef struct comparison {
  om_named_tensor *tested, *reference;
  const char **names; /* of both */
  const char **types; /* of the node that makes the value */
  const char **nodes;
  size_t count;
} comparison;

/* The values to compare: the outputs of every node, or the model's outputs. */
static bool list_values(const om_model *model,
                        const om_model_info *info,
                        bool by_node,
                        comparison *c) {
  size_t capacity = info->output_count + 1;
  for (size_t i = 0; by_node && i < info->node_count; ++i) {
    capacity += om_model_get_node(model, i).output_count;
  }
  c->names = calloc(capacity, sizeof *c->names);
  c->types = calloc(capacity, sizeof *c->types);
  c->nodes = calloc(capacity, sizeof *c->nodes);
  c->tested = calloc(capacity, sizeof *c->tested);
  c->reference = calloc(capacity, sizeof *c->reference);
  if (!c->names || !c->types || !c->nodes || !c->tested || !c->reference) return false;
  for (size_t i = 0; by_node && i < info->node_count; ++i) {
    om_node_info node = om_model_get_node(model, i);
    for (size_t k = 0; k < node.output_count; ++k) {
      if (!*node.output_names[k]) continue;
      c->types[c->count] = node.op_type;
      c->nodes[c->count] = node.name;
      c->names[c->count++] = node.output_names[k];
    }
  }
  for (size_t i = 0; !by_node && i < info->output_count; ++i) {
    c->types[c->count] = c->nodes[c->count] = "";
    c->names[c->count++] = info->outputs[i].name;
  }
  for (size_t i = 0; i < c->count; ++i) c->tested[i].name = c->reference[i].name = c->names[i];
  return true;
}

static int run_session(const options *o,
                       om_model *model,
                       const char *device,
                       const char *mode,
                       const tensors *inputs,
                       const comparison *c,
                       om_named_tensor *outputs,
                       opened *it) {
  int code = open_session(
      o, model, device, mode, false, o->by_node ? c->names : NULL, o->by_node ? c->count : 0, it);
  if (code != EXIT_DONE) return code;
  progress_begin(it->on_gpu ? "running on the device" : "running on the CPU");
  code = run_once(it->session, inputs, outputs, c->count);
  progress_end();
  return code;
}

static int report_differences(const options *o, const comparison *c) {
  const char *first = NULL;
  size_t equal = 0, above = 0;
  if (o->as_json) printf("[");
  for (size_t i = 0; i < c->count; ++i) {
    difference d = compare_tensors(&c->tested[i].tensor, &c->reference[i].tensor);
    bool is_above = !(d.scaled <= o->tolerance);
    equal += d.different_bits == 0;
    above += is_above;
    if (!first && (is_above || d.different_bits)) first = o->by_node ? c->nodes[i] : c->names[i];
    if (o->as_json) {
      printf("%s{\"value\": ", i ? ", " : "");
      json_text(stdout, c->names[i]);
      printf(", \"node\": ");
      json_text(stdout, c->nodes[i]);
      printf(", \"elements\": %zu, \"different_bits\": %zu, \"scaled_error\": ",
             d.elems,
             d.different_bits);
      isfinite(d.scaled) ? printf("%.9g}", d.scaled) : printf("null}");
    } else if (d.different_bits || !o->by_node) {
      printf("%-32s %-18s %10zu of %zu elements differ, scaled error %.3g%s\n",
             c->names[i],
             c->types[i],
             d.different_bits,
             d.elems,
             d.scaled,
             is_above ? "  ABOVE" : "");
    }
  }
  if (o->as_json) {
    printf("]\n");
  } else {
    printf("%zu of %zu values have identical bits", equal, c->count);
    if (first) printf("; the first that differs: %s", first);
    printf("\n");
  }
  return above ? EXIT_DIFFERENT : EXIT_DONE;
}

static int compare_two(const options *o, om_model *model, const tensors *inputs) {
  opened tested = {0}, reference = {0};
  comparison c = {0};
  int code = EXIT_DONE;
  if (!list_values(model, om_model_get_info(model), o->by_node, &c)) {
    code = report_problem(EXIT_FAILED, "There is no memory for the list of values.");
  }
  if (code == EXIT_DONE) {
    code = run_session(o, model, o->device, o->mode, inputs, &c, c.tested, &tested);
  }
  if (code == EXIT_DONE) {
    code = run_session(
        o, model, o->reference_device, o->reference_mode, inputs, &c, c.reference, &reference);
  }
  if (code == EXIT_DONE) code = report_differences(o, &c);
  close_session(&tested);
  close_session(&reference);
  free(c.names);
  free(c.types);
  free(c.nodes);
  free(c.tested);
  free(c.reference);
  return code;
}

static int attribute(const options *o, const om_model *model, const tensors *inputs) {
  attribution found;
  int code = attribute_errors(o, model, inputs, &found);
  if (code == EXIT_DONE) code = report_attribution(o, &found);
  free_attribution(&found);
  return code;
}

int command_compare(int argc, char **argv) {
  options o;
  om_model *model = NULL;
  tensors inputs = {0};
  if (!options_parse(argc, argv, COMMAND_COMPARE, &o)) return EXIT_USAGE;
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  code = make_inputs(&o, om_model_get_info(model), &inputs);
  if (code == EXIT_DONE) {
    code = o.attributes ? attribute(&o, model, &inputs) : compare_two(&o, model, &inputs);
  }
  free_tensors(&inputs);
  om_model_destroy(model);
  return code;
}
