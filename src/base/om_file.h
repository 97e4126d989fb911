/* Small files of the library's own: read whole, replaced whole. */
#ifndef OM_FILE_H
#define OM_FILE_H

#include "base/om_base.h"

/* Reads a regular file that belongs to the process' user. *out_data is NULL where there is none.
 * OM_E_IO: it is above max_bytes, is another kind of file or another user's, or cannot be read.
 * Owner: the caller deletes *out_data. */
om_status om_file_read(
    om_ctx *ctx, const char *path, size_t max_bytes, void **out_data, size_t *out_bytes);

/* Puts a file with these bytes, readable by its user alone, in the place of what is there. Whoever
 * reads at the same time sees the old file or the new one. */
om_status om_file_replace(om_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Makes the folder, and those above it, where they are missing; for the user alone. */
om_status om_file_make_folder(om_ctx *ctx, const char *path);

#endif
