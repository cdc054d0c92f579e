/* tests/bench/bench_engine.c - how many ops the engine completes a second, and in how much memory.
 *
 * Folded: 16 pipeline ranks, interleaved, many micro-batches. Unfolded: every rank on its own, with tensor
 * groups that meet at each pass and data groups at the end. Contended: gradient messages and reductions share
 * a link beside compute. Prints one line a case; best of three runs.
 */
#include "tests/unit/sim_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Of this process: what others run on the machine changes it little. */
static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

typedef struct {
    const char *name;
    int microbatches, tensor, data;
    bool contended;
} Case;

static SimPlan make_plan(OrrArena *arena, const Case *c)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){.schedule = "interleaved",
                                                   .ranks = 16,
                                                   .chunks = 4,
                                                   .microbatches = c->microbatches,
                                                   .forward_ps = 1000003,
                                                   .input_ps = 1100009,
                                                   .weight_ps = 900007,
                                                   .hop_ps = 150001});
    plan.tensor = c->tensor;
    plan.data = c->data;
    plan.overlap_grad_reduce = true;
    for (int s = 0; s < plan.shape.ranks * plan.shape.chunks; s++) {
        SimStage *stage = &plan.stages[s];
        stage->segments[0].grad_reduce = fixture_work(SIM_PART_DATA_COMM, 5000011);
        if (c->contended) {
            sim_work_hold(&stage->send_next, SIM_RESOURCE_SCALE_OUT, SIM_SHARE_FAIR, 700);
            sim_work_hold(&stage->send_next, SIM_RESOURCE_SM, SIM_SHARE_RESERVED, 20);
            sim_work_hold(&stage->send_prev, SIM_RESOURCE_SCALE_OUT, SIM_SHARE_FAIR, 700);
            sim_work_hold(&stage->send_prev, SIM_RESOURCE_SM, SIM_SHARE_RESERVED, 20);
        }
    }
    plan.grad_norm = fixture_work(SIM_PART_DATA_COMM, 20011);
    for (int r = 0; r < plan.shape.ranks; r++)
        plan.ranks[r].optimizer = fixture_work(SIM_PART_OPTIMIZER, 3000017);
    return plan;
}

/* Every rank a class of its own: a compute op and a message in turn, each of a random time. */
static SimProgram make_distinct(OrrArena *arena)
{
    enum { RANKS = 16384, ROUNDS = 256 };
    GRand *random = g_rand_new_with_seed(1);
    SimClass *classes = ORR_ARENA_NEW(arena, SimClass, RANKS);
    SimOp *ops = ORR_ARENA_NEW(arena, SimOp, 2 * RANKS);
    SimWork *works = ORR_ARENA_NEW(arena, SimWork, 2 * RANKS);
    for (int r = 0; r < RANKS; r++) {
        SimInstr *compute = ORR_ARENA_NEW(arena, SimInstr, ROUNDS);
        SimInstr *send = ORR_ARENA_NEW(arena, SimInstr, ROUNDS);
        works[2 * r] = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1000000, 2000000));
        works[2 * r + 1] = fixture_work(SIM_PART_PIPELINE_COMM, fixture_random(random, 100000, 900000));
        for (int i = 2 * r; i < 2 * r + 2; i++)
            ops[i] = (SimOp){.kind = SIM_OP, .work = i, .mem = -1, .stage = -1};
        for (int i = 0; i < ROUNDS; i++) {
            compute[i] = (SimInstr){.op = 2 * r};
            send[i] = (SimInstr){
                .op = 2 * r + 1, .wait_on = sim_wait_on(-1, SIM_STREAM_COMPUTE), .wait_count = i + 1};
        }
        classes[r].streams[SIM_STREAM_COMPUTE] = (SimList){.instrs = compute, .count = ROUNDS};
        classes[r].streams[SIM_STREAM_SEND_NEXT] = (SimList){.instrs = send, .count = ROUNDS};
    }
    g_rand_free(random);
    return (SimProgram){.classes = RANKS,
                        .replicas = 1,
                        .class_list = classes,
                        .ops = ops,
                        .op_count = 2 * RANKS,
                        .works = works,
                        .work_count = 2 * RANKS};
}

static SimPlan make_plain(OrrArena *arena)
{
    return fixture_plan(arena, &(Pipeline){.schedule = "1f1b",
                                           .ranks = 64,
                                           .chunks = 1,
                                           .microbatches = 8192,
                                           .forward_ps = 1000003,
                                           .input_ps = 1100009,
                                           .weight_ps = 900007,
                                           .hop_ps = 150001});
}

static SimProgram build(OrrArena *arena, const Case *c)
{
    if (c->microbatches == 0)
        return make_distinct(arena);
    GError *error = NULL;
    SimPlan plan = make_plan(arena, c);
    SimProgram program;
    if (!sim_program_build(&plan, c->tensor * c->data > 1, arena, &program, &error))
        g_error("%s", error->message);
    return program;
}

/* Plan, program and run together, in passes a second. */
static void bench_plain(void)
{
    double best_s = 0, best_build_s = 0;
    SimPlan plan;
    for (int round = 0; round < 5; round++) {
        GError *error = NULL;
        OrrArena *arena = orr_arena_new();
        const int64_t start_us = cpu_us();
        SimProgram program;
        SimResult result;
        plan = make_plain(arena);
        if (!sim_program_build(&plan, false, arena, &program, &error))
            g_error("%s", error->message);
        const int64_t built_us = cpu_us();
        if (!sim_engine_run(&program, 0, arena, &result, &error))
            g_error("%s", error->message);
        const double all_s = (double)(cpu_us() - start_us) * 1e-6;
        if (round == 0 || all_s < best_s) {
            best_s = all_s;
            best_build_s = (double)(built_us - start_us) * 1e-6;
        }
        orr_arena_free(arena);
    }
    const double passes = 2e-6 * plan.shape.ranks * plan.shape.microbatches;
    printf("%-20s %6d ranks %7.3f M forwards and backwards in %6.3f s: %6.2f M/s (goal 10); build %6.3f s\n",
           "plain 1f1b", plan.shape.ranks, passes, best_s, passes / best_s, best_build_s);
    fflush(stdout);
}

static void bench(const Case *c)
{
    double best_s = 0, build_s = 0, run_bytes = 0;
    SimResult result;
    for (int round = 0; round < 3; round++) {
        GError *error = NULL;
        OrrArena *arena = orr_arena_new();
        int64_t start_us = cpu_us();
        SimProgram program = build(arena, c);
        int64_t built_us = cpu_us();
        size_t before_bytes = orr_arena_used_bytes(arena);
        if (!sim_engine_run(&program, 0, arena, &result, &error))
            g_error("%s", error->message);
        double run_s = (double)(cpu_us() - built_us) * 1e-6;
        if (round == 0 || run_s < best_s) {
            best_s = run_s;
            build_s = (double)(built_us - start_us) * 1e-6;
        }
        run_bytes = (double)(orr_arena_used_bytes(arena) - before_bytes);
        orr_arena_free(arena);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double mops = (double)result.ops * 1e-6;
    printf(
        "%-20s %6d ranks %7.3f Mops in %6.3f s: %6.2f Mops/s; build %6.3f s; %6.0f B/rank; peak %6.1f MiB\n",
        c->name, result.ranks, mops, best_s, mops / best_s, build_s, run_bytes / result.ranks,
        (double)usage.ru_maxrss / 1024.0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const Case CASES[] = {
        {"folded", 4096, 1, 1, false},
        {"folded contended", 4096, 1, 1, true},
        {"unfolded", 64, 8, 128, false},
        {"unfolded contended", 64, 8, 128, true},
        {"unfolded no tensor", 64, 1, 1024, false},
        {"unfolded 100k", 16, 8, 800, false},
        {"distinct instants", 0, 1, 1, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        if (argc < 2 || strcmp(argv[1], CASES[i].name) == 0)
            bench(&CASES[i]);
    }
    if (argc < 2 || strcmp(argv[1], "plain 1f1b") == 0)
        bench_plain();
    return 0;
}
