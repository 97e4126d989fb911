/* A device package for tests: takes the operators it is told to take, and runs them by the CPU's
 * kernels, so that partition, regions and transfers can be tested without a device.
 */
#ifndef OM_FAKE_PROVIDER_H
#define OM_FAKE_PROVIDER_H

#include "onemodel/provider.h"

enum { OM_FAKE_MAX_TYPES = 8 };

/* om_session_options.provider_options of the fake: what it does, and what was asked of it. */
typedef struct om_fake_device {
  const char *takes[OM_FAKE_MAX_TYPES];   /* operator types; NULL ends the list */
  const char *refuses[OM_FAKE_MAX_TYPES]; /* types that check refuses (claim refuses the rest) */
  bool marks_fused;                       /* every step but a region's first */
  om_status run_status;                   /* not OM_OK: what run fails with */
  bool fails_to_open;
  bool never_waits; /* as in a browser */
  int polls;        /* is_done says yes to the last of so many, for each region */

  size_t open_count, close_count;
  size_t plan_count, plan_end_count;
  size_t claim_count, compile_count, run_count;
} om_fake_device;

const om_provider *om_fake_provider(void);

#endif
