/* The table of rewrites, and applying it. */
#include "rewrite/om_rewrite.h"

/* In this order: identities hide patterns, so they go first. */
static const om_rewrite *const table[] = {
    &om_rewrite_drop_identity,
    &om_rewrite_fold_affine,
    &om_rewrite_gelu_from_parts,
    &om_rewrite_hardswish_from_parts,
    &om_rewrite_layernorm_from_parts,
    &om_rewrite_attention,
    &om_rewrite_packed_projections,
};

const om_rewrite *om_rewrite_get(size_t index) {
  return index < OM_COUNT_OF(table) ? table[index] : NULL;
}

static bool is_wanted(const om_rewrite *rewrite, const om_rewriter *rw) {
  const om_provider *provider = rw->provider;
  if (rw->mode == OM_MODE_EXACT ? !rewrite->in_exact : !rewrite->in_fast) return false;
  if (provider && provider->wants_rewrite &&
      !provider->wants_rewrite(rw->provider_options, rewrite->name)) {
    return false;
  }
  switch (rewrite->asker) {
    case OM_REWRITE_ALWAYS:
      return true;
    case OM_REWRITE_FOR_CPU:
      return !provider;
    case OM_REWRITE_FOR_DEVICE:
      return provider != NULL;
  }
  return false;
}

om_status om_rewrite_graph(om_ctx *ctx, om_rewriter *rw) {
  OM_TRY(om_rewriter_refresh(ctx, rw));
  for (size_t i = 0; i < OM_COUNT_OF(table); ++i) {
    if (!is_wanted(table[i], rw)) continue;
    OM_TRY(table[i]->apply(ctx, rw));
    OM_TRY(om_rewriter_refresh(ctx, rw));
    OM_TRY(om_rewriter_drop_dead(ctx, rw));
  }
  return OM_OK;
}
