/* Kernels' code as the build compressed it (tools/pack_spirv.py has the form).
 *
 * Many kernels are one block. An unpacker keeps the blocks it has met, each as far as it was
 * needed, so that a block is read once for all the kernels that are made together. */
#ifndef OM_HAL_CODE_H
#define OM_HAL_CODE_H

#include "gpu/hal/om_hal.h"

typedef struct om_hal_open_block om_hal_open_block;

typedef struct om_hal_unpacker { /* zeros to begin with */
  om_hal_open_block *first;      /* owned */
} om_hal_unpacker;

void om_hal_unpacker_deinit(om_ctx *ctx, om_hal_unpacker *unpacker);

/* SPIR-V's words, code_bytes of them; the caller frees them. */
om_status om_hal_code_unpack(om_ctx *ctx,
                             om_hal_unpacker *unpacker,
                             const om_hal_shader *shader,
                             uint32_t **out_words);

/* PTX's letters, code_bytes of them and a closing 0; the caller frees them. */
om_status om_hal_code_unpack_text(om_ctx *ctx,
                                  om_hal_unpacker *unpacker,
                                  const om_hal_shader *shader,
                                  char **out_text);

#endif
