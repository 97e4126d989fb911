#include "values.h"

#include <math.h>
#include <string.h>

#include "base/om_float16.h"

bool value_is_integer(om_dtype dtype) {
  switch (dtype) {
    case OM_DTYPE_U8:
    case OM_DTYPE_I8:
    case OM_DTYPE_U16:
    case OM_DTYPE_I16:
    case OM_DTYPE_I32:
    case OM_DTYPE_I64:
    case OM_DTYPE_BOOL:
    case OM_DTYPE_U32:
    case OM_DTYPE_U64:
      return true;
    default:
      return false;
  }
}

int64_t value_as_integer(const om_tensor *t, size_t index) {
  const void *data = t->data;
  switch (t->dtype) {
    case OM_DTYPE_U8:
    case OM_DTYPE_BOOL:
      return ((const uint8_t *)data)[index];
    case OM_DTYPE_I8:
      return ((const int8_t *)data)[index];
    case OM_DTYPE_U16:
      return ((const uint16_t *)data)[index];
    case OM_DTYPE_I16:
      return ((const int16_t *)data)[index];
    case OM_DTYPE_I32:
      return ((const int32_t *)data)[index];
    case OM_DTYPE_U32:
      return ((const uint32_t *)data)[index];
    case OM_DTYPE_I64:
    case OM_DTYPE_U64:
      return ((const int64_t *)data)[index];
    default:
      return 0;
  }
}

double value_as_double(const om_tensor *t, size_t index) {
  const void *data = t->data;
  switch (t->dtype) {
    case OM_DTYPE_F32:
      return (double)((const float *)data)[index];
    case OM_DTYPE_F64:
      return ((const double *)data)[index];
    case OM_DTYPE_F16:
      return (double)om_f16_to_f32(((const uint16_t *)data)[index]);
    case OM_DTYPE_BF16:
      return (double)om_bf16_to_f32(((const uint16_t *)data)[index]);
    default:
      return value_is_integer(t->dtype) ? (double)value_as_integer(t, index) : (double)NAN;
  }
}
