/* What bind calls to answer: operands, constants, dispatches.
 *
 * The answer goes into the step of the plan. A failure that is not a refusal (memory, the device)
 * is kept in the binder's status, and the functions go on giving harmless results, so that a
 * binder needs one look at the end, which the caller takes.
 */
#include <stdarg.h>
#include <stdio.h>

#include "gpu/om_gpu_state.h"

const char om_gpu_no_memory[] = "there is no memory to prepare it";

om_mode om_gpu_binder_mode(const om_gpu_binder *b) {
  return b->plan->session->mode;
}

const om_hal_limits *om_gpu_binder_limits(const om_gpu_binder *b) {
  return &b->plan->session->limits;
}

const om_hal_features *om_gpu_binder_features(const om_gpu_binder *b) {
  return &b->plan->session->features;
}

bool om_gpu_takes_sm90(const om_gpu_binder *b, om_mode mode) {
  return om_gpu_binder_features(b)->sm90 && om_gpu_binder_mode(b) == mode;
}

bool om_gpu_works_alone(const om_gpu_binder *b) {
  return om_gpu_binder_features(b)->in_turn && om_gpu_binder_mode(b) != OM_MODE_EXACT;
}

om_shader om_gpu_form(const om_gpu_binder *b, const om_gpu_forms *forms, om_dtype dtype) {
  const bool is_exact = om_gpu_binder_mode(b) == OM_MODE_EXACT;
  return forms->by_half_and_exact[dtype == OM_DTYPE_F16][is_exact];
}

static const om_plan_step *plan_step(const om_gpu_binder *b) {
  return &b->plan->view->steps[b->step_index];
}

const om_node *om_gpu_binder_node(const om_gpu_binder *b) {
  return plan_step(b)->node;
}

/* The value behind an operand of the step, or NULL. */
static const om_plan_value *input_value(const om_gpu_binder *b, uint32_t index) {
  const om_plan_step *step = plan_step(b);
  if (index >= step->input_count || step->inputs[index] == (uint32_t)OM_PLAN_NO_VALUE) return NULL;
  return &b->plan->view->values[step->inputs[index]];
}

const om_tensor *om_gpu_input(const om_gpu_binder *b, uint32_t index) {
  const om_plan_value *value = input_value(b, index);
  return value ? &value->tensor : NULL;
}

bool om_gpu_is_at_hand(const om_gpu_binder *b, uint32_t index) {
  const om_plan_value *value = input_value(b, index);
  return value && value->tensor.data && !value->stored;
}

const om_tensor *om_gpu_output(const om_gpu_binder *b, uint32_t index) {
  const om_plan_step *step = plan_step(b);
  if (index >= step->output_count || step->outputs[index] == (uint32_t)OM_PLAN_NO_VALUE)
    return NULL;
  return &b->plan->view->values[step->outputs[index]].tensor;
}

static void stick(om_gpu_binder *b, om_status status) {
  if (b->status == OM_OK) b->status = status;
}

/* A range of a constant input's bytes; `bytes` 0: from the offset to its end. */
static om_gpu_source source_of(const om_plan_value *value, uint64_t offset, uint64_t bytes) {
  const om_tensor *tensor = &value->tensor;
  size_t whole = 0;
  if (!om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &whole)) whole = 0;
  return (om_gpu_source){
      .data = tensor->data,
      .stored = value->stored,
      .is_widened = value->stored && value->stored->tensor.dtype != tensor->dtype,
      .offset = offset,
      .bytes = bytes > 0 ? bytes : whole - offset,
  };
}

const void *om_gpu_data(om_gpu_binder *b, uint32_t input) {
  const om_plan_value *value = input_value(b, input);
  if (!value || !value->stored) return value ? value->tensor.data : NULL;
  const om_gpu_source source = source_of(value, 0, 0);
  void *data = om_pool_new_bytes(b->ctx, &b->plan->pool, (size_t)source.bytes, 1);
  om_status st = data ? om_gpu_source_read(b->ctx, &source, data) : OM_E_OUT_OF_MEMORY;
  if (st == OM_OK) return data;
  stick(b, st);
  return NULL;
}

/* An operand for a constant that is found or made; NOTHING after a failure. source NULL: none. */
static om_gpu_operand get_constant(om_gpu_binder *b,
                                   bool is_weight,
                                   const om_gpu_source *source,
                                   const char *recipe,
                                   uint64_t bytes,
                                   om_gpu_fill fill,
                                   const void *arg) {
  om_provider_plan *plan = b->plan;
  om_gpu_store *store = is_weight ? &plan->session->weights : &plan->store;
  om_gpu_block block;
  om_gpu_operand nothing = {.kind = OM_GPU_NOTHING};
  om_status st = OM_GROW(b->ctx, plan->constants, plan->constant_count, plan->constant_capacity);
  if (st == OM_OK) {
    st = om_gpu_store_get(b->ctx, plan->session, store, source, recipe, bytes, fill, arg, &block);
  }
  if (st != OM_OK) {
    stick(b, st);
    return nothing;
  }
  plan->constants[plan->constant_count] = block;
  return (om_gpu_operand){.kind = OM_GPU_CONSTANT, .index = (uint32_t)plan->constant_count++};
}

om_gpu_operand om_gpu_read(om_gpu_binder *b, uint32_t input) {
  const om_plan_value *value = input_value(b, input);
  size_t bytes = 0;
  if (!value) return (om_gpu_operand){.kind = OM_GPU_NOTHING};
  const om_tensor *tensor = &value->tensor;
  if (!tensor->data) {
    return (om_gpu_operand){.kind = OM_GPU_VALUE, .index = plan_step(b)->inputs[input]};
  }
  if (!om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes) || bytes == 0) {
    return (om_gpu_operand){.kind = OM_GPU_NOTHING};
  }
  const om_gpu_source source = source_of(value, 0, bytes);
  return get_constant(b, value->is_weight, &source, "as it is", bytes, NULL, NULL);
}

om_gpu_operand om_gpu_read_part(om_gpu_binder *b, uint32_t input, uint64_t offset, uint64_t bytes) {
  const om_plan_value *value = input_value(b, input);
  const om_gpu_source source = source_of(value, offset, bytes);
  return get_constant(b, value->is_weight, &source, "as it is", bytes, NULL, NULL);
}

om_gpu_operand om_gpu_write(om_gpu_binder *b, uint32_t output) {
  if (!om_gpu_output(b, output)) return (om_gpu_operand){.kind = OM_GPU_NOTHING};
  return (om_gpu_operand){.kind = OM_GPU_VALUE, .index = plan_step(b)->outputs[output]};
}

om_gpu_operand om_gpu_scratch(om_gpu_binder *b, uint64_t bytes) {
  om_gpu_step *step = b->step;
  om_status st = OM_GROW(b->ctx, step->scratch_bytes, step->scratch_count, step->scratch_capacity);
  if (st != OM_OK) {
    stick(b, st);
    return (om_gpu_operand){.kind = OM_GPU_NOTHING};
  }
  step->scratch_bytes[step->scratch_count] = om_size_align(bytes, 4);
  return (om_gpu_operand){.kind = OM_GPU_SCRATCH, .index = (uint32_t)step->scratch_count++};
}

om_gpu_operand om_gpu_made_constant(om_gpu_binder *b,
                                    uint32_t input,
                                    const char *recipe,
                                    uint64_t bytes,
                                    om_gpu_fill fill,
                                    const void *arg) {
  const om_plan_value *value = input_value(b, input);
  if (!value) return get_constant(b, false, NULL, recipe, bytes, fill, arg);
  const om_gpu_source source = source_of(value, 0, 0);
  return get_constant(b, value->is_weight, &source, recipe, bytes, fill, arg);
}

om_gpu_operand om_gpu_made_once(om_gpu_binder *b,
                                uint32_t input,
                                const char *recipe,
                                uint64_t bytes,
                                om_gpu_fill fill,
                                const void *arg) {
  om_gpu_source source = source_of(input_value(b, input), 0, 0);
  source.is_lost = true;
  return get_constant(b, false, &source, recipe, bytes, fill, arg);
}

om_gpu_operand om_gpu_made_part(om_gpu_binder *b,
                                const om_gpu_part *part,
                                const char *recipe,
                                uint64_t bytes,
                                om_gpu_fill fill,
                                const void *arg) {
  const om_plan_value *value = input_value(b, part->input);
  const om_gpu_source source = source_of(value, part->offset, part->bytes);
  return get_constant(b, value->is_weight, &source, recipe, bytes, fill, arg);
}

om_gpu_dispatch *om_gpu_add_dispatch(om_gpu_binder *b, om_shader shader) {
  om_gpu_step *step = b->step;
  om_status st = OM_GROW(b->ctx, step->dispatches, step->dispatch_count, step->dispatch_capacity);
  if (st != OM_OK) {
    stick(b, st);
    return NULL;
  }
  om_gpu_dispatch *dispatch = &step->dispatches[step->dispatch_count++];
  *dispatch = (om_gpu_dispatch){.shader = shader, .groups = {1, 1, 1}};
  return dispatch;
}

void om_gpu_make_view(om_gpu_binder *b) {
  b->step->is_view = true;
}

const char *om_gpu_reason(om_gpu_binder *b, const char *fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  const char *kept = om_pool_text(b->ctx, &b->plan->pool, text, strlen(text));
  if (kept) return kept;
  stick(b, OM_E_OUT_OF_MEMORY);
  return om_gpu_no_memory;
}

void om_gpu_split_groups(const om_hal_limits *limits, uint64_t count, uint32_t out_groups[3]) {
  out_groups[0] = out_groups[1] = out_groups[2] = 1;
  for (int axis = 0; axis < 3; ++axis) {
    uint64_t limit = limits->max_groups[axis];
    if (count <= limit) {
      out_groups[axis] = count > 0 ? (uint32_t)count : 1;
      return;
    }
    /* The least number of rows that suffices keeps the overhang below one row. */
    out_groups[axis] = (uint32_t)limit;
    count = om_gpu_pieces(count, limit);
  }
}

void om_gpu_spread_groups(const om_gpu_binder *b, uint64_t count, uint32_t out_groups[3]) {
  om_gpu_split_groups(&b->plan->session->limits, count, out_groups);
}
