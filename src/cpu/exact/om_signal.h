/* Discrete Fourier transforms, and the functions that they, windows and the mel scale are made of
 * (docs/exact.md, "Signals").
 */
#ifndef OM_SIGNAL_H
#define OM_SIGNAL_H

#include "base/om_base.h"

/* cos and sin of 2 pi part / whole; part < whole. */
typedef struct om_turn {
  double cosine, sine;
} om_turn;
om_turn om_signal_turn(size_t part, size_t whole);

double om_signal_ln(double x);  /* x >= 1 */
double om_signal_exp(double x); /* 0 <= x < 700 */

/* Rows of samples to rows of bins. Steps are samples (of `parts` numbers) and bins (of 2). */
typedef struct om_dft {
  size_t length, bins;
  size_t samples; /* that are there; 0 follows up to `length` */
  size_t parts;   /* 1: real, 2: complex */
  bool is_inverse;
  size_t outer, inner; /* rows */
  size_t in_outer_step, in_inner_step, sample_step;
  size_t out_outer_step, out_inner_step, bin_step;
} om_dft;

/* Doubles that a run needs. */
size_t om_dft_scratch_elems(const om_dft *dft);

/* window: `length` factors of the samples; NULL: none. */
void om_dft_run(om_ctx *ctx,
                const om_dft *dft,
                const double *in,
                const double *window,
                double *out,
                double *scratch);

#endif
