/* tests/unit/step/test_evict.c - dynamic evicting: with a smaller budget memory falls and time rises, and what is
 * left out changes nothing. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"

static const char text[] =
    "{\"model\":\"llama2-7b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":4096,"
    "\"global_batch\":8,\"micro_batch\":1,\"recompute\":\"none\"},\"parallel\":{\"data\":4,\"tensor\":2,"
    "\"zero\":1},\"execution\":{\"framework\":\"megatron-core\"}}";

static bool run(const char *const *sets, Report *ret_report, OrrArena *arena, GError **error)
{
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    const ReportOptions options = {.check = true};
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok = spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, error) &&
                    report_run(spec, NULL, &options, arena, ret_report, error);
    orr_json_free(doc);
    return ok;
}

static Report with_budget(const char *bytes, OrrArena *arena)
{
    GError *error = NULL;
    Report report;
    g_autofree char *set = g_strdup_printf("offload.activations.resident_bytes=\"%s\"", bytes);
    run((const char *const[]){bytes != NULL ? set : NULL, NULL}, &report, arena, &error);
    g_assert_no_error(error);
    return report;
}

/* A budget that all is within changes nothing; below it each step down frees memory, fills the host's and costs time. */
static void monotone(void)
{
    static const char *const budgets[] = {"20 GB", "13 GB", "10 GB", "7 GB", "4 GB", "1 GB", "0 GB"};
    OrrArena *arena = orr_arena_new();
    const Report none = with_budget(NULL, arena);
    int64_t step_ps = none.step_ps, first_ps = 0;
    double peak = none.peak_bytes, host = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(budgets); i++) {
        const Report report = with_budget(budgets[i], arena);
        g_test_message("%s: step %.1f ms, peak %.2f GB, host %.2f GB", budgets[i],
                       (double)report.step_ps / 1e9, report.peak_bytes / 1e9,
                       (double)report.stages[0].host_bytes / 1e9);
        if (i == 0)
            g_assert_cmpint(report.step_ps, ==, none.step_ps);
        g_assert_cmpint(report.step_ps, >=, step_ps);
        g_assert_cmpfloat(report.peak_bytes, <=, peak);
        g_assert_cmpfloat((double)report.stages[0].host_bytes, >=, host);
        first_ps = i == 0 ? report.step_ps : first_ps;
        step_ps = report.step_ps;
        peak = report.peak_bytes;
        host = (double)report.stages[0].host_bytes;
    }
    g_assert_cmpint(step_ps, >, first_ps);
    g_assert_cmpfloat(none.peak_bytes - peak, >=, 0.9 * host); /* less the place of one layer */
    g_assert_cmpfloat(none.peak_bytes - peak, <=, host + 1);
    orr_arena_free(arena);
}

/* Everything evicted is every layer offloaded. */
static void all(void)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report;
    const Report evicted = with_budget("0 GB", arena);
    run((const char *const[]){"offload=activations", NULL}, &report, arena, &error);
    g_assert_no_error(error);
    g_assert_cmpint(report.step_ps, ==, evicted.step_ps);
    g_assert_cmpfloat(report.peak_bytes, ==, evicted.peak_bytes);
    orr_arena_free(arena);
}

/* Of layers that leave, a fraction leaves: half of the bytes for 0.5, all for 1, and less of the GPU's memory is freed. */
static void fraction(void)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report all, half, one;
    run((const char *const[]){"offload=activations", NULL}, &all, arena, &error);
    g_assert_no_error(error);
    run((const char *const[]){"offload={\"activations\":{\"tier\":\"host\",\"fraction\":1}}", NULL}, &one,
        arena, &error);
    g_assert_no_error(error);
    run((const char *const[]){"offload={\"activations\":{\"tier\":\"host\",\"fraction\":0.5}}", NULL}, &half,
        arena, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(all.stages[0].host_bytes, >, 0);
    g_assert_cmpfloat(one.stages[0].host_bytes, ==, all.stages[0].host_bytes);
    g_assert_cmpfloat(fabs(half.stages[0].host_bytes / all.stages[0].host_bytes - 0.5), <, 1e-6);
    g_assert_cmpfloat(half.peak_bytes, >, all.peak_bytes);
    g_assert_cmpint(half.step_ps, <=, all.step_ps);
    orr_arena_free(arena);
}

static void refused(void)
{
    static const char *const sets[] = {
        "offload={\"activations\":{\"resident_bytes\":1,\"fraction\":0.5}}",
        "offload={\"activations\":{\"resident_bytes\":1,\"modules\":[\"mlp\"]}}",
        "offload={\"activation_layers\":3,\"activations\":{\"resident_bytes\":1}}"};
    OrrArena *arena = orr_arena_new();
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++) {
        g_autoptr(GError) error = NULL;
        Report report;
        g_assert_false(run((const char *const[]){sets[i], NULL}, &report, arena, &error));
        g_assert_nonnull(strstr(error->message, "offload.activations.resident_bytes: given with"));
    }
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/evict/fraction", fraction);
    g_test_add_func("/evict/monotone", monotone);
    g_test_add_func("/evict/all", all);
    g_test_add_func("/evict/refused", refused);
    return g_test_run();
}
