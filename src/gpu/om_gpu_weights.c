/* Constants on the device.
 *
 * A store is a list of buffers. Small constants share buffers, each at a multiple of 256 bytes
 * (what a binding may need); one of a megabyte or more gets a buffer of its own. The session's
 * store holds weights as long as the session lives, a plan's holds what the plan folded. What is
 * in a store stays where it is: nothing is freed before the store.
 *
 * Constants that the host makes are made in one room: fresh memory for each would cost a large
 * model's session a fault for every page of its weights. What is stored outside of memory is read
 * into that room too, a piece after the other; as a whole only where it is made into something.
 */
#include "gpu/om_gpu_split.h"
#include "gpu/om_gpu_state.h"

enum {
  SHARED_BYTES = 1 << 20,       /* of a buffer that small constants share */
  FIRST_SHARED_BYTES = 1 << 16, /* of the first one: many plans have a few small constants only */
  PIECE_BYTES =
      4 << 20, /* of a stored constant that goes to the device as it is: what is read costs
                  far more than its call, and memory stays small beside any weights */
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

/* The entry that a constant of this source has, but for its block. */
static om_gpu_store_entry entry_of(const om_gpu_source *source,
                                   const char *recipe,
                                   uint64_t bytes) {
  om_gpu_store_entry entry = {.recipe = recipe, .bytes = bytes};
  if (!source || source->is_lost) return entry;
  entry.source = source->data;
  if (source->stored) {
    entry.offset = source->offset;
  } else if (source->data) {
    entry.source = (const char *)source->data + source->offset;
  }
  return entry;
}

static bool find_entry(const om_gpu_store *store,
                       const om_gpu_store_entry *wanted,
                       om_gpu_block *out_block) {
  if (!wanted->source) return false;
  for (size_t i = 0; i < store->entry_count; ++i) {
    const om_gpu_store_entry *entry = &store->entries[i];
    if (entry->source == wanted->source && entry->offset == wanted->offset &&
        entry->bytes == wanted->bytes && strcmp(entry->recipe, wanted->recipe) == 0) {
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

/* ---- Stored sources ---- */

static om_status ask_source(om_ctx *ctx, const om_gpu_source *source) {
  const uint64_t parts = source->is_widened ? 2 : 1;
  const om_stored *stored = source->stored;
  if (!stored) return OM_OK;
  return stored->ask(ctx, stored, source->offset / parts, source->bytes / parts);
}

/* Brings bytes of a stored source, counted from its range's begin. Halves are read to the end of
 * their place and widened from the front on: a float never reaches a half that is still to come. */
static om_status read_source(
    om_ctx *ctx, const om_gpu_source *source, uint64_t at, size_t bytes, char *to) {
  const om_stored *stored = source->stored;
  const uint64_t begin = source->offset + at;
  if (!source->is_widened) return stored->read(ctx, stored, begin, bytes, to);
  const char *halves = to + bytes / 2;
  OM_TRY(stored->read(ctx, stored, begin / 2, bytes / 2, to + bytes / 2));
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    const float value = om_gpu_real_at(OM_DTYPE_F16, halves, i);
    memcpy(to + i * sizeof value, &value, sizeof value);
  }
  return OM_OK;
}

om_status om_gpu_source_read(om_ctx *ctx, const om_gpu_source *source, void *to) {
  OM_TRY(ask_source(ctx, source));
  return read_source(ctx, source, 0, (size_t)source->bytes, to);
}

/* Uploads a stored source as it is, in pieces. */
static om_status upload_pieces(om_ctx *ctx,
                               om_provider_session *session,
                               const om_gpu_source *source,
                               const om_gpu_block *block) {
  char *room = NULL;
  const uint64_t most = block->bytes < PIECE_BYTES ? block->bytes : PIECE_BYTES;
  OM_TRY(take_room(ctx, session, most, true, &room)); /* zeroed: a piece may be padded */
  for (uint64_t at = 0; at < source->bytes; at += PIECE_BYTES) {
    const uint64_t left = source->bytes - at;
    const size_t bytes = (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
    const size_t padded = (bytes + 3) / 4 * 4;
    OM_TRY(read_source(ctx, source, at, bytes, room));
    OM_TRY(session->hal->upload(
        ctx, session->device, block->buffer, block->offset + at, room, padded));
  }
  return OM_OK;
}

/* ---- Making ---- */

/* fill's result in the room. */
static om_status make(om_ctx *ctx,
                      om_provider_session *session,
                      const om_gpu_source *source,
                      uint64_t bytes,
                      om_gpu_fill fill,
                      const void *arg,
                      char **out_made) {
  om_status st = OM_OK;
  char *whole = NULL; /* scratch: a stored source */
  const char *from = source && source->data ? (const char *)source->data + source->offset : NULL;
  if (source && source->stored) {
    OM_GO_NEW(whole, source->bytes);
    OM_GO(read_source(ctx, source, 0, (size_t)source->bytes, whole));
    from = whole;
  }
  /* The one that writes every byte is the one that large models wait for. */
  OM_GO(take_room(ctx, session, bytes, fill != om_split_fill, out_made));
  fill(ctx, arg, from, *out_made);
done:
  om_delete(ctx, whole);
  return st;
}

/* The bytes to upload, padded: where they lie, or in the room. */
static om_status get_bytes(om_ctx *ctx,
                           om_provider_session *session,
                           const om_gpu_source *source,
                           uint64_t bytes,
                           om_gpu_fill fill,
                           const void *arg,
                           const void **out_data) {
  const uint64_t padded = om_size_align(bytes, 4);
  char *made = NULL;
  if (fill) {
    OM_TRY(make(ctx, session, source, padded, fill, arg, &made));
  } else {
    *out_data = (const char *)source->data + source->offset;
    if (padded == bytes) return OM_OK;
    OM_TRY(take_room(ctx, session, padded, true, &made));
    memcpy(made, *out_data, bytes);
  }
  *out_data = made;
  return OM_OK;
}

om_status om_gpu_store_get(om_ctx *ctx,
                           om_provider_session *session,
                           om_gpu_store *store,
                           const om_gpu_source *source,
                           const char *recipe,
                           uint64_t bytes,
                           om_gpu_fill fill,
                           const void *arg,
                           om_gpu_block *out_block) {
  om_gpu_store_entry entry = entry_of(source, recipe, bytes);
  const bool goes_in_pieces = source && source->stored && !fill;
  const void *data = NULL;
  if (find_entry(store, &entry, out_block)) return OM_OK;
  if (source) OM_TRY(ask_source(ctx, source));
  if (!goes_in_pieces) OM_TRY(get_bytes(ctx, session, source, bytes, fill, arg, &data));
  OM_TRY(OM_GROW(ctx, store->entries, store->entry_count, store->entry_capacity));
  OM_TRY(take_block(ctx, session, store, om_size_align(bytes, 4), out_block));
  if (goes_in_pieces) {
    OM_TRY(upload_pieces(ctx, session, source, out_block));
  } else {
    OM_TRY(session->hal->upload(
        ctx, session->device, out_block->buffer, out_block->offset, data, out_block->bytes));
  }
  entry.block = *out_block;
  store->entries[store->entry_count++] = entry;
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
