/* tests/unit/report/test_metamorphic.c - what must hold between a random scenario and a changed one, whatever the
 * numbers: faster hardware is not slower, more memory changes no time and makes nothing unfit, parts add up, rates
 * follow from the step. No expected value is written down. */
#include <math.h>
#include <string.h>

#include "costmodel/states.h"
#include "tests/unit/random_scenario.h"

enum { SCENARIOS = 150 };

static const char *const models[] = {"llama3-8b",    "llama3-70b",       "gpt3-13b",    "gpt3-175b",
                                     "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b", "qwen3-30b-a3b"};
static const char *const clusters[] = {"dgx-a100-80gb", "dgx-h100", "dgx-b200",      "gb200-nvl72",
                                       "aws-p4d",       "dgx-1",    "jean-zay-a100", "mi300x-node"};
static const char *const frameworks[] = {"megatron-core", "torchtitan",        "deepspeed",
                                         "nanotron",      "pytorch-fsdp",      "megatron-lm-2021",
                                         "meta-llama3",   "megatron-deepspeed"};
static const char *const recomputes[] = {"none", "selective", "full"};
static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v"};

static char *scenario_text(GRand *random)
{
    const int pipeline = POWER(random, 3);
    const char *schedule = ANY(random, schedules);
    g_autofree char *order =
        pipeline > 1
            ? g_strdup_printf(", \"schedule\": \"%s\", \"virtual_stages\": %d", schedule,
                              strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "zb-v") == 0 ? 2 : 1)
            : g_strdup("");
    return g_strdup_printf(
        "{\"model\": \"%s\", \"cluster\": {\"preset\": \"%s\", \"nodes\": %d}, \"training\": "
        "{\"sequence_length\": %d, "
        "\"global_batch\": %d, \"micro_batch\": %d, \"recompute\": \"%s\", \"tokens\": 1e11}, \"parallel\": "
        "{\"tensor\": "
        "%d, \"pipeline\": %d, \"context\": %d, \"zero\": %d, \"expert\": %d, \"sequence_parallel\": %s%s}, "
        "\"execution\": {\"framework\": \"%s\", \"overlap\": [%s]}}",
        ANY(random, models), ANY(random, clusters), POWER(random, 4), 2048 * POWER(random, 2),
        32 * POWER(random, 3), POWER(random, 2), ANY(random, recomputes), POWER(random, 3), pipeline,
        POWER(random, 1), g_rand_int_range(random, 0, 4), POWER(random, 2),
        g_rand_boolean(random) ? "true" : "false", order, ANY(random, frameworks),
        g_rand_boolean(random) ? "\"grad_reduce\", \"param_gather\"" : "");
}

typedef struct Outcome {
    int64_t step_ps, parts_ps, other_ps, compute_ps;
    double bubble_frac, tokens_per_s, mfu, hfu, days, gpu_hours, kwh, peak_bytes;
    bool fits;
} Outcome;

static Outcome run(const Spec *spec)
{
    const ReportOptions options = {0};
    OrrArena *arena = orr_arena_new();
    Report report;
    g_autoptr(GError) error = NULL;
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    Outcome outcome = {.step_ps = report.step_ps,
                       .parts_ps = report.bubble_ps,
                       .other_ps = report.part_ps[SIM_PART_OTHER],
                       .compute_ps = report.part_ps[SIM_PART_COMPUTE] + report.part_ps[SIM_PART_RECOMPUTE],
                       .bubble_frac = report.bubble_frac,
                       .tokens_per_s = report.tokens_per_s,
                       .mfu = report.mfu,
                       .hfu = report.hfu,
                       .days = report.days,
                       .gpu_hours = report.gpu_hours,
                       .kwh = report.kwh,
                       .peak_bytes = report.peak_bytes,
                       .fits = report.fits};
    for (int i = 0; i < SIM_PART_COUNT; i++)
        outcome.parts_ps += report.part_ps[i];
    orr_arena_free(arena);
    return outcome;
}

static void assert_close(double a, double b)
{
    g_assert_cmpfloat(fabs(a - b), <=, 1e-9 * fabs(b));
}

/* But for what rounding every op to a picosecond adds up to. Where waits for launches are much beside compute, the time of a
 * micro-batch is the host's whatever the GPU does, but how it falls to forward and backward follows the GPU, and pipelines
 * and reductions behind the backward wait up to 2 % longer for it. */
static void assert_no_slower(const Outcome *now, const Outcome *than)
{
    const bool launches = now->other_ps >= now->compute_ps / 20;
    g_assert_cmpint(now->step_ps, <=, than->step_ps + than->step_ps / (launches ? 50 : 1000000000));
}

/* Rates, days and energy are arithmetic on the step. */
static void check_arithmetic(const Spec *spec, const Outcome *was)
{
    const double step_s = (double)was->step_ps * 1e-12, gpus = spec_gpus(spec);
    const double tokens = (double)spec->training.global_batch * spec->training.sequence_length;
    const SpecCluster *cluster = &spec->cluster;
    g_assert_cmpint(was->parts_ps, ==, was->step_ps);
    assert_close(was->tokens_per_s, tokens / step_s);
    assert_close(was->days, spec->training.tokens / tokens * step_s / 86400);
    assert_close(was->gpu_hours, was->days * 24 * gpus);
    const double limit_w = cluster->accelerator.power_w, idle_w = cluster->accelerator.idle_power_w;
    const double gpu_w = idle_w > 0 ? limit_w - was->bubble_frac * (limit_w - idle_w) : limit_w;
    assert_close(was->kwh, was->gpu_hours * (gpu_w + cluster->host_power_w_per_gpu) * cluster->pue / 1000);
    g_assert_cmpfloat(was->mfu, <=, was->hfu * (1 + 1e-12));
    g_assert_cmpfloat(was->hfu, <, 1);
}

static void check_hardware(const Spec *spec, const Outcome *was)
{
    const size_t rates[] = {offsetof(Spec, cluster.scale_out_bytes_per_s_per_gpu),
                            offsetof(Spec, cluster.scale_up_bytes_per_s),
                            offsetof(Spec, cluster.accelerator.memory_bytes_per_s)};
    g_autofree Spec *changed = g_new(Spec, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(rates); i++) {
        *changed = *spec;
        *(double *)(void *)((char *)changed + rates[i]) *= 2;
        const Outcome faster = run(changed);
        assert_no_slower(&faster, was);
    }
    *changed = *spec;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        changed->cluster.accelerator.peak_flops_per_s[i] *= 2;
    const Outcome faster = run(changed);
    assert_no_slower(&faster, was);
    *changed = *spec;
    changed->cluster.accelerator.memory_bytes *= 2;
    const Outcome roomy = run(changed);
    g_assert_cmpint(roomy.step_ps, ==, was->step_ps);
    g_assert_true(roomy.fits || !was->fits);
}

/* Full recomputation takes no less than none, for the same model FLOPs, and holds no more but for the one layer that it runs
 * again: where gradients make the peak, one layer is all that activations come to either way. */
static void check_recompute(const Spec *spec)
{
    g_autofree Spec *changed = g_new(Spec, 1);
    *changed = *spec;
    changed->training.recompute = (SpecRecompute){.mode = SPEC_RECOMPUTE_NONE};
    const Outcome none = run(changed);
    changed->training.recompute = (SpecRecompute){.mode = SPEC_RECOMPUTE_FULL};
    const Outcome full = run(changed);
    g_assert_cmpfloat(full.peak_bytes, <=, none.peak_bytes * 1.02);
    g_assert_cmpint(full.step_ps, >=,
                    none.step_ps - none.step_ps / 1000000000); /* each op is rounded to 1 ps */
    assert_close(full.mfu * (double)full.step_ps, none.mfu * (double)none.step_ps);
}

static void test_random(void)
{
    const char *seed = g_getenv("ORRERY_TEST_SEED"); /* other scenarios, for a wider look */
    GRand *random = g_rand_new_with_seed(seed != NULL ? (guint32)g_ascii_strtoull(seed, NULL, 10) : 20261121);
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int found = 0; found < SCENARIOS;) {
        g_autofree char *text = scenario_text(random);
        if (!scenario_load(text, NULL, spec))
            continue;
        g_test_message("%s", text);
        const Outcome was = run(spec);
        check_arithmetic(spec, &was);
        check_hardware(spec, &was);
        check_recompute(spec);
        found++;
    }
    g_rand_free(random);
}

/* All forwards come first, so nothing of what the host is ahead by in a backward comes before one: a step that launches fill is not slower on a faster GPU. */
static void test_launches_of_gpipe(void)
{
    static const char text[] =
        "{\"model\": \"mixtral-8x7b\", \"cluster\": {\"preset\": \"dgx-b200\", \"nodes\": 16}, "
        "\"training\": {\"sequence_length\": 2048, \"global_batch\": 64, \"micro_batch\": 4}, "
        "\"parallel\": {\"tensor\": 8, \"sequence_parallel\": true, \"pipeline\": 2, \"expert\": 2, "
        "\"zero\": 2, "
        "\"schedule\": \"gpipe\"}, \"execution\": {\"framework\": \"deepspeed\", "
        "\"overlap\": [\"grad_reduce\", \"param_gather\"]}}";
    g_autofree Spec *spec = g_new(Spec, 1);
    g_assert_true(scenario_load(text, NULL, spec));
    const Outcome was = run(spec);
    g_assert_cmpint(was.other_ps, >, was.step_ps / 10);
    spec->cluster.accelerator.peak_flops_per_s[SPEC_BF16] *= 2;
    const Outcome faster = run(spec);
    g_assert_cmpint(faster.step_ps, <, was.step_ps);
}

/* One micro-batch through a pipeline: no backward is before the only forward, and of a split backward the weight gradients are
 * too late for the input's, so that a faster GPU takes no time from launches that others wait for. */
static void test_launches_of_one_microbatch(void)
{
    static const char *const orders[] = {"zb-h1", "1f1b", "gpipe"};
    g_autofree Spec *spec = g_new(Spec, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"model\": \"llama-65b\", \"cluster\": {\"preset\": \"dgx-h200\", \"nodes\": 4}, \"training\": "
            "{\"sequence_length\": 512, \"global_batch\": 1, \"micro_batch\": 1}, \"parallel\": {\"tensor\": "
            "4, "
            "\"pipeline\": 8, \"zero\": 2, \"schedule\": \"%s\"}, \"execution\": {\"framework\": "
            "\"deepspeed\"}}",
            orders[i]);
        g_assert_true(scenario_load(text, NULL, spec));
        const Outcome was = run(spec);
        g_assert_cmpint(was.other_ps, >, was.step_ps / 50); /* the host is what some pass waits for */
        spec->cluster.accelerator.peak_flops_per_s[SPEC_BF16] *= 1.5;
        const Outcome faster = run(spec);
        g_assert_cmpint(faster.step_ps, <=, was.step_ps);
        spec->cluster.scale_up_bytes_per_s *= 1.5;
        g_assert_cmpint(run(spec).step_ps, <=, faster.step_ps);
    }
}

/* What the software does and a user would not expect: pipelines of fully_shard keep whole sums and gathered weights; with one
 * replica nothing is sharded, and it sums all the same; a gathered weight lies beside its shard, a whole chunk's under GPipe
 * and all where they are not given back; a unit on its way out, as large as its stage at worst, beside the sums. */
static bool may_hold_more(const Spec *spec)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    const bool pipeline =
        spec->parallel.pipeline > 1 && recipe->resharding == SPEC_RESHARDING_UNLESS_PIPELINE;
    const bool beside = spec->parallel.zero == 3 && (cost_shards_by_chunk(spec) || !cost_reshards(spec));
    return pipeline || cost_dense_replicas(spec) == 1 || cost_expert_replicas(spec) == 1 || beside ||
           cost_reduces_each_microbatch(spec);
}

/* Gradients that wait whole for the last micro-batch are what they are under a lower stage: their shards take their place. */
static void test_higher_zero(void)
{
    GRand *random = g_rand_new_with_seed(20261129);
    g_autofree Spec *spec = g_new(Spec, 1);
    int pipelines = 0;
    for (int found = 0; found < 60;) {
        g_autofree char *text = scenario_text(random);
        if (!scenario_load(text, NULL, spec))
            continue;
        double before_bytes = 0;
        for (spec->parallel.zero = 1; spec->parallel.zero <= 3; spec->parallel.zero++) {
            const Outcome outcome = run(spec);
            if (before_bytes > 0 && !may_hold_more(spec)) {
                g_test_message("%s zero %d", text, spec->parallel.zero);
                g_assert_cmpfloat(outcome.peak_bytes, <=, before_bytes);
                pipelines += spec->parallel.pipeline > 1;
                found++;
            }
            before_bytes = outcome.peak_bytes;
        }
    }
    g_assert_cmpint(pipelines, >, 10);
    g_rand_free(random);
}

/* Gathers beside reductions share NICs at rates in whole 1/1024, rounded down, of shares in whole 1/1024 too: a faster link may
 * cost each a step of its rate, never 0.2 % of ZeRO-3's step. */
static void test_rates_of_zero3(void)
{
    static const char text[] =
        "{\"model\": \"llama2-7b\", \"cluster\": {\"accelerator\": \"h100-sxm5-80gb\", \"gpus_per_node\": 8, "
        "\"nodes\": 16, \"scale_out_bytes_per_s_per_gpu\": 1e9, \"scale_up_bytes_per_s\": 450e9}, "
        "\"training\": "
        "{\"sequence_length\": 512, \"global_batch\": 256, \"micro_batch\": 2}, \"parallel\": {\"zero\": 3}, "
        "\"execution\": {\"framework\": \"colossalai-gemini\"}}";
    g_autofree Spec *spec = g_new(Spec, 1);
    g_assert_true(scenario_load(text, NULL, spec));
    const int64_t first_ps = run(spec).step_ps;
    int64_t least_ps = first_ps;
    for (int i = 0; i < 40; i++) {
        spec->cluster.scale_up_bytes_per_s *= 1.02;
        const int64_t step_ps = run(spec).step_ps;
        g_assert_cmpint(step_ps, <=, least_ps + least_ps / 500);
        least_ps = MIN(least_ps, step_ps);
    }
    g_assert_cmpint(least_ps, <, first_ps);
}

/* With one micro-batch GPipe and 1F1B are one order: the step is the same whatever is sharded. */
static void test_one_microbatch(void)
{
    GRand *random = g_rand_new_with_seed(20261127);
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int found = 0; found < 40;) {
        g_autofree char *text = scenario_text(random);
        if (!scenario_load(text, NULL, spec) || spec->parallel.pipeline == 1 ||
            spec->parallel.virtual_stages > 1)
            continue;
        spec->training.global_batch = spec->training.micro_batch * spec->parallel.data;
        Outcome outcomes[2];
        for (int i = 0; i < 2; i++) {
            spec->parallel.schedule = (SpecSchedule)sim_schedule_index(i == 0 ? "gpipe" : "1f1b");
            outcomes[i] = run(spec);
        }
        g_test_message("%s", text);
        g_assert_cmpint(outcomes[0].step_ps, ==, outcomes[1].step_ps);
        found++;
    }
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metamorphic/random", test_random);
    g_test_add_func("/metamorphic/launches-of-gpipe", test_launches_of_gpipe);
    g_test_add_func("/metamorphic/launches-of-one-microbatch", test_launches_of_one_microbatch);
    g_test_add_func("/metamorphic/one-microbatch", test_one_microbatch);
    g_test_add_func("/metamorphic/rates-of-zero3", test_rates_of_zero3);
    g_test_add_func("/metamorphic/higher-zero", test_higher_zero);
    return g_test_run();
}
