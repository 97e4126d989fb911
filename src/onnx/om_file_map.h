/* A file's bytes, mapped for reading.
 *
 * Whoever shortens a mapped file while it is in use makes the process fail (SIGBUS): model files
 * must stay as they are as long as the model lives.
 */
#ifndef OM_FILE_MAP_H
#define OM_FILE_MAP_H

#include "base/om_base.h"

typedef struct om_file_map {
  const unsigned char *bytes; /* owned; never NULL once mapped, also for an empty file */
  size_t byte_count;
  bool is_mapped; /* false: heap memory, or an empty file */
} om_file_map;

/* Maps a regular file that the caller chose: links are followed. */
om_status om_file_map_open(om_ctx *ctx, const char *path, om_file_map *out_map);

/* Maps an open file; `name` is for messages. The descriptor stays the caller's. */
om_status om_file_map_descriptor(om_ctx *ctx,
                                 int descriptor,
                                 const char *name,
                                 om_file_map *out_map);

/* Lets the pages that lie whole inside `data` leave memory, if they belong to the map: a later read
 * finds them in the file again. Any thread. */
void om_file_map_release(const om_file_map *map, const void *data, size_t bytes);

void om_file_map_close(om_ctx *ctx, om_file_map *map);

#endif
