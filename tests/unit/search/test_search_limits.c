/* tests/unit/search/test_search_limits.c - the user's limits: what they leave out is counted, nothing else is lost,
 * and what does not fit says which limit it is short of. */
#include <string.h>

#include "search/limits.h"
#include "search/walk.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/search_run_fixture.h"

/* Two nodes of four GPUs; `more`: the `search` object and what follows it. */
static Spec *scenario(const char *more)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":8192,"
        "\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"gpus_per_node\":4,\"nodes\":2},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":32,\"micro_batch\":\"auto\","
        "\"recompute\":\"auto\"},"
        "\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"data\":\"auto\",\"zero\":\"auto\"},"
        "%s}",
        more);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "limits", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "limits", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

static Spec *point(const SearchResult *result, guint i)
{
    Spec *spec = g_new(Spec, 1);
    search_point_spec(result->space, g_array_index(result->best, SearchRun, i).id, spec);
    return spec;
}

/* With a limit: the points that keep it, and no others; what is left out is counted. */
static void test_degrees(void)
{
    static const struct {
        const char *search;
        SearchUserLimit limit;
    } cases[] = {
        {"\"max_tensor_nodes\":1", SEARCH_USER_TENSOR_NODES},
        {"\"max_micro_batch_tokens\":4096", SEARCH_USER_MICRO_BATCH_TOKENS},
    };
    g_autofree Spec *open = scenario("\"search\":{\"tensor\":[1,2,4,8]}");
    SearchResult all = fixture_find(open, true, 2, 100000);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *more = g_strdup_printf("\"search\":{\"tensor\":[1,2,4,8],%s}", cases[i].search);
        g_autofree Spec *spec = scenario(more);
        SearchResult limited = fixture_find(spec, true, 2, 100000);
        guint kept = 0;
        for (guint k = 0; k < all.best->len; k++) {
            g_autofree Spec *one = point(&all, k);
            kept += cases[i].limit == SEARCH_USER_TENSOR_NODES ? one->parallel.tensor <= 4
                                                               : one->training.micro_batch <= 2;
        }
        g_assert_cmpuint(kept, <, all.best->len);
        g_assert_cmpuint(limited.best->len, ==, kept);
        g_assert_cmpint(limited.points + limited.space->beyond[cases[i].limit], ==, all.points);
        search_result_clear(&limited);
    }
    search_result_clear(&all);
}

/* Where tensor ranks are not neighbours, a group of two spans two nodes. */
static void test_order(void)
{
    g_autofree Spec *spec = scenario("\"search\":{\"max_tensor_nodes\":1}");
    SearchGroup group = {.tensor = 2, .context = 1, .pipeline = 1, .data = 4, .expert = 1, .micro_batch = 1};
    SearchSpace space = {.spec = spec, .rank_orders = {"tp-cp-ep-dp-pp", "dp-tp-cp-ep-pp"}};
    g_assert_cmpint(search_limits_broken(&space, &group), ==, -1);
    group.order = 1;
    g_assert_cmpint(search_limits_broken(&space, &group), ==, SEARCH_USER_TENSOR_NODES);
    group.data = 2; /* ranks 0 and 2 share the node */
    group.pipeline = 2;
    g_assert_cmpint(search_limits_broken(&space, &group), ==, -1);
    spec->cluster.gpus_per_node = 3; /* ranks 2 and 4, of nodes 0 and 1 */
    g_assert_cmpint(search_limits_broken(&space, &group), ==, SEARCH_USER_TENSOR_NODES);
}

/* The smallest limit counts, and a run that is beyond it says so. */
static void test_memory(void)
{
    static const struct {
        const char *search, *field;
        double capacity;
    } cases[] = {
        {"", "cluster.accelerator.memory_bytes", 0},
        {"\"max_memory_bytes\":\"5 GB\"", "search.max_memory_bytes", 5e9},
        {"\"max_memory_bytes\":\"5 GB\",\"max_memory_frac\":0.9", "search.max_memory_bytes", 5e9},
        {"\"reserve_memory_bytes\":\"80.5 GB\",\"max_memory_frac\":0.9", "search.reserve_memory_bytes",
         -80.5e9},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *more = g_strdup_printf("\"search\":{%s}", cases[i].search);
        g_autofree Spec *spec = scenario(more);
        const char *field = NULL;
        const double all = spec->cluster.accelerator.memory_bytes,
                     capacity = search_limits_capacity_bytes(spec, &field);
        g_assert_cmpstr(field, ==, cases[i].field);
        g_assert_cmpfloat(capacity, ==, cases[i].capacity > 0 ? cases[i].capacity : all + cases[i].capacity);
        SearchResult pruned = fixture_find(spec, false, 2, 100000),
                     whole = fixture_find(spec, true, 2, 100000);
        g_assert_cmpuint(pruned.best->len, ==, whole.best->len);
        for (guint k = 0; k < pruned.best->len; k++) {
            const SearchRun *run = &g_array_index(pruned.best, SearchRun, k);
            g_assert_cmpfloat(run->peak_bytes + spec->execution.framework.allocator.context_bytes, <=,
                              capacity);
            g_assert_cmpint(search_id_compare(&run->id, &g_array_index(whole.best, SearchRun, k).id), ==, 0);
        }
        for (guint k = 0; k < pruned.misses->len; k++)
            g_assert_cmpstr(search_limits_short_of(spec, &g_array_index(pruned.misses, SearchRun, k)), ==,
                            field);
        g_assert_true(i == 0 || pruned.misses->len > 0);
        search_result_clear(&pruned);
        search_result_clear(&whole);
    }
}

static void test_host(void)
{
    g_autofree Spec *spec =
        scenario("\"offload\":{\"activation_layers\":1},\"search\":{\"max_host_bytes_per_node\":\"1 GB\"}");
    SearchResult pruned = fixture_find(spec, false, 2, 100000), whole = fixture_find(spec, true, 2, 100000);
    g_assert_cmpuint(whole.best->len, >, 0);
    g_assert_cmpint(whole.best->len, <, whole.points);
    g_assert_cmpuint(pruned.best->len, ==, whole.best->len);
    g_assert_cmpuint(pruned.misses->len, >, 0);
    const SearchRun *miss = &g_array_index(pruned.misses, SearchRun, 0);
    g_assert_cmpstr(search_limits_short_of(spec, miss), ==, "search.max_host_bytes_per_node");
    g_assert_cmpfloat(4 * (miss->host_bytes - miss->short_bytes), ==, 1e9);
    /* A limit just large enough for it takes it in. */
    spec->search.max_host_bytes_per_node += 4 * miss->short_bytes;
    g_autofree Spec *one = g_new(Spec, 1);
    SearchRun run;
    search_point_spec(pruned.space, miss->id, one);
    one->search = spec->search;
    g_assert_true(search_simulate_spec(one, search_limits_capacity_bytes(one, NULL), &run));
    g_assert_true(run.fits);
    search_result_clear(&pruned);
    search_result_clear(&whole);
}

/* Nothing is left: the error names the limit. */
static void test_refused(void)
{
    static const char *const cases[][2] = {
        {"\"search\":{\"max_batch_tokens\":1000}", "search.max_batch_tokens leaves out"},
        {"\"search\":{\"max_micro_batch_tokens\":1000}", "search.max_micro_batch_tokens leaves out"},
        {"\"search\":{\"tensor\":[8],\"max_tensor_nodes\":1}", "search.max_tensor_nodes leaves out"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = scenario(cases[i][0]);
        const SearchOptions options = {.jobs = 1};
        SearchResult result;
        GError *error = NULL;
        g_assert_false(search_run(spec, &options, &result, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_error_free(error);
    }
}

/* What lacks of a GPU's memory or of its part of a node's, whichever is more. */
static void test_short(void)
{
    static const struct {
        double needed, host, lacks;
        bool of_host;
    } cases[] = {{8, 0, 0, false}, {10, 0, 2, false}, {8, 7, 2, true}, {11, 7, 3, false}, {10, 9, 4, true}};
    g_autofree Spec *spec = g_new0(Spec, 1);
    spec->search.max_host_bytes_per_node = 20;
    spec->cluster.gpus_per_node = 4; /* five of each GPU */
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        SearchRun run = {0};
        search_limits_judge(spec, 8, cases[i].needed, cases[i].host, &run);
        g_assert_cmpint(run.fits, ==, cases[i].lacks == 0);
        g_assert_cmpfloat(run.short_bytes, ==, cases[i].lacks);
        g_assert_cmpint(run.short_of_host, ==, cases[i].of_host);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search-limits/degrees", test_degrees);
    g_test_add_func("/search-limits/order", test_order);
    g_test_add_func("/search-limits/memory", test_memory);
    g_test_add_func("/search-limits/host", test_host);
    g_test_add_func("/search-limits/short", test_short);
    g_test_add_func("/search-limits/refused", test_refused);
    return g_test_run();
}
