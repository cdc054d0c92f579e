/* tests/unit/search/test_search_anytime.c - a search that is cut short: what it says is true, and it says something. */
#include <sys/resource.h>

#include "base/crew.h"
#include "base/file.h"
#include "search/search.h"
#include "tests/unit/draws.h"
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
    const SearchOptions options = {
        .jobs = 2, .max_seconds = max_seconds, .stop = {patience != NULL ? lose_patience : NULL, patience}};
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
    for (int i = 0; spaces < DRAWS(24); i++) {
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
    g_assert_cmpint(fitting, >, DRAWS(8));
    g_assert_cmpint(fitting, <, spaces);
    g_assert_cmpint(open, >, DRAWS(8));
    g_rand_free(rand);
}

/* Stopped after any number of questions. */
static void test_stop(void)
{
    GRand *rand = g_rand_new_with_seed(9);
    int cut_short = 0;
    for (int i = 0; i < DRAWS(12); i++) {
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
    g_assert_cmpint(cut_short, >, DRAWS(20));
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
    orr_crew(100, 4, NULL, count_up, done);
    g_assert_cmpint(setrlimit(RLIMIT_AS, &before), ==, 0);
    for (int i = 0; i < 100; i++)
        g_assert_cmpint(done[i], ==, 1);
    memset(done, 0, sizeof done);
    orr_crew(100, 4, NULL, count_up, done);
    for (int i = 0; i < 100; i++)
        g_assert_cmpint(done[i], ==, 1);
#endif
}

/* The first progress is told when the seeds are over and the tables begin. */
static void note_progress(const SearchNews *news, void *data)
{
    g_assert_true(news->best == NULL || news->best->fits);
    g_atomic_int_set((gint *)data, 1);
}

static bool has_progress(void *data)
{
    return g_atomic_int_get((gint *)data) != 0;
}

static SearchResult seeds_of(const Spec *spec)
{
    gint told = 0;
    const SearchOptions options = {.jobs = 2,
                                   .best_only = true,
                                   .stop = {has_progress, &told},
                                   .progress = note_progress,
                                   .progress_data = &told};
    SearchResult result;
    g_assert_true(search_run(spec, &options, &result, NULL));
    return result;
}

/* The best of large spaces, as a proof found them, is like no layout that the seeds begin with: another schedule, and
 * other degrees than the best of the schedule that they try first. What they end with takes at most 3 % longer. */
static void test_seeds(void)
{
    static const struct {
        const char *machine[5], *best[14];
    } cases[] = {
        {{NULL},
         {"parallel.tensor=2", "parallel.sequence_parallel=true", "parallel.context=1", "parallel.pipeline=8",
          "parallel.expert=64", "parallel.expert_tensor=1", "parallel.schedule=dualpipev",
          "training.micro_batch=1", "parallel.zero=1", "execution.attention=flash3",
          "parallel.embedding_as_layer=true", "training.recompute=none"}},
        {{"model=gpt-oss-120b", "cluster.preset=dgx-h100", "cluster.nodes=128", "training.global_batch=1280"},
         {"parallel.tensor=4", "parallel.sequence_parallel=true", "parallel.context=1", "parallel.pipeline=2",
          "parallel.expert=32", "parallel.expert_tensor=1", "parallel.schedule=breadth-first",
          "training.micro_batch=5", "parallel.zero=1", "execution.attention=flash3",
          "parallel.embedding_as_layer=true", "parallel.loss_as_layer=true", "training.recompute=none"}}};
    g_autofree char *folder = orr_scenarios_dir(NULL);
    g_autofree char *path = g_build_filename(folder, "examples", "search-deepseek-v3.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *open = g_new0(Spec, 1), *fixed = g_new0(Spec, 1);
        const char *sets[G_N_ELEMENTS(cases[i].machine) + G_N_ELEMENTS(cases[i].best)] = {NULL};
        gsize count = 0;
        for (gsize k = 0; cases[i].machine[k] != NULL; k++)
            sets[count++] = cases[i].machine[k];
        g_assert_true(spec_load_file(path, sets, true, open, NULL, NULL));
        for (gsize k = 0; cases[i].best[k] != NULL; k++)
            sets[count++] = cases[i].best[k];
        g_assert_true(spec_load_file(path, sets, true, fixed, NULL, NULL));
        SearchResult seeds = seeds_of(open), best = find(fixed, 0, NULL);
        g_test_message("%.4f s after %d simulations, %.4f s", 1e-12 * (double)step_of(&seeds),
                       (int)seeds.simulated, 1e-12 * (double)step_of(&best));
        g_assert_false(seeds.proved);
        g_assert_cmpint(seeds.simulated, <=, 100);
        g_assert_cmpint(step_of(&best), >, 0);
        g_assert_cmpfloat((double)step_of(&seeds), <=, 1.03 * (double)step_of(&best));
        search_result_clear(&seeds);
        search_result_clear(&best);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/anytime/no-time", test_no_time);
    g_test_add_func("/search/anytime/stop", test_stop);
    g_test_add_func("/search/anytime/no-threads", test_no_threads);
    g_test_add_func("/search/anytime/seeds", test_seeds);
    return g_test_run();
}
