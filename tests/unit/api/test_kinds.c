/* unit/api/test_kinds.c - a scenario on another machine is what it would be with that machine in its file. */
#include "api/kinds.h"
#include "spec/load.h"

static void load(const char *example, const char *const *sets, Spec *ret_spec, SpecSource *ret_source)
{
    GError *error = NULL;
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", example, NULL);
    spec_load_file(path, sets, true, ret_spec, ret_source, &error);
    g_assert_no_error(error);
}

/* What software takes by default goes by the GPU: cuDNN's attention on Hopper, FlashAttention 2 before and beside it. */
static void test_attention_follows(void)
{
    g_auto(GStrv) named = g_strsplit("l40s-pcie,rtx-4090-24gb,h100-sxm5-80gb", ",", -1);
    static const char *const own[][2] = {{"cluster.accelerator=l40s-pcie", NULL},
                                         {"cluster.accelerator=rtx-4090-24gb", NULL},
                                         {"cluster.accelerator=h100-sxm5-80gb", NULL}};
    g_autofree Spec *base = g_new0(Spec, 1), *alone = g_new0(Spec, 1);
    SpecSource source, other;
    ApiKinds kinds;
    GError *error = NULL;
    const ApiKindsAsk ask = {.where = "test", .accelerators = named};
    load("llama2-70b-qlora.json", NULL, base, &source);
    g_assert_true(api_kinds_load(&ask, base, &source, &kinds, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(kinds.list->len, ==, G_N_ELEMENTS(own));
    for (guint i = 0; i < kinds.list->len; i++) {
        load("llama2-70b-qlora.json", own[i], alone, &other);
        g_assert_cmpint(g_array_index(kinds.list, ApiKind, i).spec->execution.attention, ==,
                        alone->execution.attention);
        spec_source_clear(&other);
    }
    g_assert_cmpint(g_array_index(kinds.list, ApiKind, 0).spec->execution.attention, !=,
                    base->execution.attention);
    api_kinds_clear(&kinds);
    spec_source_clear(&source);
}

/* A kernel that the scenario names stays. */
static void test_said_attention_stays(void)
{
    static const char *const sets[] = {"execution.attention=flash2", NULL};
    g_auto(GStrv) named = g_strsplit("h100-sxm5-80gb", ",", -1);
    g_autofree Spec *base = g_new0(Spec, 1);
    SpecSource source;
    ApiKinds kinds;
    GError *error = NULL;
    const ApiKindsAsk ask = {.where = "test", .accelerators = named};
    load("llama2-70b-qlora.json", sets, base, &source);
    g_assert_true(api_kinds_load(&ask, base, &source, &kinds, &error));
    g_assert_no_error(error);
    g_assert_cmpint(g_array_index(kinds.list, ApiKind, 0).spec->execution.attention, ==,
                    SPEC_ATTENTION_FLASH2);
    api_kinds_clear(&kinds);
    spec_source_clear(&source);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/kinds/attention-follows", test_attention_follows);
    g_test_add_func("/api/kinds/said-attention-stays", test_said_attention_stays);
    return g_test_run();
}
