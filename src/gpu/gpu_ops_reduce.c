/* Reductions of float32, float16, int32 and int64. Axes that do not stand together are brought
 * together first, by a copy in which the rows stand one after the other. */
#include "abi/reduce_params.h"
#include "gpu/om_gpu_copy.h"
#include "gpu/om_gpu_rows.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_reduce.h"

static const char *find_axes(om_gpu_binder *b, uint32_t *out_mask) {
  const om_reduce_params *params = om_gpu_binder_node(b)->params;
  const om_tensor *axes = om_gpu_input(b, 1);
  if (axes && !om_rule_is_known(axes)) return "its axes are known at run time only";
  b->status = om_reduce_axes(b->ctx, params, om_gpu_input(b, 0), axes, out_mask);
  return b->status == OM_OK ? NULL : "its axes do not fit";
}

/* Copies the rows to scratch, one after the other, and describes them there. Not inlined: the two
 * descriptions are too large for one frame. */
__attribute__((noinline)) static const char *gather_rows(om_gpu_binder *b,
                                                         om_rows *rows,
                                                         om_gpu_operand *inout_from) {
  const om_gpu_operand source = *inout_from;
  om_strided copy = {.rank = rows->kept_rank + rows->reduced_rank};
  int64_t stride = 1;
  for (uint32_t i = 0; i < copy.rank; ++i) {
    const bool is_kept = i < rows->kept_rank;
    const uint32_t axis = is_kept ? i : i - rows->kept_rank;
    copy.extents[i] = (int64_t)(is_kept ? rows->kept_extents[axis] : rows->reduced_extents[axis]);
    copy.source_strides[i] =
        (int64_t)(is_kept ? rows->kept_strides[axis] : rows->reduced_strides[axis]);
  }
  for (uint32_t i = copy.rank; i-- > 0; stride *= copy.extents[i]) copy.target_strides[i] = stride;
  rows->kept_rank = rows->reduced_rank = 1;
  rows->kept_extents[0] = rows->row_count;
  rows->kept_strides[0] = rows->reduced_extents[0] = rows->row_elems;
  rows->reduced_strides[0] = 1;
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  const uint64_t elems = (uint64_t)rows->row_count * rows->row_elems;
  *inout_from = om_gpu_scratch(b, elems * (om_dtype_bits(dtype) / 8));
  return om_gpu_bind_copy(b, &copy, dtype, source, *inout_from);
}

/* The rows of the input, and where they lie; *out_is_view: nothing is reduced. */
static const char *find_rows(om_gpu_binder *b,
                             om_gpu_rows *out_fields,
                             om_gpu_operand *out_from,
                             bool *out_is_view) {
  om_rows rows;
  uint32_t mask = 0;
  const char *reason = find_axes(b, &mask);
  if (reason) return reason;
  *out_is_view = (mask & OM_REDUCE_NOTHING) != 0;
  if (*out_is_view) return NULL;
  *out_from = om_gpu_read(b, 0);
  om_rows_init(&rows, om_gpu_input(b, 0), mask);
  if (!om_gpu_rows_from(b, &rows, out_fields)) return NULL;
  reason = gather_rows(b, &rows, out_from);
  return reason ? reason : om_gpu_rows_from(b, &rows, out_fields);
}

static const char *add_dispatch(om_gpu_binder *b,
                                om_shader shader,
                                const om_gpu_rows *fields,
                                om_gpu_operand from,
                                om_gpu_dispatch **out_dispatch) {
  const om_reduce_params *params = om_gpu_binder_node(b)->params;
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  om_reduce_kernel_params block = {.count = (float)fields->row_elems};
  memcpy(&block, fields, sizeof *fields);
  memcpy(d->params, &block, sizeof block);
  d->params_bytes = sizeof block;
  d->constants[0] = (uint32_t)params->kind;
  d->constants[1] = fields->elem_stride != 1;
  d->constant_count = 2;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  om_gpu_rows_spread(b, fields, d);
  *out_dispatch = d;
  return NULL;
}

static const char *bind_whole(om_gpu_binder *b, om_gpu_rows *fields, om_gpu_operand from) {
  om_gpu_dispatch *d = NULL;
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(om_gpu_input(b, 0)));
  if (reason) return reason;
  om_gpu_rows_share(fields);
  reason = add_dispatch(b, OM_SHADER_REDUCE_WHOLE, fields, from, &d);
  if (reason) return reason;
  d->constants[2] = om_gpu_words(om_gpu_input(b, 0)->dtype);
  d->constant_count = 3;
  return NULL;
}

static const char *bind(om_gpu_binder *b) {
  static const om_gpu_row_forms forms = OM_GPU_ROW_FORMS(REDUCE);
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  om_gpu_rows fields;
  om_gpu_operand from;
  om_gpu_dispatch *d = NULL;
  bool is_view = false;
  const char *reason = find_rows(b, &fields, &from, &is_view);
  if (reason) return reason;
  if (is_view) {
    om_gpu_make_view(b);
    return NULL;
  }
  if ((OM_DT(dtype) & OM_DT_REAL) == 0) return bind_whole(b, &fields, from);
  reason = add_dispatch(b, om_gpu_rows_form(b, &forms, &fields, dtype), &fields, from, &d);
  if (reason) return reason;
  d->has_chain = true;
  d->chain_value = d->operands[1].index;
  d->chain.inner = d->chain.channels = 1;
  return NULL;
}

#define OM_WHOLE (OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))
#define OM_GPU_REDUCTION(name, more_types, rests_on)   \
  {.domain = "",                                       \
   .type = (name),                                     \
   .dtypes = OM_DT_REAL | (more_types),                \
   .has_exact = true,                                  \
   .primitives = OM_PRIMITIVE_ARITHMETIC | (rests_on), \
   .bind = bind}

const om_gpu_op om_gpu_ops_reduce[] = {
    OM_GPU_REDUCTION("ReduceSum", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceMean", OM_WHOLE, OM_PRIMITIVE_DIVIDE),
    OM_GPU_REDUCTION("ReduceMax", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceMin", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceProd", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceL1", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceL2", 0, OM_PRIMITIVE_SQRT),
    OM_GPU_REDUCTION("ReduceSumSquare", OM_WHOLE, 0),
    OM_GPU_REDUCTION("ReduceLogSum", 0, OM_PRIMITIVE_FUNCTIONS),
    OM_GPU_REDUCTION("ReduceLogSumExp", 0, OM_PRIMITIVE_FUNCTIONS),
    {.type = NULL},
};
