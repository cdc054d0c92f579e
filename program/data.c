/* program/data.c - the end of the step: last reductions, embedding and norm reductions, optimizer, gathers behind it,
 * overhead. */
#include "program/emit.h"
#include "program/works.h"

static void emit_late_reduces(RankBuilder *rb)
{
    const SimPlan *plan = rb->builder->plan;
    const bool reduced = plan->overlap_grad_reduce || plan->reduce_each_microbatch;
    if (reduced && !plan->offload.gradients_at_step)
        return;
    for (int c = rb->graded_count - 1; c >= 0; c--) {
        Chunk *chunk = rb->last_graded[c];
        for (int segment = chunk->stage->segment_count - 1; segment >= 0; segment--) {
            if (!reduced)
                sim_emit_reduce(rb, chunk, segment, SIM_NONE);
            sim_update_gradient(rb, chunk, segment, chunk->last_grad, SIM_NONE);
        }
    }
}

static void emit_late_gathers(RankBuilder *rb)
{
    const SimPlan *plan = rb->builder->plan;
    if (plan->zero == 3 || plan->overlap_param_gather ||
        (plan->offload.on && plan->offload.update == SIM_UPDATE_FIRST))
        return;
    int32_t before = rb->last_compute;
    int32_t last = SIM_NONE;
    for (int c = 0; c < rb->builder->chunks; c++) {
        Chunk *chunk = &rb->chunks[c];
        for (int i = 0; i < chunk->stage->segment_count; i++) {
            const SimWork *gather = &chunk->stage->segments[i].param_gather;
            if (sim_work_duration_ps(gather) == 0)
                continue;
            sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_COMPUTE, before);
            if (chunk->weight_in[i] != SIM_NONE)
                sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_H2D, chunk->weight_in[i]);
            last = sim_emit_comm(rb, SIM_STREAM_DATA, SIM_TAG_PARAM_GATHER, GROUP_GATHER, gather, SIM_NONE,
                                 chunk->stage_index, SIM_NONE);
        }
    }
    if (last != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_DATA, last);
}

void sim_emit_once(RankBuilder *rb, SimTag tag, const SimWork *work)
{
    if (sim_work_duration_ps(work) == 0)
        return;
    sim_emit_op(rb, SIM_STREAM_COMPUTE,
                &(SimOp){.kind = SIM_OP,
                         .tag = (uint8_t)tag,
                         .work = sim_intern_work(rb->builder, SIM_STREAM_COMPUTE, work),
                         .mem = SIM_NONE,
                         .stage = SIM_NONE},
                SIM_NONE);
}

/* `stream` goes on once the rank before, if any, has sent its part of the norm. */
static void emit_norm_wait(RankBuilder *rb, SimStream stream)
{
    if (rb->rank > 0)
        sim_emit_wait_for(rb, stream, &rb->builder->norm);
}

/* Adds this rank's norm to that of the ranks before it and passes the sum on. */
static void emit_norm_chain(RankBuilder *rb)
{
    const SimPlan *plan = rb->builder->plan;
    Point *norm = &rb->builder->norm;
    if (sim_work_duration_ps(&plan->stage_norm) > 0)
        sim_emit_comm(rb, SIM_STREAM_COMPUTE, SIM_TAG_GRAD_NORM, GROUP_STAGE, &plan->stage_norm, SIM_NONE,
                      SIM_NONE, SIM_NONE);
    int32_t own = rb->last_compute;
    emit_norm_wait(rb, SIM_STREAM_COMPUTE);
    if (rb->rank + 1 == rb->builder->ranks)
        return;
    sim_emit_wait(rb, SIM_STREAM_SEND_NEXT, SIM_STREAM_COMPUTE, own);
    emit_norm_wait(rb, SIM_STREAM_SEND_NEXT);
    norm->index =
        sim_emit_op(rb, SIM_STREAM_SEND_NEXT,
                    &(SimOp){.kind = SIM_OP,
                             .tag = SIM_TAG_GRAD_NORM,
                             .work = sim_intern_work(rb->builder, SIM_STREAM_SEND_NEXT, &plan->norm_hop),
                             .mem = SIM_NONE,
                             .stage = SIM_NONE},
                    SIM_NONE);
    norm->wait_on = sim_wait_on(rb->rank, SIM_STREAM_SEND_NEXT);
}

void sim_emit_step_end(RankBuilder *rb)
{
    const SimPlan *plan = rb->builder->plan;
    const SimRankPlan *rank = &plan->ranks[rb->rank];
    sim_emit_deferred_head(rb);
    sim_emit_once(rb, SIM_TAG_OVERHEAD, &rank->end);
    emit_late_reduces(rb);
    if (rb->reduced[1] != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, sim_reduce_stream(plan), rb->reduced[1]);
    sim_update_gradients_gone(rb);
    if (sim_work_duration_ps(&rank->embedding_reduce) > 0)
        sim_emit_comm(rb, SIM_STREAM_COMPUTE, SIM_TAG_EMBEDDING_REDUCE, GROUP_EMBEDDING,
                      &rank->embedding_reduce, SIM_NONE, SIM_NONE, SIM_NONE);
    if (rb->builder->post_validation)
        emit_norm_chain(rb);
    else if (sim_work_duration_ps(&plan->grad_norm) > 0)
        sim_emit_comm(rb, SIM_STREAM_COMPUTE, SIM_TAG_GRAD_NORM, GROUP_WORLD, &plan->grad_norm, SIM_NONE,
                      SIM_NONE, SIM_NONE);
    sim_update_barrier(rb);
    sim_emit_once(rb, SIM_TAG_OPTIMIZER, &rank->optimizer);
    sim_update_end(rb);
    emit_late_gathers(rb);
    sim_emit_once(rb, SIM_TAG_OVERHEAD, &plan->overhead);
}
