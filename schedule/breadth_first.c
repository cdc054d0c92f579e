/* schedule/breadth_first.c - looped breadth-first: all micro-batches of a chunk before the next chunk,
 * so that sharded weights are gathered once a chunk and pass.
 *
 *   m >= p: T = (m v + p - 1)(F + A)/v;  live chunks m v
 * Source: [LamyPoirier2022]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

void sim_schedule_breadth_first(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    (void)rank;
    *ret_order = sim_order_new(arena, 2 * (int64_t)shape->microbatches * shape->chunks);
    for (int chunk = 0; chunk < shape->chunks; chunk++) {
        for (int k = 0; k < shape->microbatches; k++)
            sim_order_add(ret_order, SIM_PASS_FORWARD, chunk, k);
    }
    for (int chunk = shape->chunks - 1; chunk >= 0; chunk--) {
        for (int k = 0; k < shape->microbatches; k++)
            sim_order_add(ret_order, SIM_PASS_BACKWARD, chunk, k);
    }
}
