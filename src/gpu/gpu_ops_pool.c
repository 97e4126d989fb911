/* Pools on the device: float32, one or two spatial axes; a MaxPool without its indices. */
#include <math.h>

#include "abi/pool_global_params.h"
#include "abi/pool_window_params.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_pool.h"

enum { WINDOW_THREADS = 128 }; /* of one workgroup; as pool.comp has it */

static const char *check(const om_node *node) {
  const om_pool_params *params = node->params;
  if (params->window.axis_count > 2) return "it has three spatial axes";
  return NULL;
}

static om_gpu_dispatch *add_result(om_gpu_binder *b, om_shader fast, uint64_t flops) {
  const om_gpu_operand x = om_gpu_read(b, 0);
  const om_gpu_operand y = om_gpu_write(b, 0);
  /* The exact variant stands behind the fast one in each shader's list. */
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, is_exact ? (om_shader)(fast + 1) : fast);
  if (!d) return NULL;
  d->operands[0] = x;
  d->operands[1] = y;
  d->operand_count = 2;
  d->has_chain = true;
  d->chain_value = y.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = flops;
  return d;
}

static const char *bind_global(om_gpu_binder *b, const om_pool_params *params, const om_window *w) {
  const om_pool_global_params global = {
      .planes = (uint32_t)(w->batch * w->channels),
      .plane_elems = (uint32_t)om_window_elems(w->in),
      .start = params->kind == OM_POOL_MAX ? -INFINITY : 0,
  };
  om_gpu_dispatch *d = add_result(
      b,
      params->kind == OM_POOL_MAX ? OM_SHADER_POOL_GLOBAL_MAX : OM_SHADER_POOL_GLOBAL_AVERAGE,
      (uint64_t)global.planes * global.plane_elems);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &global, sizeof global);
  d->params_bytes = sizeof global;
  om_gpu_spread_groups(b, global.planes, d->groups);
  return NULL;
}

static const char *bind_window(om_gpu_binder *b, const om_pool_params *params, const om_window *w) {
  const uint64_t elems = om_tensor_elems(om_gpu_output(b, 0));
  const om_pool_window_params window = {
      .in_h = (uint32_t)w->in[1],
      .in_w = (uint32_t)w->in[2],
      .out_h = (uint32_t)w->out[1],
      .out_w = (uint32_t)w->out[2],
      .kernel_h = (uint32_t)w->kernel[1],
      .kernel_w = (uint32_t)w->kernel[2],
      .stride_h = (uint32_t)w->stride[1],
      .stride_w = (uint32_t)w->stride[2],
      .dilation_h = (uint32_t)w->dilation[1],
      .dilation_w = (uint32_t)w->dilation[2],
      .pad_h = (uint32_t)w->pad_begin[1],
      .pad_w = (uint32_t)w->pad_begin[2],
      .counted_h =
          params->counts_padding ? (uint32_t)(w->pad_begin[1] + w->in[1] + w->pad_end[1]) : 0,
      .counted_w = (uint32_t)(w->pad_begin[2] + w->in[2] + w->pad_end[2]),
      .elems = (uint32_t)elems,
      .start = params->kind == OM_POOL_MAX ? -INFINITY : 0,
  };
  om_gpu_dispatch *d =
      add_result(b,
                 params->kind == OM_POOL_MAX ? OM_SHADER_POOL_MAX : OM_SHADER_POOL_AVERAGE,
                 elems * (uint64_t)(w->kernel[1] * w->kernel[2]));
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &window, sizeof window);
  d->params_bytes = sizeof window;
  om_gpu_spread_groups(b, (elems + WINDOW_THREADS - 1) / WINDOW_THREADS, d->groups);
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  const om_pool_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  om_window w;
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (om_gpu_output(b, 1)) return "its indices are wanted";
  if (x->rank > 4 && !params->is_global) return "it has three spatial axes";
  if (!om_pool_fit(params, x, &w)) return "its window does not fit";
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    const int64_t most = 1 << 24;
    if (w.in[i] > most || w.kernel[i] > most || w.stride[i] > most || w.pad_begin[i] > most ||
        w.pad_end[i] > most || om_window_reach(&w, (uint32_t)i) > 2 * most) {
      return "an extent, kernel, stride or pad is too large for the kernel";
    }
  }
  return params->is_global ? bind_global(b, params, &w) : bind_window(b, params, &w);
}

#define OM_GPU_POOL_ENTRY(name)                                 \
  {.domain = "",                                                \
   .type = name,                                                \
   .dtypes = OM_DT(OM_DTYPE_F32),                               \
   .has_exact = true,                                           \
   .primitives = OM_PRIMITIVE_ARITHMETIC | OM_PRIMITIVE_DIVIDE, \
   .check = check,                                              \
   .bind = bind}

extern const om_gpu_op om_gpu_ops_pool[];
const om_gpu_op om_gpu_ops_pool[] = {
    OM_GPU_POOL_ENTRY("AveragePool"),
    OM_GPU_POOL_ENTRY("GlobalAveragePool"),
    OM_GPU_POOL_ENTRY("GlobalMaxPool"),
    OM_GPU_POOL_ENTRY("MaxPool"),
    {.type = NULL},
};
