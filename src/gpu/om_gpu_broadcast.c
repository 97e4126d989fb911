/* Dispatches whose operands broadcast to the result.
 *
 * Dimensions are taken innermost first; those of extent 1 are left out, and neighbours in which
 * each operand either has extent 1 or has not are taken together.
 */
#include "gpu/om_gpu_broadcast.h"

#include "abi/broadcast_params.h"
#include "gpu/om_gpu_copy.h"

enum { GROUP_THREADS = 256, MAX_OPERANDS = 3 };

static int64_t dim_from_end(const om_tensor *tensor, uint32_t i) {
  return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static om_broadcast_params describe(const om_gpu_binder *b, const om_tensor *y, uint32_t count) {
  om_broadcast_params params = {.elems = (uint32_t)om_tensor_elems(y)};
  uint32_t extents[OM_MAX_RANK] = {0};
  uint32_t masks[MAX_OPERANDS] = {0};
  uint32_t rank = 0;
  uint32_t before = UINT32_MAX; /* which operands have extent 1 in the dimension taken last */
  for (uint32_t i = 0; i < y->rank; ++i) {
    const int64_t extent = dim_from_end(y, i);
    uint32_t ones = 0;
    if (extent == 1) continue;
    for (uint32_t k = 0; k < count; ++k) {
      if (dim_from_end(om_gpu_input(b, k), i) == 1) ones |= 1u << k;
    }
    if (ones == before) {
      extents[rank - 1] *= (uint32_t)extent;
      continue;
    }
    extents[rank] = (uint32_t)extent;
    for (uint32_t k = 0; k < count; ++k) masks[k] |= (ones >> k & 1) << rank;
    before = ones;
    ++rank;
  }
  params.rank = rank;
  memcpy(&params.extent_0, extents, sizeof extents);
  memcpy(&params.mask_0, masks, sizeof masks);
  return params;
}

om_gpu_dispatch *om_gpu_add_broadcast(om_gpu_binder *b,
                                      om_shader shader,
                                      uint32_t count,
                                      uint32_t per_thread) {
  const uint32_t last = om_shader_get(shader)->binding_count - 1;
  const om_broadcast_params params = describe(b, om_gpu_output(b, 0), count);
  om_gpu_operand operands[OM_HAL_MAX_BINDINGS] = {{.kind = OM_GPU_NOTHING}};
  for (uint32_t k = 0; k < count; ++k) operands[k] = om_gpu_read(b, k);
  operands[last] = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = last + 1;
  d->flops = params.elems;
  const uint64_t each = (uint64_t)GROUP_THREADS * per_thread;
  om_gpu_spread_groups(b, om_gpu_pieces(params.elems, each), d->groups);
  return d;
}

const char *om_gpu_bind_integer(om_gpu_binder *b, uint32_t operation) {
  const om_tensor *y = om_gpu_output(b, 0);
  const bool is_binary = operation >= OM_CHAIN_Add;
  if (!y) return "nothing reads its result";
  if (is_binary && om_gpu_binder_node(b)->input_count != 2) return "it does not have two inputs";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  om_gpu_dispatch *d = om_gpu_add_broadcast(b, OM_SHADER_INTEGER, is_binary ? 2 : 1, 1);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = om_gpu_words(y->dtype);
  d->constants[1] = operation;
  d->constant_count = 2;
  const bool divides =
      operation == OM_CHAIN_Div || operation == OM_INTEGER_MOD || operation == OM_INTEGER_FMOD;
  return divides ? om_gpu_demand_divisor(b, 1) : NULL;
}

const char *om_gpu_bind_integer_clip(om_gpu_binder *b) {
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  const om_broadcast_params params = {.elems = (uint32_t)om_tensor_elems(y)};
  om_gpu_operand operands[4] = {om_gpu_read(b, 0)};
  uint32_t is_there[3] = {1};
  for (uint32_t k = 1; k < 3; ++k) {
    is_there[k] = om_gpu_input(b, k) != NULL;
    if (is_there[k]) operands[k] = om_gpu_read(b, k);
  }
  operands[3] = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_INTEGER_CLIP);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  memcpy(d->operands, operands, sizeof operands);
  d->operand_count = 4;
  d->constants[0] = om_gpu_words(y->dtype);
  d->constants[1] = is_there[1];
  d->constants[2] = is_there[2];
  d->constant_count = 3;
  d->flops = params.elems;
  om_gpu_spread_groups(b, om_gpu_pieces(params.elems, GROUP_THREADS), d->groups);
  return NULL;
}
