/* A device made ready ahead of its sessions: opened, and tried for exact mode without a wait.
 *
 * One session takes it over, or any number of them use it, each through a device beside it. Its
 * owner and they are counted; whoever leaves last closes it.
 */
#include <stdatomic.h>

#include "gpu/om_gpu_cache.h"
#include "gpu/om_gpu_selftest.h"
#include "gpu/om_gpu_state.h"

struct om_gpu_prepared {
  om_allocator allocator;
  om_memory_use use; /* of the session and the test */
  om_mode mode;
  om_provider_session *session; /* owned; NULL: taken */
  om_gpu_selftest *test;        /* owned; NULL: done, or there is none to do */
  atomic_size_t users;          /* its owner, and the sessions beside it */
  om_error spare_error;
};

static om_ctx context_of(om_gpu_prepared *prepared, om_error *error) {
  om_ctx ctx = {.allocator = prepared->allocator,
                .use = &prepared->use,
                .error = error ? error : &prepared->spare_error,
                .thread_count = 1};
  om_error_clear(ctx.error);
  return ctx;
}

static om_status fail_argument(om_error *error, const char *message) {
  om_ctx ctx = {.error = error};
  if (!error) return OM_E_INVALID_ARGUMENT;
  om_error_clear(error);
  return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "%s", message);
}

static om_status begin(om_ctx *ctx, om_gpu_prepared *prepared, const om_gpu_options *given) {
  om_gpu_options options;
  OM_TRY(om_gpu_read_options(ctx, given, &options));
  OM_TRY(om_gpu_session_open(ctx, &options, prepared->mode, NULL, &prepared->session));
  if (prepared->mode != OM_MODE_EXACT) return OM_OK;
  return om_gpu_selftest_begin(ctx, prepared->session, &prepared->test);
}

om_status om_gpu_prepare_begin(const om_gpu_options *options,
                               om_mode mode,
                               const om_allocator *allocator,
                               om_gpu_prepared **out_prepared,
                               om_error *error) {
  if (!out_prepared) return fail_argument(error, "out_prepared is NULL.");
  *out_prepared = NULL;
  om_allocator own = allocator ? *allocator : om_default_allocator();
  om_gpu_prepared *prepared = own.alloc(own.user, sizeof *prepared);
  if (!prepared) return OM_E_OUT_OF_MEMORY;
  *prepared = (om_gpu_prepared){.allocator = own, .mode = mode, .users = 1};
  om_ctx ctx = context_of(prepared, error);
  om_status st = begin(&ctx, prepared, options);
  if (st == OM_OK) {
    *out_prepared = prepared;
  } else {
    om_gpu_prepared_destroy(prepared);
  }
  return st;
}

static om_status poll(om_ctx *ctx, om_gpu_prepared *prepared, bool *out_is_done) {
  om_provider_session *session = prepared->session;
  if (!prepared->test) {
    *out_is_done = true;
    return OM_OK;
  }
  if (session->features.never_waits) {
    bool has_ended = false;
    OM_TRY(session->hal->is_done(ctx, session->device, session->submitted, &has_ended));
    if (!has_ended) return OM_OK;
  }
  om_gpu_selftest *test = prepared->test;
  prepared->test = NULL;
  OM_TRY(om_gpu_selftest_finish(ctx, session, test));
  OM_TRY(om_gpu_cache_keep(ctx, session));
  *out_is_done = true;
  return OM_OK;
}

om_status om_gpu_prepare_poll(om_gpu_prepared *prepared, bool *out_is_done, om_error *error) {
  if (!prepared || !out_is_done) return fail_argument(error, "om_gpu_prepare_poll got NULL.");
  *out_is_done = false;
  om_ctx ctx = context_of(prepared, error);
  if (!prepared->session) {
    return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "A session has taken the prepared device.");
  }
  return poll(&ctx, prepared, out_is_done);
}

void om_gpu_prepared_leave(om_gpu_prepared *prepared) {
  if (!prepared || atomic_fetch_sub(&prepared->users, 1) > 1) return;
  om_ctx ctx = context_of(prepared, NULL);
  om_allocator allocator = prepared->allocator;
  if (prepared->test) {
    OM_IGNORE(om_gpu_selftest_finish(&ctx, prepared->session, prepared->test));
  }
  om_gpu_session_close(&ctx, prepared->session);
  allocator.free(allocator.user, prepared, sizeof *prepared);
}

void om_gpu_prepared_destroy(om_gpu_prepared *prepared) {
  om_gpu_prepared_leave(prepared);
}

static bool is_same_allocator(const om_allocator *a, const om_allocator *b) {
  return a->alloc == b->alloc && a->free == b->free && a->user == b->user;
}

om_status om_gpu_prepared_take(om_ctx *ctx,
                               om_gpu_prepared *prepared,
                               om_mode mode,
                               om_provider_session **out_session) {
  if (!prepared->session || prepared->test) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "The prepared device %s.",
                   prepared->session ? "is not done" : "was taken by another session");
  }
  if (atomic_load(&prepared->users) > 1) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The prepared device is shared by sessions.");
  }
  if (prepared->mode != mode || !is_same_allocator(&prepared->allocator, &ctx->allocator)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "The device was prepared for another mode, or with another allocator.");
  }
  om_memory_use_add(ctx->use, &prepared->use);
  *out_session = prepared->session;
  prepared->session = NULL;
  prepared->use = (om_memory_use){0};
  return OM_OK;
}

/* What the device was found to be, when it was tried for exact mode. */
static void take_findings(om_provider_session *session, const om_provider_session *tried) {
  session->failed_primitives = tried->failed_primitives;
  memcpy(session->exact_failures, tried->exact_failures, sizeof session->exact_failures);
  session->info.keeps_subnormals = tried->info.keeps_subnormals;
  session->features.sm90 &= tried->features.sm90;
  session->info.has_sm90 = session->features.sm90;
}

om_status om_gpu_prepared_share(om_ctx *ctx,
                                const om_gpu_options *options,
                                om_mode mode,
                                om_provider_session **out_session,
                                bool *out_is_tried) {
  om_gpu_prepared *prepared = options->shared;
  const om_provider_session *own = prepared->session;
  *out_session = NULL;
  *out_is_tried = prepared->mode == OM_MODE_EXACT;
  if (!own || prepared->test) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "The shared device %s.",
                   own ? "is not done" : "was taken by a session");
  }
  OM_TRY(om_gpu_session_open(ctx, options, mode, own, out_session));
  atomic_fetch_add(&prepared->users, 1);
  (*out_session)->shared = prepared;
  if (*out_is_tried && mode == OM_MODE_EXACT) take_findings(*out_session, own);
  return OM_OK;
}
