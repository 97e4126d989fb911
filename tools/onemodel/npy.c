#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

static const struct {
  om_dtype dtype;
  const char *code;
} codes[] = {
    {OM_DTYPE_F32, "<f4"},
    {OM_DTYPE_F64, "<f8"},
    {OM_DTYPE_F16, "<f2"},
    {OM_DTYPE_I8, "|i1"},
    {OM_DTYPE_U8, "|u1"},
    {OM_DTYPE_I16, "<i2"},
    {OM_DTYPE_U16, "<u2"},
    {OM_DTYPE_I32, "<i4"},
    {OM_DTYPE_U32, "<u4"},
    {OM_DTYPE_I64, "<i8"},
    {OM_DTYPE_U64, "<u8"},
    {OM_DTYPE_BOOL, "|b1"},
    {OM_DTYPE_C64, "<c8"},
    {OM_DTYPE_C128, "<c16"},
};

static bool fail(const char **problem, const char *sentence) {
  *problem = sentence;
  return false;
}

bool file_read(const char *path, void **out_bytes, size_t *out_count, const char **problem) {
  FILE *file = fopen(path, "rb");
  bool ok = false;
  if (!file) {
    return fail(problem, errno == ENOENT ? "It does not exist." : "The file cannot be opened.");
  }
  long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  void *bytes = end >= 0 && fseek(file, 0, SEEK_SET) == 0 ? malloc((size_t)end + 1) : NULL;
  if (bytes) ok = fread(bytes, 1, (size_t)end, file) == (size_t)end;
  fclose(file);
  if (!ok) {
    free(bytes);
    return fail(problem, "The file cannot be read.");
  }
  *out_bytes = bytes;
  *out_count = (size_t)end;
  return true;
}

/* The text after 'key': in a header such as {'descr': '<f4', 'shape': (2, 3), }. */
static const char *header_field(const char *header, const char *key) {
  const char *at = strstr(header, key);
  if (!at) return NULL;
  at += strlen(key);
  return at + strspn(at, " :");
}

static bool parse_shape(const char *text, om_tensor *out) {
  if (*text++ != '(') return false;
  for (;;) {
    text += strspn(text, " ,");
    if (*text == ')') return true;
    char *end = NULL;
    long long extent = strtoll(text, &end, 10);
    if (end == text || extent < 0 || out->rank == OM_MAX_RANK) return false;
    out->dims[out->rank++] = extent;
    text = end;
  }
}

bool npy_parse(const void *bytes, size_t byte_count, om_tensor *out, const char **problem) {
  const unsigned char *b = bytes;
  char header[4096];
  if (byte_count < 10 || memcmp(b, "\x93NUMPY", 6) != 0) {
    return fail(problem, "This is not a .npy file.");
  }
  size_t lead = b[6] >= 2 ? 12 : 10;
  size_t header_bytes = b[8] | (size_t)b[9] << 8;
  if (b[6] >= 2 && byte_count >= 12) header_bytes |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (header_bytes >= sizeof header || header_bytes > byte_count - lead || byte_count < lead) {
    return fail(problem, "The header of the .npy file is damaged.");
  }
  memcpy(header, b + lead, header_bytes);
  header[header_bytes] = 0;
  const char *descr = header_field(header, "'descr'"), *shape = header_field(header, "'shape'");
  const char *order = header_field(header, "'fortran_order'");
  om_tensor t = {0};
  for (size_t i = 0; descr && i < sizeof codes / sizeof codes[0]; ++i) {
    size_t n = strlen(codes[i].code);
    if (strncmp(descr + 1, codes[i].code, n) == 0 && descr[n + 1] == *descr)
      t.dtype = codes[i].dtype;
  }
  if (t.dtype == OM_DTYPE_NONE)
    return fail(problem, "The element type of the .npy file is unknown.");
  if (!order || strncmp(order, "False", 5) != 0) {
    return fail(problem, "The .npy file is in Fortran order: save it in C order.");
  }
  if (!shape || !parse_shape(shape, &t)) {
    return fail(problem, "The shape in the .npy file cannot be read.");
  }
  t = om_tensor_of(t.dtype, t.rank, t.dims, NULL);
  if (t.data_bytes != byte_count - lead - header_bytes) {
    return fail(problem, "The data of the .npy file does not fit its shape.");
  }
  t.data = malloc(t.data_bytes + 1);
  if (!t.data) return fail(problem, "There is no memory for the .npy file.");
  memcpy(t.data, b + lead + header_bytes, t.data_bytes);
  *out = t;
  return true;
}

static zip_int64_t find_member(zip_t *archive, const char *name, size_t name_bytes) {
  zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char *member = zip_get_name(archive, (zip_uint64_t)i, 0);
    if (!member || strncmp(member, name, name_bytes) != 0) continue;
    if (member[name_bytes] == 0 || strcmp(member + name_bytes, ".npy") == 0) return i;
  }
  return count == 1 ? 0 : -1;
}

bool npz_read(
    const char *path, const char *name, size_t name_bytes, om_tensor *out, const char **problem) {
  zip_stat_t stat;
  zip_file_t *member = NULL;
  void *bytes = NULL;
  bool ok = false;
  int code = 0;
  zip_t *archive = zip_open(path, ZIP_RDONLY, &code);
  if (!archive) {
    return fail(problem, code == ZIP_ER_NOENT ? "It does not exist." : "This is not a .npz file.");
  }
  *problem = "The archive has no member of that name.";
  zip_int64_t index = find_member(archive, name, name_bytes);
  if (index < 0) goto done;
  *problem = "The archive is damaged.";
  if (zip_stat_index(archive, (zip_uint64_t)index, 0, &stat) != 0) goto done;
  if (!(stat.valid & ZIP_STAT_SIZE) || stat.size > SIZE_MAX - 1) goto done;
  member = zip_fopen_index(archive, (zip_uint64_t)index, 0);
  bytes = malloc((size_t)stat.size + 1);
  if (!member || !bytes) goto done;
  if (zip_fread(member, bytes, stat.size) != (zip_int64_t)stat.size) goto done;
  ok = npy_parse(bytes, (size_t)stat.size, out, problem);
done:
  free(bytes);
  if (member) zip_fclose(member);
  zip_discard(archive);
  return ok;
}

/* The bytes of a .npy file; freed by the archive. */
static void *npy_bytes(const om_tensor *t, size_t *out_count) {
  char header[512], shape[256];
  const char *code = NULL;
  char raw[32];
  size_t used = 0, data_bytes = om_tensor_of(t->dtype, t->rank, t->dims, NULL).data_bytes;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; ++i) {
    if (codes[i].dtype == t->dtype) code = codes[i].code;
  }
  if (!code) {
    if (om_dtype_bits(t->dtype) % 8 != 0 || t->dtype == OM_DTYPE_STRING) return NULL;
    snprintf(raw, sizeof raw, "|V%zu", om_dtype_bits(t->dtype) / 8);
    code = raw;
  }
  shape[0] = 0;
  for (uint32_t i = 0; i < t->rank; ++i) {
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld, ", (long long)t->dims[i]);
  }
  int n = snprintf(header,
                   sizeof header - 64,
                   "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                   code,
                   shape);
  if (n < 0) return NULL;
  size_t header_bytes = (size_t)n;
  while ((10 + header_bytes + 1) % 64 != 0) header[header_bytes++] = ' ';
  header[header_bytes++] = '\n';
  unsigned char *bytes = malloc(10 + header_bytes + data_bytes);
  if (!bytes) return NULL;
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (unsigned char)(header_bytes & 255);
  bytes[9] = (unsigned char)(header_bytes >> 8);
  memcpy(bytes + 10, header, header_bytes);
  if (data_bytes) memcpy(bytes + 10 + header_bytes, t->data, data_bytes);
  *out_count = 10 + header_bytes + data_bytes;
  return bytes;
}

bool npz_write(const char *path, const om_named_tensor *items, size_t count, const char **problem) {
  char member[1024];
  zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  if (!archive) return fail(problem, "The archive cannot be written.");
  for (size_t i = 0; i < count; ++i) {
    size_t byte_count = 0;
    void *bytes = npy_bytes(&items[i].tensor, &byte_count);
    zip_source_t *source = bytes ? zip_source_buffer(archive, bytes, byte_count, 1) : NULL;
    if (!source) {
      free(bytes);
      zip_discard(archive);
      return fail(problem, "An output of this element type cannot be written.");
    }
    snprintf(member, sizeof member, "%s.npy", items[i].name);
    zip_int64_t index = zip_file_add(archive, member, source, ZIP_FL_ENC_UTF_8);
    if (index < 0 || zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0) {
      if (index < 0) zip_source_free(source);
      zip_discard(archive);
      return fail(problem, "A member cannot be added: two outputs may have one name.");
    }
  }
  if (zip_close(archive) != 0) {
    const bool has_folder = zip_error_code_system(zip_get_error(archive)) != ENOENT;
    zip_discard(archive);
    return fail(problem,
                has_folder ? "The archive cannot be written." : "Its folder does not exist.");
  }
  return true;
}
