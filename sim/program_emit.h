/* sim/program_emit.h - instructions onto the lists of a rank. */
#ifndef ORR_SIM_PROGRAM_EMIT_H
#define ORR_SIM_PROGRAM_EMIT_H

#include "sim/program_builder.h"

/* An op or a collective takes the wait before it upon itself: nobody waits for a wait. */
void sim_grow_list(RankBuilder *rb, SimStream stream);
static inline int32_t sim_emit(RankBuilder *rb, SimStream stream, const SimInstr *instr)
{
    InstrList *list = &rb->lists[stream];
    const bool behind_wait = list->ends_with_wait && instr->kind != SIM_WAIT && instr->wait_count == 0;
    if (!behind_wait && list->count == list->capacity)
        sim_grow_list(rb, stream);
    SimInstr *at = &list->instrs[behind_wait ? list->count - 1 : list->count++];
    if (!behind_wait) {
        at->wait_stream = instr->wait_stream;
        at->wait_class = instr->wait_class;
        at->wait_count = instr->wait_count;
    }
    at->kind = instr->kind;
    at->tag = instr->tag;
    at->group = instr->group;
    at->work = instr->work;
    at->mem = instr->mem;
    at->stage = instr->stage;
    at->microbatch = instr->microbatch;
    list->ends_with_wait = instr->kind == SIM_WAIT;
    if (stream == SIM_STREAM_COMPUTE && instr->kind != SIM_WAIT)
        rb->last_compute = list->count - 1;
    return list->count - 1;
}
static inline void sim_set_wait(SimInstr *instr, const Point *point)
{
    instr->wait_stream = point->stream;
    instr->wait_class = point->rank;
    instr->wait_count = point->index + 1;
}
static inline SimInstr sim_wait_for(const Point *point)
{
    SimInstr wait = {.kind = SIM_WAIT, .stage = SIM_NONE, .microbatch = SIM_NONE};
    sim_set_wait(&wait, point);
    return wait;
}
/* `stream` goes on once `on` of the same rank has completed instruction `index`. */
void sim_emit_wait(RankBuilder *rb, SimStream stream, SimStream on, int32_t index);
bool sim_makes_weight_gradient(SimPass pass);
SimStream sim_reduce_stream(const SimPlan *plan);

#endif
