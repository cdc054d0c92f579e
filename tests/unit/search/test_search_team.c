/* tests/unit/search/test_search_team.c - several processes give one process's answer: here each is a thread with a
 * search of its own, and the exchange is shared memory. */
#include <math.h>
#include <string.h>

#include "search/search.h"
#include "search/write_internal.h"
#include "tests/unit/search_fixture.h"

enum { MOST = 4 };

/* All bring their bytes, all take them away, and only then the next exchange begins. */
typedef struct Table {
    GMutex mutex;
    GCond cond;
    int ranks, arrived, left;
    const GByteArray *brought[MOST];
} Table;

typedef struct Seat {
    Table *table;
    SearchTeam team;
    const Spec *spec;
    SearchResult result;
} Seat;

static void exchange(void *data, const GByteArray *mine, GByteArray **all)
{
    Seat *seat = data;
    Table *table = seat->table;
    g_mutex_lock(&table->mutex);
    while (table->left > 0)
        g_cond_wait(&table->cond, &table->mutex);
    table->brought[seat->team.rank] = mine;
    table->arrived++;
    if (table->arrived == table->ranks) {
        table->left = table->ranks;
        g_cond_broadcast(&table->cond);
    }
    while (table->left == 0)
        g_cond_wait(&table->cond, &table->mutex);
    for (int r = 0; r < table->ranks; r++)
        g_byte_array_append(all[r], table->brought[r]->data, table->brought[r]->len);
    if (--table->left == 0)
        table->arrived = 0;
    g_cond_broadcast(&table->cond);
    while (table->left > 0) /* what was brought stays until all have it */
        g_cond_wait(&table->cond, &table->mutex);
    g_mutex_unlock(&table->mutex);
}

static gpointer sit(gpointer data)
{
    Seat *seat = data;
    const SearchOptions options = {.jobs = 1, .team = &seat->team};
    GError *error = NULL;
    search_run(seat->spec, &options, &seat->result, &error);
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
    Table table = {.ranks = ranks};
    Seat seats[MOST];
    GThread *threads[MOST];
    g_mutex_init(&table.mutex);
    g_cond_init(&table.cond);
    for (int r = 0; r < ranks; r++) {
        seats[r] = (Seat){.table = &table, .spec = spec};
        seats[r].team = (SearchTeam){.rank = r, .ranks = ranks, .exchange = exchange, .data = &seats[r]};
        threads[r] = g_thread_new("rank", sit, &seats[r]);
    }
    for (int r = 0; r < ranks; r++)
        g_thread_join(threads[r]);
    for (int r = 0; r < ranks; r++) {
        g_autofree char *answer = answer_of(&seats[r].result);
        g_assert_cmpstr(answer, ==, alone);
        search_result_clear(&seats[r].result);
    }
    g_mutex_clear(&table.mutex);
    g_cond_clear(&table.cond);
}

static void test_team(void)
{
    GRand *rand = g_rand_new_with_seed(19);
    for (int i = 0; i < 6; i++) {
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
        for (int ranks = 1; ranks <= MOST; ranks++)
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
