/* schedule/gpipe.c - all forwards, then all backwards, both in ascending order of micro-batches.
 *
 *   T = (m + p - 1)(F + A)     A = B + W     Source: [Huang2019]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

void sim_schedule_gpipe(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    (void)rank;
    *ret_order = sim_order_new(arena, 2 * (int64_t)shape->microbatches);
    for (int k = 0; k < shape->microbatches; k++)
        sim_order_add(ret_order, SIM_PASS_FORWARD, 0, k);
    for (int k = 0; k < shape->microbatches; k++)
        sim_order_add(ret_order, SIM_PASS_BACKWARD, 0, k);
}
