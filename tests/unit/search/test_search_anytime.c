/* tests/unit/search/test_search_anytime.c - a search that is cut short: what it says is true, and it says something. */
#include <sys/resource.h>

#include "search/parallel.h"
#include "search/search.h"
#include "tests/unit/search_fixture.h"

typedef struct Patience {
    gint asked, until;
} Patience;

static bool lose_patience(void *data)
{
    Patience *patience = data;
    return g_atomic_int_add(&patience->asked, 1) >= patience->until;
}

static SearchResult find(const Spec *spec, double max_seconds, Patience *patience)
{
    const SearchOptions options = {.jobs = 2,
                                   .max_seconds = max_seconds,
                                   .stop = patience != NULL ? lose_patience : NULL,
                                   .stop_data = patience};
    SearchResult result;
    GError *error = NULL;
    search_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static int64_t step_of(const SearchResult *result)
{
    return result->best->len > 0 ? g_array_index(result->best, SearchRun, 0).step_ps : 0;
}

/* Every point is counted once; the gap holds; the best is never better than the true one. */
static void assert_honest(const SearchResult *cut, const SearchResult *whole)
{
    int64_t sum = cut->simulated - cut->seeds + cut->open;
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
        sum += cut->pruned[kind];
    g_assert_cmpint(sum, ==, cut->points);
    g_assert_cmpint(cut->points, ==, whole->points);
    if (cut->best->len > 0)
        g_assert_cmpint(step_of(cut), >=, step_of(whole));
    if (cut->proved)
        g_assert_cmpint(step_of(cut), ==, step_of(whole));
    else if (whole->best->len > 0 && step_of(cut) != step_of(whole))
        g_assert_cmpint(cut->least_open_ps, <=, step_of(whole));
    for (guint i = 1; i < cut->improvements->len; i++)
        g_assert_cmpint(g_array_index(cut->improvements, SearchImprovement, i).step_ps, <,
                        g_array_index(cut->improvements, SearchImprovement, i - 1).step_ps);
    if (cut->best->len > 0)
        g_assert_cmpint(
            g_array_index(cut->improvements, SearchImprovement, cut->improvements->len - 1).step_ps, ==,
            step_of(cut));
}

/* However short the time: where one point fits, one is found. */
static void test_no_time(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    int fitting = 0, open = 0, spaces = 0;
    for (int i = 0; spaces < 24; i++) {
        g_autofree Spec *spec = fixture_space(rand, i, true);
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0)
            continue;
        spaces++;
        if (i % 2 == 1)
            spec->search.max_memory_frac = 0.02 + 0.15 * g_rand_double(rand);
        SearchResult whole = find(spec, 0, NULL), cut = find(spec, 1e-9, NULL);
        assert_honest(&cut, &whole);
        g_assert_true((cut.best->len > 0) == (whole.best->len > 0));
        fitting += whole.best->len > 0;
        open += cut.open > 0;
        search_result_clear(&whole);
        search_result_clear(&cut);
    }
    g_test_message("%d spaces, something fits in %d, %d were cut short", spaces, fitting, open);
    g_assert_cmpint(fitting, >, 10);
    g_assert_cmpint(fitting, <, spaces);
    g_assert_cmpint(open, >, 10);
    g_rand_free(rand);
}

/* Stopped after any number of questions. */
static void test_stop(void)
{
    GRand *rand = g_rand_new_with_seed(9);
    int cut_short = 0;
    for (int i = 0; i < 12; i++) {
        g_autofree Spec *spec = fixture_space(rand, 3 * i, true);
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0)
            continue;
        SearchResult whole = find(spec, 0, NULL);
        for (int until = 0; until < 2000; until = 2 * until + 1) {
            Patience patience = {.until = until};
            SearchResult cut = find(spec, 0, &patience);
            assert_honest(&cut, &whole);
            cut_short += cut.open > 0;
            search_result_clear(&cut);
        }
        search_result_clear(&whole);
    }
    g_assert_cmpint(cut_short, >, 20);
    g_rand_free(rand);
}

static void count_up(int index, void *data)
{
    int *done = data;
    done[index]++;
}

/* Where no thread can be made (no room for its stack), the caller does the work. */
static void test_no_threads(void)
{
#if defined(__SANITIZE_ADDRESS__)
    g_test_skip("the sanitizer needs the address space");
#else
    struct rlimit before, none;
    int done[100] = {0};
    g_assert_cmpint(getrlimit(RLIMIT_AS, &before), ==, 0);
    none = before;
    none.rlim_cur = 1 << 20;
    g_assert_cmpint(setrlimit(RLIMIT_AS, &none), ==, 0);
    search_parallel(100, 4, count_up, done);
    g_assert_cmpint(setrlimit(RLIMIT_AS, &before), ==, 0);
    for (int i = 0; i < 100; i++)
        g_assert_cmpint(done[i], ==, 1);
    memset(done, 0, sizeof done);
    search_parallel(100, 4, count_up, done);
    for (int i = 0; i < 100; i++)
        g_assert_cmpint(done[i], ==, 1);
#endif
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/anytime/no-time", test_no_time);
    g_test_add_func("/search/anytime/stop", test_stop);
    g_test_add_func("/search/anytime/no-threads", test_no_threads);
    return g_test_run();
}
