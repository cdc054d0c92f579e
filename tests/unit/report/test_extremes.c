/* tests/unit/report/test_extremes.c - scenarios whose values are absurd but allowed: a report with an MFU of at
 * most 1, or one sentence. Never an abort, never a number that wrapped round. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "tests/unit/sim_fixture.h"
#include "tests/unit/test_spec_support.h"

/* True: a result that can be; false: refused, with one sentence in `ret_message` (g_free). */
static bool run(const char *text, const char *const *sets, char **ret_message)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    OrrArena *arena = orr_arena_new();
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test.json", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    Report report;
    const bool ok = spec_load_json(orr_json_root(doc), "test.json", sets, false, spec, NULL, &error) &&
                    report_run(spec, NULL, &options, arena, &report, &error);
    if (ok) {
        g_assert_cmpint(report.step_ps, >, 0);
        g_assert_true(report.mfu > 0 && report.mfu <= 1);
        g_assert_true(isfinite(report.tokens_per_s) && report.tokens_per_s > 0);
    } else {
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_null(strchr(error->message, '\n'));
        *ret_message = g_strdup(error->message);
        g_error_free(error);
    }
    g_free(spec);
    orr_json_free(doc);
    orr_arena_free(arena);
    return ok;
}

#define GPT3                                                                                                 \
    "{\"model\":\"gpt3-175b\",\"cluster\":{\"preset\":\"selene\",\"nodes\":128},\"training\":{"              \
    "\"sequence_length\":2048,\"global_batch\":1536},\"parallel\":{\"tensor\":8,\"pipeline\":16},"           \
    "\"execution\":{\"framework\":\"megatron-core\"}}"

static void test_too_long(void)
{
    static const struct {
        const char *text, *sets[3], *named;
    } CASES[] = {
        {"{\"model\":\"llama3-8b\",\"cluster\":{\"accelerator\":{\"preset\":\"h100-sxm5-80gb\",\"peak_flops_"
         "per_s\":{"
         "\"bf16\":989}},\"gpus_per_node\":8,\"nodes\":2,\"scale_out_bytes_per_s_per_gpu\":\"50 "
         "GB/s\"},\"training\":"
         "{\"sequence_length\":8192,\"global_batch\":16},\"parallel\":{\"pipeline\":16},\"execution\":{"
         "\"framework\":"
         "\"megatron-core\"}}",
         {NULL},
         "peak_flops_per_s.bf16: 989 is out of range"},
        {"{\"model\":{\"layers\":6234,\"hidden\":1024,\"heads\":8,\"vocab\":32000},\"cluster\":{"
         "\"accelerator\":{"
         "\"preset\":\"h100-sxm5-80gb\",\"peak_flops_per_s\":{\"bf16\":1}},\"gpus_per_node\":1},\"training\":"
         "{"
         "\"sequence_length\":2048,\"global_batch\":1},\"execution\":{\"framework\":\"megatron-core\"}}",
         {NULL},
         "peak_flops_per_s.bf16: 1 is out of range"},
        {"{\"model\":\"mixtral-8x7b\",\"cluster\":\"aws-p6-b200\",\"training\":{\"sequence_length\":4096,"
         "\"global_batch\":64},\"parallel\":{\"data\":8,\"expert\":8},\"execution\":{\"framework\":"
         "\"megatron-core\"}}",
         {"cluster.collectives.offset_s=1e-6"},
         "cluster.collectives"},
        {GPT3,
         {"parallel.schedule=zb-auto", "cluster.scale_out_bytes_per_s_per_gpu=25"},
         "scale_out_bytes_per_s_per_gpu: 25 is out of range"},
        {GPT3,
         {"parallel.schedule=zb-auto", "cluster.scale_out_bytes_per_s_per_gpu=1"},
         "scale_out_bytes_per_s_per_gpu: 1 is out of range"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        char *message = NULL;
        g_assert_false(run(CASES[i].text, CASES[i].sets, &message));
        g_test_message("%s", message);
        g_assert_true(strstr(message, "longer than the clock can hold") != NULL ||
                      strstr(message, "is out of range") != NULL);
        g_assert_nonnull(strstr(message, CASES[i].named));
        g_free(message);
    }
}

/* Messages of a day: what the schedule by times adds up is beyond the clock, and the step is not. */
static void test_long_but_fits(void)
{
    OrrArena *arena = orr_arena_new();
    const SimResult result = fixture_run_pipeline(&(Pipeline){.schedule = "zb-auto",
                                                              .ranks = 4,
                                                              .chunks = 1,
                                                              .microbatches = 16,
                                                              .forward_ps = 1000,
                                                              .input_ps = 1000,
                                                              .weight_ps = 1000,
                                                              .hop_ps = INT64_C(100000000000000000)},
                                                  arena);
    g_assert_cmpint(result.step_ps, >=, INT64_C(1600000000000000000));
    orr_arena_free(arena);
}

typedef struct {
    const char *key;
    double usual, least, most; /* the field's range */
} Rate;

static void test_random(void)
{
    static const Rate RATES[] = {
        {"cluster.accelerator.peak_flops_per_s.bf16", 3e14, 1e9, 1e20},
        {"cluster.accelerator.memory_bytes_per_s", 2e12, 1e6, 1e17},
        {"cluster.scale_up_bytes_per_s", 3e11, 1e6, 1e15},
        {"cluster.scale_out_bytes_per_s_per_gpu", 2.5e10, 1e6, 1e14},
        {"cluster.scale_out_latency_s", 2e-6, 0, 1},
        {"cluster.collectives.offset_s", 5e-6, 0, 1},
        {"execution.framework.host.kernel_host_s", 5e-6, 0, 3600},
        {"execution.framework.host.step_overhead_s", 1e-3, 0, 3600},
    };
    static const char *const SCHEDULES[] = {"gpipe",         "1f1b", "zb-h1", "zb-auto",  "interleaved",
                                            "breadth-first", "zb-v", "v-min", "dualpipe", "dualpipev"};
    enum { SCENARIOS = 300, SETS = 8 };
    GRand *random = g_rand_new_with_seed(1);
    int results = 0, refused = 0;
    for (int n = 0; n < SCENARIOS; n++) {
        char *sets[SETS + 1] = {
            g_strdup_printf("parallel.schedule=%s",
                            SCHEDULES[g_rand_int_range(random, 0, (int)G_N_ELEMENTS(SCHEDULES))]),
            g_strdup_printf("parallel.zero=%d", g_rand_int_range(random, 0, 4)),
            g_strdup_printf("training.micro_batch=%d", 1 << g_rand_int_range(random, 0, 3)),
            g_strdup("training.global_batch=256")};
        char *message = NULL;
        const int changes = g_rand_int_range(random, 1, SETS - 3);
        for (int i = 0; i < changes; i++) {
            const Rate *rate = &RATES[g_rand_int_range(random, 0, (int)G_N_ELEMENTS(RATES))];
            const double value = rate->usual * pow(10, g_rand_double_range(random, -12, 12));
            sets[4 + i] = g_strdup_printf("%s=%.6g", rate->key, fmin(fmax(value, rate->least), rate->most));
        }
        const bool ok = run(TEST_SCENARIO, (const char *const *)sets, &message);
        results += ok;
        refused += !ok && strstr(message, "clock can hold") != NULL;
        if (!ok)
            g_test_message("%s", message);
        g_free(message);
        for (int i = 0; i < SETS; i++)
            g_free(sets[i]);
    }
    g_test_message("%d results, %d too long", results, refused);
    g_assert_cmpint(results, >, SCENARIOS / 4);
    g_assert_cmpint(refused, >, 0);
    g_rand_free(random);
}

/* What lies below the GPUs' memory, at the ends of its ranges. */
static void test_host(void)
{
    static const char *const keys[] = {
        "cluster.host.dram_bytes_per_s",      "cluster.host.core_bytes_per_s",
        "cluster.host.pcie_root_bytes_per_s", "cluster.accelerator.host_link_bytes_per_s",
        "cluster.host.nvme_read_bytes_per_s", "cluster.host.nvme_write_bytes_per_s",
    };
    static const char *const values[] = {"1e-3", "1", "1e6", "1e12", "5e12", "1e14"};
    static const char *const schemes[] = {"zero-offload", "twin-flow", "superoffload", "memferry",
                                          "zero-infinity"};
    int done = 0, refused = 0;
    for (gsize s = 0; s < G_N_ELEMENTS(schemes); s++)
        for (gsize k = 0; k < G_N_ELEMENTS(keys); k++)
            for (gsize v = 0; v < G_N_ELEMENTS(values); v++) {
                g_autofree char *scheme = g_strdup_printf("offload.scheme=%s", schemes[s]);
                g_autofree char *set = g_strdup_printf("%s=%s", keys[k], values[v]);
                const char *zero = s == 4 ? "parallel.zero=3" : "parallel.zero=2";
                const char *const sets[] = {scheme, set, zero, NULL};
                g_autofree char *message = NULL;
                if (run("{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"aws-p5\",\"nodes\":1},"
                        "\"training\":{\"sequence_length\":4096,\"global_batch\":8},\"execution\":{"
                        "\"framework\":\"deepspeed\"}}",
                        sets, &message))
                    done++;
                else
                    refused++;
            }
    printf("%d ran, %d refused\n", done, refused);
    g_assert_cmpint(done, >=, 60);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/extremes/too-long", test_too_long);
    g_test_add_func("/extremes/long-but-fits", test_long_but_fits);
    g_test_add_func("/extremes/random", test_random);
    g_test_add_func("/extremes/host", test_host);
    return g_test_run();
}
