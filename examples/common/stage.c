#include "common/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_ms(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool runner_fail(const runner *r, const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", r->program, what, why);
  return false;
}

void runner_time(const runner *r, const char *what, int width, int height, double ms) {
  if (r->prints_times) printf("  %.3f ms  %s %dx%d\n", ms, what, width, height);
}

static bool parse_mode(const char *value, om_mode *out_mode) {
  if (strcmp(value, "fast") != 0 && strcmp(value, "exact") != 0) return false;
  *out_mode = strcmp(value, "exact") == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
  return true;
}

static bool parse_threads(const char *value, uint32_t *out_threads) {
  char *end = NULL;
  unsigned long threads = strtoul(value, &end, 10);
  *out_threads = (uint32_t)threads;
  return *value && !*end && threads <= 1024;
}

bool runner_parse(int argc, char **argv, int *at, runner_choice *choice) {
  const char *name = argv[*at];
  if (strcmp(name, "--require-gpu") == 0) {
    choice->require_gpu = true;
    return true;
  }
  if (strcmp(name, "--times") == 0) {
    choice->prints_times = true;
    return true;
  }
  if (*at + 1 >= argc) return false;
  const char *value = argv[++*at];
  if (strcmp(name, "--mode") == 0) return parse_mode(value, &choice->mode);
  if (strcmp(name, "--threads") == 0) return parse_threads(value, &choice->threads);
  choice->device = value;
  return strcmp(name, "--device") == 0;
}

void runner_init(runner *r, const char *program, const runner_choice *choice) {
  const char *device = choice->device;
  memset(r, 0, sizeof *r);
  r->program = program;
  r->prints_times = choice->prints_times;
  r->options = (om_session_options)OM_SESSION_OPTIONS_INIT;
  r->gpu = (om_gpu_options)OM_GPU_OPTIONS_INIT;
  r->options.mode = choice->mode;
  r->options.thread_count = choice->threads;
  r->options.require_gpu = choice->require_gpu;
  if (!device) {
    size_t count = 0;
    om_status status = om_gpu_list(NULL, 0, &count, &r->error);
    if (status != OM_OK || count == 0) return; /* the CPU */
  } else if (strcmp(device, "cpu") == 0) {
    return;
  } else if (strncmp(device, "gpu:", 4) == 0) {
    r->gpu.device = device + 4;
  } else if (strcmp(device, "gpu") != 0) {
    r->gpu.device = device;
  }
  r->options.provider = om_gpu_provider();
  r->options.provider_options = &r->gpu;
}

bool stage_open(runner *r, stage *s, const char *folder, const char *file) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", folder, file);
  if (length < 0 || (size_t)length >= sizeof path) {
    return runner_fail(r, folder, "The path is too long.");
  }
  s->file = file;
  if (om_model_load_file(path, NULL, &s->model, &r->error) != OM_OK ||
      om_session_create(s->model, &r->options, &s->session, &r->error) != OM_OK) {
    return runner_fail(r, file, r->error.message);
  }
  const om_model_info *info = om_model_get_info(s->model);
  if (info->input_count != 1 || info->output_count == 0) {
    return runner_fail(r, file, "The model does not have one input and an output.");
  }
  s->input = info->inputs[0].name;
  s->output = info->outputs[0].name;
  return true;
}

void stage_close(stage *s) {
  om_session_destroy(s->session);
  om_model_destroy(s->model);
}

float *stage_planes(runner *r, stage *s, int width, int height) {
  const size_t count = (size_t)width * (size_t)height * 3;
  void *planes = NULL;
  if (s->planes && count <= s->plane_count) return s->planes;
  om_session_return_memory(s->session, s->planes);
  s->planes = NULL;
  if (om_session_lend_memory(s->session, count * sizeof(float), &planes, &r->error) != OM_OK) {
    runner_fail(r, s->file, r->error.message);
    return NULL;
  }
  s->planes = planes;
  s->plane_count = count;
  return s->planes;
}

bool stage_run(runner *r, stage *s, int width, int height, float *planes, om_tensor *out) {
  const int64_t dims[4] = {1, 3, height, width};
  om_named_tensor input = {s->input, om_tensor_of(OM_DTYPE_F32, 4, dims, planes)};
  om_named_tensor output = {.name = s->output};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  double start = now_ms();
  om_status status = om_session_run(s->session, &args, &r->error);
  const double ms = now_ms() - start;
  s->ms += ms;
  s->runs += 1;
  s->width = width;
  s->height = height;
  if (status != OM_OK) return runner_fail(r, s->file, r->error.message);
  runner_time(r, s->file, width, height, ms);
  *out = output.tensor;
  return true;
}

bool runner_report(runner *r, const stage *s) {
  om_gpu_info info;
  if (!r->options.provider) {
    printf("ran on the CPU\n");
    return true;
  }
  if (om_gpu_get_info(s->session, &info, &r->error) != OM_OK) {
    return runner_fail(r, "device", r->error.message);
  }
  printf("ran on %s (%s, %s)\n", info.device.name, info.device.kind, info.device.driver);
  return true;
}

bool stage_report(runner *r, const stage *s) {
  const int64_t dims[4] = {1, 3, s->height, s->width};
  om_named_tensor input = {s->input, om_tensor_of(OM_DTYPE_F32, 4, dims, NULL)};
  const om_diagnostics *where = NULL;
  if (s->runs == 0) return true;
  if (om_session_diagnose(s->session, &input, 1, &where, &r->error) != OM_OK) {
    return runner_fail(r, s->file, r->error.message);
  }
  printf(
      "  %-36s %4zu operators on the device in %zu region%s, %zu on the CPU, %zu folded; "
      "%zu run%s, %.1f ms\n",
      s->file,
      where->nodes_on_device,
      where->region_count,
      where->region_count == 1 ? "" : "s",
      where->nodes_on_cpu,
      where->nodes_folded,
      s->runs,
      s->runs == 1 ? "" : "s",
      s->ms);
  return true;
}
