/* How an operand repeats in the chain of a convolution (chain_repeat.glsl). */
#ifndef OM_CHAIN_REPEAT_H
#define OM_CHAIN_REPEAT_H

/* Set in chain_inner, beside which results have one group of chain_channels elements; else
 * chain_inner results have one element, and chain_channels of them follow each other again and
 * again. */
#define OM_CHAIN_GROUPS 0x80000000u

#endif
