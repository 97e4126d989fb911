/* Softmax and LogSoftmax of float32 and float16. */
#include "abi/softmax_params.h"
#include "gpu/om_gpu_rows.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_softmax.h"

static const char *bind(om_gpu_binder *b) {
  static const om_gpu_row_forms forms = OM_GPU_ROW_FORMS(SOFTMAX);
  const om_softmax_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *in = om_gpu_input(b, 0);
  om_gpu_rows fields;
  om_rows rows;
  uint32_t mask = 0;
  b->status = om_softmax_axes(b->ctx, params, in, &mask);
  if (b->status != OM_OK) return "its axis does not fit";
  om_rows_init(&rows, in, mask);
  const char *reason = om_gpu_rows_from(b, &rows, &fields);
  if (reason) return reason;

  om_gpu_operand from = om_gpu_read(b, 0);
  om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, om_gpu_rows_form(b, &forms, &fields, in->dtype));
  if (!d) return om_gpu_no_memory;
  om_softmax_kernel_params block;
  memcpy(&block, &fields, sizeof fields);
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = params->kind == OM_LOG_SOFTMAX;
  d->constants[1] = fields.elem_stride != 1;
  d->constant_count = 2;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  om_gpu_rows_spread(b, &fields, d);
  return NULL;
}

#define OM_GPU_SOFTMAX(name)                                                             \
  {.domain = "",                                                                         \
   .type = (name),                                                                       \
   .dtypes = OM_DT_REAL,                                                                 \
   .has_exact = true,                                                                    \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_FUNCTIONS, \
   .bind = bind}

const om_gpu_op om_gpu_ops_softmax[] = {
    OM_GPU_SOFTMAX("Softmax"),
    OM_GPU_SOFTMAX("LogSoftmax"),
    {.type = NULL},
};
