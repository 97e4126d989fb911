/* float16 on a device that cannot store 16 bits: there it is float32.
 *
 *     host: float16  --upload-->  device: float32  --readback-->  host: float16
 *
 * A plan then looks at a copy of the core's view in which every float16 is a float32, constants
 * included, so that binders, memory and fusion need not know. What differs is here: constants are
 * widened once for a session (those of a plan once for it), values as they are uploaded and read
 * back. That costs twice the memory, and no kernels.
 *
 * Results are rounded to float16's places where exact mode does it: after each operator, by an item
 * of its chain, or in a pass of its own where the kernel takes none. Fast mode rounds what a Cast
 * makes; the rest keeps float32's places until the host reads it.
 */
#include "abi/elementwise_params.h"
#include "base/om_float16.h"
#include "gpu/om_gpu_state.h"

static void widen(const om_tensor *tensor, float *target) {
  const size_t elems = om_tensor_elems(tensor);
  for (size_t i = 0; i < elems; ++i) {
    target[i] = om_gpu_real_at(OM_DTYPE_F16, tensor->data, i);
  }
}

/* ---- Constants ---- */

/* Found by where the data lies, or made. Memory is the session's. */
static om_status get_weight(om_ctx *ctx,
                            om_provider_session *session,
                            const om_tensor *tensor,
                            float **out_data) {
  for (size_t i = 0; i < session->wide_count; ++i) {
    const om_gpu_wide *wide = &session->wides[i];
    *out_data = wide->data;
    if (wide->source == tensor->data && wide->elems == om_tensor_elems(tensor)) return OM_OK;
  }
  OM_TRY(OM_GROW(ctx, session->wides, session->wide_count, session->wide_capacity));
  om_gpu_wide *wide = &session->wides[session->wide_count];
  *wide = (om_gpu_wide){.source = tensor->data, .elems = om_tensor_elems(tensor)};
  wide->data = om_new_bytes(ctx, wide->elems + 1, sizeof *wide->data);
  if (!wide->data) return OM_E_OUT_OF_MEMORY;
  ++session->wide_count;
  widen(tensor, wide->data);
  *out_data = wide->data;
  return OM_OK;
}

static om_status widen_value(om_ctx *ctx, om_provider_plan *plan, om_plan_value *value) {
  om_tensor *tensor = &value->tensor;
  float *data = NULL;
  if (tensor->dtype != OM_DTYPE_F16) return OM_OK;
  if (value->stored) {
    data = tensor->data; /* a name: who reads it widens it */
  } else if (tensor->data && value->is_weight) {
    OM_TRY(get_weight(ctx, plan->session, tensor, &data));
  } else if (tensor->data) {
    data = OM_POOL_NEW(ctx, &plan->pool, float, om_tensor_elems(tensor) + 1);
    if (!data) return OM_E_OUT_OF_MEMORY;
    widen(tensor, data);
  }
  *tensor = om_tensor_of(OM_DTYPE_F32, tensor->rank, tensor->dims, data);
  return OM_OK;
}

om_status om_gpu_widen_view(om_ctx *ctx, om_provider_plan *plan) {
  const om_plan_view *view = plan->host_view;
  if (!plan->session->widens_halves) return OM_OK;
  om_plan_value *values = OM_POOL_NEW(ctx, &plan->pool, om_plan_value, view->value_count);
  om_plan_view *wide = OM_POOL_NEW(ctx, &plan->pool, om_plan_view, 1);
  if (!values || !wide) return OM_E_OUT_OF_MEMORY;
  if (view->value_count > 0) memcpy(values, view->values, view->value_count * sizeof *values);
  for (size_t i = 0; i < view->value_count; ++i) OM_TRY(widen_value(ctx, plan, &values[i]));
  *wide = *view;
  wide->values = values;
  plan->view = wide;
  return OM_OK;
}

void om_gpu_widen_deinit(om_ctx *ctx, om_provider_session *session) {
  for (size_t i = 0; i < session->wide_count; ++i) om_delete(ctx, session->wides[i].data);
  om_delete(ctx, session->wides);
  om_delete(ctx, session->wide_room);
}

/* ---- Rounding ---- */

static om_dtype host_dtype(const om_gpu_binder *b, uint32_t value) {
  if (value == (uint32_t)OM_PLAN_NO_VALUE) return OM_DTYPE_NONE;
  return b->plan->host_view->values[value].tensor.dtype;
}

static bool is_widened(const om_gpu_binder *b, uint32_t input) {
  const om_plan_step *step = &b->plan->view->steps[b->step_index];
  if (!b->plan->session->widens_halves || input >= step->input_count) return false;
  return host_dtype(b, step->inputs[input]) == OM_DTYPE_F16;
}

const char *om_gpu_rounds_inside(const om_gpu_binder *b, uint32_t input) {
  if (om_gpu_binder_mode(b) != OM_MODE_EXACT || !is_widened(b, input)) return NULL;
  return "it rounds float16 inside, which needs 16-bit storage";
}

static bool add_rounding(om_gpu_chain *chain) {
  return om_gpu_chain_add(chain, (om_chain_item){.op = OM_CHAIN_ROUND_HALF}, NULL, NULL, 0);
}

static bool writes(const om_gpu_dispatch *d, uint32_t value) {
  for (uint32_t k = 0; k < d->operand_count; ++k) {
    if (d->operands[k].kind == OM_GPU_VALUE && d->operands[k].index == value) return true;
  }
  return false;
}

/* Rounds in the chains of the dispatches that write the value: one, or each its part. */
static bool round_in_chain(om_gpu_step *step, uint32_t value) {
  bool is_done = false;
  for (size_t i = 0; i < step->dispatch_count; ++i) {
    om_gpu_dispatch *d = &step->dispatches[i];
    if (!d->has_chain || d->chain_value != value || !writes(d, value)) continue;
    if (!add_rounding(&d->chain)) return false;
    is_done = true;
  }
  return is_done;
}

static const char *add_round_pass(om_gpu_binder *b, om_gpu_operand from, uint32_t value) {
  const om_tensor *tensor = &b->plan->view->values[value].tensor;
  const om_elementwise_kernel_params params = {.elems = (uint32_t)om_tensor_elems(tensor)};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, ELEMENTWISE, OM_DTYPE_F32));
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constant_count = 1;
  d->operands[0] = from;
  d->operands[1] = (om_gpu_operand){.kind = OM_GPU_VALUE, .index = value};
  d->operand_count = 2;
  d->has_chain = true;
  d->chain_value = value;
  d->chain.inner = d->chain.channels = 1;
  d->flops = params.elems;
  add_rounding(&d->chain);
  return NULL;
}

/* The step writes to scratch what it wrote to the value; a pass behind it rounds that. */
static const char *round_behind(om_gpu_binder *b, uint32_t value) {
  const om_tensor *tensor = &b->plan->view->values[value].tensor;
  const om_gpu_operand scratch = om_gpu_scratch(b, om_tensor_elems(tensor) * sizeof(float));
  for (size_t i = 0; i < b->step->dispatch_count; ++i) {
    om_gpu_dispatch *d = &b->step->dispatches[i];
    for (uint32_t k = 0; k < d->operand_count; ++k) {
      om_gpu_operand *operand = &d->operands[k];
      if (operand->kind != OM_GPU_VALUE || operand->index != value) continue;
      operand->kind = OM_GPU_SCRATCH;
      operand->index = scratch.index;
    }
    if (d->has_chain && d->chain_value == value) return "its chain is full";
  }
  return add_round_pass(b, scratch, value);
}

static bool is_cast(const om_node *node) {
  return strcmp(node->type, "Cast") == 0 || strcmp(node->type, "CastLike") == 0;
}

const char *om_gpu_round_results(om_gpu_binder *b) {
  const om_plan_step *step = &b->plan->view->steps[b->step_index];
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  const bool narrows = is_cast(step->node) && !is_widened(b, 0);
  if (!b->plan->session->widens_halves || (!is_exact && !narrows)) return NULL;
  if (b->step->is_view && !narrows) return NULL;
  for (uint32_t i = 0; i < step->output_count; ++i) {
    const uint32_t value = step->outputs[i];
    const char *reason = NULL;
    if (host_dtype(b, value) != OM_DTYPE_F16) continue;
    if (b->step->is_view) {
      b->step->is_view = false;
      reason = add_round_pass(b, om_gpu_read(b, 0), value);
    } else if (!round_in_chain(b->step, value)) {
      reason = round_behind(b, value);
    }
    if (reason) return reason;
  }
  return NULL;
}

/* ---- A run ---- */

size_t om_gpu_host_bytes(const om_provider_plan *plan, uint32_t value) {
  const om_tensor *tensor = &plan->host_view->values[value].tensor;
  size_t bytes = 0;
  return om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes) ? bytes : 0;
}

bool om_gpu_value_is_widened(const om_provider_plan *plan, uint32_t value) {
  return plan->view->values[value].tensor.dtype != plan->host_view->values[value].tensor.dtype;
}

om_status om_gpu_widen_room(om_ctx *ctx,
                            om_provider_session *session,
                            size_t elems,
                            float **out_room) {
  if (elems > session->wide_room_elems) {
    om_delete(ctx, session->wide_room);
    session->wide_room_elems = 0;
    session->wide_room = om_new_bytes(ctx, elems, sizeof *session->wide_room);
    if (!session->wide_room) return OM_E_OUT_OF_MEMORY;
    session->wide_room_elems = elems;
  }
  *out_room = session->wide_room;
  return OM_OK;
}

om_status om_gpu_widen_read(om_ctx *ctx,
                            om_provider_session *session,
                            const void *data,
                            size_t elems,
                            const void **out_wide) {
  float *room = NULL;
  OM_TRY(om_gpu_widen_room(ctx, session, elems, &room));
  for (size_t i = 0; i < elems; ++i) room[i] = om_gpu_real_at(OM_DTYPE_F16, data, i);
  *out_wide = room;
  return OM_OK;
}

void om_gpu_narrow(const float *wide, void *out_halves, size_t elems) {
  uint16_t *halves = out_halves;
  for (size_t i = 0; i < elems; ++i) halves[i] = om_f16_from_f32(wide[i]);
}
