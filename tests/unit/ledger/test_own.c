/* tests/unit/ledger/test_own.c - predictions corrected by own runs: against the closed form for one run, limits,
 * bounds. */
#include <math.h>

#include "ledger/own.h"

static LedgerTraits traits_at(double size)
{
    LedgerTraits traits = {{0}, {0}, {0}};
    traits.size[0] = log(size);
    return traits;
}

static void nothing_known(void)
{
    const LedgerTraits here = traits_at(8);
    const LedgerOwnSays says = ledger_own_says(NULL, 0, &here);
    g_assert_cmpfloat(says.log_ratio, ==, 0);
    g_assert_cmpfloat(says.deviation_frac, ==, 1);
}

/* E = k r / (k + noise) with one run. */
static void one_run(void)
{
    const double shared = LEDGER_OWN_SHARED * LEDGER_OWN_SHARED, local = LEDGER_OWN_LOCAL * LEDGER_OWN_LOCAL,
                 noise = LEDGER_OWN_NOISE * LEDGER_OWN_NOISE;
    const LedgerOwnRun run = {traits_at(8), 0.2};
    LedgerTraits there = traits_at(8 * 64.0);
    g_assert_cmpfloat_with_epsilon(ledger_own_says(&run, 1, &run.traits).log_ratio,
                                   0.2 * (shared + local) / (shared + local + noise), 1e-12);
    g_assert_cmpfloat_with_epsilon(ledger_likeness(&run.traits, &there), exp(-0.5), 1e-12);
    g_assert_cmpfloat_with_epsilon(ledger_own_says(&run, 1, &there).log_ratio,
                                   0.2 * (shared + local * exp(-0.5)) / (shared + local + noise), 1e-12);
    there.word[0] = 1;
    g_assert_cmpfloat_with_epsilon(ledger_likeness(&run.traits, &there), LEDGER_OWN_WORD * exp(-0.5), 1e-12);
}

/* A tenth of the step that is bubble instead of compute. */
static void other_shares(void)
{
    LedgerTraits here = traits_at(8), there = traits_at(8);
    here.share[SIM_PART_COMPUTE] = 1;
    there.share[SIM_PART_COMPUTE] = 0.9;
    there.share[SIM_PART_COUNT] = 0.1;
    g_assert_cmpfloat_with_epsilon(ledger_likeness(&here, &there),
                                   exp(-0.01 / (LEDGER_OWN_SHARE * LEDGER_OWN_SHARE)), 1e-12);
    g_assert_cmpfloat(ledger_likeness(&here, &here), ==, 1);
}

/* Shares are those of the step: all of them together make one. */
static void shares_of_a_report(void)
{
    Report report = {.step_ps = 8, .bubble_ps = 2};
    g_autofree Spec *spec = g_new0(Spec, 1);
    report.spec = spec;
    report.part_ps[SIM_PART_COMPUTE] = 5;
    report.part_ps[SIM_PART_DATA_COMM] = 1;
    const LedgerTraits traits = ledger_traits(&report);
    double sum = 0;
    for (int i = 0; i < LEDGER_TRAIT_SHARES; i++)
        sum += traits.share[i];
    g_assert_cmpfloat(sum, ==, 1);
    g_assert_cmpfloat(traits.share[SIM_PART_DATA_COMM], ==, 0.125);
    g_assert_cmpfloat(traits.share[SIM_PART_COUNT], ==, 0.25);
}

/* Many measurements of one configuration leave its own noise alone. */
static void many_runs(void)
{
    LedgerOwnRun runs[200];
    for (int i = 0; i < 200; i++)
        runs[i] = (LedgerOwnRun){traits_at(8), -0.1};
    double before = 2;
    for (int count = 0; count <= 200; count += 20) {
        const LedgerOwnSays says = ledger_own_says(runs, count, &runs[0].traits);
        g_assert_cmpfloat(says.deviation_frac, <, before);
        before = says.deviation_frac;
    }
    const LedgerOwnSays says = ledger_own_says(runs, 200, &runs[0].traits);
    const double all = LEDGER_OWN_SHARED * LEDGER_OWN_SHARED + LEDGER_OWN_LOCAL * LEDGER_OWN_LOCAL +
                       LEDGER_OWN_NOISE * LEDGER_OWN_NOISE;
    g_assert_cmpfloat_with_epsilon(says.log_ratio, -0.1, 1e-4);
    g_assert_cmpfloat_with_epsilon(says.deviation_frac, LEDGER_OWN_NOISE / sqrt(all), 1e-3);
}

static void fills_a_report(void)
{
    Report report = {
        .step_ps = 2000000000000, .interval_low_s = 1.6, .interval_high_s = 2.5, .interval_coverage = 0.9};
    Spec *spec = g_new0(Spec, 1);
    spec->cluster.gpus_per_node = spec->cluster.nodes = 1;
    report.spec = spec;
    report.gpus = 1;
    const LedgerOwnRun run = {ledger_traits(&report), log(1.1)};
    ledger_own_fill(&run, 1, &report);
    g_assert_cmpint(report.own.runs, ==, 1);
    g_assert_cmpfloat(report.own.factor, >, 1);
    g_assert_cmpfloat(report.own.factor, <, 1.1);
    g_assert_cmpfloat_with_epsilon(report.own.step_s, 2 * report.own.factor, 1e-12);
    g_assert_cmpfloat_with_epsilon(report.own.high_s / report.own.step_s,
                                   report.own.step_s / report.own.low_s, 1e-9);
    g_assert_cmpfloat(report.own.high_s / report.own.step_s, <, report.interval_high_s / 2);
    g_free(spec);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/own/nothing-known", nothing_known);
    g_test_add_func("/own/one-run", one_run);
    g_test_add_func("/own/other-shares", other_shares);
    g_test_add_func("/own/shares-of-a-report", shares_of_a_report);
    g_test_add_func("/own/many-runs", many_runs);
    g_test_add_func("/own/fills-a-report", fills_a_report);
    return g_test_run();
}
