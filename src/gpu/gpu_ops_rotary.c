/* RotaryEmbedding on the device. */
#include "abi/rotary_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_rotary.h"

enum { OM_THREADS = 256 };

static const char *bind_rotary(om_gpu_binder *b) {
  const om_rotary_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, OM_ROTARY_X);
  const om_tensor *cos = om_gpu_input(b, OM_ROTARY_COS);
  const bool has_positions = om_gpu_input(b, OM_ROTARY_POSITIONS) != NULL;
  om_rotary r;
  om_rotary_describe(p, x, cos, &r);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (r.elems > INT32_MAX || om_tensor_elems(cos) > INT32_MAX) {
    return "it has more elements than are counted";
  }
  const om_rotary_kernel_params params = {.elems = (uint32_t)r.elems,
                                          .size = (uint32_t)r.size,
                                          .half_size = (uint32_t)r.half,
                                          .row_count = (uint32_t)r.length,
                                          .batch_elems = (uint32_t)r.batch_elems,
                                          .row_elems = (uint32_t)r.row_elems,
                                          .table_rows = (uint32_t)cos->dims[0]};
  om_gpu_operand operands[5];
  for (uint32_t i = 0; i < 4; ++i) operands[i] = om_gpu_read(b, i);
  operands[4] = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, ROTARY, x->dtype));
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constants[0] = p->is_interleaved;
  d->constants[1] = has_positions;
  d->constant_count = 2;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = 5;
  om_gpu_spread_groups(b, om_gpu_pieces(r.elems, OM_THREADS), d->groups);
  return has_positions ? om_gpu_demand_indices(b, OM_ROTARY_POSITIONS, &cos->dims[0], 1) : NULL;
}

const om_gpu_op om_gpu_ops_rotary[] = {
    {.domain = "",
     .type = "RotaryEmbedding",
     .dtypes = OM_DT_REAL,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_rotary},
    {.type = NULL},
};
