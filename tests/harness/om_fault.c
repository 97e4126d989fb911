/* The failing allocator and the guard words. A block is laid out as
 *
 *     [size, 56 unused] [guard 64] [the caller's bytes] [guard 64]
 *
 * so that the caller's part is aligned to 64. */
#include "harness/om_fault.h"

#include <stdlib.h>

enum { HEAD_BYTES = 64, GUARD_VALUE = 0xa5 };

void *om_guard_init(void *block, size_t bytes) {
  uint8_t *base = block;
  memset(base, GUARD_VALUE, OM_GUARD_BYTES);
  memset(base + OM_GUARD_BYTES + bytes, GUARD_VALUE, OM_GUARD_BYTES);
  return base + OM_GUARD_BYTES;
}

bool om_guard_is_intact(const void *block, size_t bytes) {
  const uint8_t *before = block;
  const uint8_t *after = before + OM_GUARD_BYTES + bytes;
  for (size_t i = 0; i < OM_GUARD_BYTES; ++i) {
    if (before[i] != GUARD_VALUE || after[i] != GUARD_VALUE) return false;
  }
  return true;
}

static void *fault_alloc(void *user, size_t bytes) {
  om_fault *fault = user;
  size_t total = 0;
  if (atomic_fetch_add(&fault->allocations, 1) == fault->fail_at) return NULL;
  if (!om_size_add(bytes, HEAD_BYTES + 2 * OM_GUARD_BYTES + 63, &total)) return NULL;
  uint8_t *block = aligned_alloc(64, total / 64 * 64);
  if (!block) return NULL;
  memcpy(block, &bytes, sizeof bytes);
  uint8_t *ptr = om_guard_init(block + HEAD_BYTES, bytes);
  /* Whoever relies on zeroed memory must have asked for it. */
  memset(ptr, 0xcd, bytes);
  atomic_fetch_add(&fault->live_blocks, 1);
  atomic_fetch_add(&fault->live_bytes, bytes);
  return ptr;
}

static void fault_free(void *user, void *ptr, size_t bytes) {
  om_fault *fault = user;
  uint8_t *block = (uint8_t *)ptr - OM_GUARD_BYTES - HEAD_BYTES;
  size_t real_bytes = 0;
  memcpy(&real_bytes, block, sizeof real_bytes);
  if (real_bytes != bytes || !om_guard_is_intact(block + HEAD_BYTES, real_bytes)) {
    atomic_fetch_add(&fault->damaged_blocks, 1);
  }
  atomic_fetch_sub(&fault->live_blocks, 1);
  atomic_fetch_sub(&fault->live_bytes, real_bytes);
  free(block);
}

om_allocator om_fault_allocator(om_fault *fault) {
  return (om_allocator){.alloc = fault_alloc, .free = fault_free, .user = fault};
}

size_t om_fault_live_blocks(om_fault *fault) {
  return atomic_load(&fault->live_blocks);
}

bool om_fault_has_failed(om_fault *fault) {
  return fault->fail_at != OM_FAULT_NEVER && atomic_load(&fault->allocations) > fault->fail_at;
}
