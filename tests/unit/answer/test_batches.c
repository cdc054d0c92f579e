/* tests/unit/answer/test_batches.c - days of a run whose batch grows: the sum of what each size takes on its own. */
#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "spec/load.h"

#define TOKENS "training.tokens=300e9"

static bool ask(const char *const *sets, OrrArena *arena, Spec *spec, Report *ret_report, GError **error)
{
    const AnswerAsk how = {.where = "test"};
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "plan-sc21-175b.json", NULL);
    return spec_load_file(path, sets, false, spec, NULL, error) &&
           answer_ask(spec, NULL, &how, arena, ret_report, error);
}

typedef struct Answer {
    double days, step_s, usd, kwh;
    int sizes;
    ReportBatch size[256];
} Answer;

static Answer answer(const char *const *sets)
{
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    g_autofree Spec *spec = g_new0(Spec, 1);
    ask(sets, arena, spec, &report, &error);
    g_assert_no_error(error);
    Answer out = {report.days, (double)report.step_ps * 1e-12, report.usd, report.kwh, report.batch_count,
                  {{0}}};
    for (int i = 0; i < MIN(report.batch_count, 256); i++)
        out.size[i] = report.batches[i];
    orr_arena_free(arena);
    return out;
}

static void near(double a, double b)
{
    g_assert_cmpfloat(fabs(a - b), <=, 1e-9 * fabs(b));
}

/* Two entries, one of other sequences too: days, money and energy are the shares of three runs. */
static void test_sum(void)
{
    static const char *const schedule =
        "training.batch_schedule=[{\"global_batch\":384,\"sequence_length\":1024,\"tokens\":60e9},"
        "{\"global_batch\":768,\"samples\":29296875}]"; /* of 2,048 tokens: 60e9 */
    static const char *const price = "cluster.usd_per_gpu_hour=2";
    const Answer grown = answer((const char *const[]){TOKENS, price, schedule, NULL});
    const Answer first = answer((const char *const[]){TOKENS, price, "training.global_batch=384",
                                                      "training.sequence_length=1024", NULL});
    const Answer second = answer((const char *const[]){TOKENS, price, "training.global_batch=768", NULL});
    const Answer own = answer((const char *const[]){TOKENS, price, NULL});
    g_assert_cmpfloat(first.days, >, own.days);
    near(grown.days, (first.days + second.days + 3 * own.days) / 5);
    near(grown.usd, (first.usd + second.usd + 3 * own.usd) / 5);
    near(grown.kwh, (first.kwh + second.kwh + 3 * own.kwh) / 5);
    g_assert_cmpfloat(grown.step_s, ==, own.step_s); /* the step stays that of the run's own batch */
    g_assert_cmpint(grown.sizes, ==, 3);
    near(grown.size[1].tokens, 60e9);
    near(grown.size[1].step_s, second.step_s);
    near(grown.size[2].tokens, 180e9);
}

/* From 384 by 128 to the run's own 1,536: nine sizes, with as many sequences each. */
static void test_ramp(void)
{
    const Answer ramp = answer((const char *const[]){
        TOKENS, "training.batch_schedule=[{\"global_batch\":384,\"by\":128,\"tokens\":90e9}]", NULL});
    double days = 0;
    g_assert_cmpint(ramp.sizes, ==, 10);
    for (int i = 0; i < ramp.sizes; i++) {
        days += ramp.size[i].days;
        g_assert_cmpint(ramp.size[i].global_batch, ==, 384 + 128 * i);
        near(ramp.size[i].tokens, i < 9 ? 10e9 : 210e9);
    }
    near(ramp.days, days);
}

/* An entry of the run's own size, and one of nearly no tokens, leave the days as they are. */
static void test_limits(void)
{
    const Answer own = answer((const char *const[]){TOKENS, NULL});
    const Answer same = answer((const char *const[]){
        TOKENS, "training.batch_schedule=[{\"global_batch\":1536,\"tokens\":100e9}]", NULL});
    const Answer brief = answer(
        (const char *const[]){TOKENS, "training.batch_schedule=[{\"global_batch\":384,\"tokens\":1}]", NULL});
    const Answer none = answer((const char *const[]){TOKENS, "training.batch_schedule=[]", NULL});
    near(same.days, own.days);
    near(same.kwh, own.kwh);
    g_assert_cmpfloat(fabs(brief.days / own.days - 1), <, 1e-9);
    g_assert_cmpfloat(none.days, ==, own.days);
    g_assert_cmpint(none.sizes, ==, 0);
}

static void test_refused(void)
{
    static const struct {
        const char *schedule, *expect;
    } rows[] = {
        {"7", "not a list of at most 16 entries"},
        {"[7]", "batch_schedule[0]"},
        {"[{\"tokens\":1e9}]", "global_batch: missing"},
        {"[{\"global_batch\":384}]", "tokens or samples"},
        {"[{\"global_batch\":384,\"tokens\":1e9,\"samples\":5}]", "tokens or samples"},
        {"[{\"global_batch\":384,\"tokens\":-1}]", "-1"},
        {"[{\"global_batch\":384,\"tokens\":300e9}]", "give the whole run more"},
        {"[{\"global_batch\":385,\"tokens\":1e9}]", "not a multiple of micro_batch"},
        {"[{\"global_batch\":384,\"by\":100,\"tokens\":1e9}]", "does not lead from 384"},
        {"[{\"global_batch\":3072,\"by\":192,\"tokens\":1e9}]", "does not lead from 3072"},
        {"[{\"global_batch\":384,\"by\":8,\"tokens\":1e9}]", "[0].by: 8 is not a multiple"},
        {"[{\"global_batch\":384,\"sequence_length\":4096,\"tokens\":1e9}]", "at 384 sequences of 4096"},
        {"[{\"global_bach\":384,\"tokens\":1e9}]", "global_batch"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *set = g_strdup_printf("training.batch_schedule=%s", rows[i].schedule);
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        Report report;
        g_assert_false(ask((const char *const[]){TOKENS, set, NULL}, arena, spec, &report, &error));
        if (strstr(error->message, rows[i].expect) == NULL)
            g_error("%s: %s", rows[i].schedule, error->message);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/batches/sum", test_sum);
    g_test_add_func("/batches/ramp", test_ramp);
    g_test_add_func("/batches/limits", test_limits);
    g_test_add_func("/batches/refused", test_refused);
    return g_test_run();
}
