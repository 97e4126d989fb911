/* Matrix products: MatMul, Gemm.
 *
 * float16 and bfloat16 operands are widened into scratch, and the result is rounded once.
 *
 *     scratch: [a wide] [b wide] [y wide] [the product's own], each only where it is needed
 */
#include <inttypes.h>

#include "base/om_float16.h"
#include "base/om_thread.h"
#include "ops/op_fast.h"
#include "ops/op_matmul.h"

static bool is_half(om_dtype dtype) {
  return dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
}

/* ---- Half precision ---- */

typedef struct om_half_job {
  om_dtype dtype;
  const void *from;
  void *to;
} om_half_job;

static void widen_range(void *arg, size_t begin, size_t end) {
  const om_half_job *job = arg;
  const uint16_t *from = job->from;
  float *to = job->to;
  for (size_t i = begin; i < end; ++i) {
    to[i] = job->dtype == OM_DTYPE_F16 ? om_f16_to_f32(from[i]) : om_bf16_to_f32(from[i]);
  }
}

static void narrow_range(void *arg, size_t begin, size_t end) {
  const om_half_job *job = arg;
  const float *from = job->from;
  uint16_t *to = job->to;
  for (size_t i = begin; i < end; ++i) {
    to[i] = job->dtype == OM_DTYPE_F16 ? om_f16_from_f32(from[i]) : om_bf16_from_f32(from[i]);
  }
}

/* ---- Scratch ---- */

enum { OM_SCRATCH_ALIGN = 64 };

/* Adds a block and returns where it begins. */
static size_t take(size_t *total, size_t elems, size_t elem_bytes) {
  size_t at = *total;
  *total += om_size_align(elems * elem_bytes, OM_SCRATCH_ALIGN);
  return at;
}

typedef struct om_product_scratch {
  size_t a, b, y, own; /* offsets */
  size_t bytes;
} om_product_scratch;

static om_product_scratch product_scratch(const om_op_call *call, const om_matmul *m) {
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[1];
  const bool widens = is_half(a->dtype);
  om_product_scratch s = {.bytes = 0};
  if (widens) s.a = take(&s.bytes, om_tensor_elems(a), sizeof(float));
  if (widens) s.b = take(&s.bytes, om_tensor_elems(b), sizeof(float));
  if (widens) s.y = take(&s.bytes, om_tensor_elems(call->outputs[0]), sizeof(float));
  s.own = s.bytes;
  s.bytes += om_matmul_scratch_bytes(m, widens ? sizeof(float) : om_rule_elem_bytes(a->dtype));
  return s;
}

/* ---- The product itself ---- */

/* Computes the product of inputs 0 and 1. Returns its elements: float for half types (in
 * scratch), else the output's data. */
static void *product_run(om_ctx *ctx, const om_op_call *call, const om_matmul *m) {
  const om_tensor *a = call->inputs[0];
  const om_product_scratch at = product_scratch(call, m);
  uint8_t *scratch = call->scratch;
  const void *a_data = a->data;
  const void *b_data = call->inputs[1]->data;
  void *y_data = call->outputs[0]->data;
  void *own = scratch + at.own;
  if (is_half(a->dtype)) {
    om_half_job a_job = {a->dtype, a_data, scratch + at.a};
    om_half_job b_job = {a->dtype, b_data, scratch + at.b};
    om_parallel_for(ctx, om_tensor_elems(a), 8192, widen_range, &a_job);
    om_parallel_for(ctx, om_tensor_elems(call->inputs[1]), 8192, widen_range, &b_job);
    a_data = scratch + at.a;
    b_data = scratch + at.b;
    y_data = scratch + at.y;
  }
  if (a->dtype == OM_DTYPE_F64) {
    om_matmul_f64(ctx, m, a_data, b_data, y_data, own);
  } else if (a->dtype == OM_DTYPE_I32 || a->dtype == OM_DTYPE_U32) {
    om_matmul_u32(ctx, m, a_data, b_data, y_data, own);
  } else if (a->dtype == OM_DTYPE_I64 || a->dtype == OM_DTYPE_U64) {
    om_matmul_u64(ctx, m, a_data, b_data, y_data, own);
  } else {
    om_matmul_f32(ctx, m, a_data, b_data, y_data, own);
  }
  return y_data;
}

static void product_round(om_ctx *ctx, const om_tensor *y, const void *wide) {
  om_half_job job = {y->dtype, wide, y->data};
  if (is_half(y->dtype)) om_parallel_for(ctx, om_tensor_elems(y), 8192, narrow_range, &job);
}

static om_status product_fail(om_ctx *ctx, const om_tensor *a, const om_tensor *b) {
  char a_text[OM_SHAPE_TEXT];
  char b_text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "%s %s and %s %s cannot be multiplied.",
                 om_dtype_name(a->dtype),
                 om_shape_text(a_text, sizeof a_text, a->rank, a->dims),
                 om_dtype_name(b->dtype),
                 om_shape_text(b_text, sizeof b_text, b->rank, b->dims));
}

/* ---- MatMul ---- */

/* The batch axes of an operand, as a tensor of their own. */
static om_tensor batch_of(const om_tensor *x) {
  om_tensor batch = *x;
  batch.rank = x->rank > 2 ? x->rank - 2 : 0;
  return batch;
}

om_status om_matmul_shape(om_ctx *ctx,
                          const om_tensor *a,
                          const om_tensor *b,
                          uint32_t *out_rank,
                          int64_t out_dims[OM_MAX_RANK + 2]) {
  if (a->rank == 0 || b->rank == 0 ||
      a->dims[a->rank - 1] != b->dims[b->rank > 1 ? b->rank - 2 : 0]) {
    return product_fail(ctx, a, b);
  }
  om_tensor a_batch = batch_of(a);
  om_tensor b_batch = batch_of(b);
  *out_rank = 0;
  OM_TRY(om_rule_broadcast(ctx, &a_batch, out_rank, out_dims));
  OM_TRY(om_rule_broadcast(ctx, &b_batch, out_rank, out_dims));
  if (a->rank > 1) out_dims[(*out_rank)++] = a->dims[a->rank - 2];
  if (b->rank > 1) out_dims[(*out_rank)++] = b->dims[b->rank - 1];
  return OM_OK;
}

static om_status matmul_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *a = call->inputs[0];
  int64_t dims[OM_MAX_RANK + 2] = {0};
  uint32_t rank = 0;
  if (a->dtype != call->inputs[1]->dtype) return product_fail(ctx, a, call->inputs[1]);
  OM_TRY(om_matmul_shape(ctx, a, call->inputs[1], &rank, dims));
  return om_rule_set(ctx, call, 0, a->dtype, rank, dims);
}

/* Strides of one operand's batch axes in the result's batch, 0 where it repeats. */
static void batch_strides(const om_tensor *x, uint32_t batch_rank, int64_t *out_strides) {
  const uint32_t own = x->rank > 2 ? x->rank - 2 : 0;
  int64_t strides[OM_MAX_RANK] = {0};
  om_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < batch_rank; ++i) out_strides[i] = 0;
  for (uint32_t i = 0; i < own; ++i) {
    if (x->dims[i] != 1) out_strides[batch_rank - own + i] = strides[i];
  }
}

void om_matmul_describe(const om_tensor *a, const om_tensor *b, om_matmul *out) {
  const uint32_t a_own = a->rank > 2 ? a->rank - 2 : 0;
  const uint32_t b_own = b->rank > 2 ? b->rank - 2 : 0;
  const uint32_t rank = a_own > b_own ? a_own : b_own;
  *out = (om_matmul){
      .rows = a->rank > 1 ? (size_t)a->dims[a->rank - 2] : 1,
      .cols = b->rank > 1 ? (size_t)b->dims[b->rank - 1] : 1,
      .depth = (size_t)a->dims[a->rank - 1],
      .a_row_stride = (size_t)a->dims[a->rank - 1],
      .a_depth_stride = 1,
      .b_depth_stride = b->rank > 1 ? (size_t)b->dims[b->rank - 1] : 1,
      .b_col_stride = 1,
      .batch = {.rank = rank},
  };
  batch_strides(a, rank, out->batch.source_strides);
  batch_strides(b, rank, out->batch.target_strides);
  for (uint32_t i = 0; i < rank; ++i) {
    const uint32_t a_axis = i + a_own - rank; /* wraps where a lacks the axis */
    const uint32_t b_axis = i + b_own - rank;
    int64_t a_extent = i + a_own >= rank ? a->dims[a_axis] : 1;
    int64_t b_extent = i + b_own >= rank ? b->dims[b_axis] : 1;
    out->batch.extents[i] = a_extent == 1 ? b_extent : a_extent;
  }
  om_strided_simplify(&out->batch);
  const om_strided *batch = &out->batch;
  if (batch->rank == 1 && batch->extents[0] > 1 && batch->target_strides[0] == 0 &&
      (size_t)batch->source_strides[0] == out->rows * out->depth) {
    out->rows *= (size_t)batch->extents[0];
    out->batch =
        (om_strided){.rank = 1, .extents = {1}, .source_strides = {1}, .target_strides = {1}};
  }
}

bool om_matmul_is_by_rows(const om_op_call *call, uint32_t input, size_t rows) {
  const om_tensor *a = call->inputs[0];
  return input == 0 && a->rank > 1 && call->inputs[1]->rank == 2 && om_rule_has_whole_rows(a, rows);
}

static size_t matmul_scratch(const om_op_call *call) {
  om_matmul m;
  om_matmul_describe(call->inputs[0], call->inputs[1], &m);
  return product_scratch(call, &m).bytes;
}

static om_status matmul_run(om_ctx *ctx, const om_op_call *call) {
  om_matmul m;
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  om_matmul_describe(call->inputs[0], call->inputs[1], &m);
  product_round(ctx, call->outputs[0], product_run(ctx, call, &m));
  return OM_OK;
}

/* ---- Gemm ---- */

static om_status gemm_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_gemm_params *p = params;
  int64_t a = 0;
  int64_t b = 0;
  OM_TRY(om_node_attr_float(ctx, node, "alpha", 1.0f, &p->alpha));
  OM_TRY(om_node_attr_float(ctx, node, "beta", 1.0f, &p->beta));
  OM_TRY(om_node_attr_int(ctx, node, "transA", 0, &a));
  OM_TRY(om_node_attr_int(ctx, node, "transB", 0, &b));
  p->is_a_transposed = a != 0;
  p->is_b_transposed = b != 0;
  return OM_OK;
}

void om_gemm_describe(const om_gemm_params *p,
                      const om_tensor *a,
                      const om_tensor *b,
                      om_matmul *out) {
  *out = (om_matmul){
      .rows = (size_t)a->dims[p->is_a_transposed ? 1 : 0],
      .cols = (size_t)b->dims[p->is_b_transposed ? 0 : 1],
      .depth = (size_t)a->dims[p->is_a_transposed ? 0 : 1],
      .a_row_stride = p->is_a_transposed ? 1 : (size_t)a->dims[1],
      .a_depth_stride = p->is_a_transposed ? (size_t)a->dims[1] : 1,
      .b_depth_stride = p->is_b_transposed ? 1 : (size_t)b->dims[1],
      .b_col_stride = p->is_b_transposed ? (size_t)b->dims[1] : 1,
      .batch = {.rank = 1, .extents = {1}, .source_strides = {1}, .target_strides = {1}},
  };
}

/* True if c has the product's type and broadcasts to its shape. */
static bool gemm_takes_c(const om_tensor *c, om_dtype dtype, const int64_t *dims) {
  if (c->rank > 2 || c->dtype != dtype) return false;
  for (uint32_t i = 0; i < c->rank; ++i) {
    if (c->dims[i] != 1 && c->dims[i] != dims[2 - c->rank + i]) return false;
  }
  return true;
}

static om_status gemm_infer(om_ctx *ctx, const om_op_call *call) {
  const om_gemm_params *p = call->params;
  const om_tensor *a = call->inputs[0];
  const om_tensor *b = call->inputs[1];
  const om_tensor *c = om_rule_input(call, 2);
  char text[OM_SHAPE_TEXT];
  om_matmul m;
  if (a->rank != 2 || b->rank != 2 || a->dtype != b->dtype) return product_fail(ctx, a, b);
  om_gemm_describe(p, a, b, &m);
  if ((int64_t)m.depth != b->dims[p->is_b_transposed ? 1 : 0]) return product_fail(ctx, a, b);
  if (!(OM_DT(a->dtype) & OM_DT_FLOAT) && (p->alpha != 1.0f || p->beta != 1.0f)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "alpha %g and beta %g do not go with %s; both must be 1.",
                   (double)p->alpha,
                   (double)p->beta,
                   om_dtype_name(a->dtype));
  }
  int64_t dims[2] = {(int64_t)m.rows, (int64_t)m.cols};
  if (c && !gemm_takes_c(c, a->dtype, dims)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "C, %s %s, does not broadcast to a result of %" PRId64 " by %" PRId64 " %s.",
                   om_dtype_name(c->dtype),
                   om_shape_text(text, sizeof text, c->rank, c->dims),
                   dims[0],
                   dims[1],
                   om_dtype_name(a->dtype));
  }
  return om_rule_set(ctx, call, 0, a->dtype, 2, dims);
}

static bool gemm_is_by_rows(const om_op_call *call, uint32_t input, size_t rows) {
  const om_gemm_params *p = call->params;
  return !p->is_a_transposed && om_matmul_is_by_rows(call, input, rows) &&
         om_rule_is_row(om_rule_input(call, 2), call->outputs[0]);
}

static size_t gemm_scratch(const om_op_call *call) {
  om_matmul m;
  om_gemm_describe(call->params, call->inputs[0], call->inputs[1], &m);
  return product_scratch(call, &m).bytes;
}

typedef struct om_gemm_job {
  const om_tensor *c; /* NULL: none */
  size_t c_row_stride, c_col_stride;
  size_t cols;
  float alpha, beta;
  om_dtype dtype;
  void *y;
} om_gemm_job;

static float gemm_c_f32(const om_gemm_job *job, size_t at) {
  if (job->dtype == OM_DTYPE_F16) return om_f16_to_f32(((const uint16_t *)job->c->data)[at]);
  if (job->dtype == OM_DTYPE_BF16) return om_bf16_to_f32(((const uint16_t *)job->c->data)[at]);
  return ((const float *)job->c->data)[at];
}

/* y = y * alpha + c * beta, each operation rounded; those with 1 are left out. */
static void gemm_rows(void *arg, size_t begin, size_t end) {
  const om_gemm_job *job = arg;
  for (size_t i = begin * job->cols; i < end * job->cols; ++i) {
    const size_t at = i / job->cols * job->c_row_stride + i % job->cols * job->c_col_stride;
    if (job->dtype == OM_DTYPE_F64) {
      double *y = (double *)job->y + i;
      if (job->alpha != 1.0f) *y = *y * (double)job->alpha;
      if (!job->c) continue;
      double c = ((const double *)job->c->data)[at];
      *y = *y + (job->beta != 1.0f ? c * (double)job->beta : c);
    } else if (OM_DT(job->dtype) & OM_DT_FLOAT) {
      float *y = (float *)job->y + i;
      if (job->alpha != 1.0f) *y = *y * job->alpha;
      if (!job->c) continue;
      float c = gemm_c_f32(job, at);
      *y = *y + (job->beta != 1.0f ? c * job->beta : c);
    } else if (job->dtype == OM_DTYPE_I64 || job->dtype == OM_DTYPE_U64) {
      ((uint64_t *)job->y)[i] += ((const uint64_t *)job->c->data)[at];
    } else {
      ((uint32_t *)job->y)[i] += ((const uint32_t *)job->c->data)[at];
    }
  }
}

static om_status gemm_run(om_ctx *ctx, const om_op_call *call) {
  const om_gemm_params *p = call->params;
  const om_tensor *c = om_rule_input(call, 2);
  om_matmul m;
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  om_gemm_describe(p, call->inputs[0], call->inputs[1], &m);
  om_gemm_job job = {
      .c = p->beta != 0.0f ? c : NULL,
      .cols = m.cols,
      .alpha = p->alpha,
      .beta = p->beta,
      .dtype = call->inputs[0]->dtype,
      .y = product_run(ctx, call, &m),
  };
  if (c && c->rank > 0 && c->dims[c->rank - 1] != 1) job.c_col_stride = 1;
  if (c && c->rank == 2 && c->dims[0] != 1) job.c_row_stride = (size_t)c->dims[1];
  if (job.c || job.alpha != 1.0f) {
    om_parallel_for(ctx, m.rows, 8192 / m.cols + 1, gemm_rows, &job);
  }
  product_round(ctx, call->outputs[0], job.y);
  return OM_OK;
}

#define OM_DT_PRODUCT                                                              \
  (OM_DT_FLOAT | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_U32) | OM_DT(OM_DTYPE_I64) | \
   OM_DT(OM_DTYPE_U64))

const om_op om_ops_matmul[] = {
    {.domain = "",
     .type = "MatMul",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_PRODUCT,
     .infer = matmul_infer,
     .scratch_bytes = matmul_scratch,
     .run = matmul_run,
     .is_by_rows = om_matmul_is_by_rows,
     .make_ready = om_matmul_ready},
    {.domain = "",
     .type = "Gemm",
     .first_opset = 1,
     .last_opset = 10,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_PRODUCT,
     .params_bytes = sizeof(om_gemm_params),
     .resolve = gemm_resolve,
     .infer = gemm_infer,
     .scratch_bytes = gemm_scratch,
     .run = gemm_run,
     .is_by_rows = gemm_is_by_rows,
     .make_ready = om_gemm_ready},
    {.domain = "",
     .type = "Gemm",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 3, 1, 1),
     .dtypes = OM_DT_PRODUCT,
     .params_bytes = sizeof(om_gemm_params),
     .resolve = gemm_resolve,
     .infer = gemm_infer,
     .scratch_bytes = gemm_scratch,
     .run = gemm_run,
     .is_by_rows = gemm_is_by_rows,
     .make_ready = om_gemm_ready},
    {.type = NULL},
};
