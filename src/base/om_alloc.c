/* Memory: the only file that may call the C library's allocator.
 *
 * A block is preceded by 64 bytes that hold its size, because the allocator's free wants it back:
 *
 *     [size, unused ... 64 bytes][the caller's memory, aligned to 64]
 *
 * The counts of om_memory_use include those 64 bytes.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/om_base.h"

enum { HEADER_BYTES = 64, FIRST_CAPACITY = 8 };

static void *default_alloc(void *user, size_t bytes) {
  (void)user;
  if (bytes > SIZE_MAX - HEADER_BYTES) return NULL;
  return aligned_alloc(HEADER_BYTES, om_size_align(bytes, HEADER_BYTES));
}

static void default_free(void *user, void *ptr, size_t bytes) {
  (void)user;
  (void)bytes;
  free(ptr);
}

om_status om_ctx_use_allocator(om_ctx *ctx, const om_allocator *given) {
  if (!given) return OM_OK;
  if (!given->alloc || !given->free) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The allocator lacks alloc or free.");
  }
  ctx->allocator = *given;
  return OM_OK;
}

om_allocator om_default_allocator(void) {
  return (om_allocator){.alloc = default_alloc, .free = default_free, .user = NULL};
}

static void raise_peak(om_memory_use *use, uint64_t live) {
  uint64_t peak = __atomic_load_n(&use->peak_bytes, __ATOMIC_RELAXED);
  while (live > peak &&
         !__atomic_compare_exchange_n(
             &use->peak_bytes, &peak, live, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* False, and nothing is counted, where that would be more than the limit. */
static bool count_alloc(om_memory_use *use, size_t bytes) {
  if (!use) return true;
  uint64_t live = __atomic_add_fetch(&use->live_bytes, bytes, __ATOMIC_RELAXED);
  if (use->limit_bytes > 0 && (live > use->limit_bytes || live < bytes)) {
    __atomic_fetch_sub(&use->live_bytes, bytes, __ATOMIC_RELAXED);
    return false;
  }
  __atomic_fetch_add(&use->allocations, 1, __ATOMIC_RELAXED);
  raise_peak(use, live);
  return true;
}

void om_memory_use_add(om_memory_use *use, const om_memory_use *more) {
  if (!use) return;
  __atomic_fetch_add(&use->allocations, more->allocations, __ATOMIC_RELAXED);
  raise_peak(use, __atomic_add_fetch(&use->live_bytes, more->live_bytes, __ATOMIC_RELAXED));
}

static void count_free(om_memory_use *use, size_t bytes) {
  if (use) __atomic_fetch_sub(&use->live_bytes, bytes, __ATOMIC_RELAXED);
}

void *om_new_bytes(om_ctx *ctx, size_t count, size_t elem_bytes) {
  size_t bytes = 0;
  size_t total = 0;
  if (!om_size_mul(count, elem_bytes, &bytes) || !om_size_add(bytes, HEADER_BYTES, &total)) {
    OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu elements of %zu bytes are too many.", count, elem_bytes);
    return NULL;
  }
  if (!count_alloc(ctx->use, total)) {
    OM_FAIL(ctx,
            OM_E_OUT_OF_MEMORY,
            "%zu bytes more would be above the limit of %" PRIu64 " bytes (max_bytes).",
            total,
            ctx->use->limit_bytes);
    return NULL;
  }
  unsigned char *block = ctx->allocator.alloc(ctx->allocator.user, total);
  if (!block) {
    count_free(ctx->use, total);
    OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "There is no memory for %zu bytes.", total);
    return NULL;
  }
  memset(block, 0, total);
  memcpy(block, &total, sizeof total);
  return block + HEADER_BYTES;
}

void om_delete(om_ctx *ctx, void *ptr) {
  if (!ptr) return;
  unsigned char *block = (unsigned char *)ptr - HEADER_BYTES;
  size_t total = 0;
  memcpy(&total, block, sizeof total);
  count_free(ctx->use, total);
  ctx->allocator.free(ctx->allocator.user, block, total);
}

om_status om_resize_bytes(
    om_ctx *ctx, void **ptr, size_t old_count, size_t count, size_t elem_bytes) {
  void *grown = om_new_bytes(ctx, count, elem_bytes);
  if (!grown) return OM_E_OUT_OF_MEMORY;
  size_t kept = old_count < count ? old_count : count;
  if (*ptr && kept > 0) memcpy(grown, *ptr, kept * elem_bytes);
  om_delete(ctx, *ptr);
  *ptr = grown;
  return OM_OK;
}

om_status om_grow(om_ctx *ctx, void **array, size_t count, size_t *capacity, size_t elem_bytes) {
  if (count < *capacity) return OM_OK;
  size_t wanted = FIRST_CAPACITY;
  if (*capacity > 0 && !om_size_mul(*capacity, 2, &wanted)) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "An array of %zu elements cannot grow.", *capacity);
  }
  OM_TRY(om_resize_bytes(ctx, array, count, wanted, elem_bytes));
  *capacity = wanted;
  return OM_OK;
}
