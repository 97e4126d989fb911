#include "harness/om_test_log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* How the Vulkan backend begins what the validation layer said. */
static const char validation[] = "Vulkan validation:";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char first[OM_MAX_MESSAGE], taken[OM_MAX_MESSAGE]; /* "": none */

bool om_test_is_complaint(om_log_level level, const char *message) {
  return level == OM_LOG_ERROR || strncmp(message, validation, sizeof validation - 1) == 0;
}

static void write_log(void *user, om_log_level level, const char *message) {
  (void)user;
  if (!om_test_is_complaint(level, message)) return;
  pthread_mutex_lock(&lock);
  if (!first[0]) snprintf(first, sizeof first, "%s", message);
  pthread_mutex_unlock(&lock);
}

om_log om_test_log(void) {
  return (om_log){.write = write_log};
}

const char *om_test_complaint(void) {
  memcpy(taken, first, sizeof taken);
  first[0] = '\0';
  return taken[0] ? taken : NULL;
}
