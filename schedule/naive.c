/* schedule/naive.c - model parallelism without a pipeline: one micro-batch in flight. Rank r runs
 * F0 B0 F1 B1 ...: the forward of a micro-batch starts at stage 0 once its predecessor's backward is back. */
#include "schedule/schedules.h"

void sim_schedule_naive(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    (void)rank;
    *ret_order = sim_order_new(arena, 2 * (int64_t)shape->microbatches);
    for (int k = 0; k < shape->microbatches; k++) {
        sim_order_add(ret_order, SIM_PASS_FORWARD, 0, k);
        sim_order_add(ret_order, SIM_PASS_BACKWARD, 0, k);
    }
}
