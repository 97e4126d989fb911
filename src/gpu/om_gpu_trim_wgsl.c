/* Trimming in a web build: a kernel's text is put together from its pieces, without what its chain
 * does not use (tools/embed_wgsl.py). It takes the place of om_gpu_trim.c.
 */
#include "gpu/om_gpu_state.h"
#include "gpu/om_gpu_wgsl.h"

static bool holds(const om_wgsl_condition *condition, const uint32_t *items) {
  if (condition->is_item) return items[condition->item] != 0;
  for (int i = 0; i < OM_CHAIN_MAX_ITEMS; ++i) {
    uint32_t operation = items[i] & 255;
    if (items[i] != 0 && (condition->operations[operation / 32] >> operation % 32 & 1) != 0) {
      return true;
    }
  }
  return false;
}

/* Copies the pieces that are needed to `text`, which may be NULL, and returns their length. */
static size_t assemble(const om_wgsl_module *module, const uint32_t *items, char *text) {
  size_t bytes = 0;
  for (size_t i = 0; i < module->piece_count; ++i) {
    const om_wgsl_piece *piece = &module->pieces[i];
    if (piece->condition != 0 && !holds(&om_wgsl_conditions[piece->condition], items)) continue;
    if (text) memcpy(text + bytes, om_wgsl_text + piece->offset, piece->bytes);
    bytes += piece->bytes;
  }
  return bytes;
}

static om_status put_together(om_ctx *ctx,
                              const om_gpu_kernel_key *key,
                              om_hal_shader **out_shader) {
  om_status st = OM_OK;
  const om_hal_shader *whole = om_shader_get(key->shader);
  const om_wgsl_module *module = om_wgsl_module_get(key->shader);
  const uint32_t *items = key->constants; /* not looked at where there is no chain */
  om_hal_shader *shader = NULL;
  char *text = NULL;
  *out_shader = NULL;
  if (whole->constant_count >= OM_CHAIN_MAX_ITEMS) {
    items += whole->constant_count - OM_CHAIN_MAX_ITEMS;
  }
  size_t bytes = assemble(module, items, NULL);
  OM_GO_NEW(shader, 1);
  OM_GO_NEW(text, bytes);
  assemble(module, items, text);
  *shader = *whole;
  shader->code = text;
  shader->code_bytes = bytes;
  *out_shader = shader;
  shader = NULL; /* the caller owns them now */
  text = NULL;
done:
  om_delete(ctx, text);
  om_delete(ctx, shader);
  return st;
}

om_status om_gpu_trim(om_ctx *ctx, om_gpu_kernel_entry *entries, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    OM_TRY(put_together(ctx, &entries[i].key, &entries[i].trimmed));
  }
  return OM_OK;
}
