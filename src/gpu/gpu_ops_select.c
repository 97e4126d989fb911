/* ArgMax, ArgMin, CumSum, OneHot, TopK, Trilu. */
#include "abi/select_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_reduce.h"
#include "ops/op_select.h"

#define OM_KEYED (OM_DT_REAL | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))

/* As the kernels see it: they load a float16 as a float32. */
static uint32_t key_type(om_dtype dtype) {
  return (uint32_t)(dtype == OM_DTYPE_F16 ? OM_DTYPE_F32 : dtype);
}

/* Appends a dispatch with these parameters and constants: one input (two if `has_second`), then the
 * outputs that the kernel has. */
static const char *add_select(om_gpu_binder *b,
                              om_shader shader,
                              const om_select_params *params,
                              const uint32_t constants[4],
                              bool has_second,
                              uint64_t groups) {
  const om_hal_shader *kernel = om_shader_get(shader);
  om_gpu_operand operands[4] = {om_gpu_read(b, 0)};
  uint32_t count = 1;
  if (has_second) operands[count++] = om_gpu_read(b, 2);
  for (uint32_t i = 0; count < kernel->binding_count; ++i) operands[count++] = om_gpu_write(b, i);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  d->constant_count = kernel->constant_count;
  memcpy(d->constants, constants, d->constant_count * sizeof *constants);
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  memcpy(d->operands, operands, count * sizeof *operands);
  d->operand_count = count;
  om_gpu_spread_groups(b, groups, d->groups);
  return NULL;
}

/* Workgroups of kernels that make an element, or the elements of a word, an invocation. */
static uint64_t move_groups(const om_tensor *y) {
  const uint64_t each = om_gpu_is_small(y->dtype) ? 4 / om_gpu_words(y->dtype) : 1;
  return om_gpu_pieces(om_tensor_elems(y), 256 * each);
}

static const char *check_sizes(om_gpu_binder *b) {
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  return om_gpu_check_words(b, om_gpu_tensor_words(om_gpu_input(b, 0)) | om_gpu_tensor_words(y));
}

/* Lines along an axis of input 0. */
static om_select_params describe_lines(const om_gpu_binder *b, int64_t attr) {
  const om_tensor *x = om_gpu_input(b, 0);
  const uint32_t axis = (uint32_t)(attr < 0 ? attr + x->rank : attr);
  const size_t inner = om_rule_product(x->dims, axis + 1, x->rank);
  return (om_select_params){
      .elems = (uint32_t)(om_rule_product(x->dims, 0, axis) * inner),
      .extent = (uint32_t)x->dims[axis],
      .inner = (uint32_t)inner,
  };
}

static const char *bind_trilu(om_gpu_binder *b) {
  const om_trilu_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *diagonal = om_gpu_input(b, 1);
  const char *reason = check_sizes(b);
  if (reason) return reason;
  if (diagonal && !diagonal->data) return "its diagonal is only known at run time";
  const int64_t rows = x->dims[x->rank - 2];
  const int64_t cols = x->dims[x->rank - 1];
  int64_t k = diagonal ? om_rule_int(diagonal, 0) : 0;
  if (k < -rows) k = -rows;
  if (k > cols) k = cols;
  const om_select_params params = {.elems = (uint32_t)om_tensor_elems(x),
                                   .extent = (uint32_t)rows,
                                   .inner = (uint32_t)cols,
                                   .k = (int32_t)k};
  const uint32_t constants[4] = {om_gpu_words(x->dtype), p->is_upper};
  const om_shader shader = om_gpu_is_small(x->dtype) ? OM_SHADER_TRILU_BYTES : OM_SHADER_TRILU;
  return add_select(b, shader, &params, constants, false, move_groups(x));
}

static const char *bind_one_hot(om_gpu_binder *b) {
  const om_one_hot_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *y = om_gpu_output(b, 0);
  const char *reason = check_sizes(b);
  if (reason) return reason;
  if ((OM_DT_MOVED & OM_DT(y->dtype)) == 0) {
    return om_gpu_reason(b, "no kernel for values of %s", om_dtype_name(y->dtype));
  }
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + y->rank : p->axis);
  const om_select_params params = {
      .elems = (uint32_t)om_tensor_elems(y),
      .extent = (uint32_t)y->dims[axis],
      .inner = (uint32_t)om_rule_product(y->dims, axis + 1, y->rank),
  };
  const uint32_t constants[4] = {om_gpu_words(y->dtype), om_gpu_words(om_gpu_input(b, 0)->dtype)};
  const om_shader shader = om_gpu_is_small(y->dtype) ? OM_SHADER_ONE_HOT_BYTES : OM_SHADER_ONE_HOT;
  return add_select(b, shader, &params, constants, true, move_groups(y));
}

static const char *bind_cumsum(om_gpu_binder *b) {
  enum { LINES_A_GROUP = 64 };
  const om_cumsum_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *axis = om_gpu_input(b, 1);
  const char *reason = check_sizes(b);
  if (reason) return reason;
  if (!axis->data) return "its axis is only known at run time";
  const om_select_params params = describe_lines(b, om_rule_int(axis, 0));
  const bool is_half = x->dtype == OM_DTYPE_F16;
  const uint32_t constants[4] = {is_half ? 1 : om_gpu_words(x->dtype),
                                 key_type(x->dtype) == OM_DTYPE_F32,
                                 p->is_exclusive,
                                 p->is_reversed};
  const om_shader shader = is_half ? OM_SHADER_CUMSUM_HALF : OM_SHADER_CUMSUM;
  return add_select(
      b, shader, &params, constants, false, om_gpu_pieces(params.elems, LINES_A_GROUP));
}

static const char *bind_arg(om_gpu_binder *b) {
  const om_arg_params *p = om_gpu_binder_node(b)->params;
  const char *reason = check_sizes(b);
  if (reason) return reason;
  const om_select_params params = describe_lines(b, p->axis);
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  const uint32_t constants[4] = {key_type(dtype), p->job.wants_largest, p->job.wants_last};
  const om_shader shader = dtype == OM_DTYPE_F16 ? OM_SHADER_ARG_HALF : OM_SHADER_ARG;
  return add_select(b, shader, &params, constants, false, params.elems);
}

static const char *bind_topk(om_gpu_binder *b) {
  enum { LONGEST_LINE = 16384 }; /* each element is held against each: 2^28 looks a line */
  const om_topk_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  const char *reason = check_sizes(b);
  if (reason) return reason;
  if (!om_gpu_output(b, 1)) return "nothing reads its indices";
  om_select_params params = describe_lines(b, p->axis);
  if (params.extent > LONGEST_LINE) {
    return om_gpu_reason(
        b, "lines of %u elements are longer than its kernel's %d", params.extent, LONGEST_LINE);
  }
  const uint64_t lines = params.elems;
  params.k = (int32_t)(om_tensor_elems(om_gpu_output(b, 0)) / lines);
  const uint32_t constants[4] = {key_type(x->dtype), p->is_smallest};
  const om_shader shader = x->dtype == OM_DTYPE_F16 ? OM_SHADER_TOPK_HALF : OM_SHADER_TOPK;
  return add_select(
      b, shader, &params, constants, false, om_gpu_pieces(lines * params.extent, 256));
}

#define OM_ENTRY(name, set, function) \
  {.domain = "", .type = (name), .dtypes = (set), .has_exact = true, .bind = (function)}

const om_gpu_op om_gpu_ops_select[] = {
    OM_ENTRY("ArgMax", OM_KEYED, bind_arg),
    OM_ENTRY("ArgMin", OM_KEYED, bind_arg),
    {.domain = "",
     .type = "CumSum",
     .dtypes = OM_KEYED,
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_cumsum},
    OM_ENTRY("OneHot", OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64), bind_one_hot),
    OM_ENTRY("TopK", OM_KEYED, bind_topk),
    OM_ENTRY("Trilu", OM_DT_MOVED, bind_trilu),
    {.type = NULL},
};
