/* The runs of an attribution.
 *
 * Each executor runs twice: as it would, which tells what values it makes and its ordinary
 * results, then with these values as outputs, so that rewrites and fusions are those of an
 * ordinary run. The graph in float64 runs on the CPU, as does, for each value, the part of it that
 * makes this value from the executor's own values before it.
 */
#include "attribute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "difference.h"
#include "onnx/om_model.h"
#include "rewrite/om_float64.h"
#include "values.h"

typedef struct executor {
  const char *device, *mode;
  opened it;
  om_named_tensor *outputs; /* owned; lent data */
  const char **names;       /* owned; of outputs */
  size_t count;
  const om_tensor **by_value; /* owned; by value: what it has of it, or NULL */
  bool *is_given;             /* owned; the same, as om_graph_extract wants it */
} executor;

typedef struct named_value {
  const char *name;
  om_value_id id;
} named_value;

typedef struct work {
  const options *o;
  const om_model *model;
  const om_graph *graph; /* the model's */
  const tensors *inputs;
  om_error error;
  om_ctx ctx;
  om_model *wide; /* owned: the model in float64; the first values are the model's */
  executor executors[EXECUTORS];
  executor reference; /* of `wide` */
  tensors wide_inputs;
  named_value *sorted; /* owned */
  attributed **row_of; /* owned; by value */
  attribution *result;
} work;

static int fail_memory(void) {
  return report_problem(EXIT_FAILED, "There is no memory for the values of the graph.");
}

/* ---- Values by name ---- */

static int compare_names(const void *a, const void *b) {
  return strcmp(((const named_value *)a)->name, ((const named_value *)b)->name);
}

static bool sort_values(work *w) {
  const size_t count = w->graph->value_count;
  w->sorted = calloc(count + 1, sizeof *w->sorted);
  if (!w->sorted) return false;
  for (om_value_id id = 0; id < count; ++id) {
    w->sorted[id] = (named_value){w->graph->values[id].name, id};
  }
  qsort(w->sorted, count, sizeof *w->sorted, compare_names);
  return true;
}

static om_value_id find_value(const work *w, const char *name) {
  const named_value *found = bsearch(&(named_value){.name = name},
                                     w->sorted,
                                     w->graph->value_count,
                                     sizeof *w->sorted,
                                     compare_names);
  return found ? found->id : OM_NO_VALUE;
}

/* ---- Float64 ---- */

/* A copy in the type that is wanted; the caller frees its data. */
static bool convert(const om_tensor *from, om_dtype dtype, om_tensor *out) {
  *out = om_tensor_of(dtype, from->rank, from->dims, NULL);
  out->data = malloc(out->data_bytes + 1);
  if (!out->data) return false;
  if (dtype == from->dtype) {
    memcpy(out->data, from->data, out->data_bytes);
  } else {
    for (size_t i = 0; i < om_tensor_elems(from); ++i) {
      ((double *)out->data)[i] = value_as_double(from, i);
    }
  }
  return true;
}

static om_dtype widened(om_dtype dtype) {
  const bool is_narrow = dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
  return is_narrow ? OM_DTYPE_F64 : dtype;
}

static int widen_model(work *w) {
  om_graph graph;
  om_status status = om_graph_to_float64(&w->ctx, w->graph, &graph);
  if (status == OM_OK) status = om_model_create_from_graph(&w->ctx, &graph, &w->wide);
  return status == OM_OK ? EXIT_DONE : report_error(&w->error);
}

static int widen_inputs(work *w) {
  w->wide_inputs.items = calloc(w->inputs->count + 1, sizeof *w->wide_inputs.items);
  if (!w->wide_inputs.items) return fail_memory();
  for (size_t i = 0; i < w->inputs->count; ++i) {
    const om_named_tensor *from = &w->inputs->items[i];
    om_named_tensor *to = &w->wide_inputs.items[w->wide_inputs.count++];
    to->name = from->name;
    if (!convert(&from->tensor, widened(from->tensor.dtype), &to->tensor)) return fail_memory();
  }
  return EXIT_DONE;
}

/* ---- One executor ---- */

static bool allocate(const work *w, executor *e) {
  const size_t count = w->graph->value_count + 1;
  e->outputs = calloc(count, sizeof *e->outputs);
  e->names = calloc(count, sizeof *e->names);
  e->by_value = calloc(count, sizeof *e->by_value);
  e->is_given = calloc(count, sizeof *e->is_given);
  if (!e->outputs || !e->names || !e->by_value || !e->is_given) return false;
  for (size_t i = 0; i < w->graph->input_count; ++i) e->is_given[w->graph->inputs[i]] = true;
  return true;
}

static void ask_for(work *w, executor *e, om_value_id id) {
  if (e->is_given[id]) return;
  e->is_given[id] = true;
  e->names[e->count] = w->graph->values[id].name;
  e->outputs[e->count].name = e->names[e->count];
  e->count += 1;
}

static bool name_row(attributed *row, const om_node_diagnostics *node) {
  if (row->node) return true;
  row->node = strdup(node->name);
  row->type = strdup(node->op_type);
  return row->node && row->type;
}

/* The values that an ordinary run of the session makes, as far as the model has them. */
static int ask_for_steps(work *w, executor *e, om_session *session) {
  const om_diagnostics *d = NULL;
  om_status status =
      om_session_diagnose(session, w->inputs->items, w->inputs->count, &d, &w->error);
  if (status != OM_OK) return report_error(&w->error);
  for (size_t i = 0; i < d->node_count; ++i) {
    const om_node_diagnostics *node = &d->nodes[i];
    for (size_t k = 0; k < node->output_count; ++k) {
      const om_value_id id = find_value(w, node->output_names[k]);
      if (id == OM_NO_VALUE || !w->row_of[id]) continue;
      ask_for(w, e, id);
      if (!name_row(w->row_of[id], node)) return fail_memory();
    }
  }
  return EXIT_DONE;
}

/* Runs the model (or `wide`) with all that was asked for. */
static int run_asked(work *w, executor *e, const om_model *model, const tensors *inputs) {
  int code = open_session(w->o, model, e->device, e->mode, false, e->names, e->count, &e->it);
  if (code != EXIT_DONE) return code;
  progress_begin("running with every value as an output");
  code = run_once(e->it.session, inputs, e->outputs, e->count);
  progress_end();
  for (size_t i = 0; i < e->count; ++i) {
    e->by_value[find_value(w, e->names[i])] = &e->outputs[i].tensor;
  }
  return code;
}

static bool is_ordinary(const work *w, const executor *e, const om_named_tensor *plain) {
  bool is_same = true;
  for (size_t i = 0; i < w->graph->output_count; ++i) {
    const om_tensor *has = e->by_value[w->graph->outputs[i]];
    if (has && compare_tensors(has, &plain[i].tensor).different_bits > 0) is_same = false;
  }
  return is_same;
}

static int run_executor(work *w, executor *e, bool *out_is_ordinary) {
  opened ordinary = {0};
  const size_t count = w->graph->output_count;
  om_named_tensor *plain = calloc(count + 1, sizeof *plain);
  if (!plain || !allocate(w, e)) {
    free(plain);
    return fail_memory();
  }
  for (size_t i = 0; i < count; ++i) plain[i].name = w->graph->values[w->graph->outputs[i]].name;
  int code = open_session(w->o, w->model, e->device, e->mode, false, NULL, 0, &ordinary);
  if (code == EXIT_DONE) code = ask_for_steps(w, e, ordinary.session);
  if (code == EXIT_DONE) code = run_once(ordinary.session, w->inputs, plain, count);
  if (code == EXIT_DONE) code = run_asked(w, e, w->model, w->inputs);
  if (code == EXIT_DONE) *out_is_ordinary = is_ordinary(w, e, plain);
  close_session(&ordinary);
  free(plain);
  return code;
}

static int run_reference(work *w) {
  executor *e = &w->reference;
  *e = (executor){.device = "cpu", .mode = "exact"};
  if (!allocate(w, e)) return fail_memory();
  for (om_value_id id = 0; id < w->graph->value_count; ++id) {
    for (size_t k = 0; k < EXECUTORS; ++k) {
      if (w->executors[k].by_value && w->executors[k].by_value[id]) ask_for(w, e, id);
    }
  }
  return run_asked(w, e, w->wide, &w->wide_inputs);
}

/* ---- What a step adds ---- */

/* The executor's value in the type that the part wants. */
static const om_tensor *value_for(const work *w, const executor *e, om_value_id id) {
  if (e->by_value[id]) return e->by_value[id];
  for (size_t i = 0; i < w->inputs->count; ++i) {
    if (strcmp(w->inputs->items[i].name, w->graph->values[id].name) == 0) {
      return &w->inputs->items[i].tensor;
    }
  }
  return NULL;
}

static int make_part_inputs(const work *w,
                            const executor *e,
                            const om_model_info *info,
                            tensors *out) {
  out->items = calloc(info->input_count + 1, sizeof *out->items);
  if (!out->items) return fail_memory();
  for (size_t i = 0; i < info->input_count; ++i) {
    om_named_tensor *to = &out->items[out->count++];
    const om_value_id id = find_value(w, info->inputs[i].name);
    const om_tensor *from = value_for(w, e, id), *reference = w->reference.by_value[id];
    to->name = info->inputs[i].name;
    const om_dtype dtype = reference ? reference->dtype : widened(from->dtype);
    if (!convert(from, dtype, &to->tensor)) return fail_memory();
  }
  return EXIT_DONE;
}

static int run_part(work *w, const executor *e, const om_model *part, om_value_id id, double *out) {
  om_session *session = NULL;
  om_session_options how = OM_SESSION_OPTIONS_INIT;
  tensors inputs = {0};
  om_named_tensor output = {.name = w->graph->values[id].name};
  how.mode = OM_MODE_EXACT;
  how.thread_count = w->o->threads;
  int code = make_part_inputs(w, e, om_model_get_info(part), &inputs);
  if (code == EXIT_DONE && om_session_create(part, &how, &session, &w->error) != OM_OK) {
    code = report_error(&w->error);
  }
  if (code == EXIT_DONE) code = run_once(session, &inputs, &output, 1);
  if (code == EXIT_DONE) *out = compare_tensors(e->by_value[id], &output.tensor).scaled;
  om_session_destroy(session);
  free_tensors(&inputs);
  return code;
}

static int find_added(work *w, executor *e, om_value_id id, double *out) {
  om_graph graph;
  om_model *part = NULL;
  const om_graph *wide = om_model_get_graph(w->wide);
  /* The graph in float64 has values of its own behind the graph's. */
  bool *is_given = calloc(wide->value_count + 1, sizeof *is_given);
  if (!is_given) return fail_memory();
  memcpy(is_given, e->is_given, w->graph->value_count * sizeof *is_given);
  om_status status = om_graph_extract(&w->ctx, wide, is_given, id, &graph);
  free(is_given);
  if (status == OM_OK) status = om_model_create_from_graph(&w->ctx, &graph, &part);
  if (status != OM_OK) return report_error(&w->error);
  const int code = run_part(w, e, part, id, out);
  om_model_destroy(part);
  return code;
}

static int fill_row(work *w, om_value_id id, attributed *row) {
  const om_tensor *reference = w->reference.by_value[id];
  for (size_t k = 0; k < EXECUTORS; ++k) {
    executor *e = &w->executors[k];
    if (!e->by_value || !e->by_value[id]) continue;
    row->is_made[k] = true;
    row->so_far[k] = compare_tensors(e->by_value[id], reference).scaled;
    const int code = find_added(w, e, id, &row->added[k]);
    if (code != EXIT_DONE) return code;
  }
  row->elems = om_tensor_elems(reference);
  return EXIT_DONE;
}

/* ---- All of it ---- */

/* A row for each value that a node makes, in the nodes' order. */
static int make_rows(work *w) {
  const om_graph *graph = w->graph;
  attribution *result = w->result;
  w->row_of = calloc(graph->value_count + 1, sizeof(attributed *));
  result->rows = calloc(graph->value_count + 1, sizeof *result->rows);
  if (!w->row_of || !result->rows || !sort_values(w)) return fail_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->output_count; ++k) {
      if (node->outputs[k] == OM_NO_VALUE) continue;
      const om_value *value = &graph->values[node->outputs[k]];
      attributed *row = w->row_of[node->outputs[k]] = &result->rows[result->row_count++];
      *row = (attributed){.value = value->name, .is_output = value->is_output};
    }
  }
  return EXIT_DONE;
}

static int fill_rows(work *w) {
  int code = EXIT_DONE;
  for (om_value_id id = 0; id < w->graph->value_count && code == EXIT_DONE; ++id) {
    if (w->reference.by_value[id]) code = fill_row(w, id, w->row_of[id]);
  }
  return code;
}

static int run_all(work *w) {
  static const struct {
    const char *name, *mode;
    bool on_device;
  } kinds[EXECUTORS] = {{"device fast", "fast", true},
                        {"device exact", "exact", true},
                        {"CPU exact", "exact", false}};
  size_t device_count = 0;
  const char *device = w->o->device;
  const bool has_device =
      device ? strcmp(device, "cpu") != 0
             : om_gpu_list(NULL, 0, &device_count, &w->error) == OM_OK && device_count > 0;
  for (size_t k = 0; k < EXECUTORS; ++k) {
    if (kinds[k].on_device && !has_device) continue;
    w->result->executors[k] = kinds[k].name;
    w->executors[k].device = kinds[k].on_device ? device : "cpu";
    w->executors[k].mode = kinds[k].mode;
    const int code = run_executor(w, &w->executors[k], &w->result->is_ordinary[k]);
    if (code != EXIT_DONE) return code;
  }
  const int code = run_reference(w);
  if (code != EXIT_DONE) return code;
  progress_begin("computing what each step adds");
  return fill_rows(w);
}

static void free_executor(executor *e) {
  close_session(&e->it);
  free(e->outputs);
  free(e->names);
  free(e->by_value);
  free(e->is_given);
}

int attribute_errors(const options *o,
                     const om_model *model,
                     const tensors *inputs,
                     attribution *out) {
  work w = {.o = o,
            .model = model,
            .graph = om_model_get_graph(model),
            .inputs = inputs,
            .ctx = {.allocator = om_default_allocator(), .thread_count = 1},
            .result = out};
  *out = (attribution){0};
  w.ctx.error = &w.error;
  int code = make_rows(&w);
  if (code == EXIT_DONE) code = widen_model(&w);
  if (code == EXIT_DONE) code = widen_inputs(&w);
  if (code == EXIT_DONE) code = run_all(&w);
  progress_end();
  for (size_t k = 0; k < EXECUTORS; ++k) free_executor(&w.executors[k]);
  free_executor(&w.reference);
  om_model_destroy(w.wide);
  free_tensors(&w.wide_inputs);
  free(w.sorted);
  free(w.row_of);
  return code;
}

void free_attribution(attribution *it) {
  for (size_t i = 0; i < it->row_count; ++i) {
    free(it->rows[i].node);
    free(it->rows[i].type);
  }
  free(it->rows);
  *it = (attribution){0};
}
