/* Device time by operator and by node, the mean of several runs. */
#ifndef PROFILE_H
#define PROFILE_H

#include "command.h"

typedef struct profile {
  om_gpu_step_time *steps; /* owned; ms is the sum over the runs; names are the session's */
  size_t count;
  unsigned runs;
} profile;

/* Adds the times of the session's last run. */
int profile_add(profile *p, const om_session *session);

/* Prints times by operator and the slowest steps. */
void profile_print(const profile *p);

/* The same as members "operators" and "steps" of a JSON object, all steps. */
void profile_print_json(const profile *p);

void profile_free(profile *p);

#endif
