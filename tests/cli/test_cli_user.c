/* tests/cli/test_cli_user.c - what a new user meets: help that can be read, examples that exist, words that fit
 * the numbers beside them, errors that name what would work. */
#include <string.h>

#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

static const char *const commands[] = {"run",      "search",    "plan", "sweep",  "compare", "plot",
                                       "validate", "calibrate", "list", "export", "import",  "help"};

/* --- help --- */

/* Each flag's words begin in their column, and a flag too long for it has a line of its own. */
static void assert_flags_apart(const char *command, const char *help)
{
    enum { COLUMN = 22, LONGEST = 40 };
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (g_str_has_prefix(*line, "  --") && strlen(*line) > LONGEST && (*line)[COLUMN - 1] != ' ')
            g_error("%s: flag and help run into each other: %s", command, *line);
}

/* "scenarios/..." that the help of a command names is there to be tried. */
static void assert_files_exist(const char *command, const char *help)
{
    for (const char *at = strstr(help, "scenarios/"); at != NULL; at = strstr(at + 1, "scenarios/")) {
        g_autofree char *path = g_strndup(at, strcspn(at, " \n,;:)`|"));
        g_autofree char *full = cli_source(path);
        if (g_str_has_suffix(path, ".json") && strpbrk(path, "*<") == NULL &&
            !g_file_test(full, G_FILE_TEST_EXISTS))
            g_error("help %s names %s, which is not there", command, path);
    }
}

static void test_help(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("help", commands[i]));
        cli_assert_done(&run, commands[i]);
        assert_flags_apart(commands[i], run.out);
        assert_files_exist(commands[i], run.out);
        cli_run_clear(&run);
    }
}

/* Files that the pages name are there too, and a word that is a command and a field explains both. */
static void test_pages(void)
{
    static const char *const pages[] = {"README.md",      "docs/ACCURACY.md", "docs/ARCHITECTURE.md",
                                        "docs/MODEL.md",  "docs/PLANNING.md", "docs/CALIBRATION.md",
                                        "docs/REPORT.md", "docs/SEARCH.md"};
    for (gsize i = 0; i < G_N_ELEMENTS(pages); i++) {
        g_autofree char *path = cli_source(pages[i]), *text = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        assert_files_exist(pages[i], text);
    }
    CliRun run = cli_run(NULL, CLI_WORDS("help", "search"));
    cli_assert_done(&run, "help search");
    g_assert_nonnull(strstr(run.out, "--max-seconds"));
    g_assert_nonnull(strstr(run.out, "Keys of scenario.search:"));
    cli_run_clear(&run);
}

static void test_help_names_what_can_be_written(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("help", "parallel.schedule"));
    cli_assert_done(&run, "help");
    g_assert_nonnull(strstr(run.out, "zb-auto"));
    g_assert_null(strstr(run.out, ", file"));
    cli_run_clear(&run);
}

/* --- words beside numbers --- */

/* What does not fit says how to make room, and the box and the verdict speak of the same bytes. */
static void test_room(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun none =
        cli_run(NULL, CLI_WORDS("run", path, "--set", "parallel.zero=0", "--set", "training.micro_batch=4",
                                "--set", "cluster.accelerator.memory_bytes=80 GB"));
    CliRun tight =
        cli_run(NULL, CLI_WORDS("run", path, "--set", "cluster.accelerator.memory_bytes=24.7 GiB"));
    CliRun old =
        cli_run(NULL, CLI_WORDS("run", path, "--set", "parallel.zero=0", "--set", "training.micro_batch=4",
                                "--set", "cluster.accelerator.memory_bytes=80 GB", "--set",
                                "execution.framework=megatron-lm-2021"));
    cli_assert_done(&none, "does not fit");
    cli_assert_done(&tight, "just fits");
    cli_assert_done(&old, "does not fit");
    g_assert_nonnull(strstr(old.out, "Makes room"));
    g_assert_null(strstr(old.out, "parallel.zero=")); /* which that software has not */
    g_assert_nonnull(strstr(none.out, "DOES NOT FIT (83.3 of 74.5 GiB)"));
    g_assert_nonnull(strstr(none.out, "Makes room  parallel.zero=1, training.recompute=full, "
                                      "training.micro_batch=1"));
    g_assert_nonnull(strstr(tight.out, "AT THE EDGE (24.7 of 24.7 GiB)"));
    g_assert_nonnull(strstr(tight.out, "At the edge: peak and context of stage 0"));
    cli_run_clear(&none);
    cli_run_clear(&tight);
    cli_run_clear(&old);
}

/* A budget that nothing keeps is answered with the cheapest, a deadline with the fastest. */
static void test_plan_misses(void)
{
    g_autofree char *path = cli_source("scenarios/examples/plan-sc21-175b.json");
    CliRun poor =
        cli_run(NULL, CLI_WORDS("plan", path, "--set", "cluster.usd_per_gpu_hour=2", "--budget-usd", "1000"));
    CliRun hasty = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", "1 h"));
    cli_assert_done(&poor, "budget");
    cli_assert_done(&hasty, "deadline");
    g_assert_nonnull(strstr(poor.out, "looked at; the cheapest is "));
    g_assert_null(strstr(poor.out, "the fastest is"));
    g_assert_nonnull(strstr(hasty.out, "looked at; the fastest is "));
    cli_run_clear(&poor);
    cli_run_clear(&hasty);
}

/* A sweep's table is no profile: it would change nothing. A profile of one GPU says nothing of another. */
static void test_table_as_calibration(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    g_autofree char *table = g_build_filename(folder, "table.json", NULL);
    g_assert_true(g_file_set_contents(table, "{\"gemm_measurements\":[]}", -1, NULL));
    g_autofree char *set = g_strconcat("cluster.calibration=", table, NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--set", set));
    cli_assert_refused(&run, "table",
                       "a calibration is what 'orrery calibrate fit TABLE --output FILE' writes");
    cli_run_clear(&run);
    g_assert_true(
        g_file_set_contents(table, "{\"accelerator\":\"h100-sxm5-80gb\",\"frameworks\":{}}", -1, NULL));
    run = cli_run(NULL, CLI_WORDS("run", path, "--set", set));
    cli_assert_refused(&run, "another GPU",
                       "is fitted for h100-sxm5-80gb, but the cluster has a100-sxm4-80gb");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* Half a preset's name is answered with all that begin so. */
static void test_presets_by_their_beginning(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--set", "cluster.preset=dgx-a100"));
    cli_assert_refused(&run, "dgx-a100", "did you mean one of \"dgx-a100-40gb\", \"dgx-a100-80gb\"?");
    cli_run_clear(&run);
}

/* --- one's own measurements --- */

static CliRun validate(const char *folder, const char *rows)
{
    g_autofree char *path = g_build_filename(folder, "runs.json", NULL);
    g_assert_true(g_file_set_contents(path, rows, -1, NULL));
    return cli_run(folder, CLI_WORDS("validate", "runs.json", "--rows"));
}

#define SCENARIO                                                                                             \
    "\"scenario\":{\"model\":\"llama2-7b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":4096," \
    "\"global_batch\":8},\"parallel\":{\"zero\":3}}"

/* A figure under a name that is none is said, not lost; a quantity may have a unit; a list of nothing is no ledger. */
static void test_own_runs(void)
{
    char *folder = cli_scratch_new();
    CliRun none = validate(folder, "[]");
    CliRun misspelt = validate(folder, "[{\"id\":\"a\"," SCENARIO ",\"measured\":{\"step\":1.5}}]");
    CliRun extra = validate(folder, "[{\"id\":\"a\"," SCENARIO ",\"measured\":{\"step_s\":1.5,\"mine\":1}}]");
    CliRun unit = validate(folder, "[{\"id\":\"a\"," SCENARIO ",\"measured\":{\"step_s\":\"1500 ms\"}}]");
    cli_assert_refused(&none, "no rows", "runs.json: holds no rows");
    g_assert_cmpint(misspelt.status, ==, 0);
    g_assert_nonnull(
        strstr(misspelt.out, "measured.step: unknown key (value 1.5); did you mean \"step_s\"?"));
    g_assert_cmpint(extra.status, ==, 0);
    g_assert_nonnull(strstr(extra.err, "measured.mine: unknown key"));
    g_assert_nonnull(strstr(extra.out, "1 rows, 0 skipped"));
    cli_assert_done(&unit, "1500 ms");
    g_assert_nonnull(strstr(unit.out, "a       1.5 s"));
    cli_run_clear(&none);
    cli_run_clear(&misspelt);
    cli_run_clear(&extra);
    cli_run_clear(&unit);
    cli_scratch_free(folder);
}

/* A flag whose value was forgotten does not take the next flag for one; --memory alone prints. */
static void test_forgotten_values(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun output = cli_run(NULL, CLI_WORDS("run", path, "--output", "--quiet")),
           kernels = cli_run(NULL, CLI_WORDS("run", path, "--kernels", "--set", "training.micro_batch=1")),
           memory = cli_run(NULL, CLI_WORDS("run", path, "--memory", "--by", "layer")),
           meant = cli_run(NULL, CLI_WORDS("help", "--", "--quiet"));
    cli_assert_refused(&output, "no file",
                       "run: --output lacks its value before --quiet; give it, as in --output FILE");
    cli_assert_refused(&kernels, "not a table", "run: --kernels lacks its value before --set");
    cli_assert_done(&memory, "memory");
    g_assert_null(strstr(meant.err, "lacks its value"));
    cli_run_clear(&output);
    cli_run_clear(&kernels);
    cli_run_clear(&memory);
    cli_run_clear(&meant);
}

/* An example by its name from any folder; what is neither that nor a file says what is near. */
static void test_examples_by_name(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun named = cli_run(folder, CLI_WORDS("run", "gpt3-175b", "--format", "json")),
           file = cli_run(folder, CLI_WORDS("run", path, "--format", "json")),
           table = cli_run(folder, CLI_WORDS("sweep", "gpt3-175b", "--vary", "training.micro_batch=1,2")),
           list = cli_run(folder, CLI_WORDS("list", "examples", "--format", "csv")),
           near = cli_run(folder, CLI_WORDS("run", "gpt3-17b")),
           json = cli_run(folder, CLI_WORDS("run", "{\"model\":1}")),
           none = cli_run(folder, CLI_WORDS("explain", "zzzzzz"));
    cli_assert_done(&named, "an example's name");
    cli_assert_done(&table, "sweep of an example");
    g_assert_cmpstr(named.out, ==, file.out);
    g_assert_nonnull(strstr(list.out, "gpt3-175b,\"GPT-3 175B on 1,024 A100s\""));
    cli_assert_refused(&near, "a name nearly right", "did you mean \"gpt3-175b\"?");
    cli_assert_refused(&json, "a scenario as a word",
                       "a scenario is a file; send a text as in 'orrery run - < FILE'");
    CliRun date = cli_run(folder, CLI_WORDS("plan", "gpt3-175b", "--deadline", "2027-03-01"));
    cli_assert_refused(&date, "a date", "\"2027-03-01\" is not a duration; write it like \"30 days\"");
    cli_run_clear(&date);
    CliRun model = cli_run(folder, CLI_WORDS("run", "llama3-8b"));
    cli_assert_refused(&model, "a model's name",
                       "one of the models, not a scenario; give a file such as {\"model\": \"llama3-8b\"");
    cli_run_clear(&model);
    cli_assert_refused(&none, "no name", "what 'orrery list examples' names");
    cli_run_clear(&named);
    cli_run_clear(&file);
    cli_run_clear(&table);
    cli_run_clear(&list);
    cli_run_clear(&near);
    cli_run_clear(&json);
    cli_run_clear(&none);
    cli_scratch_free(folder);
}

/* A configuration that a scenario names as its model says what of it the prediction leaves out, as its import does. */
static void test_configuration_as_model(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *config = g_build_filename(folder, "config.json", NULL);
    g_autofree char *set = g_strdup_printf("model=\"%s\"", config), *scenario = cli_source(EXAMPLE);
    g_assert_true(g_file_set_contents(
        config,
        "{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":96,\"num_attention_heads\":32,"
        "\"intermediate_size\":11008,\"vocab_size\":51200,\"max_position_embeddings\":4096,"
        "\"extra_attention_stages\":3}",
        -1, NULL));
    CliRun text = cli_run(NULL, CLI_WORDS("run", scenario, "--set", set)),
           json = cli_run(NULL, CLI_WORDS("run", scenario, "--set", set, "--format", "json")),
           plain = cli_run(NULL, CLI_WORDS("run", scenario));
    cli_assert_done(&text, "configuration");
    cli_assert_done(&json, "configuration as JSON");
    g_assert_nonnull(strstr(text.out, "extra_attention_stages"));
    g_assert_nonnull(strstr(json.out, "extra_attention_stages"));
    g_assert_null(strstr(plain.out, "not in the prediction"));
    cli_run_clear(&text);
    cli_run_clear(&json);
    cli_run_clear(&plain);
    cli_scratch_free(folder);
}

/* A campaign with a price says what it costs; one whose failures cost no restart says so; few presets are named. */
static void test_campaign_answers(void)
{
    g_autofree char *path = cli_source("scenarios/examples/campaign-llama3-405b.json");
    const char *const price[] = {"campaign", path, "--replicas", "20", "--set", "cluster.usd_per_gpu_hour=2",
                                 NULL};
    CliRun text = cli_run(NULL, price), free = cli_run(NULL, CLI_WORDS("campaign", path, "--replicas", "20")),
           json = cli_run(NULL, CLI_WORDS("campaign", path, "--replicas", "20", "--format", "json", "--set",
                                          "cluster.usd_per_gpu_hour=2")),
           instant = cli_run(NULL, CLI_WORDS("campaign", path, "--replicas", "20", "--set",
                                             "faults={\"node_mtbf_s\":\"900 days\"}")),
           spot = cli_run(NULL, CLI_WORDS("campaign", path, "--set", "faults=spot"));
    cli_assert_done(&text, "campaign");
    cli_assert_done(&json, "campaign as JSON");
    cli_assert_done(&instant, "campaign without restarts");
    g_assert_nonnull(strstr(text.out, "  Cost "));
    g_assert_nonnull(strstr(text.out, " USD ("));
    g_assert_nonnull(strstr(free.out, "cluster.usd_per_gpu_hour is not given"));
    g_assert_null(strstr(free.out, "count as nothing"));
    g_assert_nonnull(strstr(instant.out, "detection_s"));
    OrrJsonDoc *doc = cli_parse(json.out, "campaign");
    const OrrJson *root = orr_json_root(doc);
    const double hours = orr_json_number(orr_json_member(root, "gpu_hours"));
    const double days = orr_json_number(orr_json_member(orr_json_member(root, "days"), "mean"));
    g_assert_cmpfloat_with_epsilon(hours, days * 24 * 16384, 1e-6 * hours);
    g_assert_cmpfloat_with_epsilon(orr_json_number(orr_json_member(root, "usd")), 2 * hours, 1e-6 * hours);
    cli_assert_refused(&spot, "spot", "llama3-2024, rsc-1, rsc-2");
    orr_json_free(doc);
    cli_run_clear(&text);
    cli_run_clear(&free);
    cli_run_clear(&json);
    cli_run_clear(&instant);
    cli_run_clear(&spot);
}

/* JSON as YAML and Python have it: a comma at the end. */
static void test_last_comma(void)
{
    static const char *const texts[] = {"{\"model\": \"llama3-8b\",\n}", "{\"a\": [1, 2, ],\n \"b\": 1}"};
    g_autofree char *folder = cli_scratch_new(), *path = g_build_filename(folder, "x.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_assert_true(g_file_set_contents(path, texts[i], -1, NULL));
        CliRun run = cli_run(NULL, CLI_WORDS("run", path));
        cli_assert_refused(&run, texts[i], "a comma with nothing after it");
        cli_run_clear(&run);
    }
    cli_scratch_free(g_steal_pointer(&folder));
}

/* A search over tensor degrees takes those that make a grid, and experts have none. */
static void test_grids(void)
{
    static const struct {
        const char *scheme, *layout;
    } rows[] = {{"2d", " tp4 "}, {"2.5d", " tp8 "}, {"3d", " tp8 "}};
    g_autofree char *folder = cli_scratch_new(), *path = g_build_filename(folder, "x.json", NULL);
    g_assert_true(g_file_set_contents(
        path,
        "{\"model\":\"llama3-70b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},\"training\":{"
        "\"sequence_length\":4096,\"global_batch\":32,\"recompute\":\"full\"},\"parallel\":{\"tensor\":"
        "\"auto\","
        "\"tensor_depth\":2}}",
        -1, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *set = g_strconcat("parallel.tensor_scheme=", rows[i].scheme, NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--set", set)),
               experts = cli_run(NULL, CLI_WORDS("run", path, "--set", set, "--set", "model=mixtral-8x7b"));
        cli_assert_done(&run, rows[i].scheme);
        if (strstr(run.out, rows[i].layout) == NULL)
            g_error("%s: %s", rows[i].scheme, run.out);
        cli_assert_refused(&experts, rows[i].scheme, "with experts");
        cli_run_clear(&run);
        cli_run_clear(&experts);
    }
    cli_scratch_free(g_steal_pointer(&folder));
}

/* What a recipe-launched Megatron-Core does where a scenario does not say, and a launch by bare flags does not. */
static void test_megatron_defaults(void)
{
    g_autofree char *folder = cli_scratch_new(), *path = g_build_filename(folder, "x.json", NULL);
    g_assert_true(g_file_set_contents(
        path,
        "{\"model\":\"llama3-70b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":8},\"training\":{"
        "\"sequence_length\":8192,\"global_batch\":128},\"parallel\":{\"tensor\":8}}",
        -1, NULL));
    CliRun recipes = cli_run(NULL, CLI_WORDS("run", path, "--set", "execution.framework=megatron-core")),
           flags = cli_run(NULL, CLI_WORDS("run", path, "--set", "execution.framework=megatron-lm"));
    g_assert_nonnull(strstr(recipes.out, "tp8 sp pp1 dp8 zero1"));
    g_assert_nonnull(strstr(flags.out, "tp8 pp1 dp8 zero0"));
    cli_run_clear(&recipes);
    cli_run_clear(&flags);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* The cap of one kind of a mixed cluster: at its own power nothing changes, below it the step is slower. */
static void test_entry_of_a_list(void)
{
    static const char *const caps[] = {"training.tokens=1e12", "cluster.groups.0.accelerator.power_cap_w=700",
                                       "cluster.groups.0.accelerator.power_cap_w=400"};
    double step_s[3];
    for (int i = 0; i < 3; i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("run", "mixed-llama3-8b", "--check", "--quiet", "--format",
                                             "json", "--set", caps[i]));
        cli_assert_done(&run, caps[i]);
        const char *found = strstr(run.out, "\"step_s\": ");
        g_assert_nonnull(found);
        step_s[i] = g_ascii_strtod(found + strlen("\"step_s\": "), NULL);
        cli_run_clear(&run);
    }
    g_assert_cmpfloat(step_s[1], ==, step_s[0]);
    g_assert_cmpfloat(step_s[2], >, 1.1 * step_s[0]);
    CliRun none = cli_run(NULL, CLI_WORDS("run", "mixed-llama3-8b", "--set", "cluster.groups.2.nodes=1"));
    cli_assert_refused(&none, "an entry that is not there", "give a number from 0 to 1");
    cli_run_clear(&none);
}

/* Chips of older systems run by name, and what they lack is said. */
static void test_older_chips(void)
{
    static const char *const chips[][3] = {
        {"cluster.accelerator=p40-pcie-24gb", "training.precision=fp32", "1 x 1 p40-pcie-24gb"},
        {"cluster.accelerator=tpu-v4i", "training.precision=bf16", "1 x 1 tpu-v4i"},
        {"cluster.accelerator=xeon-e5-2690", "training.precision=fp32", "1 x 1 xeon-e5-2690"}};
    for (gsize i = 0; i < G_N_ELEMENTS(chips); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("run", "gpt2-xl-1gpu", "--check", "--quiet", "--set",
                                             "model=gpt2-small", "--set", chips[i][0], "--set", chips[i][1]));
        cli_assert_done(&run, chips[i][0]);
        g_assert_nonnull(strstr(run.out, chips[i][2]));
        cli_run_clear(&run);
    }
    CliRun none = cli_run(
        NULL, CLI_WORDS("run", "gpt2-xl-1gpu", "--set", chips[0][0], "--set", "training.precision=bf16"));
    cli_assert_refused(&none, "bf16 on a P40", "bf16 peak");
    cli_run_clear(&none);
}

/* Accelerate alone is DistributedDataParallel around the models of transformers. */
static void test_accelerate(void)
{
    double step_s[2];
    static const char *const names[] = {"accelerate", "transformers-ddp"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *set = g_strdup_printf("execution.framework=%s", names[i]);
        CliRun run =
            cli_run(NULL, CLI_WORDS("run", "gpt2-xl-1gpu", "--quiet", "--format", "json", "--set", set));
        cli_assert_done(&run, set);
        const char *step = strstr(run.out, "\"step_s\":");
        g_assert_nonnull(step);
        step_s[i] = g_ascii_strtod(step + strlen("\"step_s\":"), NULL);
        cli_run_clear(&run);
    }
    g_assert_cmpfloat(step_s[0], >, 0);
    g_assert_cmpfloat(step_s[0], ==, step_s[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/user/help", test_help);
    g_test_add_func("/cli/user/pages", test_pages);
    g_test_add_func("/cli/user/help-names-words", test_help_names_what_can_be_written);
    g_test_add_func("/cli/user/room", test_room);
    g_test_add_func("/cli/user/accelerate", test_accelerate);
    g_test_add_func("/cli/user/plan-misses", test_plan_misses);
    g_test_add_func("/cli/user/table-as-calibration", test_table_as_calibration);
    g_test_add_func("/cli/user/presets", test_presets_by_their_beginning);
    g_test_add_func("/cli/user/examples-by-name", test_examples_by_name);
    g_test_add_func("/cli/user/forgotten-values", test_forgotten_values);
    g_test_add_func("/cli/user/configuration-as-model", test_configuration_as_model);
    g_test_add_func("/cli/user/own-runs", test_own_runs);
    g_test_add_func("/cli/user/campaign-answers", test_campaign_answers);
    g_test_add_func("/cli/user/last-comma", test_last_comma);
    g_test_add_func("/cli/user/megatron-defaults", test_megatron_defaults);
    g_test_add_func("/cli/user/grids", test_grids);
    g_test_add_func("/cli/user/older-chips", test_older_chips);
    g_test_add_func("/cli/user/entry-of-a-list", test_entry_of_a_list);
    return g_test_run();
}
