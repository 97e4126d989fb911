/* Pools on the device: float32 and float16, one to three spatial axes. A window's kernel and stride
 * are constants of the kernel, so that its loops are known to the compiler.
 */
#include "abi/pool_global_params.h"
#include "abi/pool_window_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_pool.h"

enum {
  WINDOW_THREADS = 128, /* of one workgroup; as pool.comp has it */
  SMALL_PLANES = 8,     /* of one workgroup; as pool_global.comp has it */
  ALONE_PLANES = 64,    /* likewise, where each invocation takes one */
  SMALL_PLANE = 1024,   /* elements: 32 for each of its invocations */
};

/* By om_pool_kind. */
static const om_gpu_forms window_forms[] = {
    OM_GPU_FORMS(POOL_MAX), OM_GPU_FORMS(POOL_AVERAGE), OM_GPU_FORMS(POOL_POWERS)};
static const om_gpu_forms global_forms[] = {OM_GPU_FORMS(POOL_GLOBAL_MAX),
                                            OM_GPU_FORMS(POOL_GLOBAL_AVERAGE),
                                            OM_GPU_FORMS(POOL_GLOBAL_POWERS)};
static const om_gpu_forms indices_forms = OM_GPU_FORMS(POOL_MAX_INDICES);

/* Fast mode's, for small planes, by kind and type. */
static const om_shader small_shaders[][2] = {
    {OM_SHADER_POOL_GLOBAL_MAX_SMALL, OM_SHADER_POOL_GLOBAL_MAX_SMALL_HALF},
    {OM_SHADER_POOL_GLOBAL_AVERAGE_SMALL, OM_SHADER_POOL_GLOBAL_AVERAGE_SMALL_HALF},
    {OM_SHADER_POOL_GLOBAL_POWERS_SMALL, OM_SHADER_POOL_GLOBAL_POWERS_SMALL_HALF}};

/* Fast mode's, where each invocation takes a plane, by kind and type. */
static const om_shader alone_shaders[][2] = {
    {OM_SHADER_POOL_GLOBAL_MAX_ALONE, OM_SHADER_POOL_GLOBAL_MAX_ALONE_HALF},
    {OM_SHADER_POOL_GLOBAL_AVERAGE_ALONE, OM_SHADER_POOL_GLOBAL_AVERAGE_ALONE_HALF},
    {OM_SHADER_POOL_GLOBAL_POWERS_ALONE, OM_SHADER_POOL_GLOBAL_POWERS_ALONE_HALF}};

/* The result, or scratch in its place where only the indices are read. */
static om_gpu_operand write_result(om_gpu_binder *b, uint64_t elems) {
  return om_gpu_output(b, 0) ? om_gpu_write(b, 0) : om_gpu_scratch(b, elems * sizeof(float));
}

static om_gpu_dispatch *add_result(om_gpu_binder *b, const om_gpu_forms *forms, uint64_t elems) {
  const om_gpu_operand operands[3] = {
      om_gpu_read(b, 0), write_result(b, elems), om_gpu_write(b, 1)};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, om_gpu_form(b, forms, om_gpu_input(b, 0)->dtype));
  if (!d) return NULL;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = om_gpu_output(b, 1) ? 3 : 2;
  d->has_chain = true;
  /* No chain grows along indices, as no float operator reads them. */
  d->chain_value = om_gpu_output(b, 0) ? operands[1].index : operands[2].index;
  d->chain.inner = d->chain.channels = 1;
  return d;
}

static const char *bind_global(om_gpu_binder *b, const om_pool_params *params, const om_window *w) {
  const om_pool_global_params global = {
      .planes = (uint32_t)(w->batch * w->channels),
      .plane_elems = (uint32_t)om_window_elems(w->in),
      .exponent = params->exponent,
      .root = 1 / params->exponent,
  };
  om_gpu_dispatch *d = add_result(b, &global_forms[params->kind], global.planes);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &global, sizeof global);
  d->params_bytes = sizeof global;
  d->flops = (uint64_t)global.planes * global.plane_elems;
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const bool is_small = om_gpu_binder_mode(b) != OM_MODE_EXACT && global.plane_elems <= SMALL_PLANE;
  uint64_t group_planes = 1;
  if (om_gpu_works_alone(b)) {
    d->shader = alone_shaders[params->kind][is_half];
    group_planes = ALONE_PLANES;
  } else if (is_small) {
    d->shader = small_shaders[params->kind][is_half];
    group_planes = SMALL_PLANES;
  }
  om_gpu_spread_groups(b, om_gpu_pieces(global.planes, group_planes), d->groups);
  return NULL;
}

static om_pool_window_params describe(const om_pool_params *params, const om_window *w) {
  enum { AXES = OM_WINDOW_AXES };
  const bool counts_padding = params->counts_padding;
  om_pool_window_params block = {
      .elems = (uint32_t)((size_t)(w->batch * w->channels) * om_window_elems(w->out)),
      .is_by_column = params->is_column_major,
      .exponent = params->exponent,
      .root = 1 / params->exponent,
  };
  uint32_t axes[5][AXES];
  for (int i = 0; i < AXES; ++i) {
    axes[0][i] = (uint32_t)w->in[i];
    axes[1][i] = (uint32_t)w->out[i];
    axes[2][i] = (uint32_t)w->dilation[i];
    axes[3][i] = (uint32_t)w->pad_begin[i];
    axes[4][i] = counts_padding ? (uint32_t)(w->pad_begin[i] + w->in[i] + w->pad_end[i]) : 0;
  }
  memcpy(&block.in_d, axes, sizeof axes);
  return block;
}

static const char *bind_window(om_gpu_binder *b, const om_pool_params *params, const om_window *w) {
  const om_pool_window_params window = describe(params, w);
  const bool wants_indices = om_gpu_output(b, 1) != NULL;
  const om_gpu_forms *forms = wants_indices ? &indices_forms : &window_forms[params->kind];
  om_gpu_dispatch *d = add_result(b, forms, window.elems);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &window, sizeof window);
  d->params_bytes = sizeof window;
  for (uint32_t i = 0; i < OM_WINDOW_AXES; ++i) {
    d->constants[i] = (uint32_t)w->kernel[i];
    d->constants[OM_WINDOW_AXES + i] = (uint32_t)w->stride[i];
  }
  d->constant_count = 2 * OM_WINDOW_AXES;
  d->flops = window.elems * (uint64_t)om_window_elems(w->kernel);
  om_gpu_spread_groups(b, om_gpu_pieces(window.elems, WINDOW_THREADS), d->groups);
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  const om_pool_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  om_window w;
  if (!om_gpu_output(b, 0) && !om_gpu_output(b, 1)) return "nothing reads its result";
  if (!om_pool_fit(params, x, &w)) return "its window does not fit";
  if ((uint64_t)(w.batch * w.channels) * om_window_elems(w.out) > INT32_MAX) {
    return "its result is larger than the kernel counts";
  }
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    const int64_t most = 1 << 24;
    if (w.in[i] > most || w.kernel[i] > most || w.stride[i] > most || w.pad_begin[i] > most ||
        w.pad_end[i] > most || om_window_reach(&w, (uint32_t)i) > 2 * most) {
      return "an extent, kernel, stride or pad is too large for the kernel";
    }
  }
  return params->is_global ? bind_global(b, params, &w) : bind_window(b, params, &w);
}

#define OM_GPU_POOL_ENTRY(name, rests_on)              \
  {.domain = "",                                       \
   .type = name,                                       \
   .dtypes = OM_DT_REAL,                               \
   .has_exact = true,                                  \
   .primitives = OM_PRIMITIVE_ARITHMETIC | (rests_on), \
   .bind = bind}
#define OM_POWERS (OM_PRIMITIVE_SQRT | OM_PRIMITIVE_FUNCTIONS)

extern const om_gpu_op om_gpu_ops_pool[];
const om_gpu_op om_gpu_ops_pool[] = {
    OM_GPU_POOL_ENTRY("AveragePool", OM_PRIMITIVE_DIVIDE),
    OM_GPU_POOL_ENTRY("GlobalAveragePool", OM_PRIMITIVE_DIVIDE),
    OM_GPU_POOL_ENTRY("GlobalLpPool", OM_POWERS),
    OM_GPU_POOL_ENTRY("GlobalMaxPool", 0),
    OM_GPU_POOL_ENTRY("LpPool", OM_POWERS),
    OM_GPU_POOL_ENTRY("MaxPool", 0),
    {.type = NULL},
};
