/* onemodel run: one run; the outputs in a file, or the first values of each on stdout. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "npy.h"
#include "values.h"

static void print_output(const om_named_tensor *it) {
  enum { SHOWN = 8 };
  const om_tensor *t = &it->tensor;
  size_t elems = om_tensor_elems(t);
  printf("%s: %s [", it->name, om_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank; ++i) printf("%s%" PRId64, i ? ", " : "", t->dims[i]);
  printf("]");
  for (size_t i = 0; i < elems && i < SHOWN; ++i) {
    if (t->dtype == OM_DTYPE_STRING) {
      const om_string *s = (const om_string *)t->data + i;
      printf(" \"%.*s\"", (int)s->bytes, s->data);
    } else if (value_is_integer(t->dtype)) {
      printf(" %" PRId64, value_as_integer(t, i));
    } else {
      printf(" %.7g", value_as_double(t, i));
    }
  }
  printf("%s\n", elems > SHOWN ? " ..." : "");
}

int command_run(int argc, char **argv) {
  options o;
  opened it = {0};
  om_model *model = NULL;
  tensors inputs = {0};
  om_named_tensor *outputs = NULL;
  const char *problem = NULL;
  if (!options_parse(argc, argv, true, &o)) return EXIT_USAGE;
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
  for (size_t i = 0; !o.out && i < info->output_count; ++i) print_output(&outputs[i]);
done:
  free(outputs);
  free_tensors(&inputs);
  close_session(&it);
  om_model_destroy(model);
  return code;
}
