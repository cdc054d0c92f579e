/* tests/unit/report/test_input.c - input: what published sizes ask for, which stage binds, evaluation and skipped
 * steps. */
#include <math.h>
#include <string.h>

#include "campaign/effective.h"
#include "report/input.h"

static Report run(const char *extra, bool ideal, Spec *spec, OrrArena *arena)
{
    const ReportOptions options = {.ideal = ideal};
    GError *error = NULL;
    Report report;
    g_autofree char *text =
        g_strdup_printf("{\"model\":\"gpt3-1.3b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":4},"
                        "\"training\":{\"sequence_"
                        "length\":2048,\"global_batch\":64,\"micro_batch\":1,\"tokens\":1e11%s",
                        extra);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "input", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "input", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static ReportInput input_of(const char *extra, double *ret_tokens_per_s, double *ret_days,
                            double *ret_effective)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    CampaignAssumed assumed;
    Report report = run(extra, false, spec, arena);
    const double late = (double)report.step_ps / (double)report_ideal_ps(&report);
    campaign_assumed_load(&assumed, &error);
    campaign_effective_fill(&assumed, "input", arena, &report, &error);
    g_assert_no_error(error);
    *ret_tokens_per_s = report.tokens_per_s * late; /* of the step that waits for nothing */
    *ret_days = report.days / late;
    *ret_effective = report.effective.days;
    const ReportInput input = report.input;
    orr_arena_free(arena);
    return input;
}

#define QUIET                                                                                                \
    "\"faults\":{\"checkpoint\":{\"mode\":\"none\"}}" /* nothing fails: effective days have the rest alone */

static void test_rates(void)
{
    double rate = 0, days = 0, effective = 0;
    /* 2 bytes a token: 30 TB for 15 T tokens, 0.2 GB/s for 1e8 tokens/s. */
    ReportInput input = input_of("},\"data\":{}," QUIET "}", &rate, &days, &effective);
    g_assert_cmpfloat(fabs(input.bytes_per_s / (2 * rate) - 1), <, 1e-12);
    g_assert_cmpfloat(fabs(2 * 15e12 - 30e12), <, 1);
    g_assert_cmpfloat(fabs(input.bytes_per_s / rate * 1e8 - .2e9), <, 1);
    g_assert_false(input.binds);
    g_assert_cmpfloat(input.wait_s, ==, 0);
    g_assert_cmpfloat(fabs(effective / days - 1), <, 1e-12);
    /* Pictures from slow storage: it binds, and the step is as long as its input takes. */
    input = input_of(
        "},\"data\":{\"bytes_per_token\":1e5},\"storage\":{\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":"
        "1e9}," QUIET "}",
        &rate, &days, &effective);
    g_assert_true(input.binds);
    g_assert_cmpstr(input.stage, ==, "storage");
    g_assert_cmpfloat(fabs(input.fetch_s - 64 * 2048 * 1e5 / 1e9), <, 1e-9);
    g_assert_cmpfloat(fabs(effective / days - input.fetch_s / (64 * 2048 / rate)), <, 1e-6 * effective);
    /* Processes: 4 readers, 8 processes of 1,000 tokens/s each. */
    input = input_of(
        "},\"data\":{\"workers\":8,\"tokens_per_s\":1000},\"parallel\":{\"data\":4,\"tensor\":8}," QUIET "}",
        &rate, &days, &effective);
    g_assert_cmpstr(input.stage, ==, "the processes that prepare it");
    g_assert_cmpfloat(input.tokens_per_s, ==, 32000);
    /* A node's way to storage; none of it once the data set lies in the nodes' caches. */
    input = input_of("},\"data\":{\"bytes_per_token\":2e5,\"front_end_bytes_per_s\":1e9,\"tokens\":1e6,"
                     "\"cache_bytes\":1e10}," QUIET "}",
                     &rate, &days, &effective);
    g_assert_cmpfloat(input.tokens_per_s, ==, 4 * 1e9 / 2e5);
    g_assert_true(input.binds && !input.cached);
    input = input_of("},\"data\":{\"bytes_per_token\":2e5,\"front_end_bytes_per_s\":1e9,\"tokens\":1e6,"
                     "\"cache_bytes\":6e10}," QUIET "}",
                     &rate, &days, &effective);
    g_assert_true(input.cached && !input.binds);
    /* Without prefetch a step waits for all of its input. */
    input = input_of("},\"data\":{\"prefetch\":0,\"workers\":1,\"tokens_per_s\":1e7}," QUIET "}", &rate,
                     &days, &effective);
    g_assert_false(input.binds);
    g_assert_cmpfloat(input.wait_s, ==, input.fetch_s);
    g_assert_cmpfloat(input.wait_s, >, 0);
}

static void test_passes(void)
{
    double rate = 0, days = 0, effective = 0;
    /* Every 100 steps as many tokens as 30 steps have, a forward each: 10 steps' time a hundred. */
    ReportInput input = input_of("},\"data\":{\"eval_every_steps\":100,\"eval_tokens\":3932160}," QUIET "}",
                                 &rate, &days, &effective);
    g_assert_cmpfloat(fabs(input.eval_frac - .1), <, 1e-12);
    g_assert_cmpfloat(fabs(effective / days - 1.1), <, 1e-9);
    input = input_of(",\"skipped_steps_frac\":0.2}," QUIET "}", &rate, &days, &effective);
    g_assert_cmpfloat(fabs(effective / days - 1.25), <, 1e-9);
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report = run("},\"data\":{\"eval_every_steps\":100}}", true, spec, arena);
    g_assert_false(report_input_fill(&report, &error));
    g_assert_nonnull(strstr(error->message, "data.eval_tokens is not given"));
    g_clear_error(&error);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/input/rates", test_rates);
    g_test_add_func("/input/passes", test_passes);
    return g_test_run();
}
