/* Skipped cases of cmocka's, each with its reason: tools/run_tests.py prints and counts them. */
#ifndef OM_TEST_SKIP_H
#define OM_TEST_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Ends the case; takes what printf takes. */
#define OM_TEST_SKIP(...)         \
  do {                            \
    print_message("# skipped: "); \
    print_message(__VA_ARGS__);   \
    print_message("\n");          \
    skip();                       \
  } while (0)

#endif
