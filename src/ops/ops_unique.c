/* Unique (docs/exact.md, "Moving data"): parts of a tensor along an axis, or its elements.
 *
 * Parts are ordered by a stable merge of their numbers; runs of equal ones are groups, whose first
 * member is the one that occurs first. The number of groups is the result's extent, so the shape
 * rule sorts, too.
 */
#include "cpu/exact/om_cast.h"
#include "ops/om_rule.h"

typedef struct om_unique_params {
  bool has_axis;
  bool is_sorted;
  int64_t axis;
} om_unique_params;

typedef struct om_parts {
  const om_tensor *x;
  size_t count;        /* parts */
  size_t outer, inner; /* a part has outer * inner elements */
} om_parts;

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_unique_params *p = params;
  int64_t sorted = 1;
  p->has_axis = om_node_attr(node, "axis") != NULL;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "sorted", 1, &sorted));
  p->is_sorted = sorted != 0;
  return OM_OK;
}

/* The axis has passed om_rule_axis. */
static om_parts parts_of(const om_unique_params *p, const om_tensor *x) {
  om_parts parts = {.x = x, .count = om_tensor_elems(x), .outer = 1, .inner = 1};
  if (!p->has_axis) return parts;
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + (int64_t)x->rank : p->axis);
  parts.count = (size_t)x->dims[axis];
  parts.outer = om_rule_product(x->dims, 0, axis);
  parts.inner = om_rule_product(x->dims, axis + 1, x->rank);
  return parts;
}

/* ---- Order ---- */

static int compare_doubles(double a, double b) {
  if (a != a || b != b) return (a != a) - (b != b); /* NaN is above all, and equal to itself */
  return (a > b) - (a < b);
}

static int compare_strings(const om_string *a, const om_string *b) {
  const size_t common = a->bytes < b->bytes ? a->bytes : b->bytes;
  const int order = common > 0 ? memcmp(a->data, b->data, common) : 0;
  if (order != 0) return order;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int compare_elems(const om_tensor *x, size_t i, size_t k) {
  double a = 0.0;
  double b = 0.0;
  if (x->dtype == OM_DTYPE_STRING) {
    return compare_strings((const om_string *)x->data + i, (const om_string *)x->data + k);
  }
  if (x->dtype == OM_DTYPE_I64) {
    const int64_t *v = x->data;
    return (v[i] > v[k]) - (v[i] < v[k]);
  }
  if (x->dtype == OM_DTYPE_U64) {
    const uint64_t *v = x->data;
    return (v[i] > v[k]) - (v[i] < v[k]);
  }
  om_cast_elems(x->dtype, om_cast_place(x->dtype, x->data, i), OM_DTYPE_F64, &a, 1, true);
  om_cast_elems(x->dtype, om_cast_place(x->dtype, x->data, k), OM_DTYPE_F64, &b, 1, true);
  return compare_doubles(a, b);
}

static int compare_parts(const om_parts *p, size_t i, size_t k) {
  for (size_t outer = 0; outer < p->outer; ++outer) {
    for (size_t inner = 0; inner < p->inner; ++inner) {
      const size_t first = outer * p->count * p->inner + inner;
      const int order = compare_elems(p->x, first + i * p->inner, first + k * p->inner);
      if (order != 0) return order;
    }
  }
  return 0;
}

/* Sorts the numbers of all parts; `order` and `spare` have an element for each. */
static om_status sort_parts(om_ctx *ctx, const om_parts *p, size_t *order, size_t *spare) {
  for (size_t i = 0; i < p->count; ++i) order[i] = i;
  for (size_t width = 1; width < p->count; width *= 2) {
    for (size_t begin = 0; begin < p->count; begin += 2 * width) {
      const size_t middle = begin + width < p->count ? begin + width : p->count;
      const size_t end = middle + width < p->count ? middle + width : p->count;
      size_t left = begin;
      size_t right = middle;
      for (size_t i = begin; i < end; ++i) {
        OM_TRY(om_check_cancelled(ctx));
        const bool takes_left =
            left < middle && (right == end || compare_parts(p, order[left], order[right]) <= 0);
        spare[i] = takes_left ? order[left++] : order[right++];
      }
    }
    memcpy(order, spare, p->count * sizeof *order);
  }
  return OM_OK;
}

static bool begins_group(const om_parts *p, const size_t *order, size_t i) {
  return i == 0 || compare_parts(p, order[i - 1], order[i]) != 0;
}

/* ---- Entry ---- */

static om_status count_groups(om_ctx *ctx, const om_parts *p, int64_t *out) {
  om_status st = OM_OK;
  size_t *order = om_new_bytes(ctx, p->count, 2 * sizeof *order);
  *out = 0;
  if (!order) return OM_E_OUT_OF_MEMORY;
  OM_GO(sort_parts(ctx, p, order, order + p->count));
  for (size_t i = 0; i < p->count; ++i) {
    OM_GO(om_check_cancelled(ctx));
    *out += begins_group(p, order, i);
  }
done:
  om_delete(ctx, order);
  return st;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_unique_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  uint32_t axis = 0;
  int64_t groups = 0;
  int64_t dims[OM_MAX_RANK] = {0};
  if (p->has_axis) OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  if (!om_rule_is_known(x)) {
    om_rule_set_unknown(call, 0, x->dtype);
    for (uint32_t i = 1; i < call->output_count; ++i) om_rule_set_unknown(call, i, OM_DTYPE_I64);
    return OM_OK;
  }
  const om_parts parts = parts_of(p, x);
  const int64_t count = (int64_t)parts.count;
  OM_TRY(count_groups(ctx, &parts, &groups));
  memcpy(dims, x->dims, sizeof dims);
  dims[p->has_axis ? axis : 0] = groups;
  OM_TRY(om_rule_set(ctx, call, 0, x->dtype, p->has_axis ? x->rank : 1, dims));
  for (uint32_t i = 1; i < call->output_count; ++i) {
    OM_TRY(om_rule_set(ctx, call, i, OM_DTYPE_I64, 1, i == 2 ? &count : &groups));
  }
  return OM_OK;
}

/* [order] [spare; then the group of each part] [first part of each group] [its place] */
static size_t scratch_bytes(const om_op_call *call) {
  return 4 * parts_of(call->params, call->inputs[0]).count * sizeof(size_t);
}

/* Where each group comes in the results: as they are, or as their first members stand. */
static void place_groups(const om_unique_params *p,
                         const size_t *group_of,
                         const size_t *first,
                         size_t parts,
                         size_t *place) {
  size_t next = 0;
  for (size_t i = 0; i < parts; ++i) {
    const size_t group = group_of[i];
    if (first[group] == i) place[group] = p->is_sorted ? group : next++;
  }
}

static void copy_part(
    const om_parts *p, size_t from, const om_tensor *y, size_t to, size_t groups) {
  const size_t bytes = om_rule_elem_bytes(p->x->dtype) * p->inner;
  for (size_t outer = 0; outer < p->outer; ++outer) {
    memcpy((uint8_t *)y->data + (outer * groups + to) * bytes,
           (const uint8_t *)p->x->data + (outer * p->count + from) * bytes,
           bytes);
  }
}

static void store(const om_op_call *call, uint32_t output, size_t index, size_t value) {
  om_tensor *t = om_rule_output(call, output);
  if (t) ((int64_t *)t->data)[index] = (int64_t)value;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_unique_params *p = call->params;
  const om_parts parts = parts_of(p, call->inputs[0]);
  size_t *order = call->scratch;
  size_t *group_of = order + parts.count;
  size_t *first = group_of + parts.count;
  size_t *place = first + parts.count;
  size_t groups = 0;
  OM_TRY(sort_parts(ctx, &parts, order, group_of));
  for (size_t i = 0; i < parts.count; ++i) {
    OM_TRY(om_check_cancelled(ctx));
    if (begins_group(&parts, order, i)) first[groups++] = order[i];
    group_of[order[i]] = groups - 1;
  }
  place_groups(p, group_of, first, parts.count, place);
  for (size_t g = 0; g < groups; ++g) {
    OM_TRY(om_check_cancelled(ctx));
    if (call->outputs[0]) copy_part(&parts, first[g], call->outputs[0], place[g], groups);
    store(call, 1, place[g], first[g]);
    store(call, 3, place[g], 0);
  }
  om_tensor *counts = om_rule_output(call, 3);
  for (size_t i = 0; i < parts.count; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    store(call, 2, i, place[group_of[i]]);
    if (counts) ++((int64_t *)counts->data)[place[group_of[i]]];
  }
  return OM_OK;
}

const om_op om_ops_unique[] = {
    {.domain = "",
     .type = "Unique",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 1, 1, 4),
     .dtypes = OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_unique_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
