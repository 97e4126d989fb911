/* Comparing tensors, and elements as numbers whatever their type. */
#include "harness/om_test_compare.h"

#include <float.h>
#include <math.h>

#include "base/om_float16.h"

bool om_dtype_is_float(om_dtype dtype) {
  return dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F64 || dtype == OM_DTYPE_F16 ||
         dtype == OM_DTYPE_BF16;
}

om_test_comparison om_test_compare(const double *actual, const double *expected, size_t count) {
  om_test_comparison result = {.specials_match = true};
  double largest = 0, largest_error = 0, along = 0, square = 0;
  for (size_t i = 0; i < count; ++i) {
    const double a = actual[i], b = expected[i];
    if (!isfinite(a) || !isfinite(b)) {
      const bool same = isnan(b) ? isnan(a) : a == b;
      if (!same && result.specials_match) {
        result.specials_match = false;
        result.special = i;
      }
      continue;
    }
    const double error = fabs(a - b);
    const double relative = error == 0 ? 0 : b == 0 ? INFINITY : error / fabs(b);
    largest = fmax(largest, fabs(b));
    along += (a - b) * b;
    square += b * b;
    if (error > largest_error) {
      largest_error = error;
      result.worst = i;
    }
    if (relative > result.elem_error) {
      result.elem_error = relative;
      result.elem_worst = i;
    }
  }
  result.scaled_error = largest > 0 ? largest_error / largest : largest_error;
  result.drift = square > 0 ? along / square : 0;
  return result;
}

double om_tensor_value(const om_tensor *tensor, size_t index) {
  const void *data = tensor->data;
  switch (tensor->dtype) {
    case OM_DTYPE_F32:
      return (double)((const float *)data)[index];
    case OM_DTYPE_F64:
      return ((const double *)data)[index];
    case OM_DTYPE_F16:
      return (double)om_f16_to_f32(((const uint16_t *)data)[index]);
    case OM_DTYPE_BF16:
      return (double)om_bf16_to_f32(((const uint16_t *)data)[index]);
    case OM_DTYPE_I8:
      return ((const int8_t *)data)[index];
    case OM_DTYPE_I16:
      return ((const int16_t *)data)[index];
    case OM_DTYPE_I32:
      return ((const int32_t *)data)[index];
    case OM_DTYPE_I64:
      return (double)((const int64_t *)data)[index];
    case OM_DTYPE_BOOL:
    case OM_DTYPE_U8:
      return ((const uint8_t *)data)[index];
    case OM_DTYPE_U16:
      return ((const uint16_t *)data)[index];
    case OM_DTYPE_U32:
      return ((const uint32_t *)data)[index];
    case OM_DTYPE_U64:
      return (double)((const uint64_t *)data)[index];
    default:
      return 0;
  }
}

/* Saturation bounds of the integer types; both are exact or the next double inside. */
static bool integer_bounds(om_dtype dtype, double *low, double *high) {
  const size_t bits = om_dtype_bits(dtype);
  switch (dtype) {
    case OM_DTYPE_BOOL:
      *low = 0, *high = 1;
      return true;
    case OM_DTYPE_I8:
    case OM_DTYPE_I16:
    case OM_DTYPE_I32:
      *low = -ldexp(1, (int)bits - 1), *high = -*low - 1;
      return true;
    case OM_DTYPE_I64:
      *low = -ldexp(1, 63), *high = nextafter(ldexp(1, 63), 0);
      return true;
    case OM_DTYPE_U8:
    case OM_DTYPE_U16:
    case OM_DTYPE_U32:
      *low = 0, *high = ldexp(1, (int)bits) - 1;
      return true;
    case OM_DTYPE_U64:
      *low = 0, *high = nextafter(ldexp(1, 64), 0);
      return true;
    default:
      return false;
  }
}

static uint16_t bf16_from_f64(double value) {
  /* Round to odd at float32 first, so that the second rounding decides alone. */
  float f = (float)value;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isfinite(f) && (double)f != value) {
    if (fabs((double)f) > fabs(value)) --bits;
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
  }
  return om_bf16_from_f32(f);
}

double om_dtype_round(om_dtype dtype, double value) {
  double low = 0, high = 0;
  if (integer_bounds(dtype, &low, &high)) {
    if (isnan(value)) return 0;
    return trunc(fmin(fmax(value, low), high));
  }
  switch (dtype) {
    case OM_DTYPE_F32:
      return (double)(float)value;
    case OM_DTYPE_F16:
      return (double)om_f16_to_f32(om_f16_from_f64(value));
    case OM_DTYPE_BF16:
      return (double)om_bf16_to_f32(bf16_from_f64(value));
    default:
      return value;
  }
}

void om_tensor_set_value(om_tensor *tensor, size_t index, double value) {
  void *data = tensor->data;
  const double v = om_dtype_round(tensor->dtype, value);
  switch (tensor->dtype) {
    case OM_DTYPE_F32:
      ((float *)data)[index] = (float)v;
      break;
    case OM_DTYPE_F64:
      ((double *)data)[index] = v;
      break;
    case OM_DTYPE_F16:
      ((uint16_t *)data)[index] = om_f16_from_f64(v);
      break;
    case OM_DTYPE_BF16:
      ((uint16_t *)data)[index] = bf16_from_f64(v);
      break;
    case OM_DTYPE_I4:
    case OM_DTYPE_U4: {
      uint8_t *byte = (uint8_t *)data + index / 2;
      const int shift = index % 2 == 0 ? 0 : 4;
      *byte = (uint8_t)((*byte & ~(15 << shift)) | ((int)v & 15) << shift);
      break;
    }
    case OM_DTYPE_I8:
      ((int8_t *)data)[index] = (int8_t)v;
      break;
    case OM_DTYPE_I16:
      ((int16_t *)data)[index] = (int16_t)v;
      break;
    case OM_DTYPE_I32:
      ((int32_t *)data)[index] = (int32_t)v;
      break;
    case OM_DTYPE_I64:
      ((int64_t *)data)[index] = (int64_t)v;
      break;
    case OM_DTYPE_BOOL:
    case OM_DTYPE_U8:
      ((uint8_t *)data)[index] = (uint8_t)v;
      break;
    case OM_DTYPE_U16:
      ((uint16_t *)data)[index] = (uint16_t)v;
      break;
    case OM_DTYPE_U32:
      ((uint32_t *)data)[index] = (uint32_t)v;
      break;
    case OM_DTYPE_U64:
      ((uint64_t *)data)[index] = (uint64_t)v;
      break;
    default:
      break;
  }
}

static bool same_element(const om_tensor *a, const om_tensor *b, size_t index) {
  if (a->dtype == OM_DTYPE_STRING) {
    const om_string x = ((const om_string *)a->data)[index];
    const om_string y = ((const om_string *)b->data)[index];
    return x.bytes == y.bytes && (x.bytes == 0 || memcmp(x.data, y.data, x.bytes) == 0);
  }
  const size_t bytes = om_dtype_bits(a->dtype) / 8;
  const uint8_t *x = (const uint8_t *)a->data + index * bytes;
  const uint8_t *y = (const uint8_t *)b->data + index * bytes;
  if (memcmp(x, y, bytes) == 0) return true;
  return om_dtype_is_float(a->dtype) && isnan(om_tensor_value(a, index)) &&
         isnan(om_tensor_value(b, index));
}

bool om_tensor_same(const om_tensor *a, const om_tensor *b, size_t *out_elem) {
  *out_elem = SIZE_MAX;
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d]) return false;
  }
  const size_t count = om_tensor_elems(a);
  if (om_dtype_bits(a->dtype) < 8) { /* packed elements: compared as bytes */
    *out_elem = 0;
    return memcmp(a->data, b->data, (count * om_dtype_bits(a->dtype) + 7) / 8) == 0;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!same_element(a, b, i)) {
      *out_elem = i;
      return false;
    }
  }
  return true;
}
