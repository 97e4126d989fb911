/* onemodel bench: how long a run takes, and what it holds.
 *
 * Wall time is measured around om_session_run, inputs and outputs in host memory: in what the
 * session lends, or with --own-memory the inputs in the caller's. Device time comes from the
 * device's own clock in the same runs; host time is what is left. With --profile each dispatch runs
 * on its own, so all times are longer than without.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "command.h"
#include "profile.h"

typedef struct figures {
  double create_ms, first_ms;
  double wall[5], device[5]; /* smallest, 10 %, median, 90 %, largest */
  unsigned runs;
  uint64_t allocations; /* host and device, after the warm-up */
  profile profile;      /* owned; empty without --profile */
} figures;

static void spread(double *values, unsigned count, double out[5]) {
  static const double at[5] = {0, 0.1, 0.5, 0.9, 1};
  qsort(values, count, sizeof *values, compare_doubles);
  for (int i = 0; i < 5; ++i) out[i] = values[(unsigned)(at[i] * (count - 1) + 0.5)];
}

static uint64_t allocations_so_far(const opened *it, om_gpu_info *info) {
  om_error error;
  uint64_t count = om_session_get_statistics(it->session).host_allocations;
  if (it->on_gpu && om_gpu_get_info(it->session, info, &error) == OM_OK) count += info->allocations;
  return count;
}

static int measure(const options *o,
                   const opened *it,
                   const tensors *inputs,
                   om_named_tensor *outputs,
                   size_t output_count,
                   figures *f) {
  om_gpu_info info = {0};
  om_error error;
  double *wall = malloc(o->runs * sizeof *wall), *device = malloc(o->runs * sizeof *device);
  uint64_t before = 0;
  int code = EXIT_DONE;
  if (!wall || !device) code = report_problem(EXIT_FAILED, "There is no memory for the times.");
  progress_begin("measuring");
  for (unsigned i = 0; i < o->warmup + o->runs && code == EXIT_DONE; ++i) {
    double start = now_ms();
    if (i == o->warmup) before = allocations_so_far(it, &info);
    start = now_ms();
    code = run_once(it->session, inputs, outputs, output_count);
    double ms = now_ms() - start;
    if (i == 0) f->first_ms = ms;
    if (i < o->warmup) continue;
    wall[i - o->warmup] = ms;
    device[i - o->warmup] = 0;
    if (it->on_gpu && om_gpu_get_info(it->session, &info, &error) == OM_OK) {
      device[i - o->warmup] = info.device_ms;
    }
    if (o->profiles && code == EXIT_DONE) code = profile_add(&f->profile, it->session);
  }
  progress_end();
  if (code == EXIT_DONE) {
    f->allocations = allocations_so_far(it, &info) - before;
    f->runs = o->runs;
    spread(wall, o->runs, f->wall);
    spread(device, o->runs, f->device);
  }
  free(wall);
  free(device);
  return code;
}

/* What is printed beside the figures. */
typedef struct surroundings {
  om_session_statistics statistics;
  om_gpu_info gpu;
  bool has_device;
  double rss_mb; /* of the process, at most */
} surroundings;

static surroundings get_surroundings(const opened *it) {
  struct rusage usage;
  om_error error;
  surroundings s = {.statistics = om_session_get_statistics(it->session)};
  getrusage(RUSAGE_SELF, &usage);
  s.rss_mb = (double)usage.ru_maxrss * 1024 / 1e6;
  s.has_device = it->on_gpu && om_gpu_get_info(it->session, &s.gpu, &error) == OM_OK;
  return s;
}

static void print_json_device(const figures *f, const om_gpu_info *info) {
  printf(", \"device\": ");
  json_text(stdout, info->device.name);
  printf(", \"driver\": ");
  json_text(stdout, info->device.driver);
  printf(
      ", \"device_ms\": %.4f, \"host_ms\": %.4f, \"dispatches\": %llu, \"submissions\": %llu, "
      "\"record_ms\": %.4f, \"submit_ms\": %.4f, \"wait_ms\": %.4f, \"arena_mb\": %.3f, "
      "\"live_mb\": %.3f, \"weights_mb\": %.3f, \"staged_mb\": %.3f, \"sm90\": %s",
      f->device[2],
      f->wall[2] - f->device[2],
      (unsigned long long)info->dispatches,
      (unsigned long long)info->submissions,
      info->record_ms,
      info->submit_ms,
      info->wait_ms,
      (double)info->arena_bytes / 1e6,
      (double)info->live_bytes / 1e6,
      (double)info->weight_bytes / 1e6,
      (double)info->staged_bytes / 1e6,
      info->has_sm90 ? "true" : "false");
}

static void print_json(const figures *f, const surroundings *s) {
  printf(
      "{\"create_ms\": %.3f, \"first_run_ms\": %.3f, \"runs\": %u, \"wall_ms\": {\"min\": %.4f, "
      "\"p10\": %.4f, \"median\": %.4f, \"p90\": %.4f, \"max\": %.4f}, ",
      f->create_ms,
      f->first_ms,
      f->runs,
      f->wall[0],
      f->wall[1],
      f->wall[2],
      f->wall[3],
      f->wall[4]);
  printf("\"allocations\": %llu, \"peak_rss_mb\": %.1f, \"session_peak_mb\": %.3f",
         (unsigned long long)f->allocations,
         s->rss_mb,
         (double)s->statistics.host_peak_bytes / 1e6);
  if (s->has_device) print_json_device(f, &s->gpu);
  if (f->profile.runs > 0) {
    printf(", \"profile\": {");
    profile_print_json(&f->profile);
    printf("}");
  }
  printf("}\n");
}

static const char *plural(uint64_t count) {
  return count == 1 ? "" : "s";
}

static void print_device(const figures *f, const om_gpu_info *info) {
  printf("device %.3f ms, host beside it %.3f ms; %llu dispatch%s in %llu submission%s on %s%s\n",
         f->device[2],
         f->wall[2] - f->device[2],
         (unsigned long long)info->dispatches,
         info->dispatches == 1 ? "" : "es",
         (unsigned long long)info->submissions,
         plural(info->submissions),
         info->device.name,
         info->has_sm90 ? ", with the kernels for Hopper" : "");
  printf("the last run: %.2f MB copied and %.3f ms before the submission, %.3f ms submitting, ",
         (double)info->staged_bytes / 1e6,
         info->record_ms,
         info->submit_ms);
  printf("%.3f ms waiting and reading back\n", info->wait_ms);
  printf("device memory: weights %.2f MB, arena %.2f MB, ",
         (double)info->weight_bytes / 1e6,
         (double)info->arena_bytes / 1e6);
  printf("%.3f times the %.2f MB that are there at once\n",
         info->live_bytes ? (double)info->arena_bytes / (double)info->live_bytes : 0,
         (double)info->live_bytes / 1e6);
}

static void print_text(const figures *f, const surroundings *s) {
  printf("session made in %.1f ms, first run %.1f ms\n", f->create_ms, f->first_ms);
  printf("%u run%s: median %.3f ms (10 %% below %.3f, 90 %% below %.3f, least %.3f)\n",
         f->runs,
         plural(f->runs),
         f->wall[2],
         f->wall[1],
         f->wall[3],
         f->wall[0]);
  if (s->has_device) print_device(f, &s->gpu);
  printf("allocations after the warm-up: %llu; peak memory of the process %.1f MB\n",
         (unsigned long long)f->allocations,
         s->rss_mb);
  if (f->profile.runs > 0) profile_print(&f->profile);
}

int command_bench(int argc, char **argv) {
  options o;
  opened it = {0};
  om_model *model = NULL;
  tensors inputs = {0};
  om_named_tensor *outputs = NULL;
  figures f = {0};
  if (!options_parse(argc, argv, COMMAND_BENCH, &o)) return EXIT_USAGE;
  int code = open_model(&o, &model);
  if (code != EXIT_DONE) return code;
  const om_model_info *info = om_model_get_info(model);
  code = make_inputs(&o, info, &inputs);
  if (code != EXIT_DONE) goto done;
  f.create_ms = now_ms();
  code = open_session(&o, model, o.device, o.mode, true, NULL, 0, &it);
  f.create_ms = now_ms() - f.create_ms;
  if (code != EXIT_DONE) goto done;
  if (o.profiles && !it.on_gpu) {
    code = report_problem(EXIT_USAGE, "--profile: the model does not run on a GPU.");
    goto done;
  }
  if (!o.own_memory) code = lend_inputs(it.session, &inputs);
  if (code != EXIT_DONE) goto done;
  outputs = calloc(info->output_count + 1, sizeof *outputs);
  if (!outputs) {
    code = report_problem(EXIT_FAILED, "There is no memory for the outputs.");
    goto done;
  }
  for (size_t i = 0; i < info->output_count; ++i) outputs[i].name = info->outputs[i].name;
  code = measure(&o, &it, &inputs, outputs, info->output_count, &f);
  if (code == EXIT_DONE) {
    const surroundings s = get_surroundings(&it);
    o.as_json ? print_json(&f, &s) : print_text(&f, &s);
  }
done:
  profile_free(&f.profile);
  free(outputs);
  free_tensors(&inputs);
  close_session(&it);
  om_model_destroy(model);
  return code;
}
