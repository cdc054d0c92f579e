/* tests/cli/test_cli_search.c - `orrery search` from outside: its flags, its limits, its certificate. */
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

static const char *const open_fields[] = {
    "--set", "parallel.tensor=auto",    "--set", "parallel.pipeline=auto",
    "--set", "parallel.data=auto",      "--set", "training.micro_batch=auto",
    "--set", "parallel.schedule=auto",  "--set", "parallel.virtual_stages=auto",
    "--set", "training.recompute=auto", "--set", "parallel.zero=auto"};

static CliRun search_with(const char *const *more, int count)
{
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, (gpointer) "search");
    g_ptr_array_add(words, scenario);
    for (gsize i = 0; i < G_N_ELEMENTS(open_fields); i++)
        g_ptr_array_add(words, (gpointer)open_fields[i]);
    for (int i = 0; i < count; i++)
        g_ptr_array_add(words, (gpointer)more[i]);
    g_ptr_array_add(words, NULL);
    return cli_run(NULL, (const char *const *)words->pdata);
}

static void test_bad_flags(void)
{
    static const struct {
        const char *words[2], *expect;
    } cases[] = {
        {{"--max-seconds", "0"}, "--max-seconds"},
        {{"--max-seconds", "nan"}, "--max-seconds"},
        {{"--max-seconds", "1x"}, "--max-seconds"},
        {{"--top", "0"}, "--top"},
        {{"--jobs", "1e9"}, "--jobs"},
        {{"--set", "search.precision=[\"int2\"]"}, "search.precision"},
        {{"--set", "search.tensor=[]"}, "search.tensor"},
        {{"--set", "search.tensor=[3]"}, "no assignment"},
        {{"--set", "search.order=[1]"}, "search.order: 1 is not a string"},
        {{"--set", "parallel.pipeline=96"}, "multiply to 96, which does not divide the 1024 GPUs"},
        {{"--set", "parallel.pipeline=128"}, "parallel.pipeline 128 leaves stages without a layer"},
        {{"--set", "search.precision=[\"fp8\"]"}, "search.precision names none that accelerator \"a100"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        CliRun run = search_with(cases[i].words, 2);
        cli_assert_refused(&run, cases[i].words[1], cases[i].expect);
        cli_run_clear(&run);
    }
}

static void test_time_limit(void)
{
    static const char *const words[] = {"--max-seconds", "1e-6", "--format", "json"};
    CliRun run = search_with(words, (int)G_N_ELEMENTS(words));
    cli_assert_done(&run, "time limit");
    g_assert_nonnull(strstr(run.out, "\"proved\": false"));
    g_assert_null(strstr(run.out, "\"gap_frac\": null"));
    g_assert_null(strstr(run.out, "\"best\": []"));
    g_assert_nonnull(strstr(run.out, "\"seeds\": "));
    cli_run_clear(&run);
}

/* More than 2,000 survivors: the page says which bound let them through. */
static void test_certificate(void)
{
    static const char *const words[] = {"--quiet", "--set", "search.zero=[0,1,2,3]", "--set",
                                        "search.schedule=[\"1f1b\",\"interleaved\",\"zb-h1\",\"zb-v\",\"v-"
                                        "half\",\"dualpipe\",\"dualpipev\"]"};
    CliRun run = search_with(words, (int)G_N_ELEMENTS(words));
    cli_assert_done(&run, "certificate");
    g_assert_nonnull(strstr(run.out, "loose bound"));
    g_assert_nonnull(strstr(run.out, "gap 0"));
    g_assert_nonnull(strstr(run.out, "comparable published runs"));
    cli_run_clear(&run);
}

/* Kinds of GPU and numbers of nodes side by side; a kind that is not known is refused by its flag. */
static void test_machines(void)
{
    static const char *const words[] = {"--quiet",
                                        "--set",
                                        "search.nodes=[128,256]",
                                        "--set",
                                        "parallel.schedule=1f1b",
                                        "--set",
                                        "search.micro_batch=[1]",
                                        "--cluster",
                                        "dgx-a100-80gb@1.5,dgx-h100@2.5"};
    static const char *const bad[] = {"--cluster", "no-such-cluster"}, *const price[] = {"--accelerator",
                                                                                         "h100-sxm5-80gb@-1"};
    CliRun run = search_with(words, (int)G_N_ELEMENTS(words));
    cli_assert_done(&run, "machines");
    g_assert_nonnull(strstr(run.out, "2,048 x dgx-h100"));
    g_assert_nonnull(strstr(run.out, "  machine 4"));
    g_assert_nonnull(strstr(run.out, "(USD of "));
    const char *head = strstr(run.out, "\nMachines"), *row = strstr(run.out, "\n  1 ");
    g_assert_true(head != NULL && row != NULL);
    const char *step = strstr(head, "step"); /* stands above the first machine's */
    g_assert_true(step != NULL && step[-1] == ' ');
    g_assert_true(row[step - head - 1] == ' ' && g_ascii_isdigit(row[step - head]));
    cli_run_clear(&run);
    run = search_with(bad, 2);
    cli_assert_refused(&run, bad[1], "no-such-cluster");
    cli_run_clear(&run);
    run = search_with(price, 2);
    cli_assert_refused(&run, price[1], "accelerator");
    cli_run_clear(&run);
}

static double best_step_s(const CliRun *run, int machine)
{
    OrrJsonDoc *doc = orr_json_parse(run->out, strlen(run->out), "out", NULL);
    const OrrJson *of = orr_json_first(orr_json_member(orr_json_root(doc), "machines"));
    for (int i = 0; i < machine; i++)
        of = orr_json_next(of);
    const OrrJson *best = orr_json_first(orr_json_member(of, "best"));
    g_assert_nonnull(best);
    const double step_s = orr_json_number_of(best, "step_s", -1);
    orr_json_free(doc);
    return step_s;
}

/* Programs side by side: each has the answer that it has alone, on each machine. */
static void test_frameworks(void)
{
    static const char *const both[] = {
        "--framework", "megatron-core,torchtitan", "--accelerator", "a100-sxm4-80gb,h100-sxm5-80gb",
        "--set",       "model=gpt-7.5b",           "--format",      "json"};
    static const char *const bad[] = {"--framework", "megatron-core,none-such"},
                             *const twice[] = {"--framework", "torchtitan,torchtitan"},
                             *const lacks[] = {"--set", "training.precision=fp8", "--accelerator",
                                               "a100-sxm4-80gb"};
    CliRun run = search_with(both, (int)G_N_ELEMENTS(both)), alone;
    cli_assert_done(&run, "frameworks");
    for (int f = 0; f < 2; f++) {
        g_autofree char *set =
            g_strdup_printf("execution.framework=%s", f == 0 ? "megatron-core" : "torchtitan");
        const char *const words[] = {"--accelerator", "a100-sxm4-80gb,h100-sxm5-80gb",
                                     "--set",         set,
                                     "--set",         "model=gpt-7.5b",
                                     "--format",      "json"};
        alone = search_with(words, (int)G_N_ELEMENTS(words));
        cli_assert_done(&alone, set);
        for (int machine = 0; machine < 2; machine++)
            g_assert_cmpfloat(best_step_s(&run, 2 * f + machine), ==, best_step_s(&alone, machine));
        cli_run_clear(&alone);
    }
    g_assert_cmpfloat(best_step_s(&run, 0), !=, best_step_s(&run, 2));
    cli_run_clear(&run);
    run = search_with(bad, 2);
    cli_assert_refused(&run, bad[1], "none-such");
    cli_run_clear(&run);
    run = search_with(twice, 2);
    cli_assert_refused(&run, twice[1], "twice");
    cli_run_clear(&run);
    run = search_with(lacks, 4);
    cli_assert_refused(&run, lacks[3], "needs a dense fp8 peak");
    cli_run_clear(&run);
}

/* Flags that a search would pass over in silence are refused. */
static void test_contradictions(void)
{
    static const char *const own[] = {"--framework", "torchtitan", "--own-runs", "runs.json"};
    CliRun run = search_with(own, 4);
    cli_assert_refused(&run, own[2], "--own-runs");
    cli_run_clear(&run);
    g_autofree char *workload = cli_source("scenarios/examples/rl-ppo-llama3-8b-a800.json");
    static const char *const flags[][2] = {{"--framework", "torchtitan"},
                                           {"--accelerator", "h100-sxm5-80gb"},
                                           {"--cluster", "dgx-h100"},
                                           {"--for", "days"}};
    for (gsize i = 0; i < G_N_ELEMENTS(flags); i++) {
        run = cli_run(NULL, CLI_WORDS("search", workload, flags[i][0], flags[i][1]));
        cli_assert_refused(&run, flags[i][0], "out for a workload");
        cli_run_clear(&run);
    }
}

/* A schedule that is "auto" where the stages a rank leave one alone says so; with these free too it says nothing. */
static void test_only_schedule(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    for (int free = 0; free < 2; free++) {
        CliRun run =
            cli_run(NULL, CLI_WORDS("search", path, "--set", "parallel.schedule=auto", "--set",
                                    free ? "parallel.virtual_stages=auto" : "parallel.virtual_stages=1"));
        cli_assert_done(&run, "search of schedules");
        g_assert_true((strstr(run.out, "only 1f1b is left to choose from") == NULL) == (free == 1));
        cli_run_clear(&run);
    }
}

/* Preference pairs stay together: no micro-batch of one sequence is among the answers, nor advised where memory is short. */
static void test_pairs(void)
{
    static const char *const search[] = {"search", "llama3-8b-dpo",
                                         "--set",  "training.micro_batch=auto",
                                         "--top",  "20",
                                         "--set",  "search.micro_batch=[1,2,3]",
                                         NULL},
                             *const run[] = {"run", "llama3-8b-dpo", "--set",
                                             "cluster.accelerator.memory_bytes=36e9", NULL};
    CliRun found = cli_run(NULL, search);
    cli_assert_done(&found, "pairs");
    g_assert_nonnull(strstr(found.out, " mb2 "));
    g_assert_null(strstr(found.out, " mb1 "));
    g_assert_null(strstr(found.out, " mb3 "));
    cli_run_clear(&found);
    found = cli_run(NULL, run);
    cli_assert_done(&found, "pairs");
    g_assert_nonnull(strstr(found.out, "DOES NOT FIT"));
    g_assert_nonnull(strstr(found.out, "dpo (reference: model)"));
    g_assert_null(strstr(found.out, "training.micro_batch=1"));
    cli_run_clear(&found);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/search/only-schedule", test_only_schedule);
    g_test_add_func("/cli/search/bad-flags", test_bad_flags);
    g_test_add_func("/cli/search/time-limit", test_time_limit);
    g_test_add_func("/cli/search/certificate", test_certificate);
    g_test_add_func("/cli/search/pairs", test_pairs);
    g_test_add_func("/cli/search/machines", test_machines);
    g_test_add_func("/cli/search/frameworks", test_frameworks);
    g_test_add_func("/cli/search/contradictions", test_contradictions);
    return g_test_run();
}
