/* A log for sessions of tests: errors, and what Vulkan's validation layer says at any level. */
#ifndef OM_TEST_LOG_H
#define OM_TEST_LOG_H

#include <stdbool.h>

#include "onemodel/onemodel.h"

bool om_test_is_complaint(om_log_level level, const char *message);

/* The program's; drivers may write from any thread. */
om_log om_test_log(void);

/* The first complaint since the last call, lent until the next one; NULL: none. For one thread,
 * while no session is at work. */
const char *om_test_complaint(void);

#endif
