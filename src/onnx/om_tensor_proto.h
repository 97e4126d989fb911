/* Reads a TensorProto: an initializer, an attribute, or a .pb file of its own.
 *
 * Safe for hostile bytes. What is allocated is bounded by eight times the bytes that are read.
 */
#ifndef OM_TENSOR_PROTO_H
#define OM_TENSOR_PROTO_H

#include "onnx/om_external.h"

typedef struct om_tensor_reading {
  om_pool *pool;              /* borrowed: gets what cannot stay where it lies */
  om_external *external;      /* borrowed; NULL: external data are refused */
  om_external_constant *keep; /* borrowed: gets what is left with the reader, out_tensor then being
                                 its tensor; NULL: all is brought to memory */
  size_t align_below_bytes;   /* raw data that do not lie aligned for their type are copied when
                                 they are smaller than this; SIZE_MAX: always */
} om_tensor_reading;

enum {
  OM_STORED_FROM_BYTES = 65536
}; /* what is smaller is brought to memory: shapes, scalars,
      biases, of which a model has many and binders read some */

/* Sets *out_tensor, whose data lie in `bytes`, in a mapped external file or in the pool, and are
 * never written; NULL: how->keep has them. *out_name is a range of `bytes`; its data are NULL where
 * there is no name.
 *
 * Errors: OM_E_INVALID_MODEL, OM_E_UNSUPPORTED (an unknown element type, a rank above
 *         OM_MAX_RANK), OM_E_IO; the message names the tensor where it has a name. */
om_status om_tensor_proto_read(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_string bytes,
                               om_tensor *out_tensor,
                               om_string *out_name);

/* True if the data may be read through a pointer to the element type. Large tensors that lie in a
 * model file often may not: who computes with them makes an aligned copy, who uploads them need
 * not. */
bool om_tensor_is_aligned(const om_tensor *tensor);

#endif
