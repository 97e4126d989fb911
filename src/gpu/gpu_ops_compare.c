/* Comparisons, logic, IsNaN, IsInf, Where, and the remainder of integers: all with broadcasting. */
#include "abi/broadcast_params.h"
#include "gpu/om_gpu_broadcast.h"
#include "gpu/om_gpu_copy.h"
#include "ops/op_elementwise.h"

static const char *bind_test(om_gpu_binder *b, uint32_t test, uint32_t input_count) {
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  const char *reason = om_gpu_check_words(b, om_tensor_elems(y) * 2);
  if (reason) return reason;
  om_gpu_dispatch *d = om_gpu_add_broadcast(b, OM_SHADER_COMPARE, input_count, 4);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = (uint32_t)om_gpu_input(b, 0)->dtype;
  d->constants[1] = test;
  d->constant_count = 2;
  return NULL;
}

static const char *bind_comparison(om_gpu_binder *b) {
  static const uint32_t tests[] = {
      [OM_COMPARE_EQUAL] = OM_TEST_EQUAL,
      [OM_COMPARE_LESS] = OM_TEST_LESS,
      [OM_COMPARE_GREATER] = OM_TEST_GREATER,
      [OM_COMPARE_LESS_OR_EQUAL] = OM_TEST_LESS_OR_EQUAL,
      [OM_COMPARE_GREATER_OR_EQUAL] = OM_TEST_GREATER_OR_EQUAL,
  };
  const om_compare_params *p = om_gpu_binder_node(b)->params;
  return bind_test(b, tests[p->operation], 2);
}

static const char *bind_logic(om_gpu_binder *b) {
  static const uint32_t tests[] = {
      [OM_BITWISE_AND] = OM_TEST_AND,
      [OM_BITWISE_OR] = OM_TEST_OR,
      [OM_BITWISE_XOR] = OM_TEST_XOR,
      [OM_BITWISE_NOT] = OM_TEST_NOT,
  };
  const om_compare_params *p = om_gpu_binder_node(b)->params;
  return bind_test(b, tests[p->operation], p->operation == OM_BITWISE_NOT ? 1 : 2);
}

static const char *bind_is_nan(om_gpu_binder *b) {
  return bind_test(b, OM_TEST_IS_NAN, 1);
}

static const char *bind_is_inf(om_gpu_binder *b) {
  const om_is_inf_params *p = om_gpu_binder_node(b)->params;
  return bind_test(b, OM_TEST_IS_INF + (p->positive ? 1u : 0u) + (p->negative ? 2u : 0u), 1);
}

static const char *bind_where(om_gpu_binder *b) {
  const om_tensor *y = om_gpu_output(b, 0);
  if (!y) return "nothing reads its result";
  if ((OM_DT_MOVED & OM_DT(y->dtype)) == 0) {
    return om_gpu_reason(b, "no kernel for values of %s", om_dtype_name(y->dtype));
  }
  const char *reason = om_gpu_check_words(b, om_gpu_tensor_words(y));
  if (reason) return reason;
  const uint32_t size = om_gpu_words(y->dtype);
  const bool is_small = om_gpu_is_small(y->dtype);
  om_gpu_dispatch *d = om_gpu_add_broadcast(
      b, is_small ? OM_SHADER_WHERE_BYTES : OM_SHADER_WHERE, 3, is_small ? 4 / size : 1);
  if (!d) return om_gpu_no_memory;
  d->constants[0] = size;
  d->constant_count = 1;
  return NULL;
}

static const char *bind_mod(om_gpu_binder *b) {
  const om_mod_params *p = om_gpu_binder_node(b)->params;
  return om_gpu_bind_integer(b, p->is_fmod ? OM_INTEGER_FMOD : OM_INTEGER_MOD);
}

#define OM_INTEGERS (OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))
#define OM_FLOATS   (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16))
#define OM_BYTES    (OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_I8))

#define OM_ENTRY(name, set, function) \
  {.domain = "", .type = (name), .dtypes = (set), .has_exact = true, .bind = (function)}
#define OM_COMPARISON(name, set) \
  OM_ENTRY(name, OM_FLOATS | OM_INTEGERS | OM_BYTES | (set), bind_comparison)
#define OM_LOGIC(name) OM_ENTRY(name, OM_DT(OM_DTYPE_BOOL), bind_logic)

const om_gpu_op om_gpu_ops_compare[] = {
    OM_LOGIC("And"),
    OM_COMPARISON("Equal", OM_DT(OM_DTYPE_BOOL)),
    OM_COMPARISON("Greater", 0),
    OM_COMPARISON("GreaterOrEqual", 0),
    OM_ENTRY("IsInf", OM_FLOATS, bind_is_inf),
    OM_ENTRY("IsNaN", OM_FLOATS, bind_is_nan),
    OM_COMPARISON("Less", 0),
    OM_COMPARISON("LessOrEqual", 0),
    OM_ENTRY("Mod", OM_INTEGERS, bind_mod),
    OM_LOGIC("Not"),
    OM_LOGIC("Or"),
    OM_ENTRY("Where", OM_DT(OM_DTYPE_BOOL), bind_where),
    OM_LOGIC("Xor"),
    {.type = NULL},
};
