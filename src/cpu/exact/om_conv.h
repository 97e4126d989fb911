/* Exact convolutions on plain pointers (docs/exact.md, "Convolution").
 *
 * Conv and ConvTranspose are one computation, a pass: along each axis the result's element
 * out_first + j * out_step, j in 0..count-1, is the sum over taps t of the input's element
 * j * in_step + tap_first + t * tap_step times the weight kernel_first + t * kernel_step. Input
 * elements outside the tensor count as 0. A Conv is one pass; a ConvTranspose is one for each
 * combination of remainders of the result's position by the stride, each with the taps that can
 * hit an input element there.
 */
#ifndef OM_CONV_H
#define OM_CONV_H

#include "base/om_base.h"

enum { OM_CONV_AXES = 3 };

typedef struct om_conv_axis {
  int64_t in;     /* extent of the input */
  int64_t out;    /* extent of the result */
  int64_t kernel; /* extent of the weights */
  int64_t count;  /* results of this pass */
  int64_t in_step;
  int64_t out_first;
  int64_t out_step;
  int64_t taps;      /* may be 0: the results are 0 */
  int64_t tap_first; /* may be negative */
  int64_t tap_step;  /* may be negative */
  int64_t kernel_first;
  int64_t kernel_step;
} om_conv_axis;

typedef struct om_conv_pass {
  int64_t batch;
  int64_t groups;
  int64_t in_channels;  /* of one group */
  int64_t out_channels; /* of one group */
  om_conv_axis axes[OM_CONV_AXES];
} om_conv_pass;

/* Terms of one result's sum: in_channels * taps. */
int64_t om_conv_terms(const om_conv_pass *pass);

/* One axis of a Conv. */
om_conv_axis om_conv_axis_forward(
    int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad);

/* One axis of a ConvTranspose for results at out_first, out_first + stride, ... */
om_conv_axis om_conv_axis_transposed(int64_t in,
                                     int64_t out,
                                     int64_t kernel,
                                     int64_t stride,
                                     int64_t dilation,
                                     int64_t pad,
                                     int64_t out_first);

/* Bytes of scratch for om_conv_run with elements of 4 or 8 bytes: of this pass and, where it is a
 * ConvTranspose's first one, of the others. */
size_t om_conv_scratch_bytes(const om_conv_pass *pass, size_t elem_bytes);

/* y = the pass over x with weights w, plus bias (may be NULL) as one addition afterwards.
 * x: [batch, groups * in_channels, in...]; y: [batch, groups * out_channels, out...], of which the
 * pass writes its own elements; w: [groups * out_channels, in_channels * taps], in the order of
 * the sum. Bits do not depend on the number of threads. */
void om_conv_run_f32(om_ctx *ctx,
                     const om_conv_pass *pass,
                     const float *x,
                     const float *w,
                     const float *bias,
                     float *y,
                     void *scratch);
void om_conv_run_f64(om_ctx *ctx,
                     const om_conv_pass *pass,
                     const double *x,
                     const double *w,
                     const double *bias,
                     double *y,
                     void *scratch);

#endif
