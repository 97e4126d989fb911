/* Memory lent to the caller for inputs: the provider's, which its device reads, or plain memory. */
#include "session/om_session.h"

static om_status lend(om_ctx *ctx, om_session *session, size_t byte_count, void **out_data) {
  const om_provider *provider = session->provider;
  om_lent lent = {0};
  OM_TRY(OM_GROW(ctx, session->lents, session->lent_count, session->lent_capacity));
  if (provider && provider->memory_lend) {
    OM_TRY(provider->memory_lend(ctx, session->provider_session, byte_count, &lent.data));
    lent.is_providers = lent.data != NULL;
  }
  if (!lent.data) lent.data = om_new_bytes(ctx, byte_count, 1);
  if (!lent.data) return OM_E_OUT_OF_MEMORY;
  session->lents[session->lent_count++] = lent;
  *out_data = lent.data;
  return OM_OK;
}

static void take_back(om_ctx *ctx, om_session *session, size_t at) {
  const om_lent lent = session->lents[at];
  session->lents[at] = session->lents[--session->lent_count];
  if (lent.is_providers) {
    session->provider->memory_return(ctx, session->provider_session, lent.data);
  } else {
    om_delete(ctx, lent.data);
  }
}

om_status om_session_lend_memory(om_session *session,
                                 size_t byte_count,
                                 void **out_data,
                                 om_error *error) {
  if (!out_data) return om_fail_null(error, "out_data");
  *out_data = NULL;
  if (!session) return om_fail_null(error, "The session");
  om_ctx ctx = om_session_enter(session, error);
  om_status st = lend(&ctx, session, byte_count, out_data);
  om_session_leave(session);
  return st;
}

void om_session_return_memory(om_session *session, void *data) {
  if (!session || !data) return;
  om_ctx ctx = om_session_enter(session, NULL);
  for (size_t i = 0; i < session->lent_count; ++i) {
    if (session->lents[i].data != data) continue;
    take_back(&ctx, session, i);
    break;
  }
  om_session_leave(session);
}

void om_session_take_back_memory(om_ctx *ctx, om_session *session) {
  while (session->lent_count > 0) take_back(ctx, session, session->lent_count - 1);
  om_delete(ctx, session->lents);
}
