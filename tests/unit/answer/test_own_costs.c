/* tests/unit/answer/test_own_costs.c - one's own runs correct days, energy and money alike, and prices of hours and of energy
 * stay what they are. */
#include <math.h>

#include "answer/answer.h"
#include "spec/load.h"

static Report ask(const LedgerOwnRun *own, int count, OrrArena *arena, Spec *spec)
{
    static const char *const sets[] = {"training.tokens=300e9", "cluster.usd_per_gpu_hour=2",
                                       "cluster.usd_per_kwh=0.5", NULL};
    const AnswerAsk how = {.where = "test", .own = own, .own_count = count};
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "plan-sc21-175b.json", NULL);
    GError *error = NULL;
    Report report;
    spec_load_file(path, sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    answer_ask(spec, NULL, &how, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static void near(double a, double b)
{
    g_assert_cmpfloat(fabs(a - b), <=, 1e-9 * fabs(b));
}

static void test_prices(const Report *report)
{
    g_assert_cmpfloat(report->kwh, >, 0);
    near(report->usd, 2 * report->gpu_hours + 0.5 * report->kwh);
    near(report->gpu_hours, report->days * 24 * report->gpus);
}

static void test_own(void)
{
    OrrArena *arena = orr_arena_new();
    g_autofree Spec *spec = g_new0(Spec, 1), *again = g_new0(Spec, 1);
    const Report plain = ask(NULL, 0, arena, spec);
    const LedgerOwnRun slower = {ledger_traits(&plain), 0.2};
    const Report told = ask(&slower, 1, arena, again);
    g_assert_cmpfloat(told.own.factor, >, 1.05);
    test_prices(&plain);
    test_prices(&told);
    near(told.days, plain.days * told.own.factor);
    near(told.kwh, plain.kwh * told.own.factor);
    near(told.usd, plain.usd * told.own.factor);
    g_assert_cmpint(told.step_ps, ==, plain.step_ps); /* the prediction itself is kept beside */
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/own-costs/own", test_own);
    return g_test_run();
}
