/* What the subcommands of `onemodel` share: options, sessions, inputs, progress, JSON.
 *
 * Exit codes: 0 done; 1 it failed; 2 wrong usage; 3 compare found a difference above the
 * tolerance; 4 the model or an operator is not supported, or --require-gpu cannot be kept;
 * 5 a file cannot be read or written.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdio.h>

#include "onemodel/gpu.h"
#include "onemodel/onemodel.h"

enum {
  EXIT_DONE = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
  EXIT_DIFFERENT = 3,
  EXIT_UNSUPPORTED = 4,
  EXIT_FILE = 5,
  MAX_GIVEN = 64, /* --input and --shape options */
};

typedef struct given { /* NAME=VALUE */
  const char *name;    /* not terminated */
  size_t name_bytes;
  const char *value;
} given;

typedef struct options {
  const char *model;
  const char *device; /* cpu, gpu, gpu:N or a part of a name; NULL: the default */
  const char *mode;   /* fast or exact */
  const char *reference_device, *reference_mode; /* of compare */
  const char *out;
  given inputs[MAX_GIVEN];
  size_t input_count;
  given shapes[MAX_GIVEN];
  size_t shape_count;
  uint32_t threads;
  uint64_t seed;
  unsigned runs, warmup;
  double tolerance;
  bool require_gpu, as_json, as_markdown, no_fusion, no_matrix_hardware, no_sm90, profiles;
  bool own_memory;                       /* of bench */
  bool by_node, attributes, worst_first; /* of compare */
} options;

typedef enum command {
  COMMAND_DEVICES = 1,
  COMMAND_INFO = 2,
  COMMAND_RUN = 4,
  COMMAND_BENCH = 8,
  COMMAND_COMPARE = 16,
  COMMAND_PLACEMENT = 32,
  COMMAND_OPS = 64,
} command;

/* Fills *out from the arguments after the subcommand; on a mistake says so and returns false. */
bool options_parse(int argc, char **argv, command which, options *out);

/* Prints "onemodel: <message>" and returns the exit code that fits the error. */
int report_error(const om_error *error);
int report_problem(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A session on the device and in the mode the options name. */
typedef struct opened {
  om_session *session;
  om_gpu_options gpu;
  om_session_options session_options;
  bool on_gpu;
} opened;

/* Opens o->model; `device` and `mode` as in options. The session is made only if asked for. */
int open_model(const options *o, om_model **out_model);
int open_session(const options *o,
                 const om_model *model,
                 const char *device,
                 const char *mode,
                 bool collect_timings,
                 const char *const *extra_outputs,
                 size_t extra_output_count,
                 opened *out);
void close_session(opened *it); /* not the model */

/* The inputs of a run: given files, else random by the seed. */
typedef struct tensors {
  om_named_tensor *items; /* owned, with their data; names are the model's */
  size_t count;
  bool is_lent; /* the data are a session's */
} tensors;

int make_inputs(const options *o, const om_model_info *info, tensors *out);
/* Moves the data into memory that the session lends; it is the session's from then on. */
int lend_inputs(om_session *session, tensors *t);
void free_tensors(tensors *t);

/* Runs once; `outputs` are lent by the session. names NULL: the model's outputs. */
int run_once(om_session *session,
             const tensors *inputs,
             om_named_tensor *outputs,
             size_t output_count);

/* Between the two a line is kept up to date on stderr once it takes longer than two seconds. */
void progress_begin(const char *what);
void progress_end(void);

double now_ms(void);
int compare_doubles(const void *a, const void *b);

bool has_suffix(const char *text, const char *suffix);

/* A JSON string, quoted and escaped. */
void json_text(FILE *out, const char *text);

/* "16 bytes", "1.23 KB", "98.40 MB". */
const char *byte_words(char *buffer, size_t bytes, uint64_t count);

/* "1x3x48x320", with names or ? for what is not fixed. */
const char *shape_words(char *buffer, size_t bytes, const om_value_info *value);

int command_devices(int argc, char **argv);
int command_info(int argc, char **argv);
int command_run(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_placement(int argc, char **argv);
int command_ops(int argc, char **argv);

#endif
