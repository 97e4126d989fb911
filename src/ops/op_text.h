/* Text: UTF-8 letters in upper and lower case, numbers as text, and results that are strings.
 *
 * A string that an operator makes lies behind the om_string of its result, in the result's memory.
 * How long it is shows only when the data are there, so such a result is never static: its memory
 * lasts as long as the run, and whatever points into it may, too.
 */
#ifndef OP_TEXT_H
#define OP_TEXT_H

#include "graph/om_op.h"

/* Sets output 0 to strings of this shape and so many bytes of text. */
om_status om_text_set(
    om_ctx *ctx, const om_op_call *call, uint32_t rank, const int64_t *dims, size_t text_bytes);

/* Where the text of a result begins. */
static inline char *om_text_place(const om_tensor *out) {
  return (char *)((om_string *)out->data + om_tensor_elems(out));
}

/* Copies the text with its letters in the other case: Latin, Greek and Cyrillic ones, each of which
 * takes as many bytes in either. Bytes that are no UTF-8 stay as they are. */
void om_text_upper(om_string from, char *to);
void om_text_lower(om_string from, char *to);
/* Whether the two are the same in lower case. */
bool om_text_same_lower(om_string a, om_string b);

enum { OM_NUMBER_TEXT = 40 };

/* The shortest decimal text that is read as the same number of this type: "0.5", "1e-05", "NaN",
 * "INF", "-INF"; integers in full; bools as "True" and "False". Returns its length. */
size_t om_text_of_number(const om_tensor *tensor, size_t index, char text[OM_NUMBER_TEXT]);

/* Stores the number that the text is as element `index`. OM_E_INVALID_INPUT shows a text that is
 * none, or does not fit. */
om_status om_number_of_text(om_ctx *ctx, om_string text, om_tensor *out, size_t index);

#endif
