/* tests/unit/sim/test_check.c - sim_run_check() must notice when a recorded run is bent. */
#include "tests/unit/sim_fixture.h"

#include <string.h>

static SimPlan make_plan(OrrArena *arena)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 3, 1, 4, 0, 10, 12, 8, 0, 3});
    for (int s = 0; s < 3; s++) {
        plan.stages[s].segments[0].grad_reduce = fixture_work(SIM_PART_DATA_COMM, 9);
        plan.stages[s].send_next.scale_out_bytes = 5;
    }
    plan.grad_norm = fixture_work(SIM_PART_DATA_COMM, 2);
    plan.data = 2;
    return plan;
}

static SimSpan *find(SimResult *result, int rank, int stream, SimTag tag)
{
    for (int64_t i = 0; i < result->span_count; i++) {
        SimSpan *span = &result->spans[i];
        if (span->rank == rank && span->stream == stream && span->tag == tag)
            return span;
    }
    g_assert_not_reached();
}

static void end_early(SimResult *r)
{
    find(r, 1, SIM_STREAM_SEND_NEXT, SIM_TAG_SEND_FORWARD)->end_ps--;
}
static void end_late(SimResult *r)
{
    r->spans[r->span_count - 1].end_ps++;
}
static void start_early(SimResult *r)
{
    find(r, 2, SIM_STREAM_COMPUTE, SIM_TAG_FORWARD)->start_ps--;
}
static void start_late(SimResult *r)
{
    find(r, 2, SIM_STREAM_COMPUTE, SIM_TAG_FORWARD)->start_ps++;
}
static void other_tag(SimResult *r)
{
    find(r, 0, SIM_STREAM_COMPUTE, SIM_TAG_BACKWARD)->tag = SIM_TAG_FORWARD;
}
static void other_rank(SimResult *r)
{
    find(r, 0, SIM_STREAM_COMPUTE, SIM_TAG_BACKWARD)->rank = 1;
}
static void no_rank(SimResult *r)
{
    find(r, 0, SIM_STREAM_COMPUTE, SIM_TAG_BACKWARD)->rank = 99;
}
static void out_of_step(SimResult *r)
{
    find(r, 3, SIM_STREAM_COMPUTE, SIM_TAG_GRAD_NORM)->start_ps--;
}
static void lost_op(SimResult *r)
{
    r->span_count--;
}
static void ops_counted(SimResult *r)
{
    r->ops++;
}
static void swapped_spans(SimResult *r)
{
    SimSpan first = r->spans[0], *last = &r->spans[r->span_count - 1];
    r->spans[0] = *last;
    *last = first;
}
static void idle_time(SimResult *r)
{
    r->rank[1].idle_ps++;
}
static void idle_for_part(SimResult *r)
{
    r->rank[1].idle_ps++;
    r->rank[1].part_ps[SIM_PART_COMPUTE]--;
}
static void busy_time(SimResult *r)
{
    r->rank[0].busy_ps--;
}
static void step_time(SimResult *r)
{
    r->step_ps++;
}
static void start_time(SimResult *r)
{
    r->rank[1].start_ps++;
}
static void last_end(SimResult *r)
{
    r->end_ps++;
}
static void end_time(SimResult *r)
{
    r->rank[2].end_ps--;
}
static void first_start(SimResult *r)
{
    r->rank[2].first_start_ps++;
}
static void critical(SimResult *r)
{
    r->critical_rank = 1;
}
static void sent_bytes(SimResult *r)
{
    r->rank[0].scale_out_bytes--;
}
static void peak(SimResult *r)
{
    r->rank[0].peak_bytes++;
}
static void peak_parts(SimResult *r)
{
    r->rank[0].at_peak_bytes[SIM_MEM_WEIGHTS]++;
}
static void final_memory(SimResult *r)
{
    r->rank[0].final_bytes[SIM_MEM_ACTIVATIONS]++;
}
static void level(SimResult *r)
{
    r->levels[3].bytes[SIM_MEM_ACTIVATIONS]++;
}
static void level_time(SimResult *r)
{
    r->levels[r->level_count - 1].time_ps++;
}
static void lost_level(SimResult *r)
{
    r->level_count--;
}

static void test_bent(void)
{
    static const struct {
        const char *name;
        void (*bend)(SimResult *result);
        const char *says;
    } CASES[] = {
        {"end-early", end_early, "ends out of order"},
        {"end-late", end_late, "not in step with its group"},
        {"start-early", start_early, "before what it depends on"},
        {"start-late", start_late, "although it could"},
        {"other-tag", other_tag, "out of order"},
        {"other-rank", other_rank, "stream 0 runs"},
        {"no-rank", no_rank, "no rank"},
        {"out-of-step", out_of_step, "not in step with its group"},
        {"lost-op", lost_op, "fewer ops"},
        {"ops-counted", ops_counted, "ops counted"},
        {"swapped-spans", swapped_spans, "out of order"},
        {"idle-time", idle_time, "a step of (ps)"},
        {"idle-for-part", idle_for_part, "less of part 0"},
        {"busy-time", busy_time, "busy time"},
        {"step-time", step_time, "a step of (ps)"},
        {"start-time", start_time, "a start at (ps)"},
        {"last-end", last_end, "the last op ends at"},
        {"end-time", end_time, "an end at (ps)"},
        {"first-start", first_start, "a first start at (ps)"},
        {"critical", critical, "the step takes"},
        {"sent-bytes", sent_bytes, "bytes sent outside"},
        {"peak", peak, "a peak of (bytes)"},
        {"peak-parts", peak_parts, "a peak made of (bytes)"},
        {"final-memory", final_memory, "it began with"},
        {"level", level, "its level says"},
        {"level-time", level_time, "has no memory level"},
        {"lost-level", lost_level, "has no memory level"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SimProgram program;
        SimPlan plan = make_plan(arena);
        SimResult result = fixture_run(&plan, true, arena, &program);
        CASES[i].bend(&result);
        g_assert_false(sim_run_check(&program, &result, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INTERNAL);
        if (strstr(error->message, CASES[i].says) == NULL)
            g_test_message("%s: %s", CASES[i].name, error->message);
        g_assert_nonnull(strstr(error->message, CASES[i].says));
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

/* Memory that a step keeps is an error of the program, not of the run: the check finds it. */
static void test_leak(void)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    SimProgram program;
    SimResult result;
    SimPlan plan = make_plan(arena);
    g_assert_true(sim_program_build(&plan, false, arena, &program, NULL));
    SimMemDelta *mems = ORR_ARENA_NEW(arena, SimMemDelta, program.mem_count);
    memcpy(mems, program.mems, sizeof(SimMemDelta) * (size_t)program.mem_count);
    mems[0].start_bytes[SIM_MEM_WORKSPACE] += 1;
    program.mems = mems;
    g_assert_true(sim_engine_run(&program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &result, NULL));
    g_assert_false(sim_run_check(&program, &result, &error));
    g_assert_nonnull(strstr(error->message, "it began with 0"));
    g_clear_error(&error);
    orr_arena_free(arena);
}

/* The same run against works that are longer or shorter than what ran. */
static void test_length(void)
{
    for (int change = -1; change <= 1; change += 2) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SimProgram program;
        SimPlan plan = make_plan(arena);
        SimResult result = fixture_run(&plan, false, arena, &program);
        SimWork *works = ORR_ARENA_NEW(arena, SimWork, program.work_count);
        memcpy(works, program.works, sizeof(SimWork) * (size_t)program.work_count);
        const int32_t first = program.class_list[0].streams[SIM_STREAM_COMPUTE].instrs[0].op;
        works[program.ops[first].work].part_ps[SIM_PART_COMPUTE] += change;
        program.works = works;
        g_assert_false(sim_run_check(&program, &result, &error));
        g_assert_nonnull(strstr(error->message, change < 0 ? "of 9 ps lasts 10 ps" : "of 11 ps lasts 10 ps"));
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/bent", test_bent);
    g_test_add_func("/check/leak", test_leak);
    g_test_add_func("/check/length", test_length);
    return g_test_run();
}
