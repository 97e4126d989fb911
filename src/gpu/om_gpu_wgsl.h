/* Kernels as WGSL: what tools/embed_wgsl.py writes for a web build. */
#ifndef OM_GPU_WGSL_H
#define OM_GPU_WGSL_H

#include "om_shaders.h"

typedef struct om_wgsl_condition { /* of a piece: what of a chain it is for */
  bool is_item;
  uint8_t item;           /* is_item: there is an item with this number */
  uint32_t operations[8]; /* else: one of these operations is used; a bit each */
} om_wgsl_condition;

typedef struct om_wgsl_piece {
  uint32_t offset, bytes; /* of om_wgsl_text */
  uint32_t condition;     /* of om_wgsl_conditions; 0: it is always there */
} om_wgsl_piece;

typedef struct om_wgsl_module {
  const om_wgsl_piece *pieces;
  size_t piece_count; /* 0: the kernel is not for a browser */
} om_wgsl_module;

extern const char om_wgsl_text[];
extern const om_wgsl_condition om_wgsl_conditions[];

/* Static. */
const om_wgsl_module *om_wgsl_module_get(om_shader shader);

#endif
