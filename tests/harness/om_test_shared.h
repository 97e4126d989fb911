/* One Vulkan device for the sessions of a test program, one after the other: to open one takes a
 * tenth of a second to seconds, the longer the more processes there are. */
#ifndef OM_TEST_SHARED_H
#define OM_TEST_SHARED_H

#include "onemodel/gpu.h"

/* The device that $OM_TEST_DEVICE names, made ready for both modes; closed when the program ends.
 * NULL: sessions open their own, where the validation layer speaks to the log of whoever opened the
 * device, and where there is none. For one thread. */
om_gpu_prepared *om_test_shared_device(void);

/* After a failure: a device that was lost is left, and the next call opens one anew. */
void om_test_shared_check(om_status status);

#endif
