/* Recordings that are checked and never run.
 *
 * The hazard tracker keeps every byte range touched since the last barrier. A new access that
 * overlaps one of them, where either writes, needed a barrier. A barrier empties the list, and a
 * recording begins with an empty one: submissions are ordered among themselves.
 */
#include "gpu/hal/null/om_null_recording.h"

#include <inttypes.h>

#include "gpu/hal/om_hal_check.h"

static om_status check_open(om_ctx *ctx, const om_null_recording *recording) {
  OM_TRY(om_null_object_check(ctx, &recording->object, OM_NULL_RECORDING, "Recording"));
  if (!recording->is_ended) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "A recording was added to after its end.");
}

void om_null_recording_free_parts(om_ctx *ctx, om_null_object *object) {
  om_null_recording *recording = (om_null_recording *)object;
  om_delete(ctx, recording->has_timestamp);
  om_delete(ctx, recording->accesses);
  om_delete(ctx, recording->uses);
  recording->has_timestamp = NULL;
  recording->accesses = NULL;
  recording->uses = NULL;
}

om_status om_null_recording_begin(om_ctx *ctx,
                                  om_hal_device *hal_device,
                                  size_t dispatch_count,
                                  uint32_t timestamp_count,
                                  om_hal_recording **out_recording) {
  om_status st = OM_OK;
  om_null_device *device = om_null_device_of(hal_device);
  om_null_recording *recording = NULL;
  *out_recording = NULL;
  OM_GO(om_null_device_check(ctx, device));
  OM_GO_NEW(recording, 1);
  OM_GO_NEW(recording->has_timestamp, timestamp_count);
  recording->dispatch_limit = dispatch_count;
  recording->timestamp_count = timestamp_count;
  om_null_object_add(device, OM_NULL_RECORDING, &recording->object);
  *out_recording = (om_hal_recording *)recording;
  recording = NULL; /* the device's list holds it now */
done:
  om_delete(ctx, recording);
  return st;
}

static om_status add_use(om_ctx *ctx,
                         om_null_recording *recording,
                         om_null_object *object,
                         bool is_written) {
  for (size_t i = 0; i < recording->use_count; ++i) {
    if (recording->uses[i].object != object) continue;
    recording->uses[i].is_written |= is_written;
    return OM_OK;
  }
  OM_TRY(OM_GROW(ctx, recording->uses, recording->use_count, recording->use_capacity));
  recording->uses[recording->use_count++] = (om_null_use){object, is_written};
  return OM_OK;
}

static bool overlaps(const om_null_access *a, const om_null_access *b) {
  return a->buffer == b->buffer && a->begin < b->end && b->begin < a->end;
}

static om_status check_hazards(om_ctx *ctx,
                               const om_null_recording *recording,
                               const om_null_access *access) {
  for (size_t i = 0; i < recording->access_count; ++i) {
    const om_null_access *before = &recording->accesses[i];
    if (!overlaps(before, access) || (!before->is_write && !access->is_write)) continue;
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "A barrier is missing: %s %s bytes %" PRIu64 " to %" PRIu64
                   " of a buffer, and %s %s bytes %" PRIu64 " to %" PRIu64 " before it.",
                   access->by,
                   access->is_write ? "writes" : "reads",
                   access->begin,
                   access->end,
                   before->by,
                   before->is_write ? "writes" : "reads",
                   before->begin,
                   before->end);
  }
  return OM_OK;
}

static om_status add_access(om_ctx *ctx, om_null_recording *recording, om_null_access access) {
  OM_TRY(OM_GROW(ctx, recording->accesses, recording->access_count, recording->access_capacity));
  recording->accesses[recording->access_count++] = access;
  return OM_OK;
}

static om_null_access access_of(const om_hal_dispatch *dispatch, uint32_t index) {
  const om_hal_shader *shader = ((const om_null_kernel *)dispatch->kernel)->shader;
  const om_hal_binding *binding = &dispatch->bindings[index];
  return (om_null_access){
      .buffer = om_null_buffer_of(binding->buffer),
      .begin = binding->offset,
      .end = binding->offset + binding->bytes,
      .is_write = shader->write_mask >> index & 1,
      .by = shader->name,
  };
}

/* Within one dispatch: what is written must lie apart from all else, and in its own buffer
 * where the device wants that. */
static om_status check_overlap(om_ctx *ctx,
                               const om_null_device *device,
                               const om_hal_dispatch *dispatch,
                               uint32_t first,
                               uint32_t second) {
  const om_null_access a = access_of(dispatch, first);
  const om_null_access b = access_of(dispatch, second);
  if (!a.is_write && !b.is_write) return OM_OK;
  if (overlaps(&a, &b)) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Bindings %" PRIu32 " and %" PRIu32 " of '%s' overlap, and one is written.",
                   first,
                   second,
                   a.by);
  }
  if (device->features.separate_slabs && a.is_write != b.is_write && a.buffer == b.buffer) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Bindings %" PRIu32 " and %" PRIu32
                   " of '%s' read and write one buffer, which this device refuses.",
                   first,
                   second,
                   a.by);
  }
  return OM_OK;
}

static om_status check_bindings(om_ctx *ctx,
                                const om_null_recording *recording,
                                const om_hal_shader *shader,
                                const om_hal_dispatch *dispatch) {
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    const om_hal_binding *binding = &dispatch->bindings[i];
    const om_null_buffer *buffer = om_null_buffer_of(binding->buffer);
    OM_TRY(om_null_object_check(ctx, &buffer->object, OM_NULL_BUFFER, shader->name));
    if (buffer->memory != OM_HAL_DEVICE) {
      return OM_FAIL(ctx, OM_E_INTERNAL, "'%s' binds a buffer of the host.", shader->name);
    }
    OM_TRY(om_hal_check_range(ctx, shader->name, binding->offset, binding->bytes, buffer->bytes));
    for (uint32_t k = 0; k < i; ++k) {
      OM_TRY(check_overlap(ctx, recording->object.device, dispatch, k, i));
    }
    const om_null_access access = access_of(dispatch, i);
    OM_TRY(check_hazards(ctx, recording, &access));
  }
  return OM_OK;
}

om_status om_null_record_dispatch(om_ctx *ctx,
                                  om_hal_recording *hal_recording,
                                  const om_hal_dispatch *dispatch) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  om_null_kernel *kernel = (om_null_kernel *)dispatch->kernel;
  OM_TRY(check_open(ctx, recording));
  OM_TRY(om_null_object_check(ctx, &kernel->object, OM_NULL_KERNEL, "Dispatch"));
  const om_hal_shader *shader = kernel->shader;
  OM_TRY(om_hal_check_dispatch(ctx, &recording->object.device->limits, shader, dispatch));
  if (recording->dispatch_count == recording->dispatch_limit) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "A recording for %zu dispatches was given more.",
                   recording->dispatch_limit);
  }
  OM_TRY(check_bindings(ctx, recording, shader, dispatch));
  recording->dispatch_count += 1;
  OM_TRY(add_use(ctx, recording, &kernel->object, false));
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    om_null_buffer *buffer = om_null_buffer_of(dispatch->bindings[i].buffer);
    const om_null_access access = access_of(dispatch, i);
    OM_TRY(add_access(ctx, recording, access));
    OM_TRY(add_use(ctx, recording, &buffer->object, access.is_write));
  }
  return OM_OK;
}

static om_status check_copy(om_ctx *ctx,
                            const om_hal_binding *source,
                            const om_hal_binding *target) {
  const om_null_buffer *from = om_null_buffer_of(source->buffer);
  const om_null_buffer *to = om_null_buffer_of(target->buffer);
  OM_TRY(om_null_object_check(ctx, &from->object, OM_NULL_BUFFER, "The source of a copy"));
  OM_TRY(om_null_object_check(ctx, &to->object, OM_NULL_BUFFER, "The target of a copy"));
  OM_TRY(
      om_hal_check_range(ctx, "The source of a copy", source->offset, source->bytes, from->bytes));
  OM_TRY(om_hal_check_range(ctx, "The target of a copy", target->offset, source->bytes, to->bytes));
  if (from->memory == OM_HAL_READBACK || to->memory == OM_HAL_UPLOAD || to->memory == OM_HAL_LENT) {
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "A copy reads a readback buffer or writes an upload buffer.");
  }
  return OM_OK;
}

om_status om_null_record_copy(om_ctx *ctx,
                              om_hal_recording *hal_recording,
                              const om_hal_binding *source,
                              const om_hal_binding *target) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  OM_TRY(check_open(ctx, recording));
  OM_TRY(check_copy(ctx, source, target));
  om_null_buffer *from = om_null_buffer_of(source->buffer);
  om_null_buffer *to = om_null_buffer_of(target->buffer);
  const om_null_access read = {
      from, source->offset, source->offset + source->bytes, false, "a copy"};
  const om_null_access write = {to, target->offset, target->offset + source->bytes, true, "a copy"};
  if (overlaps(&read, &write)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "The source and the target of a copy overlap.");
  }
  OM_TRY(check_hazards(ctx, recording, &read));
  OM_TRY(check_hazards(ctx, recording, &write));
  OM_TRY(add_access(ctx, recording, read));
  OM_TRY(add_access(ctx, recording, write));
  OM_TRY(add_use(ctx, recording, &from->object, false));
  return add_use(ctx, recording, &to->object, true);
}

om_status om_null_record_barrier(om_ctx *ctx, om_hal_recording *hal_recording) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  OM_TRY(check_open(ctx, recording));
  recording->access_count = 0;
  return OM_OK;
}

om_status om_null_record_timestamp(om_ctx *ctx, om_hal_recording *hal_recording, uint32_t index) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  OM_TRY(check_open(ctx, recording));
  if (index >= recording->timestamp_count || recording->has_timestamp[index]) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Timestamp %" PRIu32 " of %" PRIu32 " is out of range or written twice.",
                   index,
                   recording->timestamp_count);
  }
  recording->has_timestamp[index] = true;
  return OM_OK;
}

om_status om_null_recording_end(om_ctx *ctx, om_hal_recording *hal_recording) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  OM_TRY(check_open(ctx, recording));
  recording->is_ended = true;
  return OM_OK;
}

void om_null_recording_destroy(om_ctx *ctx,
                               om_hal_device *device,
                               om_hal_recording *hal_recording) {
  om_null_recording *recording = om_null_recording_of(hal_recording);
  (void)device;
  if (!recording) return;
  om_null_object_destroy(ctx, &recording->object, OM_NULL_RECORDING);
  om_null_recording_free_parts(ctx, &recording->object);
}

static om_status check_submit(om_ctx *ctx, const om_null_recording *recording, uint64_t waited) {
  OM_TRY(om_null_object_check(ctx, &recording->object, OM_NULL_RECORDING, "Submission"));
  if (!recording->is_ended) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A recording was submitted before its end.");
  }
  if (recording->object.used_until > waited) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "A recording was submitted again before submission %" PRIu64 " was waited for.",
                   recording->object.used_until);
  }
  for (size_t i = 0; i < recording->use_count; ++i) {
    const om_null_object *object = recording->uses[i].object;
    OM_TRY(om_null_object_check(ctx, object, object->kind, "Submission"));
  }
  return OM_OK;
}

om_status om_null_submit(om_ctx *ctx,
                         om_hal_device *hal_device,
                         om_hal_recording *const *recordings,
                         size_t count,
                         uint64_t *out_number) {
  om_null_device *device = om_null_device_of(hal_device);
  const uint64_t number = device->submitted + 1;
  *out_number = 0;
  OM_TRY(om_null_device_check(ctx, device));
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (recordings[k] != recordings[i]) continue;
      return OM_FAIL(ctx, OM_E_INTERNAL, "A recording was submitted again in one submission.");
    }
    OM_TRY(check_submit(ctx, om_null_recording_of(recordings[i]), device->waited));
  }
  for (size_t i = 0; i < count; ++i) {
    om_null_recording *recording = om_null_recording_of(recordings[i]);
    recording->object.used_until = number;
    for (size_t k = 0; k < recording->use_count; ++k) {
      om_null_object *object = recording->uses[k].object;
      object->used_until = number;
      if (recording->uses[k].is_written) ((om_null_buffer *)object)->written_by = number;
    }
  }
  device->submitted = number;
  *out_number = number;
  return OM_OK;
}

static om_status check_number(om_ctx *ctx, om_null_device *device, uint64_t number) {
  OM_TRY(om_null_device_check(ctx, device));
  if (number <= device->submitted) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "Submission %" PRIu64 " was never made.", number);
}

om_status om_null_is_done(om_ctx *ctx,
                          om_hal_device *hal_device,
                          uint64_t number,
                          bool *out_is_done) {
  *out_is_done = true; /* nothing is computed */
  return check_number(ctx, om_null_device_of(hal_device), number);
}

om_status om_null_wait(om_ctx *ctx, om_hal_device *hal_device, uint64_t number) {
  om_null_device *device = om_null_device_of(hal_device);
  OM_TRY(check_number(ctx, device, number));
  if (number > device->waited) device->waited = number;
  return OM_OK;
}

om_status om_null_timestamps(om_ctx *ctx,
                             om_hal_recording *hal_recording,
                             uint32_t count,
                             uint64_t *out_ns) {
  const om_null_recording *recording = om_null_recording_of(hal_recording);
  const om_null_object *object = &recording->object;
  OM_TRY(om_null_object_check(ctx, object, OM_NULL_RECORDING, "Timestamps"));
  if (object->used_until == 0 || object->used_until > object->device->waited) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Timestamps were read before the wait for them.");
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (i >= recording->timestamp_count || !recording->has_timestamp[i]) {
      return OM_FAIL(ctx, OM_E_INTERNAL, "Timestamp %" PRIu32 " was never recorded.", i);
    }
    out_ns[i] = 0; /* nothing took any time */
  }
  return OM_OK;
}
