/* unit/step/test_zero_memory.c - a higher ZeRO stage takes no more memory: gradients are not counted twice. */
#include <string.h>

#include "costmodel/states.h"
#include "report/report.h"
#include "spec/load.h"

static double peak_of(const char *text, const char *zero, Spec *spec)
{
    static const ReportOptions checked = {.check = true};
    const char *const sets[] = {zero, NULL};
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    const double peak = report.peak_bytes;
    orr_arena_free(arena);
    orr_json_free(doc);
    return peak;
}

/* One replica, where nobody has another shard; four, whose sums wait for the last micro-batch in 16 bits and leave in 32. */
static const char *const scenarios[] = {
    "{\"model\":\"gpt-1.5b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":512,"
    "\"global_batch\":8,\"micro_batch\":2},\"parallel\":{\"tensor\":8,\"zero\":1,\"sequence_parallel\":true},"
    "\"execution\":{\"framework\":\"pytorch-fsdp1\"}}",
    "{\"model\":\"gpt-7.5b\",\"cluster\":{\"preset\":\"dgx-a100-40gb\",\"nodes\":2},\"training\":{\"sequence_"
    "length\":512,"
    "\"global_batch\":32,\"micro_batch\":2},\"parallel\":{\"pipeline\":16,\"zero\":1,\"schedule\":\"zb-h1\"},"
    "\"execution\":{\"framework\":\"lit-gpt\"}}",
    "{\"model\":\"gpt-1.5b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":512,"
    "\"global_batch\":32,\"micro_batch\":1},\"parallel\":{\"tensor\":2,\"data\":4,\"zero\":1,\"schedule\":"
    "\"gpipe\"},"
    "\"execution\":{\"framework\":\"nvidia-bert-2019\"}}"};

static void test_ladder(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(scenarios); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        const double one = peak_of(scenarios[i], "parallel.zero=1", spec),
                     two = peak_of(scenarios[i], "parallel.zero=2", spec);
        /* a shard that is written beside whole sums, where there are several */
        const double shard = spec->parallel.data > 1 ? cost_recipe(spec).gradients * 1.7e9 /
                                                           spec->parallel.tensor / spec->parallel.data
                                                     : 0;
        g_test_message("%zu: ZeRO 1 %.0f, ZeRO 2 %.0f bytes", i, one, two);
        g_assert_cmpfloat(two, <=, one + shard + 1);
    }
}

static void test_unsharded_bytes(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    peak_of(scenarios[0], "parallel.zero=2", spec);
    g_assert_cmpfloat(cost_unsharded_gradient_bytes(spec), ==, 0);
    peak_of(scenarios[2], "parallel.zero=2", spec);
    g_assert_cmpfloat(cost_unsharded_gradient_bytes(spec), ==, 2);
    g_assert_cmpfloat(cost_gradient_wire_bytes(spec), ==, 4);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/zero-memory/ladder", test_ladder);
    g_test_add_func("/zero-memory/unsharded", test_unsharded_bytes);
    return g_test_run();
}
