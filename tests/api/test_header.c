/* The public headers stand alone, in C11 and in C++17, each as the first of a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void compile(const char *compiler, const char *header) {
  char command[1024];
  snprintf(command,
           sizeof command,
           "echo '#include <onemodel/%s>' | %s -Wall -Wextra -Wpedantic -Werror -I%s/include "
           "-fsyntax-only -",
           header,
           compiler,
           OM_SOURCE_DIR);
  assert_int_equal(system(command), 0);
}

static const char *const headers[] = {"onemodel.h", "gpu.h", "provider.h"};

static void is_c11(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; ++i) {
    compile("cc -std=c11 -x c", headers[i]);
  }
}

static void is_cpp17(void **state) {
  (void)state;
  if (system("command -v c++ >/dev/null") != 0) skip();
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; ++i) {
    compile("c++ -std=c++17 -x c++", headers[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_c11), cmocka_unit_test(is_cpp17)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
