/* schedule/zb_auto_plain.c - zb-auto where no times and no memory are known: equal times, and the memory of 1F1B. With them:
 * zb_auto.c. Tested: golden/test_schedules.c */
#include "schedule/schedules.h"

void sim_schedule_zb_auto(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    OrrArena *scratch = orr_arena_new();
    SimScheduleCosts costs = {.stages = ORR_ARENA_NEW(scratch, SimStageCosts, shape->ranks),
                              .limit_bytes = ORR_ARENA_NEW(scratch, int64_t, shape->ranks)};
    SimOrder *orders = NULL;
    for (int r = 0; r < shape->ranks; r++) {
        costs.stages[r] = (SimStageCosts){
            .forward_ps = 1, .input_ps = 1, .weight_ps = 1, .taken_bytes = 1, .late_bytes = 1};
        costs.limit_bytes[r] = shape->ranks;
    }
    sim_schedule_zb_auto_all(shape, &costs, 1, scratch, &orders);
    *ret_order = sim_order_new(arena, orders[rank].count);
    ret_order->count = orders[rank].count;
    for (int64_t i = 0; i < ret_order->count; i++)
        ret_order->ops[i] = orders[rank].ops[i];
    orr_arena_free(scratch);
}
