/* Reductions of float32 over neighbouring axes. */
#include "abi/reduce_params.h"
#include "gpu/om_gpu_rows.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_reduce.h"

static const char *find_axes(om_gpu_binder *b, uint32_t *out_mask) {
  const om_reduce_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *axes = om_gpu_input(b, 1);
  if (axes && !om_rule_is_known(axes)) return "its axes are known at run time only";
  b->status = om_reduce_axes(b->ctx, params, om_gpu_input(b, 0), axes, out_mask);
  return b->status == OM_OK ? NULL : "its axes do not fit";
}

static const char *bind(om_gpu_binder *b) {
  const om_reduce_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *in = om_gpu_input(b, 0);
  om_gpu_rows fields;
  om_rows rows;
  uint32_t mask = 0;
  const char *reason = find_axes(b, &mask);
  if (reason) return reason;
  if (mask & OM_REDUCE_NOTHING) {
    om_gpu_make_view(b);
    return NULL;
  }
  om_rows_init(&rows, in, mask);
  reason = om_gpu_rows_from(&rows, &fields);
  if (reason) return reason;

  bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  om_gpu_operand from = om_gpu_read(b, 0);
  om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, is_exact ? OM_SHADER_REDUCE_EXACT : OM_SHADER_REDUCE);
  if (!d) return om_gpu_no_memory;
  om_reduce_kernel_params block = {.count = (float)rows.row_elems};
  memcpy(&block, &fields, sizeof fields);
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = (uint32_t)params->kind;
  d->constants[1] = fields.elem_stride != 1;
  d->constant_count = 2;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  om_gpu_rows_spread(b, &fields, d);
  return NULL;
}

#define OM_GPU_REDUCTION(name, rests_on)               \
  {.domain = "",                                       \
   .type = (name),                                     \
   .dtypes = OM_DT(OM_DTYPE_F32),                      \
   .has_exact = true,                                  \
   .primitives = OM_PRIMITIVE_ARITHMETIC | (rests_on), \
   .bind = bind}

const om_gpu_op om_gpu_ops_reduce[] = {
    OM_GPU_REDUCTION("ReduceSum", 0),
    OM_GPU_REDUCTION("ReduceMean", OM_PRIMITIVE_DIVIDE),
    OM_GPU_REDUCTION("ReduceMax", 0),
    OM_GPU_REDUCTION("ReduceMin", 0),
    OM_GPU_REDUCTION("ReduceProd", 0),
    OM_GPU_REDUCTION("ReduceL1", 0),
    OM_GPU_REDUCTION("ReduceL2", OM_PRIMITIVE_SQRT),
    OM_GPU_REDUCTION("ReduceSumSquare", 0),
    OM_GPU_REDUCTION("ReduceLogSum", OM_PRIMITIVE_FUNCTIONS),
    OM_GPU_REDUCTION("ReduceLogSumExp", OM_PRIMITIVE_FUNCTIONS),
    {.type = NULL},
};
