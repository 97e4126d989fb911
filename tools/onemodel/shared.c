/* Sessions, progress, and small things that several subcommands need. */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

int report_problem(int code, const char *fmt, ...) {
  va_list args;
  progress_end();
  fputs("onemodel: ", stderr);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fputc('\n', stderr);
  return code;
}

int report_error(const om_error *error) {
  int code = error->status == OM_E_UNSUPPORTED ? EXIT_UNSUPPORTED
             : error->status == OM_E_IO        ? EXIT_FILE
                                               : EXIT_FAILED;
  return report_problem(code, "%s", error->message);
}

int open_model(const options *o, om_model **out_model) {
  om_error error;
  progress_begin("loading the model");
  om_status status = om_model_load_file(o->model, NULL, out_model, &error);
  progress_end();
  return status == OM_OK ? EXIT_DONE : report_error(&error);
}

/* Warnings and errors go to stderr, and the lines of a profile where one is asked for. */
static void write_log(void *user, om_log_level level, const char *message) {
  (void)user;
  if (level <= OM_LOG_WARNING || getenv("ONEMODEL_GPU_PROFILE"))
    fprintf(stderr, "onemodel: %s\n", message);
}

/* Makes the session; without a device named, on the CPU where there turns out to be no GPU. To look
 * for one first would load all drivers once more. */
static int make_session(const options *o, const om_model *model, bool is_named, opened *out) {
  om_error error, no_gpu;
  size_t device_count = 0;
  if (om_session_create(model, &out->session_options, &out->session, &error) == OM_OK) {
    return EXIT_DONE;
  }
  if (is_named || (om_gpu_list(NULL, 0, &device_count, &no_gpu) == OM_OK && device_count > 0)) {
    return report_error(&error);
  }
  if (o->require_gpu) {
    return report_problem(EXIT_UNSUPPORTED, "There is no GPU: %s", no_gpu.message);
  }
  report_problem(EXIT_DONE, "On the CPU, there is no GPU: %s", no_gpu.message);
  out->on_gpu = false;
  out->session_options.provider = NULL;
  out->session_options.provider_options = NULL;
  om_status status = om_session_create(model, &out->session_options, &out->session, &error);
  return status == OM_OK ? EXIT_DONE : report_error(&error);
}

int open_session(const options *o,
                 const om_model *model,
                 const char *device,
                 const char *mode,
                 bool collect_timings,
                 const char *const *extra_outputs,
                 size_t extra_output_count,
                 opened *out) {
  memset(out, 0, sizeof *out);
  out->gpu = (om_gpu_options)OM_GPU_OPTIONS_INIT;
  out->gpu.collect_timings = collect_timings;
  out->gpu.profile_steps = o->profiles;
  out->gpu.no_fusion = o->no_fusion;
  out->gpu.no_matrix_hardware = o->no_matrix_hardware;
  out->gpu.no_sm90 = o->no_sm90;
  out->session_options = (om_session_options)OM_SESSION_OPTIONS_INIT;
  om_session_options *s = &out->session_options;
  s->mode = strcmp(mode, "exact") == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
  s->thread_count = o->threads;
  s->require_gpu = o->require_gpu && !(device && strcmp(device, "cpu") == 0);
  s->extra_outputs = extra_outputs;
  s->extra_output_count = extra_output_count;
  s->log.write = write_log;
  out->on_gpu = !device || strcmp(device, "cpu") != 0;
  if (device && strncmp(device, "gpu:", 4) == 0) {
    out->gpu.device = device + 4;
  } else if (device && strcmp(device, "gpu") != 0) {
    out->gpu.device = device;
  }
  if (out->on_gpu) {
    s->provider = om_gpu_provider();
    s->provider_options = &out->gpu;
  }
  progress_begin("preparing the session");
  const int code = make_session(o, model, device != NULL, out);
  progress_end();
  return code;
}

void close_session(opened *it) {
  om_session_destroy(it->session);
  it->session = NULL;
}

int run_once(om_session *session,
             const tensors *inputs,
             om_named_tensor *outputs,
             size_t output_count) {
  om_error error;
  for (size_t i = 0; i < output_count; ++i) outputs[i].tensor = (om_tensor){0};
  om_run_args args = {sizeof args, inputs->items, inputs->count, outputs, output_count, NULL};
  om_status status = om_session_run(session, &args, &error);
  return status == OM_OK ? EXIT_DONE : report_error(&error);
}

double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool has_suffix(const char *text, const char *suffix) {
  size_t n = strlen(text), m = strlen(suffix);
  return n >= m && strcmp(text + n - m, suffix) == 0;
}

int compare_doubles(const void *a, const void *b) {
  double x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

void json_text(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
    if (*c == '"' || *c == '\\') {
      fprintf(out, "\\%c", *c);
    } else if (*c < 0x20) {
      fprintf(out, "\\u%04x", *c);
    } else {
      fputc(*c, out);
    }
  }
  fputc('"', out);
}

const char *byte_words(char *buffer, size_t bytes, uint64_t count) {
  if (count < 1000) {
    snprintf(buffer, bytes, "%u byte%s", (unsigned)count, count == 1 ? "" : "s");
  } else if (count < 1000000) {
    snprintf(buffer, bytes, "%.2f KB", (double)count / 1e3);
  } else {
    snprintf(buffer, bytes, "%.2f MB", (double)count / 1e6);
  }
  return buffer;
}

const char *shape_words(char *buffer, size_t bytes, const om_value_info *value) {
  size_t used = 0;
  buffer[0] = 0;
  if (!value->has_rank) return "?";
  if (value->rank == 0) return "scalar";
  for (uint32_t i = 0; i < value->rank && used < bytes; ++i) {
    const char *gap = i ? "x" : "";
    int n = value->dims[i] >= 0
                ? snprintf(buffer + used, bytes - used, "%s%lld", gap, (long long)value->dims[i])
                : snprintf(buffer + used,
                           bytes - used,
                           "%s%s",
                           gap,
                           value->dim_names[i] ? value->dim_names[i] : "?");
    if (n < 0) break;
    used += (size_t)n;
  }
  return buffer;
}

/* ---- Progress: one line that a thread keeps up to date. ---- */

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t end;
  const char *what;
  bool is_running, is_shown;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static void *show_progress(void *arg) {
  (void)arg;
  double start = now_ms();
  struct timespec next;
  clock_gettime(CLOCK_REALTIME, &next);
  next.tv_sec += 2;
  pthread_mutex_lock(&progress.lock);
  while (progress.is_running) {
    if (pthread_cond_timedwait(&progress.end, &progress.lock, &next) == 0) continue;
    fprintf(stderr,
            isatty(STDERR_FILENO) ? "\r%s, %.0f s " : "%s, %.0f s\n",
            progress.what,
            (now_ms() - start) / 1e3);
    fflush(stderr);
    progress.is_shown = true;
    next.tv_sec += isatty(STDERR_FILENO) ? 1 : 10;
  }
  if (progress.is_shown && isatty(STDERR_FILENO)) fputc('\n', stderr);
  progress.is_shown = false;
  pthread_mutex_unlock(&progress.lock);
  return NULL;
}

void progress_begin(const char *what) {
  if (progress.is_running) progress_end();
  progress.what = what;
  progress.is_running = true;
  if (pthread_create(&progress.thread, NULL, show_progress, NULL) != 0) progress.is_running = false;
}

void progress_end(void) {
  if (!progress.is_running) return;
  pthread_mutex_lock(&progress.lock);
  progress.is_running = false;
  pthread_cond_signal(&progress.end);
  pthread_mutex_unlock(&progress.lock);
  pthread_join(progress.thread, NULL);
}
