/* The tests' own tools: what they must catch, they catch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_test_case.h"

static om_ctx make_ctx(om_error *error) {
  return (om_ctx){.allocator = om_default_allocator(), .error = error, .thread_count = 1};
}

/* ---- om_compare ---- */

static void compare_scales_by_the_largest(void **state) {
  const double a[] = {1, 2.5, 100}, b[] = {1, 2, 100};
  (void)state;
  const om_test_comparison found = om_test_compare(a, b, 3);
  assert_true(found.specials_match);
  assert_true(fabs(found.scaled_error - 0.005) < 1e-15);
  assert_true(fabs(found.elem_error - 0.25) < 1e-15);
  assert_int_equal(found.worst, 1);
}

static void compare_wants_nan_at_its_place(void **state) {
  const double a[] = {1, 0, INFINITY}, b[] = {1, NAN, INFINITY}, c[] = {1, NAN, -INFINITY};
  (void)state;
  assert_false(om_test_compare(a, b, 3).specials_match);
  assert_int_equal(om_test_compare(a, b, 3).special, 1);
  assert_true(om_test_compare(b, b, 3).specials_match);
  assert_int_equal(om_test_compare(c, b, 3).special, 2);
}

static void compare_with_zeros_is_absolute(void **state) {
  const double a[] = {0.5, 0}, b[] = {0, 0};
  (void)state;
  assert_true(om_test_compare(a, b, 2).scaled_error == 0.5);
  assert_true(isinf(om_test_compare(a, b, 2).elem_error));
}

static void same_takes_any_nan_and_no_other_zero(void **state) {
  float a[] = {NAN, 0.0f}, b[] = {-NAN, 0.0f}, c[] = {NAN, -0.0f};
  const int64_t dims[] = {2}, column[] = {2, 1};
  size_t elem = 0;
  (void)state;
  const om_tensor x = om_tensor_of(OM_DTYPE_F32, 1, dims, a);
  const om_tensor y = om_tensor_of(OM_DTYPE_F32, 1, dims, b);
  const om_tensor z = om_tensor_of(OM_DTYPE_F32, 1, dims, c);
  const om_tensor other_shape = om_tensor_of(OM_DTYPE_F32, 2, column, a);
  assert_true(om_tensor_same(&x, &y, &elem));
  assert_false(om_tensor_same(&x, &z, &elem));
  assert_int_equal(elem, 1);
  assert_false(om_tensor_same(&x, &other_shape, &elem));
  assert_true(elem == SIZE_MAX);
}

static void rounding_is_that_of_the_type(void **state) {
  (void)state;
  assert_true(om_dtype_round(OM_DTYPE_F32, 1e39) == INFINITY);
  assert_true(om_dtype_round(OM_DTYPE_F16, 65519) == 65504);
  assert_true(om_dtype_round(OM_DTYPE_F16, 65520) == INFINITY);
  assert_true(om_dtype_round(OM_DTYPE_I8, -1000) == -128);
  assert_true(om_dtype_round(OM_DTYPE_U8, -3) == 0);
  assert_true(om_dtype_round(OM_DTYPE_I32, 2.75) == 2);
  /* Above the tie by less than float32 can say: one rounding goes up, two would go to even. */
  assert_true(om_dtype_round(OM_DTYPE_BF16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  assert_true(om_dtype_round(OM_DTYPE_BF16, 1 + 0x1p-8) == 1);
}

/* ---- om_fault ---- */

static void fault_fails_once_and_counts(void **state) {
  om_fault fault = {.fail_at = 1};
  const om_allocator allocator = om_fault_allocator(&fault);
  (void)state;
  void *first = allocator.alloc(allocator.user, 10);
  assert_non_null(first);
  assert_int_equal((uintptr_t)first % 64, 0);
  assert_null(allocator.alloc(allocator.user, 10));
  assert_true(om_fault_has_failed(&fault));
  void *third = allocator.alloc(allocator.user, 10);
  assert_non_null(third);
  assert_int_equal(om_fault_live_blocks(&fault), 2);
  allocator.free(allocator.user, first, 10);
  allocator.free(allocator.user, third, 10);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 0);
}

static void fault_sees_damage(void **state) {
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  const om_allocator allocator = om_fault_allocator(&fault);
  (void)state;
  uint8_t *wrong_size = allocator.alloc(allocator.user, 10);
  uint8_t *overrun = allocator.alloc(allocator.user, 10);
  assert_non_null(wrong_size);
  assert_non_null(overrun);
  overrun[10] = 0;
  allocator.free(allocator.user, wrong_size, 11);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 1);
  allocator.free(allocator.user, overrun, 10);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 2);
}

/* ---- Texts of cases ---- */

static void texts_of_inputs(void **state) {
  om_error error = {0};
  om_ctx ctx = make_ctx(&error);
  om_pool pool = {0};
  om_test_input input = {0}, absent = {0}, wrong = {0};
  (void)state;
  assert_int_equal(om_test_input_parse(&ctx, &pool, "i64 2x3 const = 1 -2", 1, &input), OM_OK);
  assert_true(input.is_constant);
  assert_int_equal(input.tensor.dtype, OM_DTYPE_I64);
  assert_int_equal(input.tensor.rank, 2);
  assert_int_equal(input.tensor.dims[1], 3);
  assert_true(om_tensor_value(&input.tensor, 5) == -2);
  assert_int_equal(om_test_input_parse(&ctx, &pool, "-", 1, &absent), OM_OK);
  assert_true(absent.is_absent);
  assert_int_equal(om_test_input_parse(&ctx, &pool, "f31 2", 1, &wrong), OM_E_INVALID_ARGUMENT);
  om_pool_deinit(&ctx, &pool);
}

static void texts_of_attributes(void **state) {
  om_error error = {0};
  om_ctx ctx = make_ctx(&error);
  om_pool pool = {0};
  om_attr attrs[OM_TEST_ATTRS] = {0};
  uint32_t count = 0;
  (void)state;
  const char *text =
      "axis=-1 pads=1,2 axes=[0] none=[] alpha=0.5f mode=\"lin\" value={f32 1 = 2.5}";
  assert_int_equal(om_test_attrs_parse(&ctx, &pool, text, attrs, &count), OM_OK);
  assert_int_equal(count, 7);
  assert_int_equal(attrs[0].kind, OM_ATTR_INT);
  assert_int_equal(attrs[0].i, -1);
  assert_int_equal(attrs[1].kind, OM_ATTR_INTS);
  assert_int_equal(attrs[1].ints[1], 2);
  assert_int_equal(attrs[2].kind, OM_ATTR_INTS);
  assert_int_equal(attrs[2].count, 1);
  assert_int_equal(attrs[3].count, 0);
  assert_int_equal(attrs[4].kind, OM_ATTR_FLOAT);
  assert_true(attrs[4].f == 0.5f);
  assert_true(om_string_is(attrs[5].s, "lin"));
  assert_true(om_tensor_value(attrs[6].tensor, 0) == 2.5);
  assert_int_equal(om_test_attrs_parse(&ctx, &pool, "axis", attrs, &count), OM_E_INVALID_ARGUMENT);
  om_pool_deinit(&ctx, &pool);
}

static void the_same_seed_gives_the_same_values(void **state) {
  om_error error = {0};
  om_ctx ctx = make_ctx(&error);
  om_pool pool = {0};
  om_test_input a = {0}, b = {0}, c = {0};
  size_t elem = 0;
  (void)state;
  assert_int_equal(om_test_input_parse(&ctx, &pool, "f32 50 range 0 1", 7, &a), OM_OK);
  assert_int_equal(om_test_input_parse(&ctx, &pool, "f32 50 range 0 1", 7, &b), OM_OK);
  assert_int_equal(om_test_input_parse(&ctx, &pool, "f32 50 range 0 1", 8, &c), OM_OK);
  assert_true(om_tensor_same(&a.tensor, &b.tensor, &elem));
  assert_false(om_tensor_same(&a.tensor, &c.tensor, &elem));
  om_pool_deinit(&ctx, &pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compare_scales_by_the_largest),
      cmocka_unit_test(compare_wants_nan_at_its_place),
      cmocka_unit_test(compare_with_zeros_is_absolute),
      cmocka_unit_test(same_takes_any_nan_and_no_other_zero),
      cmocka_unit_test(rounding_is_that_of_the_type),
      cmocka_unit_test(fault_fails_once_and_counts),
      cmocka_unit_test(fault_sees_damage),
      cmocka_unit_test(texts_of_inputs),
      cmocka_unit_test(texts_of_attributes),
      cmocka_unit_test(the_same_seed_gives_the_same_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
