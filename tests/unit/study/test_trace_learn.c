/* tests/unit/study/test_trace_learn.c - a recipe from a trace: of our own prediction it changes nothing, of another machine's step
 * it predicts other sizes of that machine, and each factor slows what it names. */
#include <math.h>
#include <string.h>

#include "study/trace_learn.h"
#include "study/trace_predict.h"
#include "tests/unit/run_fixture.h"

static const ReportOptions spans = {.record = SIM_RECORD_SPANS, .ideal = true};

static double step_s(const Spec *spec)
{
    const ReportOptions options = {.ideal = true};
    OrrArena *arena = orr_arena_new();
    Report report;
    GError *error = NULL;
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const double seconds = (double)report_ideal_ps(&report) * 1e-12;
    orr_arena_free(arena);
    return seconds;
}

/* The trace of a step of `spec`. */
static GPtrArray *trace_of(const Spec *spec)
{
    OrrArena *arena = orr_arena_new();
    Report report;
    GError *error = NULL;
    report_run(spec, NULL, &spans, arena, &report, &error);
    g_assert_no_error(error);
    GPtrArray *ranks = g_ptr_array_new();
    g_ptr_array_add(ranks, trace_predict(&report, 0));
    orr_arena_free(arena);
    return ranks;
}

static TraceLearned learn(GPtrArray *ranks, const Spec *spec)
{
    TraceLearned learned;
    GError *error = NULL;
    trace_learn(ranks, spec, &learned, &error);
    g_assert_no_error(error);
    trace_rank_free(ranks->pdata[0]);
    g_ptr_array_free(ranks, TRUE);
    return learned;
}

static void use(const TraceLearned *learned, Spec *spec)
{
    spec->execution.framework.learned = learned->learned;
    spec->execution.framework.host.kernel_gap_s = learned->kernel_gap_s;
    spec->execution.framework.host.step_overhead_s = learned->step_overhead_s;
}

static void test_own(void)
{
    static const char *const examples[] = {"fsdp_8b_8h100", "gpt3-175b-interleaved", "gpt2-xl-1gpu"};
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        Run *run = run_example(examples[i], NULL, &spans);
        const TraceLearned learned = learn(trace_of(run->spec), run->spec);
        g_assert_cmpfloat(fabs(learned.learned.excess_frac[SPEC_LEARNED_PRODUCTS]), <, 1e-9);
        g_assert_cmpfloat(fabs(learned.learned.excess_frac[SPEC_LEARNED_ALL_GATHER]), <, 1e-9);
        const double before_s = step_s(run->spec);
        use(&learned, run->spec);
        g_assert_cmpfloat_with_epsilon(step_s(run->spec), before_s, 1e-9 * before_s);
        run_free(run);
    }
}

/* Another machine under another program: memory, products, caches, links, attention, element-wise kernels, gaps and the host. */
static void perturb(Spec *spec)
{
    SpecAccelerator *accelerator = &spec->cluster.accelerator;
    SpecFramework *framework = &spec->execution.framework;
    accelerator->memory_bytes_per_s *= 0.87;
    accelerator->peak_flops_per_s[SPEC_BF16] *= 0.87;
    accelerator->l2_bytes *= 0.8;
    spec->cluster.scale_up_bytes_per_s *= 0.9;
    framework->kernels.attention_speed_frac *= 0.85;
    framework->kernels.sm_elements_per_s *= 0.72;
    framework->host.kernel_gap_s = 4e-6;
    framework->host.step_overhead_s = 0.02;
}

/* Learned from one size, predicted at others. */
static void test_other_sizes(void)
{
    Run *run = run_example("fsdp_8b_8h100", NULL, &spans);
    g_autofree Spec *other = g_memdup2(run->spec, sizeof(Spec));
    perturb(other);
    const TraceLearned learned = learn(trace_of(other), run->spec);
    g_assert_cmpfloat(learned.learned.excess_frac[SPEC_LEARNED_ATTENTION], >, 0.2);
    g_assert_cmpfloat(learned.kernel_gap_s, >, 3e-6);
    g_assert_cmpfloat_with_epsilon(learned.step_overhead_s, 0.02, 0.001);
    g_assert_cmpfloat(learned.before_s, <, 0.9 * learned.measured_s);
    g_assert_cmpfloat_with_epsilon(learned.after_s, learned.measured_s, 0.003 * learned.measured_s);
    run_free(run);

    static const char *const sizes[] = {"training.micro_batch=1", "training.sequence_length=2048",
                                        "training.sequence_length=16384", "training.recompute=full",
                                        "parallel.zero=2"};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        run = run_example("fsdp_8b_8h100", sizes[i], &spans);
        g_autofree Spec *truth = g_memdup2(run->spec, sizeof(Spec));
        perturb(truth);
        const double truth_s = step_s(truth), before_s = step_s(run->spec);
        use(&learned, run->spec);
        g_test_message("%s: %.4f s, %+.1f %% before, %+.2f %% learned", sizes[i], truth_s,
                       100 * (before_s / truth_s - 1), 100 * (step_s(run->spec) / truth_s - 1));
        g_assert_cmpfloat(before_s, <, 0.9 * truth_s);
        g_assert_cmpfloat_with_epsilon(step_s(run->spec), truth_s, 0.01 * truth_s);
        run_free(run);
    }
}

/* Every factor slows a step that has such kernels, and by no more than they take. */
static void test_factors(void)
{
    static const struct {
        const char *example;
        SpecLearnedClass kind;
    } cases[] = {
        {"fsdp_8b_8h100", SPEC_LEARNED_PRODUCTS},
        {"fsdp_8b_8h100", SPEC_LEARNED_ATTENTION},
        {"fsdp_8b_8h100", SPEC_LEARNED_NORMS},
        {"fsdp_8b_8h100", SPEC_LEARNED_ELEMENTWISE},
        {"fsdp_8b_8h100", SPEC_LEARNED_OPTIMIZER},
        {"fsdp_8b_8h100", SPEC_LEARNED_ALL_GATHER},
        {"fsdp_8b_8h100", SPEC_LEARNED_REDUCE_SCATTER},
        {"gpt3-175b-interleaved", SPEC_LEARNED_ALL_REDUCE},
        {"gpt3-175b-interleaved", SPEC_LEARNED_SEND_RECEIVE},
        {"moe-by-layer", SPEC_LEARNED_ALL_TO_ALL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Run *run = run_example(cases[i].example, NULL, &spans);
        const double plain_s = step_s(run->spec);
        double *excess = &run->spec->execution.framework.learned.excess_frac[cases[i].kind];
        *excess = 1;
        const double slow_s = step_s(run->spec);
        *excess = -0.5;
        if (!(slow_s > plain_s && slow_s < 2 * plain_s && step_s(run->spec) <= plain_s))
            g_error("case %d: %g s, twice as long %g s, half %g s", (int)i, plain_s, slow_s,
                    step_s(run->spec));
        run_free(run);
    }
}

/* The profile says what was learned, on top of a name or of an object of one's own. */
static void test_profile(void)
{
    const TraceLearned learned = {
        .learned = {.excess_frac[SPEC_LEARNED_PRODUCTS] = 0.25}, .kernel_gap_s = 2e-6, .measured_s = 1};
    static const char text[] = "[\"torchtitan\",{\"preset\":\"deepspeed\",\"host\":{\"kernel_host_s\":3}}]";
    OrrJsonDoc *bases = orr_json_parse(text, strlen(text), "bases", NULL);
    const OrrJson *base = orr_json_first(orr_json_root(bases));
    for (int i = 0; i < 2; i++, base = orr_json_next(base)) {
        g_autoptr(GString) out = g_string_new(NULL);
        trace_learned_json(&learned, base, "t.json", out);
        OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "profile", NULL);
        const OrrJson *root = orr_json_root(doc), *host = orr_json_member(root, "host");
        g_assert_cmpstr(orr_json_text_of(root, "preset", ""), ==, i == 0 ? "torchtitan" : "deepspeed");
        const OrrJson *only = orr_json_first(orr_json_member(root, "learned"));
        g_assert_cmpstr(orr_json_text_of(only, "class", ""), ==, "products");
        g_assert_cmpfloat(orr_json_number_of(only, "excess_frac", 0), ==, 0.25);
        g_assert_null(orr_json_next(only));
        g_assert_cmpfloat(orr_json_number_of(host, "kernel_gap_s", 0), ==, 2e-6);
        g_assert_cmpfloat(orr_json_number_of(host, "kernel_host_s", 0), ==, i == 0 ? 0 : 3);
        orr_json_free(doc);
    }
    orr_json_free(bases);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/study/trace_learn/own", test_own);
    g_test_add_func("/study/trace_learn/other_sizes", test_other_sizes);
    g_test_add_func("/study/trace_learn/factors", test_factors);
    g_test_add_func("/study/trace_learn/profile", test_profile);
    return g_test_run();
}
