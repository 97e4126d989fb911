/* Recurrent layers: one direction of an RNN, GRU or LSTM (docs/exact.md, "Recurrent layers").
 *
 * Everything is float32 or everything is float64. Rows of gates and states are vectors of the
 * hidden size, worked on by the kernels of ops/elementwise.def.
 */
#ifndef OM_RECURRENT_H
#define OM_RECURRENT_H

#include "base/om_base.h"

typedef enum om_recurrent_kind { OM_RNN, OM_GRU, OM_LSTM } om_recurrent_kind;

enum { OM_RECURRENT_ACTIVATIONS = 3 }; /* f, g, h */

/* A function of elementwise.def, or one of the two that ONNX has for these layers alone. */
typedef enum om_recurrent_form {
  OM_RECURRENT_PLAIN,
  OM_RECURRENT_AFFINE,      /* alpha * x + beta */
  OM_RECURRENT_SCALED_TANH, /* alpha * tanh(beta * x) */
} om_recurrent_form;

typedef struct om_recurrent_activation {
  om_recurrent_form form;
  uint8_t number; /* of elementwise.def */
  float scalars[2];
} om_recurrent_activation;

typedef enum om_recurrent_product {                      /* the three products of a direction */
                                    OM_RECURRENT_INPUTS, /* of all inputs with W */
                                    OM_RECURRENT_EARLY,  /* of the states with R's gates that need
                                                            the state alone */
                                    OM_RECURRENT_LATE,   /* of the reset states with the candidate's
                                                            part of R */
                                    OM_RECURRENT_PRODUCTS,
} om_recurrent_product;

/* One direction. Strides are elements; a row of x, of a state or of y is dense. */
typedef struct om_recurrent {
  om_recurrent_kind kind;
  om_dtype dtype; /* OM_DTYPE_F32 or OM_DTYPE_F64 */
  size_t steps, batch, input, hidden;
  size_t x_step_stride, x_batch_stride; /* in rows of `input` elements */
  size_t y_step_stride, y_batch_stride;
  size_t state_batch_stride; /* of h0, c0, last_h and last_c */
  bool is_reverse;
  bool couples;      /* input_forget: f = 1 - i */
  bool resets_after; /* linear_before_reset */
  bool clips;
  float clip;
  om_recurrent_activation activations[OM_RECURRENT_ACTIVATIONS];
  const void *x;
  const void *w;         /* [gates * hidden, input] */
  const void *r;         /* [gates * hidden, hidden] */
  const void *bias;      /* [2 * gates * hidden]; NULL: none */
  const void *peepholes; /* [3 * hidden], i o f; NULL: none */
  /* Fast mode's products, of float32: y = a times its weights, which w and r need not be there for.
   * NULL: the exact ones. */
  void (*multiply)(om_ctx *ctx, void *products, om_recurrent_product which, const void *a, void *y);
  void *products;
  const void *h0, *c0;    /* NULL: zeros */
  const int32_t *lengths; /* of each item, 0..steps; NULL: all steps */
  void *y;                /* zeros; NULL: nobody reads it */
  void *last_h, *last_c;  /* NULL: nobody reads it */
} om_recurrent;

/* 1, 3 or 4. */
size_t om_recurrent_gates(om_recurrent_kind kind);

/* Of R's rows, those of OM_RECURRENT_EARLY: the first ones. */
size_t om_recurrent_early(const om_recurrent *r);

size_t om_recurrent_scratch_bytes(const om_recurrent *r);

void om_recurrent_run(om_ctx *ctx, const om_recurrent *r, void *scratch);

#endif
