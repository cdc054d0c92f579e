/* tests/unit/plan/test_pay.c - what a plan is paid by: terms of years, whole racks, electricity, CO2, nodes that are taken
 * back; and that each of them, at its limit, leaves the plan as it is. */
#include <math.h>

#include "plan/plan.h"

static Plan plan_on(const int *gpus, int count, const char *const *sets, const PlanOptions *options,
                    const CampaignAssumed *assumed)
{
    GError *error = NULL;
    Plan result;
    PlanOptions own = *options;
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "plan-sc21-175b.json", NULL);
    own.gpus = gpus;
    own.gpus_count = count;
    own.assumed = assumed;
    spec_load_file(path, sets, true, spec, NULL, &error);
    g_assert_no_error(error);
    plan_run(spec, &own, &result, &error);
    g_assert_no_error(error);
    return result;
}

static Plan plan(const char *const *sets, const PlanOptions *options, const CampaignAssumed *assumed)
{
    static const int gpus[] = {1024};
    return plan_on(gpus, 1, sets, options, assumed);
}

static PlanPoint paid(const char *const *sets, const PlanOptions *options)
{
    Plan result = plan(sets, options, NULL);
    PlanPoint point = g_array_index(result.points, PlanPoint, 0);
    g_assert_null(point.reason);
    plan_clear(&result);
    return point;
}

static void near(double a, double b)
{
    g_assert_cmpfloat(fabs(a - b), <=, 1e-9 * fabs(b));
}

#define PRICE "cluster.usd_per_gpu_hour=2"

/* One term is bought for a run of a month, and its share is what the hours cost; in full it costs all of it. */
static void test_terms(void)
{
    const PlanOptions hourly = {0};
    PlanOptions term = {.terms = {.name = "reserved 1 year", .years = 1}};
    const char *const sets[] = {PRICE, NULL};
    const PlanPoint by_hour = paid(sets, &hourly), share = paid(sets, &term);
    near(by_hour.usd, by_hour.days * 24 * 1024 * 2);
    near(share.usd, by_hour.usd);
    g_assert_cmpfloat(by_hour.committed_usd, ==, 0);
    near(share.committed_usd, 8766.0 * 1024 * 2);
    term.terms.paid_in_full = true;
    near(paid(sets, &term).usd, 8766.0 * 1024 * 2);
    term.terms.years = by_hour.days / 365.25 / 2.5; /* two and a half terms: three are bought */
    near(paid(sets, &term).usd, by_hour.usd * 3 / 2.5);
    term.terms.years = by_hour.days / 365.25 * 1.0000001;
    g_assert_cmpfloat(fabs(paid(sets, &term).usd / by_hour.usd - 1), <, 1e-6);
}

/* 1,024 GPUs in racks of 72 are 14.2: 15 are rented, of which 56 GPUs idle. */
static void test_racks(void)
{
    PlanOptions options = {.whole_racks = true};
    const char *const sets[] = {PRICE, "cluster.rack_gpus=72", "cluster.accelerator.idle_power_w=60", NULL};
    const char *const bare[] = {PRICE, "cluster.accelerator.idle_power_w=60", NULL};
    const PlanPoint whole = paid(sets, &options), none = paid(bare, &options);
    options.whole_racks = false;
    const PlanPoint told = paid(sets, &options);
    near(whole.racks, 1024.0 / 72);
    g_assert_cmpint(whole.paid_gpus, ==, 1080);
    near(whole.usd, none.usd * 1080 / 1024);
    near(whole.gpu_hours, none.gpu_hours * 1080 / 1024);
    near(whole.power_w, none.power_w * 1080 / 1024);
    g_assert_cmpfloat(whole.kwh, >, none.kwh);
    g_assert_cmpfloat(whole.kwh, <, none.kwh * 1080 / 1024);
    g_assert_cmpfloat(told.usd, ==, none.usd); /* racks that are only told change nothing */
    g_assert_cmpfloat(told.kwh, ==, none.kwh);
    g_assert_cmpint(none.paid_gpus, ==, 1024);
}

static void test_energy(void)
{
    const PlanOptions options = {0};
    const char *const sets[] = {PRICE, "cluster.usd_per_kwh=0.1", "cluster.co2_g_per_kwh=250", NULL};
    const char *const bare[] = {PRICE, NULL};
    const PlanPoint paid_apart = paid(sets, &options), within = paid(bare, &options);
    near(paid_apart.usd, within.usd + within.kwh * 0.1);
    near(paid_apart.co2_kg, within.kwh * 0.25);
    g_assert_cmpfloat(within.co2_kg, ==, 0);
}

/* Hosts whose power is given do not stand for GPUs whose power is not: there is no energy then, and no price of it. */
static void test_unknown_power(void)
{
    const PlanOptions options = {0};
    const char *const known[] = {PRICE, "cluster.usd_per_kwh=0.1", "cluster.host_power_w_per_gpu=300", NULL};
    const char *const unknown[] = {PRICE, "cluster.usd_per_kwh=0.1", "cluster.host_power_w_per_gpu=300",
                                   "cluster.accelerator.power_w=0", NULL};
    const char *const bare[] = {PRICE, NULL};
    const PlanPoint with = paid(known, &options), without = paid(unknown, &options);
    g_assert_cmpfloat(with.kwh, >, 0);
    g_assert_cmpfloat(without.kwh, ==, 0);
    g_assert_cmpfloat(without.power_w, ==, 0);
    near(without.usd, paid(bare, &options).usd);
}

static void assert_same_answer(const char *const *sets, const PlanOptions *options)
{
    static const int gpus[] = {512, 1024, 1536, 3072};
    PlanOptions limited = *options;
    Plan free = plan_on(gpus, 4, sets, options, NULL);
    for (double power_w = 1e9; power_w < 1e300; power_w *= 1e50) {
        limited.power_w = power_w;
        Plan within = plan_on(gpus, 4, sets, &limited, NULL);
        g_assert_cmpint(within.chosen, ==, free.chosen);
        g_assert_cmpint(within.points->len, ==, free.points->len);
        for (guint i = 0; i < free.points->len; i++) {
            const PlanPoint *a = &g_array_index(free.points, PlanPoint, i),
                            *b = &g_array_index(within.points, PlanPoint, i);
            g_assert_cmpint(a->gpus, ==, b->gpus);
            g_assert_cmpstr(a->reason, ==, b->reason);
            g_assert_cmpfloat(a->days, ==, b->days);
            g_assert_cmpfloat(a->usd, ==, b->usd);
            g_assert_cmpfloat(a->kwh, ==, b->kwh);
        }
        plan_clear(&within);
    }
    plan_clear(&free);
}

/* A limit of power that nothing meets is no limit: nor do deadlines and budgets change beside it. */
static void test_power_without_end(void)
{
    const char *const sets[] = {PRICE, NULL};
    const PlanOptions rows[] = {{.deadline_s = 40 * 86400.0},
                                {.budget_usd = 3e6},
                                {.deadline_s = 40 * 86400.0, .budget_usd = 3e6},
                                {.deadline_s = 86400.0},
                                {.by = SEARCH_FOR_COST, .deadline_s = 40 * 86400.0},
                                {.whole_racks = true, .deadline_s = 40 * 86400.0}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        assert_same_answer(sets, &rows[i]);
}

/* Days grow as nodes are taken back more often, and without end between two they are those of a run without. */
static void test_spot(void)
{
    GError *error = NULL;
    CampaignAssumed assumed;
    const PlanOptions options = {0};
    double last = 0;
    campaign_assumed_load(&assumed, &error);
    g_assert_no_error(error);
    Plan plain = plan(NULL, &options, &assumed);
    const double days = g_array_index(plain.points, PlanPoint, 0).effective.days;
    for (double mtbf_s = 1e12; mtbf_s > 1e5; mtbf_s /= 10) {
        g_autofree char *spot = g_strdup_printf("faults.spot_mtbf_s=%g", mtbf_s);
        const char *const sets[] = {"faults=" CAMPAIGN_ASSUMED_FAULTS, spot, NULL};
        Plan taken = plan(sets, &options, &assumed);
        const double now = g_array_index(taken.points, PlanPoint, 0).effective.days;
        g_assert_cmpfloat(now, >, last);
        if (mtbf_s >= 1e12)
            g_assert_cmpfloat(fabs(now / days - 1), <, 1e-4);
        last = now;
        plan_clear(&taken);
    }
    g_assert_cmpfloat(last, >, 1.05 * days);
    plan_clear(&plain);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/pay/terms", test_terms);
    g_test_add_func("/plan/pay/racks", test_racks);
    g_test_add_func("/plan/pay/energy", test_energy);
    g_test_add_func("/plan/pay/spot", test_spot);
    g_test_add_func("/plan/pay/unknown-power", test_unknown_power);
    g_test_add_func("/plan/pay/power-without-end", test_power_without_end);
    return g_test_run();
}
