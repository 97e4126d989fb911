/* Constants on the device.
 *
 * A store is a list of buffers. Small constants share buffers, each at a multiple of 256 bytes
 * (what a binding may need); one of a megabyte or more gets a buffer of its own. The session's
 * store holds weights as long as the session lives, a plan's holds what the plan folded. What is
 * in a store stays where it is: nothing is freed before the store.
 *
 * Constants that the host makes are made in one room: fresh memory for each would cost a large
 * model's session a fault for every page of its weights.
 */
#include "gpu/om_gpu_split.h"
#include "gpu/om_gpu_state.h"

enum {
  SHARED_BYTES = 1 << 20,       /* of a buffer that small constants share */
  FIRST_SHARED_BYTES = 1 << 16, /* of the first one: many plans have a few small constants only */
};

om_status om_gpu_buffer_create(om_ctx *ctx,
                               om_provider_session *session,
                               om_hal_memory memory,
                               uint64_t bytes,
                               om_hal_buffer **out_buffer) {
  *out_buffer = NULL;
  OM_TRY(session->hal->buffer_create(ctx, session->device, memory, bytes, out_buffer));
  ++session->info.allocations;
  return OM_OK;
}

static om_status add_buffer(om_ctx *ctx,
                            om_provider_session *session,
                            om_gpu_store *store,
                            uint64_t bytes,
                            om_hal_buffer **out_buffer) {
  OM_TRY(OM_GROW(ctx, store->buffers, store->buffer_count, store->buffer_capacity));
  OM_TRY(om_gpu_buffer_create(ctx, session, OM_HAL_DEVICE, bytes, out_buffer));
  store->buffers[store->buffer_count++] = *out_buffer;
  store->total_bytes += bytes;
  return OM_OK;
}

/* Room for `bytes` bytes. */
static om_status take_block(om_ctx *ctx,
                            om_provider_session *session,
                            om_gpu_store *store,
                            uint64_t bytes,
                            om_gpu_block *out_block) {
  uint64_t room = om_size_align(bytes, OM_GPU_ALIGNMENT);
  *out_block = (om_gpu_block){.bytes = bytes};
  if (room >= SHARED_BYTES) return add_buffer(ctx, session, store, room, &out_block->buffer);
  if (!store->shared || store->shared_bytes - store->shared_used < room) {
    uint64_t shared_bytes = store->shared ? SHARED_BYTES : FIRST_SHARED_BYTES;
    if (shared_bytes < room) shared_bytes = SHARED_BYTES;
    OM_TRY(add_buffer(ctx, session, store, shared_bytes, &store->shared));
    store->shared_bytes = shared_bytes;
    store->shared_used = 0;
  }
  out_block->buffer = store->shared;
  out_block->offset = store->shared_used;
  store->shared_used += room;
  return OM_OK;
}

static bool find_entry(const om_gpu_store *store,
                       const void *source,
                       const char *recipe,
                       uint64_t bytes,
                       om_gpu_block *out_block) {
  if (!source) return false;
  for (size_t i = 0; i < store->entry_count; ++i) {
    const om_gpu_store_entry *entry = &store->entries[i];
    if (entry->source == source && entry->bytes == bytes && strcmp(entry->recipe, recipe) == 0) {
      *out_block = entry->block;
      return true;
    }
  }
  return false;
}

static void clear_range(void *arg, size_t begin, size_t end) {
  memset((char *)arg + begin, 0, end - begin);
}

/* Memory on the host, until the next call. */
static om_status take_room(
    om_ctx *ctx, om_provider_session *session, uint64_t bytes, bool is_zeroed, char **out_room) {
  enum { GRAIN = 256 * 1024 };
  om_status st = OM_OK;
  *out_room = NULL;
  if (session->room_bytes < bytes) {
    om_gpu_room_deinit(ctx, session);
    OM_GO_NEW(session->room, bytes);
    session->room_bytes = bytes;
  } else if (is_zeroed) {
    om_parallel_for(ctx, bytes, GRAIN, clear_range, session->room);
  }
  *out_room = session->room;
done:
  return st;
}

void om_gpu_room_deinit(om_ctx *ctx, om_provider_session *session) {
  om_delete(ctx, session->room);
  session->room = NULL;
  session->room_bytes = 0;
}

om_status om_gpu_store_get(om_ctx *ctx,
                           om_provider_session *session,
                           om_gpu_store *store,
                           const void *source,
                           const char *recipe,
                           uint64_t bytes,
                           om_gpu_fill fill,
                           const void *arg,
                           om_gpu_block *out_block) {
  char *made = NULL; /* what fill wrote, or a padded copy; in the room */
  if (find_entry(store, source, recipe, bytes, out_block)) return OM_OK;

  const void *data = source;
  uint64_t padded = om_size_align(bytes, 4);
  if (fill || padded != bytes) {
    /* The one that writes every byte is the one that large models wait for. */
    OM_TRY(take_room(ctx, session, padded, fill != om_split_fill, &made));
    if (fill) {
      fill(ctx, arg, source, made);
    } else {
      memcpy(made, source, bytes);
    }
    data = made;
  }
  OM_TRY(OM_GROW(ctx, store->entries, store->entry_count, store->entry_capacity));
  OM_TRY(take_block(ctx, session, store, padded, out_block));
  OM_TRY(session->hal->upload(
      ctx, session->device, out_block->buffer, out_block->offset, data, padded));
  store->entries[store->entry_count++] =
      (om_gpu_store_entry){.source = source, .recipe = recipe, .bytes = bytes, .block = *out_block};
  return OM_OK;
}

void om_gpu_store_deinit(om_ctx *ctx, om_provider_session *session, om_gpu_store *store) {
  for (size_t i = 0; i < store->buffer_count; ++i) {
    session->hal->buffer_destroy(ctx, session->device, store->buffers[i]);
  }
  om_delete(ctx, store->buffers);
  om_delete(ctx, store->entries);
  *store = (om_gpu_store){0};
}
