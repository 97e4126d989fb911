/* Selecting, ordering and marking elements: OneHot, NonZero, Trilu, CumSum, TopK. */
#include "ops/op_select.h"

#include <inttypes.h>

#include "base/om_float16.h"

/* Element `index` as an integer, cut towards zero; NaN gives 0. */
static int64_t number_at(const om_tensor *x, size_t index) {
  double value = 0.0;
  switch (x->dtype) {
    case OM_DTYPE_I8:
      return ((const int8_t *)x->data)[index];
    case OM_DTYPE_U8:
      return ((const uint8_t *)x->data)[index];
    case OM_DTYPE_I16:
      return ((const int16_t *)x->data)[index];
    case OM_DTYPE_U16:
      return ((const uint16_t *)x->data)[index];
    case OM_DTYPE_I32:
      return ((const int32_t *)x->data)[index];
    case OM_DTYPE_U32:
      return ((const uint32_t *)x->data)[index];
    case OM_DTYPE_I64:
      return ((const int64_t *)x->data)[index];
    case OM_DTYPE_U64: {
      const uint64_t wide = ((const uint64_t *)x->data)[index];
      return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
    }
    case OM_DTYPE_F32:
      value = (double)((const float *)x->data)[index];
      break;
    case OM_DTYPE_F64:
      value = ((const double *)x->data)[index];
      break;
    case OM_DTYPE_F16:
      value = (double)om_f16_to_f32(((const uint16_t *)x->data)[index]);
      break;
    case OM_DTYPE_BF16:
      value = (double)om_bf16_to_f32(((const uint16_t *)x->data)[index]);
      break;
    default:
      break;
  }
  if (value >= 9.2e18) return INT64_MAX;
  if (value <= -9.2e18) return INT64_MIN;
  return value == value ? (int64_t)value : 0;
}

/* ---- OneHot ---- */

static om_status one_hot_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_one_hot_params *p = params;
  return om_node_attr_int(ctx, node, "axis", -1, &p->axis);
}

static om_status one_hot_infer(om_ctx *ctx, const om_op_call *call) {
  const om_one_hot_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *depth = call->inputs[1];
  const om_tensor *values = call->inputs[2];
  int64_t dims[OM_MAX_RANK + 1] = {0};
  uint32_t axis = 0;
  OM_TRY(om_rule_check_bytes(ctx, values));
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank + 1, &axis));
  if (values->rank != 1 || values->dims[0] != 2 || om_tensor_elems(depth) != 1 ||
      !(OM_DT(depth->dtype) & OM_DT_NUMBER)) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "The depth is no single number, or the values no pair.");
  }
  if (!om_rule_is_known(depth)) {
    om_rule_set_unknown(call, 0, values->dtype);
    return OM_OK;
  }
  const int64_t count = number_at(depth, 0);
  if (count < 1) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The depth is %" PRId64 "; it must be above 0.", count);
  }
  for (uint32_t i = 0; i <= x->rank; ++i) {
    dims[i] = i == axis ? count : x->dims[i < axis ? i : i - 1];
  }
  return om_rule_set(ctx, call, 0, values->dtype, x->rank + 1, dims);
}

/* An index outside -depth..depth-1 marks nothing. */
static om_status one_hot_run(om_ctx *ctx, const om_op_call *call) {
  const om_one_hot_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *values = call->inputs[2];
  const om_tensor *y = call->outputs[0];
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + y->rank : p->axis);
  const size_t bytes = om_rule_elem_bytes(y->dtype);
  const size_t inner = om_rule_product(y->dims, axis + 1, y->rank);
  const size_t total = om_tensor_elems(y);
  const int64_t depth = y->dims[axis];
  uint8_t *to = y->data;
  for (size_t i = 0; i < total; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    memcpy(to + i * bytes, values->data, bytes);
  }
  for (size_t i = 0; total != 0 && i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    int64_t index = number_at(x, i);
    if (index < -depth || index >= depth) continue;
    if (index < 0) index += depth;
    const size_t at = (i / inner * (size_t)depth + (size_t)index) * inner + i % inner;
    memcpy(to + at * bytes, (const uint8_t *)values->data + bytes, bytes);
  }
  return OM_OK;
}

/* ---- NonZero ---- */

static bool is_nonzero(const om_tensor *x, size_t index) {
  if (x->dtype == OM_DTYPE_STRING) return ((const om_string *)x->data)[index].bytes > 0;
  switch (om_rule_elem_bytes(x->dtype)) {
    case 1:
      return ((const uint8_t *)x->data)[index] != 0;
    case 2: {
      const uint16_t bits = ((const uint16_t *)x->data)[index];
      return (OM_DT(x->dtype) & OM_DT_FLOAT ? bits & 0x7fff : bits) != 0;
    }
    case 4:
      return x->dtype == OM_DTYPE_F32 ? ((const float *)x->data)[index] != 0.0f
                                      : ((const uint32_t *)x->data)[index] != 0;
    default:
      return x->dtype == OM_DTYPE_F64 ? ((const double *)x->data)[index] != 0.0
                                      : ((const uint64_t *)x->data)[index] != 0;
  }
}

static om_status nonzero_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  int64_t dims[2] = {x->rank > 0 ? x->rank : 1, 0};
  if (!om_rule_is_known(x)) {
    om_rule_set_unknown(call, 0, OM_DTYPE_I64);
    return OM_OK;
  }
  const size_t elems = om_tensor_elems(x);
  for (size_t i = 0; i < elems; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    dims[1] += is_nonzero(x, i);
  }
  return om_rule_set(ctx, call, 0, OM_DTYPE_I64, 2, dims);
}

/* One row of positions for each axis; a 0-d tensor counts as a list of one. */
static om_status nonzero_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const size_t elems = om_tensor_elems(x);
  const size_t count = (size_t)call->outputs[0]->dims[1];
  int64_t *to = call->outputs[0]->data;
  for (size_t i = 0, found = 0; i < elems && found < count; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    if (!is_nonzero(x, i)) continue;
    size_t rest = i;
    if (x->rank == 0) to[found] = 0;
    for (uint32_t axis = x->rank; axis-- > 0;) {
      to[axis * count + found] = (int64_t)(rest % (size_t)x->dims[axis]);
      rest /= (size_t)x->dims[axis];
    }
    ++found;
  }
  return OM_OK;
}

/* ---- Trilu ---- */

static om_status trilu_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_trilu_params *p = params;
  int64_t upper = 1;
  OM_TRY(om_node_attr_int(ctx, node, "upper", 1, &upper));
  p->is_upper = upper != 0;
  return OM_OK;
}

static om_status trilu_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *k = om_rule_input(call, 1);
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (k) OM_TRY(om_rule_check_int(ctx, k, "diagonals"));
  if (x->rank < 2 || (k && om_tensor_elems(k) != 1)) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The rank is below 2, or k is no single number.");
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status trilu_run(om_ctx *ctx, const om_op_call *call) {
  const om_trilu_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *diagonal = om_rule_input(call, 1);
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const int64_t rows = x->dims[x->rank - 2];
  const int64_t cols = x->dims[x->rank - 1];
  const size_t total = om_tensor_elems(x);
  int64_t k = diagonal ? om_rule_int(diagonal, 0) : 0;
  if (k < -rows) k = -rows;
  if (k > cols) k = cols;
  for (size_t i = 0; i < total; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const int64_t col = (int64_t)(i % (size_t)cols);
    const int64_t row = (int64_t)(i / (size_t)cols % (size_t)rows);
    const bool keeps = p->is_upper ? col >= row + k : col <= row + k;
    uint8_t *to = (uint8_t *)call->outputs[0]->data + i * bytes;
    if (keeps) {
      memcpy(to, (const uint8_t *)x->data + i * bytes, bytes);
    } else {
      memset(to, 0, bytes);
    }
  }
  return OM_OK;
}

/* ---- CumSum ---- */

static om_status cumsum_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_cumsum_params *p = params;
  int64_t exclusive = 0;
  int64_t reverse = 0;
  OM_TRY(om_node_attr_int(ctx, node, "exclusive", 0, &exclusive));
  OM_TRY(om_node_attr_int(ctx, node, "reverse", 0, &reverse));
  p->is_exclusive = exclusive != 0;
  p->is_reversed = reverse != 0;
  return OM_OK;
}

static om_status cumsum_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *axis = call->inputs[1];
  uint32_t ignored = 0;
  OM_TRY(om_rule_check_int(ctx, axis, "axes"));
  if (om_tensor_elems(axis) != 1) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The axis is no single number.");
  }
  if (om_rule_is_known(axis)) OM_TRY(om_rule_axis(ctx, om_rule_int(axis, 0), x->rank, &ignored));
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

/* One line along the axis: a chain of additions from its first element (reversed: its last). */
#define OM_CUMSUM_LINE(type, sum_type, load, store)                     \
  do {                                                                  \
    const type *from = (const type *)x->data;                           \
    type *to = (type *)y->data;                                         \
    sum_type sum = 0;                                                   \
    for (size_t i = 0; i < extent; ++i) {                               \
      const size_t at = base + (reversed ? extent - 1 - i : i) * inner; \
      const sum_type value = load(from[at]);                            \
      const sum_type next = sum + value;                                \
      to[at] = store(exclusive ? sum : next);                           \
      sum = next;                                                       \
    }                                                                   \
  } while (0)
#define OM_AS_IS(value) (value)

static void cumsum_line(const om_tensor *x,
                        const om_tensor *y,
                        const om_cumsum_params *p,
                        size_t base,
                        size_t extent,
                        size_t inner) {
  const bool reversed = p->is_reversed;
  const bool exclusive = p->is_exclusive;
  switch (x->dtype) {
    case OM_DTYPE_F32:
      OM_CUMSUM_LINE(float, float, OM_AS_IS, OM_AS_IS);
      break;
    case OM_DTYPE_F64:
      OM_CUMSUM_LINE(double, double, OM_AS_IS, OM_AS_IS);
      break;
    case OM_DTYPE_F16:
      OM_CUMSUM_LINE(uint16_t, float, om_f16_to_f32, om_f16_from_f32);
      break;
    case OM_DTYPE_BF16:
      OM_CUMSUM_LINE(uint16_t, float, om_bf16_to_f32, om_bf16_from_f32);
      break;
    case OM_DTYPE_I64:
    case OM_DTYPE_U64:
      OM_CUMSUM_LINE(uint64_t, uint64_t, OM_AS_IS, OM_AS_IS);
      break;
    default:
      OM_CUMSUM_LINE(uint32_t, uint32_t, OM_AS_IS, OM_AS_IS);
      break;
  }
}

static om_status cumsum_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  uint32_t axis = 0;
  OM_TRY(om_rule_axis(ctx, om_rule_int(call->inputs[1], 0), x->rank, &axis));
  const size_t extent = (size_t)x->dims[axis];
  const size_t inner = om_rule_product(x->dims, axis + 1, x->rank);
  const size_t lines = om_rule_product(x->dims, 0, axis) * inner;
  for (size_t i = 0; i < lines; ++i) {
    const size_t base = i / inner * extent * inner + i % inner;
    OM_TRY(om_check_cancelled(ctx));
    cumsum_line(x, call->outputs[0], call->params, base, extent, inner);
  }
  return OM_OK;
}

/* ---- TopK ---- */

static om_status topk_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_topk_params *p = params;
  int64_t largest = 1;
  OM_TRY(om_node_attr_int(ctx, node, "axis", -1, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "largest", 1, &largest));
  OM_TRY(om_node_attr_int(ctx, node, "k", -1, &p->k));
  p->is_smallest = largest == 0;
  return OM_OK;
}

static om_status topk_infer(om_ctx *ctx, const om_op_call *call) {
  const om_topk_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *k = om_rule_input(call, 1);
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t axis = 0;
  int64_t count = p->k;
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  if (k) {
    OM_TRY(om_rule_check_int(ctx, k, "counts"));
    if (om_tensor_elems(k) != 1) return OM_FAIL(ctx, OM_E_INVALID_INPUT, "K is no single number.");
    if (!om_rule_is_known(k)) {
      om_rule_set_unknown(call, 0, x->dtype);
      om_rule_set_unknown(call, 1, OM_DTYPE_I64);
      return OM_OK;
    }
    count = om_rule_int(k, 0);
  }
  if (count < 0 || count > x->dims[axis]) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "K is %" PRId64 " for an axis of %" PRId64 " elements.",
                   count,
                   x->dims[axis]);
  }
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  dims[axis] = count;
  OM_TRY(om_rule_set(ctx, call, 0, x->dtype, x->rank, dims));
  return om_rule_set(ctx, call, 1, OM_DTYPE_I64, x->rank, dims);
}

typedef struct om_topk_entry {
  uint64_t key;   /* the least comes first */
  uint64_t index; /* among equals the first comes first */
} om_topk_entry;

/* Maps a value to an integer of the same order: NaN above all, both zeros alike. */
static uint64_t float_key(double value) {
  uint64_t bits = 0;
  if (value != value) return UINT64_MAX;
  value += 0.0; /* -0 becomes 0 */
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | ((uint64_t)1 << 63);
}

static uint64_t topk_key(const om_tensor *x, size_t at) {
  switch (x->dtype) {
    case OM_DTYPE_F32:
      return float_key((double)((const float *)x->data)[at]);
    case OM_DTYPE_F64:
      return float_key(((const double *)x->data)[at]);
    case OM_DTYPE_F16:
      return float_key((double)om_f16_to_f32(((const uint16_t *)x->data)[at]));
    case OM_DTYPE_BF16:
      return float_key((double)om_bf16_to_f32(((const uint16_t *)x->data)[at]));
    case OM_DTYPE_U64:
      return ((const uint64_t *)x->data)[at];
    default:
      return (uint64_t)number_at(x, at) + ((uint64_t)1 << 63);
  }
}

static bool entry_is_before(const om_topk_entry *a, const om_topk_entry *b) {
  return a->key != b->key ? a->key < b->key : a->index < b->index;
}

/* Restores the heap (the last in order on top) below `at`. */
static void sift_down(om_topk_entry *heap, size_t count, size_t at) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && entry_is_before(&heap[child], &heap[child + 1])) ++child;
    if (!entry_is_before(&heap[at], &heap[child])) return;
    om_topk_entry moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
    at = child;
  }
}

/* Leaves the k first of the line in heap[0..k), in order. */
static om_status select_first(om_ctx *ctx,
                              const om_tensor *x,
                              bool is_smallest,
                              size_t base,
                              size_t extent,
                              size_t inner,
                              om_topk_entry *heap,
                              size_t k) {
  for (size_t i = 0; i < extent; ++i) {
    const uint64_t key = topk_key(x, base + i * inner);
    OM_TRY(om_check_turn(ctx, i));
    const om_topk_entry entry = {is_smallest ? key : ~key, i};
    if (i < k) {
      heap[i] = entry;
      if (i + 1 != k) continue;
      for (size_t at = k / 2; at-- > 0;) {
        OM_TRY(om_check_turn(ctx, at));
        sift_down(heap, k, at);
      }
    } else if (entry_is_before(&entry, &heap[0])) {
      heap[0] = entry;
      sift_down(heap, k, 0);
    }
  }
  for (size_t count = k; count-- > 1;) {
    OM_TRY(om_check_turn(ctx, count));
    const om_topk_entry last = heap[0];
    heap[0] = heap[count];
    heap[count] = last;
    sift_down(heap, count, 0);
  }
  return OM_OK;
}

static uint32_t topk_axis(const om_op_call *call) {
  const om_topk_params *p = call->params;
  return (uint32_t)(p->axis < 0 ? p->axis + call->inputs[0]->rank : p->axis);
}

/* Outputs that nothing reads have no shape, so K comes from where infer had it. */
static size_t topk_count(const om_op_call *call) {
  const om_topk_params *p = call->params;
  const om_tensor *k = om_rule_input(call, 1);
  return (size_t)(k ? om_rule_int(k, 0) : p->k);
}

static size_t topk_scratch(const om_op_call *call) {
  return (size_t)call->inputs[0]->dims[topk_axis(call)] * sizeof(om_topk_entry);
}

static om_status topk_run(om_ctx *ctx, const om_op_call *call) {
  const om_topk_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  om_tensor *values = om_rule_output(call, 0);
  om_tensor *indices = om_rule_output(call, 1);
  om_topk_entry *heap = call->scratch;
  const uint32_t axis = topk_axis(call);
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const size_t k = topk_count(call);
  const size_t extent = (size_t)x->dims[axis];
  const size_t inner = om_rule_product(x->dims, axis + 1, x->rank);
  const size_t lines = om_rule_product(x->dims, 0, axis) * inner;
  for (size_t line = 0; k != 0 && line < lines; ++line) {
    const size_t base = line / inner * extent * inner + line % inner;
    const size_t to = line / inner * k * inner + line % inner;
    OM_TRY(select_first(ctx, x, p->is_smallest, base, extent, inner, heap, k));
    for (size_t i = 0; i < k; ++i) {
      const size_t at = to + i * inner;
      if (indices) ((int64_t *)indices->data)[at] = (int64_t)heap[i].index;
      if (!values) continue;
      memcpy((uint8_t *)values->data + at * bytes,
             (const uint8_t *)x->data + (base + heap[i].index * inner) * bytes,
             bytes);
    }
  }
  return OM_OK;
}

const om_op om_ops_select[] = {
    {.domain = "",
     .type = "OneHot",
     .first_opset = 9,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_NUMBER,
     .params_bytes = sizeof(om_one_hot_params),
     .resolve = one_hot_resolve,
     .infer = one_hot_infer,
     .run = one_hot_run},
    {.domain = "",
     .type = "NonZero",
     .first_opset = 9,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_STRING),
     .is_sized_by_data = true,
     .infer = nonzero_infer,
     .run = nonzero_run},
    {.domain = "",
     .type = "Trilu",
     .first_opset = 14,
     OM_RULE_COUNTS(1, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_trilu_params),
     .resolve = trilu_resolve,
     .infer = trilu_infer,
     .run = trilu_run},
    {.domain = "",
     .type = "CumSum",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_FLOAT | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_U32) |
               OM_DT(OM_DTYPE_U64),
     .params_bytes = sizeof(om_cumsum_params),
     .resolve = cumsum_resolve,
     .infer = cumsum_infer,
     .run = cumsum_run},
    {.domain = "",
     .type = "TopK",
     .first_opset = 1,
     .last_opset = 9,
     OM_RULE_COUNTS(1, 1, 2, 2),
     .dtypes = OM_DT_NUMBER,
     .params_bytes = sizeof(om_topk_params),
     .resolve = topk_resolve,
     .infer = topk_infer,
     .scratch_bytes = topk_scratch,
     .run = topk_run},
    {.domain = "",
     .type = "TopK",
     .first_opset = 10,
     OM_RULE_COUNTS(2, 2, 2, 2),
     .dtypes = OM_DT_NUMBER,
     .params_bytes = sizeof(om_topk_params),
     .resolve = topk_resolve,
     .infer = topk_infer,
     .scratch_bytes = topk_scratch,
     .run = topk_run},
    {.type = NULL},
};
