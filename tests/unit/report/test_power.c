/* tests/unit/report/test_power.c - power caps and idle power: the clock that a cap leaves against a part that is sold with it,
 * energy as watts times hours by hand, nothing without them, what is refused. */
#include <math.h>
#include <string.h>

#include "campaign/effective.h"
#include "costmodel/kernels.h"
#include "report/report.h"
#include "spec/load.h"

static Report run(const char *const *sets, Spec *spec, OrrArena *arena)
{
    static const char scenario[] =
        "{\"model\":\"gpt3-175b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":16},\"training\":{"
        "\"sequence_"
        "length\":2048,\"global_batch\":256,\"tokens\":1e11},\"parallel\":{\"tensor\":8,\"pipeline\":8},"
        "\"execution\":{\"framework\":\"megatron-core\"},\"faults\":\"llama3-2024\",\"storage\":"
        "\"tectonic\"}";
    static const ReportOptions plain;
    GError *error = NULL;
    Report report;
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "power", NULL);
    spec_load_json(orr_json_root(doc), "power", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &plain, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return report;
}

/* A chip that is sold with 500 W is the 700 W one under a cap. */
static void test_sold_with_less(void)
{
    SpecAccelerator full, sold;
    GError *error = NULL;
    spec_load_accelerator("h100-sxm5-80gb", &full, &error);
    g_assert_no_error(error);
    spec_load_accelerator("h100-sxm5-96gb-500w", &sold, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(cost_power_demand(&full), ==, 1);
    full.power_cap_w = full.power_w;
    g_assert_cmpfloat(fabs(cost_power_demand(&full) - 1), <, 1e-12);
    full.power_cap_w = sold.power_w;
    const double capped = full.model.gemm[SPEC_BF16].power_frac * cost_power_demand(&full);
    g_assert_cmpfloat(fabs(capped / sold.model.gemm[SPEC_BF16].power_frac - 1), <, 1e-3);
}

static void test_cap(void)
{
    double before_s = 0;
    for (int watts = 700; watts >= 200; watts -= 50) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *set = g_strdup_printf("cluster.accelerator.power_cap_w=%d", watts);
        const char *const sets[] = {set, "cluster.accelerator.idle_power_w=0", NULL};
        OrrArena *arena = orr_arena_new();
        const Report report = run(sets, spec, arena);
        const double step_s = (double)report.step_ps * 1e-12;
        g_assert_cmpfloat(step_s, >=, before_s);
        g_assert_cmpfloat(report.kwh, >, 0);
        g_assert_cmpfloat(
            fabs(report.kwh / (report.gpu_hours * (watts + spec->cluster.host_power_w_per_gpu) / 1000) - 1),
            <, 1e-12);
        if (watts == 700) {
            g_autofree Spec *plain = g_new0(Spec, 1);
            g_assert_cmpint(run(NULL, plain, arena).step_ps, ==, report.step_ps);
        }
        before_s = step_s;
        orr_arena_free(arena);
    }
}

/* Over a step, and over a campaign whose waits are counted apart. */
static void test_idle(void)
{
    static const char *const sets[] = {"cluster.accelerator.idle_power_w=150", "cluster.pue=1.25", NULL};
    g_autofree Spec *spec = g_new0(Spec, 1), *unknown = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    CampaignAssumed assumed;
    static const char *const none[] = {"cluster.accelerator.idle_power_w=0", NULL};
    Report report = run(sets, spec, arena), plain = run(none, unknown, arena);
    const double host = spec->cluster.host_power_w_per_gpu, bubble = report.bubble_frac;
    const double step_w = 1.25 * (700 * (1 - bubble) + 150 * bubble + host), wait_w = 1.25 * (150 + host);
    g_assert_cmpint(report.step_ps, ==, plain.step_ps);
    g_assert_cmpfloat(fabs(report.kwh / (report.gpu_hours * step_w / 1000) - 1), <, 1e-12);
    const double plain_kwh = plain.kwh;
    g_assert_true(campaign_assumed_load(&assumed, &error));
    g_assert_true(campaign_effective_fill(&assumed, "power", arena, &report, &error));
    g_assert_true(campaign_effective_fill(&assumed, "power", arena, &plain, &error));
    const double *days = report.effective.part_days;
    const double waits =
        days[REPORT_LIFE_CHECKPOINT] + days[REPORT_LIFE_RESTARTS] + days[REPORT_LIFE_LOADING];
    const double works = days[REPORT_LIFE_COMPUTE] + days[REPORT_LIFE_FAILURES];
    const double hours = 24.0 * report.gpus / 1000;
    g_assert_cmpfloat(waits, >, 0);
    g_assert_cmpfloat(fabs(report.effective.days - works - waits), <, 1e-9);
    g_assert_cmpfloat(fabs(report.kwh / (hours * (works * step_w + waits * wait_w)) - 1), <, 1e-12);
    g_assert_cmpfloat(fabs(report.waiting_kwh / (hours * waits * wait_w) - 1), <, 1e-12);
    /* not known: as dear as a step, in the old arithmetic */
    g_assert_cmpfloat(plain.kwh, ==, plain_kwh * (plain.effective.days / plain.days));
    orr_arena_free(arena);
}

/* Without faults of its own a run has days with failures from CAMPAIGN_ASSUMED_GPUS GPUs on, and only where it has days. */
static void test_assumed(void)
{
    static const struct {
        int gpus_less;
        double days_frac;
        bool filled;
    } cases[] = {{0, 1, true}, {1, 1, false}, {0, 0, false}, {1, 0, false}};
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    CampaignAssumed assumed;
    g_autofree Spec *spec = g_new0(Spec, 1);
    const Report plain = run(NULL, spec, arena);
    spec->faults.given = false;
    g_assert_true(campaign_assumed_load(&assumed, &error));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Report report = plain;
        report.gpus = CAMPAIGN_ASSUMED_GPUS - cases[i].gpus_less;
        report.days *= cases[i].days_frac;
        g_assert_true(campaign_effective_fill(&assumed, "assumed", arena, &report, &error));
        g_assert_cmpint(report.effective.days > 0, ==, cases[i].filled);
    }
    orr_arena_free(arena);
}

static void test_refused(void)
{
    static const char *const bad[] = {"power_cap_w=701", "power_cap_w=100", "power_cap_w=-5",
                                      "idle_power_w=701"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *set = g_strdup_printf("cluster.accelerator.%s", bad[i]);
        const char *const sets[] = {set, NULL};
        GError *error = NULL;
        static const char scenario[] =
            "{\"model\":\"gpt3-175b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":16},\"training\":{"
            "\"sequence_"
            "length\":2048,\"global_batch\":256},\"parallel\":{\"tensor\":8,\"pipeline\":8}}";
        OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "power", NULL);
        g_assert_false(spec_load_json(orr_json_root(doc), "power", sets, false, spec, NULL, &error));
        g_assert_nonnull(strstr(error->message, i < 3 ? "power_cap_w" : "idle_power_w"));
        g_clear_error(&error);
        orr_json_free(doc);
    }
}

/* Hours and energy at their prices; what energy emits. */
static void test_prices(void)
{
    static const char *const sets[] = {"cluster.usd_per_gpu_hour=2", "cluster.usd_per_kwh=0.5",
                                       "cluster.co2_g_per_kwh=400", NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const Report report = run(sets, spec, arena);
    g_assert_cmpfloat(report.kwh, >, 0);
    g_assert_cmpfloat(fabs(report.usd / (2 * report.gpu_hours + 0.5 * report.kwh) - 1), <, 1e-12);
    g_assert_cmpfloat(fabs(report_hours_usd(&report) / (2 * report.gpu_hours) - 1), <, 1e-9);
    g_assert_cmpfloat(fabs(report.co2_kg / (0.4 * report.kwh) - 1), <, 1e-12);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/power/assumed", test_assumed);
    g_test_add_func("/power/sold-with-less", test_sold_with_less);
    g_test_add_func("/power/cap", test_cap);
    g_test_add_func("/power/idle", test_idle);
    g_test_add_func("/power/prices", test_prices);
    g_test_add_func("/power/refused", test_refused);
    return g_test_run();
}
