/* program/reduce.c - collectives of data-parallel ranks: when gradients are reduced, and when parameters are gathered
 * outside ZeRO-3. */
#include "program/emit.h"
#include "program/works.h"

int32_t sim_emit_comm(RankBuilder *rb, SimStream stream, SimTag tag, Group group, const SimWork *work,
                      int32_t mem, int stage, int32_t microbatch)
{
    const SimPlan *plan = rb->builder->plan;
    bool alone = (group == GROUP_GATHER || group == GROUP_REDUCE) && plan->data * plan->context == 1;
    return sim_emit_op(rb, stream,
                       &(SimOp){.kind = alone ? SIM_OP : SIM_COLLECTIVE,
                                .tag = (uint8_t)tag,
                                .group = (uint8_t)group,
                                .work = sim_intern_work(rb->builder, stream, work),
                                .mem = mem,
                                .stage = stage},
                       microbatch);
}

bool sim_reduces_after(const RankBuilder *rb, const Chunk *chunk, const Pass *pass)
{
    const SimPlan *plan = rb->builder->plan;
    if (!chunk->reduces || !sim_makes_weight_gradient(pass->pass))
        return false;
    return plan->reduce_each_microbatch || (plan->overlap_grad_reduce && pass->position == chunk->last_grad);
}

static void give_back_gradient(Chunk *chunk, int i, SimMemDelta *mem)
{
    if (chunk->grad_alive[i])
        mem->end_bytes[SIM_MEM_GRADIENTS] -= chunk->stage->segments[i].unsharded_grad_bytes;
    chunk->grad_alive[i] = false;
}

void sim_emit_reduce(RankBuilder *rb, Chunk *chunk, int i, int32_t microbatch)
{
    const SimPlan *plan = rb->builder->plan;
    const SimSegment *segment = &chunk->stage->segments[i];
    if (sim_work_duration_ps(&segment->grad_reduce) == 0)
        return;
    SimStream stream = sim_reduce_stream(plan);
    SimMemDelta mem = {0};
    give_back_gradient(chunk, i, &mem);
    if (segment->root)
        give_back_gradient(chunk, chunk->stage->segment_count - 1, &mem);
    sim_emit_wait(rb, stream, SIM_STREAM_COMPUTE, rb->last_compute);
    int32_t index = sim_emit_comm(rb, stream, SIM_TAG_GRAD_REDUCE, GROUP_REDUCE, &segment->grad_reduce,
                                  sim_intern_mem(rb->builder, &mem), chunk->stage_index, microbatch);
    if (plan->reduction_holds_queue || (!plan->overlap_grad_reduce && plan->reduce_each_microbatch))
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, stream, index);
    if (!plan->whole_chunks || rb->reduced_stage != chunk->stage_index)
        rb->reduced[0] = rb->reduced[1];
    rb->reduced[1] = index;
    rb->reduced_stage = chunk->stage_index;
}

static void emit_gathers(RankBuilder *rb, Chunk *chunk)
{
    for (int i = 0; i < chunk->stage->segment_count; i++) {
        const SimWork *gather = &chunk->stage->segments[i].param_gather;
        if (sim_work_duration_ps(gather) == 0)
            continue;
        if (chunk->weight_in[i] != SIM_NONE)
            sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_H2D, chunk->weight_in[i]);
        chunk->start_gather[i] = sim_emit_comm(rb, SIM_STREAM_DATA, SIM_TAG_PARAM_GATHER, GROUP_GATHER,
                                               gather, SIM_NONE, chunk->stage_index, SIM_NONE);
    }
}

/* The parameters that the previous step's optimizer left sharded, in the order of their first use. */
void sim_emit_start_gathers(RankBuilder *rb)
{
    if (rb->builder->plan->gathers_on_use)
        return;
    for (int c = 0; c < rb->used_count; c++) {
        if (rb->first_used[c]->gathered_at_start)
            emit_gathers(rb, rb->first_used[c]);
    }
}

/* An op of no duration marks when the chunk's input is there: nobody waits for a wait. */
void sim_emit_gathers_on_use(RankBuilder *rb, Chunk *chunk, int64_t position)
{
    if (!rb->builder->plan->gathers_on_use || !chunk->gathered_at_start || position != chunk->first_forward)
        return;
    const SimWork nothing = {0};
    const int32_t reached =
        sim_emit_op(rb, SIM_STREAM_COMPUTE,
                    &(SimOp){.kind = SIM_OP,
                             .tag = SIM_TAG_PARAM_GATHER,
                             .work = sim_intern_work(rb->builder, SIM_STREAM_COMPUTE, &nothing),
                             .mem = SIM_NONE,
                             .stage = chunk->stage_index},
                    SIM_NONE);
    sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_COMPUTE, reached);
    emit_gathers(rb, chunk);
}
