/* The null backend: computes nothing and checks everything.
 *
 * It stands for the least device there may be (WebGPU's default limits), or for any other when a
 * test opens it with limits of its own. A call that breaks om_hal.h's contract is OM_E_INTERNAL
 * with a sentence. A broken contract in a function that returns nothing (a destroy of what is
 * still in use) is kept, and the next call that can fail reports it; close reports it and every
 * leak in the context's error and log.
 *
 * Objects are never freed before their device, only marked: so the use of a destroyed one is
 * seen. Downloads give zeros, so no buffer has memory but what is lent.
 */
#ifndef OM_NULL_DEVICE_H
#define OM_NULL_DEVICE_H

#include "gpu/hal/om_hal.h"

typedef struct om_null_device om_null_device;

typedef enum om_null_kind {
  OM_NULL_BUFFER = 1,
  OM_NULL_KERNEL,
  OM_NULL_RECORDING,
} om_null_kind;

typedef struct om_null_object { /* first member of every object */
  om_null_kind kind;
  om_null_device *device;      /* borrowed; outlives it */
  struct om_null_object *next; /* of the device's list, destroyed ones too */
  bool is_destroyed;
  uint64_t used_until; /* the last submission that uses it; 0: none */
} om_null_object;

struct om_null_device { /* single; what HAL callers know as om_hal_device */
  size_t index;         /* in list's order; 0 for one that a test opens */
  om_hal_limits limits;
  om_hal_features features;
  om_null_object *objects; /* owned */
  uint64_t submitted;      /* number of the last submission */
  uint64_t waited;         /* the highest that was waited for */
  uint64_t *kept;          /* owned; a number for each kernel kept */
  size_t kept_count, kept_capacity;
  bool keeps_kernels;
  char violation[OM_MAX_MESSAGE]; /* the first one not reported yet; "": none */
};

typedef struct om_null_buffer {
  om_null_object object;
  om_hal_memory memory;
  uint64_t bytes;
  uint64_t written_by; /* the last submission that writes it; 0: none */
  void *lent;          /* owned; NULL: of another kind of memory */
} om_null_buffer;

typedef struct om_null_kernel {
  om_null_object object;
  const om_hal_shader *shader; /* static */
} om_null_kernel;

/* A device with these limits and features. */
om_status om_null_device_open(om_ctx *ctx,
                              const om_hal_limits *limits,
                              const om_hal_features *features,
                              om_hal_device **out_device);

/* Puts a fresh object into its device's list. */
void om_null_object_add(om_null_device *device, om_null_kind kind, om_null_object *object);

/* OM_E_INTERNAL unless it is a living object of this kind. `what` starts the sentence. */
om_status om_null_object_check(om_ctx *ctx,
                               const om_null_object *object,
                               om_null_kind kind,
                               const char *what);

/* Marks an object as destroyed, once, and not while the device uses it. NULL is fine. */
void om_null_object_destroy(om_ctx *ctx, om_null_object *object, om_null_kind kind);

/* Reports a kept violation. */
om_status om_null_device_check(om_ctx *ctx, om_null_device *device);

static inline om_null_device *om_null_device_of(om_hal_device *device) {
  return (om_null_device *)device;
}
static inline om_null_buffer *om_null_buffer_of(om_hal_buffer *buffer) {
  return (om_null_buffer *)buffer;
}

/* The backend's part of om_hal. */
om_status om_null_list(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count);
om_status om_null_open(om_ctx *ctx, size_t index, bool takes_ptx, om_hal_device **out_device);
om_status om_null_open_beside(om_ctx *ctx, om_hal_device *opened, om_hal_device **out_device);
void om_null_close(om_ctx *ctx, om_hal_device *device);
void om_null_describe(const om_hal_device *device, om_gpu_device *out_device);
const om_hal_limits *om_null_limits(const om_hal_device *device);
const om_hal_features *om_null_features(const om_hal_device *device);

#endif
