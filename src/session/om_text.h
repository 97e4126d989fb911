/* Builds a sentence piece by piece in a buffer of fixed size: what does not fit is left out. */
#ifndef OM_TEXT_H
#define OM_TEXT_H

#include "graph/om_graph.h"

typedef struct om_text {
  char *data; /* borrowed; always terminated */
  size_t capacity;
  size_t used; /* without the terminator */
  bool is_cut; /* something did not fit */
} om_text;

/* Starts an empty text in `data`; capacity is at least 1. */
om_text om_text_in(char *data, size_t capacity);

/* Appends the piece as a whole, or nothing of it. */
void om_text_add(om_text *text, const char *fmt, ...) OM_PRINTF(2, 3);

/* Appends a shape as a model declares it: "[N, 3, ?, 320]", or "any rank". */
void om_text_add_declared_shape(om_text *text, const om_value *value);

#endif
