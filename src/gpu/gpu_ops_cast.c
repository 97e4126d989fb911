/* Cast and CastLike between the types that models compute with. */
#include "abi/cast_params.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_elementwise.h"

enum { OM_CAST_GROUP_ELEMS = 1024 }; /* 256 invocations of four elements */

static const om_dtype_set casts = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_I32) |
                                  OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_U8) |
                                  OM_DT(OM_DTYPE_I8);

static const char *bind(om_gpu_binder *b) {
  const om_tensor *in = om_gpu_input(b, 0);
  const om_tensor *out = om_gpu_output(b, 0);
  size_t elems = 0;
  if ((casts & OM_DT(out->dtype)) == 0) {
    return om_gpu_reason(b, "no kernel for a result of %s", om_dtype_name(out->dtype));
  }
  if (in->dtype == out->dtype && in->dtype != OM_DTYPE_BOOL) {
    om_gpu_make_view(b);
    return NULL;
  }
  if (!om_shape_elems(in->rank, in->dims, &elems) || elems > UINT32_MAX - OM_CAST_GROUP_ELEMS) {
    return "it is too large";
  }
  om_cast_kernel_params block = {.elems = (uint32_t)elems};
  om_gpu_operand from = om_gpu_read(b, 0);
  om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_CAST);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = (uint32_t)in->dtype;
  d->constants[1] = (uint32_t)out->dtype;
  d->constant_count = 2;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  d->flops = elems;
  om_gpu_spread_groups(b, om_gpu_pieces(elems, OM_CAST_GROUP_ELEMS), d->groups);
  return NULL;
}

#define OM_GPU_CAST(name)                                                                          \
  {.domain = "",                                                                                   \
   .type = (name),                                                                                 \
   .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_I32) |                     \
             OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_I8), \
   .has_exact = true,                                                                              \
   .primitives = 0,                                                                                \
   .bind = bind}

const om_gpu_op om_gpu_ops_cast[] = {
    OM_GPU_CAST("Cast"),
    OM_GPU_CAST("CastLike"),
    {.type = NULL},
};
