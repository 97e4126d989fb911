/* The README's program (example.c), compiled as it stands and run on a small model. */
int example_main(int argc, char **argv);
#define main example_main
#include "example.c"
#undef main

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/om_test_skip.h"

/* What the program prints to `descriptor`, as a terminated text in buffer; its exit code. */
static int run_example(char *model, int descriptor, char *buffer, size_t buffer_bytes) {
  char name[] = "example";
  char *arguments[] = {name, model, NULL};
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(NULL);
  const int kept = dup(descriptor);
  assert_true(kept >= 0 && dup2(fileno(file), descriptor) >= 0);
  const int code = example_main(2, arguments);
  fflush(NULL);
  dup2(kept, descriptor);
  close(kept);
  rewind(file);
  const size_t bytes = fread(buffer, 1, buffer_bytes - 1, file);
  buffer[bytes] = '\0';
  fclose(file);
  return code;
}

static void prints_the_result(void **state) {
  char model[] = OM_SOURCE_DIR "/tests/api/example.onnx";
  char text[256];
  size_t device_count = 0;
  (void)state;
  assert_int_equal(om_gpu_list(NULL, 0, &device_count, NULL), OM_OK);
  if (device_count == 0) OM_TEST_SKIP("there is no Vulkan device");
  assert_int_equal(run_example(model, STDOUT_FILENO, text, sizeof text), 0);
  assert_string_equal(text, "0\n0\n2\n4\n");
}

static void says_what_is_wrong(void **state) {
  char model[] = OM_SOURCE_DIR "/tests/api/missing.onnx";
  char text[2048];
  (void)state;
  assert_int_equal(run_example(model, STDERR_FILENO, text, sizeof text), 1);
  assert_non_null(strstr(text, "OM_E_IO"));
  assert_non_null(strstr(text, "missing.onnx"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prints_the_result),
      cmocka_unit_test(says_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
