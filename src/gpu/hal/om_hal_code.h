/* Kernels' code as the build packed it (tools/pack_spirv.py has the form). */
#ifndef OM_HAL_CODE_H
#define OM_HAL_CODE_H

#include "gpu/hal/om_hal.h"

/* SPIR-V's words, code_bytes of them; the caller frees them. */
om_status om_hal_code_unpack(om_ctx *ctx, const om_hal_shader *shader, uint32_t **out_words);

/* PTX's letters, code_bytes of them and a closing 0; the caller frees them. */
om_status om_hal_code_unpack_text(om_ctx *ctx, const om_hal_shader *shader, char **out_text);

#endif
