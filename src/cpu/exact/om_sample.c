/* GridSample and RoiAlign of float32. */
#include "cpu/exact/om_sample.h"

#include "base/om_thread.h"
#include "cpu/exact/om_exact_sample.h"

#define OM_SAMPLE_NAME(name) name
#include "cpu/exact/om_sample.inc"
