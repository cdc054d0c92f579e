/* tests/unit/search/test_search.c - the pruned search against simulating everything, and the answer's own promises. */
#include <string.h>

#include "search/choose.h"
#include "search/search.h"
#include "search/walk.h"
#include "spec/load.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/search_run_fixture.h"

/* Every point is counted once: left out by one bound, or simulated. */
static void assert_counts(const SearchResult *result)
{
    int64_t sum = result->simulated - result->seeds;
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
        sum += result->pruned[kind];
    g_assert_cmpint(sum, ==, result->points);
    g_assert_cmpint(result->refused, ==, 0);
}

static void test_exhaustive(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    int64_t points = 0, simulated = 0;
    int spaces = 0, none_fit = 0;
    for (int i = 0; spaces < DRAWS(50); i++) {
        g_autofree Spec *spec = fixture_space(rand, i, true);
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0 || count > 3000)
            continue;
        if (spaces % 2 == 1) /* so that memory decides too */
            spec->search.max_memory_frac = 0.02 + 0.15 * g_rand_double(rand);
        SearchResult pruned = fixture_find(spec, false, 2, 0), all = fixture_find(spec, true, 2, 0);
        g_assert_cmpint(pruned.points, ==, count);
        g_assert_cmpint(all.points, ==, count);
        g_assert_cmpint(all.simulated, ==, count);
        assert_counts(&pruned);
        fixture_assert_same(pruned.best, all.best);
        points += count;
        simulated += pruned.simulated;
        none_fit += all.best->len == 0;
        spaces++;
        search_result_clear(&pruned);
        search_result_clear(&all);
    }
    g_test_message("%d spaces, %d of them too large for the memory: %" G_GINT64_FORMAT
                   " points, %" G_GINT64_FORMAT " simulated by the pruned search",
                   spaces, none_fit, (gint64)points, (gint64)simulated);
    g_rand_free(rand);
}

/* Padded texts: the wait for the rank with the longest is the layout's own, so it orders and proves as the rest does. */
static void test_padded(void)
{
    GRand *rand = g_rand_new_with_seed(13);
    int64_t waits = 0;
    for (int spaces = 0, i = 0; spaces < DRAWS(4); i++) {
        g_autofree Spec *spec = fixture_space(rand, i, true);
        const double mean = 0.2 * spec->training.sequence_length;
        spec->training.lengths =
            (SpecLengths){.given = true, .mean = mean, .log_sd = 0.8, .max = spec->training.sequence_length};
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0 || count > 500)
            continue;
        SearchResult pruned = fixture_find(spec, false, 2, 0), all = fixture_find(spec, true, 2, 0);
        fixture_assert_same(pruned.best, all.best);
        int64_t last_ps = 0;
        for (guint k = 0; k < all.best->len; k++) {
            const SearchRun *run = &g_array_index(all.best, SearchRun, k);
            g_assert_cmpint(run->step_ps, >=, last_ps);
            waits += run->late_ps[REPORT_LATE_LENGTHS] > 0; /* one replica waits for nobody */
            last_ps = run->step_ps;
        }
        search_result_clear(&pruned);
        search_result_clear(&all);
        spaces++;
    }
    g_assert_cmpint(waits, >, 0);
    g_rand_free(rand);
}

static int64_t count_points(const Spec *spec)
{
    SearchSpace *space = search_space_new(spec);
    const int64_t count = search_space_count(space);
    search_space_free(space);
    return count;
}

/* Context ranks split rows of one length: no point of padded texts has several, as no run takes them. */
static void test_padded_context(void)
{
    static const char *const sets[][4] = {
        {"parallel.context=auto", "parallel.data=auto", NULL},
        {"parallel.context=1", "parallel.data=auto", NULL},
        {"parallel.context=auto", "parallel.data=auto", "training.lengths.packed=true", NULL}};
    int64_t points[3];
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++) {
        g_autofree char *path =
            g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "llama3-8b-sft-padded.json", NULL);
        g_autofree Spec *spec = g_new0(Spec, 1);
        GError *error = NULL;
        spec_load_file(path, sets[i], true, spec, NULL, &error);
        g_assert_no_error(error);
        points[i] = count_points(spec);
    }
    g_assert_cmpint(points[0], ==, points[1]);
    g_assert_cmpint(points[2], >, points[1]);
}

/* The front of time and memory is that of all points, however many of the best are asked for. */
static void test_front(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    int64_t longest = 0;
    for (int spaces = 0, i = 0; spaces < DRAWS(8); i++) {
        g_autofree Spec *spec = fixture_space(rand, i, true);
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0 || count > 800)
            continue;
        SearchResult all = fixture_find(spec, true, 2, 0);
        g_assert_true(all.pareto_proved);
        for (int top = 1; top <= 6; top += 5) {
            SearchResult pruned = fixture_find(spec, false, 2, top);
            g_assert_true(pruned.pareto_proved);
            fixture_assert_same(pruned.pareto, all.pareto);
            search_result_clear(&pruned);
        }
        longest = MAX(longest, all.pareto->len);
        search_result_clear(&all);
        spaces++;
    }
    g_assert_cmpint(longest, >, 4); /* else there is nothing to prove */
    g_rand_free(rand);
}

/* Sharded weights that come once a micro-batch or once a chunk, by schedule. */
static void test_whole_chunks(void)
{
    static const char *const FRAMEWORKS[] = {"pytorch-fsdp", "deepspeed", "generic", "pytorch-fsdp1"};
    static const char *const ORDERS[] = {"gpipe", "1f1b", "interleaved", "breadth-first"};
    GRand *rand = g_rand_new_with_seed(23);
    int spaces = 0, breadth_first = 0;
    for (int i = 0; spaces < DRAWS(24); i++) {
        g_autofree Spec *spec = fixture_space_of(rand, i, true, FRAMEWORKS[i % 4]);
        spec->parallel.schedule = SPEC_AUTO;
        spec->parallel.zero = SPEC_AUTO;
        spec->search.schedule = 0;
        for (gsize s = 0; s < G_N_ELEMENTS(ORDERS); s++)
            spec->search.schedule |= 1u << sim_schedule_index(ORDERS[s]);
        spec->search.zero = (SpecChoices){.count = 2, .value = {3, 2}};
        if (i % 2 == 1) { /* a slow network: gathers and reductions decide */
            spec->cluster.scale_out_bytes_per_s_per_gpu /= 20;
            spec->cluster.scale_up_bytes_per_s /= 20;
            spec->search.zero.count = 1;
            spec->parallel.tensor = 1;
            spec->parallel.pipeline = 2;
        }
        SearchSpace *space = search_space_new(spec);
        const int64_t count = search_space_count(space);
        search_space_free(space);
        if (count == 0 || count > 2000)
            continue;
        SearchResult pruned = fixture_find(spec, false, 2, 0), all = fixture_find(spec, true, 2, 0);
        assert_counts(&pruned);
        fixture_assert_same(pruned.best, all.best);
        if (all.best->len > 0) {
            g_autofree Spec *best = g_new(Spec, 1);
            search_point_spec(all.space, g_array_index(all.best, SearchRun, 0).id, best);
            breadth_first += (spec_schedule_traits(best) & SIM_TRAIT_WHOLE_CHUNKS) != 0;
        }
        spaces++;
        search_result_clear(&pruned);
        search_result_clear(&all);
    }
    g_test_message("%d of %d spaces: all micro-batches of a chunk first", breadth_first, spaces);
    g_assert_cmpint(8 * breadth_first, >=, spaces);
    g_rand_free(rand);
}

static void test_threads(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    for (int i = 0; i < 4; i++) {
        g_autofree Spec *spec = fixture_space(rand, 3 * i, false);
        SearchResult one = fixture_find(spec, false, 1, 0), three = fixture_find(spec, false, 3, 0);
        fixture_assert_same(one.best, three.best);
        fixture_assert_same(one.pareto, three.pareto);
        fixture_assert_same(one.misses, three.misses);
        g_assert_cmpint(one.simulated, ==, three.simulated);
        g_assert_cmpint(one.evaluated, ==, three.evaluated);
        g_assert_cmpint(memcmp(one.pruned, three.pruned, sizeof one.pruned), ==, 0);
        assert_counts(&one);
        search_result_clear(&one);
        search_result_clear(&three);
    }
    g_rand_free(rand);
}

/* Points of a space as the checks of a scenario and of the simulator see it: nothing valid is left out, nothing
 * invalid is in. Over degrees, micro-batch and virtual stages of one schedule. */
static int64_t count_by_hand(const Spec *asked)
{
    int64_t count = 0;
    const int gpus = spec_gpus(asked), most = asked->model.layers;
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int t = 1; t <= asked->cluster.gpus_per_node; t++)
        for (int p = 1; p <= gpus; p++)
            for (int v = 2; v <= most; v++)
                for (int mb = 1; mb <= 64; mb++) {
                    if (gpus % (t * p) != 0)
                        continue;
                    *spec = *asked;
                    spec->parallel.tensor = t;
                    spec->parallel.pipeline = p;
                    spec->parallel.virtual_stages = v;
                    spec->parallel.data = gpus / (t * p);
                    spec->training.micro_batch = mb;
                    SearchRun run;
                    if (spec_complete(spec, "here", NULL) && spec_check(spec, "here", NULL) &&
                        search_simulate_spec(spec, 1e12, &run))
                        count++;
                }
    return count;
}

static void test_space(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":7,\"hidden\":512,\"heads\":6,\"ffn_hidden\":2048,\"vocab\":"
        "32000,"
        "\"head_dim\":64},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"gpus_per_node\":4,\"nodes\":3},"
        "\"training\":{\"sequence_length\":1024,\"global_batch\":60,\"micro_batch\":\"auto\"},"
        "\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"virtual_stages\":\"auto\","
        "\"schedule\":\"interleaved\"},\"search\":{\"even_only\":true}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "space", &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "space", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    SearchSpace *space = search_space_new(spec);
    g_assert_cmpint(search_space_count(space), ==, count_by_hand(spec));
    g_assert_cmpint(search_space_count(space), >, 20);
    search_space_free(space);
}

/* Layers whose activations leave are an axis: every number up to the largest stage's, no number twice, and where memory
 * is short the best keeps some on the host; all the same as simulating everything. */
static void test_offload(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":6,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,"
        "\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"gpus_per_node\":4,\"nodes\":1},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":16,\"micro_batch\":4},"
        "\"parallel\":{\"tensor\":1,\"pipeline\":\"auto\",\"virtual_stages\":1,\"schedule\":\"1f1b\","
        "\"data\":\"auto\",\"zero\":1},"
        "\"offload\":{\"activation_layers\":\"auto\"},\"search\":{\"even_only\":true}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "offload", &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new0(Spec, 1), *chosen = g_new(Spec, 1);
    spec_load_json(orr_json_root(doc), "offload", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    SearchSpace *space = search_space_new(spec);
    g_assert_cmpint(search_space_count(space), ==, 7 + 4 + 3); /* stages of 6, 3 and at most 2 layers */
    search_space_free(space);
    SearchResult open = fixture_find(spec, true, 2, 0);
    double least = G_MAXDOUBLE;
    for (guint i = 0; i < open.pareto->len; i++)
        least = MIN(least, g_array_index(open.pareto, SearchRun, i).reserved_bytes);
    const double most = g_array_index(open.best, SearchRun, 0).reserved_bytes;
    int offloaded = 0;
    search_result_clear(&open);
    g_assert_true(search_has_auto(spec));
    for (int i = 0; i <= 8; i++) {
        spec->search.max_memory_bytes = least + (most - least) * i / 8 + 1;
        SearchResult pruned = fixture_find(spec, false, 2, 0), all = fixture_find(spec, true, 2, 0);
        g_assert_cmpuint(all.best->len, >, 0);
        assert_counts(&pruned);
        fixture_assert_same(pruned.best, all.best);
        for (guint b = 0; b < all.best->len; b++)
            g_assert_cmpfloat(g_array_index(all.best, SearchRun, b).reserved_bytes, <=,
                              spec->search.max_memory_bytes);
        search_point_spec(all.space, g_array_index(all.best, SearchRun, 0).id, chosen);
        offloaded += chosen->offload.activation_layers > 0;
        search_result_clear(&pruned);
        search_result_clear(&all);
    }
    g_assert_cmpint(offloaded, >, 0);
    /* A GPU whose link to the host is not known keeps everything. */
    spec->cluster.accelerator.host_link_bytes_per_s = 0;
    space = search_space_new(spec);
    g_assert_cmpint(search_space_count(space), ==, 3);
    search_space_free(space);
}

/* Orders that place every rank alike are one point; those of the scenario's list are tried, and a word that is none says
 * so. */
static void test_orders(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":512,\"heads\":8,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"gpus_per_node\":4,\"nodes\":2},"
        "\"training\":{\"sequence_length\":1024,\"global_batch\":64},"
        "\"parallel\":{\"pipeline\":\"auto\",\"schedule\":\"1f1b\",\"order\":\"auto\"},"
        "\"search\":{\"even_only\":true%s}}";
    static const struct {
        const char *search;
        int64_t points; /* of 1, 2, 4 and 8 pipeline ranks */
    } cases[] = {{"", 1 + 2 + 2 + 1},
                 {",\"order\":[\"tp-cp-ep-pp-dp\"]", 4},
                 {",\"order\":[\"tp-cp-ep-pp-dp\",\"pp-tp-cp-ep-dp\",\"dp-cp-tp-ep-pp\"]", 1 + 2 + 2 + 1},
                 {",\"order\":[\"tp-cp-pp\"]", 0}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autofree char *whole = g_strdup_printf(text, cases[i].search);
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrJsonDoc *doc = orr_json_parse(whole, strlen(whole), "orders", &error);
        g_assert_no_error(error);
        const bool ok = spec_load_json(orr_json_root(doc), "orders", NULL, true, spec, NULL, &error);
        orr_json_free(doc);
        g_assert_true(ok == (cases[i].points > 0));
        g_clear_error(&error);
        if (!ok)
            continue;
        g_assert_true(search_has_auto(spec));
        SearchResult pruned = fixture_find(spec, false, 2, 0), all = fixture_find(spec, true, 2, 0);
        g_assert_cmpint(all.points, ==, cases[i].points);
        assert_counts(&pruned);
        fixture_assert_same(pruned.best, all.best);
        search_result_clear(&pruned);
        search_result_clear(&all);
    }
}

static void test_choose(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    g_autofree Spec *spec = fixture_space(rand, 0, true), *chosen = g_new(Spec, 1);
    GError *error = NULL;
    g_assert_true(search_has_auto(spec));
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_no_error(error);
    g_assert_false(search_has_auto(chosen));
    SearchResult all = fixture_find(spec, true, 2, 0);
    SearchRun run;
    g_assert_true(search_simulate_spec(chosen, 1e12, &run));
    g_assert_cmpint(run.step_ps, ==, g_array_index(all.best, SearchRun, 0).step_ps);
    search_result_clear(&all);
    g_rand_free(rand);
}

/* A recipe's layout is taken where it fits, its parts where the scenario says "auto" alone, and passed over where not. */
static void test_choose_preferred(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":4096,\"heads\":32,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":\"auto\","
        "\"micro_batch_preferred\":2},"
        "\"parallel\":{\"tensor\":\"auto\",\"tensor_preferred\":4,\"pipeline\":\"auto\",\"pipeline_"
        "preferred\":2},"
        "\"execution\":{\"framework\":\"megatron-lm\",\"attention\":\"flash2\"}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "preferred", &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new0(Spec, 1), *chosen = g_new(Spec, 1);
    spec_load_json(orr_json_root(doc), "preferred", NULL, true, spec, NULL, &error);
    orr_json_free(doc);
    g_assert_no_error(error);
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_cmpint(chosen->parallel.tensor, ==, 4);
    g_assert_cmpint(chosen->parallel.pipeline, ==, 2);
    g_assert_cmpint(chosen->training.micro_batch, ==, 2);
    spec->parallel.tensor = 2; /* stated: stays */
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_cmpint(chosen->parallel.tensor, ==, 2);
    g_assert_cmpint(chosen->parallel.pipeline, ==, 2);
    spec->parallel.tensor = spec->parallel.sequence_parallel = SPEC_AUTO;
    spec->execution.framework.defaults.sequence_parallel = true;
    spec->training.micro_batch_preferred = 63; /* of 64 samples none such: the layout stays */
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_cmpint(chosen->parallel.tensor, ==, 4);
    g_assert_cmpint(chosen->parallel.pipeline, ==, 2);
    g_assert_cmpint(chosen->parallel.sequence_parallel, ==, 1);
    g_assert_cmpint(64 % chosen->training.micro_batch, ==, 0);
    spec->parallel.tensor_preferred = 3; /* not of eight GPUs */
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_no_error(error);
    g_assert_cmpint(8 % chosen->parallel.tensor, ==, 0);
}

/* What "auto" may become: a schedule that the framework has, and never the naive order, not even where nothing else
 * comes as near to fitting. */
static void test_choose_schedule(void)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":8192,\"heads\":64,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":128,\"micro_batch\":4},"
        "\"parallel\":{\"tensor\":2,\"pipeline\":4,\"schedule\":\"auto\"},"
        "\"execution\":{\"framework\":\"megatron-core\",\"attention\":\"flash2\"}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "schedule", &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new0(Spec, 1), *chosen = g_new(Spec, 1);
    spec_load_json(orr_json_root(doc), "schedule", NULL, true, spec, NULL, &error);
    orr_json_free(doc);
    g_assert_no_error(error);
    spec->execution.framework.pipeline.schedules =
        1u << sim_schedule_index("gpipe") | 1u << sim_schedule_index("1f1b");
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_true(chosen->parallel.schedule == sim_schedule_index("gpipe") ||
                  chosen->parallel.schedule == sim_schedule_index("1f1b"));
    spec->search.schedule =
        1u << sim_schedule_index("zb-h1"); /* the scenario's word before the framework's */
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_cmpint(chosen->parallel.schedule, ==, sim_schedule_index("zb-h1"));
    spec->search.schedule = spec->execution.framework.pipeline.schedules = 0;
    spec->cluster.accelerator.memory_bytes = 8e9; /* nothing fits */
    g_assert_true(search_choose(spec, chosen, &error));
    g_assert_cmpint(chosen->parallel.schedule, !=, sim_schedule_index("naive"));
    g_assert_cmpuint(chosen->search.schedule, ==, 0);
}

/* A space without points is an error of the input. */
static void test_empty(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    g_autofree Spec *spec = fixture_space(rand, 0, true);
    spec->search.tensor = (SpecChoices){.count = 1, .value = {3}};
    const SearchOptions options = {0};
    SearchResult result;
    GError *error = NULL;
    g_assert_false(search_run(spec, &options, &result, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_error_free(error);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/pruned-equals-exhaustive", test_exhaustive);
    g_test_add_func("/search/padded", test_padded);
    g_test_add_func("/search/padded-context", test_padded_context);
    g_test_add_func("/search/front", test_front);
    g_test_add_func("/search/whole-chunks", test_whole_chunks);
    g_test_add_func("/search/any-number-of-threads", test_threads);
    g_test_add_func("/search/space", test_space);
    g_test_add_func("/search/offload", test_offload);
    g_test_add_func("/search/orders", test_orders);
    g_test_add_func("/search/choose", test_choose);
    g_test_add_func("/search/choose-schedule", test_choose_schedule);
    g_test_add_func("/search/choose-preferred", test_choose_preferred);
    g_test_add_func("/search/empty", test_empty);
    return g_test_run();
}
