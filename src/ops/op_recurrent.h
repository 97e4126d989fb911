/* The parameters of RNN, GRU and LSTM. */
#ifndef OP_RECURRENT_H
#define OP_RECURRENT_H

#include "cpu/exact/om_recurrent.h"
#include "ops/om_rule.h"

typedef struct om_recurrent_params {
  om_recurrent_kind kind;
  uint32_t direction_count;
  bool is_reverse;     /* the only direction; of two the second is */
  bool is_batch_first; /* layout 1 */
  bool couples;        /* input_forget */
  bool resets_after;   /* linear_before_reset */
  bool clips;
  float clip;
  int64_t hidden_size; /* 0: as the weights say */
  om_recurrent_activation activations[2][OM_RECURRENT_ACTIVATIONS];
} om_recurrent_params;

enum { /* inputs */
       OM_RECURRENT_X,
       OM_RECURRENT_W,
       OM_RECURRENT_R,
       OM_RECURRENT_B,
       OM_RECURRENT_LENGTHS,
       OM_RECURRENT_H0,
       OM_RECURRENT_C0,
       OM_RECURRENT_P,
};

#endif
