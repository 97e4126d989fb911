/* An allocator that fails once, at the allocation with a given number, and counts what lives.
 *
 *     for (size_t fail_at = 0;; ++fail_at) {
 *       om_fault fault = {.fail_at = fail_at};
 *       om_allocator allocator = om_fault_allocator(&fault);
 *       om_status st = load_plan_run(&allocator, &error);
 *       assert_int_equal(om_fault_live_blocks(&fault), 0);
 *       if (!om_fault_has_failed(&fault)) break;   // passed the last allocation: st is OM_OK
 *       assert_int_equal(st, OM_E_OUT_OF_MEMORY);
 *     }
 *
 * Each block carries its size and guard words: a free with another size, or a write past the end,
 * counts as damage.
 */
#ifndef OM_FAULT_H
#define OM_FAULT_H

#include <stdatomic.h>

#include "base/om_base.h"

#define OM_FAULT_NEVER SIZE_MAX

typedef struct om_fault {    /* shared */
  size_t fail_at;            /* number of the allocation that fails, from 0; OM_FAULT_NEVER */
  atomic_size_t allocations; /* asked for so far */
  atomic_size_t live_blocks;
  atomic_size_t live_bytes;
  atomic_size_t damaged_blocks; /* freed with a wrong size, or written outside */
} om_fault;

/* `fault` must outlive what allocates. */
om_allocator om_fault_allocator(om_fault *fault);

size_t om_fault_live_blocks(om_fault *fault);
bool om_fault_has_failed(om_fault *fault);

/* Guard words before and after a range of memory, for results in the caller's memory. */
enum { OM_GUARD_BYTES = 64 };

/* Fills the guards of a block laid out as guard, `bytes` bytes, guard, and returns the middle. */
void *om_guard_init(void *block, size_t bytes);
bool om_guard_is_intact(const void *block, size_t bytes);

#endif
