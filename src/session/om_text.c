/* The text builder: see om_text.h. */
#include "session/om_text.h"

#include <stdarg.h>
#include <stdio.h>

om_text om_text_in(char *data, size_t capacity) {
  data[0] = '\0';
  return (om_text){.data = data, .capacity = capacity};
}

void om_text_add(om_text *text, const char *fmt, ...) {
  size_t room = text->capacity - text->used;
  va_list args;
  va_start(args, fmt);
  int written = vsnprintf(text->data + text->used, room, fmt, args);
  va_end(args);
  if (written < 0 || (size_t)written >= room) {
    text->data[text->used] = '\0';
    text->is_cut = true;
    return;
  }
  text->used += (size_t)written;
}

void om_text_add_declared_shape(om_text *text, const om_value *value) {
  if (!value->has_rank) {
    om_text_add(text, "any rank");
    return;
  }
  om_text_add(text, "[");
  for (uint32_t i = 0; i < value->rank; ++i) {
    const char *comma = i == 0 ? "" : ", ";
    if (value->dims[i] >= 0) {
      om_text_add(text, "%s%lld", comma, (long long)value->dims[i]);
    } else {
      om_text_add(text, "%s%s", comma, value->dim_names[i] ? value->dim_names[i] : "?");
    }
  }
  om_text_add(text, "]");
}
