/* Runs a fuzzer's corpus as a plain test, without a fuzzer's compiler. Included by the program that
 * includes the fuzz target, whose entry it calls. */
#ifndef REPLAY_H
#define REPLAY_H

#include <dirent.h>
#include <stdio.h>

#include "harness/om_folder.h"

static om_status replay_file(om_ctx *ctx, const char *path) {
  om_file_map map;
  OM_TRY(om_file_map_open(ctx, path, &map));
  (void)LLVMFuzzerTestOneInput(map.bytes, map.byte_count);
  om_file_map_close(ctx, &map);
  return OM_OK;
}

/* Runs every file of the folder; the exit code. */
static int replay_folder(const char *folder) {
  static om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  struct dirent **entries = NULL;
  size_t count = 0, failed = 0;
  int entry_count = scandir(folder, &entries, NULL, alphasort);
  om_error_clear(&error);
  for (int i = 0; i < entry_count; ++i) {
    char path[1024];
    if (entries[i]->d_name[0] != '.') {
      (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
      bool is_read = replay_file(&ctx, path) == OM_OK;
      if (!is_read) ++failed;
      printf("%s %zu - %s\n", is_read ? "ok" : "not ok", ++count, entries[i]->d_name);
      (void)fflush(stdout);
    }
    free(entries[i]);
  }
  free(entries);
  printf("1..%zu\n", count);
  return failed > 0 || count == 0;
}

#endif
