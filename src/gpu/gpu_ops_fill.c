/* ConstantOfShape and Range, where they are too large to be computed while planning. */
#include "abi/fill_params.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_fill.h"

enum { OM_THREADS = 256 };

static const char *add_fill(om_gpu_binder *b,
                            const om_fill_words_params *params,
                            uint32_t words,
                            bool is_float) {
  const om_gpu_operand to = om_gpu_write(b, 0);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_FILL);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = words;
  d->constants[1] = is_float;
  d->constant_count = 2;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  d->operands[0] = to;
  d->operand_count = 1;
  om_gpu_spread_groups(b, om_gpu_pieces(params->elems, OM_THREADS), d->groups);
  return NULL;
}

/* The bits of a value of 4 or 8 bytes; a float16 stands for a float32 here (om_gpu_widen.c). */
static void read_words(const om_tensor *value, uint32_t out_words[2]) {
  const float wide = om_gpu_real_at(OM_DTYPE_F16, value->data, 0);
  out_words[0] = out_words[1] = 0;
  if (value->dtype == OM_DTYPE_F16) {
    memcpy(out_words, &wide, sizeof wide);
    return;
  }
  memcpy(out_words, value->data, om_dtype_bits(value->dtype) / 8);
}

static const char *bind_constant(om_gpu_binder *b) {
  const om_fill_params *p = om_gpu_binder_node(b)->params;
  const om_tensor *y = om_gpu_output(b, 0);
  uint32_t bits[2] = {0, 0};
  if (!y) return "nothing reads its result";
  if ((OM_DT_MOVED & OM_DT(y->dtype)) == 0) {
    return om_gpu_reason(b, "no kernel for a result of %s", om_dtype_name(y->dtype));
  }
  const uint64_t count = om_gpu_tensor_words(y);
  const char *reason = om_gpu_check_words(b, count);
  if (reason) return reason;
  const uint32_t size = om_gpu_words(y->dtype);
  const bool is_small = om_gpu_is_small(y->dtype);
  if (p->value && !is_small) read_words(p->value, bits);
  if (p->value && is_small) {
    const bool is_byte = size == 1;
    const uint32_t part =
        is_byte ? *(const uint8_t *)p->value->data : *(const uint16_t *)p->value->data;
    bits[0] = part * (is_byte ? 0x01010101u : 0x00010001u);
  }
  const om_fill_words_params params = {
      .elems = (uint32_t)(is_small ? (count + 3) / 4 : count / size),
      .start_low = bits[0],
      .start_high = bits[1],
  };
  return add_fill(b, &params, is_small ? 1 : size, false);
}

/* A result of known extent has inputs that are known. */
static const char *bind_range(om_gpu_binder *b) {
  enum { LARGEST_FLOAT_COUNT = 1 << 24 }; /* up to there each count is a float */
  const om_tensor *start = om_gpu_input(b, 0);
  const om_tensor *step = om_gpu_input(b, 2);
  const om_tensor *y = om_gpu_output(b, 0);
  uint32_t bits[2][2];
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  const bool is_float = y->dtype == OM_DTYPE_F32;
  if (is_float && om_tensor_elems(y) > LARGEST_FLOAT_COUNT) return "it counts past 2^24";
  read_words(start, bits[0]);
  read_words(step, bits[1]);
  const om_fill_words_params params = {
      .elems = (uint32_t)om_tensor_elems(y),
      .start_low = bits[0][0],
      .start_high = bits[0][1],
      .step_low = bits[1][0],
      .step_high = bits[1][1],
  };
  return add_fill(b, &params, om_gpu_words(y->dtype), is_float);
}

const om_gpu_op om_gpu_ops_fill[] = {
    {.domain = "",
     .type = "ConstantOfShape",
     .dtypes = OM_DT(OM_DTYPE_I64),
     .has_exact = true,
     .bind = bind_constant},
    {.domain = "",
     .type = "Range",
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64),
     .has_exact = true,
     .primitives = OM_PRIMITIVE_ARITHMETIC,
     .bind = bind_range},
    {.type = NULL},
};
