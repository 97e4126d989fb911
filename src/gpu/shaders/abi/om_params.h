/* Parameter blocks, written once for C and GLSL.
 *
 *     #include "abi/om_params.h"
 *     OM_PARAMS_BEGIN(softmax)
 *     OM_UINT(row_count)
 *     OM_UINT(row_elems)
 *     OM_PARAMS_END(softmax)
 *
 * No semicolons. C gets the struct om_softmax_params (with a guard of the file's own around it);
 * GLSL gets the block P: P.row_count. Only 4-byte scalars, so that every layout rule agrees.
 *
 * A kernel with a chain defines OM_CHAIN before it includes this: the chain's fields then stand
 * behind its own. The host appends them (om_gpu_dispatch.params holds the kernel's own alone), so
 * a kernel with a chain has 88 bytes for itself.
 *
 * The web build defines OM_PARAMS_UNIFORM: a uniform block behind the storage buffers.
 */
#ifndef OM_PARAMS_H
#define OM_PARAMS_H

#define OM_CHAIN_FIELDS    \
  OM_FLOAT(chain_scalar_0) \
  OM_FLOAT(chain_scalar_1) \
  OM_FLOAT(chain_scalar_2) \
  OM_FLOAT(chain_scalar_3) \
  OM_FLOAT(chain_scalar_4) \
  OM_FLOAT(chain_scalar_5) \
  OM_FLOAT(chain_scalar_6) \
  OM_FLOAT(chain_scalar_7) \
  OM_UINT(chain_inner)     \
  OM_UINT(chain_channels)

#ifdef __STDC_VERSION__

#  include <stdint.h>

#  define OM_UINT(field)        uint32_t field;
#  define OM_INT(field)         int32_t field;
#  define OM_FLOAT(field)       float field;
#  define OM_PARAMS_BEGIN(name) typedef struct om_##name##_params {
/* 128 bytes is what Vulkan promises for push constants. */
#  define OM_PARAMS_END(name) \
    }                         \
    om_##name##_params;       \
    _Static_assert(sizeof(om_##name##_params) <= 128, "parameter block of " #name);

OM_PARAMS_BEGIN(chain)
OM_CHAIN_FIELDS
OM_PARAMS_END(chain)
_Static_assert(sizeof(om_chain_params) == 40, "the shaders' layout");

#else

#  define OM_UINT(field)  uint field;
#  define OM_INT(field)   int field;
#  define OM_FLOAT(field) float field;
#  ifdef OM_PARAMS_UNIFORM
#    define OM_PARAMS_BEGIN(name) layout(set = 0, binding = 8, std140) uniform OmParams {
#  else
#    define OM_PARAMS_BEGIN(name) layout(push_constant, std430) uniform OmParams {
#  endif
#  ifdef OM_CHAIN
#    define OM_PARAMS_END(name) \
      OM_CHAIN_FIELDS           \
      }                         \
      P;
#  else
#    define OM_PARAMS_END(name) \
      }                         \
      P;
#  endif

#endif
#endif
