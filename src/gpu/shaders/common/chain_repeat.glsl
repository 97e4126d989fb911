// A convolution's chain: the kernel knows its channel, so VECTOR operands need no division. Operands
// that repeat in another way are BROADCAST, and the chain's inner and channels are theirs:
//
//     [1,C,H,W], [1,1,H,W] ...   (element / inner) mod channels
//     [N,1,H,W] ...              groups: element / inner * channels + element mod channels
#ifndef OM_CHAIN_REPEAT_GLSL
#define OM_CHAIN_REPEAT_GLSL

#include "common/chain.glsl"
#include "abi/chain_repeat.h"

uint chain_repeat_element(uint element) {
  uint inner = P.chain_inner;
  uint first = 0u;
  if ((inner & OM_CHAIN_GROUPS) != 0u) {
    first = element / (inner - OM_CHAIN_GROUPS) * P.chain_channels;
    inner = 1u;
  }
  return first + element / inner % P.chain_channels;
}

float chain_apply_conv(float value, uint element, uint channel) {
  return chain_apply_broadcast(value, element, chain_repeat_element(element), channel);
}

#endif
