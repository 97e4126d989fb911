/* Gather with indices that are known while planning: they are checked here, made positive, and
 * uploaded as words. Indices that come at run time stay on the CPU, which names the one that is out
 * of range; a device could only say that there was one.
 */
#include "abi/gather_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_gather.h"

enum { OM_THREADS = 256 };

typedef struct om_index_source {
  const om_tensor *indices;
  int64_t extent;
} om_index_source;

static void fill_indices(const void *arg, const void *source, void *target) {
  (void)source; /* the tensor has it, too */
  const om_index_source *from = arg;
  const size_t count = om_tensor_elems(from->indices);
  for (size_t i = 0; i < count; ++i) {
    const int64_t index = om_rule_int(from->indices, i);
    ((uint32_t *)target)[i] = (uint32_t)(index < 0 ? index + from->extent : index);
  }
}

static const char *bind_gather(om_gpu_binder *b) {
  const om_gather_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *indices = om_gpu_input(b, 1);
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  if (!indices->data) return "its indices are only known at run time, where the CPU checks them";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(x) | om_gpu_tensor_words(y));
  if (reason) return reason;
  const uint32_t axis = (uint32_t)(p->axis < 0 ? p->axis + x->rank : p->axis);
  const om_index_source from = {.indices = indices, .extent = x->dims[axis]};
  const size_t count = om_tensor_elems(indices);
  for (size_t i = 0; i < count; ++i) {
    const int64_t index = om_rule_int(indices, i);
    if (index < -from.extent || index >= from.extent) {
      return om_gpu_reason(b,
                           "its index %lld is out of range for an extent of %lld",
                           (long long)index,
                           (long long)from.extent);
    }
  }
  const size_t row = om_rule_product(x->dims, axis + 1, x->rank) * om_gpu_words(x->dtype);
  const uint32_t quad = row % 4 == 0 ? 4 : 1;
  const om_gather_rows_params params = {
      .words = (uint32_t)(om_gpu_tensor_words(y) / quad),
      .row_words = (uint32_t)(row / quad),
      .index_count = (uint32_t)count,
      .extent = (uint32_t)from.extent,
  };
  const om_gpu_operand data = om_gpu_read(b, 0);
  const om_gpu_operand words =
      om_gpu_made_constant(b, UINT32_MAX, "indices", count * sizeof(uint32_t), fill_indices, &from);
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, quad == 4 ? OM_SHADER_GATHER_VEC4 : OM_SHADER_GATHER);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = data;
  d->operands[1] = words;
  d->operands[2] = to;
  d->operand_count = 3;
  om_gpu_spread_groups(b, ((uint64_t)params.words + OM_THREADS - 1) / OM_THREADS, d->groups);
  return NULL;
}

const om_gpu_op om_gpu_ops_gather[] = {
    {.domain = "", .type = "Gather", .dtypes = OM_DT_WORDS, .has_exact = true, .bind = bind_gather},
    {.type = NULL},
};
