#include "cpu/exact/om_random.h"

#include "cpu/exact/om_real.h"

typedef struct block {
  uint32_t words[4];
} block;

om_random_key om_random_key_of_seed(float seed) {
  return (om_random_key){{om_bits(seed), 0}};
}

/* FNV-1a, 64 bits, by bytes; the upper word is odd, as no seed's is. */
om_random_key om_random_key_of_name(const char *name) {
  uint64_t hash = 14695981039346656037u;
  for (const char *p = name; *p; ++p) hash = (hash ^ (uint8_t)*p) * 1099511628211u;
  return (om_random_key){{(uint32_t)hash, (uint32_t)(hash >> 32) | 1u}};
}

/* The generator's words for an element. */
static block block_at(om_random_key key, uint64_t index) {
  block b = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * b.words[0];
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * b.words[2];
    b = (block){{(uint32_t)(p1 >> 32) ^ b.words[1] ^ key.words[0],
                 (uint32_t)p1,
                 (uint32_t)(p0 >> 32) ^ b.words[3] ^ key.words[1],
                 (uint32_t)p0}};
    key.words[0] += 0x9E3779B9u;
    key.words[1] += 0xBB67AE85u;
  }
  return b;
}

static double fraction(uint32_t high, uint32_t low, bool is_wide) {
  if (!is_wide) return (double)(high >> 8) * 0x1p-24;
  return ((double)(high >> 5) * 67108864.0 + (double)(low >> 6)) * 0x1p-53;
}

double om_random_uniform(om_random_key key, uint64_t index, bool is_wide) {
  const block b = block_at(key, index);
  return fraction(b.words[0], b.words[1], is_wide);
}

double om_random_normal(om_random_key key, uint64_t index, bool is_wide) {
  const block b = block_at(key, index);
  const om_real real = {is_wide};
  const double u = 1.0 - fraction(b.words[0], b.words[1], is_wide); /* above 0 */
  const double v = fraction(b.words[2], b.words[3], is_wide);
  const double radius = om_real_sqrt(real, -2.0 * om_real_ln(real, u));
  const double angle = om_real_round(real, om_real_round(real, 6.28318530717958647693) * v);
  return om_real_round(real, radius * om_real_cos(real, angle));
}
