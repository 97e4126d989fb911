/* onemodel ops: the operators of this build, as text, as JSON, or as the README's table. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* The GPU's operators; the caller frees them. */
static om_gpu_operator_info *list_gpu(size_t *out_count) {
  om_gpu_operator_info one, *all;
  size_t count = 0;
  while (om_gpu_operator_get(count, &one)) ++count;
  all = calloc(count + 1, sizeof *all);
  for (size_t i = 0; all && i < count; ++i) om_gpu_operator_get(i, &all[i]);
  *out_count = count;
  return all;
}

static const om_gpu_operator_info *find(const om_gpu_operator_info *all,
                                        size_t count,
                                        const om_operator_info *op) {
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(all[i].domain, op->domain) == 0 && strcmp(all[i].type, op->type) == 0) {
      return &all[i];
    }
  }
  return NULL;
}

static void print_operator(const options *o,
                           const om_operator_info *op,
                           const om_gpu_operator_info *gpu,
                           bool is_first) {
  const char *parts = op->is_composed ? "what it is composed of" : "";
  const char *dot = *op->domain ? "." : "", *types = gpu ? gpu->dtypes : parts;
  const char *exact = gpu && !gpu->has_exact ? " (fast mode only)" : "";
  int opset = (int)op->first_opset;
  if (o->as_markdown) {
    printf("| %s%s%s | %d | %s%s |\n", op->domain, dot, op->type, opset, types, exact);
  } else if (o->as_json) {
    printf("%s{\"operator\": \"%s%s%s\", \"from_opset\": %d, \"gpu\": \"%s\", \"gpu_exact\": %s}",
           is_first ? "" : ", ",
           op->domain,
           dot,
           op->type,
           opset,
           types,
           gpu && gpu->has_exact ? "true" : "false");
  } else {
    printf("%s%s%-*s %3d  %s%s\n", op->domain, dot, 32, op->type, opset, types, exact);
  }
}

int command_ops(int argc, char **argv) {
  options o;
  const om_operator_info *op;
  size_t cpu_count = 0, gpu_count = 0, shared_count = 0;
  if (!options_parse(argc, argv, false, &o)) return EXIT_USAGE;
  om_gpu_operator_info *gpus = list_gpu(&gpu_count);
  if (!gpus) return report_problem(EXIT_FAILED, "There is no memory for the list of operators.");
  if (o.as_markdown) printf("| operator | from opset | GPU |\n| --- | --- | --- |\n");
  if (o.as_json) printf("[");
  for (; (op = om_operator_get(cpu_count)) != NULL; ++cpu_count) {
    const om_gpu_operator_info *gpu = find(gpus, gpu_count, op);
    shared_count += gpu != NULL;
    print_operator(&o, op, gpu, cpu_count == 0);
  }
  if (o.as_json) printf("]\n");
  if (!o.as_markdown && !o.as_json) {
    printf("%zu operators on the CPU, %zu of them on the GPU\n", cpu_count, shared_count);
  }
  free(gpus);
  return EXIT_DONE;
}
