/* Resize and Upsample on the device: float32 and float16, by tables made on the host, two axes a
 * dispatch from the last one on. Between dispatches stands float32. */
#include "abi/resize_table_params.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_resize.h"

enum { THREADS = 128 }; /* of one workgroup; as resize.comp has it */

/* What the table of one axis is made from; room for the taps of one result. */
typedef struct table {
  const om_resize_params *params;
  const om_resize_axis *axis;
  int32_t *elems;
  double *weights;
} table;

/* Pairs of words: the element (all ones: outside), the bits of the weight. */
static void fill_table(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const table *t = arg;
  uint32_t *out = target;
  (void)source;
  for (int64_t o = 0; o < t->axis->out; ++o) {
    const bool is_inside = om_resize_taps(t->params, t->axis, o, t->elems, t->weights);
    for (uint32_t tap = 0; tap < t->axis->taps; ++tap) {
      const float weight = (float)t->weights[tap];
      *out++ = is_inside ? (uint32_t)t->elems[tap] : UINT32_MAX;
      memcpy(out++, &weight, sizeof weight);
    }
  }
}

static om_gpu_operand table_of(om_gpu_binder *b,
                               const om_resize_params *params,
                               const om_resize_axis *axis) {
  const uint64_t bytes = (uint64_t)axis->out * axis->taps * 2 * sizeof(uint32_t);
  table t = {.params = params, .axis = axis};
  t.weights = OM_POOL_NEW(b->ctx, &b->plan->pool, double, axis->taps);
  t.elems = OM_POOL_NEW(b->ctx, &b->plan->pool, int32_t, axis->taps);
  if (!t.weights || !t.elems) {
    b->status = OM_E_OUT_OF_MEMORY;
    return (om_gpu_operand){.kind = OM_GPU_NOTHING};
  }
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
  return NULL;
}

/* One dispatch: axes a and b of [outer, a, mid, b, inner]. */
typedef struct pass {
  const om_resize_axis *a;
  const om_resize_axis *b;
  uint64_t outer, mid, inner;
} pass;

/* The pass for the last axes in front of `end` that change, given the results of those behind;
 * moves `end` in front of them. */
static pass next_pass(const om_resize_shape *shape, uint32_t *end) {
  static const om_resize_axis one = {
      .in = 1, .out = 1, .up = 1, .down = 1, .taps = 1, .is_identity = true};
  pass p = {.a = &one, .b = &one, .outer = 1, .mid = 1, .inner = 1};
  uint32_t i = shape->rank;
  for (; i > *end; --i) p.inner *= (uint64_t)shape->axes[i - 1].out;
  for (; i > 0 && shape->axes[i - 1].is_identity; --i) p.inner *= (uint64_t)shape->axes[i - 1].out;
  if (i > 0) p.b = &shape->axes[--i];
  for (; i > 0 && shape->axes[i - 1].is_identity; --i) p.mid *= (uint64_t)shape->axes[i - 1].out;
  if (i > 0) p.a = &shape->axes[--i];
  *end = i;
  for (; i > 0; --i) p.outer *= (uint64_t)shape->axes[i - 1].in;
  return p;
}

/* The kernels of a pass by its place: whether it takes the input, and makes the result. */
static const om_gpu_forms forms[2][2] = {
    {{{{OM_SHADER_RESIZE, OM_SHADER_RESIZE_EXACT}, {OM_SHADER_RESIZE, OM_SHADER_RESIZE_EXACT}}},
     {{{OM_SHADER_RESIZE, OM_SHADER_RESIZE_EXACT},
       {OM_SHADER_RESIZE_LAST, OM_SHADER_RESIZE_LAST_EXACT}}}},
    {{{{OM_SHADER_RESIZE, OM_SHADER_RESIZE_EXACT},
       {OM_SHADER_RESIZE_FIRST, OM_SHADER_RESIZE_FIRST_EXACT}}},
     OM_GPU_FORMS(RESIZE)},
};

static const char *add_pass(
    om_gpu_binder *b, const pass *p, om_gpu_operand from, om_gpu_operand to, uint64_t elems) {
  const bool is_first = from.kind != OM_GPU_SCRATCH, is_last = to.kind != OM_GPU_SCRATCH;
  const om_resize_params *params = om_gpu_binder_node(b)->params;
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  const om_resize_table_params block = {
      .in_a = (uint32_t)p->a->in,
      .in_b = (uint32_t)p->b->in,
      .out_a = (uint32_t)p->a->out,
      .out_b = (uint32_t)p->b->out,
      .elems = (uint32_t)elems,
      .outside = params->extrapolation_value,
  };
  const om_gpu_operand operands[4] = {
      from, table_of(b, params, p->a), table_of(b, params, p->b), to};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, om_gpu_form(b, &forms[is_first][is_last], dtype));
  if (!d) return om_gpu_no_memory;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = 4;
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = p->a->taps;
  d->constants[1] = p->b->taps;
  d->constants[2] = (uint32_t)p->mid;
  d->constants[3] = (uint32_t)p->inner;
  d->constant_count = 4;
  d->has_chain = true;
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * elems * p->a->taps * p->b->taps;
  om_gpu_spread_groups(b, om_gpu_pieces(elems, THREADS), d->groups);
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  om_resize_shape shape;
  const char *reason = fit(b, &shape);
  if (reason) return reason;
  uint32_t changed = 0;
  for (uint32_t i = 0; i < shape.rank; ++i) changed += !shape.axes[i].is_identity;
  if (changed == 0 && !om_gpu_input(b, 0)->data) {
    om_gpu_make_view(b);
    return NULL;
  }
  om_gpu_operand from = om_gpu_read(b, 0);
  uint32_t end = shape.rank;
  for (bool is_last = false; !is_last; changed -= 2) {
    const pass p = next_pass(&shape, &end);
    const uint64_t elems = p.outer * (uint64_t)p.a->out * p.mid * (uint64_t)p.b->out * p.inner;
    if (elems > INT32_MAX) return "its result is larger than the kernel counts";
    is_last = changed <= 2;
    const om_gpu_operand to =
        is_last ? om_gpu_write(b, 0) : om_gpu_scratch(b, elems * sizeof(float));
    reason = add_pass(b, &p, from, to, elems);
    if (reason) return reason;
    from = to;
  }
  return NULL;
}

#define OM_GPU_RESIZE_ENTRY(name)         \
  {.domain = "",                          \
   .type = name,                          \
   .dtypes = OM_DT_REAL,                  \
   .has_exact = true,                     \
   .primitives = OM_PRIMITIVE_ARITHMETIC, \
   .bind = bind}

extern const om_gpu_op om_gpu_ops_resize[];
const om_gpu_op om_gpu_ops_resize[] = {
    OM_GPU_RESIZE_ENTRY("Resize"),
    OM_GPU_RESIZE_ENTRY("Upsample"),
    {.type = NULL},
};
