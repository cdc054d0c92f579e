/* program/emit.c - instructions onto the lists of a rank. */
#include "program/emit.h"

/* At first what passes in one piece need: an op each on the compute stream, as many on both streams of messages
 * together. */
void sim_grow_list(RankBuilder *rb, SimStream stream)
{
    InstrList *list = &rb->lists[stream];
    const int64_t passes = rb->order->count;
    const int64_t first = (stream == SIM_STREAM_COMPUTE ? passes : passes / 2) + 16;
    const int64_t capacity = list->capacity == 0 ? first : 2 * (int64_t)list->capacity;
    g_assert(capacity <= INT32_MAX);
    SimInstr *instrs = orr_arena_alloc(rb->builder->arena, sizeof(SimInstr) * (size_t)capacity);
    if (list->count > 0)
        memcpy(instrs, list->instrs, sizeof(SimInstr) * (size_t)list->count);
    list->instrs = instrs;
    list->capacity = (int32_t)capacity;
}

void sim_emit_wait(RankBuilder *rb, SimStream stream, SimStream on, int32_t index)
{
    g_assert(index >= 0 && stream != on);
    if (index <= rb->waited[stream][on])
        return;
    rb->waited[stream][on] = index;
    sim_emit_wait_for(rb, stream, &(Point){.index = index, .wait_on = sim_wait_on(SIM_NONE, (int)on)});
}

bool sim_makes_weight_gradient(SimPass pass)
{
    return pass == SIM_PASS_BACKWARD || pass == SIM_PASS_BACKWARD_WEIGHT;
}

SimStream sim_reduce_stream(const SimPlan *plan)
{
    return plan->zero == 3 && !plan->one_data_stream ? SIM_STREAM_REDUCE : SIM_STREAM_DATA;
}
