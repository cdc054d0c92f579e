/* tests/unit/search/test_mixed_search.c - searches over mixed clusters: the answer of every point simulated, no bound above
 * what the engine finds, groups that are alike as the plain cluster. */
#include <string.h>

#include "search/choose.h"
#include "search/hardware.h"
#include "search/walk.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/search_run_fixture.h"

/* A random small space whose nodes are of two or three kinds: speeds, links and memories of their own. `memory`: cards are so
 * small that some points do not fit. */
static Spec *mixed_space(GRand *rand, int number, bool few, bool memory)
{
    Spec *spec = fixture_space(rand, number, few);
    SpecCluster *cluster = &spec->cluster;
    cluster->group_count = g_rand_int_range(rand, 2, 4);
    cluster->nodes = 0;
    for (int g = 0; g < cluster->group_count; g++) {
        SpecGroup *own = &cluster->groups[g];
        *own = (SpecGroup){.accelerator = cluster->accelerator,
                           .nodes = g_rand_int_range(rand, 1, 3),
                           .gpus_per_node = cluster->gpus_per_node,
                           .scale_up_domain_gpus = cluster->scale_up_domain_gpus,
                           .scale_up_bytes_per_s = cluster->scale_up_bytes_per_s,
                           .scale_out_bytes_per_s_per_gpu = cluster->scale_out_bytes_per_s_per_gpu,
                           .scale_out_latency_s = cluster->scale_out_latency_s,
                           .topology = cluster->topology,
                           .collectives = cluster->collectives,
                           .host = cluster->host};
        g_snprintf(own->name, sizeof own->name, "kind%d", g);
        for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
            own->accelerator.peak_flops_per_s[dtype] *= g == 0 ? 1 : g_rand_double_range(rand, .2, 1.5);
        own->accelerator.memory_bytes_per_s *= g == 0 ? 1 : g_rand_double_range(rand, .3, 1.5);
        own->scale_out_bytes_per_s_per_gpu *= g == 0 ? 1 : g_rand_double_range(rand, .1, 1.5);
        own->accelerator.memory_bytes *= memory ? g_rand_double_range(rand, .03, .2) : 1;
        cluster->nodes += own->nodes;
    }
    cluster->accelerator.memory_bytes = cluster->groups[0].accelerator.memory_bytes;
    return spec;
}

static int64_t points_of(const Spec *spec)
{
    SearchSpace *space = search_space_new(spec);
    const int64_t count = search_space_count(space);
    search_space_free(space);
    return count;
}

static void compare(const Spec *spec, int top, int64_t *points, int64_t *simulated, int *none_fit)
{
    SearchResult pruned = fixture_find(spec, false, 2, top), all = fixture_find(spec, true, 2, top);
    int64_t sum = pruned.simulated - pruned.seeds;
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
        sum += pruned.pruned[kind];
    g_assert_cmpint(sum, ==, pruned.points);
    g_assert_cmpint(pruned.points, ==, all.points);
    g_assert_cmpint(all.simulated, ==, all.points);
    fixture_assert_same(pruned.best, all.best);
    *points += all.points;
    *simulated += pruned.simulated;
    *none_fit += all.best->len == 0;
    search_result_clear(&pruned);
    search_result_clear(&all);
}

static void test_exhaustive(void)
{
    GRand *rand = g_rand_new_with_seed(71);
    int64_t points = 0, simulated = 0;
    int none_fit = 0, spaces = 0;
    for (int i = 0; spaces < DRAWS(12); i++) {
        g_autofree Spec *spec = mixed_space(rand, i, true, i % 2 == 1);
        const int64_t count = points_of(spec);
        if (count == 0 || count > 500)
            continue;
        compare(spec, 5, &points, &simulated, &none_fit);
        spaces++;
    }
    g_test_message("%d spaces, in %d nothing fits: %" G_GINT64_FORMAT " points, %" G_GINT64_FORMAT
                   " simulated by the pruned search",
                   spaces, none_fit, (gint64)points, (gint64)simulated);
    g_assert_cmpint(simulated, <, points / 2);
    g_assert_cmpint(none_fit, <, spaces / 2);
    g_rand_free(rand);
}

/* Layers, micro-batches or both dealt out anew at every point. */
static void test_dealt(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    int64_t points = 0, simulated = 0;
    int none_fit = 0, spaces = 0;
    for (int i = 0; spaces < DRAWS(6) + 1; i++) {
        g_autofree Spec *spec = mixed_space(rand, i, true, i % 3 == 1);
        const int which = spaces % 3;
        if (which != 1)
            spec->parallel.stage_layers_count = SPEC_AUTO;
        if (which != 0)
            spec->parallel.replica_microbatches_count = SPEC_AUTO;
        const int64_t count = points_of(spec);
        if (count < 20 || count > 120)
            continue;
        compare(spec, 1, &points, &simulated, &none_fit);
        spaces++;
    }
    g_test_message("%d spaces, in %d nothing fits: %" G_GINT64_FORMAT " points, %" G_GINT64_FORMAT
                   " simulated by the pruned search",
                   spaces, none_fit, (gint64)points, (gint64)simulated);
    g_assert_cmpint(simulated, <, points);
    g_rand_free(rand);
}

/* Schemes of offloading "auto", hosts of two kinds; where a host's GPUs are not all of one kind the simulator refuses. */
static void test_offload(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":1024,\"heads\":16,\"kv_heads\":16,"
        "\"ffn_hidden\":4096,\"vocab\":32000},\"cluster\":{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},"
        "{\"preset\":\"dgx-a100-80gb\",\"nodes\":1,\"host\":{\"dram_bytes_per_s\":1e11}}]},"
        "\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"data\":\"auto\",\"zero\":\"auto\"},"
        "\"offload\":{\"scheme\":\"auto\"},\"training\":{\"sequence_length\":1024,\"global_batch\":32,"
        "\"micro_batch\":1,\"recompute\":\"full\"},\"execution\":{\"framework\":\"deepspeed\"}}";
    g_autofree Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    int64_t points = 0, simulated = 0;
    int none_fit = 0;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "offload", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "offload", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    compare(spec, 3, &points, &simulated, &none_fit);
    g_test_message("%" G_GINT64_FORMAT " points, %" G_GINT64_FORMAT " simulated", points, simulated);
    g_assert_cmpint(simulated, <, points);
    g_assert_cmpint(none_fit, ==, 0);
}

/* --- bounds --- */

static void check_point(SearchWorker *worker, SearchSpace *space, SearchId id, double *gap)
{
    const double most = search_hardware_most_bytes(space->spec);
    int64_t least_ps = 0, replay_ps = 0;
    double least_bytes = 0, replay_bytes = 0;
    SearchRun run = {0};
    if (!search_simulate(space, id, most, &run)) /* what the simulator refuses has no time */
        return;
    fixture_fill_table(worker->tables, &space->groups[id.group]);
    search_bound_point(worker, id, &least_ps, &least_bytes);
    search_replay_point(worker, id, &replay_ps, &replay_bytes);
    g_assert_cmpint(least_ps, <=, run.step_ps);
    g_assert_cmpint(replay_ps, <=, run.step_ps);
    if (run.fits)
        g_assert_cmpfloat(MAX(least_bytes, replay_bytes), <=, most + 1);
    *gap += 1 - (double)replay_ps / (double)run.step_ps;
}

static void test_bounds(void)
{
    GRand *rand = g_rand_new_with_seed(20261123);
    double gap = 0;
    int count = 0;
    for (int i = 0; i < 24; i++) {
        g_autofree Spec *spec = mixed_space(rand, i, false, i % 3 == 2);
        if (i % 6 == 0)
            spec->parallel.stage_layers_count = SPEC_AUTO;
        if (i % 12 < 2)
            spec->parallel.replica_microbatches_count = SPEC_AUTO;
        SearchSpace *space = search_space_new(spec);
        if (search_space_count(space) > 0) {
            SearchTables *tables = search_tables_new(space);
            SearchWorker *worker = search_worker_new(space, tables);
            for (int k = 0; k < DRAWS(48); k++, count++)
                check_point(worker, space, fixture_random_id(rand, space), &gap);
            search_worker_free(worker);
            search_tables_free(tables);
        }
        search_space_free(space);
    }
    g_test_message("%d points, bounds below by %.1f %%", count, 100 * gap / count);
    g_assert_cmpint(count, >, DRAWS(700));
    g_rand_free(rand);
}

/* Groups that are alike: points, times and proof of the plain cluster. */
static void test_alike(void)
{
    GRand *rand = g_rand_new_with_seed(9);
    for (int i = 0; i < 6; i++) {
        g_autofree Spec *mixed = mixed_space(rand, i, true, false), *plain = NULL;
        for (int g = 1; g < mixed->cluster.group_count; g++) {
            const int nodes = mixed->cluster.groups[g].nodes;
            mixed->cluster.groups[g] = mixed->cluster.groups[0];
            mixed->cluster.groups[g].nodes = nodes;
        }
        plain = g_memdup2(mixed, sizeof *mixed);
        plain->cluster.group_count = 0;
        if (points_of(mixed) == 0)
            continue;
        SearchResult a = fixture_find(mixed, false, 2, 5), b = fixture_find(plain, false, 2, 5);
        g_assert_cmpuint(a.best->len, ==, b.best->len);
        for (guint k = 0; k < a.best->len; k++)
            g_assert_cmpint(g_array_index(a.best, SearchRun, k).step_ps, ==,
                            g_array_index(b.best, SearchRun, k).step_ps);
        search_result_clear(&a);
        search_result_clear(&b);
    }
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mixed-search/offload", test_offload);
    g_test_add_func("/mixed-search/exhaustive", test_exhaustive);
    if (!SANITIZED) /* "bounds" deals out layers and micro-batches too */
        g_test_add_func("/mixed-search/dealt", test_dealt);
    g_test_add_func("/mixed-search/bounds", test_bounds);
    g_test_add_func("/mixed-search/alike", test_alike);
    return g_test_run();
}
