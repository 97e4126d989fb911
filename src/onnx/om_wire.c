/* nanopb over memory, with a stream of our own: its position is ours to read, so a callback can
 * take a field's bytes where they lie. */
#include "onnx/om_wire.h"

typedef struct cursor {
  const unsigned char *at;
} cursor;

static bool read_bytes(pb_istream_t *stream, pb_byte_t *buffer, size_t count) {
  cursor *c = stream->state;
  if (buffer && count > 0) memcpy(buffer, c->at, count);
  c->at += count;
  return true;
}

/* nanopb hands a field that is not length-delimited to its callback in a stream of its own. */
static bool is_delimited(const pb_istream_t *stream) {
  return stream->callback == read_bytes;
}

/* Takes the rest of a field's stream. */
static om_string take_rest(pb_istream_t *stream) {
  cursor *c = stream->state;
  om_string range = {.data = (const char *)c->at, .bytes = stream->bytes_left};
  c->at += stream->bytes_left;
  stream->bytes_left = 0;
  return range;
}

static bool keep(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  (void)field;
  om_string *out = *arg;
  if (!is_delimited(stream)) PB_RETURN_ERROR(stream, "wrong wire type");
  if (out->data) PB_RETURN_ERROR(stream, "a field that may stand once stands twice");
  *out = take_rest(stream);
  return true;
}

static bool keep_all(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  (void)field;
  om_wire_list *list = *arg;
  if (!is_delimited(stream)) PB_RETURN_ERROR(stream, "wrong wire type");
  if (OM_GROW(list->ctx, list->items, list->count, list->capacity) != OM_OK) {
    PB_RETURN_ERROR(stream, "no memory");
  }
  list->items[list->count++] = take_rest(stream);
  return true;
}

static bool keep_fixed(pb_istream_t *stream, om_wire_numbers *numbers, size_t bytes) {
  if (stream->bytes_left % bytes != 0) PB_RETURN_ERROR(stream, "a number is cut off");
  size_t count = stream->bytes_left / bytes;
  if (!is_delimited(stream) && count != 1) PB_RETURN_ERROR(stream, "wrong wire type");
  size_t room = numbers->count < numbers->capacity ? numbers->capacity - numbers->count : 0;
  size_t stored = count < room ? count : room;
  if (stored > 0 && !pb_read(stream, numbers->out + numbers->count * bytes, stored * bytes)) {
    return false;
  }
  if (is_delimited(stream)) (void)take_rest(stream);
  numbers->count += count;
  return true;
}

static void store_varint(om_wire_numbers *numbers, uint64_t value) {
  int64_t as_signed = (int64_t)value;
  bool is_whole = numbers->elem_bytes == sizeof value;
  if (!is_whole && (as_signed < numbers->range[0] || as_signed > numbers->range[1])) {
    if (!numbers->is_outside) numbers->outside = as_signed;
    numbers->is_outside = true;
  }
  /* The low bytes come first: little-endian machines only, which om_model.c checks. */
  memcpy(numbers->out + numbers->count * numbers->elem_bytes, &value, numbers->elem_bytes);
}

static bool keep_varints(pb_istream_t *stream, om_wire_numbers *numbers) {
  while (stream->bytes_left > 0) {
    uint64_t value = 0;
    if (!pb_decode_varint(stream, &value)) return false;
    if (numbers->count < numbers->capacity) store_varint(numbers, value);
    ++numbers->count;
  }
  return true;
}

static bool keep_numbers(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  (void)field;
  om_wire_numbers *numbers = *arg;
  if (numbers->format == OM_WIRE_VARINT) return keep_varints(stream, numbers);
  return keep_fixed(stream, numbers, numbers->format == OM_WIRE_FIXED32 ? 4 : 8);
}

pb_callback_t om_wire_keep(om_string *out) {
  return (pb_callback_t){.funcs.decode = keep, .arg = out};
}

pb_callback_t om_wire_keep_all(om_wire_list *out) {
  return (pb_callback_t){.funcs.decode = keep_all, .arg = out};
}

pb_callback_t om_wire_keep_numbers(om_wire_numbers *numbers) {
  return (pb_callback_t){.funcs.decode = keep_numbers, .arg = numbers};
}

void om_wire_list_deinit(om_wire_list *list) {
  if (list->ctx) om_delete(list->ctx, list->items);
  *list = (om_wire_list){0};
}

om_status om_wire_decode(
    om_ctx *ctx, om_string bytes, const pb_msgdesc_t *fields, void *message, const char *what) {
  cursor c = {.at = (const unsigned char *)bytes.data};
  pb_istream_t stream = {.callback = read_bytes, .state = &c, .bytes_left = bytes.bytes};
  if (pb_decode(&stream, fields, message)) return OM_OK;
  if (ctx->error->status != OM_OK) return ctx->error->status; /* a callback had no memory */
  const char *why = stream.errmsg ? stream.errmsg : "a number has the wrong wire type";
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The %s of %zu bytes is malformed at its byte %zu (%s).",
                 what,
                 bytes.bytes,
                 (size_t)(c.at - (const unsigned char *)bytes.data),
                 why);
}
