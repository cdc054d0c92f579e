/* program/measured.c - see measured.h. Tested: unit/step/test_measured.c */
#include "program/measured.h"

#include <math.h>

#include "program/emit.h"
#include "program/works.h"

/* Where `at_ps` of `whole_ps` comes to lie. */
static int64_t moved(int64_t at_ps, int64_t whole_ps, int64_t target_ps)
{
    return at_ps >= whole_ps ? target_ps : llround((double)at_ps * ((double)target_ps / (double)whole_ps));
}

void sim_work_stretch(SimWork *work, int64_t before_ps, int64_t whole_ps, int64_t target_ps)
{
    if (whole_ps == target_ps)
        return;
    if (whole_ps == 0) {
        sim_work_spend(work, SIM_PART_COMPUTE, target_ps);
        return;
    }
    int64_t at_ps = before_ps, from_ps = moved(at_ps, whole_ps, target_ps);
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        at_ps += work->part_ps[part];
        const int64_t to_ps = moved(at_ps, whole_ps, target_ps);
        work->part_ps[part] = to_ps - from_ps;
        from_ps = to_ps;
    }
}

static int64_t duration(const SimSegment *segment, SimPass pass)
{
    const SimWork work = sim_segment_work(segment, pass);
    return sim_work_duration_ps(&work);
}

static int64_t whole(const SimStage *stage, SimPass pass)
{
    int64_t sum_ps = 0;
    for (int i = 0; i < stage->segment_count; i++)
        sum_ps = sim_sum(sum_ps, duration(&stage->segments[i], pass));
    return sum_ps;
}

int64_t sim_measured_before(const Chunk *chunk, const Pass *pass, int i)
{
    const SimStage *stage = chunk->stage;
    int64_t sum_ps = 0;
    const bool forward = pass->pass == SIM_PASS_FORWARD;
    for (int k = forward ? 0 : stage->segment_count - 1; k != i; k += forward ? 1 : -1)
        sum_ps = sim_sum(sum_ps, duration(&stage->segments[k], pass->pass));
    return sum_ps;
}

void sim_measured_pass(const Builder *builder, const Chunk *chunk, const Pass *pass, int64_t before_ps,
                       SimWork *work)
{
    const SimMeasured *measured = builder->plan->measured;
    const bool forward = pass->pass == SIM_PASS_FORWARD;
    const int64_t *table = measured == NULL ? NULL : forward ? measured->forward_ps : measured->backward_ps;
    if (table == NULL || pass->pass == SIM_PASS_FORWARD_BACKWARD)
        return;
    const int64_t target_ps = table[(int64_t)chunk->stage_index * builder->microbatches + pass->microbatch];
    if (target_ps < 0)
        return;
    if (pass->pass == SIM_PASS_BACKWARD_WEIGHT) /* behind the gradients of inputs of the whole stage */
        before_ps = sim_sum(before_ps, whole(chunk->stage, SIM_PASS_BACKWARD_INPUT));
    sim_work_stretch(work, before_ps, whole(chunk->stage, forward ? SIM_PASS_FORWARD : SIM_PASS_BACKWARD),
                     target_ps);
}

int32_t sim_measured_send(RankBuilder *rb, const Chunk *chunk, Direction direction, int32_t microbatch)
{
    const Builder *b = rb->builder;
    const SimMeasured *measured = b->plan->measured;
    const bool along = direction == ALONG_MODEL;
    const int64_t *table = measured == NULL ? NULL : along ? measured->send_next_ps : measured->send_prev_ps;
    const int64_t target_ps =
        table == NULL ? -1 : table[(int64_t)chunk->stage_index * b->microbatches + microbatch];
    if (target_ps < 0)
        return chunk->send_op[direction];
    SimWork work = along ? chunk->stage->send_next : chunk->stage->send_prev;
    sim_work_stretch(&work, 0, sim_work_duration_ps(&work), target_ps);
    return sim_intern_op(rb->builder,
                         &(SimOp){.kind = SIM_OP,
                                  .tag = along ? SIM_TAG_SEND_FORWARD : SIM_TAG_SEND_BACKWARD,
                                  .work = sim_intern_work(rb->builder, sim_send_stream(direction), &work),
                                  .mem = SIM_NONE,
                                  .stage = chunk->stage_index});
}
