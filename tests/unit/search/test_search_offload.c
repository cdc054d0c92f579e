/* tests/unit/search/test_search_offload.c - "auto" in `offload`: every scheme and share of the update is a point,
 * bounds stay bounds, and what the node cannot hold does not fit. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/bound.h"
#include "search/search.h"
#include "search/walk.h"
#include "spec/load.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_run_fixture.h"

static Spec *loaded(const char *text, const char *const *sets)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", sets, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char small[] =
    "{\"model\":{\"name\":\"m\",\"layers\":4,\"hidden\":1024,\"heads\":8,\"ffn_hidden\":4096,\"vocab\":32000,"
    "\"max_positions\":1024},\"cluster\":{\"preset\":\"dgx-2\",\"gpus_per_node\":4},"
    "\"training\":{\"sequence_length\":1024,\"global_batch\":8,\"micro_batch\":\"auto\",\"precision\":"
    "\"fp16\","
    "\"recompute\":\"auto\"},\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"data\":\"auto\","
    "\"zero\":\"auto\"},\"execution\":{\"framework\":\"deepspeed-2021\"},\"offload\":\"auto\"}";

/* The same points in the same order, whatever is left out. */
static void assert_proved(const Spec *spec)
{
    SearchResult pruned = fixture_find(spec, false, 2, 8), all = fixture_find(spec, true, 2, 8);
    const GArray *a = pruned.best->len > 0 ? pruned.best : pruned.misses,
                 *b = all.best->len > 0 ? all.best : all.misses;
    g_assert_true(pruned.proved);
    g_assert_cmpuint(pruned.best->len, ==, all.best->len);
    for (guint i = 0; i < MIN(a->len, all.best->len > 0 ? b->len : 0); i++) {
        const SearchRun *x = &g_array_index(a, SearchRun, i), *y = &g_array_index(b, SearchRun, i);
        g_assert_cmpint(search_id_compare(&x->id, &y->id), ==, 0);
        g_assert_cmpint(x->step_ps, ==, y->step_ps);
    }
    search_result_clear(&pruned);
    search_result_clear(&all);
}

static void test_exhaustive(void)
{
    static const char *const memories[] = {"2.4 GB", "2.8 GB", "3.4 GB", "5 GB", "9 GB"};
    static const char *const hosts[] = {"1 GB", "4 GB", "1.5 TB"};
    static const char *const frameworks[] = {"deepspeed-2021", "deepspeed"};
    GRand *rand = g_rand_new_with_seed((guint32)g_test_rand_int());
    for (int i = 0; i < (g_test_slow() ? 40 : DRAWS(8)); i++) {
        g_autofree char *memory = g_strdup_printf("cluster.accelerator.memory_bytes=\"%s\"",
                                                  memories[g_rand_int_range(rand, 0, 5)]);
        g_autofree char *host =
            g_strdup_printf("cluster.host.dram_bytes=\"%s\"", hosts[g_rand_int_range(rand, 0, 3)]);
        g_autofree char *gpus =
            g_strdup_printf("cluster.gpus_per_node=%d", 1 << g_rand_int_range(rand, 0, 3));
        g_autofree char *framework =
            g_strdup_printf("execution.framework=%s", frameworks[g_rand_int_range(rand, 0, 2)]);
        g_autofree Spec *spec = loaded(small, SETS(memory, host, gpus, framework));
        assert_proved(spec);
    }
    g_rand_free(rand);
}

/* No bound of a point is above what its run takes. Returns the sum of all bounds over that of their runs.
 * ret_tried: schemes of the points. */
static double bounded(const Spec *spec, bool ret_tried[SPEC_OFFLOAD_SCHEME_COUNT])
{
    SearchSpace *space = search_space_new(spec);
    SearchTables *tables = search_tables_new(space);
    SearchWorker *worker = search_worker_new(space, tables);
    double bounds = 0, runs = 0;
    for (int g = 0; g < space->group_count; g++) {
        const SearchGroup *group = &space->groups[g];
        int policies = 0;
        g_free(search_policies(space, group, &policies));
        for (int d = 0; d < group->partitions->count; d++)
            for (int p = 0; p < policies; p++) {
                const SearchId id = {.group = g, .partition = (int16_t)d, .policy = p};
                SearchRun run = {0};
                int64_t least_ps = 0;
                double least_bytes = 0;
                if (!search_partition_valid(space, group, &group->partitions->partition[d]) ||
                    !search_simulate(space, id, 1e15, &run))
                    continue;
                search_bound_point(worker, id, &least_ps, &least_bytes);
                g_assert_cmpint(least_ps, <=, run.step_ps);
                g_assert_cmpfloat(least_bytes, <=, run.reserved_bytes + 1); /* what fits is decided by */
                ret_tried[space->offloads[group->scheme].scheme] = true;
                bounds += (double)least_ps;
                runs += (double)run.step_ps;
            }
    }
    search_worker_free(worker);
    search_tables_free(tables);
    search_space_free(space);
    return bounds / runs;
}

/* Buckets of tensors, dealt from the first on or filled from the last: bounds hold, say of the reductions what one of all
 * bytes takes, and nothing that they leave out was the best. A slow network makes reductions most of the step. */
static void test_buckets_of(const char *deal)
{
    static const char *const sizes[] = {"execution.framework.data_parallel.bucket_bytes=1e5",
                                        "execution.framework.data_parallel.bucket_bytes=25e6",
                                        "execution.framework.data_parallel.bucket_bytes=0"};
    static const char *const overlaps[] = {"execution.overlap=[\"grad_reduce\"]", "execution.overlap=[]"};
    bool tried[SPEC_OFFLOAD_SCHEME_COUNT] = {false};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (gsize o = 0; o < G_N_ELEMENTS(overlaps); o++) {
            const char *const *sets =
                SETS("offload=none", "execution.framework=megatron-core", "parallel.tensor=1",
                     "parallel.zero=1", "parallel.pipeline=1", "cluster.nodes=2", "cluster.gpus_per_node=2",
                     "cluster.scale_up_domain_gpus=2", "cluster.scale_out_bytes_per_s_per_gpu=2e8",
                     overlaps[o], sizes[i], deal);
            g_autofree Spec *spec = loaded(small, sets),
                            *open = loaded(small, SETS("offload=none", "execution.framework=megatron-core",
                                                       overlaps[o], sizes[i], deal));
            assert_proved(spec);
            assert_proved(open);
            bounded(open, tried);
            const double share = bounded(spec, tried);
            g_test_message("%s, %s: bounds are %.2f of the runs", sizes[i], overlaps[o], share);
            g_assert_cmpfloat(share, >, 0.9); /* 0.03 of the passes alone */
        }
}

static void test_dealt_buckets(void)
{
    test_buckets_of("execution.framework.data_parallel.bucket_fill=from-first");
}

static void test_filled_buckets(void)
{
    test_buckets_of("execution.framework.data_parallel.bucket_fill=from-last");
}

/* Layers in tiles cost the search what they cost a run. */
static void test_tiles(void)
{
    bool tried[SPEC_OFFLOAD_SCHEME_COUNT] = {false};
    g_autofree Spec *spec =
        loaded(small, SETS("parallel.zero=3", "parallel.weight_tiles=4", "training.mlp_tiles=4",
                           "search.offload=[\"none\",\"zero3-offload\"]"));
    assert_proved(spec);
    bounded(spec, tried);
    g_assert_true(tried[SPEC_OFFLOAD_NONE] && tried[SPEC_OFFLOAD_ZERO3_OFFLOAD]);
}

static void test_bounds(void)
{
    bool tried[SPEC_OFFLOAD_SCHEME_COUNT] = {false};
    g_autofree Spec *spec = loaded(small, SETS("training.micro_batch=2", "training.recompute=none"));
    bounded(spec, tried);
    for (int i = 0; i < SPEC_OFFLOAD_SCHEME_COUNT; i++)
        g_assert_cmpint(tried[i], ==,
                        i == 0 || (spec->execution.framework.optimizer.offload_schemes & 1u << i) != 0);
}

/* 13 billion parameters on one V100 of 32 GB: only with states off it; on a host too small for them nothing fits. */
static void test_13b(void)
{
    static const char *const sets[] = {"model.layers=63",
                                       "model.hidden=4096",
                                       "model.heads=32",
                                       "model.ffn_hidden=16384",
                                       "cluster.gpus_per_node=1",
                                       "training.global_batch=4",
                                       "training.micro_batch=4",
                                       "training.recompute=full",
                                       NULL,
                                       NULL};
    const char *poor[G_N_ELEMENTS(sets)];
    memcpy(poor, sets, sizeof sets);
    poor[8] = "cluster.host.dram_bytes=\"64 GB\"";
    poor[9] = NULL;
    const char *more[G_N_ELEMENTS(sets) + 1] = {NULL};
    memcpy(more, poor, sizeof poor);
    more[9] = "cluster.host.nvme_bytes=0";
    g_autofree Spec *spec = loaded(small, sets), *host = loaded(small, more), *chosen = g_new(Spec, 1);
    SearchResult result = fixture_find(spec, false, 2, 8);
    g_assert_cmpuint(result.best->len, >, 0);
    search_point_spec(result.space, g_array_index(result.best, SearchRun, 0).id, chosen);
    g_assert_true(spec_offloads_states(&chosen->offload));
    search_result_clear(&result);
    result = fixture_find(host, false, 2, 8);
    g_assert_cmpuint(result.best->len, ==, 0);
    search_result_clear(&result);
}

/* A point, written as a scenario, is the point. */
static void test_named(void)
{
    g_autofree Spec *spec = loaded(small, SETS("search.offload=[\"twin-flow\"]"));
    SearchSpace *space = search_space_new(spec);
    g_assert_cmpint(space->offload_count, ==, 4); /* fifths of the update */
    for (int i = 0; i < space->offload_count; i++)
        g_assert_cmpfloat_with_epsilon(space->offloads[i].ratio, 0.2 * (i + 1), 1e-12);
    search_space_free(space);
    g_autofree Spec *fixed = loaded(small, SETS("offload={\"scheme\":\"auto\",\"ratio\":0.5}",
                                                "search.offload=[\"twin-flow\",\"none\"]"));
    space = search_space_new(fixed);
    g_assert_cmpint(space->offload_count, ==, 2);
    g_assert_cmpfloat(space->offloads[1].ratio, ==, 0.5);
    search_space_free(space);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search-offload/dealt-buckets", test_dealt_buckets);
    g_test_add_func("/search-offload/filled-buckets", test_filled_buckets);
    g_test_add_func("/search-offload/exhaustive", test_exhaustive);
    g_test_add_func("/search-offload/tiles", test_tiles);
    g_test_add_func("/search-offload/bounds", test_bounds);
    g_test_add_func("/search-offload/13b", test_13b);
    g_test_add_func("/search-offload/named", test_named);
    return g_test_run();
}
