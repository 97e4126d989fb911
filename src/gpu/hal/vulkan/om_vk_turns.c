/* Turns; the header has the idea. */
#include "gpu/hal/vulkan/om_vk_turns.h"

void om_vk_turns_order(om_vk_turns *turns) {
  turns->is_wanted = true;
}

static void begin_group(om_vk_turns *turns, uint32_t awaited_count) {
  turns->line += turns->count > 0;
  turns->count = 0;
  turns->awaited_count = awaited_count;
}

bool om_vk_turns_next(om_vk_turns *turns, uint32_t groups, om_hal_turn *out_turn) {
  const bool may_turn = groups > 0 && turns->counters != 0;
  /* A command that cannot wait, beside launches that do, would not find done what they wait for. */
  bool takes_barrier = turns->is_wanted || (!may_turn && turns->awaited_count > 0);
  if (turns->is_wanted && may_turn && !turns->has_others && turns->count > 0) {
    takes_barrier = false;
    begin_group(turns, turns->count);
  }
  if (takes_barrier) {
    begin_group(turns, 0);
    turns->has_others = false;
  }
  turns->is_wanted = false;
  *out_turn = (om_hal_turn){0};
  if (!may_turn || turns->has_others) {
    turns->has_others = true; /* the next order is a barrier: none need count */
    return takes_barrier;
  }
  out_turn->own = turns->counters + (uint64_t)turns->line * OM_VK_TURN_BYTES;
  if (turns->awaited_count > 0) out_turn->awaited = out_turn->own - OM_VK_TURN_BYTES;
  out_turn->awaited_count = turns->awaited_count;
  turns->count += groups;
  return takes_barrier;
}
