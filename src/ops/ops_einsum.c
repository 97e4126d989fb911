/* Einsum (docs/exact.md, "Einsum"): operands are joined from left to right, each time as a batch of
 * matrix products.
 *
 *     batch  labels of both sides that are needed later      K  labels that are not: the sum
 *     M, N   labels of one side that are needed later
 *
 * A side is copied to [batch, M, K] or [batch, K, N] unless it lies so already. A single operand
 * is joined with ones.
 *
 *     scratch: [an operand of another type]... [left] [right] [joined] ... of each join in turn
 */
#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_matmul.h"
#include "ops/op_einsum.h"
#include "ops/op_types.h"

typedef struct om_einsum_job {
  const om_op_call *call;
  const om_einsum_equation *equation;
  om_einsum_shape shape;
  om_dtype dtype; /* in which sums are made */
  size_t elem_bytes;
  char *scratch; /* NULL: only its size is wanted */
  size_t used;   /* bytes */
  bool is_too_large;
} om_einsum_job;

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_string text;
  OM_TRY(om_node_attr_text(ctx, node, "equation", "", &text));
  OM_TRY(om_einsum_parse(ctx, text, params));
  const om_einsum_equation *e = params;
  if (e->term_count == node->input_count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The equation has %u terms, but there are %u inputs.",
                 (unsigned)e->term_count,
                 (unsigned)node->input_count);
}

static om_dtype computing_dtype(om_dtype dtype) {
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) return OM_DTYPE_F32;
  return OM_DT(dtype) & OM_DT_INT && om_dtype_bits(dtype) < 32 ? OM_DTYPE_I32 : dtype;
}

static void *take(om_einsum_job *job, size_t elems) {
  void *place = job->scratch ? job->scratch + job->used : NULL;
  job->used += om_size_align(elems * job->elem_bytes, 64);
  return place;
}

/* ---- Labels ---- */

static om_einsum_set set_of(const om_einsum_operand *o) {
  om_einsum_set set = 0;
  for (uint32_t i = 0; i < o->count; ++i) set |= OM_EINSUM_BIT(o->labels[i]);
  return set;
}

static int64_t stride_of(const om_einsum_operand *o, uint8_t label) {
  for (uint32_t i = 0; i < o->count; ++i) {
    if (o->labels[i] == label) return o->strides[i];
  }
  return 0;
}

static size_t elems_of(om_einsum_job *job, om_einsum_set set) {
  size_t elems = 1;
  for (uint8_t l = 0; l < OM_EINSUM_LABELS; ++l) {
    if (!(set & OM_EINSUM_BIT(l))) continue;
    if (om_size_mul(elems, (size_t)job->shape.extents[l], &elems) && elems < OM_RULE_MAX_BYTES) {
      continue;
    }
    job->is_too_large = true;
    return 0;
  }
  return elems;
}

/* Appends the labels of a set, in their order, to a dense operand's. */
static void append(om_einsum_operand *o, om_einsum_set set) {
  for (uint8_t l = 0; l < OM_EINSUM_LABELS; ++l) {
    if (set & OM_EINSUM_BIT(l)) o->labels[o->count++] = l;
  }
}

static void make_dense(const om_einsum_job *job, om_einsum_operand *o) {
  int64_t stride = 1;
  for (uint32_t i = o->count; i-- > 0;) {
    o->strides[i] = stride;
    stride *= job->shape.extents[o->labels[i]];
  }
}

/* ---- Joining ---- */

/* The operand's elements in the dense order of `target`'s labels: where they lie, or a copy. Not
 * inlined, as join: their descriptions are large. */
__attribute__((noinline)) static const void *gather(om_ctx *ctx,
                                                    om_einsum_job *job,
                                                    const om_einsum_operand *o,
                                                    const om_einsum_operand *target) {
  om_strided copy = {.rank = target->count};
  for (uint32_t i = 0; i < target->count; ++i) {
    copy.extents[i] = job->shape.extents[target->labels[i]];
    copy.source_strides[i] = stride_of(o, target->labels[i]);
    copy.target_strides[i] = target->strides[i];
  }
  const size_t elems = elems_of(job, set_of(target));
  if (job->is_too_large) return NULL;
  om_strided_simplify(&copy);
  const bool is_plain = copy.rank == 1 && copy.source_strides[0] == 1;
  if (is_plain || elems == 1) return o->data;
  void *place = take(job, elems);
  if (job->scratch) om_strided_copy(ctx, &copy, job->elem_bytes, o->data, place);
  return place;
}

__attribute__((noinline)) static void multiply(om_ctx *ctx,
                                               om_einsum_job *job,
                                               const size_t sizes[4], /* batch, M, N, K */
                                               const void *a,
                                               const void *b,
                                               void *y) {
  const om_matmul m = {
      .rows = sizes[1],
      .cols = sizes[2],
      .depth = sizes[3],
      .a_row_stride = sizes[3],
      .a_depth_stride = 1,
      .b_depth_stride = sizes[2],
      .b_col_stride = 1,
      .batch = {.rank = 1,
                .extents = {(int64_t)sizes[0]},
                .source_strides = {(int64_t)(sizes[1] * sizes[3])},
                .target_strides = {(int64_t)(sizes[3] * sizes[2])}},
  };
  if (job->is_too_large || sizes[0] * sizes[1] * sizes[2] == 0) return;
  void *own = take(job, om_matmul_scratch_bytes(&m, job->elem_bytes) / job->elem_bytes);
  if (!job->scratch) return; /* its size is known now */
  switch (job->dtype) {
    case OM_DTYPE_F32:
      om_matmul_f32(ctx, &m, a, b, y, own);
      break;
    case OM_DTYPE_F64:
      om_matmul_f64(ctx, &m, a, b, y, own);
      break;
    case OM_DTYPE_I64:
    case OM_DTYPE_U64:
      om_matmul_u64(ctx, &m, a, b, y, own);
      break;
    default:
      om_matmul_u32(ctx, &m, a, b, y, own);
  }
}

/* Joins both sides; what is not in `later` is summed. */
__attribute__((noinline)) static om_einsum_operand join(om_ctx *ctx,
                                                        om_einsum_job *job,
                                                        const om_einsum_operand *left,
                                                        const om_einsum_operand *right,
                                                        om_einsum_set later) {
  const om_einsum_set a = set_of(left);
  const om_einsum_set b = set_of(right);
  const om_einsum_set batch = a & b & later;
  const om_einsum_set rows = a & ~b & later;
  const om_einsum_set cols = b & ~a & later;
  const om_einsum_set depth = (a | b) & ~later;
  const size_t sizes[4] = {
      elems_of(job, batch), elems_of(job, rows), elems_of(job, cols), elems_of(job, depth)};
  om_einsum_operand side = {.count = 0};
  append(&side, batch);
  append(&side, rows);
  append(&side, depth);
  make_dense(job, &side);
  const void *a_data = gather(ctx, job, left, &side);
  side.count = 0;
  append(&side, batch);
  append(&side, depth);
  append(&side, cols);
  make_dense(job, &side);
  const void *b_data = gather(ctx, job, right, &side);
  om_einsum_operand joined = {.count = 0};
  append(&joined, batch);
  append(&joined, rows);
  append(&joined, cols);
  make_dense(job, &joined);
  void *y = take(job, elems_of(job, batch | rows | cols));
  multiply(ctx, job, sizes, a_data, b_data, y);
  joined.data = y;
  return joined;
}

/* Operand `index` in the computing type. */
static om_einsum_operand load(om_ctx *ctx, om_einsum_job *job, uint32_t index) {
  const om_tensor *t = job->call->inputs[index];
  om_einsum_operand o = om_einsum_operand_of(job->equation, t, index);
  if (t->dtype == job->dtype) return o;
  om_tensor wide = *t;
  wide.dtype = job->dtype;
  wide.data = take(job, om_tensor_elems(t));
  if (job->scratch) om_cast_run(ctx, t, &wide, true);
  o.data = wide.data;
  return o;
}

static om_einsum_set needed_later(const om_einsum_job *job, uint32_t first) {
  om_einsum_set set = 0;
  for (uint32_t i = 0; i < job->shape.rank; ++i) set |= OM_EINSUM_BIT(job->shape.labels[i]);
  for (uint32_t i = first; i < job->equation->term_count; ++i) {
    const om_einsum_operand o = om_einsum_operand_of(job->equation, job->call->inputs[i], i);
    set |= set_of(&o);
  }
  return set;
}

/* An operand of a single 1. */
static om_einsum_operand make_one(om_einsum_job *job) {
  const float one = 1.0f;
  void *place = take(job, 1);
  if (job->scratch) om_cast_elems(OM_DTYPE_F32, &one, job->dtype, place, 1, true);
  return (om_einsum_operand){.data = place};
}

__attribute__((noinline)) static om_einsum_operand join_all(om_ctx *ctx, om_einsum_job *job) {
  om_einsum_operand joined = load(ctx, job, 0);
  if (job->equation->term_count == 1) {
    const om_einsum_operand one = make_one(job);
    return join(ctx, job, &joined, &one, needed_later(job, 1));
  }
  for (uint32_t i = 1; i < job->equation->term_count; ++i) {
    const om_einsum_operand next = load(ctx, job, i);
    joined = join(ctx, job, &joined, &next, needed_later(job, i + 1));
  }
  return joined;
}

static void job_of(const om_op_call *call, om_einsum_job *out) {
  memset(out, 0, sizeof *out);
  out->call = call;
  out->equation = call->params;
  out->dtype = computing_dtype(call->inputs[0]->dtype);
  out->elem_bytes = om_rule_elem_bytes(out->dtype);
  om_einsum_fit(out->equation, call, &out->shape);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  int64_t dims[OM_MAX_RANK] = {0};
  OM_TRY(om_check_all_there(ctx, call));
  OM_TRY(om_check_same_dtype(ctx, call));
  OM_TRY(om_einsum_check(ctx, call->params, call));
  om_einsum_job job;
  job_of(call, &job);
  (void)join_all(ctx, &job); /* for its size */
  if (job.is_too_large) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "An intermediate of the equation is too large.");
  }
  for (uint32_t i = 0; i < job.shape.rank; ++i) dims[i] = job.shape.extents[job.shape.labels[i]];
  return om_rule_set(ctx, call, 0, call->inputs[0]->dtype, job.shape.rank, dims);
}

static size_t scratch_bytes(const om_op_call *call) {
  om_einsum_job job;
  job_of(call, &job);
  (void)join_all(NULL, &job);
  return job.used + om_size_align(om_tensor_elems(call->outputs[0]) * job.elem_bytes, 64);
}

/* The joined elements in the result's order and type. */
__attribute__((noinline)) static void store(om_ctx *ctx,
                                            om_einsum_job *job,
                                            const om_einsum_operand *joined) {
  om_einsum_operand target = {.count = job->shape.rank};
  om_tensor wide = *job->call->outputs[0];
  memcpy(target.labels, job->shape.labels, sizeof job->shape.labels);
  make_dense(job, &target);
  wide.dtype = job->dtype;
  wide.data = (void *)(uintptr_t)gather(ctx, job, joined, &target);
  om_cast_run(ctx, &wide, job->call->outputs[0], true);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  om_einsum_job job;
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  job_of(call, &job);
  job.scratch = call->scratch;
  const om_einsum_operand joined = join_all(ctx, &job);
  store(ctx, &job, &joined);
  return OM_OK;
}

const om_op om_ops_einsum[] = {
    {.domain = "",
     .type = "Einsum",
     .first_opset = 12,
     OM_RULE_COUNTS(1, UINT8_MAX, 1, 1),
     .dtypes = OM_DT_NUMBER,
     .may_be_composed = true,
     .params_bytes = sizeof(om_einsum_equation),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
