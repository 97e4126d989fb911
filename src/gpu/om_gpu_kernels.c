/* The session's kernels: each (shader, constants) is made once.
 *
 * A plan asks for all its kernels at once, so that the interface can make them in parallel. The
 * list is searched by comparing descriptions; a session has a few hundred at most, and recording
 * happens once a plan.
 */
#include "gpu/om_gpu_state.h"

static bool is_same_kernel(const om_hal_kernel_desc *a, const om_hal_kernel_desc *b) {
  return a->shader == b->shader &&
         memcmp(a->constants, b->constants, a->shader->constant_count * sizeof(uint32_t)) == 0;
}

om_hal_kernel *om_gpu_kernels_find(const om_provider_session *session,
                                   const om_hal_kernel_desc *desc) {
  for (size_t i = 0; i < session->kernels.count; ++i) {
    const om_gpu_kernel_entry *entry = &session->kernels.entries[i];
    if (is_same_kernel(&entry->desc, desc)) return entry->kernel;
  }
  return NULL;
}

static bool is_listed(const om_hal_kernel_desc *list,
                      size_t count,
                      const om_hal_kernel_desc *desc) {
  for (size_t i = 0; i < count; ++i) {
    if (is_same_kernel(&list[i], desc)) return true;
  }
  return false;
}

om_status om_gpu_kernels_prepare(om_ctx *ctx,
                                 om_provider_session *session,
                                 const om_hal_kernel_desc *descs,
                                 size_t count) {
  om_status st = OM_OK;
  om_gpu_kernels *kernels = &session->kernels;
  om_hal_kernel_desc *missing = NULL; /* scratch */
  om_hal_kernel **made = NULL;        /* scratch */
  size_t missing_count = 0;

  OM_GO_NEW(missing, count);
  OM_GO_NEW(made, count);
  for (size_t i = 0; i < count; ++i) {
    if (om_gpu_kernels_find(session, &descs[i])) continue;
    if (is_listed(missing, missing_count, &descs[i])) continue;
    missing[missing_count++] = descs[i];
  }
  if (missing_count == 0) goto done;
  size_t wanted = kernels->count + missing_count;
  if (wanted > kernels->capacity) {
    OM_GO(om_resize_bytes(
        ctx, (void **)&kernels->entries, kernels->count, wanted, sizeof *kernels->entries));
    kernels->capacity = wanted;
  }
  OM_GO(session->hal->kernels_create(ctx, session->device, missing, missing_count, made));
  for (size_t i = 0; i < missing_count; ++i) {
    kernels->entries[kernels->count++] = (om_gpu_kernel_entry){missing[i], made[i]};
  }
  session->info.kernels += missing_count;
done:
  om_delete(ctx, missing);
  om_delete(ctx, made);
  return st;
}

void om_gpu_kernels_deinit(om_ctx *ctx, om_provider_session *session) {
  for (size_t i = 0; i < session->kernels.count; ++i) {
    session->hal->kernel_destroy(ctx, session->device, session->kernels.entries[i].kernel);
  }
  om_delete(ctx, session->kernels.entries);
  session->kernels = (om_gpu_kernels){0};
}
