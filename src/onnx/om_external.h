/* Tensor data in files beside the model: the place where a model names files to open.
 *
 * A location is a path of plain names below the model's folder. Refused before a byte is read:
 * absolute paths, "." and "..", empty names, backslashes and drive letters (on every platform),
 * zero bytes, symbolic links in any component, files with several names (hard links), and
 * whatever is not a regular file.
 */
#ifndef OM_EXTERNAL_H
#define OM_EXTERNAL_H

#include "onnx/om_file_map.h"

typedef struct om_external_file {
  const char *location; /* owned */
  om_file_map map;
} om_external_file;

/* The files opened so far; each is mapped once. Zeroed with `folder` NULL: only what is given is
 * found. */
typedef struct om_external {
  const om_model_file *given; /* borrowed while the model is read; looked at first */
  size_t given_count;
  const char *folder;      /* owned: where the model lies; "." for the current one */
  om_external_file *files; /* owned */
  size_t file_count, file_capacity;
} om_external;

/* The folder of a model's path. */
om_status om_external_init(om_ctx *ctx, const char *model_path, om_external *inout_external);
void om_external_deinit(om_ctx *ctx, om_external *external);

/* Finds the data that a TensorProto's external_data entries (Entry messages) describe: exactly
 * `needed_bytes` bytes, or an error. The data live as long as the external. */
om_status om_external_find(om_ctx *ctx,
                           om_external *external,
                           const om_string *entries,
                           size_t entry_count,
                           size_t needed_bytes,
                           const unsigned char **out_data);

#endif
