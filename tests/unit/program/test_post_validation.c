/* tests/unit/program/test_post_validation.c - pipelines whose ranks step without waiting for all: what a step takes
 * then, and that steps in a row do take that. */
#include "tests/unit/sim_fixture.h"

static SimResult run_skewed(const Pipeline *pipeline, OrrArena *arena)
{
    SimPlan plan = fixture_plan(arena, pipeline);
    plan.post_validation = true;
    return fixture_run(&plan, false, arena, NULL);
}

/* Messages and norms of no length: the step is the work and the span bubble of the closed forms.
 * ZB-H2, m >= 2p - 1: m (F + B + W) + (p - 1) max(F + B - 2W, B - F, 0)
 * ZB-V, m >= 2p - 1, F <= B, W <= F (of both chunks): m (F + B + W) + (p - 1) max(B - W, (B - F)/2, 0) */
static void test_closed_forms(void)
{
    for (int p = 2; p <= 6; p++) {
        for (int m = 2 * p - 1; m <= 3 * p; m++) {
            for (int64_t f = 1; f <= 4; f++) {
                for (int64_t b = 1; b <= 4; b++) {
                    for (int64_t w = 1; w <= 4; w++) {
                        OrrArena *arena = orr_arena_new();
                        SimResult h2 = run_skewed(&(Pipeline){"zb-h2", p, 1, m, 0, f, b, w, 0, 0}, arena);
                        g_assert_cmpint(h2.step_ps, ==,
                                        m * (f + b + w) + (p - 1) * MAX(f + b - 2 * w, MAX(b - f, 0)));
                        g_assert_cmpint(h2.end_ps, >=, h2.step_ps);
                        if (f <= b && w <= f) {
                            SimResult v = run_skewed(&(Pipeline){"zb-v", p, 2, m, 0, f, b, w, 0, 0}, arena);
                            g_assert_cmpint(v.step_ps, ==,
                                            2 * m * (f + b + w) + (p - 1) * MAX(2 * (b - w), MAX(b - f, 0)));
                        }
                        orr_arena_free(arena);
                    }
                }
            }
        }
    }
}

/* The orders of one step, again and again with further micro-batches. */
static SimOrder *repeated(const SimPlan *plan, int steps, OrrArena *arena)
{
    const SimOrder *once = sim_plan_orders(plan, arena);
    SimOrder *orders = ORR_ARENA_NEW(arena, SimOrder, plan->shape.ranks);
    for (int r = 0; r < plan->shape.ranks; r++) {
        orders[r].ops = ORR_ARENA_NEW(arena, SimPassOp, once[r].count * steps);
        for (int s = 0; s < steps; s++) {
            for (int64_t i = 0; i < once[r].count; i++) {
                SimPassOp op = once[r].ops[i];
                op.microbatch += s * plan->shape.microbatches;
                orders[r].ops[orders[r].count++] = op;
            }
        }
    }
    return orders;
}

/* Ends of each rank's compute after `steps` steps in a row, nothing between them. */
static SimResult run_steps(const Pipeline *pipeline, int steps, OrrArena *arena)
{
    SimPlan plan = fixture_plan(arena, pipeline);
    plan.orders = repeated(&plan, steps, arena);
    plan.shape.microbatches *= steps;
    return fixture_run(&plan, false, arena, NULL);
}

/* Steps in a row come at least as fast as one every step_ps, and exactly so where no rank has a bubble. */
static void test_steps_in_a_row(void)
{
    static const char *const SCHEDULES[] = {"zb-h1", "zb-h2", "zb-v", "v-half"};
    GRand *random = g_rand_new_with_seed(61);
    for (int round = 0; round < 400; round++) {
        OrrArena *arena = orr_arena_new();
        const char *schedule = SCHEDULES[round % 4];
        const int p = (int)fixture_random(random, 2, 6), m = (int)fixture_random(random, p, 4 * p);
        const bool even = round % 3 == 0;
        const int64_t f = fixture_random(random, 1, 9), b = even ? f : fixture_random(random, 1, 9);
        const int64_t w = even ? f : fixture_random(random, 1, 9),
                      c = even ? 0 : fixture_random(random, 0, 3);
        const Pipeline pipeline = {schedule, p, round % 4 < 2 ? 1 : 2, m, 0, f, b, w, 0, c};
        SimResult one = run_skewed(&pipeline, arena);
        SimResult first = run_steps(&pipeline, 1, arena), fifth = run_steps(&pipeline, 5, arena);
        int64_t busiest_ps = 0;
        for (int r = 0; r < p; r++) {
            const int64_t four_ps = fifth.rank[r].last_end_ps - first.rank[r].last_end_ps;
            g_assert_cmpint(four_ps, <=, 4 * one.step_ps);
            busiest_ps = MAX(busiest_ps, one.rank[r].busy_ps);
        }
        g_assert_cmpint(one.step_ps, >=, busiest_ps);
        if (one.step_ps == busiest_ps)
            g_assert_cmpint(fifth.rank[0].last_end_ps - first.rank[0].last_end_ps, ==, 4 * busiest_ps);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

/* Beside the collective over all: never slower but for the messages, the same bytes of memory, and nothing changes where
 * weight gradients are not apart. */
static void test_beside_collective(void)
{
    static const char *const SCHEDULES[] = {"zb-h1", "zb-h2", "zb-v", "1f1b", "gpipe"};
    GRand *random = g_rand_new_with_seed(62);
    for (int round = 0; round < 300; round++) {
        OrrArena *arena = orr_arena_new();
        const int which = round % 5, p = (int)fixture_random(random, 1, 6),
                  m = (int)fixture_random(random, 1, 20);
        const Pipeline pipeline = {SCHEDULES[which],
                                   p,
                                   which == 2 ? 2 : 1,
                                   m,
                                   0,
                                   fixture_random(random, 1, 30),
                                   fixture_random(random, 1, 30),
                                   fixture_random(random, 1, 30),
                                   0,
                                   fixture_random(random, 0, 5)};
        SimPlan plan = fixture_plan(arena, &pipeline);
        for (int r = 0; r < p; r++)
            plan.ranks[r].optimizer = fixture_work(SIM_PART_OPTIMIZER, fixture_random(random, 1, 40));
        plan.grad_norm = fixture_work(SIM_PART_DATA_COMM, 5);
        plan.stage_norm = fixture_work(SIM_PART_DATA_COMM, 3);
        plan.norm_hop = fixture_work(SIM_PART_DATA_COMM, 1);
        plan.tensor = 2;
        SimResult together = fixture_run(&plan, false, arena, NULL);
        plan.post_validation = true;
        SimProgram program;
        SimResult apart = fixture_run(&plan, round % 2 == 0, arena, &program);
        const int replicas = program.replicas;
        g_assert_cmpint(program.skewed, ==, which < 3 && p > 1);
        if (which >= 3 || p == 1) {
            g_assert_cmpint(apart.step_ps, ==, together.step_ps);
        } else {
            g_assert_cmpint(apart.step_ps, <=, together.step_ps + p); /* p - 1 messages of 1 */
            g_assert_cmpint(apart.end_ps, <=, together.end_ps + p);
        }
        for (int r = 0; r < p; r++)
            g_assert_cmpint(apart.rank[r * replicas].peak_bytes, ==, together.rank[r].peak_bytes);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/post-validation/closed-forms", test_closed_forms);
    g_test_add_func("/post-validation/steps-in-a-row", test_steps_in_a_row);
    g_test_add_func("/post-validation/beside-collective", test_beside_collective);
    return g_test_run();
}
