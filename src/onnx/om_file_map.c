/* POSIX: mmap. Where it fails (a file system without it) the file is read into memory instead. */
#include "onnx/om_file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char empty[1] = {0};

static om_status read_all(om_ctx *ctx, int descriptor, const char *name, om_file_map *map) {
  om_status st = OM_OK;
  unsigned char *bytes = NULL;
  size_t done_bytes = 0;
  OM_GO_NEW(bytes, map->byte_count);
  while (done_bytes < map->byte_count) {
    ssize_t got =
        pread(descriptor, bytes + done_bytes, map->byte_count - done_bytes, (off_t)done_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      OM_GO(OM_FAIL(ctx,
                    OM_E_IO,
                    "File '%s' could not be read past byte %zu (error %d).",
                    name,
                    done_bytes,
                    got < 0 ? errno : 0));
    }
    done_bytes += (size_t)got;
  }
  map->bytes = bytes;
  bytes = NULL;
done:
  om_delete(ctx, bytes);
  return st;
}

om_status om_file_map_descriptor(om_ctx *ctx,
                                 int descriptor,
                                 const char *name,
                                 om_file_map *out_map) {
  *out_map = (om_file_map){0};
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    return OM_FAIL(ctx, OM_E_IO, "The size of '%s' is not known (error %d).", name, errno);
  }
  if (!S_ISREG(info.st_mode)) return OM_FAIL(ctx, OM_E_IO, "'%s' is not a regular file.", name);
  if (info.st_size < 0 || (uintmax_t)info.st_size > SIZE_MAX / 2) {
    return OM_FAIL(ctx, OM_E_IO, "File '%s' is too large to be mapped.", name);
  }
  om_file_map map = {.bytes = empty, .byte_count = (size_t)info.st_size};
  if (map.byte_count > 0) {
    void *bytes = mmap(NULL, map.byte_count, PROT_READ, MAP_PRIVATE, descriptor, 0);
    map.is_mapped = bytes != MAP_FAILED;
    if (map.is_mapped) map.bytes = bytes;
    if (!map.is_mapped) OM_TRY(read_all(ctx, descriptor, name, &map));
  }
  *out_map = map;
  return OM_OK;
}

om_status om_file_map_open(om_ctx *ctx, const char *path, om_file_map *out_map) {
  *out_map = (om_file_map){0};
  /* Not blocking: a FIFO must not make us wait for a writer. */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    const char *why = errno == ENOENT   ? "it does not exist"
                      : errno == EACCES ? "it may not be read"
                                        : "the system refuses";
    return OM_FAIL(ctx, OM_E_IO, "File '%s' cannot be opened: %s (error %d).", path, why, errno);
  }
  om_status st = om_file_map_descriptor(ctx, descriptor, path, out_map);
  (void)close(descriptor);
  return st;
}

void om_file_map_release(const om_file_map *map, const void *data, size_t bytes) {
  const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t first = (uintptr_t)map->bytes;
  const uintptr_t begin = (uintptr_t)data;
  if (!map->is_mapped || begin < first || begin - first > map->byte_count) return;
  if (bytes > map->byte_count - (begin - first)) return;
  const uintptr_t whole_begin = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t whole_end = (begin + bytes) / page_bytes * page_bytes;
  if (whole_begin >= whole_end) return;
  /* Only advice: where it is not taken, the pages stay. */
  (void)madvise((void *)whole_begin, whole_end - whole_begin, MADV_DONTNEED);
}

void om_file_map_close(om_ctx *ctx, om_file_map *map) {
  if (map->is_mapped) {
    /* munmap takes what mmap gave; the bytes were never written. */
    (void)munmap((void *)(uintptr_t)map->bytes, map->byte_count);
  } else if (map->bytes && map->bytes != empty) {
    om_delete(ctx, (void *)(uintptr_t)map->bytes);
  }
  *map = (om_file_map){0};
}
