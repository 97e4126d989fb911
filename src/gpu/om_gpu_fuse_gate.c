/* The end of a squeeze-and-excite block in one dispatch.
 *
 *     p (pooled) -> conv_point [bias, Relu] -> a -> conv_point [bias, HardSigmoid] -> g -> x * g
 *
 * The multiplication makes the gates g itself, and the values a, too, where that is little work:
 * each workgroup does it anew. The bits are those of the dispatches apart.
 */
#include "abi/conv_gate_params.h"
#include "abi/conv_point_params.h"
#include "gpu/om_gpu_state.h"

enum {
  GATE_CHANNELS = 32,         /* of one workgroup; as conv_gate.comp has it */
  GATE_PIXELS = 64,           /* of one workgroup */
  MOST_SQUEEZED = 64,         /* that a workgroup makes anew: they lie in its shared memory */
  MOST_SQUEEZE_TERMS = 16384, /* multiplications for them */
  MOST_EXCITED = 512,         /* terms of a gate that a workgroup makes anew */
};

static const om_gpu_forms point_forms = OM_GPU_FORMS(CONV_POINT);
static const om_gpu_forms gate_forms = OM_GPU_FORMS(CONV_GATE);
static const om_gpu_forms squeeze_forms = OM_GPU_FORMS(CONV_GATE_SQUEEZE);

typedef struct gating {
  const om_provider_plan *plan;
  om_gpu_region *region;
  uint32_t *read_counts; /* by root value, within the region; a value that is read back counts */
  uint32_t *writers;     /* launch + 1, or 0 */
} gating;

static uint32_t root_of(const gating *g, const om_gpu_operand *operand) {
  return g->plan->roots[operand->index];
}

static void count(gating *g) {
  for (size_t i = 0; i < g->region->write_count; ++i) {
    ++g->read_counts[g->plan->roots[g->region->writes[i]]];
  }
  for (uint32_t i = 0; i < g->region->launch_count; ++i) {
    const om_gpu_dispatch *d = g->region->launches[i].dispatch;
    if (g->region->launches[i].is_absorbed) continue;
    const uint32_t write_mask = om_shader_get(d->shader)->write_mask;
    for (uint32_t k = 0; k < d->operand_count; ++k) {
      if (d->operands[k].kind != OM_GPU_VALUE) continue;
      const uint32_t root = root_of(g, &d->operands[k]);
      if ((write_mask >> k & 1) != 0) {
        g->writers[root] = i + 1;
      } else {
        ++g->read_counts[root];
      }
    }
    for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
      if (d->chain.operands[k].kind == OM_GPU_VALUE) {
        ++g->read_counts[root_of(g, &d->chain.operands[k])];
      }
    }
  }
}

static bool is_of_form(om_shader shader, const om_gpu_forms *forms) {
  for (int i = 0; i < 4; ++i) {
    if (forms->by_half_and_exact[i / 2][i % 2] == shader) return true;
  }
  return false;
}

/* A product of few values with a bias and at most one operation that conv_gate.comp has. */
typedef struct product {
  uint32_t launch;
  const om_gpu_dispatch *dispatch;
  om_conv_point_params params;
  uint32_t operation; /* 0: none */
  float scalars[2];
} product;

static bool has_chain(const om_gpu_chain *chain, product *out) {
  enum { FIRST = OM_CHAIN_Relu, LAST = OM_CHAIN_HardSwish };
  if (chain->item_count < 1 || chain->item_count > 2) return false;
  if (chain->items[0].op != OM_CHAIN_Add || chain->items[0].source != OM_CHAIN_VECTOR) return false;
  if (chain->operands[0].kind != OM_GPU_CONSTANT || chain->operand_count != 1) return false;
  if (chain->item_count == 1) return true;
  out->operation = chain->items[1].op;
  memcpy(out->scalars, chain->scalars, sizeof out->scalars);
  return chain->items[1].source == OM_CHAIN_NONE && out->operation >= FIRST &&
         out->operation <= LAST;
}

/* The product that makes this operand, if nothing else reads it. */
static bool find_product(const gating *g, const om_gpu_operand *operand, product *out) {
  *out = (product){.launch = 0};
  if (operand->kind != OM_GPU_VALUE) return false;
  const uint32_t root = root_of(g, operand);
  if (g->read_counts[root] != 1 || g->writers[root] == 0) return false;
  out->launch = g->writers[root] - 1;
  out->dispatch = g->region->launches[out->launch].dispatch;
  if (!is_of_form(out->dispatch->shader, &point_forms)) return false;
  memcpy(&out->params, out->dispatch->params, sizeof out->params);
  return out->params.pixels == 1 && has_chain(&out->dispatch->chain, out);
}

/* x * g with one g for each plane: the operand of the gates, or NULL. */
static const om_gpu_operand *find_gates(const om_gpu_dispatch *d) {
  if (!om_gpu_is_elementwise(d) || d->constants[0] != 0) return NULL;
  if (d->chain.item_count != 1 || d->chain.operand_count != 1) return NULL;
  const om_chain_item *item = &d->chain.items[0];
  if (item->op != OM_CHAIN_Mul || item->source != OM_CHAIN_VECTOR) return NULL;
  return &d->chain.operands[0];
}

/* Turns the multiplication into the gate; `squeeze` (NULL: its values stand in memory) too. */
static void make_gate(const gating *g,
                      om_gpu_dispatch *d,
                      const product *excite,
                      const product *squeeze) {
  const bool is_exact = g->plan->session->mode == OM_MODE_EXACT;
  const bool is_half = om_gpu_chain_is_half(d);
  const product *first = squeeze ? squeeze : excite;
  const om_conv_gate_params params = {
      .channels = excite->params.out_channels,
      .squeezed = excite->params.in_channels,
      .pixels = d->chain.inner,
      .squeeze_columns = squeeze ? squeeze->params.w_columns : 0,
      .excite_columns = excite->params.w_columns,
      .squeeze_p = first->scalars[0],
      .squeeze_q = first->scalars[1],
      .excite_p = excite->scalars[0],
      .excite_q = excite->scalars[1],
  };
  const uint32_t images = d->chain.channels / params.channels;
  const om_gpu_operand nothing = {.kind = OM_GPU_NOTHING};
  const om_gpu_operand operands[7] = {
      d->operands[0],
      first->dispatch->operands[0],
      excite->dispatch->operands[1],
      excite->dispatch->chain.operands[0],
      squeeze ? squeeze->dispatch->operands[1] : nothing,
      squeeze ? squeeze->dispatch->chain.operands[0] : nothing,
      d->operands[1],
  };
  memset(d, 0, sizeof *d);
  d->shader = (squeeze ? &squeeze_forms : &gate_forms)->by_half_and_exact[is_half][is_exact];
  d->constants[0] = squeeze ? squeeze->operation : 0;
  d->constants[1] = excite->operation;
  d->constant_count = 2;
  d->operand_count = 7;
  d->params_bytes = sizeof params;
  d->groups[0] = (uint32_t)om_gpu_pieces(params.channels, GATE_CHANNELS);
  d->groups[1] = (uint32_t)om_gpu_pieces(params.pixels, GATE_PIXELS);
  d->groups[2] = images;
  d->flops = (uint64_t)images * params.channels * (params.pixels + 2 * params.squeezed);
  memcpy(d->operands, operands, sizeof operands);
  memcpy(d->params, &params, sizeof params);
}

static void fuse_gate(const gating *g, om_gpu_launch *launch) {
  om_gpu_dispatch *d = launch->dispatch;
  const om_hal_limits *limits = &g->plan->session->limits;
  product excite;
  product squeeze;
  if (launch->is_absorbed) return;
  const om_gpu_operand *gates = find_gates(d);
  if (!gates || !find_product(g, gates, &excite)) return;
  if (d->chain.channels % excite.params.out_channels != 0) return;
  if (excite.params.in_channels > MOST_EXCITED) return;
  if (d->chain.channels / excite.params.out_channels > limits->max_groups[2]) return;
  if (d->chain.inner / GATE_PIXELS >= limits->max_groups[1]) return;
  const bool squeezes =
      find_product(g, &excite.dispatch->operands[0], &squeeze) &&
      squeeze.params.out_channels <= MOST_SQUEEZED &&
      squeeze.params.out_channels * squeeze.params.in_channels <= MOST_SQUEEZE_TERMS &&
      squeeze.params.in_channels == excite.params.out_channels;
  make_gate(g, d, &excite, squeezes ? &squeeze : NULL);
  g->region->launches[excite.launch].is_absorbed = true;
  if (squeezes) g->region->launches[squeeze.launch].is_absorbed = true;
}

om_status om_gpu_fuse_gates(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region) {
  om_status st = OM_OK;
  gating g = {.plan = plan, .region = region};
  OM_GO_NEW(g.read_counts, plan->view->value_count);
  OM_GO_NEW(g.writers, plan->view->value_count);
  count(&g);
  for (uint32_t i = 0; i < region->launch_count; ++i) fuse_gate(&g, &region->launches[i]);
done:
  om_delete(ctx, g.read_counts);
  om_delete(ctx, g.writers);
  return st;
}
