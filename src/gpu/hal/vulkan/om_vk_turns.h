/* Launches that order themselves: where nothing but kernels that take turns (om_hal_turn) is
 * between one barrier and the next, the next is not recorded. The launches behind it wait on the
 * device until those before it are done, and are ready by then.
 *
 * Launches between two orders are a group, with a counter of its own, in a line of memory of its
 * own, so that those who wait for different groups do not meet. Each workgroup adds 1 to its
 * group's, when it is done; those of the next group wait for that many. So all of a group waits
 * for all of the group before, and that for the one before it: what a barrier promises, a turn
 * does.
 *
 * This stands and falls with one thing: a device hands out the workgroups of a queue's launches in
 * their order, so that those who wait never keep those they wait for out of the cores. An NVIDIA
 * H200 (driver 580, 2026-11-30) did in 450,000 launches of 1 to 4000 workgroups with 0 to 227 KiB
 * of shared memory, with a second process beside it too; tests/conformance/test_hal_ptx.c tries it.
 * A wait is bounded all the same: past it the device is lost (sm90.h).
 *
 * Pure: knows no device.
 */
#ifndef OM_VK_TURNS_H
#define OM_VK_TURNS_H

#include "gpu/hal/om_hal.h"

enum { OM_VK_TURN_BYTES = 128 }; /* a line: what the second-level cache has */

typedef struct om_vk_turns {
  uint64_t counters;      /* address of a line for each launch; 0: every order is a barrier */
  uint32_t line;          /* of the group that is being recorded */
  uint32_t count;         /* its workgroups that will add to it */
  uint32_t awaited_count; /* what its launches wait for in the line before; 0: nothing */
  bool is_wanted;         /* an order is wanted before what comes next */
  bool has_others;        /* since the last barrier something was recorded that does not count */
} om_vk_turns;

/* A recording's, behind the command that clears its counters. */
static inline om_vk_turns om_vk_turns_begin(uint64_t counters) {
  return (om_vk_turns){.counters = counters, .has_others = true};
}

/* What is recorded next is to find all before done. */
void om_vk_turns_order(om_vk_turns *turns);

/* Before each command: true if a barrier is to be recorded first. `groups`: the workgroups of a
 * launch that takes turns; 0: the command is none. */
bool om_vk_turns_next(om_vk_turns *turns, uint32_t groups, om_hal_turn *out_turn);

#endif
