/* tests/unit/plan/test_planner.c - plans: what they keep, what they choose, and that their days are explained to
 * the last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

#define DAY_S 86400.0

static Spec *scenario(const char *const *sets)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "plan-sc21-175b.json", NULL);
    spec_load_file(path, sets, true, spec, NULL, &error);
    g_assert_no_error(error);
    return spec;
}

static Plan plan(const char *const *sets, const PlanOptions *options)
{
    GError *error = NULL;
    Plan result;
    g_autofree Spec *spec = scenario(sets);
    plan_run(spec, options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static const PlanPoint *at(const Plan *plan, int index)
{
    g_assert_cmpint(index, >=, 0);
    return &g_array_index(plan->points, PlanPoint, (guint)index);
}

/* The answer keeps the deadline, every smaller count that fits misses it, and each point is what it says. */
static void test_deadline(void)
{
    const PlanOptions options = {.deadline_s = 30 * DAY_S};
    Plan result = plan(NULL, &options);
    const PlanPoint *answer = at(&result, result.chosen);
    g_assert_cmpfloat(answer->days, <=, 30);
    for (int i = 0; i < (int)result.points->len; i++) {
        const PlanPoint *point = at(&result, i);
        if (point->reason != NULL)
            continue;
        g_assert_cmpint(point->gpus, ==, 64 * point->spec->parallel.data); /* tensor 8 x pipeline 8 */
        g_assert_cmpint(point->spec->parallel.data * point->spec->training.micro_batch * point->microbatches,
                        ==, 1536);
        g_assert_cmpfloat(fabs(point->gpu_hours - point->days * 24 * point->gpus), <,
                          1e-6 * point->gpu_hours);
        if (i < result.chosen && point->fits)
            g_assert_cmpfloat(point->days, >, 30);
        if (i > 0)
            g_assert_cmpint(point->gpus, >, at(&result, i - 1)->gpus);
    }
    plan_clear(&result);
}

static void test_terms(void)
{
    static const char *const counts[] = {"64", "1024", "12288"};
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        const int gpus = atoi(counts[i]);
        const PlanOptions options = {.gpus = &gpus, .gpus_count = 1, .textbook_flops_per_s = 160e12};
        Plan result = plan(NULL, &options);
        double days = result.textbook.days;
        for (int term = 0; term < result.textbook.term_count; term++)
            days += result.textbook.terms[term].days;
        g_assert_cmpint(result.textbook.at_gpus, ==, gpus);
        g_assert_cmpfloat(fabs(days - at(&result, result.chosen)->days), <, 1e-9 * days);
        plan_clear(&result);
    }
}

/* The budget buys the fastest point that costs no more; its price is GPU-hours times the rate. */
static void test_budget(void)
{
    static const char *const sets[] = {"cluster.usd_per_gpu_hour=2", NULL};
    const PlanOptions options = {.budget_usd = 1.7e6};
    Plan result = plan(sets, &options);
    const PlanPoint *answer = at(&result, result.chosen);
    g_assert_cmpfloat(answer->usd, <=, 1.7e6);
    for (int i = 0; i < (int)result.points->len; i++) {
        const PlanPoint *point = at(&result, i);
        if (point->reason != NULL)
            continue;
        g_assert_cmpfloat(fabs(point->usd - 2 * point->gpu_hours), <, 1e-6 * point->usd);
        if (point->fits && point->days < answer->days)
            g_assert_cmpfloat(point->usd, >, 1.7e6);
    }
    plan_clear(&result);
}

/* 1,536 sequences on 96 replicas are 16 each: a micro-batch of 12 becomes 8. */
static void test_micro_batch(void)
{
    static const char *const sets[] = {"training.micro_batch=12", "parallel.virtual_stages=1",
                                       "parallel.schedule=1f1b", NULL};
    const int gpus = 96 * 64;
    const PlanOptions options = {.gpus = &gpus, .gpus_count = 1};
    Plan result = plan(sets, &options);
    g_assert_cmpint(at(&result, 0)->spec->training.micro_batch, ==, 8);
    g_assert_cmpint(at(&result, 0)->microbatches, ==, 2);
    plan_clear(&result);
}

static void test_refused(void)
{
    static const char *const no_tokens[] = {"training.tokens=0", NULL};
    const PlanOptions plain = {.deadline_s = DAY_S}, budget = {.budget_usd = 1e6};
    const struct {
        const char *const *sets;
        const PlanOptions *options;
        const char *expect;
    } rows[] = {{no_tokens, &plain, "training.tokens"}, {NULL, &budget, "usd_per_gpu_hour"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        Plan result;
        g_autofree Spec *spec = scenario(rows[i].sets);
        g_assert_false(plan_run(spec, rows[i].options, &result, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, rows[i].expect));
        g_error_free(error);
    }
    const int odd[] = {100, 72, 1024};
    const PlanOptions counts = {.gpus = odd, .gpus_count = 3};
    Plan result = plan(NULL, &counts);
    g_assert_cmpint(at(&result, 0)->gpus, ==, 72);
    g_assert_nonnull(at(&result, 0)->reason); /* no multiple of 64 */
    g_assert_nonnull(at(&result, 1)->reason); /* no whole nodes */
    g_assert_null(at(&result, 2)->reason);
    g_assert_cmpint(result.chosen, ==, 2); /* the scenario's own */
    plan_clear(&result);
}

/* Within a range the batch goes with the replicas: counts between the divisors, each with a multiple near the scenario's. */
static void test_batch_range(void)
{
    const PlanOptions fixed = {.deadline_s = 30 * DAY_S},
                      moving = {.deadline_s = 30 * DAY_S, .batch_low = 1400, .batch_high = 1700};
    Plan stays = plan(NULL, &fixed), moves = plan(NULL, &moving);
    int between = 0;
    for (int i = 0; i < (int)moves.points->len; i++) {
        const PlanPoint *point = at(&moves, i);
        if (point->reason != NULL)
            continue;
        g_assert_cmpint(point->global_batch, >=, 1400);
        g_assert_cmpint(point->global_batch, <=, 1700);
        g_assert_cmpint(point->global_batch % point->spec->parallel.data, ==, 0);
        between += 1536 % point->spec->parallel.data != 0;
        if (1536 % point->spec->parallel.data == 0 && point->spec->parallel.data <= 32)
            g_assert_cmpint(point->global_batch, ==, 1536);
    }
    g_assert_cmpint(between, >, 0);
    g_assert_cmpint(at(&moves, moves.chosen)->gpus, <,
                    at(&stays, stays.chosen)->gpus); /* 1,152 or so, not 1,536 */
    g_assert_cmpfloat(at(&moves, moves.chosen)->days, <=, 30);
    plan_clear(&stays);
    plan_clear(&moves);
}

/* With degrees left to a search the batch is one that every GPU could share by itself, where the range has one: a multiple of
 * 31 nodes alone would leave layouts that split each layer over a node. */
static void test_batch_to_search(void)
{
    static const char *const sets[] = {"model=llama2-7b",
                                       "training.sequence_length=4096",
                                       "parallel={\"tensor\":\"auto\",\"zero\":3}",
                                       "training.global_batch=256",
                                       "training.micro_batch=1",
                                       NULL};
    static const struct {
        int gpus, batch;
    } cases[] = {{248, 496}, {256, 256}, {1024, 512}, {4, 256}, {1, 256}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const PlanOptions options = {
            .gpus = &cases[i].gpus, .gpus_count = 1, .batch_low = 256, .batch_high = 512};
        Plan result = plan(sets, &options);
        g_assert_cmpint(at(&result, 0)->gpus, ==, cases[i].gpus);
        g_assert_cmpint(at(&result, 0)->global_batch, ==, cases[i].batch);
        plan_clear(&result);
    }
}

/* With degrees left to a search, counts between the doublings; none much larger than the deadline needs. */
static void test_between_doublings(void)
{
    static const char *const sets[] = {"parallel.pipeline=\"auto\"", "parallel.virtual_stages=1",
                                       "parallel.schedule=1f1b", "parallel.data=\"auto\"", NULL};
    const PlanOptions options = {.deadline_s = 25 * DAY_S, .batch_low = 1400, .batch_high = 1700};
    Plan result = plan(sets, &options);
    const PlanPoint *answer = at(&result, result.chosen);
    bool odd = false;
    for (int i = 0; i < (int)result.points->len; i++) {
        const int gpus = at(&result, i)->gpus;
        odd |= (gpus & (gpus - 1)) != 0;
        if (i > 0)
            g_assert_cmpint(gpus, >, at(&result, i - 1)->gpus);
    }
    g_assert_true(odd);
    g_assert_cmpint(answer->gpus, <, 2048);
    g_assert_cmpfloat(answer->days, <=, 25);
    plan_clear(&result);
}

/* Scaling is against the best row, so none has more than all. */
static void test_scaling(void)
{
    const PlanOptions options = {.budget_usd = 0};
    Plan result = plan(NULL, &options);
    double most = 0;
    for (int i = 0; i < (int)result.points->len; i++)
        most = fmax(most, at(&result, i)->efficiency_frac);
    g_assert_cmpfloat(fabs(most - 1), <, 1e-12);
    plan_clear(&result);
}

static void test_nearest_counts(void)
{
    int below = 0, above = 0;
    const PlanOptions options = {.deadline_s = 30 * DAY_S};
    Plan result = plan(NULL, &options);
    plan_nearest_counts(&result, &(PlanOptions){0}, 500, &below, &above);
    g_assert_cmpint(below, ==, 384); /* 6 and 8 replicas of 64 share 1,536; 7 do not */
    g_assert_cmpint(above, ==, 512);
    plan_clear(&result);
}

/* Within a limit of power the fastest that draws no more; more power is never slower, and without end it is the fastest of
 * all. */
static void test_power(void)
{
    const PlanOptions free = {.power_w = 1e12};
    Plan all = plan(NULL, &free);
    g_assert_cmpint(all.chosen, ==, all.fastest);
    double before = INFINITY;
    for (double mw = 0.1; mw < 2; mw *= 2) {
        const PlanOptions options = {.power_w = mw * 1e6};
        Plan result = plan(NULL, &options);
        const PlanPoint *answer = at(&result, result.chosen);
        g_assert_cmpfloat(plan_power_w(result.asked, answer->gpus), <=, options.power_w);
        g_assert_cmpfloat(plan_days(answer), <=, before);
        for (int i = 0; i < (int)result.points->len; i++)
            g_assert_true((plan_power_w(result.asked, at(&result, i)->gpus) <= options.power_w) ||
                          strstr(at(&result, i)->reason, "over the limit") != NULL);
        before = plan_days(answer);
        plan_clear(&result);
    }
    g_assert_cmpfloat(plan_days(at(&all, all.chosen)), <=, before);
    /* the board, 100 W of its host, and half as much again for cooling */
    g_autofree Spec *spec =
        scenario((const char *const[]){"cluster.pue=1.5", "cluster.host_power_w_per_gpu=100", NULL});
    g_assert_cmpfloat_with_epsilon(plan_power_w(spec, 8), 8 * (spec->cluster.accelerator.power_w + 100) * 1.5,
                                   1e-6);
    GError *error = NULL;
    Plan none;
    const PlanOptions little = {.power_w = 100};
    g_assert_false(plan_run(spec, &little, &none, &error));
    g_assert_nonnull(strstr(error->message, "one node of 8"));
    g_error_free(error);
    plan_clear(&all);
}

/* A machine that cannot be planned on stays on the page with its reason. */
static void test_drops_out(void)
{
    g_autofree Spec *spec = scenario(NULL);
    const PlanOptions options = {.power_w = 1};
    Plan result;
    GError *error = NULL;
    g_assert_false(plan_run(spec, &options, &result, &error));
    plan_drop(spec, error, &result);
    const PlanPage page = {.spec = spec, .options = &options, .plans = &result, .count = 1};
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL);
    plan_write_text(&page, text);
    g_assert_nonnull(strstr(text->str, "none: --power-mw"));
    g_assert_true(plan_write_json(&page, json, NULL));
    g_assert_nonnull(strstr(json->str, "\"reason\":"));
    g_assert_nonnull(strstr(json->str, error->message));
    g_clear_error(&error);
    plan_clear(&result);
}

/* Limits that nothing meets leave the fastest of all: that of --for days without them. */
static void test_without_limits(void)
{
    const PlanOptions far[] = {{.power_w = 1e15}, {.power_w = 1e15, .by = SEARCH_FOR_DAYS}},
                      free = {.by = SEARCH_FOR_DAYS};
    Plan expected = plan(NULL, &free);
    g_assert_cmpint(expected.chosen, >=, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(far); i++) {
        Plan result = plan(NULL, &far[i]);
        g_assert_cmpint(result.chosen, ==, expected.chosen);
        g_assert_cmpfloat(at(&result, result.chosen)->step_s, ==, at(&expected, expected.chosen)->step_s);
        plan_clear(&result);
    }
    plan_clear(&expected);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/planner/power", test_power);
    g_test_add_func("/plan/drops-out", test_drops_out);
    g_test_add_func("/plan/without-limits", test_without_limits);
    g_test_add_func("/plan/deadline", test_deadline);
    g_test_add_func("/plan/terms", test_terms);
    g_test_add_func("/plan/budget", test_budget);
    g_test_add_func("/plan/micro-batch", test_micro_batch);
    g_test_add_func("/plan/refused", test_refused);
    g_test_add_func("/plan/batch-range", test_batch_range);
    g_test_add_func("/plan/batch-to-search", test_batch_to_search);
    g_test_add_func("/plan/between-doublings", test_between_doublings);
    g_test_add_func("/plan/scaling", test_scaling);
    g_test_add_func("/plan/nearest-counts", test_nearest_counts);
    return g_test_run();
}
