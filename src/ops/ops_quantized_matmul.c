/* Matrix products of quantized operands: MatMulInteger, QLinearMatMul, and the contributed QGemm,
 * MatMulIntegerToFloat and DynamicQuantizeMatMul.
 *
 * Integers are multiplied as they are, with the zero points of a's rows and of b's columns beside
 * them; 8-bit floats become float32. The sums are int32 (of 8-bit floats: float32). A list of zero
 * points or scales belongs to the rows of a and to the columns of b.
 *
 *     scratch: [a] [b] [sums] [a's scales] [b's scales] [the product's own], 4 bytes an element
 *
 * Of integers [a] and [b] hold the zero points, and behind those of a its bytes where it was
 * float32. Floats that have one factor a column come from the product itself: then there are no
 * sums, and b's scales are the factors.
 */
#include <inttypes.h>

#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_matmul_bytes.h"
#include "cpu/fast/om_fast.h"
#include "ops/op_quantize.h"

enum { NONE = OM_QUANTIZE_NONE };

/* ---- What the operators' inputs are ---- */

static om_status resolve_integer(om_ctx *ctx, const om_node *node, void *params) {
  (void)ctx;
  (void)node;
  *(om_qmatmul_params *)params = (om_qmatmul_params){.gemm = {.alpha = 1.0f},
                                                     .roles = {.b = 1,
                                                               .a_zero = 2,
                                                               .b_zero = 3,
                                                               .a_scale = NONE,
                                                               .b_scale = NONE,
                                                               .y_scale = NONE,
                                                               .y_zero = NONE,
                                                               .bias = NONE}};
  return OM_OK;
}

static om_status resolve_linear(om_ctx *ctx, const om_node *node, void *params) {
  (void)ctx;
  (void)node;
  *(om_qmatmul_params *)params = (om_qmatmul_params){.gemm = {.alpha = 1.0f},
                                                     .roles = {.a_scale = 1,
                                                               .a_zero = 2,
                                                               .b = 3,
                                                               .b_scale = 4,
                                                               .b_zero = 5,
                                                               .y_scale = 6,
                                                               .y_zero = 7,
                                                               .bias = NONE}};
  return OM_OK;
}

static om_status resolve_to_float(om_ctx *ctx, const om_node *node, void *params) {
  (void)ctx;
  (void)node;
  *(om_qmatmul_params *)params = (om_qmatmul_params){.gemm = {.alpha = 1.0f},
                                                     .roles = {.b = 1,
                                                               .a_scale = 2,
                                                               .b_scale = 3,
                                                               .a_zero = 4,
                                                               .b_zero = 5,
                                                               .bias = 6,
                                                               .y_scale = NONE,
                                                               .y_zero = NONE}};
  return OM_OK;
}

static om_status resolve_dynamic(om_ctx *ctx, const om_node *node, void *params) {
  (void)ctx;
  (void)node;
  *(om_qmatmul_params *)params = (om_qmatmul_params){.gemm = {.alpha = 1.0f},
                                                     .quantizes_a = true,
                                                     .roles = {.b = 1,
                                                               .b_scale = 2,
                                                               .b_zero = 3,
                                                               .bias = 4,
                                                               .a_scale = NONE,
                                                               .a_zero = NONE,
                                                               .y_scale = NONE,
                                                               .y_zero = NONE}};
  return OM_OK;
}

static om_status resolve_gemm(om_ctx *ctx, const om_node *node, void *params) {
  om_qmatmul_params *p = params;
  int64_t turns_a = 0;
  int64_t turns_b = 0;
  *p = (om_qmatmul_params){.is_gemm = true,
                           .roles = {.a_scale = 1,
                                     .a_zero = 2,
                                     .b = 3,
                                     .b_scale = 4,
                                     .b_zero = 5,
                                     .bias = 6,
                                     .y_scale = 7,
                                     .y_zero = 8}};
  OM_TRY(om_node_attr_float(ctx, node, "alpha", 1.0f, &p->gemm.alpha));
  OM_TRY(om_node_attr_int(ctx, node, "transA", 0, &turns_a));
  OM_TRY(om_node_attr_int(ctx, node, "transB", 0, &turns_b));
  p->gemm.is_a_transposed = turns_a != 0;
  p->gemm.is_b_transposed = turns_b != 0;
  return OM_OK;
}

/* ---- Shapes ---- */

static om_status fail_parameter(om_ctx *ctx, uint8_t index, const om_tensor *t) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input %" PRIu8 " has shape %s, which does not go with its matrix.",
                 index,
                 om_shape_text(text, sizeof text, t->rank, t->dims));
}

/* A zero point or scale as it broadcasts to its matrix, where that has `rows` in front of its last
 * axis. A list belongs to a's rows, to b's columns (the last axis, as it is). */
static om_tensor as_parameter(const om_tensor *t, const om_tensor *matrix, bool is_of_rows) {
  om_tensor p = *t;
  if (om_tensor_elems(t) == 1) {
    p.rank = 0;
  } else if (is_of_rows && t->rank == 1 && matrix->rank > 1) {
    p.rank = 2;
    p.dims[1] = 1;
  }
  return p;
}

static om_status check_parameter(om_ctx *ctx, const om_op_call *call, uint8_t index, bool is_of_a) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *matrix = call->inputs[is_of_a ? 0 : p->roles.b];
  const om_tensor *t = om_quantize_operand(call, index);
  if (!t) return OM_OK;
  const om_tensor own = as_parameter(t, matrix, is_of_a);
  bool fits = own.rank <= matrix->rank;
  /* A vector has neither rows nor columns in the result. */
  if (call->inputs[0]->rank == 1 || call->inputs[p->roles.b]->rank == 1) fits = own.rank == 0;
  for (uint32_t d = 0; fits && d < own.rank; ++d) {
    const uint32_t axis = matrix->rank - own.rank + d;
    const bool is_depth = axis + (is_of_a ? 1 : 2) == matrix->rank;
    fits = own.dims[d] == 1 || (own.dims[d] == matrix->dims[axis] && !is_depth);
  }
  return fits ? OM_OK : fail_parameter(ctx, index, t);
}

static om_status check_parameters(om_ctx *ctx, const om_op_call *call) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[p->roles.b];
  const bool is_float = (OM_DT(a->dtype) & OM_DT_FLOAT8) != 0;
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.b, is_float ? OM_DT_FLOAT8 : OM_DT_BYTE_INT));
  if (p->roles.a_zero != NONE)
    OM_TRY(om_quantize_check_type(ctx, call, p->roles.a_zero, OM_DT(a->dtype)));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.b_zero, OM_DT(b->dtype)));
  if (p->roles.a_scale != NONE)
    OM_TRY(om_quantize_check_type(ctx, call, p->roles.a_scale, OM_DT_NARROW_FLOAT));
  if (p->roles.b_scale != NONE)
    OM_TRY(om_quantize_check_type(ctx, call, p->roles.b_scale, OM_DT_NARROW_FLOAT));
  if (p->is_gemm) {
    OM_TRY(om_quantize_check_single(ctx, call, p->roles.a_scale));
    OM_TRY(om_quantize_check_single(ctx, call, p->roles.a_zero));
    const int64_t cols = b->dims[p->gemm.is_b_transposed ? 0 : 1];
    OM_TRY(om_quantize_check_list(ctx, call, p->roles.b_scale, cols));
    OM_TRY(om_quantize_check_list(ctx, call, p->roles.b_zero, cols));
  } else {
    OM_TRY(check_parameter(ctx, call, p->roles.a_scale, true));
    OM_TRY(check_parameter(ctx, call, p->roles.a_zero, true));
    OM_TRY(check_parameter(ctx, call, p->roles.b_scale, false));
    OM_TRY(check_parameter(ctx, call, p->roles.b_zero, false));
  }
  if (p->roles.y_scale == NONE) return OM_OK;
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.y_scale, OM_DT_NARROW_FLOAT));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.y_zero, OM_DT_BYTE_INT | OM_DT_FLOAT8));
  OM_TRY(om_quantize_check_single(ctx, call, p->roles.y_scale));
  return om_quantize_check_single(ctx, call, p->roles.y_zero);
}

static om_status shape_of(om_ctx *ctx,
                          const om_op_call *call,
                          uint32_t *out_rank,
                          int64_t out_dims[OM_MAX_RANK + 2]) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[p->roles.b];
  om_matmul m;
  if (!p->is_gemm) return om_matmul_shape(ctx, a, b, out_rank, out_dims);
  if (a->rank != 2 || b->rank != 2 ||
      a->dims[p->gemm.is_a_transposed ? 0 : 1] != b->dims[p->gemm.is_b_transposed ? 1 : 0]) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Matrices of rank %" PRIu32 " and %" PRIu32 " do not multiply so.",
                   a->rank,
                   b->rank);
  }
  om_gemm_describe(&p->gemm, a, b, &m);
  *out_rank = 2;
  out_dims[0] = (int64_t)m.rows;
  out_dims[1] = (int64_t)m.cols;
  return OM_OK;
}

static om_status check_bias(om_ctx *ctx, const om_op_call *call, uint32_t rank, const int64_t *y) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  if (!bias) return OM_OK;
  OM_TRY(om_quantize_check_type(
      ctx, call, p->roles.bias, p->is_gemm ? OM_DT(OM_DTYPE_I32) : OM_DT_NARROW_FLOAT));
  bool fits = bias->rank <= rank;
  for (uint32_t d = 0; fits && d < bias->rank; ++d) {
    fits = bias->dims[d] == 1 || bias->dims[d] == y[rank - bias->rank + d];
  }
  return fits ? OM_OK : fail_parameter(ctx, p->roles.bias, bias);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *y_zero = om_quantize_operand(call, p->roles.y_zero);
  const om_tensor *y_scale = om_quantize_operand(call, p->roles.y_scale);
  int64_t dims[OM_MAX_RANK + 2] = {0};
  uint32_t rank = 0;
  om_dtype dtype = OM_DTYPE_F32;
  OM_TRY(shape_of(ctx, call, &rank, dims));
  OM_TRY(check_parameters(ctx, call));
  OM_TRY(check_bias(ctx, call, rank, dims));
  if (p->roles.a_scale == NONE && !p->quantizes_a) dtype = OM_DTYPE_I32;
  if (y_zero && y_scale) dtype = y_zero->dtype;
  if (p->is_gemm && y_scale && !y_zero) dtype = call->inputs[0]->dtype;
  return om_rule_set(ctx, call, 0, dtype, rank, dims);
}

/* ---- Running ---- */

typedef struct om_qmatmul_places { /* in elements of 4 bytes */
  size_t a, a_bytes, b, sums, a_scale, b_scale, own;
  size_t elems;
} om_qmatmul_places;

static size_t take(om_qmatmul_places *places, size_t elems) {
  const size_t at = places->elems;
  places->elems += om_size_align(elems, 16);
  return at;
}

static void describe_product(const om_op_call *call, om_matmul *out) {
  const om_qmatmul_params *p = call->params;
  if (p->is_gemm) {
    om_gemm_describe(&p->gemm, call->inputs[0], call->inputs[p->roles.b], out);
  } else {
    om_matmul_describe(call->inputs[0], call->inputs[p->roles.b], out);
  }
}

static bool is_of_floats(const om_op_call *call) {
  return (OM_DT(call->inputs[0]->dtype) & OM_DT_FLOAT8) != 0;
}

/* Whether the product makes the floats. */
static bool is_scaled_by_column(const om_op_call *call, const om_matmul *m) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *a_scale = om_quantize_operand(call, p->roles.a_scale);
  const om_tensor *b_scale = om_quantize_operand(call, p->roles.b_scale);
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  if (p->is_gemm || p->roles.y_scale != NONE || !b_scale || m->depth == 0) return false;
  if (!p->quantizes_a && !(a_scale && om_tensor_elems(a_scale) == 1)) return false;
  if (call->inputs[p->roles.b]->rank != 2 || (b_scale->rank > 1 && om_tensor_elems(b_scale) > 1)) {
    return false;
  }
  return !bias ||
         (bias->dtype == OM_DTYPE_F32 && bias->rank == 1 && bias->dims[0] == (int64_t)m->cols);
}

/* Rows of a or columns of b, over the batch. */
static size_t line_count(const om_tensor *matrix, size_t depth) {
  return depth == 0 ? 0 : om_tensor_elems(matrix) / depth;
}

/* Not inlined, nor are those below: the descriptions are large. */
__attribute__((noinline)) static om_qmatmul_places places_of(const om_op_call *call) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[p->roles.b];
  const om_tensor *a_scale = om_quantize_operand(call, p->roles.a_scale);
  const om_tensor *b_scale = om_quantize_operand(call, p->roles.b_scale);
  om_matmul m;
  describe_product(call, &m);
  const bool is_float = is_of_floats(call);
  const size_t a_rows = line_count(a, m.depth);
  om_qmatmul_places places = {.elems = 0};
  places.a = take(&places, is_float ? om_tensor_elems(a) : a_rows);
  places.a_bytes = take(&places, p->quantizes_a ? (om_tensor_elems(a) + 3) / 4 : 0);
  places.b = take(&places, is_float ? om_tensor_elems(b) : line_count(b, m.depth));
  const bool is_scaled = is_scaled_by_column(call, &m);
  places.sums = take(&places, is_scaled ? 0 : om_tensor_elems(call->outputs[0]));
  places.a_scale = take(&places, a_scale ? om_tensor_elems(a_scale) : 1);
  places.b_scale = take(&places, is_scaled ? m.cols : b_scale ? om_tensor_elems(b_scale) : 1);
  const size_t own =
      is_float ? om_matmul_scratch_bytes(&m, sizeof(float)) : om_matmul_bytes_scratch(&m, a_rows);
  places.own = take(&places, own / sizeof(int32_t));
  return places;
}

static size_t scratch_bytes(const om_op_call *call) {
  return places_of(call).elems * sizeof(int32_t);
}

/* The zero points of a's rows or of b's columns, over the batch. */
__attribute__((noinline)) static void load_zeros(const om_op_call *call,
                                                 bool is_a,
                                                 size_t count,
                                                 int32_t *target) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *matrix = call->inputs[is_a ? 0 : p->roles.b];
  const om_tensor *given = om_quantize_operand(call, is_a ? p->roles.a_zero : p->roles.b_zero);
  om_tensor lines = *matrix; /* one element a row or column */
  om_tensor zero;
  if (!given) {
    memset(target, 0, count * sizeof *target);
    return;
  }
  if (p->is_gemm) {
    zero = om_quantize_along(given, 1, 0);
    lines.rank = 1;
    lines.dims[0] = (int64_t)count;
  } else {
    zero = as_parameter(given, matrix, is_a);
    lines.dims[is_a || matrix->rank == 1 ? matrix->rank - 1 : matrix->rank - 2] = 1;
  }
  const om_tensor *const operands[1] = {&zero};
  om_broadcast walk;
  om_broadcast_init(&walk, operands, 1, &lines);
  for (size_t first = 0; first < walk.count;) {
    const om_broadcast_row row = om_broadcast_row_at(&walk, first, walk.count);
    const void *from = om_cast_place(zero.dtype, zero.data, row.offsets[0]);
    const size_t given_count = row.advances[0] ? row.count : 1;
    om_cast_elems(zero.dtype, from, OM_DTYPE_I32, target + first, given_count, true);
    for (size_t i = given_count; i < row.count; ++i) target[first + i] = target[first];
    first += row.count;
  }
}

/* A float32 a as bytes of its own range. */
__attribute__((noinline)) static void quantize_a(
    om_ctx *ctx, const om_op_call *call, uint8_t *bytes, float *out_scale, float *out_zero) {
  const om_tensor *a = call->inputs[0];
  om_tensor out = *a;
  om_quantize_range(a->data, om_tensor_elems(a), out_scale, out_zero);
  out.dtype = OM_DTYPE_U8;
  out.data = bytes;
  const om_quantize_job job = {.in = a,
                               .out = &out,
                               .place = {.extent = 1, .inner_extent = 1, .block = 1},
                               .scales = out_scale,
                               .zeros = out_zero};
  om_quantize_run(ctx, &job);
}

/* The factor of each column; own: a's scale, where it was quantized here. */
static void load_factors(const om_op_call *call, float own, size_t cols, float *factors) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *b_scale = om_quantize_operand(call, p->roles.b_scale);
  const float a_scale = om_quantize_single(om_quantize_operand(call, p->roles.a_scale), own);
  const size_t count = om_tensor_elems(b_scale);
  om_cast_elems(b_scale->dtype, b_scale->data, OM_DTYPE_F32, factors, count, true);
  for (size_t i = count; i < cols; ++i) factors[i] = factors[0];
  for (size_t i = 0; i < cols; ++i) factors[i] = a_scale * factors[i];
}

/* The sums, y NULL: the operator's result. */
__attribute__((noinline)) static void multiply_bytes(
    om_ctx *ctx, const om_op_call *call, const uint8_t *panels, uint32_t *y, float *out_scale) {
  const om_qmatmul_params *p = call->params;
  const om_qmatmul_places at = places_of(call);
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[p->roles.b];
  int32_t *scratch = call->scratch;
  om_matmul_bytes product = {.a = a->data,
                             .b = b->data,
                             .is_a_signed = a->dtype == OM_DTYPE_I8,
                             .is_b_signed = b->dtype == OM_DTYPE_I8,
                             .a_zeros = scratch + at.a,
                             .b_zeros = scratch + at.b,
                             .y = y,
                             .panels = panels};
  describe_product(call, &product.m);
  const size_t a_rows = line_count(a, product.m.depth);
  product.b_zero_count = line_count(b, product.m.depth);
  load_zeros(call, false, product.b_zero_count, scratch + at.b);
  if (p->quantizes_a) {
    uint8_t *bytes = (uint8_t *)(scratch + at.a_bytes);
    float zero = 0.0f;
    quantize_a(ctx, call, bytes, out_scale, &zero);
    for (size_t row = 0; row < a_rows; ++row) scratch[at.a + row] = (int32_t)zero;
    product.a = bytes;
  } else {
    load_zeros(call, true, a_rows, scratch + at.a);
  }
  if (!y) {
    const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
    float *factors = (float *)(void *)(scratch + at.b_scale);
    load_factors(call, *out_scale, product.m.cols, factors);
    product.floats = call->outputs[0]->data;
    product.factors = factors;
    product.bias = bias ? bias->data : NULL;
  }
  om_matmul_bytes_run(ctx, &product, a_rows, scratch + at.own);
}

/* An operand of 8-bit floats without its zero point. */
static void shift(om_ctx *ctx, const om_op_call *call, bool is_a, float *out) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *matrix = call->inputs[is_a ? 0 : p->roles.b];
  const om_tensor *given = om_quantize_operand(call, is_a ? p->roles.a_zero : p->roles.b_zero);
  om_tensor zero;
  if (given) zero = as_parameter(given, matrix, is_a);
  om_quantize_shift(ctx, matrix, given ? &zero : NULL, out);
}

__attribute__((noinline)) static void multiply_floats(om_ctx *ctx,
                                                      const om_op_call *call,
                                                      float *y) {
  const om_qmatmul_places at = places_of(call);
  om_matmul m;
  float *scratch = call->scratch;
  describe_product(call, &m);
  shift(ctx, call, true, scratch + at.a);
  shift(ctx, call, false, scratch + at.b);
  om_matmul_f32(ctx, &m, scratch + at.a, scratch + at.b, y, scratch + at.own);
}

/* QGemm's C joins the sums. */
static void add_bias(const om_op_call *call, int32_t *sums) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  const om_tensor *y = call->outputs[0];
  if (!bias) return;
  const om_tensor *const operands[1] = {bias};
  om_broadcast walk;
  om_broadcast_init(&walk, operands, 1, y);
  for (size_t first = 0; first < walk.count;) {
    const om_broadcast_row row = om_broadcast_row_at(&walk, first, walk.count);
    const int32_t *from = (const int32_t *)bias->data + row.offsets[0];
    for (size_t i = 0; i < row.count; ++i) {
      const uint32_t sum = (uint32_t)sums[first + i] + (uint32_t)from[row.advances[0] ? i : 0];
      sums[first + i] = (int32_t)sum;
    }
    first += row.count;
  }
}

/* The scales as float32, and how they broadcast to the result. */
static om_tensor load_scale(const om_op_call *call, bool is_a, float own, float *target) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *given = om_quantize_operand(call, is_a ? p->roles.a_scale : p->roles.b_scale);
  om_tensor shape = {.dtype = OM_DTYPE_F32};
  if (!given) {
    *target = own;
    return shape;
  }
  om_cast_elems(given->dtype, given->data, OM_DTYPE_F32, target, om_tensor_elems(given), true);
  shape = p->is_gemm ? om_quantize_along(given, 2, 1)
                     : as_parameter(given, call->inputs[is_a ? 0 : p->roles.b], is_a);
  shape.dtype = OM_DTYPE_F32;
  shape.data = NULL;
  return shape;
}

static void requantize(om_ctx *ctx, const om_op_call *call, const om_tensor *sums, float own) {
  const om_qmatmul_params *p = call->params;
  const om_qmatmul_places at = places_of(call);
  float *scratch = call->scratch;
  const om_requantize_job job = {
      .sums = sums,
      .a_scale = scratch + at.a_scale,
      .b_scale = scratch + at.b_scale,
      .a_shape = load_scale(call, true, own, scratch + at.a_scale),
      .b_shape = load_scale(call, false, 1.0f, scratch + at.b_scale),
      .is_quantized = om_quantize_operand(call, p->roles.y_scale) != NULL,
      .scale = om_quantize_single(om_quantize_operand(call, p->roles.y_scale), 1.0f),
      .zero = om_quantize_single(om_quantize_operand(call, p->roles.y_zero), 0.0f),
      .bias = p->is_gemm ? NULL : om_quantize_operand(call, p->roles.bias),
      .out = call->outputs[0],
  };
  if (p->gemm.alpha != 1.0f) scratch[at.a_scale] = scratch[at.a_scale] * p->gemm.alpha;
  om_requantize_run(ctx, &job);
}

/* Not inlined: the description is large. */
__attribute__((noinline)) static bool makes_floats(const om_op_call *call) {
  om_matmul m;
  describe_product(call, &m);
  return !is_of_floats(call) && is_scaled_by_column(call, &m);
}

/* panels: of b's bytes, or NULL. */
static om_status run_packed(om_ctx *ctx, const om_op_call *call, void *panels) {
  const om_qmatmul_params *p = call->params;
  const om_qmatmul_places at = places_of(call);
  const bool is_float = is_of_floats(call);
  const bool is_whole = p->roles.a_scale == NONE && !p->quantizes_a;
  om_tensor sums = *call->outputs[0];
  float own = 1.0f;
  if (om_tensor_elems(&sums) == 0) return OM_OK;
  if (makes_floats(call)) {
    multiply_bytes(ctx, call, panels, NULL, &own);
    return OM_OK;
  }
  sums.dtype = is_float ? OM_DTYPE_F32 : OM_DTYPE_I32;
  if (!is_whole) sums.data = (int32_t *)call->scratch + at.sums;
  if (is_float) {
    multiply_floats(ctx, call, sums.data);
  } else {
    multiply_bytes(ctx, call, panels, sums.data, &own);
  }
  if (p->is_gemm) add_bias(call, sums.data);
  if (!is_whole) requantize(ctx, call, &sums, own);
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  return run_packed(ctx, call, NULL);
}

/* The panels are those of all products with these weights and an a of the same sign. */
static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  const om_qmatmul_params *p = call->params;
  const om_tensor *a = call->inputs[0], *b = call->inputs[p->roles.b];
  om_matmul_bytes product = {
      .b = b->data, .is_a_signed = a->dtype == OM_DTYPE_I8, .is_b_signed = b->dtype == OM_DTYPE_I8};
  om_ctx whole = *ctx;
  uint8_t *panels = NULL;
  bool is_new = false;
  if (!b->data || !(kept_inputs >> p->roles.b & 1u) || is_of_floats(call)) return OM_OK;
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  describe_product(call, &product.m);
  if (!om_matmul_bytes_packs(&product.m)) return OM_OK;
  const om_fast_form form = {.kind = (product.is_a_signed ? 1u : 0) |
                                     (product.is_b_signed ? 2u : 0) |
                                     (product.m.b_col_stride == 1 ? 4u : 0),
                             .depth = product.m.depth,
                             .cols = product.m.cols};
  const size_t bytes = om_matmul_bytes_panels(&product.m);
  OM_TRY(om_fast_block_get(ctx, fast, b->data, form, bytes, &is_new, &panels));
  whole.cancel = NULL; /* others read them, too */
  if (is_new) om_matmul_bytes_pack(&whole, &product, panels);
  *out_ready = (om_op_ready){.run = run_packed,
                             .state = panels,
                             .scratch_bytes = scratch_bytes(call),
                             .packed_inputs = 1u << p->roles.b};
  return OM_OK;
}

#define OM_QMATMUL_ENTRY(domain_name, name, first, least, most, types, resolve_fn) \
  {.domain = domain_name,                                                          \
   .type = name,                                                                   \
   .first_opset = first,                                                           \
   OM_RULE_COUNTS(least, most, 1, 1),                                              \
   .dtypes = types,                                                                \
   .params_bytes = sizeof(om_qmatmul_params),                                      \
   .resolve = resolve_fn,                                                          \
   .infer = infer,                                                                 \
   .scratch_bytes = scratch_bytes,                                                 \
   .run = run,                                                                     \
   .make_ready = make_ready}

const om_op om_ops_quantized_matmul[] = {
    OM_QMATMUL_ENTRY("", "MatMulInteger", 10, 2, 4, OM_DT_BYTE_INT, resolve_integer),
    OM_QMATMUL_ENTRY("", "QLinearMatMul", 10, 8, 8, OM_DT_BYTE_INT | OM_DT_FLOAT8, resolve_linear),
    {.domain = "com.microsoft",
     .type = "QGemm",
     .first_opset = 1,
     OM_RULE_COUNTS(6, 9, 1, 1),
     .dtypes = OM_DT_BYTE_INT,
     .may_be_composed = true,
     .params_bytes = sizeof(om_qmatmul_params),
     .resolve = resolve_gemm,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run,
     .make_ready = make_ready},
    OM_QMATMUL_ENTRY(
        "com.microsoft", "MatMulIntegerToFloat", 1, 4, 7, OM_DT_BYTE_INT, resolve_to_float),
    OM_QMATMUL_ENTRY(
        "com.microsoft", "DynamicQuantizeMatMul", 1, 3, 5, OM_DT(OM_DTYPE_F32), resolve_dynamic),
    {.type = NULL},
};
