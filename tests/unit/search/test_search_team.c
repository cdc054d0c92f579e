/* tests/unit/search/test_search_team.c - several processes give one process's answer: here each is a thread with a
 * search of its own, and the exchange is shared memory. */
#include <math.h>
#include <string.h>

#include "search/search.h"
#include "search/write_internal.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/team_fixture.h"

static gpointer sit(gpointer data)
{
    FixtureSeat *seat = data;
    const SearchOptions options = {.jobs = 1, .team = &seat->team};
    GError *error = NULL;
    search_run(seat->given, &options, seat->result, &error);
    g_assert_no_error(error);
    return NULL;
}

static char *answer_of(SearchResult *result)
{
    GError *error = NULL;
    GString *text = g_string_new(NULL);
    result->seconds = 0;
    search_write_json(result, NULL, text, &error);
    g_assert_no_error(error);
    return g_string_free(text, FALSE);
}

static void check_ranks(const Spec *spec, int ranks, const char *alone)
{
    SearchResult results[FIXTURE_RANKS];
    void *const places[] = {&results[0], &results[1], &results[2], &results[3]};
    G_STATIC_ASSERT(G_N_ELEMENTS(places) == FIXTURE_RANKS);
    fixture_team(ranks, sit, spec, places);
    for (int r = 0; r < ranks; r++) {
        g_autofree char *answer = answer_of(&results[r]);
        g_assert_cmpstr(answer, ==, alone);
        search_result_clear(&results[r]);
    }
}

static void test_team(void)
{
    GRand *rand = g_rand_new_with_seed(19);
    for (int i = 0; i < DRAWS(6); i++) {
        g_autofree Spec *spec = fixture_space(rand, i, false);
        const SearchOptions options = {.jobs = 2};
        SearchResult result;
        GError *error = NULL;
        if (i % 2 == 1)
            spec->search.max_memory_frac = 0.05;
        search_run(spec, &options, &result, &error);
        g_assert_no_error(error);
        g_autofree char *alone = answer_of(&result);
        search_result_clear(&result);
        for (int ranks = 1; ranks <= FIXTURE_RANKS; ranks++)
            check_ranks(spec, ranks, alone);
    }
    g_rand_free(rand);
}

/* Time that is over at once leaves every point open, and the certificate still adds up. */
static void test_time(void)
{
    GRand *rand = g_rand_new_with_seed(23);
    g_autofree Spec *spec = fixture_space(rand, 0, false);
    SearchSpace *space = search_space_new(spec);
    const int64_t points = search_space_count(space);
    search_space_free(space);
    const double limits[] = {1e-9, 0.005, 0.02, 0.05};
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        const SearchOptions options = {.jobs = 1, .max_seconds = limits[i], .best_only = true};
        SearchResult result;
        GError *error = NULL;
        search_run(spec, &options, &result, &error);
        g_assert_no_error(error);
        int64_t sum = result.open + result.simulated - result.seeds;
        for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
            sum += result.pruned[kind];
        g_assert_cmpint(result.points, ==, points);
        g_assert_cmpint(sum, ==, points);
        g_assert_true(result.proved == (result.open == 0));
        if (i == 0)
            g_assert_cmpint(result.open, ==, points);
        if (!result.proved && result.best->len > 0)
            g_assert_cmpfloat(result.gap_frac, >=, 0);
        search_result_clear(&result);
    }
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/team", test_team);
    g_test_add_func("/search/time-limit", test_time);
    return g_test_run();
}
