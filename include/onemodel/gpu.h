/* The GPU package: a provider that runs a session's operators on a graphics processor.
 *
 *     om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
 *     options.provider = om_gpu_provider();
 *     options.provider_options = &gpu;          // or NULL: the first device, all defaults
 *
 * Vulkan 1.2 is enough. The loader is opened at run time: a program that links this runs, and
 * says what is missing, where there is none.
 */
#ifndef ONEMODEL_GPU_H
#define ONEMODEL_GPU_H

#include "onemodel/onemodel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The provider for om_session_options.provider. Static. */
OM_API const om_provider *om_gpu_provider(void);

typedef struct om_gpu_prepared om_gpu_prepared; /* a device made ready for sessions */

typedef struct om_gpu_options {
  size_t struct_bytes;
  const char *device;         /* NULL: the first of om_gpu_list. "1": an index there. Else a
                                 part of the name, or the UUID in hex. */
  const char *backend;        /* NULL: the best there is. "vulkan", "null" */
  bool no_fusion;             /* each operator in its own pass: for finding faults */
  bool no_matrix_hardware;    /* fast mode: no products on cooperative matrices */
  bool collect_timings;       /* device time of each run in om_gpu_info */
  uint64_t submission_flops;  /* work of one submission; 0: by the device */
  bool profile_steps;         /* device time of each step: om_gpu_get_step_times. Every dispatch
                                 then runs on its own, so a run takes longer */
  const char *cache_folder;   /* where the driver's kernels are kept between processes, a file
                                 for each device and driver. NULL: $ONEMODEL_GPU_CACHE, else
                                 $XDG_CACHE_HOME/onemodel or ~/.cache/onemodel. "": nowhere. */
  bool no_fused_attention;    /* attention as its single operators; no_fusion includes it */
  om_gpu_prepared *prepared;  /* made with the same options, mode and allocator, and done: the
                                 session takes its device. NULL: the session opens one. */
  uint64_t max_binding_bytes; /* what one buffer binding may hold, below the device's limit: larger
                                 weights are cut. For tests. 0: the device's */
  bool no_sm90;               /* none of the kernels for NVIDIA Hopper; no_matrix_hardware includes
                                 it */
  om_gpu_prepared *shared; /* made ready, and done: the session uses its device beside others, and
                              opens none. `device`, `backend` and `cache_folder` are the shared
                              one's; not together with `prepared`. NULL: a device of the
                              session's own. */
} om_gpu_options;

#define OM_GPU_OPTIONS_INIT OM_STRUCT_INIT(om_gpu_options)

typedef struct om_gpu_device {
  char name[256];
  char uuid[33];         /* hex */
  char driver[256];      /* name and version, in words */
  const char *backend;   /* static: "vulkan" */
  const char *kind;      /* static: "discrete GPU", "integrated GPU", "CPU", ... */
  uint64_t memory_bytes; /* of the largest device-local heap */
} om_gpu_device;

/* Lists the devices, hardware before software. Writes at most `capacity` of them and the number
 * there are. No loader or no driver is not an error: the count is 0 and *error says why. */
OM_API OM_MUST_CHECK om_status om_gpu_list(om_gpu_device *devices,
                                           size_t capacity,
                                           size_t *out_count,
                                           om_error *error);

/* Opens a device ahead of its session, and tries it for exact mode, without waiting for it. Where
 * nothing may wait for the GPU, in a browser, exact mode needs this; elsewhere it saves a session's
 * creation that time. `options` as for the session (NULL: all defaults); `allocator` is the
 * session's (NULL: the C library's), and outlives it.
 *
 * One session can take the device (om_gpu_options.prepared), or any number can share it
 * (om_gpu_options.shared), each with weights and memory of its own, also in threads of their own.
 * Work of theirs takes turns on the device's queue; where one loses the device, all have lost it:
 * destroy them and it, and prepare another. A device prepared for exact mode serves both modes;
 * prepared for fast mode, each session in exact mode tries it for itself. No device can be shared
 * in a browser.
 *
 * Owner:   the caller destroys *out_prepared, before or after it gave it to a session. A shared
 *          device is closed with its last session, and not before it is destroyed.
 * Errors:  as om_session_create's of the device
 */
OM_API OM_MUST_CHECK om_status om_gpu_prepare_begin(const om_gpu_options *options,
                                                    om_mode mode,
                                                    const om_allocator *allocator,
                                                    om_gpu_prepared **out_prepared,
                                                    om_error *error);

/* *out_is_done: a session can take it. Waits where that is possible. */
OM_API OM_MUST_CHECK om_status om_gpu_prepare_poll(om_gpu_prepared *prepared,
                                                   bool *out_is_done,
                                                   om_error *error);

OM_API void om_gpu_prepared_destroy(om_gpu_prepared *prepared);

typedef struct om_gpu_info {
  om_gpu_device device;
  bool keeps_subnormals;      /* exact mode then holds for runs in which none arises */
  const char *exact_failures; /* primitives that failed the self-test, "" if none; lent */
  uint64_t arena_bytes;       /* of intermediate values, and to move inputs and results */
  uint64_t live_bytes; /* the least that could be: the largest sum of what is there at once in a
                          region run so far, and what it moves */
  uint64_t weight_bytes;
  uint64_t allocations;   /* device allocations made so far */
  uint64_t dispatches;    /* in the last run */
  uint64_t submissions;   /* in the last run */
  uint64_t kernels;       /* pipelines made so far */
  const char *cache_file; /* where kernels are kept, "": nowhere; lent */
  uint64_t cache_writes;  /* of that file so far: 0 where all kernels were in it */
  double device_ms;       /* of the last run; 0 without collect_timings */
  double record_ms;       /* host time of the last run: recording */
  double submit_ms;       /* submit calls */
  double wait_ms;         /* waiting for the device and copying back */
  bool has_sm90;          /* it may use the kernels for NVIDIA Hopper */
  uint64_t staged_bytes;  /* in the last run: copied on the host to where the device reads them. Of
                             an input in memory of om_session_lend_memory only a small one is */
} om_gpu_info;

/* Fills *out_info from a session made with om_gpu_provider. OM_E_INVALID_ARGUMENT otherwise. */
OM_API OM_MUST_CHECK om_status om_gpu_get_info(const om_session *session,
                                               om_gpu_info *out_info,
                                               om_error *error);

typedef struct om_gpu_step_time {
  const char *node; /* its name; lent by the session */
  const char *type; /* its operator; lent by the session */
  uint64_t dispatches;
  double ms; /* with what was fused into it */
} om_gpu_step_time;

/* Lends the device time by step of the last run on the device, in the order of the plan. Only steps
 * that dispatch something are listed; none without om_gpu_options.profile_steps, before the first
 * run, or where the device has no clock. Valid until the session's next call. */
OM_API OM_MUST_CHECK om_status om_gpu_get_step_times(const om_session *session,
                                                     const om_gpu_step_time **out_times,
                                                     size_t *out_count,
                                                     om_error *error);

typedef struct om_gpu_operator_info {
  const char *domain; /* static */
  const char *type;   /* static */
  char dtypes[256];   /* "float32, int32" */
  bool has_exact;
} om_gpu_operator_info;

/* Describes the operators with a GPU entry, sorted by domain and type. False past the last. */
OM_API bool om_gpu_operator_get(size_t index, om_gpu_operator_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
