/* Gather. Indices that are known while planning are checked here, made positive, and uploaded as
 * words; others are read as they are, by a kernel that clamps them, and checked at each run
 * (om_gpu_demand.c).
 */
#include "abi/gather_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_gather.h"

enum { OM_THREADS = 256 };

typedef struct om_index_source {
  const om_tensor *indices;
  int64_t extent;
} om_index_source;

static void fill_indices(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  (void)source; /* the tensor has it, too */
  const om_index_source *from = arg;
  const size_t count = om_tensor_elems(from->indices);
  for (size_t i = 0; i < count; ++i) {
    const int64_t index = om_rule_int(from->indices, i);
    ((uint32_t *)target)[i] = (uint32_t)(index < 0 ? index + from->extent : index);
  }
}

/* The kernel for rows of as many words (or bytes of small elements); counts become its own. */
static om_shader choose_kernel(om_dtype dtype, om_gather_rows_params *params) {
  uint32_t unit = 1;
  bool is_bytes = false;
  if (om_gpu_is_small(dtype)) {
    is_bytes = params->row_words % 4 != 0;
    if (!is_bytes) unit = 4;
  }
  const uint32_t row = params->row_words / unit;
  const bool is_quad = !is_bytes && row % 4 == 0;
  if (is_quad) unit *= 4;
  params->words /= unit;
  params->row_words /= unit;
  if (is_bytes) return OM_SHADER_GATHER_BYTES;
  return is_quad ? OM_SHADER_GATHER_VEC4 : OM_SHADER_GATHER;
}

/* Appends the dispatch for a table, or a part of one that holds the indices from first on. */
static const char *add_gather(om_gpu_binder *b,
                              om_gather_rows_params params,
                              om_gpu_operand data,
                              om_gpu_operand indices,
                              uint32_t index_words) {
  const om_shader shader = choose_kernel(om_gpu_output(b, 0)->dtype, &params);
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = index_words;
  d->constant_count = 1;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = data;
  d->operands[1] = indices;
  d->operands[2] = to;
  d->operand_count = 3;
  uint64_t threads = params.words;
  if (shader == OM_SHADER_GATHER_BYTES) threads = (threads + 3) / 4;
  om_gpu_spread_groups(b, om_gpu_pieces(threads, OM_THREADS), d->groups);
  return NULL;
}

/* A table above one binding: a dispatch for each run of whole rows that a binding holds. */
static const char *add_parts(om_gpu_binder *b,
                             om_gather_rows_params params,
                             uint64_t row_bytes,
                             om_gpu_operand indices,
                             uint32_t index_words) {
  const uint64_t limit = om_gpu_binder_limits(b)->max_binding_bytes;
  const uint64_t held = limit / row_bytes;
  const char *reason = NULL;
  if (params.words / params.row_words != params.index_count || row_bytes % 4 != 0 || held == 0) {
    return om_gpu_reason(b,
                         "its table is above the device's binding limit of %llu, and rows of its "
                         "axis cannot be cut",
                         (unsigned long long)limit);
  }
  for (uint64_t first = 0; first < params.extent && !reason; first += held) {
    const uint64_t left = params.extent - first;
    params.first = (uint32_t)first;
    params.held = (uint32_t)(left < held ? left : held);
    const om_gpu_operand part = om_gpu_read_part(b, 0, first * row_bytes, params.held * row_bytes);
    reason = add_gather(b, params, part, indices, index_words);
  }
  return reason;
}

static const char *bind_gather(om_gpu_binder *b) {
  const om_gather_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *indices = om_gpu_input(b, 1);
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(x) | om_gpu_tensor_words(y));
  if (reason) return reason;
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + x->rank : p->axis);
  const om_index_source from = {.indices = indices, .extent = x->dims[axis]};
  const size_t count = om_tensor_elems(indices);
  const size_t row = om_rule_product(x->dims, axis + 1, x->rank);
  const om_gather_rows_params params = {
      .words = (uint32_t)om_gpu_tensor_words(y),
      .row_words = (uint32_t)row * om_gpu_words(x->dtype),
      .index_count = (uint32_t)count,
      .extent = (uint32_t)from.extent,
      .held = (uint32_t)from.extent,
  };
  if (indices->data) { /* checked before fill looks at them */
    reason = om_gpu_demand_indices(b, 1, &from.extent, 1);
    if (reason) return reason;
  }
  const om_gpu_operand words =
      indices->data ? om_gpu_made_constant(
                          b, UINT32_MAX, "indices", count * sizeof(uint32_t), fill_indices, &from)
                    : om_gpu_read(b, 1);
  const uint32_t index_words = indices->data ? 1 : om_gpu_words(indices->dtype);
  const uint64_t bytes = om_dtype_bits(x->dtype) / 8;
  if (om_tensor_elems(x) * bytes > om_gpu_binder_limits(b)->max_binding_bytes) {
    reason = add_parts(b, params, row * bytes, words, index_words);
  } else {
    reason = add_gather(b, params, om_gpu_read(b, 0), words, index_words);
  }
  if (reason || indices->data) return reason;
  return om_gpu_demand_indices(b, 1, &from.extent, 1);
}

const om_gpu_op om_gpu_ops_gather[] = {
    {.domain = "",
     .type = "Gather",
     .dtypes = OM_DT_MOVED,
     .has_exact = true,
     .splits = 1,
     .bind = bind_gather},
    {.type = NULL},
};
