/* Whole copies of values: of a tensor's strings, of what a sequence or an optional holds.
 *
 * A copy lies in one block, each part aligned to 64:
 *
 *     tensor    [elements]
 *     strings   [om_string ...][bytes ...]
 *     sequence  [om_tensor ...][a copy of the first] [a copy of the second] ...
 *
 * so it can be moved about as a value of its own. Values nest at most OM_VALUE_DEPTH deep.
 */
#ifndef OM_VALUE_COPY_H
#define OM_VALUE_COPY_H

#include "graph/om_graph.h"

enum { OM_VALUE_DEPTH = 3, OM_VALUE_ALIGNMENT = 64 }; /* an optional of a sequence of tensors */

/* Bytes that a copy of the value takes; false where that overflows, or the value nests too deep. */
bool om_value_bytes(const om_tensor *value, size_t *out_bytes);

/* Copies the value into `memory` of om_value_bytes; *out_copy may be *value. */
void om_value_copy(const om_tensor *value, void *memory, om_tensor *out_copy);

#endif
