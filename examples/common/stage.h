/* A stage of an example: a model that takes one picture as planes of floats, and its session. What
 * went wrong is printed where it happens, so the functions return no more than that. single. */
#ifndef EXAMPLE_STAGE_H
#define EXAMPLE_STAGE_H

#include <stdbool.h>

#include "onemodel/gpu.h"
#include "onemodel/onemodel.h"

/* What the stages of a program have in common. */
typedef struct runner {
  const char *program; /* for messages */
  om_gpu_options gpu;
  om_session_options options; /* borrows gpu */
  om_error error;
  bool prints_times;
} runner;

typedef struct runner_choice { /* what a user asked for */
  const char *device;          /* cpu, gpu, gpu:N, a name; NULL: a GPU if there is one */
  om_mode mode;
  uint32_t threads; /* 0: all cores */
  bool require_gpu;
  bool prints_times;
} runner_choice;

#define RUNNER_USAGE                                                                             \
  "  --device cpu|gpu|gpu:N|NAME  where to run (default: a GPU if there is one, else the CPU)\n" \
  "  --mode fast|exact            (default: fast)\n"                                             \
  "  --threads N                  of the CPU (default: all cores)\n"                             \
  "  --require-gpu                fail if an operator cannot run on the GPU\n"                   \
  "  --times                      print the milliseconds of each run of a model, too\n"

/* Reads option argv[*at] of RUNNER_USAGE and moves *at to its last word; false: it is none of
 * them, or has no value that fits. */
bool runner_parse(int argc, char **argv, int *at, runner_choice *choice);

void runner_init(runner *r, const char *program, const runner_choice *choice);

/* Prints "<program>: <what>: <why>"; returns false. */
bool runner_fail(const runner *r, const char *what, const char *why);

double now_ms(void);

/* Prints "  <ms> ms  <what> <width>x<height>" where the user asked for times. */
void runner_time(const runner *r, const char *what, int width, int height, double ms);

typedef struct stage {
  const char *file; /* borrowed: its name in the models' folder */
  om_model *model;
  om_session *session;
  const char *input, *output; /* the first ones */
  float *planes;              /* lent by the session; NULL: none yet */
  size_t plane_count;         /* floats there */
  int width, height;          /* of the last run's input */
  double ms;                  /* time in om_session_run */
  size_t runs;
} stage;

bool stage_open(runner *r, stage *s, const char *folder, const char *file);
void stage_close(stage *s); /* takes one that was not opened, if it is zeroed */

/* Memory for three planes that the device reads where they lie, good until the next call of this
 * for the stage; NULL: there is none, and that was said. */
float *stage_planes(runner *r, stage *s, int width, int height);

/* Runs it on three planes; *out is lent until the stage's next run. */
bool stage_run(runner *r, stage *s, int width, int height, float *planes, om_tensor *out);

/* Prints which device a stage's session has. */
bool runner_report(runner *r, const stage *s);

/* Prints where its operators ran, for the shape of its last run, and how long its runs took. */
bool stage_report(runner *r, const stage *s);

#endif
