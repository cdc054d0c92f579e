/* tests/unit/sim_fixture.h - plans made by hand, and checked runs of them, for tests of the simulator. */
#ifndef ORR_TESTS_SIM_FIXTURE_H
#define ORR_TESTS_SIM_FIXTURE_H

#include "program/plan.h"

/* A pipeline of equal stages. Times are those of one stage (chunk). */
typedef struct {
    const char *schedule;
    int ranks, chunks, microbatches, group;
    int64_t forward_ps, input_ps, weight_ps; /* input and weight gradient */
    int64_t pair_ps;                         /* overlapped forward and backward; 0: none */
    int64_t hop_ps;                          /* a message between stages */
} Pipeline;

static inline SimWork fixture_work(SimPart part, int64_t duration_ps)
{
    SimWork work = {0};
    work.part_ps[part] = duration_ps;
    return work;
}

/* Every stage has one segment and takes one byte of activations a micro-batch. */
static inline SimPlan fixture_plan(OrrArena *arena, const Pipeline *pipeline)
{
    SimPlan plan = {.schedule = sim_schedule_find(pipeline->schedule),
                    .shape = {.ranks = pipeline->ranks,
                              .chunks = pipeline->chunks,
                              .microbatches = pipeline->microbatches,
                              .group = pipeline->group},
                    .tensor = 1,
                    .context = 1,
                    .data = 1,
                    .expert = 1};
    g_assert(plan.schedule != NULL);
    int stages = pipeline->ranks * pipeline->chunks;
    plan.stages = ORR_ARENA_NEW(arena, SimStage, stages);
    plan.ranks = ORR_ARENA_NEW(arena, SimRankPlan, pipeline->ranks);
    for (int s = 0; s < stages; s++) {
        SimStage *stage = &plan.stages[s];
        stage->segment_count = 1;
        stage->segments = ORR_ARENA_NEW(arena, SimSegment, 1);
        stage->segments[0].forward = fixture_work(SIM_PART_COMPUTE, pipeline->forward_ps);
        stage->segments[0].backward_input = fixture_work(SIM_PART_COMPUTE, pipeline->input_ps);
        stage->segments[0].backward_weight = fixture_work(SIM_PART_COMPUTE, pipeline->weight_ps);
        stage->segments[0].activation_bytes = 1;
        stage->overlapped_pair = fixture_work(SIM_PART_COMPUTE, pipeline->pair_ps);
        stage->send_next = stage->send_prev = fixture_work(SIM_PART_PIPELINE_COMM, pipeline->hop_ps);
    }
    return plan;
}

/* Builds, runs and checks; any failure ends the test. */
static inline SimResult fixture_run(const SimPlan *plan, bool unfold, OrrArena *arena,
                                    SimProgram *ret_program)
{
    GError *error = NULL;
    SimProgram program;
    SimResult result;
    sim_program_build(plan, unfold, arena, &program, &error);
    g_assert_no_error(error);
    sim_engine_run(&program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &result, &error);
    g_assert_no_error(error);
    sim_run_check(&program, &result, &error);
    g_assert_no_error(error);
    if (ret_program != NULL)
        *ret_program = program;
    return result;
}

static inline SimResult fixture_run_pipeline(const Pipeline *pipeline, OrrArena *arena)
{
    SimPlan plan = fixture_plan(arena, pipeline);
    return fixture_run(&plan, false, arena, NULL);
}

/* Longest time from a rank's first to its last compute op, less its busy time. */
static inline int64_t fixture_span_bubble_ps(const SimResult *result)
{
    int64_t bubble_ps = 0;
    for (int r = 0; r < result->ranks; r++) {
        const SimRankResult *rank = &result->rank[r];
        bubble_ps = MAX(bubble_ps, rank->last_end_ps - rank->first_start_ps - rank->busy_ps);
    }
    return bubble_ps;
}

/* One rank, one micro-batch, `count` equal segments. */
static inline SimPlan fixture_layered_plan(OrrArena *arena, int count, int64_t forward_ps,
                                           int64_t backward_ps)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 1, 1, 1, 0, 1, 1, 0, 0, 0});
    SimStage *stage = &plan.stages[0];
    stage->segment_count = count;
    stage->segments = ORR_ARENA_NEW(arena, SimSegment, count);
    for (int i = 0; i < count; i++) {
        stage->segments[i].forward = fixture_work(SIM_PART_COMPUTE, forward_ps);
        stage->segments[i].backward_input = fixture_work(SIM_PART_COMPUTE, backward_ps);
        stage->segments[i].activation_bytes = 100;
    }
    return plan;
}

static inline void fixture_set_data_comm(SimPlan *plan, int64_t gather_ps, int64_t reduce_ps)
{
    for (int s = 0; s < plan->shape.ranks * plan->shape.chunks; s++) {
        for (int i = 0; i < plan->stages[s].segment_count; i++) {
            plan->stages[s].segments[i].param_gather = fixture_work(SIM_PART_DATA_COMM, gather_ps);
            plan->stages[s].segments[i].grad_reduce = fixture_work(SIM_PART_DATA_COMM, reduce_ps);
        }
    }
}

static inline int64_t fixture_last_end_ps(const SimResult *result, SimTag tag)
{
    int64_t end_ps = -1;
    for (int64_t i = 0; i < result->span_count; i++) {
        if (result->spans[i].tag == tag)
            end_ps = MAX(end_ps, result->spans[i].end_ps);
    }
    return end_ps;
}

static inline int fixture_count_spans(const SimResult *result, SimTag tag)
{
    int count = 0;
    for (int64_t i = 0; i < result->span_count; i++)
        count += result->spans[i].tag == tag;
    return count;
}

/* A reproducible integer in [low, high]. */
static inline int64_t fixture_random(GRand *random, int64_t low, int64_t high)
{
    return g_rand_int_range(random, (gint32)low, (gint32)high + 1);
}

#endif
