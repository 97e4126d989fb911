/* The parameters of elementwise operators, as the device's binder reads them too. */
#ifndef OP_ELEMENTWISE_H
#define OP_ELEMENTWISE_H

#include "cpu/exact/om_compare.h"
#include "cpu/exact/om_elementwise.h"
#include "graph/om_op.h"

/* Of every operator that is a line of elementwise.def. */
typedef struct om_elementwise_params {
  uint8_t number; /* of elementwise.def */
  uint8_t scalar_count;
  bool bounds_are_inputs; /* Clip from opset 11 on: inputs 1 and 2, where present, take the place
                             of the scalars, which are -infinity and infinity then */
  bool aligns_by_axis;    /* before opset 7: input 1's dimensions begin at `axis` of input 0's */
  int64_t axis;           /* negative: they end where input 0's end */
  float scalars[2];       /* attributes */
} om_elementwise_params;

/* Mod. */
typedef struct om_mod_params {
  bool is_fmod; /* the result has the dividend's sign, else the divisor's */
} om_mod_params;

/* Comparisons, logic and bits. */
typedef enum om_compare_kind {
  OM_KIND_COMPARE,
  OM_KIND_LOGIC,
  OM_KIND_BITWISE,
} om_compare_kind;

typedef struct om_compare_params {
  om_compare_kind kind;
  uint32_t operation; /* om_comparison or om_bitwise */
} om_compare_params;

/* IsInf. */
typedef struct om_is_inf_params {
  bool positive; /* counts */
  bool negative;
} om_is_inf_params;

/* Cast and CastLike. CastLike's type is that of input 1. */
typedef struct om_cast_params {
  om_dtype to;    /* OM_DTYPE_NONE: input 1's */
  bool saturates; /* 8-bit floats: to the largest, else to NaN or infinity */
} om_cast_params;

#endif
