/* GatherElements, GatherND, ScatterElements, ScatterND. Indices are read as they are, by kernels
 * that clamp them; a demand finds those out of range (om_gpu_demand.c).
 */
#include "abi/index_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_gather.h"

enum { OM_THREADS = 256 };

/* Each element of a result goes through the updates that may mean it: at most so many in all. */
static const uint64_t most_looks = (uint64_t)1 << 32;

static const char *check_counts(om_gpu_binder *b) {
  uint64_t words = 0;
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  for (uint32_t i = 0; i < om_gpu_binder_node(b)->input_count; ++i) {
    words |= om_gpu_tensor_words(om_gpu_input(b, i));
  }
  return om_gpu_check_words(b, words | om_gpu_tensor_words(om_gpu_output(b, 0)));
}

/* Appends the dispatch: the inputs, then the result; constants from the second on are the caller's.
 */
static om_gpu_dispatch *add_moves(om_gpu_binder *b,
                                  om_shader shader,
                                  uint32_t input_count,
                                  const om_index_params *params) {
  const om_dtype dtype = om_gpu_output(b, 0)->dtype;
  const uint32_t size = om_gpu_words(dtype);
  const uint64_t each = (uint64_t)OM_THREADS * (om_gpu_is_small(dtype) ? 4 / size : 1);
  om_gpu_operand operands[4];
  for (uint32_t i = 0; i < input_count; ++i) operands[i] = om_gpu_read(b, i);
  operands[input_count] = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  d->constants[0] = size;
  d->constants[1] = om_gpu_words(om_gpu_input(b, 1)->dtype);
  d->constant_count = 2;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  for (uint32_t i = 0; i <= input_count; ++i) d->operands[i] = operands[i];
  d->operand_count = input_count + 1;
  om_gpu_spread_groups(b, om_gpu_pieces(params->elems, each), d->groups);
  return d;
}

/* ---- An index for each element ---- */

static om_index_params describe_elements(const om_gpu_binder *b,
                                         int64_t attr,
                                         int64_t *out_extent) {
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *indices = om_gpu_input(b, 1);
  const uint32_t axis = (uint32_t)(attr < 0 ? attr + x->rank : attr);
  int64_t strides[OM_MAX_RANK] = {0};
  uint32_t listed[2][OM_MAX_RANK] = {{0}};
  om_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < x->rank; ++i) {
    listed[0][i] = (uint32_t)indices->dims[x->rank - 1 - i];
    listed[1][i] = (uint32_t)strides[x->rank - 1 - i];
  }
  om_index_params params = {
      .elems = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)),
      .rank = x->rank,
      .axis = x->rank - 1 - axis,
      .axis_extent = (uint32_t)x->dims[axis],
  };
  memcpy(&params.extent_0, listed, sizeof listed);
  *out_extent = x->dims[axis];
  return params;
}

static const char *bind_gather_elements(om_gpu_binder *b) {
  const om_gather_params *p = om_gpu_binder_node(b)->params;
  int64_t extent = 0;
  const char *reason = check_counts(b);
  if (reason) return reason;
  const bool is_small = om_gpu_is_small(om_gpu_output(b, 0)->dtype);
  const om_index_params params = describe_elements(b, p->axis, &extent);
  if (!add_moves(
          b, is_small ? OM_SHADER_GATHER_ELEMENTS_BYTES : OM_SHADER_GATHER_ELEMENTS, 2, &params)) {
    return om_gpu_no_memory;
  }
  return om_gpu_demand_indices(b, 1, &extent, 1);
}

/* ---- A tuple of indices for each row ---- */

static om_index_params describe_tuples(const om_gpu_binder *b,
                                       uint32_t batch_axes,
                                       int64_t out_extents[OM_MAX_RANK]) {
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *indices = om_gpu_input(b, 1);
  const uint32_t tuple = (uint32_t)indices->dims[indices->rank - 1];
  const size_t tuples = om_tensor_elems(indices) / tuple;
  int64_t strides[OM_MAX_RANK] = {0};
  uint32_t listed[2][OM_MAX_RANK] = {{0}};
  om_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < tuple; ++i) {
    out_extents[i] = x->dims[batch_axes + i];
    listed[0][i] = (uint32_t)x->dims[batch_axes + i];
    listed[1][i] = (uint32_t)strides[batch_axes + i];
  }
  om_index_params params = {
      .elems = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)),
      .rank = tuple,
      .index_count = (uint32_t)tuples,
      .row_elems = (uint32_t)om_rule_product(x->dims, batch_axes + tuple, x->rank),
      .batch_tuples = (uint32_t)(tuples / om_rule_product(x->dims, 0, batch_axes)),
      .batch_elems = (uint32_t)om_rule_product(x->dims, batch_axes, x->rank),
  };
  memcpy(&params.extent_0, listed, sizeof listed);
  return params;
}

static const char *bind_gather_nd(om_gpu_binder *b) {
  const om_gather_nd_params *p = om_gpu_binder_node(b)->params;
  int64_t extents[OM_MAX_RANK] = {0};
  const char *reason = check_counts(b);
  if (reason) return reason;
  const bool is_small = om_gpu_is_small(om_gpu_output(b, 0)->dtype);
  const om_index_params params = describe_tuples(b, (uint32_t)p->batch_axes, extents);
  if (!add_moves(b, is_small ? OM_SHADER_GATHER_ND_BYTES : OM_SHADER_GATHER_ND, 2, &params)) {
    return om_gpu_no_memory;
  }
  return om_gpu_demand_indices(b, 1, extents, params.rank);
}

/* ---- Scatter ---- */

static const char *check_reduction(om_gpu_binder *b, om_scatter_reduction reduction) {
  const om_dtype dtype = om_gpu_input(b, 0)->dtype;
  if (reduction == OM_SCATTER_NONE || (OM_DT(dtype) & OM_DT_REAL) != 0 || dtype == OM_DTYPE_I32 ||
      dtype == OM_DTYPE_I64) {
    return NULL;
  }
  return om_gpu_reason(b, "no kernel for a reduction of %s", om_dtype_name(dtype));
}

static const char *bind_scatter(om_gpu_binder *b,
                                om_shader shader,
                                const om_index_params *params,
                                uint64_t looks_of_each,
                                om_scatter_reduction reduction) {
  const char *reason = check_reduction(b, reduction);
  if (!reason && reduction != OM_SCATTER_NONE) reason = om_gpu_rounds_inside(b, 0);
  if (reason) return reason;
  if (looks_of_each * params->elems > most_looks) {
    return "it has too many updates for the kernel, which goes through them in order";
  }
  om_gpu_dispatch *d = add_moves(b, shader, 3, params);
  if (!d) return om_gpu_no_memory;
  d->constants[2] = (uint32_t)reduction;
  d->constants[3] = (OM_DT(om_gpu_input(b, 0)->dtype) & OM_DT_REAL) != 0;
  d->constant_count = 4;
  d->flops = looks_of_each * params->elems;
  return NULL;
}

static const char *bind_scatter_elements(om_gpu_binder *b) {
  const om_scatter_params *p = om_gpu_binder_node(b)->params;
  int64_t extent = 0;
  const char *reason = check_counts(b);
  if (reason) return reason;
  const om_index_params params = describe_elements(b, p->axis, &extent);
  const bool is_small = om_gpu_is_small(om_gpu_output(b, 0)->dtype);
  const om_tensor *indices = om_gpu_input(b, 1);
  reason = bind_scatter(b,
                        is_small ? OM_SHADER_SCATTER_ELEMENTS_BYTES : OM_SHADER_SCATTER_ELEMENTS,
                        &params,
                        (uint64_t)indices->dims[indices->rank - 1 - params.axis],
                        p->reduction);
  return reason ? reason : om_gpu_demand_indices(b, 1, &extent, 1);
}

static const char *bind_scatter_nd(om_gpu_binder *b) {
  const om_scatter_params *p = om_gpu_binder_node(b)->params;
  int64_t extents[OM_MAX_RANK] = {0};
  const char *reason = check_counts(b);
  if (reason) return reason;
  const om_index_params params = describe_tuples(b, 0, extents);
  const bool is_small = om_gpu_is_small(om_gpu_output(b, 0)->dtype);
  reason = bind_scatter(b,
                        is_small ? OM_SHADER_SCATTER_ND_BYTES : OM_SHADER_SCATTER_ND,
                        &params,
                        params.index_count,
                        p->reduction);
  return reason ? reason : om_gpu_demand_indices(b, 1, extents, params.rank);
}

#define OM_ENTRY(name, function) \
  {.domain = "", .type = (name), .dtypes = OM_DT_MOVED, .has_exact = true, .bind = (function)}

const om_gpu_op om_gpu_ops_index[] = {
    OM_ENTRY("GatherElements", bind_gather_elements),
    OM_ENTRY("GatherND", bind_gather_nd),
    OM_ENTRY("Scatter", bind_scatter_elements),
    OM_ENTRY("ScatterElements", bind_scatter_elements),
    OM_ENTRY("ScatterND", bind_scatter_nd),
    {.type = NULL},
};
