/* tests/unit/schedule/test_zb_h.c - ZB-H1 and ZB-H2 as [Qi2024] states them: p - r and 2(p - r) - 1 forwards of rank r before
 * its first backward, as many activations at most, and the first rank puts no weight gradient off. */
#include "base/arena.h"
#include "schedule/schedule.h"

enum { RANKS = 4, MICROBATCHES = 12 };

static void check_rank(const SimOrder *order, int warm, bool first)
{
    int forwards = 0, inputs = 0, weights = 0, most = 0;
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        if (op->pass == SIM_PASS_BACKWARD_INPUT && inputs == 0)
            g_assert_cmpint(forwards, ==, warm);
        forwards += op->pass == SIM_PASS_FORWARD;
        inputs += op->pass == SIM_PASS_BACKWARD_INPUT;
        weights += op->pass == SIM_PASS_BACKWARD_WEIGHT;
        most = MAX(most, forwards - inputs);
        g_assert_cmpint(weights, <=, inputs);
        g_assert_cmpint(inputs, <=, forwards);
        if (first)
            g_assert_cmpint(inputs - weights, <=, 1);
    }
    g_assert_cmpint(forwards, ==, MICROBATCHES);
    g_assert_cmpint(inputs, ==, MICROBATCHES);
    g_assert_cmpint(weights, ==, MICROBATCHES);
    g_assert_cmpint(most, ==, warm);
}

static void test_warm_up(void)
{
    static const char *const names[] = {"zb-h1", "zb-h2"};
    const SimScheduleShape shape = {.ranks = RANKS, .chunks = 1, .microbatches = MICROBATCHES};
    for (int h = 1; h <= 2; h++) {
        OrrArena *arena = orr_arena_new();
        SimOrder orders[RANKS];
        sim_schedule_orders(sim_schedule_find(names[h - 1]), &shape, arena, orders);
        for (int r = 0; r < RANKS; r++)
            check_rank(&orders[r], h == 1 ? RANKS - r : 2 * (RANKS - r) - 1, r == 0);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/zb-h/warm-up", test_warm_up);
    return g_test_run();
}
