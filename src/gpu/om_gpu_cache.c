/* The file of kernels: what the driver made of them, kept for the next process.
 *
 *     header | payload: what the interface's save gave
 *
 * There is one file for a device and its driver. A driver trusts what it is given, so the header
 * says all that the payload depends on, and its hash; whatever is not as it should be is a miss. A
 * miss is replaced when kernels were made.
 *
 * The file is written when a plan had kernels made that were not in it, never by a run that finds
 * all of them. What somebody else wrote in the meantime is read and added first; of two who write
 * in the same moment the last one wins, and what is lost is made again another time.
 *
 * A file or folder that cannot be used fails nothing: the log says so, and the session goes on
 * without.
 */
#include "gpu/om_gpu_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/om_file.h"

enum {
  FORMAT_VERSION = 1,
  MAX_PAYLOAD_BYTES = 256 << 20, /* some ten thousand kernels; more is not kept */
};

typedef struct cache_header { /* as it lies in the file, in the machine's byte order */
  char magic[8];
  uint32_t version;
  uint32_t pointer_bytes; /* the driver's code is of one word size */
  om_hal_cache_id id;
  uint32_t header_bytes;
  uint64_t shaders_hash;
  uint64_t payload_bytes;
  uint64_t payload_hash;
} cache_header;

_Static_assert(sizeof(cache_header) == 104, "no padding: it is compared and written as bytes");

/* Any change within one word changes it: each step is a bijection of what came before. */
static uint64_t hash_bytes(const void *data, size_t bytes) {
  uint64_t hash = bytes;
  for (size_t at = 0; at < bytes; at += sizeof hash) {
    uint64_t word = 0;
    size_t rest = bytes - at;
    memcpy(&word, (const char *)data + at, rest < sizeof word ? rest : sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */
    hash ^= hash >> 32;
  }
  return hash;
}

static cache_header header_of(const om_provider_session *session,
                              const void *payload,
                              size_t payload_bytes) {
  return (cache_header){.magic = {'O', 'M', 'K', 'E', 'R', 'N', 'E', 'L'},
                        .version = FORMAT_VERSION,
                        .pointer_bytes = sizeof(void *),
                        .id = *session->hal->cache_id(session->device),
                        .header_bytes = sizeof(cache_header),
                        .shaders_hash = om_shaders_hash,
                        .payload_bytes = payload_bytes,
                        .payload_hash = hash_bytes(payload, payload_bytes)};
}

/* True if the file is whole and was written for this device, driver and build. */
static bool is_good(const om_provider_session *session, const char *file, size_t file_bytes) {
  if (file_bytes < sizeof(cache_header)) return false;
  const cache_header right =
      header_of(session, file + sizeof(cache_header), file_bytes - sizeof(cache_header));
  return memcmp(file, &right, sizeof right) == 0;
}

/* ---- Failures that fail nothing ---- */

static void stop_keeping(om_ctx *ctx, om_gpu_cache *cache) {
  om_delete(ctx, cache->path);
  cache->path = NULL;
}

/* A session without memory or device cannot go on; one without this file can. */
static om_status forgive(om_ctx *ctx, om_provider_session *session, om_status st) {
  if (st == OM_OK || st == OM_E_OUT_OF_MEMORY || st == OM_E_DEVICE_LOST) return st;
  om_log_write(ctx, OM_LOG_INFO, "Kernels are not kept: %s", ctx->error->message);
  om_error_clear(ctx->error);
  stop_keeping(ctx, &session->cache);
  return OM_OK;
}

/* ---- The file's place ---- */

static void write_hex(char *text, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* "<root><below>/<device>-<driver>.kernels" */
static om_status set_path(om_ctx *ctx,
                          om_provider_session *session,
                          const char *root,
                          const char *below) {
  om_status st = OM_OK;
  const om_hal_cache_id *id = session->hal->cache_id(session->device);
  char device[2 * sizeof id->device_uuid + 1];
  char driver[2 * sizeof id->driver_uuid + 1];
  char *path = NULL;
  size_t folder_bytes = strlen(root) + strlen(below);
  size_t bytes = folder_bytes + sizeof device + sizeof driver + sizeof "/-.kernels";
  write_hex(device, id->device_uuid, sizeof id->device_uuid);
  write_hex(driver, id->driver_uuid, sizeof id->driver_uuid);
  OM_GO_NEW(path, bytes);
  snprintf(path, bytes, "%s%s/%s-%s.kernels", root, below, device, driver);
  session->cache.path = path;
  session->cache.folder_bytes = folder_bytes;
done:
  return st;
}

/* The option, the environment's word, the user's cache folder; no path where one says none. */
static om_status choose_path(om_ctx *ctx, om_provider_session *session, const char *folder) {
  if (!folder) folder = getenv("ONEMODEL_GPU_CACHE");
  if (folder) return *folder ? set_path(ctx, session, folder, "") : OM_OK;
  if (session->hal == &om_hal_null) return OM_OK; /* it saves no time */
  const char *root = getenv("XDG_CACHE_HOME");
  if (root && *root == '/') return set_path(ctx, session, root, "/onemodel");
  root = getenv("HOME");
  if (root && *root == '/') return set_path(ctx, session, root, "/.cache/onemodel");
  return OM_OK;
}

/* ---- Reading and writing ---- */

/* Gives the device what is in the file, unless this session has read or written just that. */
static om_status read_file(om_ctx *ctx, om_provider_session *session) {
  om_status st = OM_OK;
  om_gpu_cache *cache = &session->cache;
  void *file = NULL;
  size_t bytes = 0;
  cache_header header;
  st = om_file_read(ctx, cache->path, sizeof header + (size_t)MAX_PAYLOAD_BYTES, &file, &bytes);
  if (st == OM_E_IO) { /* a miss too: what is there may still be replaced */
    om_log_write(ctx, OM_LOG_INFO, "Kept kernels: %s", ctx->error->message);
    om_error_clear(ctx->error);
    st = OM_OK;
  }
  if (st != OM_OK || !file) goto done;
  if (!is_good(session, file, bytes)) {
    om_log_write(ctx, OM_LOG_INFO, "The kernels in '%s' are of no use here.", cache->path);
    goto done;
  }
  memcpy(&header, file, sizeof header);
  if (header.payload_hash == cache->file_hash) goto done;
  OM_GO(session->hal->cache_load(
      ctx, session->device, (const char *)file + sizeof header, bytes - sizeof header));
  cache->file_hash = header.payload_hash;
done:
  om_delete(ctx, file);
  return st;
}

/* A payload of at most `room` bytes behind room for a header. *bytes is what the payload has; above
 * `room`, which may happen where other sessions make kernels of the device: there is no file. */
static om_status save_in(
    om_ctx *ctx, const om_provider_session *session, size_t room, char **out_file, size_t *bytes) {
  om_status st = OM_OK;
  const om_hal *hal = session->hal;
  char *file = NULL;
  *bytes = room;
  OM_GO_NEW(file, sizeof(cache_header) + room);
  st = hal->cache_save(ctx, session->device, file + sizeof(cache_header), bytes);
  if (st == OM_E_INTERNAL && hal->cache_save(ctx, session->device, NULL, bytes) == OM_OK &&
      *bytes > room) {
    om_error_clear(ctx->error);
    st = OM_OK;
    goto done;
  }
  if (st != OM_OK) goto done;
  *out_file = file;
  file = NULL; /* the caller owns it now */
done:
  om_delete(ctx, file);
  return st;
}

static om_status save(om_ctx *ctx,
                      const om_provider_session *session,
                      char **out_file,
                      size_t *out_bytes) {
  enum { ATTEMPTS = 8 }; /* a kernel takes longer to make than to copy */
  size_t bytes = 0;
  OM_TRY(session->hal->cache_save(ctx, session->device, NULL, &bytes));
  for (uint32_t i = 0; i < ATTEMPTS && !*out_file; ++i) {
    const size_t room = bytes;
    if (room > MAX_PAYLOAD_BYTES) break;
    OM_TRY(save_in(ctx, session, room, out_file, &bytes));
  }
  *out_bytes = bytes;
  return *out_file ? OM_OK : OM_FAIL(ctx, OM_E_IO, "%zu bytes of them are too many.", bytes);
}

static om_status write_file(om_ctx *ctx, om_provider_session *session) {
  om_status st = OM_OK;
  om_gpu_cache *cache = &session->cache;
  char *file = NULL; /* header and payload */
  cache_header header;
  size_t bytes = 0;
  OM_GO(save(ctx, session, &file, &bytes));
  cache->kept_bytes = bytes;
  header = header_of(session, file + sizeof header, bytes);
  memcpy(file, &header, sizeof header);
  cache->path[cache->folder_bytes] = '\0';
  st = om_file_make_folder(ctx, cache->path);
  cache->path[cache->folder_bytes] = '/';
  if (st != OM_OK) goto done;
  OM_GO(om_file_replace(ctx, cache->path, file, sizeof header + bytes));
  cache->file_hash = header.payload_hash;
  ++session->info.cache_writes;
done:
  om_delete(ctx, file);
  return st;
}

static om_status begin(om_ctx *ctx, om_provider_session *session, const char *folder) {
  OM_TRY(choose_path(ctx, session, folder));
  if (!session->cache.path) return OM_OK;
  OM_TRY(session->hal->cache_load(ctx, session->device, NULL, 0));
  OM_TRY(read_file(ctx, session));
  return session->hal->cache_save(ctx, session->device, NULL, &session->cache.kept_bytes);
}

om_status om_gpu_cache_begin(om_ctx *ctx, om_provider_session *session, const char *folder) {
  if (!session->hal->cache_load) return OM_OK;
  return forgive(ctx, session, begin(ctx, session, folder));
}

static om_status join(om_ctx *ctx, om_provider_session *session, const om_gpu_cache *other) {
  om_status st = OM_OK;
  om_gpu_cache *cache = &session->cache;
  const size_t path_bytes = strlen(other->path) + 1;
  OM_GO_NEW(cache->path, path_bytes);
  memcpy(cache->path, other->path, path_bytes);
  cache->folder_bytes = other->folder_bytes;
  cache->file_hash = other->file_hash;
  OM_GO(session->hal->cache_save(ctx, session->device, NULL, &cache->kept_bytes));
done:
  return st;
}

om_status om_gpu_cache_join(om_ctx *ctx,
                            om_provider_session *session,
                            const om_provider_session *other) {
  if (!other->cache.path) return OM_OK;
  return forgive(ctx, session, join(ctx, session, &other->cache));
}

static om_status keep(om_ctx *ctx, om_provider_session *session) {
  size_t bytes = 0;
  OM_TRY(session->hal->cache_save(ctx, session->device, NULL, &bytes));
  if (bytes == session->cache.kept_bytes) return OM_OK;
  OM_TRY(read_file(ctx, session));
  return write_file(ctx, session);
}

om_status om_gpu_cache_keep(om_ctx *ctx, om_provider_session *session) {
  if (!session->cache.path) return OM_OK;
  return forgive(ctx, session, keep(ctx, session));
}

void om_gpu_cache_deinit(om_ctx *ctx, om_provider_session *session) {
  stop_keeping(ctx, &session->cache);
}
