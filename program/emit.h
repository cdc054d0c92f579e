/* program/emit.h - instructions onto the lists of a rank. */
#ifndef ORR_PROGRAM_EMIT_H
#define ORR_PROGRAM_EMIT_H

#include "program/builder.h"

void sim_grow_list(RankBuilder *rb, SimStream stream);
/* An op takes the wait before it upon itself unless it has one of its own: nobody waits for a wait. */
static inline int32_t sim_emit(RankBuilder *rb, SimStream stream, const SimInstr *instr)
{
    InstrList *list = &rb->lists[stream];
    const bool waits = instr->op == SIM_ONLY_WAITS;
    if (!waits && instr->wait_count == 0 && list->count > 0 &&
        list->instrs[list->count - 1].op == SIM_ONLY_WAITS) {
        list->instrs[list->count - 1].op = instr->op;
        list->instrs[list->count - 1].microbatch = instr->microbatch;
    } else {
        if (list->count == list->capacity)
            sim_grow_list(rb, stream);
        list->instrs[list->count++] = *instr;
    }
    if (stream == SIM_STREAM_COMPUTE && !waits)
        rb->last_compute = list->count - 1;
    return list->count - 1;
}
static inline int32_t sim_emit_row(RankBuilder *rb, SimStream stream, int32_t op, int32_t microbatch)
{
    return sim_emit(rb, stream, &(SimInstr){.op = op, .microbatch = microbatch});
}
int32_t sim_intern_op(Builder *builder, const SimOp *op); /* program_works.c */
static inline int32_t sim_emit_op(RankBuilder *rb, SimStream stream, const SimOp *op, int32_t microbatch)
{
    return sim_emit_row(rb, stream, sim_intern_op(rb->builder, op), microbatch);
}
/* `stream` goes on once the point is passed. */
static inline int32_t sim_emit_wait_for(RankBuilder *rb, SimStream stream, const Point *point)
{
    return sim_emit(rb, stream,
                    &(SimInstr){.op = SIM_ONLY_WAITS,
                                .wait_on = point->wait_on,
                                .wait_count = point->index + 1,
                                .microbatch = SIM_NONE});
}
/* `stream` goes on once `on` of the same rank has completed instruction `index`. */
void sim_emit_wait(RankBuilder *rb, SimStream stream, SimStream on, int32_t index);
bool sim_makes_weight_gradient(SimPass pass);
static inline SimStream sim_send_stream(Direction direction)
{
    return direction == ALONG_MODEL ? SIM_STREAM_SEND_NEXT : SIM_STREAM_SEND_PREV;
}
SimStream sim_reduce_stream(const SimPlan *plan);

#endif
