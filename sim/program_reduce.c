/* sim/program_reduce.c - collectives of data-parallel ranks, and when gradients are reduced. */
#include "sim/program_emit.h"
#include "sim/program_works.h"

int32_t sim_emit_comm(RankBuilder *rb, SimStream stream, SimTag tag, Group group, const SimWork *work,
                      int32_t mem, int stage, int32_t microbatch)
{
    const SimPlan *plan = rb->builder->plan;
    bool alone = (group == GROUP_GATHER || group == GROUP_REDUCE) && plan->data * plan->context == 1;
    return sim_emit(rb, stream,
                    &(SimInstr){.kind = alone ? SIM_OP : SIM_COLLECTIVE,
                                .tag = (uint8_t)tag,
                                .group = (uint8_t)group,
                                .work = sim_intern_work(rb->builder, stream, work),
                                .mem = mem,
                                .stage = stage,
                                .microbatch = microbatch});
}

bool sim_reduces_after(const RankBuilder *rb, const Chunk *chunk, const Pass *pass)
{
    const SimPlan *plan = rb->builder->plan;
    if (!chunk->reduces || !sim_makes_weight_gradient(pass->pass))
        return false;
    return plan->reduce_each_microbatch || (plan->overlap_grad_reduce && pass->position == chunk->last_grad);
}

void sim_emit_reduce(RankBuilder *rb, Chunk *chunk, int i, int32_t microbatch)
{
    const SimPlan *plan = rb->builder->plan;
    const SimSegment *segment = &chunk->stage->segments[i];
    if (sim_work_duration_ps(&segment->grad_reduce) == 0)
        return;
    SimStream stream = sim_reduce_stream(plan);
    SimMemDelta mem = {0};
    if (chunk->grad_alive[i])
        mem.end_bytes[SIM_MEM_GRADIENTS] -= segment->unsharded_grad_bytes;
    chunk->grad_alive[i] = false;
    sim_emit_wait(rb, stream, SIM_STREAM_COMPUTE, rb->last_compute);
    int32_t index = sim_emit_comm(rb, stream, SIM_TAG_GRAD_REDUCE, GROUP_REDUCE, &segment->grad_reduce,
                                  sim_intern_mem(rb->builder, &mem), chunk->stage_index, microbatch);
    if (!plan->overlap_grad_reduce && plan->reduce_each_microbatch)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, stream, index);
    if (!plan->whole_chunks || rb->reduced_stage != chunk->stage_index)
        rb->reduced[0] = rb->reduced[1];
    rb->reduced[1] = index;
    rb->reduced_stage = chunk->stage_index;
}
