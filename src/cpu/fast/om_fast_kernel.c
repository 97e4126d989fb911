/* Kernels: what products and convolutions share, and running them. */
#include <math.h>

#include "cpu/fast/om_fast_pass.h"
#include "cpu/fast/om_finish.h"

static void set_epilogue(const om_fast_epilogue *epilogue, om_fast_kernel *kernel) {
  const bool is_alone = epilogue->scale == 1.0f && !epilogue->has_residual;
  const bool clamps = om_epilogue_clamps(epilogue);
  kernel->epilogue = *epilogue;
  kernel->needs_finish = !is_alone || !clamps;
  kernel->is_clamped = is_alone && clamps && epilogue->activation != OM_FAST_NONE;
  kernel->low = -INFINITY;
  kernel->high = INFINITY;
  if (epilogue->activation == OM_FAST_RELU) kernel->low = 0.0f;
  if (epilogue->activation == OM_FAST_CLIP) {
    kernel->low = epilogue->alpha;
    kernel->high = epilogue->beta;
  }
}

om_status om_fast_kernel_new(om_ctx *ctx,
                             const om_fast_epilogue *epilogue,
                             size_t pass_count,
                             om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  om_fast_kernel *kernel = NULL;
  OM_GO_NEW(kernel, 1);
  set_epilogue(epilogue, kernel);
  kernel->set = om_tile_set_get();
  OM_GO_NEW(kernel->passes, pass_count);
  kernel->pass_count = pass_count;
  *out_kernel = kernel;
  kernel = NULL; /* the caller owns it now */
done:
  om_fast_kernel_destroy(ctx, kernel);
  return st;
}

/* Tiles add a residual themselves where all that follows is a cut. */
static void join_residual(om_fast_kernel *kernel) {
  const om_fast_epilogue *e = &kernel->epilogue;
  if (!e->has_residual || e->scale != 1.0f || !om_epilogue_clamps(e)) return;
  if (kernel->is_apart || kernel->winograd.slots > 0) return;
  for (size_t i = 0; i < kernel->pass_count; ++i) {
    if (kernel->passes[i].residual_step != 1) return;
  }
  kernel->adds_residual = true;
  kernel->needs_finish = false;
  kernel->is_clamped = e->activation != OM_FAST_NONE;
}

om_status om_fast_kernel_complete(om_ctx *ctx, om_fast_kernel *kernel) {
  om_status st = OM_OK;
  size_t zeros = OM_TILE_COLS;
  for (size_t i = 0; i < kernel->pass_count; ++i) {
    const om_fast_pass *pass = &kernel->passes[i];
    const size_t read = kernel->is_apart ? (size_t)pass->order.cols : pass->depth;
    if (read > zeros) zeros = read;
  }
  OM_GO_NEW(kernel->zeros, zeros);
  join_residual(kernel);
  kernel->scratch_bytes = kernel->x_bytes + kernel->y_bytes + kernel->w_bytes + kernel->slot_bytes;
done:
  return st;
}

void om_fast_kernel_destroy(om_ctx *ctx, om_fast_kernel *kernel) {
  if (!kernel) return;
  for (size_t i = 0; kernel->passes && i < kernel->pass_count; ++i) {
    om_delete(ctx, kernel->passes[i].taps);
  }
  om_delete(ctx, kernel->passes);
  om_delete(ctx, kernel->zeros);
  om_fast_packs_delete(ctx, kernel->own_packs);
  om_delete(ctx, kernel);
}

size_t om_fast_scratch_bytes(const om_fast_kernel *kernel) {
  return kernel->scratch_bytes;
}

/* ---- Weights of a run ---- */

static om_fast_placed place_packed(const om_fast_pass *pass, const float *packed) {
  const om_fast_order *o = &pass->order;
  const int64_t terms = o->taps[0] * o->taps[1] * o->taps[2] * o->depth;
  return (om_fast_placed){.w = packed,
                          .group_step = (int64_t)om_fast_group_elems(o),
                          .panel_step = o->width * terms,
                          .step = o->width};
}

/* Packs the weights of each element of a batch, or their last panels alone. */
static void pack_batch(om_ctx *ctx,
                       const om_fast_kernel *kernel,
                       int64_t first_panel,
                       int64_t elems,
                       const float *w,
                       float *target) {
  const om_fast_pass *pass = kernel->passes;
  int64_t total = 1;
  for (uint32_t axis = 0; axis < pass->batch_axes; ++axis) {
    if (pass->w_steps[axis] != 0) total *= pass->batch[axis];
  }
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    int64_t from = 0;
    for (uint32_t axis = pass->batch_axes; axis-- > 0;) {
      if (pass->w_steps[axis] == 0) continue;
      from += rest % pass->batch[axis] * pass->w_steps[axis];
      rest /= pass->batch[axis];
    }
    om_fast_pack_run(ctx, &pass->order, NULL, first_panel, w + from, target + i * elems);
  }
}

static om_fast_placed place_run(om_ctx *ctx,
                                const om_fast_kernel *kernel,
                                const float *w,
                                float *scratch) {
  const om_fast_pass *pass = kernel->passes;
  const om_fast_order *o = &pass->order;
  const int64_t last = om_fast_panel_count(o) - 1;
  om_fast_placed placed = place_packed(pass, scratch);
  if (kernel->weights == OM_FAST_TURNED) {
    pack_batch(ctx, kernel, 0, placed.group_step, w, scratch);
    for (uint32_t i = 0; i < pass->batch_axes; ++i) {
      placed.steps[i] = kernel->w_at[i] * placed.group_step;
    }
    return placed;
  }
  placed = (om_fast_placed){.w = w, .panel_step = o->width, .step = o->depth_stride};
  memcpy(placed.steps, pass->w_steps, sizeof placed.steps);
  if (kernel->w_bytes == 0) return placed;
  placed.last = scratch;
  placed.last_step = om_fast_panel_width(o, last);
  pack_batch(ctx, kernel, last, placed.last_step * o->depth, w, scratch);
  for (uint32_t i = 0; i < pass->batch_axes; ++i) {
    placed.last_steps[i] = kernel->w_at[i] * placed.last_step * o->depth;
  }
  return placed;
}

om_status om_fast_run(om_ctx *ctx, om_fast_kernel *kernel, const om_fast_operands *operands) {
  om_fast_operands o = *operands;
  uint8_t *scratch = o.scratch;
  if (kernel->turns_x) {
    memset(scratch, 0, kernel->x_bytes);
    om_strided_copy(ctx, &kernel->x_turn, sizeof(float), o.x, scratch);
    o.x = scratch;
  }
  if (kernel->turns_y) o.y = scratch + kernel->x_bytes;
  if (kernel->winograd.slots > 0) {
    om_fast_winograd_run(
        ctx, kernel, &o, (float *)(void *)(scratch + kernel->x_bytes + kernel->y_bytes));
  }
  for (size_t i = 0; kernel->winograd.slots == 0 && i < kernel->pass_count; ++i) {
    const om_fast_pass *pass = &kernel->passes[i];
    const om_fast_placed placed =
        kernel->weights == OM_FAST_PACKED
            ? place_packed(pass, pass->packed)
            : place_run(
                  ctx, kernel, o.w, (float *)(void *)(scratch + kernel->x_bytes + kernel->y_bytes));
    om_fast_pass_run(ctx, kernel, pass, &placed, &o);
  }
  if (kernel->turns_y) om_strided_copy(ctx, &kernel->y_turn, sizeof(float), o.y, operands->y);
  return OM_OK;
}
