/* tests/unit/costmodel/test_moe_layers.c - layers whose experts differ: against models that have one kind of them,
 * and refusals. */
#include <string.h>

#include "costmodel/params.h"
#include "report/report.h"
#include "search/search.h"

static bool load(const char *moe, const char *parallel, const char *const *sets, bool search, Spec *ret_spec,
                 GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":8,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":4096,\"gated_mlp\":true,"
        "\"vocab\":32000,\"moe\":%s},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":1},"
        "\"parallel\":%s,\"execution\":{\"framework\":\"megatron-core\",\"attention\":\"flash2\"}}",
        moe, parallel);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok =
        doc != NULL && spec_load_json(orr_json_root(doc), "here", sets, search, ret_spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

typedef struct Ran {
    int64_t step_ps;
    double peak_bytes, parameters, active, flops, busiest, dropped_frac;
} Ran;

static Ran run(const char *moe, const char *parallel)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    g_autofree Spec *spec = g_new(Spec, 1);
    Report report;
    OrrArena *arena = orr_arena_new();
    load(moe, parallel, NULL, false, spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const Ran ran = {.step_ps = report.step_ps,
                     .peak_bytes = report.peak_bytes,
                     .parameters = cost_parameters(&spec->model, 0, false),
                     .active = cost_parameters(&spec->model, 0, true),
                     .flops = cost_flops(spec, NULL, 0).model,
                     .busiest = report.expert_busiest,
                     .dropped_frac = report.dropped_frac};
    orr_arena_free(arena);
    return ran;
}

static void same(const Ran *a, const Ran *b)
{
    g_assert_cmpint(a->step_ps, ==, b->step_ps);
    g_assert_cmpfloat(a->peak_bytes, ==, b->peak_bytes);
    g_assert_cmpfloat(a->parameters, ==, b->parameters);
    g_assert_cmpfloat(a->active, ==, b->active);
    g_assert_cmpfloat(a->flops, ==, b->flops);
    g_assert_cmpfloat(a->busiest, ==, b->busiest);
    g_assert_cmpfloat_with_epsilon(a->dropped_frac, b->dropped_frac, 1e-15);
}

static const char *const LAYOUTS[] = {"{\"expert\":8}", "{\"expert\":4,\"pipeline\":2,\"tensor\":2}",
                                      "{\"expert\":8,\"zero\":2,\"expert_replicas\":8}"};

/* A list that says what the model says changes nothing; a pattern is what it spells out; the last two layers with other
 * experts are late_layers; the model's own figures and a list may be told apart any way round. */
static void equal(void)
{
    static const char *const PAIRS[][2] = {
        {"{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024}",
         "{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024,\"by_layer\":[{\"layers\":8}]}"},
        {"{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024,\"late_layers\":2,\"late_experts\":32}",
         "{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024,\"by_layer\":[{\"layers\":6},"
         "{\"layers\":2,\"experts\":32}]}"},
        {"{\"experts\":16,\"top_k\":2,\"expert_ffn_hidden\":1024,\"by_layer\":[{},{\"experts\":64,\"top_k\":"
         "4}]}",
         "{\"experts\":64,\"top_k\":4,\"expert_ffn_hidden\":1024,\"by_layer\":[{\"experts\":16,\"top_k\":2},{"
         "},"
         "{\"experts\":16,\"top_k\":2},{},{\"experts\":16,\"top_k\":2},{},{\"experts\":16,\"top_k\":2},{}]}"},
        {"{\"experts\":32,\"top_k\":2,\"expert_ffn_hidden\":1024}",
         "{\"top_k\":1,\"expert_ffn_hidden\":512,"
         "\"by_layer\":[{\"experts\":32,\"top_k\":2,\"expert_ffn_hidden\":1024}]}"},
        {"{\"experts\":16,\"top_k\":2,\"dense_layers\":2,\"layer_step\":3,\"capacity_factor\":1.25}",
         "{\"experts\":16,\"top_k\":2,\"dense_layers\":2,\"layer_step\":3,\"capacity_factor\":1.25,"
         "\"by_layer\":[{\"experts\":16},{\"experts\":16}]}"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(PAIRS); i++)
        for (gsize l = 0; l < G_N_ELEMENTS(LAYOUTS); l++) {
            const Ran a = run(PAIRS[i][0], LAYOUTS[l]), b = run(PAIRS[i][1], LAYOUTS[l]);
            same(&a, &b);
        }
}

/* Half of the layers of one kind and half of another: parameters and FLOPs lie in the middle, exactly; time and memory between. */
static void between(void)
{
    static const char SMALL[] = "{\"experts\":16,\"top_k\":1,\"expert_ffn_hidden\":512}",
                      LARGE[] = "{\"experts\":64,\"top_k\":4,\"expert_ffn_hidden\":2048}",
                      BOTH[] = "{\"by_layer\":[{\"experts\":16,\"top_k\":1,\"expert_ffn_hidden\":512},"
                               "{\"experts\":64,\"top_k\":4,\"expert_ffn_hidden\":2048}]}";
    for (gsize l = 0; l < 2; l++) {
        const Ran small = run(SMALL, LAYOUTS[l]), large = run(LARGE, LAYOUTS[l]),
                  both = run(BOTH, LAYOUTS[l]);
        g_assert_cmpfloat_with_epsilon(2 * both.parameters / (small.parameters + large.parameters), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(2 * both.active / (small.active + large.active), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(2 * both.flops / (small.flops + large.flops), 1, 1e-12);
        g_assert_cmpint(both.step_ps, >, small.step_ps);
        g_assert_cmpint(both.step_ps, <, large.step_ps);
        g_assert_cmpfloat(both.peak_bytes, >, small.peak_bytes);
        g_assert_cmpfloat(both.peak_bytes, <, large.peak_bytes);
    }
}

static void refused(void)
{
    static const struct {
        const char *moe, *parallel, *says;
    } CASES[] = {
        {"{\"by_layer\":7}", "{}", "model.moe.by_layer"},
        {"{\"by_layer\":[{\"expert\":7}]}", "{}", "expert"},
        {"{\"by_layer\":[{\"experts\":0}]}", "{}", "experts"},
        {"{\"by_layer\":[{\"experts\":4,\"top_k\":8}]}", "{}",
         "part 1 has top_k 8 of 4 experts; give at most 4"},
        {"{\"by_layer\":[{\"layers\":3,\"experts\":4}]}", "{}",
         "describes 3 layers and the model has 8 with experts"},
        {"{\"by_layer\":[{\"layers\":9,\"experts\":4}]}", "{}", "describes 9 layers and the model has 8"},
        {"{\"experts\":8,\"late_layers\":2,\"late_experts\":4,\"by_layer\":[{}]}", "{}",
         "by_layer: given together with late_layers; remove one of the two"},
        {"{\"experts\":8,\"router_groups\":2,\"router_top_groups\":1,\"by_layer\":[{}]}", "{}",
         "by_layer: given together with router_groups"},
        {"{\"by_layer\":[{\"experts\":16},{\"experts\":12}]}", "{\"expert\":8}",
         "parallel.expert: 8 does not divide model.moe.by_layer experts 12"},
        {"{\"by_layer\":[{\"experts\":16},{\"experts\":16,\"expert_ffn_hidden\":1023}]}",
         "{\"expert\":4,\"tensor\":2,\"expert_tensor\":2}",
         "parallel.expert_tensor: 2 does not divide model.moe.by_layer expert_ffn_hidden 1023"},
        {"{\"by_layer\":[{\"experts\":1},{\"experts\":2},{\"experts\":3},{\"experts\":4},{\"experts\":5},"
         "{\"experts\":6},{\"experts\":7},{\"experts\":8},{\"experts\":9}]}",
         "{}", "8 kinds of layers with experts besides model.moe's own; give at most 7"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        GError *error = NULL;
        g_autofree Spec *spec = g_new(Spec, 1);
        g_assert_false(load(CASES[i].moe, CASES[i].parallel, NULL, false, spec, &error));
        if (strstr(error->message, CASES[i].says) == NULL)
            g_error("%s", error->message);
        g_clear_error(&error);
    }
}

/* A search proves its answer over them as over any model. */
static void searched(void)
{
    static const char MOE[] = "{\"top_k\":2,\"dense_layers\":2,\"expert_ffn_hidden\":1024,"
                              "\"by_layer\":[{\"experts\":16},{\"layers\":2,\"experts\":24,\"top_k\":3}]}",
                      AUTO[] =
                          "{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"expert\":\"auto\",\"zero\":\"auto\","
                          "\"data\":\"auto\",\"schedule\":\"auto\",\"virtual_stages\":\"auto\"}";
    static const char *const SETS[] = {"training.recompute=auto",
                                       "search.schedule=[\"1f1b\",\"interleaved\"]", NULL};
    GError *error = NULL;
    g_autofree Spec *spec = g_new(Spec, 1);
    load(MOE, AUTO, SETS, true, spec, &error);
    g_assert_no_error(error);
    SearchResult found[2];
    for (int all = 0; all < 2; all++) {
        const SearchOptions options = {.exhaustive = all == 1, .jobs = 2};
        search_run(spec, &options, &found[all], &error);
        g_assert_no_error(error);
        g_assert_cmpint(found[all].refused, ==, 0);
    }
    g_assert_cmpint(found[1].simulated, >, 200);
    g_assert_cmpint(found[0].simulated, <, found[1].simulated / 2);
    g_assert_cmpuint(found[0].best->len, ==, found[1].best->len);
    for (guint i = 0; i < found[0].best->len; i++)
        g_assert_cmpint(g_array_index(found[0].best, SearchRun, i).step_ps, ==,
                        g_array_index(found[1].best, SearchRun, i).step_ps);
    search_result_clear(&found[0]);
    search_result_clear(&found[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moe-layers/equal", equal);
    g_test_add_func("/moe-layers/between", between);
    g_test_add_func("/moe-layers/refused", refused);
    g_test_add_func("/moe-layers/searched", searched);
    return g_test_run();
}
