/* tests/unit/schedule/test_schedule_facts.c - traits and facts of every schedule against its orders, and against
 * closed forms. */
#include "schedule/facts.h"

#include <string.h>

typedef void (*Visit)(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                      const SimOrderFacts *facts);

/* Every shape of a grid that a schedule takes; schedules that follow times, of which nothing is known, are left out. */
static int each_shape(const char *only, Visit visit)
{
    int count = 0, shapes = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        const SimSchedule *schedule = &schedules[i];
        if (sim_schedule_needs_times(schedule) || (only != NULL && strcmp(only, schedule->name) != 0))
            continue;
        for (int p = 1; p <= 8; p++)
            for (int v = 1; v <= 4; v++)
                for (int m = 1; m <= 26; m++) {
                    const SimScheduleShape shape = {.ranks = p, .chunks = v, .microbatches = m};
                    if ((schedule->fixed_chunks != 0 && v != schedule->fixed_chunks) ||
                        (schedule->check != NULL && !schedule->check(&shape, NULL)))
                        continue;
                    OrrArena *arena = orr_arena_new();
                    SimOrder *orders = ORR_ARENA_NEW(arena, SimOrder, p);
                    for (int r = 0; r < p; r++)
                        schedule->generate(&shape, r, arena, &orders[r]);
                    const SimOrderFacts *facts = sim_order_facts(schedule, &shape, arena);
                    visit(schedule, &shape, orders, facts);
                    orr_arena_free(arena);
                    shapes++;
                }
    }
    return shapes;
}

/* --- traits --- */

static void assert_traits(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                          const SimOrderFacts *facts)
{
    bool splits = false;
    (void)facts;
    for (int r = 0; r < shape->ranks; r++) {
        bool backward = false, forwards_first = true;
        for (int64_t i = 0; i < orders[r].count; i++) {
            const SimPassOp *op = &orders[r].ops[i];
            const bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
            splits |= op->pass == SIM_PASS_BACKWARD_INPUT || op->pass == SIM_PASS_BACKWARD_WEIGHT;
            forwards_first &= !(op->pass == SIM_PASS_FORWARD && backward) && !pair;
            backward |= op->pass != SIM_PASS_FORWARD;
            if (!pair)
                continue;
            g_assert_true(sim_schedule_has(schedule, SIM_TRAIT_PAIRS));
            g_assert_cmpint(shape->chunks, ==, 2);
            g_assert_cmpint(op->chunk2, ==, 1 - op->chunk);
            for (int other = 0; other < shape->ranks; other++) /* a rank's first micro-batch went alone */
                g_assert_cmpint(op->microbatch, !=, orders[other].ops[0].microbatch);
        }
        if (sim_schedule_has(schedule, SIM_TRAIT_FORWARDS_FIRST))
            g_assert_true(forwards_first);
    }
    g_assert_true(splits == sim_schedule_has(schedule, SIM_TRAIT_SPLITS_BACKWARD));
}

static void test_traits(void)
{
    int count = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    g_assert_cmpint(each_shape(NULL, assert_traits), >, 1000);
    g_assert_cmpint(count, <, 31); /* bits of a set, and one number for orders from a file */
    for (int i = 0; i < count; i++) {
        g_assert_cmpint(sim_schedule_index(schedules[i].name), ==, i);
        g_assert_cmpstr(orr_word(&sim_schedule_words, i), ==, schedules[i].name);
        if (schedules[i].one_chunk != NULL)
            g_assert_nonnull(sim_schedule_find(schedules[i].one_chunk));
    }
    g_assert_cmpstr(sim_schedule_at(sim_schedule_usual(1))->name, ==, "1f1b");
    g_assert_cmpstr(sim_schedule_at(sim_schedule_usual(3))->name, ==, "interleaved");
}

/* Simple ones first, each once. */
static void test_simplicity(void)
{
    static const char *const expected[] = {"1f1b",          "interleaved", "zb-h1",     "zb-h2",    "zb-v",
                                           "v-half",        "v-min",       "dualpipev", "dualpipe", "gpipe",
                                           "breadth-first", "naive",       "zb-auto"};
    int rows[G_N_ELEMENTS(expected)];
    g_assert_cmpint(sim_schedule_words.count, ==, G_N_ELEMENTS(expected));
    sim_schedules_by_simplicity(rows);
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_cmpstr(sim_schedule_at(rows[i])->name, ==, expected[i]);
}

static void assert_same_order(const SimSchedule *schedule, const SimScheduleShape *shape,
                              const SimOrder *orders, const SimOrderFacts *facts)
{
    OrrArena *arena = orr_arena_new();
    SimOrder *all = ORR_ARENA_NEW(arena, SimOrder, shape->ranks);
    (void)facts;
    sim_schedule_orders(schedule, shape, arena, all);
    for (int r = 0; r < shape->ranks; r++) {
        g_assert_cmpint(all[r].count, ==, orders[r].count);
        for (int64_t i = 0; i < all[r].count; i++) {
            g_assert_cmpint(all[r].ops[i].pass, ==, orders[r].ops[i].pass);
            g_assert_cmpint(all[r].ops[i].chunk, ==, orders[r].ops[i].chunk);
            g_assert_cmpint(all[r].ops[i].microbatch, ==, orders[r].ops[i].microbatch);
        }
    }
    orr_arena_free(arena);
}

static void test_ranks_at_once(void)
{
    each_shape("v-half", assert_same_order);
    each_shape("v-min", assert_same_order);
}

/* --- memory --- */

static int64_t level_of(const SimMoment *moment, int chunks, const int64_t *whole, const int64_t *late)
{
    int64_t level = 0;
    for (int c = 0; c < chunks; c++)
        level += moment->whole[c] * whole[c] + moment->late[c] * late[c];
    return level;
}

/* The fullest level of an order whose chunks keep so much. */
static int64_t true_peak(const SimOrder *order, const int64_t *whole, const int64_t *late)
{
    int64_t level = 0, peak = 0;
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        const bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        if (op->pass == SIM_PASS_FORWARD || pair)
            level += whole[op->chunk];
        peak = MAX(peak, level);
        if (op->pass == SIM_PASS_BACKWARD || pair)
            level -= whole[pair ? op->chunk2 : op->chunk];
        else if (op->pass == SIM_PASS_BACKWARD_INPUT)
            level -= whole[op->chunk] - late[op->chunk];
        else if (op->pass == SIM_PASS_BACKWARD_WEIGHT)
            level -= late[op->chunk];
    }
    g_assert_cmpint(level, ==, 0);
    return peak;
}

/* Moments are reached: below the peak for any weights, and at it where every chunk keeps as much to its end. */
static void assert_moments(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                           const SimOrderFacts *facts)
{
    (void)schedule;
    for (int r = 0; r < shape->ranks; r++) {
        for (int code = 0; code < 6; code++) {
            int64_t whole[4], late[4], most = 0;
            for (int c = 0; c < 4; c++) {
                whole[c] = code == 0 ? 5 : 1 + (7 * c + 3 * code) % 11;
                late[c] = code == 0 ? 5 : whole[c] * (code % 3) / 3;
            }
            const SimRankFacts *rank = &facts->ranks[r];
            for (int i = 0; i < rank->moment_count; i++)
                most = MAX(most, level_of(&rank->moments[i], shape->chunks, whole, late));
            const int64_t peak = true_peak(&orders[r], whole, late);
            g_assert_cmpint(most, <=, peak);
            if (code == 0)
                g_assert_cmpint(most, ==, peak);
        }
    }
}

static void test_moments(void)
{
    each_shape(NULL, assert_moments);
}

static void assert_1f1b(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                        const SimOrderFacts *facts)
{
    const int p = shape->ranks, m = shape->microbatches;
    (void)schedule;
    (void)orders;
    for (int r = 0; r < p; r++) {
        const SimRankFacts *rank = &facts->ranks[r];
        int most = 0;
        for (int i = 0; i < rank->moment_count; i++)
            most = MAX(most, rank->moments[i].whole[0]);
        g_assert_cmpint(most, ==, MIN(m, p - r)); /* Source: [Narayanan2021] */
        g_assert_cmpint(rank->first_backward->whole[0], ==, MIN(m, p - r));
        g_assert_true((rank->incomplete != NULL) == (m > 1));
        if (m > 1)
            g_assert_cmpint(rank->incomplete->whole[0], ==, MIN(m - 1, p - r));
        g_assert_cmpint(rank->weights_left[0], ==, 0);
    }
    g_assert_cmpint(facts->round_trips, ==, (m + p - 1) / p);
}

static void assert_zb_h1(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                         const SimOrderFacts *facts)
{
    (void)schedule;
    (void)orders;
    for (int r = 0; r < shape->ranks; r++)
        g_assert_cmpint(facts->ranks[r].weights_left[0], ==, MIN(shape->microbatches, r + 1));
}

static void assert_dualpipev(const SimSchedule *schedule, const SimScheduleShape *shape,
                             const SimOrder *orders, const SimOrderFacts *facts)
{
    const int p = shape->ranks, m = shape->microbatches;
    (void)schedule;
    (void)orders;
    for (int r = 0; r < p; r++) {
        const int32_t *pairs = facts->ranks[r].pairs;
        g_assert_cmpint(pairs[0], ==, m - 2 * p + r + 1 - (r == p - 1 ? 1 : 0));
        g_assert_cmpint(pairs[1], ==, m - p);
    }
}

static void assert_naive(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                         const SimOrderFacts *facts)
{
    (void)schedule;
    (void)orders;
    g_assert_cmpint(facts->round_trips, ==, shape->microbatches);
}

static void assert_gpipe(const SimSchedule *schedule, const SimScheduleShape *shape, const SimOrder *orders,
                         const SimOrderFacts *facts)
{
    (void)schedule;
    (void)orders;
    g_assert_cmpint(facts->round_trips, ==, 1);
    for (int r = 0; r < shape->ranks; r++)
        g_assert_cmpint(facts->ranks[r].moments[0].whole[0], ==, shape->microbatches);
}

static void test_closed_forms(void)
{
    g_assert_cmpint(each_shape("1f1b", assert_1f1b), >, 100);
    g_assert_cmpint(each_shape("zb-h1", assert_zb_h1), >, 100);
    g_assert_cmpint(each_shape("dualpipev", assert_dualpipev), >, 50);
    g_assert_cmpint(each_shape("naive", assert_naive), >, 100);
    g_assert_cmpint(each_shape("gpipe", assert_gpipe), >, 100);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedule/traits", test_traits);
    g_test_add_func("/schedule/simple-first", test_simplicity);
    g_test_add_func("/schedule/ranks-at-once", test_ranks_at_once);
    g_test_add_func("/schedule/moments", test_moments);
    g_test_add_func("/schedule/closed-forms", test_closed_forms);
    return g_test_run();
}
