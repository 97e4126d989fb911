/* Conditions that exporters compute of numbers, back to what they ask:
 *
 *     d = Sub(1, Cast(m)): Where(Cast(d), low, d)             becomes Where(Equal(m, 1), 0, low)
 *     w = Where(c, low, 0): Where(Cast(w), x, y)              becomes Where(c, x, y)
 *     Where(Not(c), x, y)                                     becomes Where(c, y, x)
 *
 * where m is of integers; of booleans it is the condition itself. Where the condition is false d is
 * 0, and that is what stands there then. A mask of padding is two steps in place of four, or one.
 * Each element is the same as before: the bits stay, for both modes.
 */
#include <math.h>

#include "rewrite/om_rewrite_facts.h"

typedef struct choice {
  om_rewriter *rw;
  const om_value_fact *facts;
  om_value_id asked; /* what the condition asks */
  bool is_negated;
} choice;

/* What a Cast to booleans reads; OM_NO_VALUE: there is none. */
static om_value_id number_of(const om_rewriter *rw, om_value_id condition) {
  const om_node *cast = om_rewriter_made_by(rw, condition, "Cast");
  const om_attr *to = cast ? om_node_attr(cast, "to") : NULL;
  const bool is_one = to && to->kind == OM_ATTR_INT && to->i == OM_DTYPE_BOOL;
  return is_one ? cast->inputs[0] : OM_NO_VALUE;
}

/* A constant of one element that gives what it meets no other shape. */
static bool is_number(const om_rewriter *rw, om_value_id value, float *out) {
  return om_rewriter_scalar(rw, value, out) && om_rewriter_constant(rw, value)->rank == 0;
}

/* m of Sub(1, Cast(m)), which is 0 where m is 1 or true; OM_NO_VALUE: it is something else. */
static om_value_id counted(const choice *c, om_value_id number) {
  const om_node *sub = om_rewriter_made_by(c->rw, number, "Sub");
  const om_node *cast = sub ? om_rewriter_made_by(c->rw, sub->inputs[1], "Cast") : NULL;
  float one = 0.0f;
  if (!cast || sub->opset < 7 || !is_number(c->rw, sub->inputs[0], &one) || one != 1.0f) {
    return OM_NO_VALUE;
  }
  const om_dtype dtype = c->facts[cast->inputs[0]].dtype;
  const bool fits = dtype == OM_DTYPE_BOOL || dtype == OM_DTYPE_I32 || dtype == OM_DTYPE_I64;
  return fits ? cast->inputs[0] : OM_NO_VALUE;
}

/* Where(.., a, b) of two constants, one of which is +0. */
static const om_node *choice_of_numbers(const om_rewriter *rw,
                                        om_value_id number,
                                        bool *out_is_first_zero) {
  const om_node *where = om_rewriter_made_by(rw, number, "Where");
  float a = 0.0f, b = 0.0f;
  if (!where || !is_number(rw, where->inputs[1], &a) || !is_number(rw, where->inputs[2], &b)) {
    return NULL;
  }
  *out_is_first_zero = a == 0.0f;
  if (signbit(a == 0.0f ? a : b)) return NULL;
  return (a == 0.0f) != (b == 0.0f) ? where : NULL;
}

/* True if the number is +0 wherever it is no other one. */
static bool is_zero_or_other(const choice *c, om_value_id number) {
  bool is_first_zero;
  return counted(c, number) != OM_NO_VALUE ||
         choice_of_numbers(c->rw, number, &is_first_zero) != NULL;
}

/* Goes one step back in what is asked; false: there is none. */
static bool go_back(choice *c) {
  const om_node *negation = om_rewriter_made_by(c->rw, c->asked, "Not");
  const om_value_id number = number_of(c->rw, c->asked);
  bool is_first_zero = false;
  if (negation) {
    c->asked = negation->inputs[0];
    c->is_negated = !c->is_negated;
    return true;
  }
  const om_node *where =
      number == OM_NO_VALUE ? NULL : choice_of_numbers(c->rw, number, &is_first_zero);
  if (!where) return false;
  c->asked = where->inputs[0];
  if (is_first_zero) c->is_negated = !c->is_negated;
  return true;
}

static om_status add_constant(
    om_ctx *ctx, om_rewriter *rw, om_dtype dtype, int64_t one, om_value_id *out_id) {
  const om_tensor like = {.dtype = dtype};
  void *data; /* zeroed */
  OM_TRY(om_rewriter_add_constant(ctx, rw, "asked", &like, &data, out_id));
  if (one != 0) memcpy(data, &one, om_dtype_bits(dtype) / 8); /* little-endian, as tensors are */
  return OM_OK;
}

/* Asks m, in place of 1 - m. */
static om_status ask_counted(om_ctx *ctx, choice *c, om_node_id where) {
  om_rewriter *rw = c->rw;
  const om_value_id number = number_of(rw, c->asked);
  const om_value_id m = number == OM_NO_VALUE ? OM_NO_VALUE : counted(c, number);
  om_value_id inputs[2] = {m};
  if (m == OM_NO_VALUE) return OM_OK;
  c->is_negated = !c->is_negated;
  c->asked = m;
  if (c->facts[m].dtype == OM_DTYPE_BOOL) return OM_OK;
  const char *name =
      om_pool_format(ctx, &rw->graph->pool, "%s.asked", rw->graph->nodes[where].name);
  if (!name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(add_constant(ctx, rw, c->facts[m].dtype, 1, &inputs[1]));
  const om_rewritten_node equal = {
      .type = "Equal", .opset = 13, .inputs = inputs, .input_count = 2};
  return om_rewriter_add_node(ctx, rw, name, OM_DTYPE_BOOL, &equal, &c->asked);
}

static om_status rewrite(om_ctx *ctx, choice *c, om_node_id id) {
  om_rewriter *rw = c->rw;
  const om_node *where = &rw->graph->nodes[id];
  const om_value_id condition = where->inputs[0];
  const om_value_id number = number_of(rw, condition);
  om_value_id inputs[3] = {condition, where->inputs[1], where->inputs[2]};
  if (number != OM_NO_VALUE && inputs[2] == number && is_zero_or_other(c, number)) {
    const om_dtype dtype = c->facts[number].dtype;
    if (dtype == OM_DTYPE_NONE) return OM_OK;
    OM_TRY(add_constant(ctx, rw, dtype, 0, &inputs[2]));
  }
  c->asked = condition;
  c->is_negated = false;
  while (go_back(c)) {
  }
  OM_TRY(ask_counted(ctx, c, id));
  if (c->asked == condition) return OM_OK;
  inputs[0] = c->asked;
  if (c->is_negated) {
    const om_value_id kept = inputs[1];
    inputs[1] = inputs[2];
    inputs[2] = kept;
  }
  return om_rewriter_set_inputs(ctx, rw, id, inputs, OM_COUNT_OF(inputs));
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch; of the values there were */
  const om_node_id count = (om_node_id)rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    choice c = {.rw = rw, .facts = facts};
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Where") != 0) continue;
    OM_GO(rewrite(ctx, &c, id));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_mask_choices = {
    .name = "mask_choices",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
