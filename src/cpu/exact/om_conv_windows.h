/* Convolutions of bytes whose channels stand alone (depthwise), where the processor gathers bytes
 * by a list of places (AVX-512 VBMI): the taps of 16 results come from x as it lies, four at a
 * time, padding included, so that small planes cost no copies.
 */
#ifndef OM_CONV_WINDOWS_H
#define OM_CONV_WINDOWS_H

#include "cpu/exact/om_conv_bytes.h"

/* Whether the processor and the pass are of that kind; weights without zero points and a result of
 * bytes are, too. */
bool om_conv_windows_fit(const om_conv_pass *pass);

/* Bytes of scratch, aligned to 64, for `slot_count` pieces of parallel work. */
size_t om_conv_windows_scratch(const om_conv_pass *pass, size_t slot_count);

typedef struct om_conv_windows {
  const om_conv_bytes *c;
  const uint32_t *adds; /* to the sums of each channel, whose x has the sign that w has not */
  const float *limits;  /* of each channel, from which on results are doubtful; c->floats NULL: not
                           read */
  size_t slot_count;
} om_conv_windows;

void om_conv_windows_run(om_ctx *ctx, const om_conv_windows *w, void *scratch);

#endif
