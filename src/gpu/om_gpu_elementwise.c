/* Elementwise dispatches and the chains they are made of.
 *
 * A binary operator becomes one item on one of its operands, the main one, which has as many
 * elements as the result. How the other operand is read depends on its shape against the
 * result's, dimensions of extent 1 left out and neighbours taken together:
 *
 *     one known value         SCALAR
 *     the same shape          TENSOR
 *     one run of dimensions   VECTOR     [C,1,1] in [N,C,H,W]: inner = H*W, channels = C
 *     anything else           BROADCAST  by masks in the kernel
 *
 * Where neither operand has the result's shape, the main one is read by a mask too.
 */
#include "abi/elementwise_params.h"
#include "gpu/om_gpu_state.h"

uint32_t om_chain_item_scalars(const om_chain_item *item) {
  if (item->source == OM_CHAIN_REPEAT) return 2u * item->runs;
  if (item->source == OM_CHAIN_SCALAR || item->op == OM_CHAIN_ADD_SCALED) return 1;
  switch (item->op) {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  case number:                                                        \
    return scalar_count;
#define OM_BINARY(number, type, name, opset, expression)
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    default:
      return 0;
  }
}

static const om_gpu_forms one_form = OM_GPU_FORMS(ELEMENTWISE);
static const om_gpu_forms vec4_form = OM_GPU_FORMS(ELEMENTWISE_VEC4);

static bool is_of_form(om_shader shader, const om_gpu_forms *forms) {
  for (int half = 0; half < 2; ++half) {
    for (int exact = 0; exact < 2; ++exact) {
      if (forms->by_half_and_exact[half][exact] == shader) return true;
    }
  }
  return false;
}

bool om_gpu_is_elementwise(const om_gpu_dispatch *dispatch) {
  return is_of_form(dispatch->shader, &one_form) || is_of_form(dispatch->shader, &vec4_form);
}

bool om_gpu_chain_turns(const om_gpu_chain *chain) {
  for (uint32_t i = 0; i < chain->item_count; ++i) {
    const uint8_t op = chain->items[i].op;
    if (op == OM_CHAIN_Sin || op == OM_CHAIN_Cos) return true;
  }
  return false;
}

void om_gpu_finish_elementwise(const om_provider_session *session, om_gpu_dispatch *dispatch) {
  enum { GROUP_THREADS = 256 }; /* as the shader has it */
  om_elementwise_kernel_params params;
  memcpy(&params, dispatch->params, sizeof params);
  bool is_exact = session->mode == OM_MODE_EXACT || om_gpu_chain_turns(&dispatch->chain);
  bool is_half = om_gpu_chain_is_half(dispatch);
  bool is_vec4 = dispatch->constants[0] == 0 && params.elems % 4 == 0;
  uint64_t threads = is_vec4 ? params.elems / 4 : params.elems;
  dispatch->shader = (is_vec4 ? &vec4_form : &one_form)->by_half_and_exact[is_half][is_exact];
  om_gpu_split_groups(&session->limits, om_gpu_pieces(threads, GROUP_THREADS), dispatch->groups);
}

static bool is_same_operand(const om_gpu_operand *a, const om_gpu_operand *b) {
  return a->kind == b->kind && a->index == b->index && a->offset_bytes == b->offset_bytes;
}

bool om_gpu_chain_add(om_gpu_chain *chain,
                      om_chain_item item,
                      const om_gpu_operand *operand,
                      const float *scalars,
                      uint32_t scalar_count) {
  uint32_t slot = 0;
  if (chain->item_count == OM_CHAIN_MAX_ITEMS) return false;
  if (chain->scalar_count + scalar_count > OM_CHAIN_MAX_SCALARS) return false;
  if (operand) {
    while (slot < chain->operand_count && !is_same_operand(&chain->operands[slot], operand)) ++slot;
    if (slot == OM_CHAIN_MAX_OPERANDS) return false;
    if (slot == chain->operand_count) chain->operands[chain->operand_count++] = *operand;
  }
  item.operand = (uint8_t)slot;
  chain->items[chain->item_count++] = item;
  for (uint32_t i = 0; i < scalar_count; ++i) chain->scalars[chain->scalar_count++] = scalars[i];
  return true;
}

om_gpu_dispatch *om_gpu_add_elementwise(om_gpu_binder *b, uint32_t input) {
  size_t elems = 0;
  const om_tensor *out = om_gpu_output(b, 0);
  om_gpu_operand from = om_gpu_read(b, input);
  om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d =
      om_gpu_add_dispatch(b, OM_GPU_KERNEL(b, ELEMENTWISE, om_gpu_input(b, input)->dtype));
  if (!d || !out || !om_shape_elems(out->rank, out->dims, &elems)) return NULL;
  om_elementwise_kernel_params params = {.elems = (uint32_t)elems};
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constant_count = 1;
  d->operands[0] = from;
  d->operands[1] = to;
  d->operand_count = 2;
  d->has_chain = true;
  d->chain_value = to.index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = elems;
  return d;
}

/* The result's dimensions, innermost first, without those of extent 1, and where each operand
 * has extent 1; neighbours that look alike are one. */
typedef struct layout {
  uint32_t rank;
  uint64_t extents[OM_MAX_RANK];
  bool is_one[OM_MAX_RANK][2];
} layout;

static bool has_extent_one(const om_tensor *tensor, uint32_t from_inside) {
  return from_inside >= tensor->rank || tensor->dims[tensor->rank - 1 - from_inside] == 1;
}

static layout lay_out(const om_tensor *out, const om_tensor *first, const om_tensor *second) {
  layout l = {0};
  for (uint32_t i = 0; i < out->rank; ++i) {
    uint64_t extent = (uint64_t)out->dims[out->rank - 1 - i];
    bool one[2] = {has_extent_one(first, i), has_extent_one(second, i)};
    if (extent == 1) continue;
    if (l.rank > 0 && l.is_one[l.rank - 1][0] == one[0] && l.is_one[l.rank - 1][1] == one[1]) {
      l.extents[l.rank - 1] *= extent;
      continue;
    }
    l.extents[l.rank] = extent;
    l.is_one[l.rank][0] = one[0];
    l.is_one[l.rank][1] = one[1];
    ++l.rank;
  }
  return l;
}

/* If the operand is one run of the result's dimensions, what is inside it and how long it is. */
static bool find_run(const layout *l, int which, uint32_t *out_inner, uint32_t *out_channels) {
  uint64_t inner = 1;
  uint64_t channels = 1;
  uint32_t i = 0;
  for (; i < l->rank && l->is_one[i][which]; ++i) inner *= l->extents[i];
  for (; i < l->rank && !l->is_one[i][which]; ++i) channels *= l->extents[i];
  for (; i < l->rank && l->is_one[i][which]; ++i) {
  }
  *out_inner = (uint32_t)inner;
  *out_channels = (uint32_t)channels;
  return i == l->rank;
}

/* Writes the extents and masks of a kernel that reads by them. */
static void set_masks(om_gpu_dispatch *d, const layout *l, int main_operand) {
  om_elementwise_kernel_params params;
  memcpy(&params, d->params, sizeof params);
  uint32_t extents[OM_MAX_RANK] = {0};
  params.rank = l->rank;
  for (uint32_t i = 0; i < l->rank; ++i) {
    extents[i] = (uint32_t)l->extents[i];
    if (l->is_one[i][main_operand]) params.input_mask |= 1u << i;
    if (l->is_one[i][1 - main_operand]) params.other_mask |= 1u << i;
  }
  memcpy(&params.extent_0, extents, sizeof extents);
  memcpy(d->params, &params, sizeof params);
  d->constants[0] = 1;
}

static bool is_known_scalar(const om_tensor *tensor) {
  size_t elems = 0;
  return tensor->data && om_shape_elems(tensor->rank, tensor->dims, &elems) && elems == 1;
}

static bool has_elems(const om_tensor *tensor, const om_tensor *other) {
  size_t a = 0;
  size_t b = 0;
  return om_shape_elems(tensor->rank, tensor->dims, &a) &&
         om_shape_elems(other->rank, other->dims, &b) && a == b;
}

/* The operand that the chain starts from: one of the result's shape, rather not a constant. */
static int choose_main(const om_tensor *out, const om_tensor *x, const om_tensor *y) {
  bool is_x_full = has_elems(x, out);
  bool is_y_full = has_elems(y, out);
  if (is_x_full && !(is_y_full && x->data && !y->data)) return 0;
  return is_y_full ? 1 : 0;
}

/* A known single integer as the CPU converts it. */
static bool read_whole(const om_tensor *tensor, float *out_value) {
  int32_t i32 = 0;
  int64_t i64 = 0;
  if (!is_known_scalar(tensor)) return false;
  if (tensor->dtype == OM_DTYPE_I32) {
    memcpy(&i32, tensor->data, sizeof i32);
    i64 = i32;
  } else if (tensor->dtype == OM_DTYPE_I64) {
    memcpy(&i64, tensor->data, sizeof i64);
  } else {
    return false;
  }
  *out_value = (float)(double)i64;
  return true;
}

static const char *bind_with_scalar(om_gpu_binder *b, uint8_t op, uint32_t input, float scalar) {
  const om_chain_item item = {.op = op, .source = OM_CHAIN_SCALAR};
  om_gpu_dispatch *d = om_gpu_add_elementwise(b, input);
  if (!d || !om_gpu_chain_add(&d->chain, item, NULL, &scalar, 1)) return om_gpu_no_memory;
  return NULL;
}

static const char *bind_binary(om_gpu_binder *b, uint8_t op, uint32_t input, uint32_t other) {
  const om_tensor *out = om_gpu_output(b, 0);
  const om_tensor *tensors[2] = {om_gpu_input(b, input), om_gpu_input(b, other)};
  float exponent = 0.0f;
  if (op == OM_CHAIN_Pow && read_whole(tensors[1], &exponent)) {
    return bind_with_scalar(b, op, input, exponent);
  }
  if (tensors[1]->dtype != tensors[0]->dtype) {
    return om_gpu_reason(b, "its second operand is %s", om_dtype_name(tensors[1]->dtype));
  }
  int main_operand = choose_main(out, tensors[0], tensors[1]);
  const om_tensor *second = tensors[1 - main_operand];
  uint32_t second_input = main_operand == 0 ? other : input;
  om_chain_item item = {.op = op, .is_swapped = main_operand == 1};
  om_gpu_operand operand = {.kind = OM_GPU_NOTHING};
  om_gpu_dispatch *d = om_gpu_add_elementwise(b, main_operand == 0 ? input : other);
  if (!d) return om_gpu_no_memory;

  if (is_known_scalar(second)) {
    float scalar = om_gpu_real_at(second->dtype, second->data, 0);
    item.source = OM_CHAIN_SCALAR;
    return om_gpu_chain_add(&d->chain, item, NULL, &scalar, 1) ? NULL : om_gpu_no_memory;
  }
  operand = om_gpu_read(b, second_input);
  layout l = lay_out(out, tensors[0], tensors[1]);
  bool is_main_full = has_elems(tensors[main_operand], out);
  if (is_main_full && has_elems(second, out)) {
    item.source = OM_CHAIN_TENSOR;
  } else if (is_main_full && find_run(&l, 1 - main_operand, &d->chain.inner, &d->chain.channels)) {
    item.source = OM_CHAIN_VECTOR;
  } else {
    item.source = OM_CHAIN_BROADCAST;
    set_masks(d, &l, main_operand);
  }
  return om_gpu_chain_add(&d->chain, item, &operand, NULL, 0) ? NULL : om_gpu_no_memory;
}

const char *om_gpu_bind_elementwise(om_gpu_binder *b,
                                    uint8_t op,
                                    uint32_t input,
                                    uint32_t other,
                                    const float *scalars,
                                    uint32_t scalar_count) {
  if (other != UINT32_MAX) return bind_binary(b, op, input, other);
  om_gpu_dispatch *d = om_gpu_add_elementwise(b, input);
  om_chain_item item = {.op = op, .source = OM_CHAIN_NONE};
  if (!d || !om_gpu_chain_add(&d->chain, item, NULL, scalars, scalar_count))
    return om_gpu_no_memory;
  return NULL;
}
