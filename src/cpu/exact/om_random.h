/* The random generator (docs/exact.md, "Random values"): Philox4x32-10 (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC11). Element i of a result is a function of the key and of
 * i alone, so that the bits do not depend on threads or devices.
 */
#ifndef OM_RANDOM_H
#define OM_RANDOM_H

#include "base/om_base.h"

typedef struct om_random_key {
  uint32_t words[2];
} om_random_key;

/* The key of a seed attribute, or of a node without one: its name. */
om_random_key om_random_key_of_seed(float seed);
om_random_key om_random_key_of_name(const char *name);

/* Uniform in [0, 1): 24 bits of word 0, or (is_wide) 53 bits of words 0 and 1. */
double om_random_uniform(om_random_key key, uint64_t index, bool is_wide);

/* Normal, mean 0 and deviation 1. */
double om_random_normal(om_random_key key, uint64_t index, bool is_wide);

#endif
