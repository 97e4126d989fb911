/* onemodel.Attention: softmax(scale * Q K + mask) V, each operand read and the result written
 * through a permutation of its axes.
 *
 *     Q: [batch..., rows, depth]   K: [batch..., depth, keys]   V: [batch..., keys, width]
 *     mask: broadcasts with [batch..., rows, keys]              Y: [batch..., rows, width]
 *
 * These are the shapes behind the permutations; the batch broadcasts as in MatMul and Add. Rewrites
 * make it from the operators it stands for (docs/exact.md); its result has their bits. float16 is
 * computed in float32 and rounded once, at the end.
 *
 * Attributes: q_perm, k_perm, v_perm, y_perm; heads, firsts, widths: each of Q, K and V
 * (om_attention_columns); q_divides, k_divides, divides; selects: a mask takes the place of the
 * score unless it is 0; zeroes_nan.
 */
#include "ops/op_attention.h"

#include "cpu/exact/om_elementwise.h"
#include "cpu/fast/om_fast_attention.h"

/* ---- Attributes ---- */

static om_status read_perm(om_ctx *ctx,
                           const om_node *node,
                           const char *name,
                           om_attention_perm *out_perm) {
  const int64_t *axes = NULL;
  size_t count = 0;
  *out_perm = (om_attention_perm){.rank = 0};
  OM_TRY(om_node_attr_ints(ctx, node, name, &axes, &count));
  if (count > OM_MAX_RANK) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute '%s' has %zu axes.", name, count);
  }
  out_perm->rank = (uint32_t)count;
  return om_rule_axes(ctx, axes, count, (uint32_t)count, out_perm->axes); /* each occurs once */
}

static om_status read_flag(om_ctx *ctx, const om_node *node, const char *name, bool *out_flag) {
  int64_t value = 0;
  OM_TRY(om_node_attr_int(ctx, node, name, 0, &value));
  *out_flag = value != 0;
  return OM_OK;
}

/* Three numbers, or none. */
static om_status read_three(om_ctx *ctx, const om_node *node, const char *name, int64_t out[3]) {
  const int64_t *values = NULL;
  size_t count = 0;
  OM_TRY(om_node_attr_ints(ctx, node, name, &values, &count));
  for (size_t i = 0; i < 3; ++i) out[i] = count == 3 ? values[i] : 0;
  for (size_t i = 0; i < 3; ++i) {
    if ((count == 0 || count == 3) && out[i] >= 0 && out[i] <= INT32_MAX) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute '%s' does not fit Q, K and V.", name);
  }
  return OM_OK;
}

static om_status read_columns(om_ctx *ctx, const om_node *node, om_attention_params *p) {
  int64_t heads[3], firsts[3], widths[3];
  OM_TRY(read_three(ctx, node, "heads", heads));
  OM_TRY(read_three(ctx, node, "firsts", firsts));
  OM_TRY(read_three(ctx, node, "widths", widths));
  for (size_t i = 0; i < 3; ++i) {
    p->columns[i] =
        (om_attention_columns){.first = firsts[i], .width = widths[i], .heads = heads[i]};
  }
  return OM_OK;
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const perms[] = {"q_perm", "k_perm", "v_perm"};
  static const char *const divides[] = {"q_divides", "k_divides", "divides"};
  om_attention_params *p = params;
  for (size_t i = 0; i < OM_COUNT_OF(perms); ++i) {
    OM_TRY(read_perm(ctx, node, perms[i], &p->perms[i]));
    OM_TRY(read_flag(ctx, node, divides[i], &p->divides[i]));
  }
  OM_TRY(read_perm(ctx, node, "y_perm", &p->y_perm));
  OM_TRY(read_flag(ctx, node, "zeroes_nan", &p->zeroes_nan));
  OM_TRY(read_flag(ctx, node, "selects", &p->selects));
  return read_columns(ctx, node, p);
}

/* ---- How operands lie: behind their split and their permutation ---- */

static om_status fail_shape(om_ctx *ctx, const char *what, const om_tensor *x) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "%s of shape %s does not fit the attention.",
                 what,
                 om_shape_text(text, sizeof text, x->rank, x->dims));
}

/* The last axis becomes the columns, and those [heads, size]. */
static bool take_columns(const om_attention_columns *columns, om_view *v) {
  const uint32_t last = v->rank - 1;
  if (columns->width == 0 && columns->heads == 0) return true;
  if (v->rank == 0 || v->rank >= OM_MAX_RANK) return false;
  const int64_t width = columns->width > 0 ? columns->width : v->dims[last];
  const int64_t heads = columns->heads > 0 ? columns->heads : 1;
  if (columns->first + width > v->dims[last] || width % heads != 0) return false;
  v->offset = columns->first;
  v->dims[last] = width;
  if (columns->heads == 0) return true;
  v->dims[last] = heads;
  v->strides[last] = width / heads;
  v->dims[last + 1] = width / heads;
  v->strides[last + 1] = 1;
  v->rank += 1;
  return true;
}

static bool permute(const om_attention_perm *perm, om_view *v) {
  const om_view from = *v;
  if (perm->rank == 0) return true;
  if (perm->rank != v->rank) return false;
  for (uint32_t i = 0; i < v->rank; ++i) {
    v->dims[i] = from.dims[perm->axes[i]];
    v->strides[i] = from.strides[perm->axes[i]];
  }
  return true;
}

static om_status make_view(om_ctx *ctx,
                           const om_attention_params *p,
                           om_dtype dtype,
                           uint32_t input,
                           const om_tensor *x,
                           om_view *out_view) {
  static const char *const names[] = {"Q", "K", "V", "The mask"};
  om_view v = {.rank = x->rank};
  memcpy(v.dims, x->dims, sizeof v.dims);
  om_dense_strides(x->rank, x->dims, v.strides);
  bool fits = x->dtype == dtype;
  if (p->views[input].rank > 0) {
    v = p->views[input];
  } else if (input < 3) {
    fits = fits && take_columns(&p->columns[input], &v);
    fits = fits && permute(&p->perms[input], &v) && v.rank >= 2;
  }
  *out_view = v;
  return fits ? OM_OK : fail_shape(ctx, names[input], x);
}

/* Merges a view's batch axes (all but its last two) into the result's batch. */
static om_status merge_batch(om_ctx *ctx, const om_view *v, uint32_t *rank, int64_t *dims) {
  om_tensor batch = {.rank = v->rank > 2 ? v->rank - 2 : 0};
  memcpy(batch.dims, v->dims, sizeof batch.dims);
  return om_rule_broadcast(ctx, &batch, rank, dims);
}

/* Strides in the result's batch; an axis of one element repeats. */
static om_attention_side side_of(const om_view *v, const om_attention *a) {
  om_attention_side side = {.offset = v->offset};
  const uint32_t own = v->rank > 2 ? v->rank - 2 : 0;
  for (uint32_t i = 0; i < own; ++i) {
    if (v->dims[i] != 1) side.batch_strides[a->batch_rank - own + i] = v->strides[i];
  }
  if (v->rank > 1 && v->dims[v->rank - 2] != 1) side.row_stride = v->strides[v->rank - 2];
  if (v->rank > 0 && v->dims[v->rank - 1] != 1) side.col_stride = v->strides[v->rank - 1];
  return side;
}

static bool broadcasts(int64_t extent, size_t *inout_total) {
  if (*inout_total == 1) *inout_total = (size_t)extent;
  return extent == 1 || (size_t)extent == *inout_total;
}

static om_status place_result(
    om_ctx *ctx, const om_attention_perm *perm, om_dtype dtype, om_attention *a, om_tensor *out_y) {
  om_view y = {.rank = a->batch_rank + 2};
  memcpy(y.dims, a->batch, sizeof a->batch);
  y.dims[a->batch_rank] = (int64_t)a->rows;
  y.dims[a->batch_rank + 1] = (int64_t)a->width;
  *out_y = (om_tensor){.dtype = dtype, .rank = y.rank};
  memcpy(out_y->dims, y.dims, sizeof out_y->dims);
  if (perm->rank != 0 && perm->rank != y.rank) return fail_shape(ctx, "A result", out_y);
  for (uint32_t i = 0; i < perm->rank; ++i) out_y->dims[i] = y.dims[perm->axes[i]];
  int64_t strides[OM_MAX_RANK];
  om_dense_strides(y.rank, out_y->dims, strides);
  for (uint32_t i = 0; i < y.rank; ++i) y.strides[perm->rank ? perm->axes[i] : i] = strides[i];
  a->y = side_of(&y, a);
  return OM_OK;
}

/* The elements of a float32 or float16 tensor. */
static void read_floats(const om_tensor *tensor, float *out) {
  const size_t elems = om_tensor_elems(tensor);
  if (tensor->dtype == OM_DTYPE_F16) {
    om_half_to_f32(OM_DTYPE_F16, tensor->data, elems, out);
  } else {
    memcpy(out, tensor->data, elems * sizeof *out);
  }
}

static om_status read_scale(
    om_ctx *ctx, const om_tensor *tensor, om_dtype dtype, bool divides, om_scale *out) {
  *out = (om_scale){.kind = OM_SCALE_NONE};
  if (!tensor) return OM_OK;
  if (tensor->dtype != dtype || om_tensor_elems(tensor) != 1) {
    return fail_shape(ctx, "A scale", tensor);
  }
  out->kind = divides ? OM_SCALE_DIV : OM_SCALE_MUL;
  if (tensor->data) read_floats(tensor, &out->value);
  return OM_OK;
}

/* Operands are copied into dense piles (om_attention.c): their sizes must be sizes. */
static om_status check_size(om_ctx *ctx, const om_attention *a) {
  const size_t piles[][2] = {
      {a->rows, a->depth}, {a->depth, a->keys}, {a->keys, a->width}, {a->rows, a->keys}};
  size_t batch = 1;
  bool fits = om_shape_elems(a->batch_rank, a->batch, &batch);
  for (size_t i = 0; fits && i < OM_COUNT_OF(piles); ++i) {
    size_t elems;
    fits = om_size_mul(piles[i][0], piles[i][1], &elems) && om_size_mul(elems, batch, &elems) &&
           elems <= OM_RULE_MAX_BYTES / sizeof(float);
  }
  if (fits) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_INPUT, "An attention of %zu by %zu scores is too large.", a->rows, a->keys);
}

/* Checks the views' last two axes against each other. */
static om_status set_extents(om_ctx *ctx,
                             const om_tensor *const inputs[OM_ATTENTION_INPUTS],
                             int64_t extents[4][2],
                             om_attention *a) {
  enum { Q = OM_ATTENTION_Q, K = OM_ATTENTION_K, V = OM_ATTENTION_V, MASK = OM_ATTENTION_MASK };
  a->rows = (size_t)extents[Q][0];
  a->depth = (size_t)extents[Q][1];
  a->keys = (size_t)extents[K][1];
  a->width = (size_t)extents[V][1];
  if (extents[K][0] != extents[Q][1]) return fail_shape(ctx, "K", inputs[K]);
  if (!broadcasts(extents[MASK][0], &a->rows) || !broadcasts(extents[MASK][1], &a->keys)) {
    return fail_shape(ctx, "The mask", inputs[MASK]);
  }
  if (extents[V][0] != (int64_t)a->keys) return fail_shape(ctx, "V", inputs[V]);
  return OM_OK;
}

om_status om_attention_describe(om_ctx *ctx,
                                const om_attention_params *params,
                                const om_tensor *const inputs[OM_ATTENTION_INPUTS],
                                om_attention *out_attention,
                                om_tensor *out_y) {
  om_attention *a = out_attention;
  om_attention_side *const sides[] = {&a->q, &a->k, &a->v, &a->mask};
  om_scale *const scales[] = {&a->q_scale, &a->k_scale, &a->scale};
  int64_t extents[4][2] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const om_dtype dtype = inputs[OM_ATTENTION_Q]->dtype;
  om_view v;
  *a = (om_attention){.zeroes_nan = params->zeroes_nan,
                      .has_mask = inputs[OM_ATTENTION_MASK],
                      .selects = params->selects};
  for (uint32_t i = 0; i < 4; ++i) {
    if (!inputs[i]) continue;
    OM_TRY(make_view(ctx, params, dtype, i, inputs[i], &v));
    OM_TRY(merge_batch(ctx, &v, &a->batch_rank, a->batch));
    if (v.rank > 1) extents[i][0] = v.dims[v.rank - 2];
    if (v.rank > 0) extents[i][1] = v.dims[v.rank - 1];
  }
  if (a->batch_rank + 2 > OM_MAX_RANK) return fail_shape(ctx, "Q", inputs[0]);
  OM_TRY(set_extents(ctx, inputs, extents, a));
  OM_TRY(check_size(ctx, a));
  for (uint32_t i = 0; i < 4; ++i) {
    if (!inputs[i]) continue;
    OM_TRY(make_view(ctx, params, dtype, i, inputs[i], &v));
    *sides[i] = side_of(&v, a);
  }
  for (uint32_t i = 0; i < OM_COUNT_OF(scales); ++i) {
    OM_TRY(read_scale(ctx, inputs[OM_ATTENTION_Q_SCALE + i], dtype, params->divides[i], scales[i]));
  }
  return place_result(ctx, &params->y_perm, dtype, a, out_y);
}

/* ---- The entry ---- */

static om_status describe(om_ctx *ctx, const om_op_call *call, om_attention *a, om_tensor *y) {
  const om_tensor *inputs[OM_ATTENTION_INPUTS];
  for (uint32_t i = 0; i < OM_ATTENTION_INPUTS; ++i) inputs[i] = om_rule_input(call, i);
  return om_attention_describe(ctx, call->params, inputs, a, y);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  om_attention a;
  om_tensor y;
  OM_TRY(describe(ctx, call, &a, &y));
  return om_rule_set(ctx, call, 0, y.dtype, y.rank, y.dims);
}

/* float16 operands and the result are held as float32 behind the kernel's own scratch. */
static size_t float_elems(const om_op_call *call, const om_tensor *y) {
  size_t elems = om_tensor_elems(y);
  for (uint32_t i = 0; i <= OM_ATTENTION_MASK; ++i) {
    const om_tensor *input = om_rule_input(call, i);
    if (input) elems += om_tensor_elems(input);
  }
  return elems;
}

/* What infer has accepted cannot fail here: no context is needed. */
static size_t scratch_bytes(const om_op_call *call) {
  om_attention a;
  om_tensor y;
  if (describe(NULL, call, &a, &y) != OM_OK) return 0;
  const size_t own = om_size_align(om_attention_scratch(&a), sizeof(float));
  return y.dtype == OM_DTYPE_F16 ? own + float_elems(call, &y) * sizeof(float) : own;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  om_attention a;
  om_tensor y;
  const void *operands[OM_ATTENTION_MASK + 1] = {NULL};
  OM_TRY(describe(ctx, call, &a, &y));
  const bool is_half = y.dtype == OM_DTYPE_F16;
  void *behind = (char *)call->scratch + om_size_align(om_attention_scratch(&a), sizeof(float));
  float *next = behind;
  for (uint32_t i = 0; i <= OM_ATTENTION_MASK; ++i) {
    const om_tensor *input = om_rule_input(call, i);
    if (!input) continue;
    operands[i] = is_half ? next : input->data;
    if (!is_half) continue;
    read_floats(input, next);
    next += om_tensor_elems(input);
  }
  om_attention_run_f32(ctx,
                       &a,
                       operands[OM_ATTENTION_Q],
                       operands[OM_ATTENTION_K],
                       operands[OM_ATTENTION_V],
                       operands[OM_ATTENTION_MASK],
                       is_half ? next : call->outputs[0]->data,
                       call->scratch);
  if (is_half) om_half_from_f32(OM_DTYPE_F16, next, om_tensor_elems(&y), call->outputs[0]->data);
  return OM_OK;
}

/* ---- Fast mode ---- */

static om_status run_fast(om_ctx *ctx, const om_op_call *call, void *state) {
  om_attention a;
  om_tensor y;
  const float *operands[OM_ATTENTION_MASK + 1] = {NULL};
  OM_TRY(describe(ctx, call, &a, &y));
  for (uint32_t i = 0; i <= OM_ATTENTION_MASK; ++i) {
    const om_tensor *input = om_rule_input(call, i);
    if (input) operands[i] = input->data;
  }
  return om_fast_attention_run(ctx, state, &a, operands, call->outputs[0]->data, call->scratch);
}

static void destroy_fast(om_ctx *ctx, void *state) {
  om_fast_attention_destroy(ctx, state);
}

static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  om_attention a;
  om_tensor y;
  om_fast_attention *attention = NULL;
  (void)kept_inputs;
  OM_TRY(describe(ctx, call, &a, &y));
  if (y.dtype != OM_DTYPE_F32) return OM_OK;
  OM_TRY(om_fast_attention_create(ctx, fast, &a, &attention));
  if (!attention) return OM_OK;
  *out_ready = (om_op_ready){.run = run_fast,
                             .destroy = destroy_fast,
                             .state = attention,
                             .scratch_bytes = om_fast_attention_scratch(attention)};
  return OM_OK;
}

/* ---- Operands in place ---- */

static bool get_view(const om_op_call *call, uint32_t input, om_view *out_view) {
  const om_tensor *x = om_rule_input(call, input);
  return make_view(NULL, call->params, x->dtype, input, x, out_view) == OM_OK;
}

/* At most two axes of batch, for that many the device takes wherever they lie; and elements side by
 * side along one of the axes that are multiplied. A mask begins with its first element, and has its
 * keys side by side, or one for all. */
static bool accepts_view(uint32_t input, const om_view *view) {
  enum { MOST_RANK = 4 };
  if (view->rank > MOST_RANK || view->rank < 2) return false;
  for (uint32_t i = 0; i < view->rank; ++i) {
    if (view->strides[i] < 0) return false;
  }
  if (input == OM_ATTENTION_MASK) return view->offset == 0 && view->strides[view->rank - 1] <= 1;
  return view->strides[view->rank - 1] == 1 || view->strides[view->rank - 2] == 1;
}

static void set_view(void *params, uint32_t input, const om_view *view) {
  om_attention_params *p = params;
  p->views[input] = *view;
}

static void turn_result(void *params, uint32_t rank, uint32_t count, const uint32_t *axes) {
  om_attention_perm *y_perm = &((om_attention_params *)params)->y_perm;
  om_attention_perm from = {.rank = rank};
  for (uint32_t i = 0; i < rank; ++i) from.axes[i] = y_perm->rank != 0 ? y_perm->axes[i] : i;
  *y_perm = from;
  for (uint32_t i = 0; i < count; ++i) y_perm->axes[i] = from.axes[axes[i]];
}

static const om_op_views views = {.input_count = 4,
                                  .get = get_view,
                                  .accepts = accepts_view,
                                  .set = set_view,
                                  .turn_result = turn_result};

const om_op om_ops_attention[] = {
    {.domain = "onemodel",
     .type = "Attention",
     .first_opset = 1,
     OM_RULE_COUNTS(3, 7, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16),
     .params_bytes = sizeof(om_attention_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run,
     .views = &views,
     .make_ready = make_ready},
    {.type = NULL},
};
