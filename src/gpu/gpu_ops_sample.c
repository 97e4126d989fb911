/* GridSample and RoiAlign on the device: float32 and float16. */
#include "abi/grid_sample_params.h"
#include "abi/roi_align_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_sample.h"

enum { THREADS = 128 }; /* of one workgroup; as the shaders have it */

static const char *check_inputs(om_gpu_binder *b) {
  const om_tensor *places = om_gpu_input(b, 1);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (places->dtype != om_gpu_input(b, 0)->dtype) {
    return om_gpu_reason(b, "its input 1 is %s", om_dtype_name(places->dtype));
  }
  const char *reason = om_gpu_check_words(b, om_tensor_elems(om_gpu_input(b, 0)));
  if (!reason) reason = om_gpu_check_words(b, om_tensor_elems(places));
  return reason ? reason : om_gpu_check_words(b, om_tensor_elems(om_gpu_output(b, 0)));
}

/* Appends the dispatch: the operands are the inputs and the result, in order. */
static om_gpu_dispatch *add_result(om_gpu_binder *b,
                                   const om_gpu_forms *forms,
                                   uint32_t input_count,
                                   const void *params,
                                   uint32_t params_bytes) {
  om_gpu_operand operands[4];
  for (uint32_t i = 0; i < input_count; ++i) operands[i] = om_gpu_read(b, i);
  operands[input_count] = om_gpu_write(b, 0);
  const uint64_t elems = om_tensor_elems(om_gpu_output(b, 0));
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, om_gpu_form(b, forms, om_gpu_input(b, 0)->dtype));
  if (!d) return NULL;
  memcpy(d->operands, operands, (input_count + 1) * sizeof *operands);
  d->operand_count = input_count + 1;
  memcpy(d->params, params, params_bytes);
  d->params_bytes = params_bytes;
  d->has_chain = true;
  d->chain_value = operands[input_count].index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 16 * elems;
  om_gpu_spread_groups(b, om_gpu_pieces(elems, THREADS), d->groups);
  return d;
}

static const char *bind_grid(om_gpu_binder *b) {
  static const om_gpu_forms forms = OM_GPU_FORMS(GRID_SAMPLE);
  const char *reason = check_inputs(b);
  if (reason) return reason;
  const om_grid_sample job =
      om_grid_sample_fit(om_gpu_binder_node(b)->params, om_gpu_input(b, 0), om_gpu_input(b, 1));
  const om_grid_sample_kernel_params params = {
      .in_d = (uint32_t)job.in[0],
      .in_h = (uint32_t)job.in[1],
      .in_w = (uint32_t)job.in[2],
      .channels = (uint32_t)job.channels,
      .pixels = (uint32_t)job.pixels,
      .elems = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)),
  };
  om_gpu_dispatch *d = add_result(b, &forms, 2, &params, sizeof params);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = job.mode;
  d->constants[1] = job.padding;
  d->constants[2] = job.is_aligned;
  d->constants[3] = job.axis_count;
  d->constant_count = 4;
  return NULL;
}

static const char *bind_roi(om_gpu_binder *b) {
  static const om_gpu_forms forms = OM_GPU_FORMS(ROI_ALIGN);
  const om_tensor *x = om_gpu_input(b, 0);
  const char *reason = check_inputs(b);
  if (reason) return reason;
  const om_roi_align job = om_roi_align_fit(om_gpu_binder_node(b)->params, x, om_gpu_input(b, 1));
  const om_roi_align_kernel_params params = {
      .in_h = job.in[0],
      .in_w = job.in[1],
      .out_h = job.out[0],
      .out_w = job.out[1],
      .images = (uint32_t)x->dims[0],
      .channels = (uint32_t)job.channels,
      .samples = job.samples,
      .elems = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)),
      .scale = job.scale,
  };
  om_gpu_dispatch *d = add_result(b, &forms, 3, &params, sizeof params);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = job.is_max;
  d->constants[1] = job.is_half_pixel;
  d->constants[2] = om_gpu_words(om_gpu_input(b, 2)->dtype);
  d->constant_count = 3;
  return om_gpu_demand_indices(b, 2, x->dims, 1);
}

#define OM_GPU_SAMPLE_ENTRY(name, function)                                          \
  {.domain = "",                                                                     \
   .type = (name),                                                                   \
   .dtypes = OM_DT_REAL,                                                             \
   .has_exact = true,                                                                \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_ROUND, \
   .bind = (function)}

const om_gpu_op om_gpu_ops_sample[] = {
    OM_GPU_SAMPLE_ENTRY("GridSample", bind_grid),
    OM_GPU_SAMPLE_ENTRY("RoiAlign", bind_roi),
    {.type = NULL},
};
