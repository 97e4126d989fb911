/* Fusion: elementwise dispatches move into the chain of the dispatch before them.
 *
 *     Conv -> v -> Add(scalar) -> w -> Clip -> u -> Mul(v, u) -> y
 *     Conv [SAVE, Add s, Clip p q, Mul SAVED] -> y
 *
 * A chain grows step by step along its value. A step needs that
 *   - the value is read once, or twice where the chain keeps it (SAVE) and reads it again later;
 *   - nobody outside reads it: it is not read back;
 *   - the reader is an elementwise dispatch that reads it element by element (views in between
 *     change no order), and its other operands exist before the chain's own dispatch;
 *   - the chain has room: items, scalars, operands.
 * While a kept value waits for its second reader the chain is not yet safe; if the reader does not
 * come, the chain falls back to the last safe state.
 *
 * A chain has one pair (inner, channels) for VECTOR operands. What repeats in another way becomes a
 * REPEAT, which says by scalars of its own how: for each run of the result's dimensions that the
 * operand has too, the results inside it and its length.
 *
 * Every operation rounds on its own wherever it stands, so the bits do not change. Of float16 an
 * operator's result is rounded once more where it would have been stored: the item that begins the
 * next operator (or keeps the value) is marked for it. float32 and float16 do not mix in a chain.
 */
#include "abi/elementwise_params.h"
#include "gpu/om_gpu_state.h"

#define NO_LAUNCH UINT32_MAX

typedef struct value_use { /* of a root value within the region */
  uint32_t read_count;
  uint32_t readers[2]; /* launches; the first two reads in order */
  uint32_t writer;     /* NO_LAUNCH: comes from outside */
  uint32_t write_count;
  bool is_kept; /* read back: must stand in memory */
} value_use;

typedef struct fusing {
  const om_provider_plan *plan;
  om_gpu_region *region;
  value_use *uses; /* by root value */
} fusing;

typedef struct growth {
  om_gpu_chain chain;
  uint32_t value; /* what the chain makes now */
  uint32_t saved; /* root kept and not yet read again; OM_PLAN_NO_VALUE: none */
  bool is_half;   /* of float16 */
  uint32_t absorbed[OM_CHAIN_MAX_ITEMS];
  uint32_t absorbed_count;
  uint64_t flops;
} growth;

static uint32_t root_of(const fusing *f, const om_gpu_operand *operand) {
  return f->plan->roots[operand->index];
}

static void count_read(fusing *f, const om_gpu_operand *operand, uint32_t launch) {
  if (operand->kind != OM_GPU_VALUE) return;
  value_use *use = &f->uses[root_of(f, operand)];
  if (use->read_count < OM_COUNT_OF(use->readers)) use->readers[use->read_count] = launch;
  ++use->read_count;
}

static void count_uses(fusing *f) {
  for (size_t i = 0; i < f->plan->view->value_count; ++i) f->uses[i].writer = NO_LAUNCH;
  for (size_t i = 0; i < f->region->write_count; ++i) {
    f->uses[f->plan->roots[f->region->writes[i]]].is_kept = true;
  }
  for (uint32_t i = 0; i < f->region->launch_count; ++i) {
    const om_gpu_dispatch *d = f->region->launches[i].dispatch;
    uint32_t write_mask = om_shader_get(d->shader)->write_mask;
    for (uint32_t k = 0; k < d->operand_count; ++k) {
      if ((write_mask >> k & 1) == 0) {
        count_read(f, &d->operands[k], i);
      } else if (d->operands[k].kind == OM_GPU_VALUE) {
        value_use *use = &f->uses[root_of(f, &d->operands[k])];
        use->writer = i;
        ++use->write_count;
      }
    }
    for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
      count_read(f, &d->chain.operands[k], i);
    }
  }
}

static bool has_vector(const om_gpu_chain *chain) {
  for (uint32_t i = 0; i < chain->item_count; ++i) {
    if (chain->items[i].source == OM_CHAIN_VECTOR) return true;
  }
  return false;
}

bool om_gpu_reads_operand(const om_chain_item *item) {
  return item->source == OM_CHAIN_VECTOR || item->source == OM_CHAIN_TENSOR ||
         item->source == OM_CHAIN_BROADCAST || item->source == OM_CHAIN_REPEAT;
}

static bool is_root(const fusing *f, const om_gpu_operand *operand, uint32_t root) {
  return operand->kind == OM_GPU_VALUE && root_of(f, operand) == root;
}

/* True if the operand can be read by launch `at`. */
static bool exists_before(const fusing *f, const om_gpu_operand *operand, uint32_t at) {
  if (operand->kind != OM_GPU_VALUE) return true;
  uint32_t writer = f->uses[root_of(f, operand)].writer;
  return writer == NO_LAUNCH || writer < at;
}

/* How a reader's operand repeats where it is not as the chain has it. */
typedef struct repeat {
  uint32_t runs; /* 0: it does not */
  float scalars[2 * OM_CHAIN_MAX_RUNS];
} repeat;

/* Adds a run; false where there is no room, or where a number is not one of float32. */
static bool add_run(repeat *r, uint64_t inner, uint64_t count) {
  const float numbers[2] = {(float)inner, (float)count};
  const bool is_exact = (uint64_t)numbers[0] == inner && (uint64_t)numbers[1] == count;
  if (r->runs == OM_CHAIN_MAX_RUNS || !is_exact) return false;
  memcpy(r->scalars + 2 * r->runs++, numbers, sizeof numbers);
  return true;
}

/* Takes the pair (inner, channels) over where the chain has none yet; another one is a repeat. */
static bool agree_on_vectors(growth *g, const om_gpu_chain *other, repeat *out) {
  om_gpu_chain *chain = &g->chain;
  if (!has_vector(other)) return true;
  if (!has_vector(chain) && !chain->is_pair_fixed) {
    chain->inner = other->inner;
    chain->channels = other->channels;
  }
  if (chain->inner == other->inner && chain->channels == other->channels) return true;
  return add_run(out, other->inner, other->channels);
}

/* A reader that reads its other operand by masks; its main one must have the result's shape. */
static bool agree_on_masks(const om_gpu_dispatch *reader, repeat *out) {
  om_elementwise_kernel_params params;
  uint32_t extents[OM_MAX_RANK];
  uint64_t inner = 1;
  memcpy(&params, reader->params, sizeof params);
  memcpy(extents, &params.extent_0, sizeof extents);
  if (params.input_mask != 0) return false;
  for (uint32_t i = 0; i < params.rank; ++i) {
    if ((params.other_mask >> i & 1) == 0 && !add_run(out, inner, extents[i])) return false;
    inner *= extents[i];
  }
  return true;
}

/* Appends one item of a reader's chain, read from `operand` (NULL: none). */
static bool take_item(const fusing *f,
                      uint32_t at,
                      growth *g,
                      om_chain_item item,
                      const om_gpu_operand *operand,
                      const float *scalars) {
  if (item.source == OM_CHAIN_SAVED) return false;
  if (operand && item.source == OM_CHAIN_TENSOR && is_root(f, operand, g->saved)) {
    item.source = OM_CHAIN_SAVED;
    operand = NULL;
    g->saved = (uint32_t)OM_PLAN_NO_VALUE;
  }
  if (operand && !exists_before(f, operand, at)) return false;
  return om_gpu_chain_add(&g->chain, item, operand, scalars, om_chain_item_scalars(&item));
}

/* Kernels for Hopper read no repeats. */
static bool takes_repeats(const fusing *f, uint32_t at) {
  return om_shader_get(f->region->launches[at].dispatch->shader)->code_kind != OM_HAL_PTX;
}

/* Appends the chain of launch `reader`, which must start from the chain's value. */
static bool take_launch(const fusing *f, uint32_t at, uint32_t reader, growth *g) {
  const om_gpu_launch *launch = &f->region->launches[reader];
  const om_gpu_dispatch *d = launch->dispatch;
  const om_gpu_chain *chain = &d->chain;
  uint32_t root = f->plan->roots[g->value];
  uint32_t scalar = 0;
  repeat vectors = {.runs = 0}; /* of the reader's VECTOR items, */
  repeat masked = {.runs = 0};  /* and of its first, a BROADCAST */
  const bool is_masked = d->constants[0] != 0;
  if (launch->is_absorbed || !om_gpu_is_elementwise(d)) return false;
  if (chain->item_count == 0 || g->absorbed_count == OM_CHAIN_MAX_ITEMS) return false;
  if (f->plan->session->mode == OM_MODE_FAST && om_gpu_chain_turns(chain) &&
      !om_gpu_is_elementwise(f->region->launches[at].dispatch)) {
    return false;
  }
  if (om_gpu_chain_is_half(d) != g->is_half) return false;
  if (is_masked && !agree_on_masks(d, &masked)) return false;
  if (!agree_on_vectors(g, chain, &vectors)) return false;

  /* x + value is value + x with the operands told apart. */
  const om_chain_item *first = &chain->items[0];
  bool is_main = is_root(f, &d->operands[0], root);
  bool is_turned = !is_main && first->source == OM_CHAIN_TENSOR &&
                   is_root(f, &chain->operands[first->operand], root);
  if (!is_main && !is_turned) return false;
  for (uint32_t i = 0; i < chain->item_count; ++i) {
    om_chain_item item = chain->items[i];
    const bool has_operand = om_gpu_reads_operand(&item);
    const om_gpu_operand *operand = has_operand ? &chain->operands[item.operand] : NULL;
    const float *scalars = &chain->scalars[scalar];
    const repeat *own = item.source == OM_CHAIN_BROADCAST ? &masked : &vectors;
    if (item.source == OM_CHAIN_BROADCAST || (item.source == OM_CHAIN_VECTOR && own->runs != 0)) {
      item.source = OM_CHAIN_REPEAT;
      item.runs = (uint8_t)own->runs;
      scalars = own->scalars;
    }
    if (item.source == OM_CHAIN_REPEAT && !takes_repeats(f, at)) return false;
    if (i == 0) item.is_rounded = g->is_half;
    if (i == 0 && is_turned) {
      item.is_swapped = !item.is_swapped;
      operand = &d->operands[0];
    }
    if (!take_item(f, at, g, item, operand, scalars)) return false;
    scalar += om_chain_item_scalars(&chain->items[i]);
  }
  g->absorbed[g->absorbed_count++] = reader;
  g->value = d->chain_value;
  g->flops += d->flops;
  return true;
}

/* One step along the value; false where the chain ends. */
static bool grow_once(const fusing *f, uint32_t at, growth *g) {
  uint32_t root = f->plan->roots[g->value];
  const value_use *use = &f->uses[root];
  const om_chain_item save = {.op = OM_CHAIN_SAVE, .is_rounded = g->is_half};
  if (use->is_kept || use->read_count == 0 || use->read_count > 2) return false;
  if (use->read_count == 2) {
    if (g->saved != (uint32_t)OM_PLAN_NO_VALUE) return false;
    if (!om_gpu_chain_add(&g->chain, save, NULL, NULL, 0)) return false;
    g->saved = root;
  }
  return take_launch(f, at, use->readers[0], g);
}

static void replace_reader(fusing *f, const om_gpu_operand *operand, uint32_t from, uint32_t to) {
  if (operand->kind != OM_GPU_VALUE) return;
  value_use *use = &f->uses[root_of(f, operand)];
  for (size_t i = 0; i < OM_COUNT_OF(use->readers); ++i) {
    if (i < use->read_count && use->readers[i] == from) use->readers[i] = to;
  }
}

static void commit(fusing *f, uint32_t at, const growth *g) {
  om_gpu_dispatch *d = f->region->launches[at].dispatch;
  uint32_t write_mask = om_shader_get(d->shader)->write_mask;
  for (uint32_t k = 0; k < d->operand_count; ++k) {
    om_gpu_operand *operand = &d->operands[k];
    if ((write_mask >> k & 1) == 0 || operand->kind != OM_GPU_VALUE) continue;
    if (operand->index == d->chain_value) operand->index = g->value;
  }
  d->chain = g->chain;
  d->chain_value = g->value;
  d->flops += g->flops;
  f->uses[f->plan->roots[g->value]].writer = at;
  for (uint32_t i = 0; i < g->absorbed_count; ++i) {
    f->region->launches[g->absorbed[i]].is_absorbed = true;
    for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
      replace_reader(f, &d->chain.operands[k], g->absorbed[i], at);
    }
  }
}

static void grow_chain(fusing *f, uint32_t at) {
  const om_gpu_dispatch *d = f->region->launches[at].dispatch;
  if (!d->has_chain || f->region->launches[at].is_absorbed) return;
  const value_use *use = &f->uses[f->plan->roots[d->chain_value]];
  if (use->write_count != 1 || use->writer != at) return;
  growth now = {.chain = d->chain,
                .value = d->chain_value,
                .saved = (uint32_t)OM_PLAN_NO_VALUE,
                .is_half = om_gpu_chain_is_half(d)};
  growth safe = now;
  while (grow_once(f, at, &now)) {
    if (now.saved == (uint32_t)OM_PLAN_NO_VALUE) safe = now;
  }
  if (safe.absorbed_count > 0) commit(f, at, &safe);
}

/* A step is fused when all it records has moved elsewhere. */
static void mark_fused(const om_gpu_region *region, bool *is_fused) {
  for (size_t i = 0; i < region->launch_count; ++i) is_fused[region->launches[i].step] = true;
  for (size_t i = 0; i < region->launch_count; ++i) {
    if (!region->launches[i].is_absorbed) is_fused[region->launches[i].step] = false;
  }
}

om_status om_gpu_fuse(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region, bool *is_fused) {
  om_status st = OM_OK;
  fusing f = {.plan = plan, .region = region};
  OM_GO_NEW(f.uses, plan->view->value_count);
  count_uses(&f);
  for (uint32_t i = 0; i < region->launch_count; ++i) grow_chain(&f, i);
  OM_GO(om_gpu_fuse_norms(ctx, plan, region));
  om_gpu_fuse_pools(plan, region);
  OM_GO(om_gpu_fuse_gates(ctx, plan, region));
  mark_fused(region, is_fused);
done:
  om_delete(ctx, f.uses);
  return st;
}
