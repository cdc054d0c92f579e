/* tests/unit/sim/test_engine.c - the clockwork on programs small enough to be worked out by hand. */
#include "sim/engine.h"

#include <string.h>

/* Row of the program's ops; program_of() has one a work. */
#define OP(row)                                                                                              \
    {                                                                                                        \
        .op = (row), .microbatch = -1                                                                        \
    }
#define OP_AT(row, k)                                                                                        \
    {                                                                                                        \
        .op = (row), .microbatch = (k)                                                                       \
    }
#define WAIT(cls, stream, at)                                                                                \
    {                                                                                                        \
        .op = SIM_ONLY_WAITS, .wait_on = (cls)*SIM_MAX_STREAMS + (stream), .wait_count = (at) + 1            \
    }
#define LIST(array)                                                                                          \
    {                                                                                                        \
        .instrs = (array), .count = G_N_ELEMENTS(array)                                                      \
    }
#define WORK(part, ps)                                                                                       \
    {                                                                                                        \
        .part_ps = { [part] = (ps) }                                                                         \
    }
#define COMM(part, ps, l, d)                                                                                 \
    {                                                                                                        \
        .part_ps = {[part] = (ps)}, .shares = { {.resource = (l), .amount = (d)} }                           \
    }

/* What each rank has for itself; amounts are in 1/1024. */
enum { SMS, UP, OUT, HOST_LINK };
static const SimResource RESOURCES[] = {
    [SMS] = {.name = "SMs", .capacity = 1024},
    [UP] = {.name = "port", .capacity = 1024},
    [OUT] = {.name = "NIC", .capacity = 1024},
    [HOST_LINK] = {.name = "host link", .capacity = 1024},
};

static SimProgram program_of(const SimClass *classes, int class_count, const SimWork *works, int work_count)
{
    static const SimOp OPS[] = {{.work = 0, .mem = -1, .stage = -1},
                                {.work = 1, .mem = -1, .stage = -1},
                                {.work = 2, .mem = -1, .stage = -1},
                                {.work = 3, .mem = -1, .stage = -1},
                                {.work = 4, .mem = -1, .stage = -1}};
    g_assert_cmpint(work_count, <=, G_N_ELEMENTS(OPS));
    return (SimProgram){.classes = class_count,
                        .replicas = 1,
                        .class_list = classes,
                        .ops = OPS,
                        .op_count = work_count,
                        .works = works,
                        .work_count = work_count,
                        .resources = RESOURCES,
                        .resource_count = G_N_ELEMENTS(RESOURCES)};
}

static SimResult run_checked(const SimProgram *program, OrrArena *arena)
{
    GError *error = NULL;
    SimResult result;
    sim_engine_run(program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &result, &error);
    g_assert_no_error(error);
    sim_run_check(program, &result, &error);
    g_assert_no_error(error);
    return result;
}

/* The span of op `ordinal` of a stream. */
static SimSpan span_of(const SimResult *result, int rank, int stream, int ordinal)
{
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        if (span->rank == rank && span->stream == stream && ordinal-- == 0)
            return *span;
    }
    g_assert_not_reached();
}

static void assert_span(const SimResult *result, int rank, int stream, int ordinal, int64_t start_ps,
                        int64_t end_ps)
{
    SimSpan span = span_of(result, rank, stream, ordinal);
    g_assert_cmpint(span.start_ps, ==, start_ps);
    g_assert_cmpint(span.end_ps, ==, end_ps);
}

/* Rank 0 computes 100 and sends for 30; rank 1 computes 50, waits, computes 20. */
static void test_wait(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 100), WORK(SIM_PART_PIPELINE_COMM, 30),
                                    WORK(SIM_PART_COMPUTE, 50), WORK(SIM_PART_COMPUTE, 20)};
    static const SimInstr COMPUTE_0[] = {OP(0)}, SEND_0[] = {WAIT(-1, SIM_STREAM_COMPUTE, 0), OP(1)};
    static const SimInstr COMPUTE_1[] = {OP(2), WAIT(0, SIM_STREAM_SEND_NEXT, 1), OP(3)};
    static const SimClass CLASSES[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_0), [SIM_STREAM_SEND_NEXT] = LIST(SEND_0)}},
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_1)}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 2, WORKS, G_N_ELEMENTS(WORKS));
    SimResult result = run_checked(&program, arena);
    assert_span(&result, 0, SIM_STREAM_SEND_NEXT, 0, 100, 130);
    assert_span(&result, 1, SIM_STREAM_COMPUTE, 1, 130, 150);
    g_assert_cmpint(result.step_ps, ==, 150);
    g_assert_cmpint(result.critical_rank, ==, 1);
    g_assert_cmpint(result.ops, ==, 4);
    /* Idle while the producer computes, then exposed communication. */
    g_assert_cmpint(result.rank[1].part_ps[SIM_PART_COMPUTE], ==, 70);
    g_assert_cmpint(result.rank[1].part_ps[SIM_PART_PIPELINE_COMM], ==, 30);
    g_assert_cmpint(result.rank[1].idle_ps, ==, 50);
    g_assert_cmpint(result.rank[1].busy_ps, ==, 70);
    /* Its own send goes on after the compute stream's end: exposed too. */
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_PIPELINE_COMM], ==, 30);
    g_assert_cmpint(result.rank[0].idle_ps, ==, 20);
    orr_arena_free(arena);
}

/* A queue of reductions in front of the one waited for is exposed as well; a gap in it is idle. */
static void test_exposed_queue(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 10), WORK(SIM_PART_DATA_COMM, 25)};
    static const SimInstr COMPUTE[] = {OP(0), OP(0), WAIT(-1, SIM_STREAM_DATA, 3), OP(0)};
    static const SimInstr DATA[] = {WAIT(-1, SIM_STREAM_COMPUTE, 0), OP(1), WAIT(-1, SIM_STREAM_COMPUTE, 1),
                                    OP(1)};
    static const SimClass CLASSES[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE), [SIM_STREAM_DATA] = LIST(DATA)}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 1, WORKS, 2);
    SimResult result = run_checked(&program, arena);
    g_assert_cmpint(result.step_ps, ==, 70);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_DATA_COMM], ==, 40);
    g_assert_cmpint(result.rank[0].idle_ps, ==, 0);
    orr_arena_free(arena);
}

/* After the compute stream's end: two overlapping transfers count once, the gap before a third is idle. */
static void test_tail(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 10), WORK(SIM_PART_OFFLOAD, 40),
                                    WORK(SIM_PART_DATA_COMM, 20), WORK(SIM_PART_COMPUTE, 70),
                                    WORK(SIM_PART_PIPELINE_COMM, 5)};
    static const SimInstr COMPUTE_0[] = {OP(0)}, D2H[] = {WAIT(-1, SIM_STREAM_COMPUTE, 0), OP(1)};
    static const SimInstr DATA[] = {WAIT(-1, SIM_STREAM_COMPUTE, 0), OP(2)};
    static const SimInstr SEND[] = {WAIT(1, SIM_STREAM_COMPUTE, 0), OP(4)}, COMPUTE_1[] = {OP(3)};
    static const SimClass CLASSES[] = {{.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_0),
                                                    [SIM_STREAM_D2H] = LIST(D2H),
                                                    [SIM_STREAM_DATA] = LIST(DATA),
                                                    [SIM_STREAM_SEND_NEXT] = LIST(SEND)}},
                                       {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_1)}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 2, WORKS, G_N_ELEMENTS(WORKS));
    SimResult result = run_checked(&program, arena);
    g_assert_cmpint(result.step_ps, ==, 75);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_DATA_COMM], ==, 20);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_OFFLOAD], ==, 20);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_PIPELINE_COMM], ==, 5);
    g_assert_cmpint(result.rank[0].idle_ps, ==, 20);
    orr_arena_free(arena);
}

/* Two flows of one link: the fair level, and who needs less than it keeps its speed. */
static void test_shared_link(void)
{
    static const struct {
        int64_t long_ps, short_ps;
        uint16_t long_demand, short_demand;
        int64_t long_end_ps, short_end_ps;
    } CASES[] = {
        {100, 50, 1024, 1024, 150, 100}, /* half each until the short one is done */
        {100, 64, 1024, 256, 116, 64},   /* 3/4 for 64: 52 left */
        {100, 40, 512, 512, 100, 40},    /* both fit */
        {300, 90, 768, 768, 346, 136}, /* 512/768 rounded down to 682/1024: 90 takes 135.1; 209.4 are left */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const SimWork works[] = {COMM(SIM_PART_DATA_COMM, CASES[i].long_ps, OUT, CASES[i].long_demand),
                                 COMM(SIM_PART_PIPELINE_COMM, CASES[i].short_ps, OUT, CASES[i].short_demand)};
        static const SimInstr DATA[] = {OP(0)}, SEND[] = {OP(1)};
        static const SimClass CLASSES[] = {
            {.streams = {[SIM_STREAM_DATA] = LIST(DATA), [SIM_STREAM_SEND_NEXT] = LIST(SEND)}}};
        OrrArena *arena = orr_arena_new();
        SimProgram program = program_of(CLASSES, 1, works, 2);
        SimResult result = run_checked(&program, arena);
        assert_span(&result, 0, SIM_STREAM_SEND_NEXT, 0, 0, CASES[i].short_end_ps);
        assert_span(&result, 0, SIM_STREAM_DATA, 0, 0, CASES[i].long_end_ps);
        orr_arena_free(arena);
    }
}

/* Three flows, demands 1/8, 1/2, 1: level 7/16; different links do not meet. */
static void test_max_min(void)
{
    static const SimWork WORKS[] = {
        COMM(SIM_PART_DATA_COMM, 1000, OUT, 128),
        COMM(SIM_PART_PIPELINE_COMM, 448, OUT, 512),
        COMM(SIM_PART_PIPELINE_COMM, 448, OUT, 1024),
        COMM(SIM_PART_TENSOR_COMM, 700, UP, 1024),
    };
    static const SimInstr DATA[] = {OP(0)}, NEXT[] = {OP(1)}, PREV[] = {OP(2)}, TENSOR[] = {OP(3)};
    static const SimClass CLASSES[] = {{.streams = {[SIM_STREAM_DATA] = LIST(DATA),
                                                    [SIM_STREAM_SEND_NEXT] = LIST(NEXT),
                                                    [SIM_STREAM_SEND_PREV] = LIST(PREV),
                                                    [SIM_STREAM_REDUCE] = LIST(TENSOR)}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 1, WORKS, G_N_ELEMENTS(WORKS));
    SimResult result = run_checked(&program, arena);
    assert_span(&result, 0, SIM_STREAM_DATA, 0, 0, 1000);
    assert_span(&result, 0, SIM_STREAM_SEND_NEXT, 0, 0, 512); /* 7/8 of its speed */
    /* 448/1024 of its speed for 512: 224 done, 224 left at 896/1024. */
    assert_span(&result, 0, SIM_STREAM_SEND_PREV, 0, 0, 512 + 256);
    assert_span(&result, 0, SIM_STREAM_REDUCE, 0, 0, 700);
    orr_arena_free(arena);
}

/* Compute of 100 beside 40 of communication that takes 1/4 of the SMs, from 0 or from 10 on: 110. */
static void test_compute_beside_communication(void)
{
    for (int delay = 0; delay <= 10; delay += 10) {
        const SimWork works[] = {
            {.part_ps = {[SIM_PART_COMPUTE] = 100}, .shares = {{.resource = SMS, .amount = 1024}}},
            {.part_ps = {[SIM_PART_DATA_COMM] = 40},
             .shares = {{.resource = SMS, .amount = 256, .mode = SIM_SHARE_RESERVED}}},
            WORK(SIM_PART_OTHER, delay)};
        static const SimInstr COMPUTE[] = {OP(0)}, DATA[] = {WAIT(-1, SIM_STREAM_H2D, 0), OP(1)};
        static const SimInstr HOST[] = {OP(2)};
        static const SimClass CLASSES[] = {{.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE),
                                                        [SIM_STREAM_DATA] = LIST(DATA),
                                                        [SIM_STREAM_H2D] = LIST(HOST)}}};
        OrrArena *arena = orr_arena_new();
        SimProgram program = program_of(CLASSES, 1, works, G_N_ELEMENTS(works));
        SimResult result = run_checked(&program, arena);
        assert_span(&result, 0, SIM_STREAM_COMPUTE, 0, 0, 110);
        assert_span(&result, 0, SIM_STREAM_DATA, 0, delay, delay + 40);
        g_assert_cmpint(result.rank[0].part_ps[SIM_PART_COMPUTE], ==, 110);
        g_assert_cmpint(result.rank[0].part_ps[SIM_PART_DATA_COMM], ==, 0);
        orr_arena_free(arena);
    }
}

/* Two ranks meet when the later one arrives; the one whose link is shared slows both. */
static void test_collective(void)
{
    static const int32_t BOTH[] = {0, 0};
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 10), WORK(SIM_PART_COMPUTE, 30),
                                    COMM(SIM_PART_DATA_COMM, 40, OUT, 1024),
                                    COMM(SIM_PART_PIPELINE_COMM, 35, OUT, 1024)};
    static const SimInstr COMPUTE_0[] = {OP(0), OP(2)}, COMPUTE_1[] = {OP(1), OP(2)};
    static const SimInstr SEND_1[] = {OP(3)};
    static const SimClass CLASSES[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_0)}},
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_1), [SIM_STREAM_SEND_NEXT] = LIST(SEND_1)}}};
    static const SimOp OPS[] = {{.work = 0, .mem = -1, .stage = -1},
                                {.work = 1, .mem = -1, .stage = -1},
                                {.kind = SIM_COLLECTIVE, .work = 2, .mem = -1, .stage = -1},
                                {.work = 3, .mem = -1, .stage = -1}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 2, WORKS, G_N_ELEMENTS(WORKS));
    program.ops = OPS;
    program.op_count = G_N_ELEMENTS(OPS);
    program.groups[0] = (SimGroups){.instance_of_rank = BOTH, .instances = 1};
    program.group_count = 1;
    SimResult result = run_checked(&program, arena);
    /* From 30 at half speed until the message's last 5 are through at 40; 35 left. */
    assert_span(&result, 1, SIM_STREAM_SEND_NEXT, 0, 0, 40);
    assert_span(&result, 0, SIM_STREAM_COMPUTE, 1, 30, 75);
    assert_span(&result, 1, SIM_STREAM_COMPUTE, 1, 30, 75);
    g_assert_cmpint(result.rank[0].idle_ps, ==, 20);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_DATA_COMM], ==, 45);
    g_assert_cmpint(result.critical_rank, ==, 0);
    orr_arena_free(arena);
}

/* Given back and taken at the same instant, in any order of streams, is no peak. */
static void test_memory(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 10), WORK(SIM_PART_DATA_COMM, 10)};
    static const SimMemDelta MEMS[] = {
        {.start_bytes = {[SIM_MEM_ACTIVATIONS] = 7}, .end_bytes = {[SIM_MEM_ACTIVATIONS] = -3}},
        {.start_bytes = {[SIM_MEM_WORKSPACE] = 2}, .end_bytes = {[SIM_MEM_WORKSPACE] = -2}},
        {.end_bytes = {[SIM_MEM_ACTIVATIONS] = -8}}};
    static const SimOp OPS[] = {{.work = 0, .mem = 0, .stage = -1},
                                {.work = 1, .mem = 1, .stage = -1},
                                {.work = 1, .mem = 2, .stage = -1}};
    static const SimInstr COMPUTE[] = {OP(0), OP(0)};
    static const SimInstr DATA[] = {WAIT(-1, SIM_STREAM_COMPUTE, 0), OP(1), OP(2)};
    static const SimClass CLASSES[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE), [SIM_STREAM_DATA] = LIST(DATA)},
         .static_bytes = {[SIM_MEM_WEIGHTS] = 100}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 1, WORKS, G_N_ELEMENTS(WORKS));
    program.mems = MEMS;
    program.mem_count = G_N_ELEMENTS(MEMS);
    program.ops = OPS;
    program.op_count = G_N_ELEMENTS(OPS);
    SimResult result = run_checked(&program, arena);
    g_assert_cmpint(result.rank[0].peak_bytes, ==, 100 + 4 + 7 + 2);
    g_assert_cmpint(result.rank[0].peak_time_ps, ==, 10);
    g_assert_cmpint(result.rank[0].at_peak_bytes[SIM_MEM_ACTIVATIONS], ==, 11);
    g_assert_cmpint(result.rank[0].final_bytes[SIM_MEM_ACTIVATIONS], ==, 0);
    g_assert_cmpint(result.level_count, ==, 4); /* at 0, 10, 20, 30 */
    orr_arena_free(arena);
}

static void test_no_duration(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 0),
                                    WORK(SIM_PART_COMPUTE, 5),
                                    {.part_ps = {0}, .shares = {{.resource = HOST_LINK, .amount = 1024}}}};
    static const SimInstr COMPUTE[] = {OP(0), WAIT(-1, SIM_STREAM_H2D, 2), OP(0), OP(1), OP(0)};
    static const SimInstr H2D[] = {OP(2), OP(2), OP(2)};
    static const SimClass CLASSES[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE), [SIM_STREAM_H2D] = LIST(H2D)}}};
    OrrArena *arena = orr_arena_new();
    SimProgram program = program_of(CLASSES, 1, WORKS, G_N_ELEMENTS(WORKS));
    SimResult result = run_checked(&program, arena);
    g_assert_cmpint(result.step_ps, ==, 5);
    g_assert_cmpint(result.ops, ==, 7);
    orr_arena_free(arena);
}

static void assert_fails(const SimProgram *program, const char *const *says, int count)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    SimResult result = {.step_ps = -7};
    g_assert_false(sim_engine_run(program, 0, arena, &result, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_assert_cmpint(result.step_ps, ==, -7);
    for (int i = 0; i < count; i++) {
        if (strstr(error->message, says[i]) == NULL)
            g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, says[i]));
    }
    g_clear_error(&error);
    orr_arena_free(arena);
}

static void test_deadlock(void)
{
    static const SimWork WORKS[] = {WORK(SIM_PART_COMPUTE, 10)};
    static const SimInstr COMPUTE_0[] = {WAIT(1, SIM_STREAM_COMPUTE, 1), OP_AT(0, 2)};
    static const SimInstr COMPUTE_1[] = {WAIT(0, SIM_STREAM_COMPUTE, 1), OP_AT(1, 0)};
    static const SimClass CYCLE[] = {{.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_0)}},
                                     {.streams = {[SIM_STREAM_COMPUTE] = LIST(COMPUTE_1)}}};
    static const char *const CYCLE_SAYS[] = {
        "rank 0 compute (forward of stage 4, micro-batch 2) waits for rank 1 "
        "compute (backward of stage 3, micro-batch 0)",
        "waits for the first"};
    static const SimOp PASSES[] = {{.tag = SIM_TAG_FORWARD, .mem = -1, .stage = 4},
                                   {.tag = SIM_TAG_BACKWARD, .mem = -1, .stage = 3}};
    SimProgram program = program_of(CYCLE, 2, WORKS, 1);
    program.ops = PASSES;
    program.op_count = G_N_ELEMENTS(PASSES);
    assert_fails(&program, CYCLE_SAYS, 2);

    static const SimInstr TOO_FAR[] = {WAIT(-1, SIM_STREAM_DATA, 5), OP(0)}, SHORT[] = {OP(0)};
    static const SimClass ENDS[] = {
        {.streams = {[SIM_STREAM_COMPUTE] = LIST(TOO_FAR), [SIM_STREAM_DATA] = LIST(SHORT)}}};
    static const char *const ENDS_SAYS[] = {"rank 0 data comm (done), which never comes to it"};
    program = program_of(ENDS, 1, WORKS, 1);
    assert_fails(&program, ENDS_SAYS, 1);

    static const int32_t BOTH[] = {0, 0};
    static const SimInstr MEETS[] = {OP(1)};
    static const SimClass ALONE[] = {{.streams = {[SIM_STREAM_COMPUTE] = LIST(MEETS)}},
                                     {.streams = {[SIM_STREAM_COMPUTE] = LIST(SHORT)}}};
    static const char *const ALONE_SAYS[] = {"rank 0 compute", "a member that never joins"};
    static const SimOp MEETING[] = {{.mem = -1, .stage = -1},
                                    {.kind = SIM_COLLECTIVE, .mem = -1, .stage = -1}};
    program = program_of(ALONE, 2, WORKS, 1);
    program.ops = MEETING;
    program.op_count = G_N_ELEMENTS(MEETING);
    program.groups[0] = (SimGroups){.instance_of_rank = BOTH, .instances = 1};
    program.group_count = 1;
    assert_fails(&program, ALONE_SAYS, 2);
}

static void test_clock_limits(void)
{
    static const SimInstr ONE[] = {OP(0)};
    static const SimClass ONE_CLASS[] = {{.streams = {[SIM_STREAM_COMPUTE] = LIST(ONE)}}};
    static const char *const STEP_SAYS[] = {"the step lasts longer than the clock can hold (9223372 s)"};
    SimWork work = WORK(SIM_PART_COMPUTE, INT64_MAX);
    SimProgram program = program_of(ONE_CLASS, 1, &work, 1);
    assert_fails(&program, STEP_SAYS, 1);

    work.part_ps[SIM_PART_COMPUTE] = INT64_MAX / 1024;
    OrrArena *arena = orr_arena_new();
    g_assert_cmpint(run_checked(&program, arena).step_ps, ==, INT64_MAX / 1024);
    SimInstr *many = ORR_ARENA_NEW(arena, SimInstr, 1025);
    for (int i = 0; i < 1025; i++)
        many[i] = ONE[0];
    const SimClass many_class = {.streams = {[SIM_STREAM_COMPUTE] = {.instrs = many, .count = 1025}}};
    program = program_of(&many_class, 1, &work, 1);
    assert_fails(&program, STEP_SAYS, 1);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine/wait", test_wait);
    g_test_add_func("/engine/exposed-queue", test_exposed_queue);
    g_test_add_func("/engine/tail", test_tail);
    g_test_add_func("/engine/shared-link", test_shared_link);
    g_test_add_func("/engine/max-min", test_max_min);
    g_test_add_func("/engine/compute-beside-communication", test_compute_beside_communication);
    g_test_add_func("/engine/collective", test_collective);
    g_test_add_func("/engine/memory", test_memory);
    g_test_add_func("/engine/no-duration", test_no_duration);
    g_test_add_func("/engine/deadlock", test_deadlock);
    g_test_add_func("/engine/clock-limits", test_clock_limits);
    return g_test_run();
}
