/* FNV-1a with a final mix, linear probing, half full at most. With honest names a lookup takes one
 * or two probes. Somebody may make names that collide; the work they can cause is bounded. */
#include "onnx/om_name_table.h"

enum { PROBES_PER_LOOKUP = 64, PROBES_FREE = 1 << 20 };

static uint32_t hash_of(const char *text, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a's published start and factor */
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u; /* any odd number with well spread bits */
  return (uint32_t)(hash >> 32);
}

om_status om_name_table_init(om_ctx *ctx, size_t name_count, om_name_table *out_table) {
  size_t slot_count = 16;
  while (slot_count / 2 < name_count) slot_count *= 2;
  om_name_slot *slots = om_new_bytes(ctx, slot_count, sizeof *slots);
  if (!slots) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < slot_count; ++i) slots[i].value = OM_NO_VALUE;
  *out_table = (om_name_table){.slots = slots, .slot_count = slot_count};
  return OM_OK;
}

void om_name_table_deinit(om_ctx *ctx, om_name_table *table) {
  om_delete(ctx, table->slots);
  *table = (om_name_table){0};
}

om_status om_name_table_find(
    om_ctx *ctx, om_name_table *table, const om_graph *graph, om_string name, om_value_id *out_id) {
  uint32_t hash = hash_of(name.data, name.bytes);
  ++table->lookups;
  for (size_t at = hash & (table->slot_count - 1);; at = (at + 1) & (table->slot_count - 1)) {
    const om_name_slot *slot = &table->slots[at];
    ++table->probes;
    bool is_found = slot->value != OM_NO_VALUE && slot->hash == hash &&
                    om_string_is(name, graph->values[slot->value].name);
    if (is_found || slot->value == OM_NO_VALUE) {
      *out_id = slot->value;
      break;
    }
  }
  if (table->probes <= table->lookups * PROBES_PER_LOOKUP + PROBES_FREE) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The values' names are made to be slow to look up.");
}

static void place(om_name_table *table, om_name_slot slot) {
  size_t at = slot.hash & (table->slot_count - 1);
  while (table->slots[at].value != OM_NO_VALUE) at = (at + 1) & (table->slot_count - 1);
  table->slots[at] = slot;
}

static om_status grow(om_ctx *ctx, om_name_table *table) {
  om_name_table grown = {0};
  OM_TRY(om_name_table_init(ctx, table->name_count * 2, &grown));
  for (size_t i = 0; i < table->slot_count; ++i) {
    if (table->slots[i].value != OM_NO_VALUE) place(&grown, table->slots[i]);
  }
  om_delete(ctx, table->slots);
  table->slots = grown.slots;
  table->slot_count = grown.slot_count;
  return OM_OK;
}

om_status om_name_table_add(om_ctx *ctx,
                            om_name_table *table,
                            const om_graph *graph,
                            om_value_id id) {
  const char *name = graph->values[id].name;
  if (table->name_count >= table->slot_count / 2) OM_TRY(grow(ctx, table));
  place(table, (om_name_slot){.hash = hash_of(name, strlen(name)), .value = id});
  ++table->name_count;
  return OM_OK;
}
