/* POSIX: a file is written beside its place and renamed into it, so that it is there whole or not
 * at all. Nothing is forced to the disk: who reads checks what it got.
 */
#include "base/om_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_RIGHTS = 0700 };

/* OM_E_IO unless it is a file to be read; else its size. */
static om_status check_file(
    om_ctx *ctx, int descriptor, const char *path, size_t max_bytes, size_t *out_bytes) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    return OM_FAIL(ctx, OM_E_IO, "The size of '%s' is not known (error %d).", path, errno);
  }
  if (!S_ISREG(info.st_mode)) return OM_FAIL(ctx, OM_E_IO, "'%s' is not a regular file.", path);
  if (info.st_uid != geteuid()) {
    return OM_FAIL(ctx, OM_E_IO, "File '%s' belongs to another user.", path);
  }
  if (info.st_size < 0 || (uintmax_t)info.st_size > max_bytes) {
    return OM_FAIL(ctx, OM_E_IO, "File '%s' is larger than %zu bytes.", path, max_bytes);
  }
  *out_bytes = (size_t)info.st_size;
  return OM_OK;
}

static om_status read_all(om_ctx *ctx, int descriptor, const char *path, char *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = read(descriptor, data + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return OM_FAIL(ctx,
                     OM_E_IO,
                     "File '%s' could not be read past byte %zu (error %d).",
                     path,
                     done,
                     got < 0 ? errno : 0);
    }
    done += (size_t)got;
  }
  return OM_OK;
}

om_status om_file_read(
    om_ctx *ctx, const char *path, size_t max_bytes, void **out_data, size_t *out_bytes) {
  om_status st = OM_OK;
  char *data = NULL;
  size_t bytes = 0;
  *out_data = NULL;
  *out_bytes = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return OM_OK;
    return OM_FAIL(ctx, OM_E_IO, "File '%s' cannot be opened (error %d).", path, errno);
  }
  OM_GO(check_file(ctx, descriptor, path, max_bytes, &bytes));
  OM_GO_NEW(data, bytes);
  OM_GO(read_all(ctx, descriptor, path, data, bytes));
  *out_data = data;
  *out_bytes = bytes;
  data = NULL; /* the caller owns it now */
done:
  om_delete(ctx, data);
  close(descriptor);
  return st;
}

static om_status write_all(
    om_ctx *ctx, int descriptor, const char *path, const char *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t put = write(descriptor, data + done, bytes - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      return OM_FAIL(ctx,
                     OM_E_IO,
                     "File '%s' could not be written past byte %zu (error %d).",
                     path,
                     done,
                     errno);
    }
    done += (size_t)put;
  }
  return OM_OK;
}

om_status om_file_replace(om_ctx *ctx, const char *path, const void *data, size_t bytes) {
  static const char ending[] = ".XXXXXX"; /* mkstemp fills it in; the rights are 0600 */
  om_status st = OM_OK;
  int descriptor = -1;
  char *name = NULL; /* of the file beside it; scratch */
  size_t name_bytes = strlen(path) + sizeof ending;
  OM_GO_NEW(name, name_bytes);
  snprintf(name, name_bytes, "%s%s", path, ending);
  descriptor = mkstemp(name);
  if (descriptor < 0) {
    OM_GO(OM_FAIL(ctx, OM_E_IO, "No file can be made beside '%s' (error %d).", path, errno));
  }
  OM_GO(write_all(ctx, descriptor, path, data, bytes));
  if (close(descriptor) != 0 || rename(name, path) != 0) {
    st = OM_FAIL(ctx, OM_E_IO, "File '%s' cannot be replaced (error %d).", path, errno);
    (void)unlink(name); /* the failure stands */
  }
  descriptor = -1;
done:
  if (descriptor >= 0) {
    close(descriptor);
    (void)unlink(name); /* the failure stands */
  }
  om_delete(ctx, name);
  return st;
}

om_status om_file_make_folder(om_ctx *ctx, const char *path) {
  om_status st = OM_OK;
  char *part = NULL; /* the path up to each slash in turn; scratch */
  size_t bytes = strlen(path) + 1;
  OM_GO_NEW(part, bytes);
  memcpy(part, path, bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    part[i] = '\0';
    if (mkdir(part, FOLDER_RIGHTS) != 0 && errno != EEXIST) {
      OM_GO(OM_FAIL(ctx, OM_E_IO, "Folder '%s' cannot be made (error %d).", part, errno));
    }
    part[i] = path[i];
  }
done:
  om_delete(ctx, part);
  return st;
}
