/* onemodel compare: two executors on the same inputs.
 *
 * The error of a float tensor is max|a-b| / max|b|, b from the reference; NaN and infinity must
 * stand in the same places. Everything else must be equal. With --by-node every intermediate
 * value is an output of both sessions, which keeps operators from being fused or rewritten
 * across it: a difference that comes only from a fusion does not show there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "values.h"

typedef struct difference {
  double scaled;         /* 0: equal or nothing to compare; INFINITY: not comparable */
  size_t different_bits; /* elements whose bits differ */
  size_t elems;
} difference;

static difference compare_tensors(const om_tensor *a, const om_tensor *b) {
  difference d = {0, 0, om_tensor_elems(b)};
  double worst = 0, largest = 0;
  size_t bits = om_dtype_bits(b->dtype);
  if (a->dtype != b->dtype || a->rank != b->rank ||
      memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0) {
    return (difference){(double)INFINITY, d.elems, d.elems};
  }
  if (b->dtype == OM_DTYPE_STRING) {
    for (size_t i = 0; i < d.elems; ++i) {
      const om_string *x = (const om_string *)a->data + i, *y = (const om_string *)b->data + i;
      d.different_bits += x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0;
    }
    d.scaled = d.different_bits ? (double)INFINITY : 0;
    return d;
  }
  for (size_t i = 0; bits >= 8 && i < d.elems; ++i) {
    size_t n = bits / 8;
    d.different_bits +=
        memcmp((const char *)a->data + i * n, (const char *)b->data + i * n, n) != 0;
  }
  for (size_t i = 0; i < d.elems; ++i) {
    double x = value_as_double(a, i), y = value_as_double(b, i);
    bool is_finite = isfinite(x) && isfinite(y);
    if (!is_finite && !(isnan(x) && isnan(y)) && x != y) worst = (double)INFINITY;
    if (!is_finite) continue;
    worst = fmax(worst, fabs(x - y));
    largest = fmax(largest, fabs(y));
  }
  if (value_is_integer(b->dtype)) {
    d.scaled = d.different_bits ? (double)INFINITY : 0;
  } else {
    d.scaled = worst == 0 ? 0 : largest == 0 ? (double)INFINITY : worst / largest;
  }
  return d;
}

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

int command_compare(int argc, char **argv) {
  options o;
  opened tested = {0}, reference = {0};
  om_model *model = NULL;
  tensors inputs = {0};
  comparison c = {0};
  if (!options_parse(argc, argv, true, &o)) return EXIT_USAGE;
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  const om_model_info *info = om_model_get_info(model);
  code = make_inputs(&o, info, &inputs);
  if (code == EXIT_DONE && !list_values(model, info, o.by_node, &c)) {
    code = report_problem(EXIT_FAILED, "There is no memory for the list of values.");
  }
  if (code == EXIT_DONE) {
    code = run_session(&o, model, o.device, o.mode, &inputs, &c, c.tested, &tested);
  }
  if (code == EXIT_DONE) {
    code = run_session(
        &o, model, o.reference_device, o.reference_mode, &inputs, &c, c.reference, &reference);
  }
  if (code == EXIT_DONE) code = report_differences(&o, &c);
  close_session(&tested);
  close_session(&reference);
  free(c.names);
  free(c.types);
  free(c.nodes);
  free(c.tested);
  free(c.reference);
  free_tensors(&inputs);
  om_model_destroy(model);
  return code;
}
