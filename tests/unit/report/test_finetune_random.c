/* unit/report/test_finetune_random.c - fine-tuning beside every way to split, at random: nothing frozen is pre-training to the
 * picosecond; adapters and frozen layers run with all that `--check` holds of frozen weights; a larger rank is never faster
 * nor smaller, more frozen layers never slower nor larger, better hardware never slower. */
#include "tests/unit/random_step.h"

#define ROUNDS 1500 /* ORRERY_ROUNDS and ORRERY_SEED in the environment: others */

typedef void (*Property)(const char *text, GRand *rand, int *counts);

static void over_draws(Property property, int least)
{
    const char *wanted = g_getenv("ORRERY_ROUNDS"), *seed = g_getenv("ORRERY_SEED");
    const int rounds = wanted != NULL ? atoi(wanted) : SANITIZED ? ROUNDS / 4 : ROUNDS;
    GRand *rand = g_rand_new_with_seed(seed != NULL ? (guint32)atoi(seed) : 20260202);
    int counts[2] = {0};
    for (int round = 0; round < rounds; round++) {
        g_autofree char *text = scenario(rand);
        property(text, rand, counts);
    }
    g_test_message("%d ran, %d refused", counts[0], counts[1]);
    g_assert_cmpint(counts[0] * least, >=, rounds);
    g_rand_free(rand);
}

/* Runs, or is refused with a reason, which is counted. */
static bool runs(const char *text, const char *const *sets, Outcome *ret_outcome, int *counts)
{
    g_autoptr(GError) reason = NULL;
    const bool ran = run_once(text, sets, ret_outcome, &reason);
    g_assert_true(ran || strlen(reason->message) > 20);
    counts[ran ? 0 : 1]++;
    return ran;
}

/* --- off is off --- */

static void compare_off(const char *text, GRand *rand, int *counts)
{
    static const char *const sft[] = {"training.task=sft", "training.adapter=null",
                                      "training.freeze={\"layers\":0}", NULL};
    Outcome pretrained, tuned;
    (void)rand;
    if (!runs(text, NULL, &pretrained, counts))
        return;
    g_autoptr(GError) error = NULL;
    run_once(text, sft, &tuned, &error);
    g_assert_no_error(error);
    if (memcmp(&pretrained, &tuned, sizeof tuned) != 0)
        g_test_message("%s", text);
    g_assert_cmpint(pretrained.step_ps, ==, tuned.step_ps);
    g_assert_cmpfloat(pretrained.sample_flops, ==, tuned.sample_flops);
    g_assert_cmpfloat(pretrained.peak_bytes, ==, tuned.peak_bytes);
    g_assert_cmpfloat(pretrained.sent_bytes, ==, tuned.sent_bytes);
}

static void test_off(void)
{
    over_draws(compare_off, 4);
}

/* --- more of it --- */

static void not_less(const char *text, const char *what, double less, double more)
{
    if (less > more)
        g_test_message("%s: %.0f, then %.0f: %s", what, less, more, text);
    g_assert_cmpfloat(less, <=, more);
}

/* A host that is never behind: else a longer forward lets it launch the backward further ahead, and that is shorter by more. */
#define NO_LAUNCHES "execution.framework.host.kernel_host_s=0"

/* LoRA or QLoRA of this rank, on this hardware. */
static bool runs_adapters(const char *text, int rank, const char *target, const char *base,
                          const char *hardware, Outcome *ret_outcome, int *counts)
{
    g_autofree char *task = g_strdup_printf("training.task=%s", base[0] == 'b' ? "lora" : "qlora");
    g_autofree char *adapter = g_strdup_printf(
        "training.adapter={\"rank\":%d,\"targets\":\"%s\",\"base_dtype\":\"%s\"}", rank, target, base);
    const char *const sets[] = {task, adapter, NO_LAUNCHES, hardware, NULL};
    return runs(text, sets, ret_outcome, counts);
}

static void compare_adapters(const char *text, GRand *rand, int *counts)
{
    static const char *const targets[] = {"attention", "mlp", "all-linear"};
    static const char *const bases[] = {"bf16", "nf4", "int8"};
    static const char *const better[] = {"cluster.accelerator.memory_bytes_per_s=5e12",
                                         "cluster.accelerator.peak_flops_per_s.bf16=1.5e15",
                                         "cluster.scale_up_bytes_per_s=6e11"};
    const char *base = PICK(rand, bases), *target = PICK(rand, targets), *hardware = PICK(rand, better);
    const int rank = power(rand, 64);
    Outcome small, large, fast;
    if (!runs_adapters(text, rank, target, base, NULL, &small, counts))
        return;
    g_assert_true(runs_adapters(text, 2 * rank, target, base, NULL, &large, counts));
    not_less(text, "step by rank", (double)small.step_ps, (double)large.step_ps);
    not_less(text, "peak by rank", small.peak_bytes, large.peak_bytes);
    not_less(text, "sent by rank", small.sent_bytes, large.sent_bytes);
    g_assert_true(runs_adapters(text, rank, target, base, hardware, &fast, counts));
    not_less(text, hardware, (double)fast.step_ps, (double)small.step_ps);
}

static void test_adapters(void)
{
    over_draws(compare_adapters, 4);
}

static void compare_frozen(const char *text, GRand *rand, int *counts)
{
    const int few = g_rand_int_range(rand, 0, 8), many = g_rand_int_range(rand, few, 9);
    const char *embedding = truth(rand);
    const char *router = strstr(text, "\"moe\"") != NULL ? truth(rand) : "false";
    Outcome outcome[2];
    for (int i = 0; i < 2; i++) {
        g_autofree char *freeze =
            g_strdup_printf("training.freeze={\"embedding\":%s,\"router\":%s,\"layers\":%d}", embedding,
                            router, i == 0 ? few : many);
        const char *const sets[] = {freeze, NO_LAUNCHES, NULL};
        if (!runs(text, sets, &outcome[i], counts))
            return;
    }
    not_less(text, "step by frozen layers", (double)outcome[1].step_ps, (double)outcome[0].step_ps);
    not_less(text, "peak by frozen layers", outcome[1].peak_bytes, outcome[0].peak_bytes);
    not_less(text, "sent by frozen layers", outcome[1].sent_bytes, outcome[0].sent_bytes);
}

static void test_frozen(void)
{
    over_draws(compare_frozen, 6); /* a quarter of the draws freezes and runs */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/finetune-random/off", test_off);
    g_test_add_func("/finetune-random/adapters", test_adapters);
    g_test_add_func("/finetune-random/frozen", test_frozen);
    return g_test_run();
}
