/* The backends of this build, in the order in which a session without wishes tries them. */
#include "gpu/hal/om_hal.h"

static const om_hal *const backends[] = {
#ifdef OM_WITH_VULKAN
    &om_hal_vulkan,
#endif
#ifdef OM_WITH_WEBGPU
    &om_hal_webgpu,
#endif
    &om_hal_null,
};

const om_hal *om_hal_get(size_t index) {
  return index < OM_COUNT_OF(backends) ? backends[index] : NULL;
}
