/* onemodel ops: the operators of this build, as text or as the README's table. */
#include <string.h>

#include "command.h"

static const om_gpu_operator_info *on_gpu(const om_operator_info *op) {
  const om_gpu_operator_info *gpu;
  for (size_t i = 0; (gpu = om_gpu_operator_get(i)) != NULL; ++i) {
    if (strcmp(gpu->domain, op->domain) == 0 && strcmp(gpu->type, op->type) == 0) return gpu;
  }
  return NULL;
}

int command_ops(int argc, char **argv) {
  options o;
  const om_operator_info *op;
  size_t cpu_count = 0, gpu_count = 0;
  if (!options_parse(argc, argv, false, &o)) return EXIT_USAGE;
  if (o.as_markdown) printf("| operator | from opset | GPU |\n| --- | --- | --- |\n");
  for (; (op = om_operator_get(cpu_count)) != NULL; ++cpu_count) {
    const om_gpu_operator_info *gpu = on_gpu(op);
    const char *dot = *op->domain ? "." : "", *types = gpu ? gpu->dtypes : "";
    const char *exact = gpu && !gpu->has_exact ? " (fast mode only)" : "";
    gpu_count += gpu != NULL;
    if (o.as_markdown) {
      printf("| %s%s%s | %d | %s%s |\n", op->domain, dot, op->type, (int)op->first_opset, types, exact);
    } else {
      printf("%s%s%-*s %3d  %s%s\n", op->domain, dot, 32, op->type, (int)op->first_opset, types, exact);
    }
  }
  if (!o.as_markdown) printf("%zu operators on the CPU, %zu of them on the GPU\n", cpu_count, gpu_count);
  return EXIT_DONE;
}
