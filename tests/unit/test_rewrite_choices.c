/* Conditions that are computed of numbers, as exporters write masks: what they become, and that
 * the results keep their bits, those of zeros too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness/om_each_mode.h"
#include "harness/om_model_text.h"

enum { ELEMS = 12 };

typedef struct form {
  const char *name, *inputs, *nodes;
  om_dtype dtype;      /* of m */
  size_t steps;        /* that are left */
  float of_one, other; /* y where m is 1, or true, and else */
} form;

#define LOW      "low = Constant() value_float=-3.4e38; one = Constant() value_float=1.0; "
#define INVERTED "f = Cast(m) to=1; d = Sub(one, f); c = Cast(d) to=9; "

static const form forms[] = {
    {"integers",
     "m: i64[3, 4]",
     LOW INVERTED "y = Where(c, low, d); ",
     OM_DTYPE_I64,
     2,
     0,
     -3.4e38f},
    {"booleans",
     "m: bool[3, 4]",
     LOW INVERTED "y = Where(c, low, d); ",
     OM_DTYPE_BOOL,
     1,
     0,
     -3.4e38f},
    {"int32, another value",
     "m: i32[3, 4]",
     LOW INVERTED "two = Constant() value_float=2.0; y = Where(c, low, two); ",
     OM_DTYPE_I32,
     2,
     2,
     -3.4e38f},
    {"the mask asked once more",
     "m: i64[3, 4]",
     LOW INVERTED "w = Where(c, low, d); e = Cast(w) to=9; y = Where(e, low, one); ",
     OM_DTYPE_I64,
     2,
     1,
     -3.4e38f},
    {"a choice of numbers",
     "m: bool[3, 4]",
     LOW "zero = Constant() value_float=0.0; w = Where(m, zero, low); e = Cast(w) to=9; "
         "y = Where(e, one, w); ",
     OM_DTYPE_BOOL,
     1,
     0,
     1},
    {"negations",
     "m: bool[3, 4]",
     LOW "a = Not(m); b = Not(a); e = Not(b); y = Where(e, one, low); ",
     OM_DTYPE_BOOL,
     1,
     -3.4e38f,
     1},
    /* None of these is: 2 - m is not 0 where m is 1; -0 is not +0; both are chosen. */
    {"another number",
     "m: i64[3, 4]",
     LOW "two = Constant() value_float=2.0; f = Cast(m) to=1; d = Sub(two, f); "
         "c = Cast(d) to=9; y = Where(c, one, d); ",
     OM_DTYPE_I64,
     4,
     1,
     1},
    {"a negative zero",
     "m: bool[3, 4]",
     LOW "zero = Constant() value_float=-0.0; w = Where(m, zero, one); e = Cast(w) to=9; "
         "y = Where(e, low, w); ",
     OM_DTYPE_BOOL,
     3,
     -0.0f,
     -3.4e38f},
    {"numbers, both of which are chosen",
     "m: bool[3, 4]",
     LOW "two = Constant() value_float=2.0; w = Where(m, one, two); e = Cast(w) to=9; "
         "y = Where(e, low, w); ",
     OM_DTYPE_BOOL,
     3,
     -3.4e38f,
     -3.4e38f},
};

static void fill(const form *f, void *m, bool is_one[ELEMS]) {
  for (int i = 0; i < ELEMS; ++i) {
    const bool is_bool = f->dtype == OM_DTYPE_BOOL;
    const int value = is_bool ? i % 3 == 0 : i % 4 - 1; /* -1 to 2; what is counted is 1 */
    is_one[i] = value == 1;
    if (is_bool) ((uint8_t *)m)[i] = (uint8_t)value;
    if (f->dtype == OM_DTYPE_I32) ((int32_t *)m)[i] = value;
    if (f->dtype == OM_DTYPE_I64) ((int64_t *)m)[i] = value;
  }
}

static void run(const form *f, const om_session_options *options) {
  int64_t m[ELEMS];
  bool is_one[ELEMS];
  char text[1024];
  om_text_rig rig;
  const om_diagnostics *d = NULL;
  om_named_tensor input = {"m", om_tensor_of(f->dtype, 2, (int64_t[]){3, 4}, m)};
  om_named_tensor output = {"y", {0}};
  print_message("# %s\n", f->name);
  fill(f, m, is_one);
  snprintf(text, sizeof text, "(%s) -> y { %s }", f->inputs, f->nodes);
  om_text_rig_open(&rig, text, 17, options);
  if (om_text_rig_run(&rig, &input, 1, &output, 1) != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(output.tensor.data_bytes, ELEMS * sizeof(float));
  for (int i = 0; i < ELEMS; ++i) {
    const float *want = is_one[i] ? &f->of_one : &f->other;
    if (strcmp(f->name, "another number") == 0 && m[i] == 2) want = &(const float){0.0f};
    assert_memory_equal((const float *)output.tensor.data + i, want, sizeof *want);
  }
  assert_int_equal(om_session_diagnose(rig.session, &input, 1, &d, &rig.error), OM_OK);
  size_t steps = 0;
  for (size_t i = 0; i < d->node_count; ++i) steps += d->nodes[i].place != OM_PLACE_FOLDED;
  assert_int_equal(steps, f->steps);
  om_text_rig_close(&rig);
}

static void check(const om_session_options *options) {
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) run(&forms[i], options);
}

static void conditions_ask_what_they_mean_on_the_cpu(void **state) {
  (void)state;
  om_each_mode_on_the_cpu(check);
}

static void conditions_ask_what_they_mean_on_a_device(void **state) {
  (void)state;
  om_each_mode_on_a_device(check);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(conditions_ask_what_they_mean_on_the_cpu),
                                     cmocka_unit_test(conditions_ask_what_they_mean_on_a_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
