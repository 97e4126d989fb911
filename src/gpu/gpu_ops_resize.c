/* Resize and Upsample on the device: float32, the last two axes, by tables made on the host. */
#include "abi/resize_table_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_resize.h"

enum {
  THREADS = 128, /* of one workgroup; as resize.comp has it */
  MAX_TAPS = 64, /* of one axis: wider filters of antialiasing stay on the CPU */
};

/* What the table of one axis is made from. */
typedef struct table {
  const om_resize_params *params;
  const om_resize_axis *axis;
} table;

/* Pairs of words: the element (all ones: outside), the bits of the weight. */
static void fill_table(const void *arg, const void *source, void *target) {
  const table *t = arg;
  uint32_t *out = target;
  int32_t elems[MAX_TAPS];
  double weights[MAX_TAPS];
  (void)source;
  for (int64_t o = 0; o < t->axis->out; ++o) {
    const bool is_inside = om_resize_taps(t->params, t->axis, o, elems, weights);
    for (uint32_t tap = 0; tap < t->axis->taps; ++tap) {
      const float weight = (float)weights[tap];
      *out++ = is_inside ? (uint32_t)elems[tap] : UINT32_MAX;
      memcpy(out++, &weight, sizeof weight);
    }
  }
}

static om_gpu_operand table_of(om_gpu_binder *b,
                               const om_resize_params *params,
                               const om_resize_axis *axis) {
  const table t = {params, axis};
  const uint64_t bytes = (uint64_t)axis->out * axis->taps * 2 * sizeof(uint32_t);
  return om_gpu_made_constant(b, UINT32_MAX, "taps", bytes, fill_table, &t);
}

/* The inputs that decide about the shape and the taps are known while planning. */
static bool is_known(const om_gpu_binder *b, int8_t input) {
  const om_tensor *tensor = input < 0 ? NULL : om_gpu_input(b, (uint32_t)input);
  return !tensor || tensor->data || om_tensor_elems(tensor) == 0;
}

static const char *fit(const om_gpu_binder *b, om_resize_shape *shape) {
  enum { INPUTS = 4 };
  const om_resize_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *inputs[INPUTS];
  for (uint32_t i = 0; i < INPUTS; ++i) inputs[i] = om_gpu_input(b, i);
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (!is_known(b, params->scales_input) || !is_known(b, params->sizes_input) ||
      !is_known(b, params->roi_input)) {
    return "its scales, sizes or region are known at run time only";
  }
  om_resize_fit(params, inputs, INPUTS, shape);
  for (uint32_t i = 0; i < shape->rank; ++i) {
    if (i + 2 < shape->rank && !shape->axes[i].is_identity) {
      return "it resizes an axis other than the last two";
    }
    if (shape->axes[i].taps > MAX_TAPS) return "its antialiasing filter is too wide";
  }
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  static const om_resize_axis one = {
      .in = 1, .out = 1, .up = 1, .down = 1, .taps = 1, .is_identity = true};
  const om_resize_params *params = om_gpu_binder_node(b)->params;
  om_resize_shape shape;
  const char *reason = fit(b, &shape);
  if (reason) return reason;
  const om_resize_axis *y = shape.rank > 1 ? &shape.axes[shape.rank - 2] : &one;
  const om_resize_axis *x = shape.rank > 0 ? &shape.axes[shape.rank - 1] : &one;
  const uint64_t elems = om_tensor_elems(om_gpu_output(b, 0));
  const om_resize_table_params block = {
      .in_h = (uint32_t)y->in,
      .in_w = (uint32_t)x->in,
      .out_h = (uint32_t)y->out,
      .out_w = (uint32_t)x->out,
      .elems = (uint32_t)elems,
      .outside = params->extrapolation_value,
  };
  const om_gpu_operand operands[4] = {
      om_gpu_read(b, 0), table_of(b, params, y), table_of(b, params, x), om_gpu_write(b, 0)};
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, is_exact ? OM_SHADER_RESIZE_EXACT : OM_SHADER_RESIZE);
  if (!d) return om_gpu_no_memory;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = 4;
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = y->taps;
  d->constants[1] = x->taps;
  d->constant_count = 2;
  d->has_chain = true;
  d->chain_value = operands[3].index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * elems * y->taps * x->taps;
  om_gpu_spread_groups(b, (elems + THREADS - 1) / THREADS, d->groups);
  return NULL;
}

#define OM_GPU_RESIZE_ENTRY(name)         \
  {.domain = "",                          \
   .type = name,                          \
   .dtypes = OM_DT(OM_DTYPE_F32),         \
   .has_exact = true,                     \
   .primitives = OM_PRIMITIVE_ARITHMETIC, \
   .bind = bind}

extern const om_gpu_op om_gpu_ops_resize[];
const om_gpu_op om_gpu_ops_resize[] = {
    OM_GPU_RESIZE_ENTRY("Resize"),
    OM_GPU_RESIZE_ENTRY("Upsample"),
    {.type = NULL},
};
