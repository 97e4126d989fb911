/* Reads a value from a file of its own, as the ONNX suite has them: a TensorProto, a SequenceProto
 * or an OptionalProto. Safe for hostile bytes, as om_tensor_proto_read is.
 */
#ifndef OM_NESTED_PROTO_H
#define OM_NESTED_PROTO_H

#include "onnx/om_tensor_proto.h"

/* `kind` is what the file must hold: OM_DTYPE_SEQUENCE, OM_DTYPE_OPTIONAL, or any other for a
 * tensor. What it points to lies in `bytes` and in the pool. */
om_status om_nested_proto_read(om_ctx *ctx,
                               const om_tensor_reading *how,
                               om_dtype kind,
                               om_string bytes,
                               om_tensor *out_value);

#endif
