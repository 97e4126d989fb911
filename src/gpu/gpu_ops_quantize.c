/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. The kernels have the exact arithmetic
 * in both modes: a quotient that is rounded otherwise may be another integer. */
#include "abi/quantize_params.h"
#include "abi/quantize_range_params.h"
#include "gpu/om_gpu_copy.h"
#include "gpu/om_gpu_quantize.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_quantize.h"

enum {
  GROUP_ELEMS = 1024, /* of quantize.comp: 256 invocations of four */
  RANGE_ELEMS = 4096, /* that a workgroup of quantize_range.comp takes at least */
  RANGE_GROUPS = 256, /* at most: the last pass has as many invocations */
};

static const om_dtype_set narrow = OM_DT_BYTE_INT | OM_DT(OM_DTYPE_I16) | OM_DT(OM_DTYPE_U16);

typedef struct om_gpu_quantizing {
  om_shader shader;
  om_dtype from, to, scale, zero; /* OM_DTYPE_NONE: no zero points */
  om_gpu_operand operands[4];
  om_quantize_place place;
  uint64_t elems;
} om_gpu_quantizing;

static const char *add_quantizing(om_gpu_binder *b, const om_gpu_quantizing *q) {
  const om_quantize_place *place = &q->place;
  const om_quantize_kernel_params block = {
      .elems = (uint32_t)q->elems,
      .extent = (uint32_t)place->extent,
      .inner_extent = (uint32_t)place->inner_extent,
      .block = (uint32_t)(place->block < INT32_MAX ? place->block : INT32_MAX),
      .outer_step = (uint32_t)place->outer_step,
      .axis_step = (uint32_t)place->axis_step,
      .inner_step = (uint32_t)place->inner_step,
  };
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, q->shader);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = (uint32_t)q->from;
  d->constants[1] = (uint32_t)q->to;
  d->constants[2] = (uint32_t)q->scale;
  d->constants[3] = (uint32_t)q->zero;
  d->constant_count = 4;
  memcpy(d->operands, q->operands, sizeof q->operands);
  d->operand_count = 4;
  d->flops = q->elems * 8;
  om_gpu_spread_groups(b, om_gpu_pieces(q->elems, GROUP_ELEMS), d->groups);
  return NULL;
}

/* Both directions: inputs are values, scales and zero points. */
static const char *bind_linear(om_gpu_binder *b, om_shader shader, om_dtype_set results) {
  const om_tensor *x = om_gpu_input(b, 0), *scale = om_gpu_input(b, 1), *zero = om_gpu_input(b, 2);
  const om_tensor *y = om_gpu_output(b, 0);
  om_gpu_quantizing q = {.shader = shader, .from = x->dtype, .scale = scale->dtype};
  if (!y) return "nothing reads its result";
  if ((OM_DT(y->dtype) & results) == 0) {
    return om_gpu_reason(b, "no kernel for a result of %s", om_dtype_name(y->dtype));
  }
  if ((OM_DT(scale->dtype) & OM_DT_REAL) == 0) {
    return om_gpu_reason(b, "no kernel for a scale of %s", om_dtype_name(scale->dtype));
  }
  q.to = y->dtype;
  q.elems = om_tensor_elems(y);
  const char *reason = om_gpu_check_words(b, q.elems);
  if (reason) return reason;
  b->status = om_quantize_find_place(b->ctx, om_gpu_binder_node(b)->params, x, scale, &q.place);
  if (b->status != OM_OK) return "its scale does not fit";
  q.operands[0] = om_gpu_read(b, 0);
  q.operands[1] = om_gpu_read(b, 1);
  if (zero) {
    q.zero = zero->dtype;
    q.operands[2] = om_gpu_read(b, 2);
  }
  q.operands[3] = om_gpu_write(b, 0);
  return add_quantizing(b, &q);
}

static const char *bind_quantize(om_gpu_binder *b) {
  return bind_linear(b, OM_SHADER_QUANTIZE, narrow);
}

static const char *bind_dequantize(om_gpu_binder *b) {
  return bind_linear(b, OM_SHADER_DEQUANTIZE, OM_DT_REAL);
}

/* ---- A tensor's own range ---- */

static const char *add_range(om_gpu_binder *b, om_gpu_operand scale, om_gpu_operand zero) {
  const uint64_t elems = om_tensor_elems(om_gpu_input(b, 0));
  const uint64_t wanted = om_gpu_pieces(elems, RANGE_ELEMS);
  const uint32_t groups = wanted < RANGE_GROUPS ? (uint32_t)wanted : RANGE_GROUPS;
  const om_quantize_range_params first = {.elems = (uint32_t)elems, .groups = groups};
  const om_quantize_range_params last = {.elems = groups, .groups = 1};
  const om_gpu_operand ranges = om_gpu_scratch(b, groups * 2 * sizeof(float));
  const om_gpu_operand x = om_gpu_read(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_QUANTIZE_RANGE);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &first, sizeof first);
  d->params_bytes = sizeof first;
  d->operands[0] = x;
  d->operands[1] = ranges;
  d->operand_count = 2;
  d->flops = elems;
  om_gpu_spread_groups(b, groups, d->groups);
  d = om_gpu_add_dispatch(b, OM_SHADER_QUANTIZE_RANGE_LAST);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &last, sizeof last);
  d->params_bytes = sizeof last;
  d->operands[0] = ranges;
  d->operands[1] = scale;
  d->operands[2] = zero;
  d->operand_count = 3;
  om_gpu_spread_groups(b, 1, d->groups);
  return NULL;
}

const char *om_gpu_bind_own_range(om_gpu_binder *b,
                                  om_gpu_operand bytes,
                                  om_gpu_operand scale,
                                  om_gpu_operand zero) {
  const om_gpu_quantizing q = {
      .shader = OM_SHADER_QUANTIZE,
      .from = OM_DTYPE_F32,
      .to = OM_DTYPE_U8,
      .scale = OM_DTYPE_F32,
      .zero = OM_DTYPE_U8,
      .operands = {om_gpu_read(b, 0), scale, zero, bytes},
      .place = {.extent = 1, .inner_extent = 1, .block = 1},
      .elems = om_tensor_elems(om_gpu_input(b, 0)),
  };
  const char *reason = om_gpu_check_words(b, q.elems);
  if (!reason) reason = add_range(b, scale, zero);
  return reason ? reason : add_quantizing(b, &q);
}

static om_gpu_operand result_or_scratch(om_gpu_binder *b, uint32_t output) {
  return om_gpu_output(b, output) ? om_gpu_write(b, output) : om_gpu_scratch(b, sizeof(float));
}

static const char *bind_dynamic(om_gpu_binder *b) {
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  const om_gpu_operand scale = result_or_scratch(b, 1);
  const om_gpu_operand zero = result_or_scratch(b, 2);
  return om_gpu_bind_own_range(b, om_gpu_write(b, 0), scale, zero);
}

#define OM_GPU_QUANTIZE_ENTRY(of, name, types, function)                             \
  {.domain = of,                                                                     \
   .type = name,                                                                     \
   .dtypes = types,                                                                  \
   .has_exact = true,                                                                \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE | OM_PRIMITIVE_ROUND, \
   .bind = function}

#define OM_DT_QUANTIZED \
  (OM_DT_BYTE_INT | OM_DT(OM_DTYPE_I16) | OM_DT(OM_DTYPE_U16) | OM_DT(OM_DTYPE_I32))
#define OM_DT_QUANTIZABLE (OM_DT_REAL | OM_DT(OM_DTYPE_I32))

const om_gpu_op om_gpu_ops_quantize[] = {
    OM_GPU_QUANTIZE_ENTRY("", "DequantizeLinear", OM_DT_QUANTIZED, bind_dequantize),
    OM_GPU_QUANTIZE_ENTRY("", "DynamicQuantizeLinear", OM_DT(OM_DTYPE_F32), bind_dynamic),
    OM_GPU_QUANTIZE_ENTRY("", "QuantizeLinear", OM_DT_QUANTIZABLE, bind_quantize),
    OM_GPU_QUANTIZE_ENTRY("com.microsoft", "DequantizeLinear", OM_DT_QUANTIZED, bind_dequantize),
    OM_GPU_QUANTIZE_ENTRY("com.microsoft", "QuantizeLinear", OM_DT_QUANTIZABLE, bind_quantize),
    {.type = NULL},
};
