/* Tensor data beside the model: in files of its folder, in memory, or where a reader has it.
 *
 * A location is a path of plain names below the model's folder. Refused before a byte is read:
 * absolute paths, "." and "..", empty names, backslashes and drive letters (on every platform),
 * zero bytes, symbolic links in any component, files with several names (hard links), and
 * whatever is not a regular file. The names that a reader gets are checked alike.
 *
 * What lies in a file or in memory has an address; what a reader has is a place, from which it is
 * read in pieces (om_stored.h).
 */
#ifndef OM_EXTERNAL_H
#define OM_EXTERNAL_H

#include "graph/om_stored.h"
#include "onnx/om_file_map.h"

typedef struct om_external_file {
  const char *location; /* owned */
  om_file_map map;      /* bytes NULL: the reader has it */
  uint64_t byte_count;
} om_external_file;

/* The files opened so far; each is mapped once. Zeroed with `folder` NULL and without a reader:
 * only what is given is found. */
typedef struct om_external {
  const om_model_file *given; /* borrowed while the model is read; looked at first */
  size_t given_count;
  om_reader reader;        /* in place of the folder; find NULL: there is none */
  const char *folder;      /* owned: where the model lies; "." for the current one */
  om_external_file *files; /* owned */
  size_t file_count, file_capacity;
} om_external;

/* The folder of a model's path. */
om_status om_external_init(om_ctx *ctx, const char *model_path, om_external *inout_external);
void om_external_deinit(om_ctx *ctx, om_external *external);

typedef struct om_external_place {
  const unsigned char *data; /* as long as the external; NULL: the reader has them */
  const char *location;      /* as long as the external; NULL unless the reader has them */
  uint64_t offset;
} om_external_place;

/* A constant that lies with the reader. */
typedef struct om_external_constant {
  om_stored stored;            /* first */
  const om_external *external; /* borrowed; outlives it */
  om_external_place place;
} om_external_constant;

/* Makes `out` the constant of this type and shape; all else of it is set. */
void om_external_constant_init(const om_external *external,
                               const om_external_place *place,
                               const om_tensor *tensor,
                               om_external_constant *out);

/* Finds the data that a TensorProto's external_data entries (Entry messages) describe: exactly
 * `needed_bytes` bytes, or an error. */
om_status om_external_find(om_ctx *ctx,
                           om_external *external,
                           const om_string *entries,
                           size_t entry_count,
                           size_t needed_bytes,
                           om_external_place *out_place);

#endif
