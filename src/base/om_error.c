/* Errors and the log: fixed buffers, so that reporting a failure cannot fail.
 *
 * Names in messages come from files. Control characters in them are shown as '?', so that a name
 * cannot play tricks on a terminal; a line break stays, for messages that list things.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/om_base.h"

enum { LOG_BYTES = 768 }; /* one line; frames stay below 1 KiB */

static void clean_text(char *text) {
  for (; *text; ++text) {
    unsigned char c = (unsigned char)*text;
    if ((c < 0x20 && c != '\n') || c == 0x7f) *text = '?';
  }
}

/* Ends a text that was cut with "...". */
static void mark_cut(char *text, size_t buffer_bytes) {
  memcpy(text + buffer_bytes - 4, "...", 4);
}

/* The part of the source path that is the file's name. */
static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

om_status om_fail(om_ctx *ctx, om_status status, const char *file, int line, const char *fmt, ...) {
  om_error *error = ctx->error;
  if (error->status != OM_OK) return status;
  error->status = status;
  error->line = line;
  error->file = file_name(file);
  va_list args;
  va_start(args, fmt);
  int bytes = vsnprintf(error->message, sizeof error->message, fmt, args);
  va_end(args);
  if (bytes < 0) error->message[0] = '\0';
  if (bytes >= (int)sizeof error->message) mark_cut(error->message, sizeof error->message);
  clean_text(error->message);
  return status;
}

void om_error_prefix(om_ctx *ctx, const char *fmt, ...) {
  om_error *error = ctx->error;
  if (error->status == OM_OK) return;
  char prefix[OM_MAX_MESSAGE / 2];
  va_list args;
  va_start(args, fmt);
  int written = vsnprintf(prefix, sizeof prefix - 2, fmt, args);
  va_end(args);
  if (written <= 0) return;
  if (written >= (int)sizeof prefix - 2) mark_cut(prefix, sizeof prefix - 2);
  size_t prefix_bytes = strlen(prefix);
  if (prefix[prefix_bytes - 1] != ' ') {
    memcpy(prefix + prefix_bytes, ": ", 3);
    prefix_bytes += 2;
  }
  clean_text(prefix);
  size_t message_bytes = strlen(error->message);
  bool is_cut = prefix_bytes + message_bytes >= sizeof error->message;
  if (is_cut) message_bytes = sizeof error->message - 1 - prefix_bytes;
  memmove(error->message + prefix_bytes, error->message, message_bytes);
  memcpy(error->message, prefix, prefix_bytes);
  error->message[prefix_bytes + message_bytes] = '\0';
  if (is_cut) mark_cut(error->message, sizeof error->message);
}

void om_error_clear(om_error *error) {
  if (!error) return;
  error->status = OM_OK;
  error->line = 0;
  error->file = "";
  error->message[0] = '\0';
}

void om_log_write(const om_ctx *ctx, om_log_level level, const char *fmt, ...) {
  if (!ctx->log.write) return;
  char line[LOG_BYTES];
  va_list args;
  va_start(args, fmt);
  int bytes = vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  if (bytes < 0) return;
  if (bytes >= (int)sizeof line) mark_cut(line, sizeof line);
  clean_text(line);
  ctx->log.write(ctx->log.user, level, line);
}

const char *om_status_name(om_status status) {
  static const char *const names[] = {
      [OM_OK] = "OM_OK",
      [OM_E_INVALID_ARGUMENT] = "OM_E_INVALID_ARGUMENT",
      [OM_E_INVALID_MODEL] = "OM_E_INVALID_MODEL",
      [OM_E_INVALID_INPUT] = "OM_E_INVALID_INPUT",
      [OM_E_UNSUPPORTED] = "OM_E_UNSUPPORTED",
      [OM_E_OUT_OF_MEMORY] = "OM_E_OUT_OF_MEMORY",
      [OM_E_OUT_OF_DEVICE_MEMORY] = "OM_E_OUT_OF_DEVICE_MEMORY",
      [OM_E_DEVICE_LOST] = "OM_E_DEVICE_LOST",
      [OM_E_IO] = "OM_E_IO",
      [OM_E_INTERNAL] = "OM_E_INTERNAL",
      [OM_E_CANCELLED] = "OM_E_CANCELLED",
      [OM_E_NOT_READY] = "OM_E_NOT_READY",
  };
  return (size_t)status < OM_COUNT_OF(names) ? names[status] : "?";
}

#define TEXT_OF(x)                        #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *om_version(void) {
  return VERSION_TEXT(OM_VERSION_MAJOR, OM_VERSION_MINOR, OM_VERSION_PATCH);
}

void om_cancel_ask(om_cancel *cancel) {
  if (cancel) __atomic_store_n(&cancel->is_asked, 1, __ATOMIC_RELAXED);
}

om_status om_check_cancelled(om_ctx *ctx) {
  if (!om_is_cancelled(ctx)) return OM_OK;
  return OM_FAIL(ctx, OM_E_CANCELLED, "The run was cancelled.");
}

om_status om_check_given_up(om_ctx *ctx) {
  om_ctx asked = *ctx;
  asked.cancel = ctx->give_up;
  return om_check_cancelled(&asked);
}
