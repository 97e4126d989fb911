/* Conv between DequantizeLinear and QuantizeLinear, with the bits of those three, by integers.
 *
 * Products of floats round, and so do their sums: by no more than can be told before. Where the
 * integer sums, scaled, are further than that from the middle of two whole numbers, floats round to
 * the same byte. Where they are not, which is seldom, the floats themselves are added in the order
 * of docs/exact.md ("Products").
 */
#ifndef OM_CONV_DOUBT_H
#define OM_CONV_DOUBT_H

#include "cpu/exact/om_conv_bytes.h"

/* For each of `terms` terms, how many roundings its product goes through at most, until it is part
 * of the quotient. */
void om_doubt_list_roundings(size_t terms, int16_t *roundings);

/* The distance from the nearest whole number from which on a scaled sum of a channel is doubtful;
 * c->floats is there. */
float om_doubt_limit(const om_conv_bytes *c,
                     size_t channel,
                     size_t terms,
                     const int16_t *roundings);

enum { OM_DOUBT_FLOATS = 512 }; /* of scratch */

/* The byte that floats round to; x: the bytes that the terms of the channel's weights meet. */
uint8_t om_doubt_settle(
    const om_conv_bytes *c, size_t channel, size_t terms, const uint8_t *x, float *scratch);

#endif
