/* onemodel: runs ONNX models on any GPU and on the CPU.
 *
 * A model file goes in, tensors come out:
 *
 *     om_error error;
 *     om_model *model = NULL;
 *     om_session *session = NULL;
 *     om_session_options options = OM_SESSION_OPTIONS_INIT;
 *     if (om_model_load_file("model.onnx", NULL, &model, &error) != OM_OK) return fail(&error);
 *     if (om_session_create(model, &options, &session, &error) != OM_OK) return fail(&error);
 *     om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){1, 4}, data)};
 *     om_named_tensor output = {"y", {0}};
 *     om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
 *     if (om_session_run(session, &args, &error) != OM_OK) return fail(&error);
 *     // output.tensor.data holds the result until the next run
 *     om_session_destroy(session);
 *     om_model_destroy(model);
 *
 * README.md has the whole program. The GPU is in gpu.h: options.provider = om_gpu_provider().
 *
 * Threads. A model is immutable: any thread, any number of sessions. A session may be called from
 * any thread; its runs take turns. Different sessions are independent.
 *
 * Errors. Every fallible function returns om_status and fills *error (which may be NULL).
 * OM_E_INVALID_ARGUMENT and OM_E_OUT_OF_MEMORY may always happen. `out_` results are NULL, and
 * other results untouched, after a failure.
 *
 * Untrusted files. Models are treated as hostile: no file makes the library crash, read outside
 * its buffers, or open files outside the model's folder.
 */
#ifndef ONEMODEL_ONEMODEL_H
#define ONEMODEL_ONEMODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OM_VERSION_MAJOR 0
#define OM_VERSION_MINOR 1
#define OM_VERSION_PATCH 0

#if defined(_WIN32)
#  if defined(OM_STATIC)
#    define OM_API
#  elif defined(OM_BUILDING)
#    define OM_API __declspec(dllexport)
#  else
#    define OM_API __declspec(dllimport)
#  endif
#  define OM_MUST_CHECK
#else
#  define OM_API        __attribute__((visibility("default")))
#  define OM_MUST_CHECK __attribute__((warn_unused_result))
#endif

/* Options at their defaults, which those below are made with: OM_SESSION_OPTIONS_INIT and others.
 * C++ has named initialisers only since C++20. */
#ifdef __cplusplus
#  define OM_STRUCT_INIT(type)               \
    [] {                                     \
      type options = {};                     \
      options.struct_bytes = sizeof options; \
      return options;                        \
    }()
#else
#  define OM_STRUCT_INIT(type) {.struct_bytes = sizeof(type)}
#endif

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The values are ABI. */
typedef enum om_status {
  OM_OK = 0,
  OM_E_INVALID_ARGUMENT = 1, /* the caller broke this header's contract */
  OM_E_INVALID_MODEL = 2,    /* malformed or inconsistent model bytes */
  OM_E_INVALID_INPUT = 3,    /* a run's tensor does not fit the model, or a value is wrong */
  OM_E_UNSUPPORTED = 4,      /* valid, but not in this build or on this device */
  OM_E_OUT_OF_MEMORY = 5,
  OM_E_OUT_OF_DEVICE_MEMORY = 6,
  OM_E_DEVICE_LOST = 7, /* destroy the session; a new one works */
  OM_E_IO = 8,
  OM_E_INTERNAL = 9,   /* a bug in this library */
  OM_E_CANCELLED = 10, /* om_cancel_ask was called */
  OM_E_NOT_READY = 11, /* a model's reader has bytes to come: make the call again then */
} om_status;

enum { OM_MAX_MESSAGE = 1024 };

typedef struct om_error { /* fixed size: filling it cannot fail */
  om_status status;
  int line;                     /* where in the library it was found */
  const char *file;             /* static */
  char message[OM_MAX_MESSAGE]; /* sentences with the names and values, end in a full stop */
} om_error;

/* The constant's name, such as "OM_E_IO". Static. */
OM_API const char *om_status_name(om_status status);

/* "0.1.0". Static. */
OM_API const char *om_version(void);

/* ---- Tensors --------------------------------------------------------------------------------- */

/* ONNX's own numbers (TensorProto.DataType). */
typedef enum om_dtype {
  OM_DTYPE_NONE = 0,
  OM_DTYPE_F32 = 1,
  OM_DTYPE_U8 = 2,
  OM_DTYPE_I8 = 3,
  OM_DTYPE_U16 = 4,
  OM_DTYPE_I16 = 5,
  OM_DTYPE_I32 = 6,
  OM_DTYPE_I64 = 7,
  OM_DTYPE_STRING = 8, /* elements are om_string */
  OM_DTYPE_BOOL = 9,   /* one byte, 0 or 1 */
  OM_DTYPE_F16 = 10,
  OM_DTYPE_F64 = 11,
  OM_DTYPE_U32 = 12,
  OM_DTYPE_U64 = 13,
  OM_DTYPE_C64 = 14,  /* two float32 */
  OM_DTYPE_C128 = 15, /* two float64 */
  OM_DTYPE_BF16 = 16,
  OM_DTYPE_F8E4M3FN = 17,
  OM_DTYPE_F8E4M3FNUZ = 18,
  OM_DTYPE_F8E5M2 = 19,
  OM_DTYPE_F8E5M2FNUZ = 20,
  OM_DTYPE_U4 = 21, /* two elements a byte, the first in the low half */
  OM_DTYPE_I4 = 22,
  OM_DTYPE_F4E2M1 = 23,
  OM_DTYPE_COUNT = 24,

  /* Values that are no tensors are written as lists of rank 1 whose elements are om_tensor: */
  OM_DTYPE_MAP = 29, /* 2 elements: keys (int64, other integers, or strings) and values, each of
                        rank 1 and as long as the other */
  OM_DTYPE_SEQUENCE = 30, /* any number of tensors or maps of one element type */
  OM_DTYPE_OPTIONAL = 31, /* a tensor or a sequence, or nothing: 1 or 0 elements */
} om_dtype;

/* "float32", "int64", ... as numpy spells them. Static; "?" for a value outside the enum. */
OM_API const char *om_dtype_name(om_dtype dtype);

/* Bits of one element: 32 for float32, 4 for int4. 0 for OM_DTYPE_NONE and unknown values. */
OM_API size_t om_dtype_bits(om_dtype dtype);

typedef struct om_string { /* bytes, UTF-8, not terminated */
  const char *data;
  size_t bytes;
} om_string;

enum { OM_MAX_RANK = 8 };

typedef struct om_tensor {
  om_dtype dtype;
  uint32_t rank;             /* 0 for a scalar, at most OM_MAX_RANK */
  int64_t dims[OM_MAX_RANK]; /* elements, outermost first; dense, row-major */
  void *data;                /* borrowed; the library never writes an input's data */
  size_t data_bytes;         /* of an output in the caller's memory: its capacity */
} om_tensor;

/* A tensor over data that stays the caller's, with data_bytes computed from the shape.
 * A shape whose size overflows, or a rank above OM_MAX_RANK, gives data_bytes 0. */
OM_API om_tensor om_tensor_of(om_dtype dtype, uint32_t rank, const int64_t *dims, void *data);

/* A sequence of `count` tensors, and an optional of a tensor or a sequence (NULL: of nothing); the
 * elements stay the caller's:
 *
 *     om_tensor parts[2] = {om_tensor_of(...), om_tensor_of(...)};
 *     om_named_tensor input = {"parts", om_sequence_of(2, parts)};
 *
 * Such an output is one piece, whether lent or in the caller's memory: the list, then what its
 * elements point to. Its data_bytes counts all of it. */
OM_API om_tensor om_sequence_of(size_t count, om_tensor *elems);
OM_API om_tensor om_optional_of(om_tensor *elem);

/* A map: keys_and_values[0] has the keys, each once, [1] the values. */
OM_API om_tensor om_map_of(om_tensor keys_and_values[2]);

/* The number of elements: 1 for a scalar. 0 if an extent is negative or the product overflows. */
OM_API size_t om_tensor_elems(const om_tensor *tensor);

typedef struct om_named_tensor {
  const char *name; /* borrowed */
  om_tensor tensor;
} om_named_tensor;

/* ---- Memory and log -------------------------------------------------------------------------- */

typedef struct om_allocator {
  /* Returns `bytes` bytes aligned to at least 64, or NULL. bytes is never 0. */
  void *(*alloc)(void *user, size_t bytes);
  /* Frees what alloc returned for the same `bytes`. ptr is never NULL. */
  void (*free)(void *user, void *ptr, size_t bytes);
  void *user; /* borrowed; both functions are called from any thread */
} om_allocator;

typedef enum om_log_level { OM_LOG_ERROR = 0, OM_LOG_WARNING = 1, OM_LOG_INFO = 2 } om_log_level;

typedef struct om_log {
  void (*write)(void *user, om_log_level level, const char *message); /* NULL: silence */
  void *user; /* borrowed; called from any thread */
} om_log;

/* ---- Models ---------------------------------------------------------------------------------- */

typedef struct om_model om_model; /* immutable */

typedef struct om_model_file { /* in memory, in place of a file beside the model */
  const char *location;        /* as the model's external data name it */
  const void *bytes;           /* stay as they are until the model is destroyed */
  size_t byte_count;
} om_model_file;

/* External data that the caller has in storage of their own. They are not brought to memory as a
 * whole: what an operator on a device reads goes there in pieces, what one on the CPU reads, what a
 * rewrite makes of weights, and what is small or int32 or int64, is held. It is called until the
 * model is destroyed, on the threads that call the library: on two at once where two sessions are.
 */
typedef struct om_reader {
  /* Finds what the model calls `location`, and its size. False: there is no such thing. */
  bool (*find)(void *user, const char *location, uint64_t *out_byte_count);
  /* Brings bytes to `to`; the number brought. Less than byte_count is OM_E_IO. */
  size_t (*read)(void *user, const char *location, uint64_t offset, size_t byte_count, void *to);
  /* Asked before a range is read, which may be in several pieces. False where storage answers
   * later: the call that needs the bytes then ends with OM_E_NOT_READY, and has asked for what else
   * it needs as far as it knows. Made again when they are there, it goes on; what went to the
   * device before is not read again. NULL: all can be read at once. */
  bool (*is_ready)(void *user, const char *location, uint64_t offset, uint64_t byte_count);
  void *user; /* borrowed */
} om_reader;

typedef struct om_model_options {
  size_t struct_bytes;
  const om_allocator *allocator; /* NULL: the C library's; outlives the model */
  om_log log;
  uint64_t max_bytes; /* the most memory that the model may hold at once; 0: no limit. What lies in
                         its files is not counted. More is OM_E_OUT_OF_MEMORY. */
  const om_model_file *files; /* looked at before the folder; NULL: none */
  size_t file_count;
  const om_reader *reader; /* of external data that files do not hold, in place of the folder; NULL:
                              the folder. read during the call only */
} om_model_options;

#define OM_MODEL_OPTIONS_INIT OM_STRUCT_INIT(om_model_options)

/* Maps the file and reads its graph. Tensor data stays in the file.
 *
 * Safe for hostile input. External data is read only from regular files inside the model's
 * folder. The files must stay as they are until the model is destroyed.
 *
 * Owner:   the caller destroys *out_model, after every session made from it.
 * Errors:  OM_E_IO             the file cannot be read
 *          OM_E_INVALID_MODEL  malformed; the message names the place
 *          OM_E_UNSUPPORTED    the file is valid, but uses what this build does not know
 *          OM_E_NOT_READY      options.reader has bytes to come that are needed here
 */
OM_API OM_MUST_CHECK om_status om_model_load_file(const char *path,
                                                  const om_model_options *options,
                                                  om_model **out_model,
                                                  om_error *error);

/* The same from memory, which must stay as it is until the model is destroyed. External data is
 * found in options.files and by options.reader: there is no folder to look in. */
OM_API OM_MUST_CHECK om_status om_model_load_memory(const void *bytes,
                                                    size_t byte_count,
                                                    const om_model_options *options,
                                                    om_model **out_model,
                                                    om_error *error);

OM_API void om_model_destroy(om_model *model);

typedef struct om_value_info { /* lent by the model */
  const char *name;
  om_dtype dtype;
  bool has_rank; /* false: the model does not say; rank is 0 then */
  uint32_t rank;
  int64_t dims[OM_MAX_RANK];          /* -1: known only at run time */
  const char *dim_names[OM_MAX_RANK]; /* the model's symbol, or NULL */
  const struct om_value_info *elem;   /* of a sequence or an optional: what it holds; of a map: one
                                         of its values; else NULL */
  om_dtype key_dtype;                 /* of a map; else OM_DTYPE_NONE */
} om_value_info;

typedef struct om_opset {
  const char *domain; /* "" is ai.onnx */
  int64_t version;
} om_opset;

typedef struct om_model_info { /* lent by the model */
  int64_t ir_version;
  const char *producer; /* "" where the file names none */
  const om_opset *opsets;
  size_t opset_count;
  const om_value_info *inputs; /* those a run needs: initializers are left out */
  size_t input_count;
  const om_value_info *outputs;
  size_t output_count;
  size_t node_count;   /* those in bodies (of If, Loop, Scan, ...) counted too */
  size_t weight_count; /* initializers and Constant nodes */
  uint64_t weight_bytes;
  uint64_t file_bytes; /* of the model file, external data not counted */
} om_model_info;

OM_API const om_model_info *om_model_get_info(const om_model *model);

#define OM_NO_OUTER ((size_t)-1)

typedef struct om_node_info { /* lent by the model */
  const char *name;           /* the file's, or "<type>_<index>" where it has none */
  const char *op_type;
  const char *domain;
  const char *const *input_names; /* "" where an optional input is absent */
  size_t input_count;
  const char *const *output_names;
  size_t output_count;
  size_t outer;     /* the index of the node in whose body it stands; OM_NO_OUTER: in none */
  const char *body; /* the attribute that is that body, such as "then_branch"; "" in none */
} om_node_info;

/* The node with this index; index < node_count. The graph's own come first, in the file's order,
 * then those of bodies, each after the node that has the body. */
OM_API om_node_info om_model_get_node(const om_model *model, size_t index);

/* ---- Sessions -------------------------------------------------------------------------------- */

typedef struct om_session om_session;   /* shared: runs take turns */
typedef struct om_provider om_provider; /* provider.h; a device package hands one out */

typedef enum om_mode {
  OM_MODE_FAST = 0,  /* the fastest kernels; within 1e-5 (scaled) of exact for float32 */
  OM_MODE_EXACT = 1, /* the same bits on every run, thread count and self-tested device */
} om_mode;

typedef struct om_session_options {
  size_t struct_bytes;
  om_mode mode;
  uint32_t thread_count;        /* of the CPU; 0: the cores there are */
  const om_provider *provider;  /* NULL: the CPU alone; static or outlives the session */
  const void *provider_options; /* read during create only; the provider's header names its type */
  bool require_gpu;             /* an operator that cannot run on the device is an error */
  const char *const *extra_outputs; /* names of intermediate values to return as outputs too */
  size_t extra_output_count;
  const om_allocator *allocator; /* NULL: the C library's; outlives the session */
  om_log log;
  uint64_t max_bytes; /* the most host memory that the session may hold at once, whatever the model
                         asks for; 0: no limit. More is OM_E_OUT_OF_MEMORY, before anything is
                         allocated. */
} om_session_options;

#define OM_SESSION_OPTIONS_INIT OM_STRUCT_INIT(om_session_options)

/* Makes a model ready to run.
 *
 * With require_gpu an operator that the device cannot take fails the creation (or, where only
 * the shapes tell, the first run of such a shape): the message lists each operator type with its
 * reason, and the log gets one line a node.
 *
 * Owner:   the caller destroys *out_session before the model. options is read during the call.
 * Errors:  OM_E_UNSUPPORTED   an operator has no implementation; require_gpu cannot be kept; no
 *                             device of that name
 *          OM_E_DEVICE_LOST, OM_E_OUT_OF_DEVICE_MEMORY
 *          OM_E_NOT_READY     om_model_options.reader has bytes to come that rewrites need. What
 *                             only a plan needs is left to om_session_prepare and to runs.
 */
OM_API OM_MUST_CHECK om_status om_session_create(const om_model *model,
                                                 const om_session_options *options,
                                                 om_session **out_session,
                                                 om_error *error);

OM_API void om_session_destroy(om_session *session);

/* A wish to end runs, {0} at first; the caller's, and as long as runs that name it. shared. */
typedef struct om_cancel {
  int32_t is_asked; /* read and written atomically */
} om_cancel;

/* Ends the runs that name it with OM_E_CANCELLED, from any thread, a signal's included. A run looks
 * between the nodes of graphs and bodies, while it plans, too, and on the CPU inside kernels; it
 * lets end what one region on the device has begun. Outputs are undefined then, and the session
 * stays usable. NULL is fine. */
OM_API void om_cancel_ask(om_cancel *cancel);

typedef struct om_run_args {
  size_t struct_bytes;
  const om_named_tensor *inputs; /* in any order */
  size_t input_count;
  om_named_tensor *outputs; /* name: which. tensor.data NULL: lent by the session. Else
                               data_bytes of the caller's memory. The rest is filled in. */
  size_t output_count;      /* any subset of the model's outputs */
  const om_cancel *cancel;  /* NULL: nobody ends it. Borrowed until the run's end */
} om_run_args;

/* Runs the model once and waits for the results.
 *
 * Inputs are read during the call only. Lent outputs keep their contents until the session's
 * next run, prepare or end; callers in several threads pass memory of their own.
 *
 * Errors:  OM_E_INVALID_INPUT         a name, type, shape or value does not fit; the message says
 *                                     which. Outputs are undefined; the session stays usable.
 *          OM_E_OUT_OF_DEVICE_MEMORY  the session stays usable
 *          OM_E_DEVICE_LOST           destroy the session, create a new one
 *          OM_E_CANCELLED             outputs are undefined; the session stays usable
 *          OM_E_NOT_READY             the model's reader has weights to come: run it again then
 */
OM_API OM_MUST_CHECK om_status om_session_run(om_session *session,
                                              const om_run_args *args,
                                              om_error *error);

typedef struct om_run om_run; /* a run under way; shared as its session is */

/* Begins a run without waiting for the device. It goes on when it is polled, on the thread that
 * polls; what the CPU has to do before the first wait is done at once, so without a device all of
 * it. Its results have the bits of om_session_run. Runs of one session take turns in the order in
 * which they were begun, and every other call on the session first ends those under way, but for
 * the two that lend memory and take it back.
 *
 *     om_run *run = NULL;
 *     bool is_done = false;
 *     om_status st = om_session_run_begin(session, &args, &run, &error);
 *     // other work between:
 *     while (st == OM_OK && !is_done) st = om_run_poll(run, &is_done, &error);
 *     if (run) st = om_run_finish(run, &error);
 *
 * This is the way to run where nothing may wait for the GPU: a browser. There om_session_run and
 * the calls that would have to end a run are OM_E_UNSUPPORTED while the GPU is at work.
 *
 * Owner:   the caller ends *out_run with om_run_finish, before the session's end. What args names
 *          and points to stays as it is until then; args itself and its list of inputs are copied.
 * Errors:  those of the arguments; what om_session_run may say of the rest, om_run_finish says.
 */
OM_API OM_MUST_CHECK om_status om_session_run_begin(om_session *session,
                                                    const om_run_args *args,
                                                    om_run **out_run,
                                                    om_error *error);

/* Goes on as far as it can without waiting for the device. *out_is_done: it is at its end, for
 * good or ill. Before its turn it is not done; whoever began the earlier run polls that. */
OM_API OM_MUST_CHECK om_status om_run_poll(om_run *run, bool *out_is_done, om_error *error);

/* Waits for the run where it is not done, and for those before it; fills its outputs' tensors, as
 * om_session_run does, and returns what became of it. Lent outputs hold until the session's next
 * run goes on.
 *
 * Owner:   the run is gone afterwards.
 * Errors:  OM_E_INVALID_ARGUMENT  nothing may wait here and it is not done: it stays; poll it
 *          else as om_session_run
 */
OM_API OM_MUST_CHECK om_status om_run_finish(om_run *run, om_error *error);

/* Lends memory for inputs that a run need not copy: the device reads it itself, and so does the
 * processor, at full speed. Write a tensor into it and give that to a run, as any other:
 *
 *     void *pixels = NULL;
 *     if (om_session_lend_memory(session, byte_count, &pixels, &error) != OM_OK) ...
 *     om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 4, dims, pixels)};
 *     for (;;) {
 *       read_picture(pixels);
 *       if (om_session_run(session, &args, &error) != OM_OK) ...
 *     }
 *
 * The memory is zeroed and at a multiple of 64. It may hold several tensors, each at a multiple of
 * its type's size; one that is not at a multiple of 4 bytes, or is not so many long, is copied all
 * the same, and so is one below 64 KiB, which takes no longer. Any shape that fits may use it. It
 * may be written from a run's end to the begin of the next that reads it; threads that run one
 * session take memory of their own each. Where there is no device, or none that reads so much of
 * the host's memory at once (a browser, a block of more than the device's largest buffer), it is
 * plain memory, which counts for max_bytes, and runs have the same results;
 * om_gpu_info.staged_bytes says what a run copied. To another session it is the caller's memory.
 *
 * A byte_count of 0 gives memory that holds nothing. The call waits while another thread is in a
 * run of this session.
 *
 * Owner:   the session; it goes back with om_session_return_memory, or at the session's end.
 * Errors:  OM_E_OUT_OF_MEMORY, OM_E_OUT_OF_DEVICE_MEMORY, OM_E_DEVICE_LOST
 */
OM_API OM_MUST_CHECK om_status om_session_lend_memory(om_session *session,
                                                      size_t byte_count,
                                                      void **out_data,
                                                      om_error *error);

/* Takes back what om_session_lend_memory gave; the caller has no more runs that read it. Waits for
 * what the device is at, and as om_session_lend_memory does. What this session did not lend, or has
 * taken back, is left alone; NULL is fine. */
OM_API void om_session_return_memory(om_session *session, void *data);

/* Builds the plan for these input shapes (data may be NULL), so that the first run is as quick as
 * the later ones. An input whose shape the model fixes may be left out. OM_E_NOT_READY: the model's
 * reader has weights to come; what is there went to the device. */
OM_API OM_MUST_CHECK om_status om_session_prepare(om_session *session,
                                                  const om_named_tensor *inputs,
                                                  size_t input_count,
                                                  om_error *error);

/* ---- Diagnostics ----------------------------------------------------------------------------- */

typedef enum om_place {
  OM_PLACE_CPU = 0,
  OM_PLACE_DEVICE = 1,
  OM_PLACE_FOLDED = 2, /* computed once, while the session or the plan was made */
} om_place;

enum { OM_NO_REGION = -1 };

typedef struct om_node_diagnostics {
  const char *name;
  const char *op_type;
  const char *domain;
  om_place place;
  int32_t region;                  /* OM_NO_REGION unless on the device */
  bool is_fused;                   /* on the device, in the pass of the node before it */
  const char *reason;              /* why it is there; never NULL */
  const char *const *output_names; /* what it makes, if it runs at all: most are names of the model
                                      and may be extra_outputs; "" where an output is absent */
  size_t output_count;             /* 0: folded, or in a body */
  size_t outer;     /* the index of the node in whose body it stands; OM_NO_OUTER: in none */
  const char *body; /* the attribute that is that body; "" in none. Its nodes are where the body's
                       last run had them; `region` counts the regions of that body */
} om_node_diagnostics;

typedef struct om_region_diagnostics {
  size_t node_count;
  uint64_t bytes_up;        /* read from the CPU on each run */
  uint64_t bytes_down;      /* read back on each run */
  const char *split_by;     /* name of the node that ended it, "" at the graph's end */
  const char *split_reason; /* why that node is not on the device, "" at the end */
} om_region_diagnostics;

typedef struct om_diagnostics {     /* lent by the session until its next call */
  const om_node_diagnostics *nodes; /* in the order they run; rewritten nodes keep a name */
  size_t node_count;
  const om_region_diagnostics *regions;
  size_t region_count;
  size_t nodes_on_cpu;
  size_t nodes_on_device;
  size_t nodes_folded;
} om_diagnostics;

/* Says where each operator runs, and why, for these input shapes (as in om_session_prepare). */
OM_API OM_MUST_CHECK om_status om_session_diagnose(om_session *session,
                                                   const om_named_tensor *inputs,
                                                   size_t input_count,
                                                   const om_diagnostics **out_diagnostics,
                                                   om_error *error);

typedef struct om_session_statistics {
  uint64_t run_count;
  uint64_t plans_built;      /* 16 are kept */
  uint64_t host_allocations; /* made so far; does not grow on the second run of a shape */
  uint64_t host_bytes;       /* held now */
  uint64_t host_peak_bytes;
  uint64_t intermediate_bytes; /* of the last plan's CPU block */
} om_session_statistics;

OM_API om_session_statistics om_session_get_statistics(const om_session *session);

/* ---- Operators ------------------------------------------------------------------------------- */

typedef struct om_operator_info { /* static */
  const char *domain;
  const char *type;
  int32_t first_opset;  /* what is said holds for opsets first..last */
  int32_t last_opset;   /* 0: up to the newest */
  uint32_t dtypes;      /* of its first input: bit n is om_dtype n; 0: it has none */
  bool is_composed;     /* others take its place when a session is made, and run where they can */
  bool may_be_composed; /* the same where they can say it, some for a device alone: Einsum, Sum */
} om_operator_info;

/* The operators this build knows on the CPU, sorted by domain, type and opset: NULL past the last.
 */
OM_API const om_operator_info *om_operator_get(size_t index);

#ifdef __cplusplus
}
#endif
#endif
