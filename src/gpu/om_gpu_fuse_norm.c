/* The sums in front of normalisations.
 *
 *     P [.. Add x] -> s -> norm -> y          becomes      P [..] -> p,   norm(p + x) -> y
 *
 * Where nobody else reads s, the normalisation makes it: a dispatch that only adds goes, and in
 * fast mode the last item of a chain moves where that is a gain.
 *
 * In fast mode of float16 that is how a stream of residuals stays unrounded, which is most of what
 * float16 costs an encoder: what is added to again is kept as float32, by the normalisations that
 * add. No other kernel reads or writes it.
 *
 *     s = p + x; y = norm(s); t = q + s; z = norm(t)      the first stores s, the second reads it:
 *                                                         s has no float16 (norm first)
 *     y = norm(s); t = q + y; z = norm(t)                 the first stores y in both types, the
 *                                                         second reads the float32 (norm last)
 *
 * A float16 is stored as well where anything else reads the value, and alone where such a sum has
 * another reader, or leaves the region. The launches are looked at from the end: whether a sum may
 * move depends on who adds to it later.
 */
#include "gpu/om_gpu_state.h"

enum { INPUT = 0, RESIDUAL = 3, OUTPUT = 4, WIDE = 5 }; /* operands of normalisations */

#define NO_LAUNCH UINT32_MAX

typedef struct sum_use { /* of a root value within the region */
  uint32_t read_count, write_count;
  uint32_t writer;         /* NO_LAUNCH: comes from outside */
  uint32_t residual_count; /* of the reads: residuals of normalisations that may read float32 */
  uint32_t first_residual; /* the first launch of those */
  bool is_kept;            /* read back: must stand in memory */
  bool is_wide;            /* stored as float32 */
} sum_use;

typedef struct summing {
  const om_provider_plan *plan;
  om_gpu_region *region;
  sum_use *uses; /* by root value */
} summing;

static sum_use *use_of(const summing *s, const om_gpu_operand *operand) {
  return operand->kind == OM_GPU_VALUE ? &s->uses[s->plan->roots[operand->index]] : NULL;
}

static void count_operand(const summing *s,
                          const om_gpu_operand *operand,
                          uint32_t at,
                          bool is_written) {
  sum_use *use = use_of(s, operand);
  if (!use) return;
  if (is_written) {
    use->writer = at;
    ++use->write_count;
  } else {
    ++use->read_count;
  }
}

static void count_uses(const summing *s) {
  for (size_t i = 0; i < s->plan->view->value_count; ++i) {
    s->uses[i] = (sum_use){.writer = NO_LAUNCH, .first_residual = NO_LAUNCH};
  }
  for (size_t i = 0; i < s->region->write_count; ++i) {
    s->uses[s->plan->roots[s->region->writes[i]]].is_kept = true;
  }
  for (uint32_t i = 0; i < s->region->launch_count; ++i) {
    const om_gpu_dispatch *d = s->region->launches[i].dispatch;
    const uint32_t write_mask = om_shader_get(d->shader)->write_mask;
    if (s->region->launches[i].is_absorbed) continue;
    for (uint32_t k = 0; k < d->operand_count; ++k) {
      count_operand(s, &d->operands[k], i, (write_mask >> k & 1) != 0);
    }
    for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
      count_operand(s, &d->chain.operands[k], i, false);
    }
  }
}

/* ---- Taking a sum ---- */

/* The last item of a dispatch's chain, if it adds a tensor of the result's shape. */
static const om_chain_item *last_sum(const om_gpu_dispatch *d) {
  const om_gpu_chain *chain = &d->chain;
  if (!d->has_chain || chain->item_count == 0) return NULL;
  const om_chain_item *item = &chain->items[chain->item_count - 1];
  return item->op == OM_CHAIN_Add && item->source == OM_CHAIN_TENSOR ? item : NULL;
}

/* Takes the last item off a chain, and its operand where that is the last one. True: the operand
 * stays, for an item before it. */
static bool drop_last(om_gpu_chain *chain) {
  const uint32_t operand = chain->items[--chain->item_count].operand;
  bool is_read = operand + 1 != chain->operand_count;
  for (uint32_t i = 0; i < chain->item_count; ++i) {
    const om_chain_item *item = &chain->items[i];
    is_read = is_read || (om_gpu_reads_operand(item) && item->operand == operand);
  }
  if (!is_read) --chain->operand_count;
  return is_read;
}

/* True if a sum is better made behind the dispatch whose chain has it: of float16 it is not rounded
 * then; and a kernel for Hopper has few warps, which wait for what a chain reads. */
static bool gains_without_sum(const om_gpu_dispatch *d) {
  return om_gpu_chain_is_half(d) || om_shader_get(d->shader)->code_kind == OM_HAL_PTX;
}

/* Moves the sum at a launch's end to the normalisation behind it. False: it cannot. */
static bool move_sum(const summing *s, om_gpu_launch *launch, om_gpu_dispatch *norm) {
  om_gpu_dispatch *d = launch->dispatch;
  const om_chain_item *sum = last_sum(d);
  if (!sum || om_gpu_chain_is_half(d) != om_gpu_chain_is_half(norm)) return false;
  const om_gpu_operand residual = d->chain.operands[sum->operand];
  if (om_gpu_is_elementwise(d) && d->constants[0] == 0 && d->chain.item_count == 1) {
    norm->operands[INPUT] = d->operands[0];
    launch->is_absorbed = true;
  } else if (s->plan->session->mode == OM_MODE_FAST && gains_without_sum(d)) {
    sum_use *use = use_of(s, &residual);
    if (drop_last(&d->chain) && use) ++use->read_count;
  } else {
    return false;
  }
  norm->operands[RESIDUAL] = residual;
  norm->takes_residual = false;
  return true;
}

/* The constant that says what becomes of residuals. */
static uint32_t *residual_of(om_gpu_dispatch *norm) {
  return &norm->constants[norm->constant_count - 1];
}

/* Whether a binding holds the value as float32. */
static bool fits_wide(const summing *s, uint32_t value) {
  const om_tensor *tensor = &s->plan->view->values[value].tensor;
  const uint64_t limit = s->plan->session->limits.max_binding_bytes;
  return om_tensor_elems(tensor) <= limit / sizeof(float);
}

/* Who reads the value besides its normalisation, launch `at`, are normalisations that add to it
 * later; none may be. */
static bool may_move(const summing *s, uint32_t at, const sum_use *use) {
  const om_gpu_dispatch *norm = s->region->launches[at].dispatch;
  const uint32_t others = use->read_count - 1;
  if (use->is_kept || use->write_count != 1 || use->writer == NO_LAUNCH) return false;
  if (others == 0) return true;
  return norm->takes_wide && others == use->residual_count && use->first_residual > at &&
         fits_wide(s, norm->operands[INPUT].index);
}

static void store_wide(sum_use *use, om_gpu_dispatch *norm, uint32_t value, om_gpu_residual what) {
  norm->operands[WIDE] = (om_gpu_operand){.kind = OM_GPU_WIDE, .index = value};
  *residual_of(norm) |= what;
  use->is_wide = true;
}

static void take_sum(const summing *s, uint32_t at) {
  om_gpu_dispatch *norm = s->region->launches[at].dispatch;
  sum_use *use = norm->takes_residual ? use_of(s, &norm->operands[INPUT]) : NULL;
  if (!use || !may_move(s, at, use)) return;
  const uint32_t value = norm->operands[INPUT].index;
  om_gpu_launch *source = &s->region->launches[use->writer];
  if (s->plan->roots[source->dispatch->chain_value] != s->plan->roots[value]) return;
  if (!move_sum(s, source, norm)) return;
  *residual_of(norm) = OM_GPU_RESIDUAL_SAME;
  if (use->residual_count > 0) store_wide(use, norm, value, OM_GPU_RESIDUAL_STORES_SUM);
  sum_use *residual = use_of(s, &norm->operands[RESIDUAL]);
  if (!residual || !norm->takes_wide) return;
  ++residual->residual_count;
  residual->first_residual = at;
}

/* ---- What is added to again ---- */

/* A normalisation's result that others add to, which is stored as float32, too. */
static void widen_result(const summing *s, uint32_t at) {
  om_gpu_dispatch *norm = s->region->launches[at].dispatch;
  sum_use *use = norm->takes_wide ? use_of(s, &norm->operands[OUTPUT]) : NULL;
  if (!use || use->residual_count == 0 || norm->operands[WIDE].kind == OM_GPU_WIDE) return;
  const uint32_t value = norm->operands[OUTPUT].index;
  if (use->write_count != 1 || !fits_wide(s, value)) return;
  store_wide(use, norm, value, OM_GPU_RESIDUAL_STORES_RESULT);
}

static void read_wide(const summing *s, uint32_t at) {
  om_gpu_dispatch *norm = s->region->launches[at].dispatch;
  const sum_use *use = norm->takes_wide ? use_of(s, &norm->operands[RESIDUAL]) : NULL;
  if (!use || !use->is_wide) return;
  norm->operands[RESIDUAL].kind = OM_GPU_WIDE;
  *residual_of(norm) ^= OM_GPU_RESIDUAL_SAME | OM_GPU_RESIDUAL_FLOATS;
}

static void read_all_wide(const summing *s) {
  for (uint32_t i = 0; i < s->region->launch_count; ++i) read_wide(s, i);
}

om_status om_gpu_fuse_norms(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region) {
  om_status st = OM_OK;
  summing s = {.plan = plan, .region = region};
  OM_GO_NEW(s.uses, plan->view->value_count);
  count_uses(&s);
  for (uint32_t i = (uint32_t)region->launch_count; i-- > 0;) {
    if (!region->launches[i].is_absorbed) take_sum(&s, i);
  }
  read_all_wide(&s);
  om_gpu_fuse_lookups(plan, region); /* its kernel stores and reads no other type */
  for (uint32_t i = 0; i < region->launch_count; ++i) widen_result(&s, i);
  read_all_wide(&s);
done:
  om_delete(ctx, s.uses);
  return st;
}
