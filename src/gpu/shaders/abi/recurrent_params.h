/* Parameters of all steps of a recurrent layer. Rows are steps of items, in the order in which x has
 * them; the other strides are elements of y and of the states. */
#ifndef OM_RECURRENT_PARAMS_H
#define OM_RECURRENT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(recurrent_steps)
OM_UINT(groups) /* directions * batch */
OM_UINT(directions)
OM_UINT(steps)
OM_UINT(batch)
OM_UINT(hidden)
OM_UINT(row_step) /* rows from a step to the next */
OM_UINT(row_batch)
OM_UINT(y_step)
OM_UINT(y_batch)
OM_UINT(state_batch)
OM_UINT(direction) /* of y and of the states */
OM_FLOAT(clip)
OM_FLOAT(alpha_0) /* of the activations: three for each direction */
OM_FLOAT(alpha_1)
OM_FLOAT(alpha_2)
OM_FLOAT(alpha_3)
OM_FLOAT(alpha_4)
OM_FLOAT(alpha_5)
OM_FLOAT(beta_0)
OM_FLOAT(beta_1)
OM_FLOAT(beta_2)
OM_FLOAT(beta_3)
OM_FLOAT(beta_4)
OM_FLOAT(beta_5)
OM_PARAMS_END(recurrent_steps)

/* Bits of the steps' second constant. */
#define OM_RECURRENT_HAS_BIAS      1u
#define OM_RECURRENT_HAS_PEEPHOLES 2u
#define OM_RECURRENT_COUPLES       4u   /* f = 1 - i */
#define OM_RECURRENT_RESETS_AFTER  8u   /* the reset gate behind the product */
#define OM_RECURRENT_CLIPS         16u
#define OM_RECURRENT_HAS_H         32u
#define OM_RECURRENT_HAS_C         64u
#define OM_RECURRENT_IS_REVERSE    128u /* the first direction; a second one always is */
#define OM_RECURRENT_HAS_LENGTHS   256u
#define OM_RECURRENT_WRITES_Y      512u
#define OM_RECURRENT_WRITES_H      1024u
#define OM_RECURRENT_WRITES_C      2048u

/* The activations' functions, four bits each in the steps' third constant. */
#define OM_ACTIVATION_SIGMOID          0u
#define OM_ACTIVATION_TANH             1u
#define OM_ACTIVATION_RELU             2u
#define OM_ACTIVATION_SOFTSIGN         3u
#define OM_ACTIVATION_SOFTPLUS         4u
#define OM_ACTIVATION_LEAKY_RELU       5u
#define OM_ACTIVATION_THRESHOLDED_RELU 6u
#define OM_ACTIVATION_ELU              7u
#define OM_ACTIVATION_HARD_SIGMOID     8u
#define OM_ACTIVATION_AFFINE           9u
#define OM_ACTIVATION_SCALED_TANH      10u

#endif
