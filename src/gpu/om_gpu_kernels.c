/* The session's kernels: each (shader, constants) is made once.
 *
 * A plan asks for all its kernels at once, so that the interface can make them in parallel. The
 * list is searched by comparing keys; a session has a few hundred at most, and recording happens
 * once a plan.
 */
#include "gpu/om_gpu_state.h"

static bool is_same_kernel(const om_gpu_kernel_key *a, const om_gpu_kernel_key *b) {
  size_t count = om_shader_get(a->shader)->constant_count;
  return a->shader == b->shader &&
         memcmp(a->constants, b->constants, count * sizeof *a->constants) == 0;
}

static const om_gpu_kernel_entry *find_entry(const om_gpu_kernel_entry *entries,
                                             size_t count,
                                             const om_gpu_kernel_key *key) {
  for (size_t i = 0; i < count; ++i) {
    if (is_same_kernel(&entries[i].key, key)) return &entries[i];
  }
  return NULL;
}

om_hal_kernel *om_gpu_kernels_find(const om_provider_session *session,
                                   const om_gpu_kernel_key *key) {
  const om_gpu_kernels *kernels = &session->kernels;
  const om_gpu_kernel_entry *entry = find_entry(kernels->entries, kernels->count, key);
  return entry ? entry->kernel : NULL;
}

/* Lists the keys that are new, each once, behind the entries that are there. */
static om_status list_missing(om_ctx *ctx,
                              om_gpu_kernels *kernels,
                              const om_gpu_kernel_key *keys,
                              size_t count,
                              size_t *out_missing) {
  size_t end = kernels->count;
  for (size_t i = 0; i < count; ++i) {
    if (find_entry(kernels->entries, end, &keys[i])) continue;
    OM_TRY(OM_GROW(ctx, kernels->entries, end, kernels->capacity));
    kernels->entries[end++] = (om_gpu_kernel_entry){.key = keys[i]};
  }
  *out_missing = end - kernels->count;
  return OM_OK;
}

void om_gpu_free_code(om_ctx *ctx, om_hal_shader *trimmed) {
  union { /* the shader's code is const for everybody else */
    const void *kept;
    void *owned;
  } code;
  if (!trimmed) return;
  code.kept = trimmed->code;
  om_delete(ctx, code.owned);
  trimmed->code = NULL;
  trimmed->code_bytes = 0;
}

void om_gpu_free_trimmed(om_ctx *ctx, om_hal_shader *trimmed) {
  om_gpu_free_code(ctx, trimmed);
  om_delete(ctx, trimmed);
}

om_status om_gpu_kernels_prepare(om_ctx *ctx,
                                 om_provider_session *session,
                                 const om_gpu_kernel_key *keys,
                                 size_t count) {
  om_status st = OM_OK;
  om_gpu_kernels *kernels = &session->kernels;
  om_hal_kernel_desc *descs = NULL; /* scratch */
  om_hal_kernel **made = NULL;      /* scratch */
  size_t missing = 0;

  OM_TRY(list_missing(ctx, kernels, keys, count, &missing));
  if (missing == 0) return OM_OK;
  om_gpu_kernel_entry *entries = kernels->entries + kernels->count;
  OM_GO_NEW(descs, missing);
  OM_GO_NEW(made, missing);
  OM_GO(om_gpu_trim(ctx, entries, missing));
  for (size_t i = 0; i < missing; ++i) {
    descs[i].shader =
        entries[i].trimmed ? entries[i].trimmed : om_shader_get(entries[i].key.shader);
    memcpy(descs[i].constants, entries[i].key.constants, sizeof descs[i].constants);
  }
  OM_GO(session->hal->kernels_create(ctx, session->device, descs, missing, made));
  for (size_t i = 0; i < missing; ++i) entries[i].kernel = made[i];
  kernels->count += missing;
  session->info.kernels += missing;
done:
  for (size_t i = 0; i < missing; ++i) {
    om_gpu_free_code(ctx, entries[i].trimmed);
    if (st != OM_OK) om_delete(ctx, entries[i].trimmed);
  }
  om_delete(ctx, descs);
  om_delete(ctx, made);
  return st;
}

void om_gpu_kernels_deinit(om_ctx *ctx, om_provider_session *session) {
  for (size_t i = 0; i < session->kernels.count; ++i) {
    session->hal->kernel_destroy(ctx, session->device, session->kernels.entries[i].kernel);
    om_delete(ctx, session->kernels.entries[i].trimmed);
  }
  om_delete(ctx, session->kernels.entries);
  session->kernels = (om_gpu_kernels){0};
}
