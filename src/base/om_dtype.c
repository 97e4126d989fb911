/* Element types: names and sizes. */
#include "base/om_base.h"

typedef struct dtype_entry {
  const char *name;
  uint8_t bits;
} dtype_entry;

static const dtype_entry dtypes[OM_DTYPE_COUNT] = {
    [OM_DTYPE_NONE] = {"undefined", 0},
    [OM_DTYPE_F32] = {"float32", 32},
    [OM_DTYPE_U8] = {"uint8", 8},
    [OM_DTYPE_I8] = {"int8", 8},
    [OM_DTYPE_U16] = {"uint16", 16},
    [OM_DTYPE_I16] = {"int16", 16},
    [OM_DTYPE_I32] = {"int32", 32},
    [OM_DTYPE_I64] = {"int64", 64},
    [OM_DTYPE_STRING] = {"string", sizeof(om_string) * 8},
    [OM_DTYPE_BOOL] = {"bool", 8},
    [OM_DTYPE_F16] = {"float16", 16},
    [OM_DTYPE_F64] = {"float64", 64},
    [OM_DTYPE_U32] = {"uint32", 32},
    [OM_DTYPE_U64] = {"uint64", 64},
    [OM_DTYPE_C64] = {"complex64", 64},
    [OM_DTYPE_C128] = {"complex128", 128},
    [OM_DTYPE_BF16] = {"bfloat16", 16},
    [OM_DTYPE_F8E4M3FN] = {"float8_e4m3fn", 8},
    [OM_DTYPE_F8E4M3FNUZ] = {"float8_e4m3fnuz", 8},
    [OM_DTYPE_F8E5M2] = {"float8_e5m2", 8},
    [OM_DTYPE_F8E5M2FNUZ] = {"float8_e5m2fnuz", 8},
    [OM_DTYPE_U4] = {"uint4", 4},
    [OM_DTYPE_I4] = {"int4", 4},
    [OM_DTYPE_F4E2M1] = {"float4_e2m1fn", 4},
};

const char *om_dtype_name(om_dtype dtype) {
  if (dtype == OM_DTYPE_SEQUENCE) return "sequence";
  if (dtype == OM_DTYPE_OPTIONAL) return "optional";
  if (dtype == OM_DTYPE_MAP) return "map";
  return (size_t)dtype < OM_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

size_t om_dtype_bits(om_dtype dtype) {
  if (om_dtype_is_nested(dtype)) return sizeof(om_tensor) * 8;
  return (size_t)dtype < OM_DTYPE_COUNT ? dtypes[dtype].bits : 0;
}
