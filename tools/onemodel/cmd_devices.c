/* onemodel devices: lists the GPUs. */
#include <stdlib.h>

#include "command.h"

int command_devices(int argc, char **argv) {
  options o;
  om_error error;
  om_gpu_device devices[16];
  size_t count = 0;
  if (!options_parse(argc, argv, COMMAND_DEVICES, &o)) return EXIT_USAGE;
  if (om_gpu_list(devices, 16, &count, &error) != OM_OK) return report_error(&error);
  size_t shown = count < 16 ? count : 16;
  if (o.as_json) printf("[");
  for (size_t i = 0; i < shown; ++i) {
    const om_gpu_device *d = &devices[i];
    if (!o.as_json) {
      printf("gpu:%zu  %s\n       %s, %s, %s, %.1f GiB, UUID %s\n",
             i,
             d->name,
             d->kind,
             d->backend,
             d->driver,
             (double)d->memory_bytes / (1024.0 * 1024 * 1024),
             d->uuid);
      continue;
    }
    printf("%s{\"index\": %zu, \"name\": ", i ? ", " : "", i);
    json_text(stdout, d->name);
    printf(", \"kind\": ");
    json_text(stdout, d->kind);
    printf(", \"backend\": ");
    json_text(stdout, d->backend);
    printf(", \"driver\": ");
    json_text(stdout, d->driver);
    printf(", \"memory_bytes\": %llu, \"uuid\": \"%s\"}",
           (unsigned long long)d->memory_bytes,
           d->uuid);
  }
  if (o.as_json) printf("]\n");
  if (count == 0 && !o.as_json) printf("no GPU: %s\n", error.message);
  return EXIT_DONE;
}
