/* float16 and bfloat16 in integer arithmetic: rounding to nearest even, the same everywhere. */
#ifndef OM_FLOAT16_H
#define OM_FLOAT16_H

#include <stdint.h>

uint16_t om_f16_from_f32(float value); /* overflow gives infinity; NaN stays NaN */
float om_f16_to_f32(uint16_t bits);
uint16_t om_bf16_from_f32(float value);
float om_bf16_to_f32(uint16_t bits);
uint16_t om_f16_from_f64(double value); /* one rounding, not by way of float32 */

#endif
