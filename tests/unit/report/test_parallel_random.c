/* tests/unit/report/test_parallel_random.c - random combinations of every way to split: a valid one runs clean (no
 * deadlock, bytes and memory balance, all of sim_run_check), an invalid one is refused with a reason; simple cases
 * are exact reductions of general ones. */
#include "tests/unit/random_step.h"

#define ROUNDS 8000 /* ORRERY_ROUNDS and ORRERY_SEED in the environment: others */

/* Every rank simulated on its own gives the same step, to the picosecond. */
static void unfolded(const char *text, int64_t step_ps)
{
    const ReportOptions options = {.unfold = true, .check = true};
    GError *error = NULL;
    Spec spec;
    Report report;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "random", &error);
    spec_load_json(orr_json_root(doc), "random", NULL, false, &spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    OrrArena *arena = orr_arena_new();
    report_run(&spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    if (report.step_ps != step_ps) {
        g_test_message("%s", text);
    }
    g_assert_cmpint(report.step_ps, ==, step_ps);
    orr_arena_free(arena);
}

static void combinations(void)
{
    const char *wanted = g_getenv("ORRERY_ROUNDS"), *seed = g_getenv("ORRERY_SEED");
    const int rounds = wanted != NULL ? atoi(wanted) : DRAWS(ROUNDS);
    GRand *rand = g_rand_new_with_seed(seed != NULL ? (guint32)atoi(seed) : 20260101);
    int ran = 0, refused = 0;
    for (int round = 0; round < rounds; round++) {
        g_autofree char *text = scenario(rand);
        g_autoptr(GError) reason = NULL;
        Outcome outcome;
        if (run_once(text, NULL, &outcome, &reason)) {
            g_assert_cmpint(outcome.step_ps, >, 0);
            if (ran % 8 == 0) {
                unfolded(text, outcome.step_ps);
            }
            ran += 1;
        } else {
            g_assert_nonnull(reason);
            g_assert_cmpint((int)strlen(reason->message), >, 20);
            refused += 1;
        }
    }
    g_test_message("%d ran, %d refused", ran, refused);
    g_assert_cmpint(ran, >=, rounds / 4);
    g_rand_free(rand);
}

#define DENSE                                                                                                \
    "{\"model\":{\"layers\":8,\"hidden\":512,\"heads\":16,\"kv_heads\":4,\"ffn_hidden\":1024,\"gated_mlp\":" \
    "true,"                                                                                                  \
    "\"vocab\":4096,\"norm\":\"rmsnorm\",\"position\":\"rope\"%s},"                                          \
    "\"cluster\":{\"accelerator\":\"h100-sxm5-80gb\",\"gpus_per_node\":8,\"nodes\":2},"                      \
    "\"training\":{\"sequence_length\":2048,\"global_batch\":64%s},\"parallel\":{\"pipeline\":2%s},"         \
    "\"execution\":{\"framework\":\"megatron-core\"}}"

static int64_t step_of(const char *model, const char *training, const char *parallel, double *ret_flops)
{
    g_autofree char *text = g_strdup_printf(DENSE, model, training, parallel);
    GError *error = NULL;
    Outcome outcome;
    run_once(text, NULL, &outcome, &error);
    g_assert_no_error(error);
    if (ret_flops != NULL) {
        *ret_flops = outcome.sample_flops;
    }
    return outcome.step_ps;
}

#define EXPERTS ",\"moe\":{\"experts\":16,\"top_k\":4,\"expert_ffn_hidden\":256}"

static void reductions(void)
{
    const int64_t dense = step_of("", "", "", NULL), moe = step_of(EXPERTS, "", "", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(MODES); i++) { /* one context rank: no mode */
        g_autofree char *parallel = g_strdup_printf(",\"context\":1,\"context_mode\":\"%s\"", MODES[i]);
        g_assert_cmpint(step_of("", "", parallel, NULL), ==, dense);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(DISPATCHERS);
         i++) { /* one expert rank: no dispatcher, no imbalance */
        g_autofree char *parallel = g_strdup_printf(
            ",\"expert\":1,\"expert_rebalance\":true,\"moe_dispatch_fp8\":true,\"moe_dispatcher\":\"%s\"",
            DISPATCHERS[i]);
        g_assert_cmpint(step_of(EXPERTS, ",\"router\":\"uniform\"", parallel, NULL), ==, moe);
    }
    g_assert_cmpint(step_of("", ",\"document_tokens\":0", "", NULL), ==, dense);
    g_assert_cmpint(step_of("", ",\"predicted_frac\":1", "", NULL), ==, dense);
    g_assert_cmpint(step_of("", ",\"predicted_frac\":0.15", "", NULL), <, dense);
    g_assert_cmpint(
        step_of(",\"moe\":{\"experts\":16,\"top_k\":4,\"expert_ffn_hidden\":256,\"router_groups\":4,"
                "\"router_top_groups\":4}",
                "", ",\"expert\":8,\"moe_dispatcher\":\"deepep\"", NULL),
        ==, step_of(EXPERTS, "", ",\"expert\":8,\"moe_dispatcher\":\"deepep\"", NULL));
    g_assert_cmpint(step_of("", "", ",\"zero\":3,\"zero_group_gpus\":8", NULL), ==,
                    step_of("", "", ",\"zero\":3", NULL)); /* one group of all replicas */
}

static void work_does_not_depend_on_the_split(void)
{
    static const char *const SPLITS[] = {
        "",
        ",\"tensor\":4",
        ",\"context\":4",
        ",\"expert\":8",
        ",\"expert\":8,\"moe_dispatcher\":\"deepep\"",
        ",\"zero\":3",
        ",\"tensor\":2,\"sequence_parallel\":true,\"context\":2,\"expert\":4"};
    double first = 0, flops = 0;
    step_of(EXPERTS, "", "", &first);
    for (size_t i = 0; i < G_N_ELEMENTS(SPLITS); i++) {
        step_of(EXPERTS, ",\"router\":{\"distribution\":\"zipf\"}", SPLITS[i], &flops);
        g_assert_cmpfloat_with_epsilon(flops / first, 1, 1e-6);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parallel/combinations", combinations);
    g_test_add_func("/parallel/reductions", reductions);
    g_test_add_func("/parallel/work", work_does_not_depend_on_the_split);
    return g_test_run();
}
