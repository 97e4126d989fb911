/* Conversions to and from float32 of whole tensors. */
#include "ops/op_widen.h"

#include "base/om_float16.h"

bool om_widen_needed(om_dtype dtype) {
  switch (dtype) {
    case OM_DTYPE_F16:
    case OM_DTYPE_BF16:
    case OM_DTYPE_U8:
    case OM_DTYPE_I8:
    case OM_DTYPE_U16:
    case OM_DTYPE_I16:
      return true;
    default:
      return false;
  }
}

#define OM_WIDEN(type, expression)                             \
  do {                                                         \
    const type *in = tensor->data;                             \
    for (size_t i = 0; i < count; ++i) target[i] = expression; \
  } while (0)

const float *om_widen(const om_tensor *tensor, float *target) {
  const size_t count = om_tensor_elems(tensor);
  switch (tensor->dtype) {
    case OM_DTYPE_F16:
      OM_WIDEN(uint16_t, om_f16_to_f32(in[i]));
      break;
    case OM_DTYPE_BF16:
      OM_WIDEN(uint16_t, om_bf16_to_f32(in[i]));
      break;
    case OM_DTYPE_U8:
      OM_WIDEN(uint8_t, (float)in[i]);
      break;
    case OM_DTYPE_I8:
      OM_WIDEN(int8_t, (float)in[i]);
      break;
    case OM_DTYPE_U16:
      OM_WIDEN(uint16_t, (float)in[i]);
      break;
    case OM_DTYPE_I16:
      OM_WIDEN(int16_t, (float)in[i]);
      break;
    default:
      break; /* om_widen_needed said no */
  }
  return target;
}

static int32_t saturate(float value, int32_t least, int32_t greatest) {
  if (!(value > (float)least)) return value != value ? 0 : least;
  return value < (float)greatest ? (int32_t)value : greatest;
}

#define OM_NARROW(type, expression)                                 \
  do {                                                              \
    type *out = tensor->data;                                       \
    for (size_t i = 0; i < count; ++i) out[i] = (type)(expression); \
  } while (0)

void om_narrow(const float *source, const om_tensor *tensor) {
  const size_t count = om_tensor_elems(tensor);
  switch (tensor->dtype) {
    case OM_DTYPE_F16:
      OM_NARROW(uint16_t, om_f16_from_f32(source[i]));
      break;
    case OM_DTYPE_BF16:
      OM_NARROW(uint16_t, om_bf16_from_f32(source[i]));
      break;
    case OM_DTYPE_U8:
      OM_NARROW(uint8_t, saturate(source[i], 0, UINT8_MAX));
      break;
    case OM_DTYPE_I8:
      OM_NARROW(int8_t, saturate(source[i], INT8_MIN, INT8_MAX));
      break;
    case OM_DTYPE_U16:
      OM_NARROW(uint16_t, saturate(source[i], 0, UINT16_MAX));
      break;
    case OM_DTYPE_I16:
      OM_NARROW(int16_t, saturate(source[i], INT16_MIN, INT16_MAX));
      break;
    default:
      break; /* om_widen_needed said no */
  }
}
