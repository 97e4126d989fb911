/* Writing at indices: Scatter, ScatterElements, ScatterND.
 *
 * Updates are applied one after another in the order of the indices, so that two that meet in one
 * place give the same bits on every run.
 */
#include <inttypes.h>

#include "base/om_float16.h"
#include "base/om_thread.h"
#include "cpu/exact/om_strided.h"
#include "ops/op_gather.h"

enum { PIECE_ELEMS = 1 << 15 }; /* updates of a piece, about */

static om_status scatter_resolve(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  om_scatter_params *p = params;
  om_string reduction;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  OM_TRY(om_node_attr_text(ctx, node, "reduction", "none", &reduction));
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    p->reduction = (om_scatter_reduction)i;
    if (om_string_is(reduction, names[i])) return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute reduction is none of the known ones.");
}

/* NaN wins over any number, as in reductions. Integers wrap: `wide` is what they are computed in.
 */
#define OM_APPLY(type, wide)                                             \
  do {                                                                   \
    type *y = (type *)target + at;                                       \
    const type *u = (const type *)updates + from;                        \
    for (size_t i = 0; i < count; ++i) {                                 \
      const type a = y[i];                                               \
      const type b = u[i];                                               \
      if (reduction == OM_SCATTER_ADD) y[i] = (type)((wide)a + (wide)b); \
      if (reduction == OM_SCATTER_MUL) y[i] = (type)((wide)a * (wide)b); \
      if (reduction == OM_SCATTER_MAX) y[i] = a > b || a != a ? a : b;   \
      if (reduction == OM_SCATTER_MIN) y[i] = a < b || a != a ? a : b;   \
    }                                                                    \
  } while (0)

static void apply_half(om_dtype dtype,
                       om_scatter_reduction reduction,
                       uint16_t *target,
                       const uint16_t *updates,
                       size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const bool is_f16 = dtype == OM_DTYPE_F16;
    const float a = is_f16 ? om_f16_to_f32(target[i]) : om_bf16_to_f32(target[i]);
    const float b = is_f16 ? om_f16_to_f32(updates[i]) : om_bf16_to_f32(updates[i]);
    float y = a;
    if (reduction == OM_SCATTER_ADD) y = a + b;
    if (reduction == OM_SCATTER_MUL) y = a * b;
    if (reduction == OM_SCATTER_MAX) y = a > b || a != a ? a : b;
    if (reduction == OM_SCATTER_MIN) y = a < b || a != a ? a : b;
    target[i] = is_f16 ? om_f16_from_f32(y) : om_bf16_from_f32(y);
  }
}

/* Combines `count` updates (from element `from` on) into the target (from element `at` on). */
static void apply(om_dtype dtype,
                  om_scatter_reduction reduction,
                  void *target,
                  size_t at,
                  const void *updates,
                  size_t from,
                  size_t count) {
  const size_t bytes = om_rule_elem_bytes(dtype);
  if (reduction == OM_SCATTER_NONE) {
    memcpy((uint8_t *)target + at * bytes, (const uint8_t *)updates + from * bytes, count * bytes);
    return;
  }
  if (dtype == OM_DTYPE_BOOL) { /* or, and */
    if (reduction == OM_SCATTER_ADD) reduction = OM_SCATTER_MAX;
    if (reduction == OM_SCATTER_MUL) reduction = OM_SCATTER_MIN;
  }
  if (dtype == OM_DTYPE_F32) {
    OM_APPLY(float, float);
  } else if (dtype == OM_DTYPE_F64) {
    OM_APPLY(double, double);
  } else if (dtype == OM_DTYPE_I8) {
    OM_APPLY(int8_t, uint32_t);
  } else if (dtype == OM_DTYPE_U8 || dtype == OM_DTYPE_BOOL) {
    OM_APPLY(uint8_t, uint32_t);
  } else if (dtype == OM_DTYPE_I16) {
    OM_APPLY(int16_t, uint32_t);
  } else if (dtype == OM_DTYPE_U16) {
    OM_APPLY(uint16_t, uint32_t);
  } else if (dtype == OM_DTYPE_I32) {
    OM_APPLY(int32_t, uint32_t);
  } else if (dtype == OM_DTYPE_U32) {
    OM_APPLY(uint32_t, uint32_t);
  } else if (dtype == OM_DTYPE_I64) {
    OM_APPLY(int64_t, uint64_t);
  } else if (dtype == OM_DTYPE_U64) {
    OM_APPLY(uint64_t, uint64_t);
  } else {
    apply_half(dtype, reduction, (uint16_t *)target + at, (const uint16_t *)updates + from, count);
  }
}

static om_status check_types(om_ctx *ctx, const om_op_call *call) {
  const om_scatter_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_check_int(ctx, call->inputs[1], "indices"));
  if (call->inputs[2]->dtype != x->dtype) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The updates are %s, the data %s.",
                   om_dtype_name(call->inputs[2]->dtype),
                   om_dtype_name(x->dtype));
  }
  if (p->reduction == OM_SCATTER_NONE || OM_DT(x->dtype) & (OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL))) {
    return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "%s has no reduction.", om_dtype_name(x->dtype));
}

static om_status fail_shapes(om_ctx *ctx, const om_op_call *call) {
  char text[3][OM_SHAPE_TEXT];
  for (size_t i = 0; i < 3; ++i) {
    om_shape_text(text[i], sizeof text[i], call->inputs[i]->rank, call->inputs[i]->dims);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Data of shape %s, indices of %s and updates of %s do not go together.",
                 text[0],
                 text[1],
                 text[2]);
}

/* The result starts as a copy of the data; updates go into it. */
static void copy_data(const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const size_t bytes = om_tensor_elems(x) * om_rule_elem_bytes(x->dtype);
  if (bytes != 0 && call->outputs[0]->data != x->data) {
    memcpy(call->outputs[0]->data, x->data, bytes);
  }
}

/* ---- ScatterElements ---- */

static om_status scatter_elements_infer(om_ctx *ctx, const om_op_call *call) {
  const om_scatter_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const om_tensor *updates = call->inputs[2];
  uint32_t axis = 0;
  OM_TRY(check_types(ctx, call));
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  bool fits = indices->rank == x->rank && updates->rank == x->rank;
  for (uint32_t i = 0; fits && i < x->rank; ++i) {
    fits = indices->dims[i] == updates->dims[i] && (i == axis || indices->dims[i] <= x->dims[i]);
  }
  if (!fits) return fail_shapes(ctx, call);
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

/* Updates that differ along any other axis than their own never meet: the longest such axis but the
 * last is cut into pieces, or the last where there is no other. */
typedef struct scatter_job {
  om_ctx *ctx;
  const om_op_call *call;
  const int64_t *wide; /* indices, where they are int64 */
  bool is_word;        /* elements of 4 bytes that replace others */
  uint32_t own, cut, last;
  int64_t extent;                                  /* of the result, along its own axis */
  int64_t dims[OM_MAX_RANK], strides[OM_MAX_RANK]; /* of the indices, of the result */
  size_t outside; /* the first update whose index is out of range, or their number */
} scatter_job;

/* Axes beside each other are one where the updates go over all of the faster one. */
static void set_axes(const om_tensor *x, const om_tensor *indices, uint32_t own, scatter_job *j) {
  int64_t strides[OM_MAX_RANK];
  uint32_t rank = 0;
  om_dense_strides(x->rank, x->dims, strides);
  for (uint32_t axis = 0; axis < x->rank; ++axis) {
    const bool joins =
        axis > 0 && axis != own && axis - 1 != own && indices->dims[axis] == x->dims[axis];
    if (axis == own) j->own = rank;
    if (!joins) j->dims[rank++] = 1;
    j->dims[rank - 1] *= indices->dims[axis];
    j->strides[rank - 1] = strides[axis];
  }
  j->extent = x->dims[own];
  j->last = rank - 1;
}

static uint32_t axis_to_cut(const scatter_job *j) {
  uint32_t cut = j->last;
  int64_t most = 0;
  for (uint32_t axis = 0; axis < j->last; ++axis) {
    if (axis == j->own || j->dims[axis] <= most) continue;
    most = j->dims[axis];
    cut = axis;
  }
  return cut;
}

static void keep_least(size_t value, size_t *least) {
  size_t before = __atomic_load_n(least, __ATOMIC_RELAXED);
  while (value < before && !__atomic_compare_exchange_n(
                               least, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* Updates begin to end of a row; false: an index is out of range, or the run is cancelled. */
static bool scatter_row(scatter_job *j, size_t row, size_t begin, size_t end) {
  const om_scatter_params *p = j->call->params;
  const om_tensor *x = j->call->inputs[0];
  const om_tensor *indices = j->call->inputs[1];
  uint32_t *words = j->call->outputs[0]->data;
  const uint32_t *new_words = j->call->inputs[2]->data;
  const size_t step = (size_t)j->strides[j->own];
  const size_t last_step = j->last != j->own ? (size_t)j->strides[j->last] : 0;
  size_t base = 0;
  size_t rest = row;
  for (uint32_t axis = j->last; axis-- > 0;) {
    const size_t position = rest % (size_t)j->dims[axis];
    rest /= (size_t)j->dims[axis];
    if (axis != j->own) base += position * (size_t)j->strides[axis];
  }
  for (size_t k = begin; k < end; ++k) {
    if (k % 1024 == 0 && om_is_cancelled(j->ctx)) return false;
    const size_t i = row * (size_t)j->dims[j->last] + k;
    const int64_t index = j->wide ? j->wide[i] : om_rule_int(indices, i);
    if (index < -j->extent || index >= j->extent) {
      keep_least(i, &j->outside);
      return false;
    }
    const size_t at = base + (size_t)(index < 0 ? index + j->extent : index) * step + k * last_step;
    if (j->is_word) {
      words[at] = new_words[i];
    } else {
      apply(x->dtype, p->reduction, j->call->outputs[0]->data, at, j->call->inputs[2]->data, i, 1);
    }
  }
  return true;
}

static void scatter_piece(void *arg, size_t begin, size_t end) {
  scatter_job *j = arg;
  const size_t row_elems = (size_t)j->dims[j->last];
  const bool cuts_rows = j->cut == j->last;
  const size_t slower = om_rule_product(j->dims, 0, j->cut);
  const size_t rows = cuts_rows ? 1 : om_rule_product(j->dims, j->cut + 1, j->last);
  const size_t cut_elems = cuts_rows ? 1 : (size_t)j->dims[j->cut];
  for (size_t s = 0; s < slower; ++s) {
    const size_t first = (s * cut_elems + (cuts_rows ? 0 : begin)) * rows;
    const size_t count = cuts_rows ? 1 : (end - begin) * rows;
    for (size_t row = first; row < first + count; ++row) {
      if (row % 128 == 0 && om_is_cancelled(j->ctx)) return;
      if (!scatter_row(j, row, cuts_rows ? begin : 0, cuts_rows ? end : row_elems)) return;
    }
  }
}

static om_status scatter_elements_run(om_ctx *ctx, const om_op_call *call) {
  const om_scatter_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const size_t count = om_tensor_elems(indices);
  scatter_job j = {
      .ctx = ctx,
      .call = call,
      .wide = indices->dtype == OM_DTYPE_I64 ? indices->data : NULL,
      .is_word = p->reduction == OM_SCATTER_NONE && om_rule_elem_bytes(x->dtype) == 4,
      .outside = count,
  };
  copy_data(call);
  if (count == 0) return OM_OK;
  set_axes(x, indices, (uint32_t)(p->axis < 0 ? p->axis + x->rank : p->axis), &j);
  j.cut = axis_to_cut(&j);
  const size_t places = (size_t)j.dims[j.cut];
  const size_t grain = j.cut == j.own ? places : PIECE_ELEMS / (count / places) + 1;
  om_parallel_for(ctx, places, grain, scatter_piece, &j);
  if (j.outside == count) return om_check_cancelled(ctx);
  size_t at = 0;
  return om_rule_index(ctx, call->node->type, om_rule_int(indices, j.outside), j.extent, &at);
}

/* ---- ScatterND ---- */

static om_status scatter_nd_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const om_tensor *updates = call->inputs[2];
  OM_TRY(check_types(ctx, call));
  bool fits = x->rank > 0 && indices->rank > 0;
  const int64_t tuple = fits ? indices->dims[indices->rank - 1] : 0;
  fits = fits && tuple >= 1 && tuple <= (int64_t)x->rank &&
         updates->rank == indices->rank - 1 + x->rank - (uint32_t)tuple;
  for (uint32_t i = 0; fits && i < updates->rank; ++i) {
    const int64_t wanted = i + 1 < indices->rank
                               ? indices->dims[i]
                               : x->dims[(uint32_t)tuple + i - (indices->rank - 1)];
    fits = updates->dims[i] == wanted;
  }
  if (!fits) return fail_shapes(ctx, call);
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status scatter_nd_run(om_ctx *ctx, const om_op_call *call) {
  const om_scatter_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const uint32_t tuple = (uint32_t)indices->dims[indices->rank - 1];
  const size_t tuples = om_tensor_elems(indices) / tuple;
  const size_t row = om_rule_product(x->dims, tuple, x->rank);
  int64_t strides[OM_MAX_RANK] = {0};
  om_dense_strides(x->rank, x->dims, strides);
  copy_data(call);
  for (size_t i = 0; i < tuples; ++i) {
    size_t at = 0;
    OM_TRY(om_check_turn(ctx, i));
    for (uint32_t axis = 0; axis < tuple; ++axis) {
      size_t index = 0;
      OM_TRY(om_rule_index(
          ctx, call->node->type, om_rule_int(indices, i * tuple + axis), x->dims[axis], &index));
      at += index * (size_t)strides[axis];
    }
    if (row == 0) continue;
    apply(x->dtype, p->reduction, call->outputs[0]->data, at, call->inputs[2]->data, i * row, row);
  }
  return OM_OK;
}

const om_op om_ops_scatter[] = {
    {.domain = "",
     .type = "Scatter",
     .first_opset = 9,
     .last_opset = 10,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_scatter_params),
     .resolve = scatter_resolve,
     .infer = scatter_elements_infer,
     .run = scatter_elements_run},
    {.domain = "",
     .type = "ScatterElements",
     .first_opset = 11,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_scatter_params),
     .resolve = scatter_resolve,
     .infer = scatter_elements_infer,
     .run = scatter_elements_run},
    {.domain = "",
     .type = "ScatterND",
     .first_opset = 11,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_scatter_params),
     .resolve = scatter_resolve,
     .infer = scatter_nd_infer,
     .run = scatter_nd_run},
    {.type = NULL},
};
