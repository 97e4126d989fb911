/* LRN on the device: float32 and float16. */
#include "abi/lrn_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_lrn.h"

static const char *bind(om_gpu_binder *b) {
  enum { THREADS = 128 }; /* of one workgroup; as the shader has it */
  const om_tensor *x = om_gpu_input(b, 0);
  const uint64_t elems = om_tensor_elems(x);
  const char *reason = om_gpu_check_words(b, elems);
  if (reason) return reason;
  const om_lrn job = om_lrn_fit(om_gpu_binder_node(b)->params, x);
  const om_lrn_kernel_params params = {
      .elems = (uint32_t)elems,
      .inner = (uint32_t)job.inner,
      .channels = (uint32_t)job.channels,
      .before = (uint32_t)job.before,
      .behind = (uint32_t)job.behind,
      .factor = job.factor,
      .beta = job.beta,
      .bias = job.bias,
  };
  const om_gpu_operand from = om_gpu_read(b, 0);
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, LRN, x->dtype));
  if (!d) return om_gpu_no_memory;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = elems * 16;
  om_gpu_spread_groups(b, om_gpu_pieces(elems, THREADS), d->groups);
  return NULL;
}

const om_gpu_op om_gpu_ops_lrn[] = {
    {.domain = "",
     .type = "LRN",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_FUNCTIONS,
     .bind = bind},
    {.type = NULL},
};
