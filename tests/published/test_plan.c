/* tests/published/test_plan.c - published plans and campaigns: GPUs for a deadline, days on a cluster. */
#include <math.h>

#include "plan/plan.h"

#define DAY_S 86400.0

static Plan plan_of(const char *path, PlanOptions options)
{
    GError *error = NULL;
    Plan plan;
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *file = g_build_filename(ORRERY_SOURCE_SCENARIOS, path, NULL);
    spec_load_file(file, NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    const int own = spec_gpus(spec);
    if (options.gpus_count == 1 && options.gpus == NULL)
        options.gpus = &own;
    plan_run(spec, &options, &plan, &error);
    g_assert_no_error(error);
    return plan;
}

static const PlanPoint *answer(const Plan *plan)
{
    g_assert_cmpint(plan->chosen, >=, 0);
    return &g_array_index(plan->points, PlanPoint, (guint)plan->chosen);
}

/* 6 x 175e9 x 300e9 / (160 TFLOP/s x 30 days) = 759.5 GPUs. */
static void test_textbook(void)
{
    const PlanOptions options = {
        .deadline_s = 30 * DAY_S, .textbook_flops_per_s = 160e12, .textbook_parameters = 175e9};
    Plan plan = plan_of("examples/plan-sc21-175b.json", options);
    g_test_message("GPT-3 in 30 days at 160 TFLOP/s: %.1f -> %d GPUs", plan.textbook.gpus,
                   plan.textbook.gpus_rounded);
    g_assert_cmpfloat(fabs(plan.textbook.gpus - 759.5), <, 0.1);
    g_assert_cmpint(plan.textbook.gpus_rounded, ==, 760);
    plan_clear(&plan);
}

typedef struct PublishedRun {
    const char *name, *path, *source;
    int gpus;
    double days, tolerance;
} PublishedRun;

static const PublishedRun campaigns[] = {
    {"/published/plan/sc21-175b", "examples/plan-sc21-175b.json", "Narayanan et al. 2021, section 5.1", 1024,
     34, 0.10},
    {"/published/plan/sc21-1t", "examples/plan-sc21-1t.json", "Narayanan et al. 2021, section 5.1", 3072, 84,
     0.10},
    /* 15.6e12 tokens at the 400 TFLOP/s that its Table 4 gives for 16,384 GPUs, attention counted in full */
    {"/published/plan/llama3-405b", "examples/llama3-405b-16k.json", "Llama Team 2024, Table 4", 16384, 72.7,
     0.10},
};

static void test_campaign(gconstpointer data)
{
    const PublishedRun *campaign = data;
    const PlanOptions options = {.gpus_count = 1};
    Plan plan = plan_of(campaign->path, options);
    const PlanPoint *point = answer(&plan);
    g_test_message("%s: %.1f days on %d GPUs, simulated %.1f (%+.1f %%)", campaign->source, campaign->days,
                   point->gpus, point->days, (point->days / campaign->days - 1) * 100);
    g_assert_cmpint(point->gpus, ==, campaign->gpus);
    g_assert_true(point->fits);
    g_assert_cmpfloat(fabs(point->days / campaign->days - 1), <, campaign->tolerance);
    plan_clear(&plan);
}

/* The arithmetic behind the 72.7 days: 6 P T and the attention that the paper counts. */
static void test_llama_rate(void)
{
    const PlanOptions options = {.gpus_count = 1, .textbook_flops_per_s = 400e12};
    Plan plan = plan_of("examples/llama3-405b-16k.json", options);
    g_test_message("Llama 3 405B at 400 TFLOP/s: %.1f days by 6 P T, %.1f with attention", plan.textbook.days,
                   plan.textbook.attention_days);
    g_assert_cmpfloat(fabs(plan.textbook.attention_days - 72.7), <, 0.1);
    plan_clear(&plan);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/published/plan/textbook-gpt3", test_textbook);
    g_test_add_func("/published/plan/llama3-rate", test_llama_rate);
    for (gsize i = 0; i < G_N_ELEMENTS(campaigns); i++)
        g_test_add_data_func(campaigns[i].name, &campaigns[i], test_campaign);
    return g_test_run();
}
