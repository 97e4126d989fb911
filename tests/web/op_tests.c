/* All operator tests as one program: the first argument names the test, the others are its own.
 * Without any it prints their names. */
#include <stdio.h>
#include <string.h>

#define OM_OP_TEST_PROGRAM(name) int om_main_##name(int argc, char **argv);
#include "om_op_test_programs.def"
#undef OM_OP_TEST_PROGRAM

static const struct {
  const char *name;
  int (*main)(int argc, char **argv);
} programs[] = {
#define OM_OP_TEST_PROGRAM(name) {#name, om_main_##name},
#include "om_op_test_programs.def"
#undef OM_OP_TEST_PROGRAM
};

void om_web_test_done(int code); /* main's result is lost once it has waited */

int main(int argc, char **argv) {
  int code = argc > 1 ? 2 : 0;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i) {
    if (argc == 1) printf("%s\n", programs[i].name);
    if (argc > 1 && strcmp(argv[1], programs[i].name) == 0) {
      code = programs[i].main(argc - 1, argv + 1);
    }
  }
  fflush(stdout);
  om_web_test_done(code);
  return 0;
}
