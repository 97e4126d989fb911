/* Conversions between element types (docs/exact.md, "Cast"). */
#ifndef OM_CAST_H
#define OM_CAST_H

#include "base/om_base.h"

/* True if om_cast_run converts between the two. Not strings, not complex numbers. */
bool om_cast_is_there(om_dtype from, om_dtype to);

/* Converts all elements of `in`; `out` has its shape. saturates: of 8-bit floats. */
void om_cast_run(om_ctx *ctx, const om_tensor *in, om_tensor *out, bool saturates);

/* Converts `count` elements on the calling thread; 4-bit elements begin at a byte's lower half. */
void om_cast_elems(
    om_dtype from, const void *in, om_dtype to, void *out, size_t count, bool saturates);

/* Where element `index` lies; even for 4-bit types. */
static inline const void *om_cast_place(om_dtype dtype, const void *data, size_t index) {
  return (const uint8_t *)data + index * om_dtype_bits(dtype) / 8;
}

#endif
