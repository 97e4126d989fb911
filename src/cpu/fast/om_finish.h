/* What follows a sum, in vectors: the factor, the residual, the activation. For om_tile.c, whose
 * functions it becomes part of, so that each has its own width of vectors. */
#ifndef OM_FINISH_H
#define OM_FINISH_H

#include "cpu/exact/om_exact_math.h"
#include "cpu/fast/om_fast.h"

#define OM_EACH(y, expression)                 \
  for (size_t om_i = 0; om_i < cols; ++om_i) { \
    const float x = y[om_i];                   \
    y[om_i] = (expression);                    \
  }                                            \
  break

static inline __attribute__((always_inline)) void om_activate_row(const om_fast_epilogue *e,
                                                                  size_t cols,
                                                                  float *restrict y) {
  const float a = e->alpha;
  const float b = e->beta;
  switch (e->activation) {
    case OM_FAST_NONE:
      break;
    case OM_FAST_RELU:
      OM_EACH(y, x < 0.0f ? 0.0f : x);
    case OM_FAST_LEAKY_RELU:
      OM_EACH(y, x < 0.0f ? x * a : x);
    case OM_FAST_CLIP:
      for (size_t i = 0; i < cols; ++i) y[i] = y[i] < a ? a : y[i];
      OM_EACH(y, x > b ? b : x);
    case OM_FAST_SIGMOID:
      OM_EACH(y, om_sigmoid(x));
    case OM_FAST_TANH:
      OM_EACH(y, om_tanh(x));
    case OM_FAST_GELU:
      OM_EACH(y, 0.5f * x * (1.0f + om_erf(x * 0.70710678f)));
    case OM_FAST_HARD_SWISH:
      for (size_t i = 0; i < cols; ++i) {
        const float x = y[i];
        float gate = a * x + b;
        gate = gate < 0.0f ? 0.0f : gate;
        y[i] = x * (gate > 1.0f ? 1.0f : gate);
      }
      break;
    case OM_FAST_HARD_SIGMOID:
      for (size_t i = 0; i < cols; ++i) {
        float gate = a * y[i] + b;
        gate = gate < 0.0f ? 0.0f : gate;
        y[i] = gate > 1.0f ? 1.0f : gate;
      }
      break;
  }
}

/* The activation is none, or cuts off: Relu, Clip. */
static inline bool om_epilogue_clamps(const om_fast_epilogue *e) {
  return e->activation == OM_FAST_NONE || e->activation == OM_FAST_RELU ||
         e->activation == OM_FAST_CLIP;
}

/* y = activation(scale * y + residual) */
static inline __attribute__((always_inline)) void om_finish_row(const om_fast_epilogue *e,
                                                                const float *residual,
                                                                int64_t residual_step,
                                                                size_t cols,
                                                                float *restrict y) {
  if (e->scale != 1.0f) {
    for (size_t i = 0; i < cols; ++i) y[i] *= e->scale;
  }
  if (e->has_residual && residual_step != 0) {
    for (size_t i = 0; i < cols; ++i) y[i] += residual[i];
  } else if (e->has_residual) {
    const float one = *residual;
    for (size_t i = 0; i < cols; ++i) y[i] += one;
  }
  om_activate_row(e, cols, y);
}

#undef OM_EACH

#endif
