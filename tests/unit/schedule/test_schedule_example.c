/* tests/unit/schedule/test_schedule_example.c - the schedule that docs/ARCHITECTURE.md adds, as printed there: it
 * builds, replays and keeps what its comment promises, a search proves its best among others, and the file of
 * orders in scenarios/schedules/ is what it generates.
 *
 * CMake takes the three blocks out of the page into schedule_example.c, .h and .inc, and puts the row into a copy of the
 * table, which stands in for the library's here: every room reads it.
 */
#include "base/file.h"
#include "search/search.h"
#include "spec/orders.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/sim_fixture.h"

#include "schedule_example.h"

#include "schedule_example.c"

#include "schedule_table.c"

static const SimSchedule TABLE[] = {
#include "schedule_example.inc"
};

static SimResult run_example(int p, int m, int64_t f, int64_t b, int64_t w, int64_t c, OrrArena *arena)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", p, 1, m, 0, f, b, w, 0, c});
    plan.schedule = &TABLE[0];
    return fixture_run(&plan, false, arena, NULL);
}

static void test_promises(void)
{
    g_assert_cmpint(G_N_ELEMENTS(TABLE), ==, 1);
    g_assert_cmpstr(TABLE[0].name, ==, "eager-1f1b");
    int longer = 0;
    for (int p = 1; p <= (SANITIZED ? 4 : 7); p++) {
        for (int m = 2 * p - 1; m <= 4 * p; m++) {
            for (int64_t f = 2; f <= 8; f += 2) {
                for (int64_t c = 0; 2 * c <= f + 12; c++) {
                    const int64_t b = 1 + (m + c) % 7, w = (m + f) % 3;
                    OrrArena *arena = orr_arena_new();
                    SimResult result = run_example(p, m, f, b, w, c, arena);
                    const int64_t hidden_ps = (m + p - 1) * (f + b + w) + 2 * (p - 1) * c;
                    if (2 * c <= f + b + w)
                        g_assert_cmpint(result.step_ps, ==, hidden_ps);
                    else
                        g_assert_cmpint(result.step_ps, >=, hidden_ps);
                    longer += result.step_ps > hidden_ps;
                    for (int r = 0; r < p; r++)
                        g_assert_cmpint(result.rank[r].peak_bytes, ==, MIN(m, 2 * (p - 1 - r) + 1));
                    orr_arena_free(arena);
                }
            }
        }
    }
    g_assert_cmpint(longer, >, 0);
}

static void test_orders_file(void)
{
    g_autofree char *root = orr_scenarios_dir(NULL);
    g_autofree char *path = g_build_filename(root, "schedules", "eager-1f1b-p4-m16.json", NULL);
    GError *error = NULL;
    OrrJsonDoc *doc = spec_orders_read_file(path, path, &error);
    g_assert_no_error(error);
    SpecParallel *parallel = g_new0(SpecParallel, 1);
    spec_orders_take(orr_json_root(doc), NULL, parallel, &error);
    g_assert_no_error(error);
    OrrArena *arena = orr_arena_new();
    SpecOrderTable table;
    spec_orders_parse(parallel->orders.text, "t", arena, &table, &error);
    g_assert_no_error(error);
    const SimScheduleShape shape = {.ranks = 4, .chunks = 1, .microbatches = 16};
    for (int r = 0; r < shape.ranks; r++) {
        SimOrder order;
        TABLE[0].generate(&shape, r, arena, &order);
        g_assert_cmpint(order.count, ==, table.rows[r].count);
        for (int64_t i = 0; i < order.count; i++) {
            const bool forward = table.rows[r].ops[i].op == SPEC_OP_FORWARD;
            g_assert_cmpint(order.ops[i].pass, ==, forward ? SIM_PASS_FORWARD : SIM_PASS_BACKWARD);
            g_assert_cmpint(order.ops[i].microbatch, ==, table.rows[r].ops[i].microbatch);
            g_assert_cmpint(table.rows[r].ops[i].stage, ==, r);
        }
    }
    orr_arena_free(arena);
    orr_json_free(doc);
    g_free(parallel);
}

static SearchResult find(const Spec *spec, bool exhaustive)
{
    const SearchOptions options = {.exhaustive = exhaustive, .jobs = 2};
    SearchResult result;
    GError *error = NULL;
    search_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

/* Among other schedules on random spaces, where it wins and where it loses: the proved answer is that of simulating every
 * point, and every bound holds. */
static void test_search(void)
{
    GRand *rand = g_rand_new_with_seed(17);
    const int eager = sim_schedule_index("eager-1f1b");
    int spaces = 0, wins = 0, tight = 0, left_out = 0;
    g_assert_cmpint(eager, >=, 0);
    const int enough = SANITIZED ? 6 : 24; /* of a tenth none is won */
    for (int i = 0; spaces < enough; i++) {
        g_autofree Spec *spec = fixture_space(rand, i, true);
        spec->parallel.schedule = (SpecSchedule)SPEC_AUTO;
        spec->search.schedule = 1u << eager | 1u << sim_schedule_index(i % 2 == 0 ? "1f1b" : "interleaved");
        spec->cluster.scale_out_bytes_per_s_per_gpu /= 1 << (i % 5);
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0 || count > 1500)
            continue;
        if (spaces % 3 == 2) /* so that memory decides too */
            spec->search.max_memory_frac = 0.02 + 0.15 * g_rand_double(rand);
        SearchResult pruned = find(spec, false), all = find(spec, true);
        g_assert_true(pruned.proved);
        g_assert_cmpint(pruned.points, ==, count);
        g_assert_cmpuint(pruned.best->len, ==, all.best->len);
        for (guint b = 0; b < all.best->len; b++) {
            const SearchRun *x = &g_array_index(pruned.best, SearchRun, b),
                            *y = &g_array_index(all.best, SearchRun, b);
            g_assert_cmpint(search_id_compare(&x->id, &y->id), ==, 0);
            g_assert_cmpint(x->step_ps, ==, y->step_ps);
            const SearchGroup *group = &all.space->groups[y->id.group];
            wins += b == 0 && group->pipeline > 1 &&
                    group->partitions->partition[y->id.partition].schedule == eager;
        }
        tight += all.best->len == 0 || spec->search.max_memory_frac > 0;
        left_out += pruned.simulated < count;
        spaces++;
        search_result_clear(&pruned);
        search_result_clear(&all);
    }
    g_test_message("%d spaces: eager 1F1B best in %d, memory short in %d, points left out in %d", spaces,
                   wins, tight, left_out);
    g_assert_cmpint(wins, >, 0);
    g_assert_cmpint(wins, <, spaces);
    g_assert_cmpint(left_out, >, spaces / 2);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedule-example/promises", test_promises);
    g_test_add_func("/schedule-example/orders-file", test_orders_file);
    g_test_add_func("/schedule-example/search", test_search);
    return g_test_run();
}
