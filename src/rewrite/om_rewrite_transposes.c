/* Transposes around layouts, as converters of channels-last models leave them: one before and one
 * after each convolution. What stands between two of them may as well work on the turned values
 * (om_turn.h):
 *
 *     Transpose(p) -> Add -> Relu -> Concat -> Transpose(inverse of p)     becomes
 *     Add -> Relu -> Concat
 *
 * From each Transpose all operators are gathered that could be turned and hang together; then those
 * are let go, one by one, without which there are no more Transposes than with them. If turning the
 * rest saves a Transpose, it is done, and all is looked at again. A Transpose of a Transpose
 * becomes one, or none. Elements only move, so the bits stay.
 */
#include "rewrite/om_turn.h"

typedef struct turning {
  om_ctx *ctx;
  om_rewriter *rw;
  om_value_fact *facts;   /* owned */
  uint32_t *first_reader; /* owned; by value: its readers in `readers`, one more at the end */
  om_node_id *readers;    /* owned */
  uint8_t *turns;         /* owned; by node: om_turn, as decided so far */
  om_node_id *members;    /* owned; nodes that turn, or did */
  size_t member_count;    /* at most node_count */
  size_t value_count;     /* when all this was made */
  om_axes plain, back;    /* of the Transposes that go, and their inverse */
} turning;

/* ---- Transposes of Transposes ---- */

static bool is_identity(const om_axes *axes) {
  for (uint32_t a = 0; a < axes->rank; ++a) {
    if (axes->perm[a] != a) return false;
  }
  return true;
}

/* Makes a node the Transpose of a value, or its Identity. */
static om_status set_perm(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, om_value_id input, const om_axes *axes) {
  om_attr attr = {.name = "perm", .kind = OM_ATTR_INTS, .count = axes->rank};
  int64_t *perm = OM_POOL_NEW(ctx, &rw->graph->pool, int64_t, axes->rank);
  if (!perm) return OM_E_OUT_OF_MEMORY;
  for (uint32_t a = 0; a < axes->rank; ++a) perm[a] = axes->perm[a];
  attr.ints = perm;
  const om_rewritten_node what = {.type = is_identity(axes) ? "Identity" : "Transpose",
                                  .opset = 13,
                                  .inputs = &input,
                                  .input_count = 1,
                                  .attrs = &attr,
                                  .attr_count = is_identity(axes) ? 0 : 1};
  return om_rewriter_become(ctx, rw, id, &what);
}

/* Nodes stand in order, so what a Transpose reads has been joined already. */
static om_status join_pairs(om_ctx *ctx, om_rewriter *rw, const om_value_fact *facts) {
  om_graph *graph = rw->graph;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    om_axes axes, inner;
    if (!om_axes_of(facts, &graph->nodes[id], &axes)) continue;
    const om_value_id source = graph->nodes[id].inputs[0];
    const om_node_id maker = om_rewriter_maker(rw, source, "Transpose");
    const bool is_pair = maker != OM_NO_NODE && om_axes_of(facts, &graph->nodes[maker], &inner) &&
                         inner.rank == axes.rank; /* else the run says what is wrong */
    if (!is_pair && !is_identity(&axes)) continue;
    for (uint32_t a = 0; is_pair && a < axes.rank; ++a) axes.perm[a] = inner.perm[axes.perm[a]];
    OM_TRY(set_perm(ctx, rw, id, is_pair ? graph->nodes[maker].inputs[0] : source, &axes));
  }
  return om_rewrite_drop_identity.apply(ctx, rw);
}

/* ---- What hangs together ---- */

static om_status list_readers(turning *t) {
  om_status st = OM_OK;
  om_ctx *ctx = t->ctx;
  const om_graph *graph = t->rw->graph;
  uint32_t total = 0;
  OM_GO_NEW(t->first_reader, graph->value_count + 1);
  for (size_t n = 0; n < graph->node_count; ++n) {
    const om_node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) t->first_reader[node->inputs[i]] += 1;
    }
  }
  for (size_t v = 0; v <= graph->value_count; ++v) {
    total += t->first_reader[v];
    t->first_reader[v] = total; /* the end; filling walks back to the start */
  }
  OM_GO_NEW(t->readers, (size_t)total + 1);
  for (om_node_id n = 0; n < graph->node_count; ++n) {
    const om_node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) t->readers[--t->first_reader[node->inputs[i]]] = n;
    }
  }
done:
  return st;
}

static void turning_deinit(turning *t) {
  om_delete(t->ctx, t->facts);
  om_delete(t->ctx, t->first_reader);
  om_delete(t->ctx, t->readers);
  om_delete(t->ctx, t->turns);
  om_delete(t->ctx, t->members);
}

static om_status turning_init(om_ctx *ctx, om_rewriter *rw, turning *t) {
  om_status st = OM_OK;
  *t = (turning){.ctx = ctx, .rw = rw, .value_count = rw->graph->value_count};
  OM_GO(om_value_facts_create(ctx, rw, &t->facts));
  OM_GO(list_readers(t));
  OM_GO_NEW(t->turns, rw->graph->node_count + 1);
  OM_GO_NEW(t->members, rw->graph->node_count + 1);
done:
  return st;
}

static void add_member(turning *t, om_node_id id) {
  if (id == OM_NO_NODE || t->turns[id] != OM_TURN_NEVER) return;
  const om_node *node = &t->rw->graph->nodes[id];
  const om_turn turn = om_turn_of(t->rw, t->facts, node, &t->plain);
  if (turn == OM_TURN_NEVER) return;
  for (uint32_t i = 0; turn == OM_TURN_THROUGH && i < node->output_count; ++i) {
    if (node->outputs[i] != OM_NO_VALUE) t->facts[node->outputs[i]].rank = t->plain.rank;
  }
  t->turns[id] = (uint8_t)turn;
  t->members[t->member_count++] = id;
}

static void add_readers(turning *t, om_value_id value) {
  for (uint32_t i = t->first_reader[value]; i < t->first_reader[value + 1]; ++i) {
    add_member(t, t->readers[i]);
  }
}

/* All that could be turned and shares a value with a member, in both directions. */
static void gather(turning *t) {
  const om_graph *graph = t->rw->graph;
  for (size_t m = 0; m < t->member_count; ++m) {
    const om_node *node = &graph->nodes[t->members[m]];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      const om_value_id value = node->inputs[i];
      if (!om_turn_reads(node, i) || graph->values[value].constant) continue;
      add_member(t, graph->values[value].producer);
      add_readers(t, value);
    }
    if (t->turns[t->members[m]] != OM_TURN_THROUGH) continue;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != OM_NO_VALUE) add_readers(t, node->outputs[i]);
    }
  }
}

/* ---- What it costs, in Transposes ---- */

static bool is_turned(const turning *t, om_value_id value) {
  const om_node_id maker = t->rw->graph->values[value].producer;
  return maker != OM_NO_NODE && t->turns[maker] == OM_TURN_THROUGH;
}

static bool has_axes(const turning *t, om_node_id id, const om_axes *axes) {
  om_axes have;
  if (id == OM_NO_NODE || !om_axes_of(t->facts, &t->rw->graph->nodes[id], &have)) return false;
  return have.rank == axes->rank && memcmp(have.perm, axes->perm, sizeof have.perm) == 0;
}

/* Its turned value is there already: a Transpose of a plain value makes it. */
static bool is_source(const turning *t, om_value_id value) {
  const om_node_id maker = t->rw->graph->values[value].producer;
  return has_axes(t, maker, &t->plain) && !is_turned(t, t->rw->graph->nodes[maker].inputs[0]);
}

static bool reads_turned(const turning *t, om_node_id reader, om_value_id value) {
  const om_node *node = &t->rw->graph->nodes[reader];
  if (t->turns[reader] == OM_TURN_NEVER) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == value && !om_turn_reads(node, i)) return false;
  }
  return true;
}

/* Transposes that the value needs: those that make it, those that make its other form, and those
 * that read it and are no source of others. */
static int cost_of(const turning *t, om_value_id value) {
  const bool turned = is_turned(t, value), source = is_source(t, value);
  bool is_read_turned = false, is_read_plain = t->rw->graph->values[value].is_output;
  int cost = 0;
  if (t->rw->graph->values[value].constant) return 0;
  for (uint32_t i = t->first_reader[value]; i < t->first_reader[value + 1]; ++i) {
    const om_node_id reader = t->readers[i];
    const om_node *node = &t->rw->graph->nodes[reader];
    if (reads_turned(t, reader, value)) {
      is_read_turned = true;
    } else if (strcmp(node->type, "Transpose") != 0 || node->domain[0] != '\0') {
      is_read_plain = true;
    } else if (turned) {
      cost += has_axes(t, reader, &t->back) ? 0 : 1;
    } else if (source) {
      is_read_plain = true;
    } else {
      cost += has_axes(t, reader, &t->plain) ? 0 : 1;
    }
  }
  if (turned || source) return cost + (is_read_plain ? 1 : 0);
  return cost + (is_read_turned ? 1 : 0);
}

/* The cost of all values that the node's turning bears on. A value may count twice; it does so
 * whether the node turns or not. */
static int cost_around(const turning *t, om_node_id id) {
  const om_graph *graph = t->rw->graph;
  const om_node *node = &graph->nodes[id];
  int cost = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    bool is_repeated = false;
    for (uint32_t k = 0; k < i; ++k)
      is_repeated = is_repeated || node->inputs[k] == node->inputs[i];
    if (node->inputs[i] != OM_NO_VALUE && !is_repeated) cost += cost_of(t, node->inputs[i]);
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const om_value_id value = node->outputs[i];
    if (value == OM_NO_VALUE) continue;
    cost += cost_of(t, value);
    for (uint32_t r = t->first_reader[value]; r < t->first_reader[value + 1]; ++r) {
      const om_node *reader = &graph->nodes[t->readers[r]];
      if (has_axes(t, t->readers[r], &t->plain)) cost += cost_of(t, reader->outputs[0]);
    }
  }
  return cost;
}

/* Lets members go as long as none of them is missed. */
static void let_go(turning *t) {
  bool did_change = true;
  while (did_change) {
    did_change = false;
    for (size_t m = 0; m < t->member_count; ++m) {
      const om_node_id id = t->members[m];
      const uint8_t turn = t->turns[id];
      if (turn == OM_TURN_NEVER) continue;
      const int with = cost_around(t, id);
      t->turns[id] = OM_TURN_NEVER;
      if (cost_around(t, id) <= with) {
        did_change = true;
      } else {
        t->turns[id] = turn;
      }
    }
  }
}

/* Transposes that are saved: members are let go one by one, and each says what that costs. */
static int count_saved(turning *t, uint8_t *kept) {
  int saved = 0;
  for (size_t m = 0; m < t->member_count; ++m) {
    const om_node_id id = t->members[m];
    kept[m] = t->turns[id];
    if (kept[m] == OM_TURN_NEVER) continue;
    const int with = cost_around(t, id);
    t->turns[id] = OM_TURN_NEVER;
    saved += cost_around(t, id) - with;
  }
  for (size_t m = 0; m < t->member_count; ++m) t->turns[t->members[m]] = kept[m];
  return saved;
}

/* ---- Turning ---- */

static om_status add_turned_value(turning *t, om_value_id plain, om_value_id *out_id) {
  om_graph *graph = t->rw->graph;
  om_value value = graph->values[plain];
  const om_value source = value;
  value.name =
      om_pool_format(t->ctx, &graph->pool, "%s.turned.%zu", source.name, graph->value_count);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  value.is_input = value.is_output = false;
  value.producer = OM_NO_NODE;
  value.has_rank = source.has_rank && source.rank == t->plain.rank;
  for (uint32_t a = 0; value.has_rank && a < source.rank; ++a) {
    value.dims[t->plain.perm[a]] = source.dims[a];
    value.dim_names[t->plain.perm[a]] = source.dim_names[a];
  }
  return om_graph_add_value(t->ctx, graph, &value, out_id);
}

static om_status add_transpose(turning *t, om_value_id from, om_value_id to, const om_axes *axes) {
  om_graph *graph = t->rw->graph;
  om_value_id *output = OM_POOL_NEW(t->ctx, &graph->pool, om_value_id, 1);
  om_node_id id = OM_NO_NODE;
  om_node node = {.domain = "", .opset = 13, .outputs = output, .output_count = 1};
  node.name = om_pool_format(t->ctx, &graph->pool, "%s.transpose", graph->values[to].name);
  if (!output || !node.name) return OM_E_OUT_OF_MEMORY;
  *output = to;
  OM_TRY(om_graph_add_node(t->ctx, graph, &node, &id));
  graph->values[to].producer = id;
  return set_perm(t->ctx, t->rw, id, from, axes);
}

/* What a member reads in place of the plain value; turned[value] keeps it. */
static om_status find_turned(turning *t, om_value_id value, om_value_id *turned) {
  const om_graph *graph = t->rw->graph;
  if (turned[value] != OM_NO_VALUE) return OM_OK;
  if (graph->values[value].constant) {
    return om_turn_constant(t->ctx, t->rw, &t->plain, value, &turned[value]);
  }
  if (is_source(t, value)) {
    turned[value] = graph->nodes[graph->values[value].producer].inputs[0];
    return OM_OK;
  }
  OM_TRY(add_turned_value(t, value, &turned[value]));
  return add_transpose(t, value, turned[value], &t->back);
}

static om_status turn_member(turning *t, om_node_id id, om_value_id *turned) {
  om_graph *graph = t->rw->graph;
  const om_node node = graph->nodes[id];
  om_value_id *inputs = OM_POOL_NEW(t->ctx, &graph->pool, om_value_id, node.input_count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node.input_count; ++i) {
    inputs[i] = node.inputs[i];
    if (!om_turn_reads(&node, i)) continue;
    OM_TRY(find_turned(t, inputs[i], turned));
    inputs[i] = turned[inputs[i]];
  }
  return om_turn_node(t->ctx, t->rw, id, &t->plain, inputs);
}

/* The member writes the turned value; who reads the plain one gets it by a Transpose, which the
 * next join_pairs joins with theirs. */
static om_status turn_results(turning *t, om_node_id id, const om_value_id *turned) {
  const om_node node = t->rw->graph->nodes[id];
  for (uint32_t i = 0; i < node.output_count; ++i) {
    const om_value_id value = node.outputs[i];
    if (value == OM_NO_VALUE) continue;
    OM_TRY(om_rewriter_set_output(t->ctx, t->rw, id, value, turned[value]));
    bool is_plain = t->rw->graph->values[value].is_output;
    for (uint32_t r = t->first_reader[value]; r < t->first_reader[value + 1]; ++r) {
      if (!reads_turned(t, t->readers[r], value)) is_plain = true;
    }
    if (is_plain) OM_TRY(add_transpose(t, turned[value], value, &t->plain));
  }
  return OM_OK;
}

static om_status turn_all(turning *t) {
  om_status st = OM_OK;
  om_ctx *ctx = t->ctx;
  om_value_id *turned = NULL; /* scratch; by value */
  OM_GO_NEW(turned, t->value_count);
  memset(turned, 0xff, t->value_count * sizeof *turned); /* OM_NO_VALUE */
  for (size_t m = 0; m < t->member_count; ++m) {
    const om_node node = t->rw->graph->nodes[t->members[m]];
    for (uint32_t i = 0; t->turns[t->members[m]] == OM_TURN_THROUGH && i < node.output_count; ++i) {
      const om_value_id value = node.outputs[i];
      if (value != OM_NO_VALUE) OM_GO(add_turned_value(t, value, &turned[value]));
    }
  }
  for (size_t m = 0; m < t->member_count; ++m) {
    if (t->turns[t->members[m]] != OM_TURN_NEVER) OM_GO(turn_member(t, t->members[m], turned));
  }
  for (size_t m = 0; m < t->member_count; ++m) {
    if (t->turns[t->members[m]] == OM_TURN_THROUGH) OM_GO(turn_results(t, t->members[m], turned));
  }
done:
  om_delete(ctx, turned);
  return st;
}

/* ---- The search ---- */

/* Tries the operators that read a value, or the one that makes it; *out_did: they are turned. */
static om_status try_from(turning *t, om_value_id value, bool from_maker, bool *out_did) {
  om_status st = OM_OK;
  om_ctx *ctx = t->ctx;
  uint8_t *kept = NULL; /* scratch */
  *out_did = false;
  t->member_count = 0;
  memset(t->turns, OM_TURN_NEVER, t->rw->graph->node_count);
  if (from_maker) {
    add_member(t, t->rw->graph->values[value].producer);
  } else {
    add_readers(t, value);
  }
  gather(t);
  let_go(t);
  OM_GO_NEW(kept, t->member_count + 1);
  if (count_saved(t, kept) <= 0) goto done;
  OM_GO(turn_all(t));
  *out_did = true;
done:
  om_delete(ctx, kept);
  return st;
}

/* Turns one group that saves a Transpose, if there is one. */
static om_status turn_one(om_ctx *ctx, om_rewriter *rw, bool *out_did) {
  om_status st = OM_OK;
  turning t;
  *out_did = false;
  OM_GO(turning_init(ctx, rw, &t));
  for (om_node_id id = 0; id < rw->graph->node_count && !*out_did; ++id) {
    const om_node node = rw->graph->nodes[id];
    om_axes axes;
    if (!om_axes_of(t.facts, &node, &axes)) continue;
    t.plain = axes;
    t.back = om_axes_inverse(&axes);
    OM_GO(try_from(&t, node.outputs[0], false, out_did));
    if (*out_did) break;
    t.back = axes;
    t.plain = om_axes_inverse(&axes);
    OM_GO(try_from(&t, node.inputs[0], true, out_did));
  }
done:
  turning_deinit(&t);
  return st;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  bool is_changed = true;
  while (is_changed) { /* at most as often as there are Transposes: each turn saves one */
    om_value_fact *facts = NULL;
    OM_TRY(om_value_facts_create(ctx, rw, &facts));
    const om_status st = join_pairs(ctx, rw, facts);
    om_delete(ctx, facts);
    OM_TRY(st);
    OM_TRY(om_rewriter_refresh(ctx, rw));
    OM_TRY(om_rewriter_drop_dead(ctx, rw));
    OM_TRY(turn_one(ctx, rw, &is_changed));
    OM_TRY(om_rewriter_refresh(ctx, rw));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_transposes = {
    .name = "transposes",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
