/* tests/cli/test_cli_one_answer.c - every example, asked by every command: the same step, days and costs, digit for digit.
 *
 * Slow GPUs, late input, failures, mixed machines, parameter servers and flows are among the examples. A command that refuses a
 * scenario says so with exit status 2; at least LEAST answers of each command are compared.
 */
#include <math.h>
#include <string.h>

#include "tests/cli/runner.h"
#include "tests/unit/draws.h"

enum { LEAST = 30, COMMANDS = 6 };

/* Seconds a step, or a search of its own. */
static bool is_slow(const char *name)
{
    return g_str_has_prefix(name, "search-") || g_str_has_prefix(name, "rl-") /* test_loops() */ ||
           g_str_has_prefix(name, "distbelief") || g_str_has_prefix(name, "network-llama3") ||
           g_str_has_prefix(name, "byteps_nk") || g_str_has_prefix(name, "ps_async") ||
           g_str_has_prefix(name, "stragglers-");
}

static const OrrJson *path(const OrrJson *node, const char *keys)
{
    g_auto(GStrv) parts = g_strsplit(keys, ".", -1);
    for (char **key = parts; *key != NULL && node != NULL; key++)
        node = orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, *key) : NULL;
    return node;
}

typedef struct Asked {
    const char *file, *name;
    const char *const *sets; /* of every command */
    const char *own_runs;    /* likewise; NULL: none */
    const OrrJson *run;      /* the answer of run */
} Asked;

/* The command's words with the sets and the format. NULL: refused. */
static OrrJsonDoc *ask(const Asked *asked, const char *const *words)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (const char *const *word = words; *word != NULL; word++)
        g_ptr_array_add(all, (gpointer)*word);
    for (const char *const *set = asked->sets; *set != NULL; set++) {
        g_ptr_array_add(all, (gpointer) "--set");
        g_ptr_array_add(all, (gpointer)*set);
    }
    if (asked->own_runs != NULL && strcmp(words[0], "campaign") != 0) {
        g_ptr_array_add(all, (gpointer) "--own-runs");
        g_ptr_array_add(all, (gpointer)asked->own_runs);
    }
    g_ptr_array_add(all, (gpointer) "--format");
    g_ptr_array_add(all, (gpointer) "json");
    g_ptr_array_add(all, NULL);
    CliRun run = cli_run(NULL, (const char *const *)(void *)all->pdata);
    OrrJsonDoc *doc = NULL;
    if (run.status == 0)
        doc = cli_parse(run.out, words[0]);
    else if (run.status != 2)
        g_error("%s %s: exit status %d: %s", words[0], words[1], run.status, run.err);
    cli_run_clear(&run);
    return doc;
}

static int compared[COMMANDS];

/* `there` of the command's answer is `here` of run's. A figure that run does not know is not compared. */
static void same(const Asked *asked, const char *command, const OrrJson *answer, const char *there,
                 const char *here)
{
    const OrrJson *theirs = path(answer, there), *ours = path(asked->run, here);
    if (ours == NULL || orr_json_type(ours) != ORR_JSON_NUMBER || !(orr_json_number(ours) > 0))
        return;
    if (theirs == NULL || orr_json_type(theirs) != ORR_JSON_NUMBER ||
        fabs(orr_json_number(theirs) - orr_json_number(ours)) > 1e-11 + 1e-12 * orr_json_number(ours))
        g_error("%s: run says %s %.15g, %s says %.15g", asked->name, here, orr_json_number(ours), command,
                theirs != NULL && orr_json_type(theirs) == ORR_JSON_NUMBER ? orr_json_number(theirs) : NAN);
}

static void check_explain(const Asked *asked)
{
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("explain", asked->file));
    if (doc != NULL) {
        same(asked, "explain", orr_json_root(doc), "step_s", "step_s");
        compared[0]++;
    }
    orr_json_free(doc);
}

static void check_compare(const Asked *asked)
{
    static const char *const keys[][2] = {{"summary.step_s.b", "step_s"},
                                          {"summary.mfu.b", "mfu"},
                                          {"summary.days.b", "training.days"},
                                          {"summary.effective_days.b", "training.effective_days"},
                                          {"summary.gpu_hours.b", "training.gpu_hours"},
                                          {"summary.usd.b", "training.usd"}};
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("compare", asked->file, asked->file, "--quick"));
    for (gsize i = 0; doc != NULL && i < G_N_ELEMENTS(keys); i++)
        same(asked, "compare", orr_json_root(doc), keys[i][0], keys[i][1]);
    compared[1] += doc != NULL;
    orr_json_free(doc);
}

static void check_sweep(const Asked *asked, const char *micro_batch)
{
    g_autofree char *vary = g_strconcat("training.micro_batch=", micro_batch, NULL);
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("sweep", asked->file, "--vary", vary));
    if (doc != NULL) {
        const OrrJson *row = orr_json_first(path(orr_json_root(doc), "rows"));
        same(asked, "sweep", row, "step_s", "step_s");
        same(asked, "sweep", row, "mfu", "mfu");
        same(asked, "sweep", row, "days", "training.days");
        same(asked, "sweep", row, "effective_days", "training.effective_days");
        compared[2]++;
    }
    orr_json_free(doc);
}

static void check_plan(const Asked *asked)
{
    g_autofree char *gpus = g_strdup_printf("%.0f", orr_json_number(path(asked->run, "gpus")));
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("plan", asked->file, "--gpus", gpus));
    const OrrJson *row = doc != NULL ? orr_json_first(path(orr_json_root(doc), "rows")) : NULL;
    if (row != NULL && path(row, "step_s") != NULL && orr_json_type(path(row, "step_s")) == ORR_JSON_NUMBER) {
        same(asked, "plan", row, "step_s", "step_s");
        same(asked, "plan", row, "days", "training.days");
        same(asked, "plan", row, "effective_days", "training.effective_days");
        same(asked, "plan", row, "gpu_hours", "training.gpu_hours");
        same(asked, "plan", row, "usd", "training.usd");
        compared[3]++;
    }
    orr_json_free(doc);
}

/* One field is "auto", and may be what it is. A search takes every network for alone. */
static void check_search(const Asked *asked, const char *micro_batch)
{
    g_autofree char *only = g_strdup_printf("search.micro_batch=[%s]", micro_batch);
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("search", asked->file, "--set", "training.micro_batch=auto",
                                           "--set", only, "--set", "search.reserve_memory_bytes=0"));
    const OrrJson *best = doc != NULL ? path(orr_json_root(doc), "best") : NULL;
    const OrrJson *first = best != NULL ? orr_json_first(best) : NULL;
    if (first != NULL) {
        const OrrJson *report = path(first, "report");
        same(asked, "search", report, "step_s", "step_s");
        same(asked, "search", report, "mfu", "mfu");
        same(asked, "search", report, "training.days", "training.days");
        same(asked, "search", report, "training.effective_days", "training.effective_days");
        same(asked, "search", report, "training.gpu_hours", "training.gpu_hours");
        same(asked, "search", report, "training.kwh", "training.kwh");
        const OrrJson *pareto = orr_json_first(path(orr_json_root(doc), "pareto"));
        same(asked, "search's front", pareto, "step_s", "step_s");
        same(asked, "search's front", pareto, "days", "training.days");
        same(asked, "search's front", pareto, "effective_days", "training.effective_days");
        same(asked, "search's front", pareto, "gpu_hours", "training.gpu_hours");
        compared[4]++;
    }
    orr_json_free(doc);
}

static void check_campaign(const Asked *asked)
{
    OrrJsonDoc *doc = ask(asked, CLI_WORDS("campaign", asked->file, "--replicas", "2"));
    if (doc != NULL) {
        same(asked, "campaign", orr_json_root(doc), "step_s", "step_s");
        if (orr_json_bool(path(orr_json_root(doc), "faults_assumed"))) /* else nodes may be waited for */
            same(asked, "campaign", orr_json_root(doc), "formula.days", "training.effective_days");
        compared[5]++;
    }
    orr_json_free(doc);
}

/* The micro-batch that the example states; NULL: none, or a scenario of another form. */
static char *micro_batch_of(const char *file)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(file, &text, &length, NULL));
    OrrJsonDoc *doc = orr_json_parse(text, length, file, NULL);
    const OrrJson *node = path(orr_json_root(doc), "training.micro_batch");
    char *batch = node != NULL && orr_json_type(node) == ORR_JSON_NUMBER
                      ? g_strdup_printf("%.0f", orr_json_number(node))
                      : NULL;
    orr_json_free(doc);
    return batch;
}

static void check_example(const char *folder, const char *name, const char *const *sets, const char *own_runs)
{
    g_autofree char *file = g_build_filename(folder, name, NULL), *micro_batch = micro_batch_of(file);
    Asked asked = {file, name, sets, own_runs, NULL};
    OrrJsonDoc *run = ask(&asked, CLI_WORDS("run", file));
    if (run != NULL) {
        asked.run = orr_json_root(run);
        const OrrJson *network = path(asked.run, "network");
        const bool flow = network != NULL && orr_json_type(network) == ORR_JSON_OBJECT;
        check_compare(&asked);
        check_plan(&asked);
        check_campaign(&asked);
        if (micro_batch != NULL)
            check_sweep(&asked, micro_batch);
        if (micro_batch != NULL && !flow)
            check_search(&asked, micro_batch);
        if (!g_str_has_prefix(name, "network-"))
            check_explain(&asked);
    }
    orr_json_free(run);
}

/* Slow GPUs, input from storage and failures, on top of plain examples. */
static void test_late(void)
{
    static const char *const sets[] = {
        "training.tokens=1e12",
        "jitter={\"slow\":[{\"node\":3,\"frac\":0.1}],\"step_noise_frac\":0.01,\"steps\":9}",
        "data={\"bytes_per_token\":3000}",
        "storage={\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":1e10}",
        "cluster.usd_per_gpu_hour=2",
        NULL};
    static const char *const names[] = {"gpt3-175b-interleaved.json", "fsdp_8b_8h100.json",
                                        "mixed-llama3-8b.json", "hsdp.json"};
    g_autofree char *folder = cli_source("scenarios/examples");
    memset(compared, 0, sizeof compared);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        check_example(folder, names[i], sets, NULL);
    for (int i = 0; i < COMMANDS; i++)
        g_assert_cmpint(compared[i], >=, 2);
}

static void test_examples(void)
{
    static const char *const sets[] = {"training.tokens=1e12", NULL};
    static const char *const commands[COMMANDS] = {"explain", "compare", "sweep",
                                                   "plan",    "search",  "campaign"};
    g_autofree char *folder = cli_source("scenarios/examples");
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
        if (g_str_has_suffix(name, ".json") && !is_slow(name))
            g_ptr_array_add(names, g_strdup(name));
    g_assert_cmpuint(names->len, >, 40);
    for (guint i = 0; i < names->len; i += SANITIZED ? 4 : 1)
        check_example(folder, names->pdata[i], sets, NULL);
    for (int i = 0; i < COMMANDS; i++) {
        g_test_message("%s: %d answers", commands[i], compared[i]);
        g_assert_cmpint(compared[i], >=, SANITIZED ? LEAST / 6 : LEAST);
    }
}

/* Beside another loop each has its own step and phases, from either side. */
static void check_beside(const Asked *asked, const char *other, const char *folder)
{
    g_autofree char *file = g_build_filename(folder, other, NULL);
    OrrJsonDoc *both = ask(asked, CLI_WORDS("compare", asked->file, file)),
               *turned = ask(asked, CLI_WORDS("compare", file, asked->file));
    const OrrJson *one = orr_json_root(both), *two = orr_json_root(turned);
    const double step_s = orr_json_number(path(asked->run, "step_s"));
    g_assert_cmpfloat(orr_json_number(path(one, "a.step_s")), ==, step_s);
    g_assert_cmpfloat(orr_json_number(path(two, "b.step_s")), ==, step_s);
    const OrrJson *phase = orr_json_first(path(asked->run, "phases")),
                  *row = orr_json_first(path(one, "phases"));
    for (; phase != NULL; phase = orr_json_next(phase), row = orr_json_next(row)) {
        g_assert_cmpstr(orr_json_text(path(row, "name")), ==, orr_json_text(path(phase, "name")));
        g_assert_cmpfloat(orr_json_number(path(row, "a_s")), ==, orr_json_number(path(phase, "seconds")));
    }
    orr_json_free(both);
    orr_json_free(turned);
}

/* Loops over several models: the same step by explain and sweep, beside each other, and the best way to deal the GPUs is no slower. */
static void test_loops(void)
{
    static const char *const none[] = {NULL};
    static const char *const names[] = {"rl-grpo-qwen3-30b-a3b-h100.json", "rl-ppo-llama3-8b-a800.json",
                                        "rl-grpo-qwen2.5-7b-h20.json", "rl-grpo-deepseek-v3-h100.json"};
    g_autofree char *folder = cli_source("scenarios/examples");
    memset(compared, 0, sizeof compared);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_build_filename(folder, names[i], NULL);
        Asked asked = {file, names[i], none, NULL, NULL};
        OrrJsonDoc *run = ask(&asked, CLI_WORDS("run", file));
        asked.run = orr_json_root(run);
        g_autofree char *vary = g_strdup_printf("workload.staleness_steps=%.0f",
                                                orr_json_number(path(asked.run, "staleness_steps")));
        OrrJsonDoc *sweep = ask(&asked, CLI_WORDS("sweep", file, "--vary", vary)),
                   *search = ask(&asked, CLI_WORDS("search", file));
        const OrrJson *row = orr_json_first(path(orr_json_root(sweep), "rows")),
                      *best = orr_json_first(path(orr_json_root(search), "best"));
        same(&asked, "sweep", row, "step_s", "step_s");
        same(&asked, "sweep", row, "tokens_per_s_per_gpu", "tokens_per_s_per_gpu");
        g_assert_cmpfloat(orr_json_number(path(best, "step_s")), <=,
                          orr_json_number(path(asked.run, "step_s")) * (1 + 1e-12));
        check_explain(&asked);
        check_beside(&asked, names[(i + 1) % G_N_ELEMENTS(names)], folder);
        if (strcmp(orr_json_text(path(best, "placement")), "colocated") == 0) /* all of them do both */
            g_assert_cmpfloat(orr_json_number(path(best, "rollout_gpus")), ==,
                              orr_json_number(path(best, "train_gpus")));
        orr_json_free(sweep);
        orr_json_free(search);
        orr_json_free(run);
    }
    g_assert_cmpint(compared[0], ==, (int)G_N_ELEMENTS(names));
}

/* A run of one's own that took a fifth longer than predicted: days and costs of every command follow it. */
static void test_own_runs(void)
{
    static const char *const sets[] = {"training.tokens=1e12", "cluster.usd_per_gpu_hour=2", NULL};
    static const char *const costs[] = {"training.days", "training.gpu_hours", "training.usd"};
    const char name[] = "fsdp_8b_8h100.json";
    g_autofree char *folder = cli_source("scenarios/examples"), *file = g_build_filename(folder, name, NULL),
                    *text = NULL;
    char *scratch = cli_scratch_new();
    g_autofree char *own = g_build_filename(scratch, "own.json", NULL);
    Asked asked = {file, name, sets, NULL, NULL};
    OrrJsonDoc *plain = ask(&asked, CLI_WORDS("run", file));
    const double step_s = orr_json_number(path(orr_json_root(plain), "step_s"));
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_autofree char *rows = g_strdup_printf(
        "[{\"id\":\"mine\",\"source\":\"my cluster\",\"scenario\":%s,\"measured\":{\"step_s\":%.6f}}]", text,
        1.2 * step_s);
    g_assert_true(g_file_set_contents(own, rows, -1, NULL));
    asked.own_runs = own;
    OrrJsonDoc *run = ask(&asked, CLI_WORDS("run", file));
    const double factor = orr_json_number(path(orr_json_root(run), "own_runs.factor"));
    g_assert_cmpfloat(factor, >, 1.1);
    g_assert_cmpfloat(factor, <, 1.2);
    for (gsize i = 0; i < G_N_ELEMENTS(costs); i++) {
        const double with = orr_json_number(path(orr_json_root(run), costs[i])),
                     without = orr_json_number(path(orr_json_root(plain), costs[i]));
        g_assert_cmpfloat_with_epsilon(with / without, factor, 1e-9);
    }
    memset(compared, 0, sizeof compared);
    check_example(folder, name, sets, own);
    for (int i = 0; i < COMMANDS; i++)
        g_assert_cmpint(compared[i], ==, 1);
    orr_json_free(run);
    orr_json_free(plain);
    cli_scratch_free(scratch);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/answers/examples", test_examples);
    g_test_add_func("/answers/late", test_late);
    g_test_add_func("/answers/loops", test_loops);
    g_test_add_func("/answers/own-runs", test_own_runs);
    return g_test_run();
}
