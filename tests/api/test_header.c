/* The public headers stand alone, in C11 and in C++11, each as the first of a program; and so do
 * options at their defaults, without a warning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_test_skip.h"

/* Compiles the lines, each in single quotes. */
static void compile(const char *compiler, const char *lines) {
  char command[1024];
  snprintf(command,
           sizeof command,
           "printf '%%s\\n' %s | %s -Wall -Wextra -Wpedantic -Werror -I%s/include -fsyntax-only -",
           lines,
           compiler,
           OM_SOURCE_DIR);
  assert_int_equal(system(command), 0);
}

static void compile_all(const char *compiler) {
  compile(compiler, "'#include <onemodel/onemodel.h>'");
  compile(compiler, "'#include <onemodel/gpu.h>'");
  compile(compiler, "'#include <onemodel/provider.h>'");
  compile(compiler,
          "'#include <onemodel/gpu.h>' 'int main(void) {'"
          " 'om_model_options model = OM_MODEL_OPTIONS_INIT;'"
          " 'om_session_options session = OM_SESSION_OPTIONS_INIT;'"
          " 'om_gpu_options gpu = OM_GPU_OPTIONS_INIT;'"
          " 'session.provider_options = &gpu;'"
          " 'return (int)(model.struct_bytes + session.struct_bytes); }'");
}

static void is_c11(void **state) {
  (void)state;
  compile_all("cc -std=c11 -x c");
}

static void is_cpp11(void **state) {
  (void)state;
  if (system("command -v c++ >/dev/null") != 0) OM_TEST_SKIP("there is no C++ compiler");
  compile_all("c++ -std=c++11 -x c++");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_c11), cmocka_unit_test(is_cpp11)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
