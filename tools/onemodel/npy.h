/* numpy's files: .npy, and .npz, which is a zip of them. */
#ifndef NPY_H
#define NPY_H

#include "onemodel/onemodel.h"

/* Reads an array from the bytes of a .npy file. Its data is the caller's to free. On failure
 * returns false and *problem is a sentence (static). */
bool npy_parse(const void *bytes, size_t byte_count, om_tensor *out, const char **problem);

/* The member `name` (or `name`.npy) of an archive; the only member whatever its name. */
bool npz_read(
    const char *path, const char *name, size_t name_bytes, om_tensor *out, const char **problem);

/* Writes an archive with one member a tensor. bfloat16 and 8-bit floats become raw bytes. */
bool npz_write(const char *path, const om_named_tensor *items, size_t count, const char **problem);

/* A whole file; the caller frees *out_bytes. */
bool file_read(const char *path, void **out_bytes, size_t *out_count, const char **problem);

#endif
