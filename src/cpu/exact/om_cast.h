/* Conversions between element types (docs/exact.md, "Cast"). */
#ifndef OM_CAST_H
#define OM_CAST_H

#include "base/om_base.h"

/* True if om_cast_run converts between the two. Not strings, not complex numbers. */
bool om_cast_is_there(om_dtype from, om_dtype to);

/* Converts all elements of `in`; `out` has its shape. saturates: of 8-bit floats. */
void om_cast_run(om_ctx *ctx, const om_tensor *in, om_tensor *out, bool saturates);

#endif
