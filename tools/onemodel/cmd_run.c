/* onemodel run: one run; the outputs in a file, or the first values of each on stdout. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "npy.h"
#include "values.h"

enum { SHOWN = 8 }; /* elements of an output */

static void print_element(const om_tensor *t, size_t index, bool as_json) {
  if (t->dtype == OM_DTYPE_STRING) {
    const om_string *s = (const om_string *)t->data + index;
    char text[256];
    snprintf(text, sizeof text, "%.*s", s->bytes < 255 ? (int)s->bytes : 255, s->data);
    json_text(stdout, text);
  } else if (value_is_integer(t->dtype)) {
    printf("%" PRId64, value_as_integer(t, index));
  } else if (as_json && !isfinite(value_as_double(t, index))) {
    printf("null");
  } else {
    printf("%.7g", value_as_double(t, index));
  }
}

/* Elements of sequences, optionals and maps on lines of their own, as deep as values nest. */
static void print_output(const char *name, const om_tensor *t) {
  size_t elems = om_tensor_elems(t);
  const bool is_nested = t->dtype >= OM_DTYPE_MAP;
  printf("%s: %s [", name, om_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank; ++i) printf("%s%" PRId64, i ? ", " : "", t->dims[i]);
  printf("]");
  for (size_t i = 0; i < elems && i < SHOWN && !is_nested; ++i) {
    printf(" ");
    print_element(t, i, false);
  }
  printf("%s\n", elems > SHOWN ? " ..." : "");
  for (size_t i = 0; i < elems && i < SHOWN && is_nested; ++i) {
    char inner[256];
    snprintf(inner, sizeof inner, "%.200s[%zu]", name, i);
    print_output(inner, (const om_tensor *)t->data + i);
  }
}

static void print_json_output(const char *name, const om_tensor *t) {
  size_t elems = om_tensor_elems(t);
  const bool is_nested = t->dtype >= OM_DTYPE_MAP;
  printf("{\"name\": ");
  json_text(stdout, name);
  printf(", \"dtype\": \"%s\", \"shape\": [", om_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank; ++i) printf("%s%" PRId64, i ? ", " : "", t->dims[i]);
  printf("], \"first\": [");
  for (size_t i = 0; i < elems && i < SHOWN; ++i) {
    printf("%s", i ? ", " : "");
    if (is_nested) {
      print_json_output("", (const om_tensor *)t->data + i);
    } else {
      print_element(t, i, true);
    }
  }
  printf("]}");
}

static void print_json(const om_named_tensor *outputs, size_t count, const char *ran_on) {
  printf("{\"ran_on\": ");
  json_text(stdout, ran_on);
  printf(", \"outputs\": [");
  for (size_t k = 0; k < count; ++k) {
    printf("%s", k ? ", " : "");
    print_json_output(outputs[k].name, &outputs[k].tensor);
  }
  printf("]}\n");
}

/* The device's name, or "CPU". */
static const char *place(const opened *it, om_gpu_info *info) {
  om_error error;
  if (!it->on_gpu || om_gpu_get_info(it->session, info, &error) != OM_OK) return "CPU";
  return info->device.name;
}

int command_run(int argc, char **argv) {
  options o;
  opened it = {0};
  om_model *model = NULL;
  tensors inputs = {0};
  om_named_tensor *outputs = NULL;
  const char *problem = NULL;
  om_gpu_info gpu_info;
  if (!options_parse(argc, argv, COMMAND_RUN, &o)) return EXIT_USAGE;
  if (o.out && !has_suffix(o.out, ".npz")) {
    return report_problem(EXIT_USAGE, "--out: expects a name that ends in .npz.");
  }
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  const om_model_info *info = om_model_get_info(model);
  code = make_inputs(&o, info, &inputs);
  if (code != EXIT_DONE) goto done;
  code = open_session(&o, model, o.device, o.mode, false, NULL, 0, &it);
  if (code != EXIT_DONE) goto done;
  outputs = calloc(info->output_count + 1, sizeof *outputs);
  if (!outputs) {
    code = report_problem(EXIT_FAILED, "There is no memory for the outputs.");
    goto done;
  }
  for (size_t i = 0; i < info->output_count; ++i) outputs[i].name = info->outputs[i].name;
  progress_begin("running");
  code = run_once(it.session, &inputs, outputs, info->output_count);
  progress_end();
  if (code != EXIT_DONE) goto done;
  if (o.out && !npz_write(o.out, outputs, info->output_count, &problem)) {
    code = report_problem(EXIT_FILE, "%s: %s", o.out, problem);
  }
  const char *ran_on = place(&it, &gpu_info);
  if (o.as_json) {
    print_json(outputs, info->output_count, ran_on);
    goto done;
  }
  for (size_t i = 0; !o.out && i < info->output_count; ++i)
    print_output(outputs[i].name, &outputs[i].tensor);
  printf("ran on %s%s\n", ran_on, o.input_count < info->input_count ? ", inputs at random" : "");
done:
  free(outputs);
  free_tensors(&inputs);
  close_session(&it);
  om_model_destroy(model);
  return code;
}
