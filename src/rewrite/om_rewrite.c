/* The table of rewrites, and applying it. */
#include "rewrite/om_rewrite.h"

/* In this order: composed operators are patterns, identities hide them; attention has Transposes of
 * its own, others stand between a convolution and its bias. */
static const om_rewrite *const table[] = {
    &om_rewrite_quantized,
    &om_rewrite_compose,
    &om_rewrite_einsum,
    &om_rewrite_variadic,
    &om_rewrite_qlinear,
    &om_rewrite_scaled_products,
    &om_rewrite_drop_identity,
    &om_rewrite_drop_expand,
    &om_rewrite_mask_choices,
    &om_rewrite_gelu_from_parts,
    &om_rewrite_hardswish_from_parts,
    &om_rewrite_layernorm_from_parts,
    &om_rewrite_spread_heads,
    &om_rewrite_join_masks,
    &om_rewrite_attention,
    &om_rewrite_sink_expand,
    &om_rewrite_packed_projections,
    &om_rewrite_transposes,
    &om_rewrite_pad,
    &om_rewrite_fold_affine,
    &om_rewrite_channels_last,
    &om_rewrite_epilogue,
    &om_rewrite_common,
};

const om_rewrite *om_rewrite_get(size_t index) {
  return index < OM_COUNT_OF(table) ? table[index] : NULL;
}

_Static_assert(OM_COUNT_OF(table) <= 64, "om_rewriter.left_out has a bit for each");

uint64_t om_rewrites_left_out(const om_provider *provider, const void *options) {
  uint64_t left_out = 0;
  if (!provider || !provider->wants_rewrite) return 0;
  for (size_t i = 0; i < OM_COUNT_OF(table); ++i) {
    if (!provider->wants_rewrite(options, table[i]->name)) left_out |= (uint64_t)1 << i;
  }
  return left_out;
}

static bool is_wanted(size_t index, const om_rewriter *rw) {
  const om_rewrite *rewrite = table[index];
  if (rw->mode == OM_MODE_EXACT ? !rewrite->in_exact : !rewrite->in_fast) return false;
  if ((rw->left_out >> index & 1) != 0) return false;
  switch (rewrite->asker) {
    case OM_REWRITE_ALWAYS:
      return true;
    case OM_REWRITE_FOR_CPU:
      return !rw->has_device;
    case OM_REWRITE_FOR_DEVICE:
      return rw->has_device;
  }
  return false;
}

om_status om_rewrite_graph(om_ctx *ctx, om_rewriter *rw, bool is_early) {
  OM_TRY(om_rewriter_refresh(ctx, rw));
  for (size_t i = 0; i < OM_COUNT_OF(table); ++i) {
    if (table[i]->is_early != is_early || !is_wanted(i, rw)) continue;
    OM_TRY(table[i]->apply(ctx, rw));
    OM_TRY(om_rewriter_refresh(ctx, rw));
    OM_TRY(om_rewriter_drop_dead(ctx, rw));
  }
  return OM_OK;
}
