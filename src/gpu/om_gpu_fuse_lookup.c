/* Embeddings in one dispatch.
 *
 *     Gather(words, ids) ---- Add -- Add(places) -- LayerNormalization -> y
 *     Gather(kinds, types) ---+
 *
 * becomes one launch of layernorm_subgroup.comp's _lookup variants, which reads the rows where they
 * lie: one to three terms, each a tensor or a row of a table by an index, at least one of the
 * latter. Sums stay in the order of the additions, so the bits do not change; float16 sums of fast
 * mode are not rounded on their way. Demands on the indices stay launches of their own.
 */
#include "abi/gather_params.h"
#include "abi/layernorm_params.h"
#include "abi/lookup_params.h"
#include "gpu/om_gpu_rows.h"
#include "gpu/om_gpu_state.h"

enum { MOST_TERMS = 3 };

static const om_gpu_forms lookup_forms = OM_GPU_FORMS(LAYERNORM_LOOKUP);

static const om_shader norms[] = {
    OM_SHADER_LAYERNORM,
    OM_SHADER_LAYERNORM_EXACT,
    OM_SHADER_LAYERNORM_HALF,
    OM_SHADER_LAYERNORM_HALF_EXACT,
    OM_SHADER_LAYERNORM_ALONE,
    OM_SHADER_LAYERNORM_ALONE_HALF,
    OM_SHADER_LAYERNORM_SUBGROUP,
    OM_SHADER_LAYERNORM_SUBGROUP_EXACT,
    OM_SHADER_LAYERNORM_SUBGROUP_HALF,
    OM_SHADER_LAYERNORM_SUBGROUP_HALF_EXACT,
    OM_SHADER_NORM_SM90_768,
    OM_SHADER_NORM_SM90_768_HALF,
    OM_SHADER_NORM_SM90_2048,
    OM_SHADER_NORM_SM90_2048_HALF,
};

typedef struct lookup_term {
  om_gpu_operand rows;
  uint32_t period;       /* rows after which it repeats */
  om_gpu_launch *gather; /* NULL: the rows are read as they are */
  uint32_t extent;       /* of the table */
} lookup_term;

typedef struct lookup {
  const om_provider_plan *plan;
  om_gpu_region *region;
  size_t at; /* the normalisation's launch */
  om_layernorm_kernel_params norm;
  uint32_t quads; /* of an invocation */
  lookup_term terms[MOST_TERMS];
  uint32_t term_count;
  om_gpu_launch *sum; /* NULL: it has none by itself */
} lookup;

/* Rows of quads that stand one after the other, and all have one scale and one bias. */
static bool find_norm(lookup *l) {
  const om_gpu_dispatch *d = l->region->launches[l->at].dispatch;
  const om_provider_session *session = l->plan->session;
  bool is_norm = false;
  for (size_t i = 0; i < OM_COUNT_OF(norms); ++i) is_norm = is_norm || d->shader == norms[i];
  if (!is_norm || l->region->launches[l->at].is_absorbed || d->chain.item_count != 0) return false;
  if (d->operands[3].kind == OM_GPU_WIDE || d->operands[5].kind == OM_GPU_WIDE) return false;
  const om_layernorm_kernel_params *p = memcpy(&l->norm, d->params, sizeof l->norm);
  l->quads = om_gpu_row_quads(&session->features, &session->limits, p->row_elems);
  const bool is_dense = p->row_count <= 1 || (p->inner == 1 && p->outer_stride == p->row_elems);
  return l->quads != 0 && is_dense && p->elem_stride == 1 && p->place_row_step == 0 &&
         p->place_inner == 1 && p->place_period == p->row_elems;
}

/* How often launches and the host read the value. */
static uint32_t count_reads(const lookup *l, uint32_t root) {
  uint32_t count = 0;
  for (size_t i = 0; i < l->region->write_count; ++i) {
    count += l->plan->roots[l->region->writes[i]] == root;
  }
  for (size_t i = 0; i < l->region->launch_count; ++i) {
    const om_gpu_dispatch *d = l->region->launches[i].dispatch;
    const uint32_t write_mask = om_shader_get(d->shader)->write_mask;
    if (l->region->launches[i].is_absorbed) continue;
    for (uint32_t k = 0; k < d->operand_count + d->chain.operand_count; ++k) {
      const bool is_own = k < d->operand_count;
      const om_gpu_operand *o = is_own ? &d->operands[k] : &d->chain.operands[k - d->operand_count];
      if (o->kind != OM_GPU_VALUE || (is_own && (write_mask >> k & 1) != 0)) continue;
      count += l->plan->roots[o->index] == root;
    }
  }
  return count;
}

/* The launch that makes the operand for nobody else; NULL: there is none. */
static om_gpu_launch *sole_writer(const lookup *l, const om_gpu_operand *operand) {
  if (operand->kind != OM_GPU_VALUE) return NULL;
  const uint32_t root = l->plan->roots[operand->index];
  return count_reads(l, root) == 1 ? om_gpu_find_writer(l->plan, l->region, l->at, root) : NULL;
}

/* Bytes of a row that the kernel gathers by an index each from a whole table; 0: it does not. */
static uint64_t gathered_bytes(const om_gpu_dispatch *d, const om_gather_rows_params *p) {
  if (p->held != p->extent || p->words != (uint64_t)p->row_words * p->index_count) return 0;
  if (d->shader == OM_SHADER_GATHER_VEC4) return (uint64_t)p->row_words * 16;
  return d->shader == OM_SHADER_GATHER ? (uint64_t)p->row_words * 4 : 0;
}

/* Appends a term that repeats after `period` rows. */
static bool add_term(lookup *l, om_gpu_operand operand, uint32_t period) {
  const om_gpu_dispatch *norm = l->region->launches[l->at].dispatch;
  const uint64_t row_bytes = l->norm.row_elems * (om_gpu_chain_is_half(norm) ? 2u : 4u);
  om_gather_rows_params p;
  if (l->term_count == MOST_TERMS) return false;
  lookup_term *term = &l->terms[l->term_count++];
  *term = (lookup_term){.rows = operand, .period = period, .extent = period};
  om_gpu_launch *writer = sole_writer(l, &operand);
  if (!writer) return true;
  memcpy(&p, writer->dispatch->params, sizeof p);
  if (gathered_bytes(writer->dispatch, &p) != row_bytes || p.index_count != period) return true;
  term->gather = writer;
  term->extent = p.extent;
  return true;
}

/* The terms of a launch that does nothing but add tensors, or rows that repeat. */
static bool add_sum(lookup *l, om_gpu_launch *launch) {
  const om_gpu_dispatch *d = launch->dispatch;
  const om_gpu_chain *chain = &d->chain;
  const uint32_t row = l->norm.row_elems;
  if (!om_gpu_is_elementwise(d) || d->constants[0] != 0 || chain->item_count == 0) return false;
  if (!add_term(l, d->operands[0], l->norm.row_count)) return false;
  for (uint32_t i = 0; i < chain->item_count; ++i) {
    const om_chain_item *item = &chain->items[i];
    const bool repeats = item->source == OM_CHAIN_VECTOR && chain->inner == 1;
    const uint32_t elems = repeats ? chain->channels : row;
    if (item->op != OM_CHAIN_Add || elems % row != 0) return false;
    if (item->source != OM_CHAIN_TENSOR && !repeats) return false;
    const uint32_t period = repeats ? elems / row : l->norm.row_count;
    if (!add_term(l, chain->operands[item->operand], period)) return false;
  }
  l->sum = launch;
  return true;
}

static bool add_sum_of(lookup *l, const om_gpu_operand *operand) {
  om_gpu_launch *writer = sole_writer(l, operand);
  if (writer && add_sum(l, writer)) return true;
  memset(l->terms, 0, sizeof l->terms);
  l->term_count = 0;
  return false;
}

/* Of the normalisation's input and its residual at most one is a sum of its own: that comes first.
 */
static bool find_terms(lookup *l) {
  const om_gpu_dispatch *norm = l->region->launches[l->at].dispatch;
  const om_gpu_operand *input = &norm->operands[0];
  const om_gpu_operand *residual = &norm->operands[3];
  if (norm->constants[norm->constant_count - 1] == 0) residual = NULL;
  if (!add_sum_of(l, input)) {
    if (residual && add_sum_of(l, residual)) return add_term(l, *input, l->norm.row_count);
    add_term(l, *input, l->norm.row_count);
  }
  return !residual || add_term(l, *residual, l->norm.row_count);
}

/* The first term has a binding for indices, the others have one together: a sum of two does not
 * care which of them is first, and a third lookup stays apart. */
static bool place_lookups(lookup *l) {
  lookup_term *t = l->terms;
  if (!t[0].gather && t[1].gather) {
    const lookup_term first = t[0];
    t[0] = t[1];
    t[1] = first;
  }
  if (t[1].gather && t[2].gather) {
    t[2].gather = NULL;
    t[2].extent = t[2].period;
  }
  return t[0].gather || t[2].gather;
}

/* Turns the normalisation into the launch of it all. */
static void make_launch(lookup *l) {
  enum { GROUP = 64 }; /* as the shader has it */
  om_gpu_dispatch *d = l->region->launches[l->at].dispatch;
  const om_provider_session *session = l->plan->session;
  const uint32_t rows = GROUP / session->limits.subgroup_size;
  const bool is_exact = session->mode == OM_MODE_EXACT;
  om_gpu_operand operands[8] = {{.kind = OM_GPU_NOTHING}};
  uint32_t constants[8] = {d->constants[0], d->constants[1], l->quads, rows, l->term_count};
  uint32_t periods[MOST_TERMS] = {1, 1, 1};
  uint32_t extents[MOST_TERMS] = {1, 1, 1};
  for (uint32_t i = 0; i < l->term_count; ++i) {
    const lookup_term *term = &l->terms[i];
    periods[i] = term->period;
    extents[i] = term->extent;
    operands[i] = term->gather ? term->gather->dispatch->operands[0] : term->rows;
    if (!term->gather) continue;
    operands[i == 0 ? 3 : 4] = term->gather->dispatch->operands[1];
    constants[5 + i] = term->gather->dispatch->constants[0];
    term->gather->is_absorbed = true;
  }
  if (l->sum) l->sum->is_absorbed = true;
  memcpy(&operands[5], &d->operands[1], 2 * sizeof *operands); /* scale and bias */
  operands[7] = d->operands[4];
  om_lookup_kernel_params params = {.row_count = l->norm.row_count,
                                    .row_elems = l->norm.row_elems,
                                    .count = l->norm.count,
                                    .epsilon = l->norm.epsilon};
  memcpy(&params.period_0, periods, sizeof periods);
  memcpy(&params.extent_0, extents, sizeof extents);
  d->shader = lookup_forms.by_half_and_exact[om_gpu_chain_is_half(d)][is_exact];
  d->operand_count = 8;
  d->constant_count = 8;
  d->params_bytes = sizeof params;
  d->has_chain = d->takes_residual = d->takes_wide = false;
  memcpy(d->operands, operands, sizeof operands);
  memcpy(d->constants, constants, sizeof constants);
  memcpy(d->params, &params, sizeof params);
  om_gpu_split_groups(&session->limits, om_gpu_pieces(l->norm.row_count, rows), d->groups);
}

void om_gpu_fuse_lookups(const om_provider_plan *plan, om_gpu_region *region) {
  for (size_t i = 0; i < region->launch_count; ++i) {
    lookup l = {.plan = plan, .region = region, .at = i};
    if (find_norm(&l) && find_terms(&l) && place_lookups(&l)) make_launch(&l);
  }
}
