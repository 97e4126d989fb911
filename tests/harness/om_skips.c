/* The list of known failures. */
#include "harness/om_skips.h"

#include "onnx/om_file_map.h"

void om_skips_deinit(om_ctx *ctx, om_skips *skips) {
  om_pool_deinit(ctx, &skips->pool);
  om_delete(ctx, skips->entries);
  *skips = (om_skips){0};
}

static bool takes_prefix(om_string *text, const char *prefix) {
  size_t bytes = strlen(prefix);
  if (text->bytes < bytes || memcmp(text->data, prefix, bytes) != 0) return false;
  text->data += bytes;
  text->bytes -= bytes;
  return true;
}

static om_status read_line(om_ctx *ctx, om_skips *skips, om_string line, size_t number) {
  if (line.bytes == 0 || line.data[0] == '#') return OM_OK;
  om_skip skip = {.line = number, .is_op = takes_prefix(&line, "op ")};
  const char *colon = memchr(line.data, ':', line.bytes);
  if ((!skip.is_op && !takes_prefix(&line, "test ")) || !colon) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "Line %zu of the list is no entry.", number);
  }
  size_t name_bytes = (size_t)(colon - line.data);
  size_t reason_bytes = line.bytes - name_bytes - 1;
  skip.is_beginning = name_bytes > 0 && colon[-1] == '*';
  if (skip.is_beginning) --name_bytes;
  skip.name = om_pool_text(ctx, &skips->pool, line.data, name_bytes);
  skip.reason = om_pool_text(ctx, &skips->pool, colon + 1, reason_bytes);
  if (!skip.name || !skip.reason) return OM_E_OUT_OF_MEMORY;
  OM_TRY(OM_GROW(ctx, skips->entries, skips->count, skips->capacity));
  skips->entries[skips->count++] = skip;
  return OM_OK;
}

om_status om_skips_read(om_ctx *ctx, const char *path, om_skips *out_skips) {
  om_status st = OM_OK;
  om_file_map map = {0};
  om_skips skips = {0};
  *out_skips = skips;
  OM_GO(om_file_map_open(ctx, path, &map));
  const char *at = (const char *)map.bytes;
  const char *end = at + map.byte_count;
  for (size_t number = 1; at < end; ++number) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    OM_GO(read_line(ctx, &skips, (om_string){at, (size_t)(stop - at)}, number));
    at = stop + 1;
  }
  *out_skips = skips;
  skips = (om_skips){0};
done:
  om_file_map_close(ctx, &map);
  om_skips_deinit(ctx, &skips);
  return st;
}

static bool has_operator(const om_model *model, const char *type) {
  const om_model_info *info = om_model_get_info(model);
  for (size_t i = 0; i < info->node_count; ++i) {
    if (strcmp(om_model_get_node(model, i).op_type, type) == 0) return true;
  }
  return false;
}

static bool fits(const om_skip *skip, const char *folder, const om_model *model) {
  if (skip->is_op) return model && has_operator(model, skip->name);
  size_t bytes = strlen(skip->name);
  if (skip->is_beginning) return strncmp(folder, skip->name, bytes) == 0;
  return strcmp(folder, skip->name) == 0;
}

const om_skip *om_skips_find(om_skips *skips, const char *folder, const om_model *model) {
  for (size_t i = 0; i < skips->count; ++i) {
    if (!fits(&skips->entries[i], folder, model)) continue;
    ++skips->entries[i].matches;
    return &skips->entries[i];
  }
  return NULL;
}
