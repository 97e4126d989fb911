/* The wire format: how a message's fields get out of its bytes, on top of nanopb.
 *
 * A message is decoded by one call that never goes into nested messages: text, bytes and nested
 * messages come out as ranges of the same bytes (om_string; data NULL: the field is absent),
 * numbers in lists are counted first and written by a second call. So nothing is copied, and the
 * stack does not depend on the file.
 */
#ifndef OM_WIRE_H
#define OM_WIRE_H

#include <pb_decode.h>

#include "base/om_base.h"
#include "onnx.pb.h"

/* Ranges of a repeated field, in order. Owner of items: the list; om_wire_list_deinit. */
typedef struct om_wire_list {
  om_ctx *ctx;
  om_string *items;
  size_t count, capacity;
} om_wire_list;

void om_wire_list_deinit(om_wire_list *list);

typedef enum om_wire_format { OM_WIRE_VARINT, OM_WIRE_FIXED32, OM_WIRE_FIXED64 } om_wire_format;

/* Numbers of a repeated field, packed or not. The first `capacity` are stored, all are counted. */
typedef struct om_wire_numbers {
  om_wire_format format;
  size_t count;         /* out: how many there are */
  unsigned char *out;   /* borrowed: `capacity` elements of elem_bytes */
  size_t capacity;      /* 0: only count */
  size_t elem_bytes;    /* varints: the low bytes are kept; 4 and 8 for the fixed formats */
  const int64_t *range; /* varints stored in fewer than 8 bytes: the least, the greatest */
  bool is_outside;      /* out: a varint was not in the range; it is in `outside` */
  int64_t outside;
} om_wire_numbers;

/* Callbacks for a message's fields. Each field that is kept gets one; the others are skipped. */
pb_callback_t om_wire_keep(om_string *out); /* one range; twice in a message is an error */
pb_callback_t om_wire_keep_all(om_wire_list *out);
pb_callback_t om_wire_keep_numbers(om_wire_numbers *numbers);

/* Decodes a message whose callbacks are set. OM_E_INVALID_MODEL says at which of its bytes it is
 * malformed; `what` names the message's type ("node"). */
om_status om_wire_decode(
    om_ctx *ctx, om_string bytes, const pb_msgdesc_t *fields, void *message, const char *what);

#endif
