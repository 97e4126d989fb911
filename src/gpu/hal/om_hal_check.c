/* Checks that all backends share; om_hal_check.h has the rules. */
#include "gpu/hal/om_hal_check.h"

#include <inttypes.h>

om_status om_hal_check_buffer(om_ctx *ctx, const om_hal_limits *limits, uint64_t bytes) {
  if (bytes == 0 || bytes % 4 != 0) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A buffer of %" PRIu64 " bytes is not whole words.", bytes);
  }
  if (bytes > limits->max_buffer_bytes) {
    return OM_FAIL(ctx,
                   OM_E_OUT_OF_DEVICE_MEMORY,
                   "A buffer of %" PRIu64 " bytes is above the device's limit of %" PRIu64
                   " bytes for one buffer.",
                   bytes,
                   limits->max_buffer_bytes);
  }
  return OM_OK;
}

om_status om_hal_check_range(
    om_ctx *ctx, const char *what, uint64_t offset, uint64_t bytes, uint64_t buffer_bytes) {
  if (offset % 4 != 0 || bytes % 4 != 0 || bytes == 0) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "%s of %" PRIu64 " bytes at offset %" PRIu64 " is not whole words.",
                   what,
                   bytes,
                   offset);
  }
  if (offset > buffer_bytes || bytes > buffer_bytes - offset) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "%s of %" PRIu64 " bytes at offset %" PRIu64
                   " ends outside its buffer of %" PRIu64 " bytes.",
                   what,
                   bytes,
                   offset,
                   buffer_bytes);
  }
  return OM_OK;
}

om_status om_hal_check_shader(om_ctx *ctx,
                              const om_hal_limits *limits,
                              const om_hal_features *features,
                              om_hal_code code_kind,
                              const om_hal_shader *shader) {
  const bool is_ptx = shader->code_kind == OM_HAL_PTX;
  const uint32_t max_shared_bytes = is_ptx ? OM_HAL_SM90_SHARED_BYTES : limits->max_shared_bytes;
  if (is_ptx && !features->sm90) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The kernel '%s' is for Hopper; the device does not take its code.",
                   shader->name);
  }
  if ((shader->code_kind != code_kind && !is_ptx) || shader->binding_count == 0 ||
      shader->binding_count > OM_HAL_MAX_BINDINGS ||
      shader->params_bytes > OM_HAL_MAX_PARAMS_BYTES || shader->params_bytes % 4 != 0 ||
      shader->constant_count > OM_HAL_MAX_CONSTANTS || (shader->takes_turns && !is_ptx)) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "The kernel '%s' (%" PRIu32 " bindings, %" PRIu32
                   " bytes of parameters, %" PRIu32 " constants) is not one this backend takes.",
                   shader->name,
                   shader->binding_count,
                   shader->params_bytes,
                   shader->constant_count);
  }
  if (shader->half_mask != 0 && !features->storage_16bit) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The kernel '%s' has buffers of float16; the device has no 16-bit storage.",
                   shader->name);
  }
  if (shader->shared_bytes > max_shared_bytes) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The kernel '%s' needs %" PRIu32
                   " bytes of shared memory; the device has %" PRIu32 ".",
                   shader->name,
                   shader->shared_bytes,
                   max_shared_bytes);
  }
  const uint32_t *size = shader->workgroup_size;
  uint64_t invocations = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (size[axis] == 0 || size[axis] > limits->max_invocations) invocations = UINT32_MAX;
    invocations *= invocations > limits->max_invocations ? 1 : size[axis];
  }
  if (invocations > limits->max_invocations) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The kernel '%s' has workgroups of %" PRIu32 "x%" PRIu32 "x%" PRIu32
                   "; the device takes %" PRIu32 " invocations.",
                   shader->name,
                   size[0],
                   size[1],
                   size[2],
                   limits->max_invocations);
  }
  return OM_OK;
}

om_status om_hal_check_dispatch(om_ctx *ctx,
                                const om_hal_limits *limits,
                                const om_hal_shader *shader,
                                const om_hal_dispatch *dispatch) {
  const uint32_t *groups = dispatch->groups;
  for (int axis = 0; axis < 3; ++axis) {
    if (groups[axis] != 0 && groups[axis] <= limits->max_groups[axis]) continue;
    return OM_FAIL(ctx,
                   groups[axis] == 0 ? OM_E_INTERNAL : OM_E_UNSUPPORTED,
                   "A dispatch of '%s' has %" PRIu32 "x%" PRIu32 "x%" PRIu32
                   " workgroups; the device takes 1 to %" PRIu32 "x%" PRIu32 "x%" PRIu32 ".",
                   shader->name,
                   groups[0],
                   groups[1],
                   groups[2],
                   limits->max_groups[0],
                   limits->max_groups[1],
                   limits->max_groups[2]);
  }
  if (shader->params_bytes > 0 && !dispatch->params) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A dispatch of '%s' has no parameters.", shader->name);
  }
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    const om_hal_binding *binding = &dispatch->bindings[i];
    if (!binding->buffer || binding->bytes == 0 || binding->bytes % 4 != 0 ||
        binding->offset % limits->binding_alignment != 0) {
      return OM_FAIL(ctx,
                     OM_E_INTERNAL,
                     "Binding %" PRIu32 " of '%s' (%" PRIu64 " bytes at offset %" PRIu64
                     ") is missing, empty or not aligned to %" PRIu64 " bytes.",
                     i,
                     shader->name,
                     binding->bytes,
                     binding->offset,
                     limits->binding_alignment);
    }
    if (binding->bytes > limits->max_binding_bytes) {
      return OM_FAIL(ctx,
                     OM_E_UNSUPPORTED,
                     "Binding %" PRIu32 " of '%s' has %" PRIu64
                     " bytes; the device binds at most %" PRIu64 ".",
                     i,
                     shader->name,
                     binding->bytes,
                     limits->max_binding_bytes);
    }
  }
  return OM_OK;
}
