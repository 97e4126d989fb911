/* Trimming: what a chain does not use is cut off before the driver sees the code.
 *
 * A kernel's code holds eight items of a chain and in each every operation there is. A driver
 * inlines all of it before it looks at the constants, which took lavapipe most of a second a
 * kernel. So, in a copy of the code:
 *
 *   - the branch around an item that is empty goes to the item's end both ways;
 *   - operations that no item uses go where the switch's default goes.
 *
 * Nothing moves: only labels are replaced, and blocks that nothing reaches stay where they are,
 * which SPIR-V allows.
 */
#include "gpu/hal/om_hal_code.h"
#include "gpu/om_gpu_state.h"

enum { /* words of the two instructions */
       BRANCH_TRUE = 2,
       BRANCH_FALSE = 3,
       SWITCH_DEFAULT = 2,
       SWITCH_CASES = 3, /* pairs of a number and a label */
};

static bool uses_operation(const uint32_t *items, uint32_t op) {
  for (int i = 0; i < OM_CHAIN_MAX_ITEMS; ++i) {
    if ((items[i] & 255) == op) return true;
  }
  return false;
}

static void trim_words(uint32_t *words, const om_shader_chain *chain, const uint32_t *items) {
  for (int i = 0; i < OM_CHAIN_MAX_ITEMS; ++i) {
    uint32_t *branch = words + chain->items[i];
    if (items[i] == 0) branch[BRANCH_TRUE] = branch[BRANCH_FALSE];
  }
  uint32_t *choice = words + chain->operations;
  uint32_t word_count = choice[0] >> 16;
  for (uint32_t i = SWITCH_CASES; i + 1 < word_count; i += 2) {
    if (!uses_operation(items, choice[i])) choice[i + 1] = choice[SWITCH_DEFAULT];
  }
}

static om_status trim(om_ctx *ctx,
                      om_hal_unpacker *unpacker,
                      const om_gpu_kernel_key *key,
                      om_hal_shader **out_shader) {
  om_status st = OM_OK;
  const om_hal_shader *whole = om_shader_get(key->shader);
  const om_shader_chain *chain = om_shader_chain_get(key->shader);
  om_hal_shader *shader = NULL;
  uint32_t *words = NULL;
  *out_shader = NULL;
  if (!chain) return OM_OK;
  OM_GO_NEW(shader, 1);
  OM_GO(om_hal_code_unpack(ctx, unpacker, whole, &words));
  trim_words(words, chain, key->constants + whole->constant_count - OM_CHAIN_MAX_ITEMS);
  *shader = *whole;
  shader->code = words;
  *out_shader = shader;
  shader = NULL; /* the caller owns them now */
  words = NULL;
done:
  om_delete(ctx, words);
  om_delete(ctx, shader);
  return st;
}

om_status om_gpu_trim(om_ctx *ctx, om_gpu_kernel_entry *entries, size_t count) {
  om_status st = OM_OK;
  om_hal_unpacker unpacker = {0};
  for (size_t i = 0; i < count && st == OM_OK; ++i) {
    st = trim(ctx, &unpacker, &entries[i].key, &entries[i].trimmed);
  }
  om_hal_unpacker_deinit(ctx, &unpacker);
  return st;
}
