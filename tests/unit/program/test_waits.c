/* tests/unit/program/test_waits.c - a wait that an op or a collective holds is the same as one of its own before it. */
#include "tests/unit/sim_fixture.h"

#include <string.h>

/* How many instructions the first `count` of a list are once all its waits stand apart. */
static int64_t count_apart(const SimList *list, int64_t count)
{
    int64_t apart = count;
    for (int64_t i = 0; i < count; i++)
        apart += list->instrs[i].op != SIM_ONLY_WAITS && list->instrs[i].wait_count > 0;
    return apart;
}

static SimInstr wait_of(const SimProgram *program, int cls, const SimInstr *instr)
{
    const SimClass *on = &program->class_list[sim_wait_class(instr, cls)];
    SimInstr wait = *instr;
    wait.op = SIM_ONLY_WAITS;
    wait.wait_count = (int32_t)count_apart(&on->streams[sim_wait_stream(instr)], instr->wait_count);
    return wait;
}

static SimList list_apart(const SimProgram *program, int cls, int stream, OrrArena *arena)
{
    const SimList *list = &program->class_list[cls].streams[stream];
    const int64_t count = count_apart(list, list->count);
    SimInstr *instrs = ORR_ARENA_NEW(arena, SimInstr, count), *to = instrs;
    for (int64_t i = 0; i < list->count; i++) {
        if (list->instrs[i].wait_count > 0)
            *to++ = wait_of(program, cls, &list->instrs[i]);
        if (list->instrs[i].op == SIM_ONLY_WAITS)
            continue;
        *to = list->instrs[i];
        (to++)->wait_count = 0;
    }
    g_assert_cmpint(to - instrs, ==, count);
    return (SimList){.instrs = instrs, .count = count};
}

/* The same program with half as many instructions again or more; returns how many waits it put apart. */
static int64_t waits_apart(SimProgram *program, OrrArena *arena)
{
    SimClass *classes = ORR_ARENA_NEW(arena, SimClass, program->classes);
    int64_t more = 0;
    for (int c = 0; c < program->classes; c++) {
        classes[c] = program->class_list[c];
        for (int s = 0; s < SIM_MAX_STREAMS; s++) {
            classes[c].streams[s] = list_apart(program, c, s, arena);
            more += classes[c].streams[s].count - program->class_list[c].streams[s].count;
        }
    }
    program->class_list = classes;
    return more;
}

static void compare(const SimPlan *plan, OrrArena *arena)
{
    GError *error = NULL;
    SimProgram program;
    const SimResult held = fixture_run(plan, true, arena, &program);
    SimResult apart;
    g_assert_cmpint(waits_apart(&program, arena), >, plan->shape.ranks);
    sim_engine_run(&program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &apart, &error);
    g_assert_no_error(error);
    sim_run_check(&program, &apart, &error);
    g_assert_no_error(error);
    g_assert_cmpint(apart.step_ps, ==, held.step_ps);
    g_assert_cmpint(apart.ops, ==, held.ops);
    g_assert_true(memcmp(apart.rank, held.rank, sizeof *held.rank * (size_t)held.ranks) == 0);
}

static void test_waits(void)
{
    static const char *const SCHEDULES[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};
    GRand *random = g_rand_new_with_seed(7);
    for (int i = 0; i < 48; i++) {
        OrrArena *arena = orr_arena_new();
        const char *schedule = SCHEDULES[i % (int)G_N_ELEMENTS(SCHEDULES)];
        SimPlan plan = fixture_plan(arena, &(Pipeline){.schedule = schedule,
                                                       .ranks = 4,
                                                       .chunks = strcmp(schedule, "interleaved") == 0 ? 2 : 1,
                                                       .microbatches = 8,
                                                       .forward_ps = fixture_random(random, 50, 150),
                                                       .input_ps = fixture_random(random, 50, 150),
                                                       .weight_ps = fixture_random(random, 50, 150),
                                                       .hop_ps = fixture_random(random, 0, 40)});
        plan.data = 2;
        plan.tensor = i % 3 == 0 ? 2 : 1;
        plan.overlap_grad_reduce = i % 2 == 0;
        plan.overlap_param_gather = i % 5 != 0;
        plan.p2p_blocking = i % 7 == 0;
        fixture_set_data_comm(&plan, fixture_random(random, 0, 200), fixture_random(random, 1, 200));
        compare(&plan, arena);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/waits/held-or-apart", test_waits);
    return g_test_run();
}
