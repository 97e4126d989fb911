/* The provider: what the core calls, and the choice of a device. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/om_gpu_cache.h"
#include "gpu/om_gpu_selftest.h"
#include "gpu/om_gpu_state.h"

enum {
  MAX_DEVICES = 32, /* that a choice looks at */
};
/* About a few milliseconds on a discrete card, and seconds on none. */
static const uint64_t default_submission_flops = 34000000000;

/* ---- Options ---- */

/* The caller's options, as far as its build knew them. */
om_status om_gpu_read_options(om_ctx *ctx, const void *options, om_gpu_options *out_options) {
  const om_gpu_options *given = options;
  *out_options = (om_gpu_options)OM_GPU_OPTIONS_INIT;
  if (!given) return OM_OK;
  size_t bytes = given->struct_bytes;
  if (bytes < sizeof given->struct_bytes || bytes > sizeof *given) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "om_gpu_options.struct_bytes is %zu; use OM_GPU_OPTIONS_INIT.",
                   bytes);
  }
  memcpy(out_options, given, bytes);
  return OM_OK;
}

/* Rewrites that join what a model keeps apart; the others stay, since exact mode's bits rest on
 * some of them. */
static bool wants_rewrite(const void *options, const char *name) {
  static const char *const joining[] = {"fused_attention", "packed_projections"};
  om_gpu_options own = OM_GPU_OPTIONS_INIT;
  const om_gpu_options *given = options;
  bool joins = false;
  for (size_t i = 0; i < OM_COUNT_OF(joining); ++i) joins |= strcmp(name, joining[i]) == 0;
  if (!joins || !given || given->struct_bytes > sizeof own) return true;
  memcpy(&own, given, given->struct_bytes);
  return !own.no_fusion && !own.no_fused_attention;
}

/* ---- The device ---- */

static bool is_index(const char *text, size_t *out_index) {
  char *end = NULL;
  if (text[0] < '0' || text[0] > '9' || strlen(text) > 9) return false; /* not a UUID of digits */
  unsigned long long index = strtoull(text, &end, 10);
  *out_index = (size_t)index;
  return *end == '\0';
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* True if `part` is in `text`, letters of either case. */
static bool contains(const char *text, const char *part) {
  for (; *text; ++text) {
    size_t i = 0;
    while (part[i] && lower(text[i]) == lower(part[i])) ++i;
    if (!part[i]) return true;
  }
  return false;
}

/* True if the names are the same hex digits, dashes left out. */
static bool is_uuid(const char *uuid, const char *text) {
  size_t digits = 0;
  for (; *text; ++text) {
    if (*text == '-') continue;
    if (digits >= 32 || lower(*text) != lower(uuid[digits])) return false;
    ++digits;
  }
  return digits == 32;
}

static bool find_device(const om_gpu_device *devices,
                        size_t count,
                        const char *wanted,
                        size_t *out_index) {
  size_t index = 0;
  if (!wanted || !*wanted) wanted = "0";
  if (is_index(wanted, &index)) {
    *out_index = index;
    return index < count;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!is_uuid(devices[i].uuid, wanted) && !contains(devices[i].name, wanted)) continue;
    *out_index = i;
    return true;
  }
  return false;
}

static const om_hal *find_backend(const char *name) {
  const om_hal *hal = NULL;
  for (size_t i = 0; (hal = om_hal_get(i)) != NULL; ++i) {
    if (name ? strcmp(hal->name, name) == 0 : hal != &om_hal_null) return hal;
  }
  return NULL;
}

static bool takes_ptx(const om_gpu_options *options) {
  return om_has_sm90_kernels && !options->no_matrix_hardware && !options->no_sm90;
}

static om_status open_index(om_ctx *ctx,
                            om_provider_session *session,
                            const om_gpu_options *options,
                            size_t index) {
  return session->hal->open(ctx, index, takes_ptx(options), &session->device);
}

/* Finds the device among all there are, and opens it. */
static om_status open_listed(om_ctx *ctx,
                             om_provider_session *session,
                             const om_gpu_options *options) {
  const char *wanted = options->device;
  om_status st = OM_OK;
  om_gpu_device *devices = NULL; /* scratch */
  size_t count = 0;
  size_t index = 0;
  OM_GO_NEW(devices, MAX_DEVICES);
  OM_GO(session->hal->list(ctx, devices, MAX_DEVICES, &count));
  if (count == 0) {
    st = OM_FAIL(ctx, OM_E_UNSUPPORTED, "There is no %s device.", session->hal->name);
    goto done;
  }
  om_error_clear(ctx->error); /* list may say why it left something out */
  if (count > MAX_DEVICES) count = MAX_DEVICES;
  if (!find_device(devices, count, wanted, &index)) {
    st = OM_FAIL(ctx,
                 OM_E_UNSUPPORTED,
                 "There is no %s device '%s' among the %zu found; the first is '%s'.",
                 session->hal->name,
                 wanted,
                 count,
                 devices[0].name);
    goto done;
  }
  OM_GO(open_index(ctx, session, options, index));
done:
  om_delete(ctx, devices);
  return st;
}

/* Opens the device that an index names without a list, which would load all drivers once more; with
 * one where a name is given, or where the failure needs its words. */
static om_status open_indexed(om_ctx *ctx,
                              om_provider_session *session,
                              const om_gpu_options *options) {
  const char *wanted = options->device;
  size_t index = 0;
  if (wanted && *wanted && !is_index(wanted, &index)) return open_listed(ctx, session, options);
  om_status st = open_index(ctx, session, options, index);
  if (st != OM_E_UNSUPPORTED) return st;
  om_error_clear(ctx->error);
  return open_listed(ctx, session, options);
}

static om_status open_beside(om_ctx *ctx,
                             om_provider_session *session,
                             const om_provider_session *other) {
  session->hal = other->hal;
  if (session->hal->open_beside) {
    return session->hal->open_beside(ctx, other->device, &session->device);
  }
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "A %s device cannot be shared.", session->hal->name);
}

static om_status open_own(om_ctx *ctx,
                          om_provider_session *session,
                          const om_gpu_options *options) {
  session->hal = find_backend(options->backend);
  if (!session->hal) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "This build has no GPU backend%s%s.",
                   options->backend ? " named " : "",
                   options->backend ? options->backend : "");
  }
  return open_indexed(ctx, session, options);
}

static om_status open_device(om_ctx *ctx,
                             om_provider_session *session,
                             const om_gpu_options *options,
                             const om_provider_session *beside) {
  OM_TRY(beside ? open_beside(ctx, session, beside) : open_own(ctx, session, options));
  session->hal->describe(session->device, &session->info.device);
  session->limits = *session->hal->limits(session->device);
  session->features = *session->hal->features(session->device);
  session->features.sm90 &= takes_ptx(options);
  return OM_OK;
}

/* ---- Sessions ---- */

void om_gpu_session_close(om_ctx *ctx, om_provider_session *session) {
  if (!session) return;
  if (session->device) {
    om_gpu_arena_deinit(ctx, session);
    om_gpu_kernels_deinit(ctx, session);
    om_gpu_cache_deinit(ctx, session);
    om_gpu_store_deinit(ctx, session, &session->weights);
    om_gpu_widen_deinit(ctx, session);
    om_gpu_room_deinit(ctx, session);
    om_gpu_memory_deinit(ctx, session);
    session->hal->close(ctx, session->device);
  }
  om_gpu_prepared_leave(session->shared);
  om_delete(ctx, session);
}

static bool is_set(const char *variable) {
  const char *text = getenv(variable);
  return text && strcmp(text, "1") == 0;
}

static bool is_unset(const char *variable) {
  const char *text = getenv(variable);
  return text && strcmp(text, "0") == 0;
}

om_status om_gpu_session_open(om_ctx *ctx,
                              const om_gpu_options *options,
                              om_mode mode,
                              const om_provider_session *beside,
                              om_provider_session **out_session) {
  static const uint32_t zeros[OM_GPU_ALIGNMENT / sizeof(uint32_t)];
  om_status st = OM_OK;
  om_provider_session *session = NULL;
  *out_session = NULL;
  OM_GO_NEW(session, 1);
  session->mode = mode;
  session->no_fusion = options->no_fusion;
  session->collect_timings = options->collect_timings;
  session->submission_flops =
      options->submission_flops != 0 ? options->submission_flops : default_submission_flops;
  OM_GO(open_device(ctx, session, options, beside));
  session->features.cooperative_matrix &= !options->no_matrix_hardware;
  session->info.has_sm90 = session->features.sm90;
  if (options->max_binding_bytes > 0 &&
      options->max_binding_bytes < session->limits.max_binding_bytes) {
    session->limits.max_binding_bytes = options->max_binding_bytes / 4 * 4;
  }
  if (is_set("ONEMODEL_GPU_SEPARATE_SLABS")) session->features.separate_slabs = true;
  if (is_set("ONEMODEL_GPU_NO_16BIT_STORAGE")) session->features.storage_16bit = false;
  if (is_set("ONEMODEL_GPU_IN_TURN")) session->features.in_turn = true;
  if (is_unset("ONEMODEL_GPU_IN_TURN")) session->features.in_turn = false;
  session->widens_halves = !session->features.storage_16bit;
  session->logs_profiles = is_set("ONEMODEL_GPU_PROFILE");
  session->profiles =
      (session->logs_profiles || options->profile_steps) && session->features.timestamps;
  session->info.exact_failures = session->exact_failures;
  const om_gpu_source source = {.data = zeros, .bytes = sizeof zeros};
  OM_GO(om_gpu_store_get(ctx,
                         session,
                         &session->weights,
                         &source,
                         "zeros",
                         sizeof zeros,
                         NULL,
                         NULL,
                         &session->zeros));
  OM_GO(beside ? om_gpu_cache_join(ctx, session, beside)
               : om_gpu_cache_begin(ctx, session, options->cache_folder));
  *out_session = session;
  session = NULL; /* the caller owns it now */
done:
  om_gpu_session_close(ctx, session);
  return st;
}

/* Earns exact mode, where that was not done ahead. */
static om_status try_device(om_ctx *ctx, om_provider_session *session) {
  if (session->features.never_waits) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Exact mode tries the device first, and a browser cannot wait for it: use "
                   "om_gpu_prepare_begin.");
  }
  OM_TRY(om_gpu_selftest_run(ctx, session));
  return om_gpu_cache_keep(ctx, session);
}

static om_status open_session(om_ctx *ctx,
                              const om_provider *self,
                              const void *options,
                              om_mode mode,
                              om_provider_session **out_session) {
  om_gpu_options chosen;
  bool is_tried = false;
  (void)self;
  *out_session = NULL;
  OM_TRY(om_gpu_read_options(ctx, options, &chosen));
  if (chosen.prepared && chosen.shared) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "om_gpu_options has both prepared and shared; a session has one device.");
  }
  if (chosen.prepared) return om_gpu_prepared_take(ctx, chosen.prepared, mode, out_session);
  if (chosen.shared) {
    OM_TRY(om_gpu_prepared_share(ctx, &chosen, mode, out_session, &is_tried));
  } else {
    OM_TRY(om_gpu_session_open(ctx, &chosen, mode, NULL, out_session));
  }
  om_status st = mode == OM_MODE_EXACT && !is_tried ? try_device(ctx, *out_session) : OM_OK;
  if (st != OM_OK) {
    om_gpu_session_close(ctx, *out_session);
    *out_session = NULL;
  }
  return st;
}

static const char *check(om_provider_session *session, const om_node *node) {
  const om_gpu_op *op = om_gpu_op_find(node->domain, node->type);
  if (node->op && node->op->is_sized_by_data)
    return "the size of its result is only known at run time";
  if (!op) return "no kernel for this operator";
  if (session->mode == OM_MODE_EXACT) {
    if (!op->has_exact) return "no exact kernel for this operator";
    const char *reason = om_gpu_primitive_reason(op->primitives & session->failed_primitives);
    if (reason) return reason;
  }
  return op->check ? op->check(node) : NULL;
}

/* ---- Plans ---- */

static void plan_end(om_ctx *ctx, om_provider_plan *plan) {
  if (!plan) return;
  if (plan->session->profiled == plan) plan->session->profiled = NULL;
  for (size_t i = 0; i < plan->region_count; ++i) {
    om_gpu_region_deinit(ctx, plan->session, &plan->regions[i]);
  }
  for (size_t i = 0; plan->steps && i < plan->view->step_count; ++i) {
    om_delete(ctx, plan->steps[i].dispatches);
    om_delete(ctx, plan->steps[i].scratch_bytes);
    om_delete(ctx, plan->steps[i].demands);
  }
  om_gpu_store_deinit(ctx, plan->session, &plan->store);
  om_delete(ctx, plan->constants);
  om_pool_deinit(ctx, &plan->pool);
  om_delete(ctx, plan);
}

static om_status plan_begin(om_ctx *ctx,
                            om_provider_session *session,
                            const om_plan_view *view,
                            om_provider_plan **out_plan) {
  om_status st = OM_OK;
  om_provider_plan *plan = NULL;
  *out_plan = NULL;
  OM_GO_NEW(plan, 1);
  plan->session = session;
  plan->host_view = plan->view = view;
  plan->steps = OM_POOL_NEW(ctx, &plan->pool, om_gpu_step, view->step_count);
  plan->roots = OM_POOL_NEW(ctx, &plan->pool, uint32_t, view->value_count);
  if (!plan->steps || !plan->roots) {
    st = OM_E_OUT_OF_MEMORY;
    goto done;
  }
  OM_GO(om_gpu_widen_view(ctx, plan));
  *out_plan = plan;
  plan = NULL; /* the caller owns it now */
done:
  plan_end(ctx, plan);
  return st;
}

/* What no binder needs to look at: an empty tensor, one that no binding reaches, a string. */
static const char *check_tensor(om_gpu_binder *b, const om_tensor *tensor) {
  size_t bytes = 0;
  uint64_t limit = b->plan->session->limits.max_binding_bytes;
  if (!tensor) return NULL;
  if (tensor->dtype == OM_DTYPE_STRING) return "strings stay on the CPU";
  if (!om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes) || bytes == 0) {
    return "an empty tensor stays on the CPU";
  }
  if (bytes <= limit) return NULL;
  return om_gpu_reason(b,
                       "an operand of %llu bytes is above the device's binding limit of %llu",
                       (unsigned long long)bytes,
                       (unsigned long long)limit);
}

static const char *check_tensors(om_gpu_binder *b, const om_gpu_op *op) {
  const om_plan_step *step = &b->plan->view->steps[b->step_index];
  const om_tensor *first = om_gpu_input(b, 0);
  const char *reason = NULL;
  if (first && (op->dtypes & OM_DT(first->dtype)) == 0) {
    return om_gpu_reason(b, "no kernel for %s", om_dtype_name(first->dtype));
  }
  for (uint32_t i = 0; i < step->input_count && !reason; ++i) {
    const om_tensor *tensor = om_gpu_input(b, i);
    if (tensor && tensor->data && om_tensor_elems(tensor) == 0) continue; /* an empty Resize roi */
    if (tensor && tensor->data && (op->splits >> i & 1) != 0) continue;
    reason = check_tensor(b, tensor);
  }
  for (uint32_t i = 0; i < step->output_count && !reason; ++i) {
    reason = check_tensor(b, om_gpu_output(b, i));
  }
  return reason;
}

/* Whether the device can run the kernels with float16 in memory that bind chose. */
static const char *check_halves(const om_gpu_binder *b) {
  uint32_t half_mask = 0;
  for (size_t i = 0; i < b->step->dispatch_count; ++i) {
    half_mask |= om_shader_get(b->step->dispatches[i].shader)->half_mask;
  }
  if (half_mask == 0) return NULL;
  return om_gpu_primitive_reason(OM_PRIMITIVE_FLOAT16 & b->plan->session->failed_primitives);
}

static const char *bind(om_gpu_binder *b, const om_gpu_op *op) {
  const char *reason = check_tensors(b, op);
  if (!reason) reason = op->bind(b);
  if (!reason) reason = check_halves(b);
  if (!reason) reason = om_gpu_round_results(b);
  if (reason || !b->step->is_view) return reason;
  const om_tensor *source = om_gpu_input(b, 0);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  return source && !source->data ? NULL : "its input is known while planning";
}

static om_status claim(om_ctx *ctx,
                       om_provider_plan *plan,
                       uint32_t step,
                       const char **out_reason) {
  om_gpu_binder b = {
      .ctx = ctx, .plan = plan, .step_index = step, .step = &plan->steps[step], .status = OM_OK};
  const om_node *node = plan->view->steps[step].node;
  *b.step = (om_gpu_step){.dispatches = b.step->dispatches, /* a step asked about again */
                          .dispatch_capacity = b.step->dispatch_capacity,
                          .scratch_bytes = b.step->scratch_bytes,
                          .scratch_capacity = b.step->scratch_capacity,
                          .demands = b.step->demands,
                          .demand_capacity = b.step->demand_capacity};
  *out_reason = check(plan->session, node);
  if (*out_reason) return OM_OK;
  *out_reason = bind(&b, om_gpu_op_find(node->domain, node->type));
  if (*out_reason || b.status != OM_OK) {
    b.step->dispatch_count = 0;
    b.step->scratch_count = 0;
    b.step->demand_count = 0;
    b.step->is_view = false;
  }
  if (b.status != OM_OK) om_error_prefix(ctx, "Preparing %s '%s': ", node->type, node->name);
  plan->session->info.weight_bytes = plan->session->weights.total_bytes;
  return b.status;
}

static bool never_waits(const om_provider_session *session) {
  return session->features.never_waits;
}

static const om_provider provider = {
    .struct_bytes = sizeof(om_provider),
    .name = "gpu",
    .wants_rewrite = wants_rewrite,
    .open = open_session,
    .close = om_gpu_session_close,
    .check = check,
    .plan_begin = plan_begin,
    .claim = claim,
    .compile = om_gpu_compile,
    .begin = om_gpu_region_begin,
    .is_done = om_gpu_region_is_done,
    .finish = om_gpu_region_finish,
    .never_waits = never_waits,
    .lend = om_gpu_lend,
    .plan_end = plan_end,
    .memory_lend = om_gpu_memory_lend,
    .memory_return = om_gpu_memory_return,
};

const om_provider *om_gpu_provider(void) {
  return &provider;
}
