/* Opens external data component by component from the model's folder, so that no name can be
 * exchanged for a link between a check and the opening: each step is relative to the folder that
 * is already open, and follows nothing. */
#include "onnx/om_external.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/om_graph.h"
#include "onnx/om_wire.h"

enum { NAME_BYTES = 256, TEXT_BYTES = 200 };

typedef struct keys {
  om_string location, offset, length, checksum;
} keys;

om_status om_external_init(om_ctx *ctx, const char *model_path, om_external *inout_external) {
  const char *slash = strrchr(model_path, '/');
  size_t bytes = !slash ? 0 : slash == model_path ? 1 : (size_t)(slash - model_path);
  char *folder = om_new_bytes(ctx, bytes + 2, 1);
  if (!folder) return OM_E_OUT_OF_MEMORY;
  memcpy(folder, bytes ? model_path : ".", bytes ? bytes : 1);
  inout_external->folder = folder;
  return OM_OK;
}

void om_external_deinit(om_ctx *ctx, om_external *external) {
  for (size_t i = 0; i < external->file_count; ++i) {
    om_file_map_close(ctx, &external->files[i].map);
    om_delete(ctx, (void *)(uintptr_t)external->files[i].location);
  }
  om_delete(ctx, external->files);
  om_delete(ctx, (void *)(uintptr_t)external->folder);
  *external = (om_external){0};
}

/* A part of a text for a message: precision and pointer for "%.*s". */
#define SHOWN(string) \
  (int)((string).bytes < TEXT_BYTES ? (string).bytes : TEXT_BYTES), (string).data

static om_status refuse(om_ctx *ctx, om_string location, const char *why) {
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "External data at '%.*s' is refused: %s.", SHOWN(location), why);
}

/* One entry's key and value into the struct; unknown keys and keys that stand twice are errors. */
static om_status read_entry(om_ctx *ctx, om_string bytes, keys *inout) {
  om_string key = {0};
  om_string value = {0};
  om_wire_Entry entry = {.key = om_wire_keep(&key), .value = om_wire_keep(&value)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Entry_fields, &entry, "external data entry"));
  om_string *place = om_string_is(key, "location")   ? &inout->location
                     : om_string_is(key, "offset")   ? &inout->offset
                     : om_string_is(key, "length")   ? &inout->length
                     : om_string_is(key, "checksum") ? &inout->checksum
                                                     : NULL;
  if (!key.data) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "External data has an entry without key.");
  if (!place) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "External data has an unknown key '%.*s'.", SHOWN(key));
  }
  if (place->data) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "External data has the key '%.*s' twice.", SHOWN(key));
  }
  *place = value.data ? value : (om_string){.data = "", .bytes = 0};
  return OM_OK;
}

/* Decimal digits alone. */
static om_status read_number(om_ctx *ctx, const char *key, om_string text, uint64_t *out) {
  uint64_t value = 0;
  bool is_valid = text.bytes > 0;
  for (size_t i = 0; i < text.bytes && is_valid; ++i) {
    unsigned digit = (unsigned)((unsigned char)text.data[i] - '0');
    is_valid = digit <= 9 && value <= (UINT64_MAX - digit) / 10;
    value = value * 10 + digit;
  }
  if (!is_valid) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "External data has the %s '%.*s', which is not a number of bytes.",
                   key,
                   SHOWN(text));
  }
  *out = value;
  return OM_OK;
}

/* Why a location may not be opened, from its text alone; NULL if it may. */
static const char *refused_text(om_string location) {
  if (location.bytes == 0) return "it names no file";
  if (memchr(location.data, '\0', location.bytes)) return "its name holds a zero byte";
  if (memchr(location.data, '\\', location.bytes)) return "its name holds a backslash";
  if (location.data[0] == '/') return "it is an absolute path";
  if (location.bytes >= 2 && location.data[1] == ':') return "it names a drive";
  return NULL;
}

static const char *refused_name(const char *name, size_t bytes) {
  if (bytes == 0) return "a component of its path is empty";
  if (bytes >= NAME_BYTES) return "a component of its path is too long";
  if (bytes == 1 && name[0] == '.') return "its path holds '.'";
  if (bytes == 2 && name[0] == '.' && name[1] == '.') return "its path leads out of the folder";
  return NULL;
}

static const char *refused_kind(const struct stat *info, bool is_last) {
  if (S_ISLNK(info->st_mode)) return "it goes through a symbolic link";
  if (!is_last) return S_ISDIR(info->st_mode) ? NULL : "a component of its path is not a folder";
  if (!S_ISREG(info->st_mode)) return "it is not a regular file";
  if (info->st_nlink > 1) return "the file has several names (hard links)";
  return NULL;
}

/* Opens one component in the open folder `parent`. */
static om_status open_component(
    om_ctx *ctx, om_string location, int parent, const char *name, bool is_last, int *out) {
  struct stat before;
  struct stat info;
  if (fstatat(parent, name, &before, AT_SYMLINK_NOFOLLOW) != 0) {
    return OM_FAIL(ctx,
                   OM_E_IO,
                   "External data at '%.*s' cannot be opened: %s (error %d).",
                   SHOWN(location),
                   errno == ENOENT ? "it does not exist" : "the system refuses",
                   errno);
  }
  const char *why = refused_kind(&before, is_last);
  if (why) return refuse(ctx, location, why);
  int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int descriptor = openat(parent, name, is_last ? flags : flags | O_DIRECTORY);
  if (descriptor < 0) {
    return OM_FAIL(ctx,
                   OM_E_IO,
                   "External data at '%.*s' cannot be opened (error %d).",
                   SHOWN(location),
                   errno);
  }
  /* What was opened counts, should the name have changed hands meanwhile. */
  why = fstat(descriptor, &info) == 0 ? refused_kind(&info, is_last) : "its kind is not known";
  if (why) {
    (void)close(descriptor);
    return refuse(ctx, location, why);
  }
  *out = descriptor;
  return OM_OK;
}

static om_status open_location(om_ctx *ctx, const char *folder, om_string location, int *out) {
  char name[NAME_BYTES];
  int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) {
    return OM_FAIL(ctx, OM_E_IO, "Folder '%s' cannot be opened (error %d).", folder, errno);
  }
  for (size_t begin = 0;;) {
    const char *rest = location.data + begin;
    const char *slash = memchr(rest, '/', location.bytes - begin);
    size_t bytes = slash ? (size_t)(slash - rest) : location.bytes - begin;
    const char *why = refused_name(rest, bytes);
    int next = -1;
    om_status st = OM_OK;
    if (why) {
      st = refuse(ctx, location, why);
    } else {
      memcpy(name, rest, bytes);
      name[bytes] = '\0';
      st = open_component(ctx, location, parent, name, !slash, &next);
    }
    (void)close(parent);
    if (st != OM_OK) return st;
    if (!slash) {
      *out = next;
      return OM_OK;
    }
    parent = next;
    begin += bytes + 1;
  }
}

static const om_model_file *find_given(const om_external *external, om_string location) {
  for (size_t i = 0; i < external->given_count; ++i) {
    if (om_string_is(location, external->given[i].location)) return &external->given[i];
  }
  return NULL;
}

/* Maps the file, or asks the reader for its size. */
static om_status open_file(om_ctx *ctx,
                           om_external *external,
                           om_string location,
                           const char *text,
                           om_external_file *out_file) {
  const om_reader *reader = &external->reader;
  int descriptor = -1;
  if (reader->find) {
    if (reader->find(reader->user, text, &out_file->byte_count)) return OM_OK;
    return OM_FAIL(ctx, OM_E_IO, "External data at '%.200s' is not there.", text);
  }
  OM_TRY(open_location(ctx, external->folder, location, &descriptor));
  om_status st = om_file_map_descriptor(ctx, descriptor, text, &out_file->map);
  out_file->byte_count = out_file->map.byte_count;
  (void)close(descriptor);
  return st;
}

static om_status find_file(om_ctx *ctx,
                           om_external *external,
                           om_string location,
                           const om_external_file **out_file) {
  om_status st = OM_OK;
  char *text = NULL;
  for (size_t i = 0; i < external->file_count; ++i) {
    if (!om_string_is(location, external->files[i].location)) continue;
    *out_file = &external->files[i];
    return OM_OK;
  }
  OM_GO(OM_GROW(ctx, external->files, external->file_count, external->file_capacity));
  OM_GO_NEW(text, location.bytes + 1);
  memcpy(text, location.data, location.bytes);
  om_external_file *file = &external->files[external->file_count];
  *file = (om_external_file){0};
  OM_GO(open_file(ctx, external, location, text, file));
  file->location = text;
  text = NULL;
  ++external->file_count;
  *out_file = file;
done:
  om_delete(ctx, text);
  return st;
}

om_status om_external_find(om_ctx *ctx,
                           om_external *external,
                           const om_string *entries,
                           size_t entry_count,
                           size_t needed_bytes,
                           om_external_place *out_place) {
  keys k = {0};
  for (size_t i = 0; i < entry_count; ++i) OM_TRY(read_entry(ctx, entries[i], &k));
  if (!k.location.data) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "External data has no location.");
  }
  const char *why = refused_text(k.location);
  if (why) return refuse(ctx, k.location, why);
  const om_model_file *given = external ? find_given(external, k.location) : NULL;
  if (!given && (!external || (!external->folder && !external->reader.find))) {
    return refuse(ctx, k.location, "it is not given, and there is no model folder to look in");
  }
  uint64_t offset = 0;
  uint64_t length = needed_bytes;
  if (k.offset.data) OM_TRY(read_number(ctx, "offset", k.offset, &offset));
  if (k.length.data) OM_TRY(read_number(ctx, "length", k.length, &length));
  if (length != needed_bytes) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "External data at '%.*s' has the length %" PRIu64
                   ", but the shape needs %zu bytes.",
                   SHOWN(k.location),
                   length,
                   needed_bytes);
  }
  const om_external_file in_memory = {
      .map.bytes = given ? given->bytes : NULL,
      .byte_count = given ? given->byte_count : 0,
  };
  const om_external_file *file = &in_memory;
  if (!given) OM_TRY(find_file(ctx, external, k.location, &file));
  if (offset > file->byte_count || length > file->byte_count - offset) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "External data at '%.*s' ends at byte %" PRIu64 ", but %" PRIu64
                   " bytes from offset %" PRIu64 " on are asked for.",
                   SHOWN(k.location),
                   file->byte_count,
                   length,
                   offset);
  }
  *out_place = (om_external_place){.offset = offset};
  if (file->map.bytes) {
    out_place->data = file->map.bytes + offset;
  } else if (!given) {
    out_place->location = file->location;
  }
  return OM_OK;
}

/* ---- With the reader ---- */

static const om_external_constant *constant_of(const om_stored *stored) {
  return (const om_external_constant *)stored;
}

static om_status ask_range(om_ctx *ctx,
                           const om_stored *self,
                           uint64_t offset,
                           uint64_t byte_count) {
  const om_external_constant *constant = constant_of(self);
  const om_external_place *place = &constant->place;
  const om_reader *reader = &constant->external->reader;
  if (!reader->is_ready ||
      reader->is_ready(reader->user, place->location, place->offset + offset, byte_count)) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_NOT_READY,
                 "External data at '%.200s': %" PRIu64 " bytes from offset %" PRIu64
                 " on are still to come.",
                 place->location,
                 byte_count,
                 place->offset + offset);
}

static om_status read_range(
    om_ctx *ctx, const om_stored *self, uint64_t offset, size_t byte_count, void *to) {
  const om_external_constant *constant = constant_of(self);
  const om_external_place *place = &constant->place;
  const om_reader *reader = &constant->external->reader;
  const uint64_t begin = place->offset + offset;
  const size_t got = reader->read(reader->user, place->location, begin, byte_count, to);
  if (got == byte_count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_IO,
                 "External data at '%.200s' could not be read: %zu of %zu bytes came from offset "
                 "%" PRIu64 " on.",
                 place->location,
                 got,
                 byte_count,
                 begin);
}

void om_external_constant_init(const om_external *external,
                               const om_external_place *place,
                               const om_tensor *tensor,
                               om_external_constant *out) {
  *out = (om_external_constant){
      .stored = {.tensor = *tensor, .ask = ask_range, .read = read_range},
      .external = external,
      .place = *place,
  };
  out->stored.tensor.data = NULL;
}
