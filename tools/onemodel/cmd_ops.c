/* onemodel ops: the operators of this build, as text or as the README's table. */
#include <string.h>

#include "command.h"

static bool find_on_gpu(const om_operator_info *op, om_gpu_operator_info *out) {
  for (size_t i = 0; om_gpu_operator_get(i, out); ++i) {
    if (strcmp(out->domain, op->domain) == 0 && strcmp(out->type, op->type) == 0) return true;
  }
  return false;
}

int command_ops(int argc, char **argv) {
  options o;
  const om_operator_info *op;
  size_t cpu_count = 0, gpu_count = 0;
  if (!options_parse(argc, argv, false, &o)) return EXIT_USAGE;
  if (o.as_markdown) printf("| operator | from opset | GPU |\n| --- | --- | --- |\n");
  for (; (op = om_operator_get(cpu_count)) != NULL; ++cpu_count) {
    om_gpu_operator_info gpu;
    bool is_on_gpu = find_on_gpu(op, &gpu);
    const char *dot = *op->domain ? "." : "", *types = is_on_gpu ? gpu.dtypes : "";
    const char *exact = is_on_gpu && !gpu.has_exact ? " (fast mode only)" : "";
    gpu_count += is_on_gpu;
    if (o.as_markdown) {
      printf("| %s%s%s | %d | %s%s |\n",
             op->domain,
             dot,
             op->type,
             (int)op->first_opset,
             types,
             exact);
    } else {
      printf("%s%s%-*s %3d  %s%s\n",
             op->domain,
             dot,
             32,
             op->type,
             (int)op->first_opset,
             types,
             exact);
    }
  }
  if (!o.as_markdown)
    printf("%zu operators on the CPU, %zu of them on the GPU\n", cpu_count, gpu_count);
  return EXIT_DONE;
}
