/* A list of test folders that do not pass yet, each with its reason. It can only shrink: a listed
 * folder that passes is a failure, and so is a line that no folder matches.
 *
 *     op Loop: control flow is not there yet          folders whose model has such a node
 *     test test_sequence_*: sequences ...             a name, or the beginning of one
 *     # a comment
 */
#ifndef OM_SKIPS_H
#define OM_SKIPS_H

#include "base/om_base.h"

typedef struct om_skip {
  bool is_op;
  const char *name; /* of the operator or folder, without the star */
  bool is_beginning;
  const char *reason;
  size_t matches; /* folders it applied to */
  size_t line;
} om_skip;

typedef struct om_skips {
  om_pool pool;     /* owned, with the entries' texts */
  om_skip *entries; /* owned */
  size_t count, capacity;
} om_skips;

/* Reads the list; a line of another form is OM_E_INVALID_ARGUMENT. */
om_status om_skips_read(om_ctx *ctx, const char *path, om_skips *out_skips);
void om_skips_deinit(om_ctx *ctx, om_skips *skips);

/* The entry for a folder, counted as used, or NULL. `model` may be NULL (it could not be loaded):
 * then only names are compared. */
const om_skip *om_skips_find(om_skips *skips, const char *folder, const om_model *model);

#endif
