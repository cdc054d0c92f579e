/* Loops of phases on parts of a machine: worked by hand, closed forms, what never gets worse. */
#include "base/draws.h"
#include "tests/unit/draws.h"
#include "workload/loop.h"

enum { S = 1000 };

static int64_t step_of(const LoopPhase *phases, int count, int parts, int staleness)
{
    LoopResult result;
    GError *error = NULL;
    loop_check(phases, count, parts, staleness, &error);
    g_assert_no_error(error);
    loop_run(phases, count, parts, staleness, &result);
    return result.step_ps;
}

/* On one part: the sum, to the picosecond, whatever waits for what. */
static void test_sum(void)
{
    const LoopPhase phases[] = {{0, -1, 100 * S + 1, 0, true},
                                {0, -1, 7 * S, 1, false},
                                {0, -1, 33 * S + 5, 2, false},
                                {0, 0, 3, 4, false}};
    LoopResult result;
    g_assert_cmpint(step_of(phases, 4, 1, 0), ==, 140 * S + 9);
    loop_run(phases, 4, 1, 0, &result);
    g_assert_cmpint(result.begin_ps[0], ==, 0);
    g_assert_cmpint(result.begin_ps[3], ==, 140 * S + 6);
    g_assert_cmpint(result.busy_ps[0], ==, result.step_ps);
}

/* Generation on part 1, training on part 0, a sync that holds both. */
static const LoopPhase apart[] = {
    {1, -1, 100, 0, true}, {0, -1, 20, 1, false}, {0, -1, 60, 2, false}, {0, 1, 10, 4, false}};

/* Synchronous: one after the other. A step ahead: generation of 100 beside training of 80, then the sync of 10. */
static void test_apart(void)
{
    LoopResult result;
    g_assert_cmpint(step_of(apart, 4, 2, 0), ==, 190);
    g_assert_cmpint(step_of(apart, 4, 2, 1), ==, 110);
    g_assert_cmpint(step_of(apart, 4, 2, 3), ==, 110);
    loop_run(apart, 4, 2, 1, &result);
    g_assert_cmpint(result.busy_ps[0], ==, 90);
    g_assert_cmpint(result.busy_ps[1], ==, 110);
}

/* What need not wait for each other runs beside, on parts of its own. */
static void test_beside(void)
{
    const LoopPhase phases[] = {
        {0, -1, 50, 0, true}, {0, -1, 20, 1, false}, {1, -1, 30, 1, false}, {0, -1, 40, 6, false}};
    g_assert_cmpint(step_of(phases, 4, 2, 0), ==, 50 + 30 + 40);
}

static int draw_loop(OrrLcg *rng, LoopPhase *phases, int *ret_parts)
{
    const int count = 2 + orr_lcg_below(rng, 6), parts = 1 + orr_lcg_below(rng, 3);
    for (int k = 0; k < count; k++)
        phases[k] = (LoopPhase){.part = orr_lcg_below(rng, parts),
                                .other = orr_lcg_below(rng, 4) == 0 ? orr_lcg_below(rng, parts) : -1,
                                .ps = orr_lcg_below(rng, 1000),
                                .after = k > 0 ? 1u << (k - 1) : 0,
                                .generates = k == 0};
    *ret_parts = parts;
    return count;
}

/* Drawn loops keep what they promise; synchronous chains take the sum; more staleness and shorter phases never take longer. */
static void test_drawn(void)
{
    OrrLcg rng = {7};
    for (int i = 0; i < DRAWS(300); i++) {
        LoopPhase phases[LOOP_MOST_PHASES];
        int parts = 0;
        int64_t sum = 0;
        const int count = draw_loop(&rng, phases, &parts);
        for (int k = 0; k < count; k++)
            sum += phases[k].ps;
        const int64_t step = step_of(phases, count, parts, 0);
        g_assert_cmpint(step, ==, sum);
        const int64_t ahead = step_of(phases, count, parts, 2);
        g_assert_cmpint(ahead, <=, step);
        phases[orr_lcg_below(&rng, count)].ps = 0;
        g_assert_cmpint(step_of(phases, count, parts, 0), <=, step);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/sum", test_sum);
    g_test_add_func("/loop/apart", test_apart);
    g_test_add_func("/loop/beside", test_beside);
    g_test_add_func("/loop/drawn", test_drawn);
    return g_test_run();
}
