/* schedule/1f1b.c - PipeDream-flush, Megatron-LM's pipeline without interleaving.
 *
 * Rank r: w = min(p - 1 - r, m) forwards, then a forward and a backward in turn, then w backwards.
 *
 *   T = (m + p - 1)(F + A);  live micro-batches at most min(m, p - r)
 * Source: [Narayanan2021]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

void sim_schedule_1f1b(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    int m = shape->microbatches;
    int warmup = MIN(shape->ranks - 1 - rank, m);
    *ret_order = sim_order_new(arena, 2 * (int64_t)m);
    for (int k = 0; k < warmup; k++)
        sim_order_add(ret_order, SIM_PASS_FORWARD, 0, k);
    for (int k = 0; k < m - warmup; k++) {
        sim_order_add(ret_order, SIM_PASS_FORWARD, 0, warmup + k);
        sim_order_add(ret_order, SIM_PASS_BACKWARD, 0, k);
    }
    for (int k = m - warmup; k < m; k++)
        sim_order_add(ret_order, SIM_PASS_BACKWARD, 0, k);
}
