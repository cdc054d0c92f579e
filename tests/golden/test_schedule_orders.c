/* tests/golden/test_schedule_orders.c - published orders of the pipeline schedules, and shapes that they refuse. */
#include "tests/unit/sim_fixture.h"

#include <string.h>

/* "F0 B0 W0 ..." of one rank; with `stages` each op names its stage: "F4.0"; A is a whole backward. */
static char *order_text(const char *schedule, SimScheduleShape shape, int rank, bool stages)
{
    OrrArena *arena = orr_arena_new();
    const SimSchedule *found = sim_schedule_find(schedule);
    SimOrder order;
    GString *text = g_string_new(NULL);
    found->generate(&shape, rank, arena, &order);
    for (int64_t i = 0; i < order.count; i++) {
        const SimPassOp *op = &order.ops[i];
        g_string_append_printf(text, "%s%c", i > 0 ? " " : "", "FABW"[op->pass]);
        if (stages)
            g_string_append_printf(
                text, "%d.", sim_stage_of(found->placement, shape.ranks, shape.chunks, rank, op->chunk));
        g_string_append_printf(text, "%d", op->microbatch);
    }
    orr_arena_free(arena);
    return g_string_free(text, FALSE);
}

static void test_orders(void)
{
    static const struct {
        const char *schedule;
        SimScheduleShape shape;
        int rank;
        bool stages;
        const char *order;
    } CASES[] = {
        {"naive", {.ranks = 3, .chunks = 1, .microbatches = 2}, 1, false, "F0 A0 F1 A1"},
        {"gpipe", {.ranks = 4, .chunks = 1, .microbatches = 3}, 2, false, "F0 F1 F2 A0 A1 A2"},
        {"1f1b", {.ranks = 4, .chunks = 1, .microbatches = 4}, 1, false, "F0 F1 F2 A0 F3 A1 A2 A3"},
        {"1f1b", {.ranks = 4, .chunks = 1, .microbatches = 2}, 0, false, "F0 F1 A0 A1"},
        {"interleaved",
         {.ranks = 4, .chunks = 2, .microbatches = 8},
         0,
         true,
         "F0.0 F0.1 F0.2 F0.3 F4.0 F4.1 F4.2 F4.3 F0.4 F0.5 F0.6 A4.0 F0.7 A4.1 F4.4 A4.2 F4.5 A4.3 F4.6 "
         "A0.0 "
         "F4.7 A0.1 A0.2 A0.3 A4.4 A4.5 A4.6 A4.7 A0.4 A0.5 A0.6 A0.7"},
        {"interleaved",
         {.ranks = 4, .chunks = 2, .microbatches = 8},
         3,
         true,
         "F3.0 F3.1 F3.2 F3.3 F7.0 A7.0 F7.1 A7.1 F7.2 A7.2 F7.3 A7.3 F3.4 A3.0 F3.5 A3.1 F3.6 A3.2 F3.7 "
         "A3.3 "
         "F7.4 A7.4 F7.5 A7.5 F7.6 A7.6 F7.7 A7.7 A3.4 A3.5 A3.6 A3.7"},
        /* Groups of three micro-batches, the last one short. */
        {"interleaved",
         {.ranks = 2, .chunks = 2, .microbatches = 5, .group = 3},
         1,
         true,
         "F1.0 F1.1 F1.2 F3.0 A3.0 F3.1 A3.1 F3.2 A3.2 F1.3 A1.0 F1.4 A1.1 F3.3 A1.2 F3.4 A3.3 A3.4 A1.3 "
         "A1.4"},
        {"breadth-first",
         {.ranks = 2, .chunks = 2, .microbatches = 2},
         1,
         true,
         "F1.0 F1.1 F3.0 F3.1 A3.0 A3.1 A1.0 A1.1"},
        {"zb-h1",
         {.ranks = 4, .chunks = 1, .microbatches = 8},
         0,
         false,
         "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7"},
        {"zb-h1",
         {.ranks = 4, .chunks = 1, .microbatches = 8},
         3,
         false,
         "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7"},
        {"zb-h2",
         {.ranks = 4, .chunks = 1, .microbatches = 8},
         0,
         false,
         "F0 F1 F2 F3 F4 F5 F6 B0 W0 F7 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7"},
        {"zb-v",
         {.ranks = 2, .chunks = 2, .microbatches = 3},
         1,
         true,
         "F1.0 F2.0 F1.1 F2.1 B2.0 W2.0 F1.2 B1.0 W1.0 F2.2 B2.1 W2.1 B1.1 B2.2 B1.2 W1.1 W2.2 W1.2"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        char *text = order_text(CASES[i].schedule, CASES[i].shape, CASES[i].rank, CASES[i].stages);
        g_assert_cmpstr(text, ==, CASES[i].order);
        g_free(text);
    }
}

/* Interleaving one chunk is plain 1F1B. */
static void test_one_chunk(void)
{
    for (int p = 1; p <= 5; p++) {
        for (int m = 1; m <= 7; m++) {
            SimScheduleShape shape = {.ranks = p, .chunks = 1, .microbatches = m};
            for (int r = 0; r < p; r++) {
                char *one = order_text("1f1b", shape, r, true),
                     *other = order_text("interleaved", shape, r, true);
                g_assert_cmpstr(one, ==, other);
                g_free(one);
                g_free(other);
            }
        }
    }
}

static void test_refusals(void)
{
    static const struct {
        const char *schedule;
        SimScheduleShape shape;
        const char *says;
    } CASES[] = {
        {"interleaved",
         {.ranks = 4, .chunks = 2, .microbatches = 8, .group = 2},
         "micro-batches a group (2)"},
        {"interleaved", {.ranks = 4, .chunks = 3, .microbatches = 9}, "12 micro-batches would work"},
        {"dualpipe", {.ranks = 3, .chunks = 2, .microbatches = 12}, "even number of pipeline ranks (3)"},
        {"dualpipe", {.ranks = 4, .chunks = 2, .microbatches = 6}, "at least twice the ranks (8)"},
        {"dualpipev", {.ranks = 4, .chunks = 2, .microbatches = 7}, "micro-batches (7)"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        GError *error = NULL;
        g_assert_false(sim_schedule_find(CASES[i].schedule)->check(&CASES[i].shape, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, CASES[i].says));
        g_clear_error(&error);
    }
    g_assert_null(sim_schedule_find("1F1B"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedules/orders", test_orders);
    g_test_add_func("/schedules/one-chunk", test_one_chunk);
    g_test_add_func("/schedules/refusals", test_refusals);
    return g_test_run();
}
