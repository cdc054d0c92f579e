/* Layers on model stages: published layouts, and invariants over many shapes. */
#include <string.h>

#include "spec/load.h"

typedef struct Case {
    int layers, pipeline, chunks;
    bool embedding, loss;
    int first, last;
    const char *schedule;
    const char *counts;
} Case;

static void set_case(const Case *c, Spec *spec)
{
    *spec = (Spec){0};
    spec->model.layers = c->layers;
    spec->parallel.pipeline = c->pipeline;
    spec->parallel.virtual_stages = c->chunks;
    spec->parallel.embedding_as_layer = c->embedding;
    spec->parallel.loss_as_layer = c->loss;
    spec->parallel.first_stage_layers = c->first;
    spec->parallel.last_stage_layers = c->last;
    spec->parallel.schedule = c->schedule != NULL ? sim_schedule_index(c->schedule) : 0;
}

static char *show(const int *counts, int count)
{
    GString *out = g_string_new(NULL);
    for (int i = 0; i < count; i++)
        g_string_append_printf(out, "%s%d", i > 0 ? " " : "", counts[i]);
    return g_string_free(out, FALSE);
}

static void test_layouts(void)
{
    static const Case cases[] = {
        {32, 1, 1, false, false, 0, 0, "1f1b", "32"},
        {32, 1, 1, true, true, 0, 0, "1f1b", "32"},
        {96, 8, 1, false, false, 0, 0, "1f1b", "12 12 12 12 12 12 12 12"},
        /* Llama 3 405B: the first and the last stage hold one layer fewer */
        {126, 16, 1, false, false, 0, 0, "1f1b", "7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7"},
        {126, 16, 1, true, true, 0, 0, "1f1b", "7 8 8 8 8 8 8 8 8 8 8 8 8 8 8 7"},
        /* BLOOM: 70 layers, embedding and loss as layers, 12 stages */
        {70, 12, 1, true, true, 0, 0, "1f1b", "5 6 6 6 6 6 6 6 6 6 6 5"},
        {61, 16, 1, false, false, 0, 0, "1f1b", "3 4 4 4 4 4 4 4 4 4 4 4 4 4 3 3"},
        {10, 4, 1, false, false, 0, 0, "1f1b", "2 3 3 2"},
        {11, 4, 1, false, false, 0, 0, "1f1b", "3 3 3 2"},
        {2, 4, 1, true, true, 0, 0, "1f1b", "0 1 1 0"},
        {8, 4, 2, false, false, 0, 0, "interleaved", "1 1 1 1 1 1 1 1"},
        {10, 4, 1, false, false, 1, 1, "1f1b", "1 4 4 1"},
        {10, 4, 1, false, false, 1, 0, "1f1b", "1 3 3 3"},
        {16, 4, 2, false, false, 2, 2, "interleaved", "1 3 3 1 1 3 3 1"},
        {14, 4, 2, false, false, 2, 0, "zb-v", "1 2 2 2 2 2 2 1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        int counts[SPEC_MAX_STAGES];
        GError *error = NULL;
        g_autofree Spec *spec = g_new0(Spec, 1);
        set_case(&cases[i], spec);
        spec_stage_layers(spec, counts, &error);
        g_assert_no_error(error);
        g_autofree char *text = show(counts, cases[i].pipeline * cases[i].chunks);
        g_assert_cmpstr(text, ==, cases[i].counts);
    }
}

static void test_invariants(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    g_autofree Spec *spec = g_new0(Spec, 1);
    int laid_out = 0;
    for (int i = 0; i < 5000; i++) {
        const Case c = {.layers = g_rand_int_range(rand, 1, 200),
                        .pipeline = g_rand_int_range(rand, 1, 20),
                        .chunks = g_rand_int_range(rand, 1, 5),
                        .embedding = g_rand_boolean(rand),
                        .loss = g_rand_boolean(rand)};
        int counts[SPEC_MAX_STAGES];
        GError *error = NULL;
        set_case(&c, spec);
        const int stages = c.pipeline * c.chunks, slots = c.layers + c.embedding + c.loss;
        if (!spec_stage_layers(spec, counts, &error)) {
            g_assert_cmpint(slots, <, stages);
            g_error_free(error);
            continue;
        }
        laid_out++;
        int sum = 0, least = G_MAXINT, most = 0;
        for (int s = 0; s < stages; s++) {
            const int load = counts[s] + (s == 0 && c.embedding) + (s == stages - 1 && c.loss);
            g_assert_cmpint(counts[s], >=, 0);
            sum += counts[s];
            least = MIN(least, load);
            most = MAX(most, load);
        }
        g_assert_cmpint(sum, ==, c.layers);
        g_assert_cmpint(most - least, <=, 1);
        if (stages > 2 && most > least)
            g_assert_cmpint(counts[stages - 1] + c.loss, ==, least);
    }
    g_assert_cmpint(laid_out, >, 1000);
    g_rand_free(rand);
}

/* nanotron: a stage is closed by the layer that takes it beyond its share. 80B: the head is 1.10 layers, a stage of 16 holds
 * 5.07, so the first takes 6; 1.34B: the head is 4 layers and the share of two exactly 10, which 10 layers do not exceed. */
static void test_by_cost(void)
{
    static const struct {
        int layers, hidden, heads, ffn, pipeline;
        const char *counts;
    } cases[] = {
        {80, 8192, 64, 28672, 16, "6 5 5 5 5 5 5 5 5 5 5 5 5 5 6 3"},
        {16, 2048, 32, 8192, 2, "11 5"},
        {32, 4096, 32, 14336, 4, "9 9 8 6"},
        {32, 4096, 32, 14336, 1, "32"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        int counts[SPEC_MAX_STAGES];
        GError *error = NULL;
        g_autofree Spec *spec = g_new0(Spec, 1);
        spec->model.layers = cases[i].layers;
        spec->model.hidden = cases[i].hidden;
        spec->model.heads = cases[i].heads;
        spec->model.head_dim = cases[i].hidden / cases[i].heads;
        spec->model.ffn_hidden = cases[i].ffn;
        spec->model.vocab = 131072;
        spec->parallel.pipeline = cases[i].pipeline;
        spec->parallel.virtual_stages = 1;
        spec->execution.framework.pipeline.balances_head = true;
        g_assert_true(spec_stage_layers(spec, counts, &error));
        g_assert_no_error(error);
        g_autofree char *got = show(counts, cases[i].pipeline);
        g_assert_cmpstr(got, ==, cases[i].counts);
    }
}

static void test_given(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    const Case c = {.layers = 10, .pipeline = 2, .chunks = 2};
    int counts[SPEC_MAX_STAGES];
    GError *error = NULL;
    set_case(&c, spec);
    spec->parallel.stage_layers_count = 4;
    spec->parallel.stage_layers[0] = 4;
    spec->parallel.stage_layers[3] = 6;
    g_assert_true(spec_stage_layers(spec, counts, &error));
    g_assert_cmpint(counts[3], ==, 6);
    spec->parallel.stage_layers[3] = 5;
    g_assert_false(spec_stage_layers(spec, counts, &error));
    g_assert_nonnull(strstr(error->message, "add up to 9, but the model has 10"));
    g_clear_error(&error);
    spec->parallel.stage_layers_count = 3;
    g_assert_false(spec_stage_layers(spec, counts, &error));
    g_assert_nonnull(strstr(error->message, "list 4 numbers"));
    g_clear_error(&error);
    spec->parallel.stage_layers_count = 0;
    spec->parallel.first_stage_layers = 7;
    spec->parallel.last_stage_layers = 7;
    g_assert_false(spec_stage_layers(spec, counts, &error));
    g_assert_nonnull(strstr(error->message, "first 7 and last 7"));
    g_clear_error(&error);
    spec->parallel.pipeline = 1024;
    g_assert_false(spec_stage_layers(spec, counts, &error));
    g_assert_nonnull(strstr(error->message, "1024 model stages"));
    g_clear_error(&error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/layout/layouts", test_layouts);
    g_test_add_func("/spec/layout/invariants", test_invariants);
    g_test_add_func("/spec/layout/given", test_given);
    g_test_add_func("/spec/layout/by-cost", test_by_cost);
    return g_test_run();
}
