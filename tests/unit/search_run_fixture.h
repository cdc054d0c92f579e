/* tests/unit/search_run_fixture.h - searches that must not fail, answers that must be the same, points at random. */
#ifndef ORR_TESTS_SEARCH_RUN_FIXTURE_H
#define ORR_TESTS_SEARCH_RUN_FIXTURE_H

#include "search/costs.h"
#include "search/search.h"
#include "search/space_parts.h"

/* Free with search_result_clear. */
static inline SearchResult fixture_find(const Spec *spec, bool exhaustive, int jobs, int top)
{
    const SearchOptions options = {.exhaustive = exhaustive, .jobs = jobs, .top = top};
    SearchResult result;
    GError *error = NULL;
    search_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static inline void fixture_assert_same(const GArray *a, const GArray *b)
{
    g_assert_cmpuint(a->len, ==, b->len);
    for (guint i = 0; i < a->len; i++) {
        const SearchRun *x = &g_array_index(a, SearchRun, i), *y = &g_array_index(b, SearchRun, i);
        g_assert_cmpint(search_id_compare(&x->id, &y->id), ==, 0);
        g_assert_cmpint(x->step_ps, ==, y->step_ps);
        g_assert_cmpfloat(x->reserved_bytes, ==, y->reserved_bytes);
    }
}

/* A point of the space, which has one. */
static inline SearchId fixture_random_id(GRand *rand, SearchSpace *space)
{
    g_autofree SpecRecompute *recomputes = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    for (;;) {
        SearchId id = {.group = g_rand_int_range(rand, 0, space->group_count)};
        const SearchGroup *group = &space->groups[id.group];
        id.partition = (int16_t)g_rand_int_range(rand, 0, group->partitions->count);
        const SearchPartition *partition = &group->partitions->partition[id.partition];
        if (!search_partition_valid(space, group, partition))
            continue;
        int policies = 0;
        g_free(search_policies(space, group, &policies));
        id.recompute = (int16_t)g_rand_int_range(rand, 0, search_recomputes(space, partition, recomputes));
        id.policy = g_rand_int_range(rand, 0, policies);
        return id;
    }
}

/* The totals of a group's table: of a random space thousands are possible, and few points are drawn. */
static inline void fixture_fill_table(SearchTables *tables, const SearchGroup *group)
{
    if (tables->totals[group->costs].chain_ps == 0)
        search_tables_fill(tables, group->costs, 1, 1, 0, 1);
}

#endif
