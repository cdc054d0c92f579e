/* tests/cli/test_cli_exports.c - what leaves the program: an export says every refusal at once and loses nothing that the
 * file does say; memory behind the report. */
#include <string.h>

#include "tests/cli/runner.h"

static int count_of(const char *text, const char *needle)
{
    int count = 0;
    for (const char *at = strstr(text, needle); at != NULL; at = strstr(at + 1, needle))
        count++;
    return count;
}

/* Each field that the framework cannot say has its line, whichever comes first. */
static void test_all_refusals(void)
{
    static const struct {
        const char *to, *named[6];
    } cases[] = {
        {"nanotron",
         {"model.moe: experts", "model.head_dim:", "parallel.schedule: dualpipe",
          "training.recompute:", "training.precision: fp8-blockwise", NULL}},
        {"deepspeed",
         {"training.precision:", "parallel.pipeline: above 1", "parallel.expert: above 1",
          "training.recompute:", NULL}},
        {"torchtitan", {"parallel.zero: 1", "parallel.schedule: dualpipe", "training.precision:", NULL}},
        {"megatron-bridge",
         {"training.optimizer: lion", "training.recompute: selective-op", "parallel.order:", NULL}},
    };
    g_autofree char *scenario = cli_source("scenarios/examples/deepseek-v3-pair.json");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const bool bridge = strcmp(cases[i].to, "megatron-bridge") == 0;
        CliRun run =
            cli_run(NULL, CLI_WORDS("export", scenario, "--to", cases[i].to, "--set",
                                    "training.recompute=selective-op", "--set",
                                    bridge ? "parallel.schedule=1f1b" : "parallel.schedule=dualpipe", "--set",
                                    bridge ? "training.optimizer=lion" : "training.micro_batch=1", "--set",
                                    bridge ? "parallel.order=dp-tp-cp-ep-pp" : "parallel.zero=1"));
        g_assert_cmpint(run.status, ==, 2);
        g_assert_cmpstr(run.out, ==, "");
        for (int k = 0; cases[i].named[k] != NULL; k++) {
            if (strstr(run.err, cases[i].named[k]) == NULL)
                g_test_message("%s: %s", cases[i].named[k], run.err);
            g_assert_nonnull(strstr(run.err, cases[i].named[k]));
        }
        g_assert_cmpint(count_of(run.err, "orrery: "), ==, 1);
        g_assert_cmpint(count_of(run.err, "\n  and "), ==, count_of(run.err, "\n") - 1);
        cli_run_clear(&run);
    }
}

/* 32 layers and the loss are no whole stages of four ranks: the layout says the layers of each, and so nothing is lost. */
static void test_layout_says_it(void)
{
    static const char *const formats[] = {"megatron", "megatron-bridge"};
    char *folder = cli_scratch_new();
    g_autofree char *path = g_build_filename(folder, "s.json", NULL);
    g_assert_true(
        g_file_set_contents(path,
                            "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},"
                            "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"micro_batch\":1},"
                            "\"parallel\":{\"tensor\":2,\"pipeline\":4,\"loss_as_layer\":true},"
                            "\"execution\":{\"framework\":\"megatron-core\"}}",
                            -1, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        CliRun split = cli_run(NULL, CLI_WORDS("export", path, "--to", formats[i]));
        CliRun even =
            cli_run(NULL, CLI_WORDS("export", path, "--to", formats[i], "--set", "model.layers=31"));
        g_assert_cmpint(split.status, ==, 0);
        g_assert_cmpint(even.status, ==, 0);
        g_assert_nonnull(strstr(split.out, "Et*8|t*9|t*8|t*7L"));
        g_assert_nonnull(strstr(split.err, "changes the prediction: nothing"));
        g_assert_true(strstr(even.out, "account-for-loss-in-pipeline-split") != NULL ||
                      strstr(even.out, "account_for_loss_in_pipeline_split=True") != NULL ||
                      strstr(even.out, "account_for_loss_in_pipeline_split=true") != NULL);
        g_assert_nonnull(strstr(even.err, "changes the prediction: nothing"));
        cli_run_clear(&split);
        cli_run_clear(&even);
    }
    cli_scratch_free(folder);
}

/* --memory without FILE puts what it writes behind the text report, whatever flag follows. */
static void test_memory_behind(void)
{
    static const char *const more[][4] = {{"--memory", "--by", "layer"},
                                          {"--memory", "--by", "tensor"},
                                          {"--memory", "--steps", "2"},
                                          {"--memory"}};
    g_autofree char *scenario = cli_source("scenarios/examples/gpt2-xl-1gpu.json");
    CliRun plain = cli_run(NULL, CLI_WORDS("run", scenario));
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(more); i++) {
        const char *words[8] = {"run", scenario}, *filed[9] = {"run", scenario, "--memory", "m.csv"};
        for (int k = 0; k < 4 && more[i][k] != NULL; k++) {
            words[2 + k] = more[i][k];
            filed[3 + k] = k > 0 ? more[i][k] : "m.csv";
        }
        CliRun shown = cli_run(folder, words), kept = cli_run(folder, filed);
        cli_assert_done(&shown, "shown");
        cli_assert_done(&kept, "kept");
        g_autofree char *csv = cli_contents(folder, "m.csv"), *both = g_strconcat(plain.out, "\n", csv, NULL);
        g_assert_cmpstr(kept.out, ==, plain.out);
        g_assert_cmpstr(shown.out, ==, both);
        cli_run_clear(&shown);
        cli_run_clear(&kept);
    }
    CliRun json = cli_run(NULL, CLI_WORDS("run", scenario, "--memory", "--format", "json"));
    cli_assert_refused(&json, "json", "give each its own file");
    cli_run_clear(&json);
    cli_run_clear(&plain);
    cli_scratch_free(folder);
}

/* The example of larger groups: slower and smaller with the usual ones. */
static void test_microbatch_group(void)
{
    g_autofree char *scenario = cli_source("scenarios/examples/microbatch-group.json");
    double step_s[2], peak[2];
    for (int i = 0; i < 2; i++) {
        CliRun run =
            cli_run(NULL, CLI_WORDS("run", scenario, "--format", "json", "--set",
                                    i == 0 ? "parallel.microbatch_group=24" : "parallel.microbatch_group=8"));
        OrrJsonDoc *doc = cli_parse(run.out, "report");
        step_s[i] = orr_json_number_of(orr_json_root(doc), "step_s", 0);
        peak[i] = orr_json_number_of(orr_json_member(orr_json_root(doc), "memory"), "peak_bytes", 0);
        orr_json_free(doc);
        cli_run_clear(&run);
    }
    g_assert_cmpfloat(step_s[0], <, step_s[1]);
    g_assert_cmpfloat(peak[0], >, peak[1]);
    g_assert_cmpfloat(peak[1], >, 0);
}

/* What --to schedule writes parallel.schedule reads, whatever the name that it was given. */
static void test_orders_come_back(void)
{
    static const char *const cases[][2] = {
        {"schedule", "s.json"}, {"schedule", "s.csv"}, {"schedule-csv", "t.csv"}};
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    char *folder = cli_scratch_new();
    CliRun plain = cli_run(NULL, CLI_WORDS("run", scenario, "--format", "json"));
    OrrJsonDoc *expected = cli_parse(plain.out, "plain");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(folder, cases[i][1], NULL);
        g_autofree char *set = g_strconcat("parallel.schedule=", path, NULL);
        CliRun written =
            cli_run(folder, CLI_WORDS("export", scenario, "--to", cases[i][0], "--output", cases[i][1]));
        CliRun read = cli_run(NULL, CLI_WORDS("run", scenario, "--set", set, "--format", "json"));
        g_assert_cmpint(written.status, ==, 0);
        cli_assert_done(&read, cases[i][1]);
        OrrJsonDoc *doc = cli_parse(read.out, "read");
        g_assert_cmpfloat(orr_json_number_of(orr_json_root(doc), "step_s", 0), ==,
                          orr_json_number_of(orr_json_root(expected), "step_s", -1));
        orr_json_free(doc);
        cli_run_clear(&written);
        cli_run_clear(&read);
    }
    CliRun refused =
        cli_run(folder, CLI_WORDS("export", scenario, "--to", "schedule-csv", "--output", "u.json"));
    cli_assert_refused(&refused, "csv as json", "ends in .csv");
    cli_run_clear(&refused);
    orr_json_free(expected);
    cli_run_clear(&plain);
    cli_scratch_free(folder);
}

/* What stands beside a trace: another one, a whole step, one pass. */
static void test_trace_beside(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *trace = g_build_filename(folder, "t.json", NULL),
                    *other = g_build_filename(folder, "other.json", NULL);
    const struct {
        const char *words[8], *expect;
    } refused[] = {
        {{"trace", trace, "--beside", other, "--scenario", "fsdp_8b_8h100"}, "give --scenario or --beside"},
        {{"trace", trace, "--beside", "no/such/trace"}, "no/such/trace"},
        {{"trace", trace, "--pass", "forward"}, "--scenario"},
        {{"trace", trace, "--scenario", "fsdp_8b_8h100", "--pass", "sideways"}, "\"forward\""},
        {{"trace", trace, "--scenario", "fsdp_8b_8h100", "--pass", "pair"}, "no such pass"},
    };
    CliRun run = cli_run(NULL, CLI_WORDS("run", "fsdp_8b_8h100", "--trace-kernels", trace));
    cli_assert_done(&run, "run --trace-kernels");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("run", "fsdp_8b_8h100", "--trace-kernels", other));
    cli_assert_done(&run, "run --trace-kernels once more");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("trace", trace, "--beside", other, "--format", "json"));
    cli_assert_done(&run, "trace --beside");
    g_assert_nonnull(strstr(run.out, "\"change_frac\": 0"));
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("trace", trace, "--scenario", "fsdp_8b_8h100", "--pass", "forward"));
    cli_assert_done(&run, "trace --pass");
    cli_run_clear(&run);
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        run = cli_run(NULL, refused[i].words);
        cli_assert_refused(&run, refused[i].expect, refused[i].expect);
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

static char *trace_page(const char *const *words, const char *path)
{
    char *html = NULL;
    CliRun run = cli_run(NULL, words);
    cli_assert_done(&run, "trace --page");
    g_assert_true(g_file_get_contents(path, &html, NULL, NULL));
    cli_run_clear(&run);
    return html;
}

static int figures(const char *html)
{
    g_auto(GStrv) parts = g_strsplit(html, "<figure ", -1);
    return (int)g_strv_length(parts) - 1;
}

/* A page of a trace alone and beside a slower step: its bars say what the text says, and a name from the file is no markup. */
static void test_trace_page(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *trace = g_build_filename(folder, "t.json", NULL),
                    *path = g_build_filename(folder, "page.html", NULL),
                    *nowhere = g_build_filename(folder, "no", "page.html", NULL), *json = NULL;
    CliRun run = cli_run(NULL, CLI_WORDS("run", "fsdp_8b_8h100", "--trace-kernels", trace));
    cli_run_clear(&run);
    g_assert_true(g_file_get_contents(trace, &json, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(json, "\"name\":\"h100-sxm5-80gb\"", -1);
    g_assert_cmpuint(g_strv_length(parts), >, 1);
    g_autofree char *named = g_strjoinv("\"name\":\"<script>&\"", parts);
    g_assert_true(g_file_set_contents(trace, named, -1, NULL));
    g_autofree char *alone = trace_page(CLI_WORDS("trace", trace, "--page", path), path);
    g_assert_cmpint(figures(alone), ==, 2);
    g_assert_null(strstr(alone, "<script"));
    g_assert_nonnull(strstr(alone, "&lt;script&gt;&amp;: a step as it ran"));
    g_assert_null(strstr(alone, "predicted"));
    g_autofree char *beside = trace_page(CLI_WORDS("trace", trace, "--scenario", "fsdp_8b_8h100", "--set",
                                                   "training.sequence_length=x2", "--page", path),
                                         path);
    g_assert_cmpint(figures(beside), ==, 2);
    g_assert_nonnull(strstr(beside, "predicted step"));
    g_assert_nonnull(strstr(beside, "Ops, largest difference first"));
    g_assert_nonnull(strstr(beside, "orrery trace"));
    run = cli_run(NULL, CLI_WORDS("trace", trace, "--page", nowhere));
    cli_assert_refused(&run, "no such folder", nowhere);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* The kernels of a step as a profiler's trace, packed, and read back beside the same scenario. */
static void test_trace_kernels(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *trace = g_build_filename(folder, "t.json.gz", NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("run", "fsdp_8b_8h100", "--trace-kernels", trace));
    cli_assert_done(&run, "run --trace-kernels");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("trace", trace, "--scenario", "fsdp_8b_8h100", "--format", "json"));
    cli_assert_done(&run, "trace --scenario");
    g_assert_nonnull(strstr(run.out, "\"absolute_error_s\": 0,"));
    g_assert_nonnull(strstr(run.out, "\"cancelled\": false"));
    cli_run_clear(&run);
    g_autofree char *mine = g_build_filename(folder, "my-software.json", NULL),
                    *set = g_strconcat("execution.framework=", mine, NULL);
    run = cli_run(NULL, CLI_WORDS("learn", trace, "--scenario", "fsdp_8b_8h100", "--output", mine));
    cli_assert_done(&run, "learn");
    g_assert_nonnull(strstr(run.out, "with it (+0.0 %)"));
    cli_run_clear(&run);
    run = cli_run(NULL,
                  CLI_WORDS("trace", trace, "--scenario", "fsdp_8b_8h100", "--set", set, "--format", "csv"));
    cli_assert_done(&run, "trace with what was learned");
    g_assert_nonnull(strstr(run.out, "class,products,771,"));
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("trace", trace, "--set", "training.micro_batch=2"));
    g_assert_cmpint(run.status, ==, 2);
    g_assert_nonnull(strstr(run.err, "--scenario"));
    cli_run_clear(&run);
    g_autofree char *bytes = NULL, *cut = g_build_filename(folder, "cut.json.gz", NULL);
    gsize length = 0;
    g_assert_true(g_file_get_contents(trace, &bytes, &length, NULL));
    g_assert_true(g_file_set_contents(cut, bytes, (gssize)(length / 2), NULL));
    run = cli_run(NULL, CLI_WORDS("trace", cut));
    g_assert_cmpint(run.status, ==, 2);
    g_assert_nonnull(strstr(run.err, "cut off"));
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* The program that a run writes takes the step that the run says; a bad line is told with its number. */
static void test_program(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *scenario = cli_source("scenarios/examples/network-two-jobs.json");
    CliRun run = cli_run(folder, CLI_WORDS("run", scenario, "--format", "json", "--program", "p.txt"));
    cli_assert_done(&run, "run --program");
    OrrJsonDoc *said = cli_parse(run.out, "run");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("replay", "p.txt", "--check", "--quiet", "--format", "json"));
    cli_assert_done(&run, "replay");
    OrrJsonDoc *again = cli_parse(run.out, "replay");
    cli_run_clear(&run);
    g_assert_cmpfloat(orr_json_number_of(orr_json_root(said), "step_s", -1), ==,
                      orr_json_number_of(orr_json_root(again), "step_s", -2));
    orr_json_free(said);
    orr_json_free(again);
    g_autofree char *text = cli_contents(folder, "p.txt"), *cut = g_build_filename(folder, "cut.txt", NULL);
    g_assert_true(g_file_set_contents(cut, text, (gssize)strlen(text) / 2, NULL));
    run = cli_run(folder, CLI_WORDS("replay", "cut.txt"));
    cli_assert_refused(&run, "cut", "cut.txt: line ");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* A scenario that names a file beside it runs alike after an export and an import into another folder. */
static void test_files_beside(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *scenario = cli_source("scenarios/examples/network-two-jobs.json");
    CliRun run =
        cli_run(folder, CLI_WORDS("export", scenario, "--to", "megatron", "--output", "a.sh", "--quiet"));
    cli_assert_done(&run, "export");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("import", "a.sh", "--output", "b.json", "--quiet"));
    cli_assert_done(&run, "import");
    cli_run_clear(&run);
    double steps_s[2];
    const char *const files[2] = {scenario, "b.json"};
    for (int i = 0; i < 2; i++) {
        run = cli_run(folder, CLI_WORDS("run", files[i], "--format", "json"));
        cli_assert_done(&run, files[i]);
        OrrJsonDoc *doc = cli_parse(run.out, files[i]);
        steps_s[i] = orr_json_number_of(orr_json_root(doc), "step_s", -1);
        orr_json_free(doc);
        cli_run_clear(&run);
    }
    g_assert_cmpfloat(steps_s[0], ==, steps_s[1]);
    cli_scratch_free(folder);
}

static double step_s_of(const CliRun *run)
{
    const char *found = strstr(run->out, "\"step_s\": ");
    g_assert_nonnull(found);
    return g_ascii_strtod(found + strlen("\"step_s\": "), NULL);
}

/* Kinds of GPU of which some have user buffers and some do not: one flag says it for all, and each comes back as it was. */
static void test_mixed_comes_back(void)
{
    static const char *const formats[] = {"megatron", "megatron-bridge"};
    CliRun before = cli_run(NULL, CLI_WORDS("run", "mixed-llama3-8b", "--format", "json"));
    cli_assert_done(&before, "mixed-llama3-8b");
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        char *folder = cli_scratch_new();
        CliRun out = cli_run(folder, CLI_WORDS("export", "mixed-llama3-8b", "--to", formats[i], "--quiet",
                                               "--output", "m.sh"));
        cli_assert_done(&out, formats[i]);
        CliRun back = cli_run(
            folder, CLI_WORDS("import", "m.sh", "--from", formats[i], "--quiet", "--output", "m.json"));
        cli_assert_done(&back, formats[i]);
        CliRun after = cli_run(folder, CLI_WORDS("run", "m.json", "--format", "json"));
        cli_assert_done(&after, formats[i]);
        g_assert_cmpfloat(step_s_of(&after), ==, step_s_of(&before));
        cli_run_clear(&out);
        cli_run_clear(&back);
        cli_run_clear(&after);
        cli_scratch_free(folder);
    }
    cli_run_clear(&before);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/exports/all-refusals", test_all_refusals);
    g_test_add_func("/cli/exports/layout", test_layout_says_it);
    g_test_add_func("/cli/exports/orders-come-back", test_orders_come_back);
    g_test_add_func("/cli/exports/mixed-comes-back", test_mixed_comes_back);
    g_test_add_func("/cli/exports/memory-behind", test_memory_behind);
    g_test_add_func("/cli/exports/microbatch-group", test_microbatch_group);
    g_test_add_func("/cli/exports/trace_beside", test_trace_beside);
    g_test_add_func("/cli/exports/trace_page", test_trace_page);
    g_test_add_func("/cli/exports/trace_kernels", test_trace_kernels);
    g_test_add_func("/cli/exports/program", test_program);
    g_test_add_func("/cli/exports/files-beside", test_files_beside);
    return g_test_run();
}
