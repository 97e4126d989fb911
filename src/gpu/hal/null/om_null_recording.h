/* Recordings of the null backend, with their hazard tracker. */
#ifndef OM_NULL_RECORDING_H
#define OM_NULL_RECORDING_H

#include "gpu/hal/null/om_null_device.h"

/* Bytes [begin, end) of a buffer, touched since the last barrier. */
typedef struct om_null_access {
  const om_null_buffer *buffer;
  uint64_t begin, end;
  bool is_write;
  const char *by; /* the kernel's name or "a copy"; static */
} om_null_access;

/* An object that a submission of the recording uses. */
typedef struct om_null_use {
  om_null_object *object;
  bool is_written;
} om_null_use;

typedef struct om_null_recording {
  om_null_object object;
  size_t dispatch_count, dispatch_limit;
  uint32_t timestamp_count;
  bool *has_timestamp; /* owned; timestamp_count of them */
  bool is_ended;
  om_null_access *accesses; /* owned; since the last barrier */
  size_t access_count, access_capacity;
  om_null_use *uses; /* owned */
  size_t use_count, use_capacity;
} om_null_recording;

static inline om_null_recording *om_null_recording_of(om_hal_recording *recording) {
  return (om_null_recording *)recording;
}

/* Frees what a recording owns beside itself. */
void om_null_recording_free_parts(om_ctx *ctx, om_null_object *recording);

/* The backend's part of om_hal. */
om_status om_null_recording_begin(om_ctx *ctx,
                                  om_hal_device *device,
                                  size_t dispatch_count,
                                  uint32_t timestamp_count,
                                  om_hal_recording **out_recording);
om_status om_null_record_dispatch(om_ctx *ctx,
                                  om_hal_recording *recording,
                                  const om_hal_dispatch *dispatch);
om_status om_null_record_copy(om_ctx *ctx,
                              om_hal_recording *recording,
                              const om_hal_binding *source,
                              const om_hal_binding *target);
om_status om_null_record_barrier(om_ctx *ctx, om_hal_recording *recording);
om_status om_null_record_timestamp(om_ctx *ctx, om_hal_recording *recording, uint32_t index);
om_status om_null_recording_end(om_ctx *ctx, om_hal_recording *recording);
void om_null_recording_destroy(om_ctx *ctx, om_hal_device *device, om_hal_recording *recording);
om_status om_null_submit(om_ctx *ctx,
                         om_hal_device *device,
                         om_hal_recording *const *recordings,
                         size_t count,
                         uint64_t *out_number);
om_status om_null_is_done(om_ctx *ctx, om_hal_device *device, uint64_t number, bool *out_is_done);
om_status om_null_wait(om_ctx *ctx, om_hal_device *device, uint64_t number);
om_status om_null_timestamps(om_ctx *ctx,
                             om_hal_recording *recording,
                             uint32_t count,
                             uint64_t *out_ns);

#endif
