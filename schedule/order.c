/* schedule/order.c - a rank's order of passes, as the generators append to it. */
#include "schedule/schedules.h"

SimOrder sim_order_new(OrrArena *arena, int64_t capacity)
{
    return (SimOrder){.ops = ORR_ARENA_NEW(arena, SimPassOp, capacity), .count = 0};
}

void sim_order_add_pair(SimOrder *order, int chunk, int microbatch, int chunk2, int microbatch2)
{
    order->ops[order->count++] = (SimPassOp){.pass = SIM_PASS_FORWARD_BACKWARD,
                                             .chunk = (int16_t)chunk,
                                             .microbatch = microbatch,
                                             .chunk2 = (int16_t)chunk2,
                                             .microbatch2 = microbatch2};
}
