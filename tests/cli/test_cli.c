/* tests/cli/test_cli.c - the program as users and scripts meet it: exit status, messages, formats, files. */
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

/* --- help --- */

static void test_version(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("--version"));
    cli_assert_done(&run, "--version");
    g_assert_cmpstr(run.out, ==, "orrery " ORRERY_VERSION "\n");
    cli_run_clear(&run);
}

static void test_overview(void)
{
    CliRun bare = cli_run(NULL, (const char *const[]){NULL});
    CliRun help = cli_run(NULL, CLI_WORDS("help"));
    CliRun flag = cli_run(NULL, CLI_WORDS("--help"));
    cli_assert_done(&bare, "orrery");
    cli_assert_done(&help, "help");
    cli_assert_done(&flag, "--help");
    g_assert_cmpstr(bare.out, ==, help.out);
    g_assert_cmpstr(bare.out, ==, flag.out);
    static const char *const commands[] = {"run", "plot", "validate", "list", "help"};
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_assert_nonnull(strstr(bare.out, commands[i]));
        CliRun by_word = cli_run(NULL, CLI_WORDS("help", commands[i]));
        CliRun by_flag = cli_run(NULL, CLI_WORDS(commands[i], "--help"));
        cli_assert_done(&by_word, commands[i]);
        g_assert_cmpstr(by_word.out, ==, by_flag.out);
        g_assert_true(g_str_has_prefix(by_word.out, "usage: orrery "));
        cli_run_clear(&by_word);
        cli_run_clear(&by_flag);
    }
    cli_run_clear(&bare);
    cli_run_clear(&help);
    cli_run_clear(&flag);
}

static void check_narrow(const char *const *words)
{
    CliRun run = cli_run(NULL, words);
    cli_assert_done(&run, words[0]);
    g_auto(GStrv) lines = g_strsplit(run.out, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (g_utf8_strlen(*line, -1) > 80)
            g_error("%s %s: %ld columns: %s", words[0], words[1] != NULL ? words[1] : "",
                    g_utf8_strlen(*line, -1), *line);
    cli_run_clear(&run);
}

/* What every terminal shows without breaking it. */
static void test_help_is_narrow(void)
{
    static const char *const topics[] = {"scenario", "framework", "accelerator", "measurement", "cluster",
                                         "mfu",      "busbw",     "1F1B",        "all-to-all",  "--keys"};
    g_autofree char *names = cli_shell("$1 help | sed -n 's/^  \\([a-z][a-z]*\\)  .*/\\1/p'", NULL);
    g_auto(GStrv) commands = g_strsplit(g_strstrip(names), "\n", -1);
    g_assert_cmpuint(g_strv_length(commands), >, 15);
    for (char **name = commands; *name != NULL; name++)
        if (!g_str_equal(*name, "try") && !g_str_equal(*name, "more"))
            check_narrow(CLI_WORDS(*name, "--help"));
    for (gsize i = 0; i < G_N_ELEMENTS(topics); i++)
        check_narrow(CLI_WORDS("help", topics[i]));
    check_narrow(CLI_WORDS("--help"));
}

/* Whatever can be listed stands in the help of list, in its refusal and in the completions. */
static void test_kinds_of_list(void)
{
    g_autofree char *names = cli_shell("$1 list | sed -n '3,$s/ .*//p'", NULL);
    g_auto(GStrv) kinds = g_strsplit(g_strstrip(names), "\n", -1);
    const char *const *places[] = {CLI_WORDS("help", "--bash"), CLI_WORDS("help", "--zsh"),
                                   CLI_WORDS("help", "--fish"), CLI_WORDS("list", "--help"),
                                   CLI_WORDS("list", "xyz")};
    g_assert_cmpuint(g_strv_length(kinds), >, 9);
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        CliRun run = cli_run(NULL, places[i]);
        for (char **kind = kinds; *kind != NULL; kind++)
            if (strstr(run.out, *kind) == NULL && strstr(run.err, *kind) == NULL)
                g_error("%s %s: no %s", places[i][0], places[i][1], *kind);
        cli_run_clear(&run);
    }
}

static void test_help_of_fields(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("help", "parallel.zero"));
    cli_assert_done(&run, "parallel.zero");
    g_assert_nonnull(strstr(run.out, "ZeRO"));
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("help", "--keys"));
    cli_assert_done(&run, "--keys");
    g_assert_nonnull(strstr(run.out, "\nparallel.zero\n"));
    cli_run_clear(&run);
    static const char *const kinds[] = {"scenario", "model",     "accelerator",
                                        "cluster",  "framework", "measurement"};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        CliRun schema = cli_run(NULL, CLI_WORDS("help", "--schema", kinds[i]));
        cli_assert_done(&schema, kinds[i]);
        OrrJsonDoc *doc = cli_parse(schema.out, kinds[i]);
        g_assert_nonnull(orr_json_member(orr_json_root(doc), "$schema"));
        orr_json_free(doc);
        cli_run_clear(&schema);
    }
}

/* What is in the tree is what the table of commands says today. */
static void test_generated_files_are_fresh(void)
{
    static const char *const rows[][2] = {{"--man", "docs/orrery.1"},
                                          {"--bash", "completions/orrery.bash"},
                                          {"--zsh", "completions/_orrery"},
                                          {"--fish", "completions/orrery.fish"},
                                          {"--glossary", "docs/GLOSSARY.md"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("help", rows[i][0]));
        cli_assert_done(&run, rows[i][0]);
        g_autofree char *path = cli_source(rows[i][1]);
        g_autofree char *text = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        if (strcmp(text, run.out) != 0)
            g_error("%s is stale; write it anew with 'orrery help %s'", rows[i][1], rows[i][0]);
        cli_run_clear(&run);
    }
}

/* --- wrong use --- */

static void test_wrong_use(void)
{
    static const struct {
        const char *words[8];
        const char *expect;
    } cases[] = {
        {{"rnu"}, "did you mean run?"},
        {{"diff", "a.json", "b.json"}, "did you mean compare?"},
        {{"simulate", "a.json"}, "did you mean run?"},
        {{"frobnicate"}, "unknown command \"frobnicate\""},
        {{"--quiet", "run"}, "--quiet"},
        {{"run"}, "SCENARIO.json is missing"},
        {{"run", ""}, "empty"},
        {{"run", "a.json", "b.json"}, "b.json"},
        {{"run", "a.json", "--fromat", "json"}, "did you mean --format?"},
        {{"run", "a.json", "--fromat=json"}, "did you mean --format?"},
        {{"run", "a.json", "--wibble"}, "--wibble"},
        {{"run", "a.json", "-x"}, "-x"},
        {{"run", "a.json", "--format", "xml"}, "text, json, csv"},
        {{"run", "a.json", "--format", "jsn"}, "did you mean json?"},
        {{"run", "a.json", "--format"}, "--format"},
        {{"run", "a.json", "--output", ""}, "--output is empty"},
        {{"run", "a.json", "--trace", "-"}, "standard output"},
        {{"run", "a.json", "--trace", "x", "--memory", "./x"}, "--trace and --memory"},
        {{"run", "a.json", "--kernels", "x", "--output", "./x"}, "--kernels and"},
        {{"run", "a.json", "--by", "layer"}, "give --memory too"},
        {{"run", "a.json", "--memory", "m", "--by", "row"}, "neither \"layer\" nor \"tensor\""},
        {{"run", "a.json", "--memory", "m", "--steps", "0"}, "from 1 to"},
        {{"run", "a.json", "--memory", "m", "--steps", "0", "--by", "layer"}, "from 1 to"},
        {{"run", "a.json", "--output", "x", "--trace", "x"}, "x"},
        {{"run", "no-such-scenario.json"}, "no-such-scenario.json"},
        {{"run", "."}, "."},
        {{"run", "/dev/null"}, "/dev/null"},
        {{"list", "modls"}, "did you mean models?"},
        {{"validate", "x.json", "--reserve", "--few-shot"}, "--reserve and --few-shot are two views"},
        {{"validate", "x.json", "--leave-family-out", "--format", "csv"},
         "which --leave-family-out does not print"},
        {{"list", "--set", "a=b"}, "--set"},
        {{"help", "rn"}, "did you mean run?"},
        {{"help", "parallel.zreo"}, "parallel.zero"},
        {{"help", "no.such.field"}, "no.such.field"},
        {{"help", "--schema", "scenari"}, "scenario"},
        {{"plot"}, "SCENARIO.json is missing"},
        {{"plot", "--what", "topology"}, "--ranks is needed"},
        {{"plot", "--what", "topology", "--ranks", "8"}, "which machine?"},
        {{"plot", "--what", "topology", "--ranks", "512", "--cluster", "dgx-h100"}, "256 or fewer"},
        {{"plot", "--what", "busbw", "--ranks", "8"}, "--cluster NAME"},
        {{"plot", "a.json", "--what", "topology"}, "not from a scenario"},
        {{"plot", "a.json", "--vary", "parallel.tensor"}, "key=a,b,c"},
        {{"plot", "a.json", "--vary", "parallel.tensor=8..1"}, "--vary"},
        {{"plot", "a.json", "--vary", "parallel.tensor=0..8"}, "--vary"},
        {{"plot", "a.json", "--vary", "parallel.tensor=1,,2"}, "--vary"},
        {{"validate"}, "FILE... is missing"},
        {{"validate", "no-such-file.json"}, "no-such-file.json"},
    };
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        CliRun run = cli_run(folder, cases[i].words);
        g_autofree char *name = g_strjoinv(" ", (char **)cases[i].words);
        cli_assert_refused(&run, name, cases[i].expect);
        cli_run_clear(&run);
        g_assert_cmpint(cli_count_files(folder), ==, 0);
    }
    cli_scratch_free(folder);
}

/* Sets that the real example refuses; the table of bad scenarios is in test_cli_bad_scenarios.c. */
static void test_wrong_sets(void)
{
    static const char *const cases[][2] = {
        {"parallel.tensor=7", "tensor"},
        {"parallel.tensr=8", "tensor"},
        {"training.precision=bf61", "bf16"},
        {"parallel.tensor", "parallel.tensor"},
        {"=8", "=8"},
        {"training.global_batch=1.5", "global_batch"},
        {"parallel.schedule=1f1f", "1f1b"},
        {"execution.attention=flash9", "execution.attention"},
        {"cluster.preset=dgx-a100-80bg", "dgx-a100-80gb"},
        {"parallel.order=dp-tp-cp-ep", "parallel.order"},
        {"offload=optimiser", "offload"},
    };
    g_autofree char *example = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        CliRun run =
            cli_run(folder, CLI_WORDS("run", example, "--set", cases[i][0], "--output", "report.txt"));
        cli_assert_refused(&run, cases[i][0], cases[i][1]);
        cli_run_clear(&run);
        g_assert_cmpint(cli_count_files(folder), ==, 0);
    }
    cli_scratch_free(folder);
}

/* --- run --- */

/* Scenarios of whole searches are left out: bench_search runs those. */
static void test_every_example_runs(void)
{
    g_autofree char *folder = cli_source("scenarios/examples");
    GDir *dir = g_dir_open(folder, 0, NULL);
    g_assert_nonnull(dir);
    int count = 0;
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
        if (!g_str_has_suffix(name, ".json") || g_str_has_prefix(name, "search-"))
            continue;
        g_autofree char *path = g_build_filename(folder, name, NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--check", "--quiet", "--format", "json"));
        cli_assert_done(&run, name);
        OrrJsonDoc *doc = cli_parse(run.out, name);
        const OrrJson *root = orr_json_root(doc);
        if (orr_json_member(root, "phases") != NULL) { /* a loop has as many MFUs as models */
            g_assert_cmpfloat(orr_json_number(orr_json_member(root, "step_s")), >, 0.0);
        } else {
            const double mfu = orr_json_number(orr_json_member(root, "mfu"));
            g_assert_cmpfloat(mfu, >, 0.0);
            g_assert_cmpfloat(mfu, <, 1.0);
            g_assert_cmpfloat(orr_json_number(orr_json_member(root, "hfu")), >=, mfu);
        }
        g_assert_true(orr_json_bool(orr_json_member(root, "fits")));
        orr_json_free(doc);
        cli_run_clear(&run);
        count++;
    }
    g_dir_close(dir);
    g_assert_cmpint(count, >=, 2);
}

/* Bytes do not depend on the day, on where the report goes, or on how often it is asked for. */
static void test_same_bytes_every_time(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    static const char *const formats[] = {"text", "json", "csv"};
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        CliRun first = cli_run(folder, CLI_WORDS("run", example, "--format", formats[i]));
        cli_assert_done(&first, formats[i]);
        CliRun second =
            cli_run(folder, CLI_WORDS("run", example, "--format", formats[i], "--output", "report"));
        cli_assert_done(&second, formats[i]);
        g_assert_cmpstr(second.out, ==, "");
        g_autofree char *report = cli_contents(folder, "report");
        g_assert_cmpstr(first.out, ==, report);
        g_assert_cmpuint(first.out_length, >, 200);
        cli_run_clear(&first);
        cli_run_clear(&second);
    }
    CliRun one =
        cli_run(folder, CLI_WORDS("run", example, "--trace", "t1", "--memory", "m1", "--output", "r1"));
    CliRun two =
        cli_run(folder, CLI_WORDS("run", example, "--trace", "t2", "--memory", "m2", "--output", "r2"));
    cli_assert_done(&one, "trace");
    cli_assert_done(&two, "trace");
    static const char *const pairs[][2] = {{"t1", "t2"}, {"m1", "m2"}, {"r1", "r2"}};
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *a = cli_contents(folder, pairs[i][0]);
        g_autofree char *b = cli_contents(folder, pairs[i][1]);
        g_assert_true(strcmp(a, b) == 0);
    }
    cli_run_clear(&one);
    cli_run_clear(&two);
    g_assert_cmpint(cli_count_files(folder), ==, 7);
    cli_scratch_free(folder);
}

static double span_end_us(const OrrJson *event)
{
    return orr_json_number(orr_json_member(event, "ts")) + orr_json_number(orr_json_member(event, "dur"));
}

/* The trace is one JSON document whose slices end with the step, and every arrow has two ends. */
static void test_trace_is_whole(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("run", example, "--trace", "trace.json", "--format", "json"));
    cli_assert_done(&run, "trace");
    g_autofree char *text = cli_contents(folder, "trace.json");
    OrrJsonDoc *trace = cli_parse(text, "trace.json"), *report = cli_parse(run.out, "report");
    double last_us = 0.0;
    int starts = 0, ends = 0, counters = 0;
    const OrrJson *events = orr_json_member(orr_json_root(trace), "traceEvents");
    for (const OrrJson *event = orr_json_first(events); event != NULL; event = orr_json_next(event)) {
        const char *kind = orr_json_text(orr_json_member(event, "ph"));
        starts += strcmp(kind, "s") == 0;
        ends += strcmp(kind, "f") == 0;
        counters += strcmp(kind, "C") == 0;
        if (strcmp(kind, "X") == 0)
            last_us = MAX(last_us, span_end_us(event));
    }
    /* 8 pipeline ranks, 96 micro-batches: each sends to its neighbour, forward and back. */
    g_assert_cmpint(starts, ==, 2 * 7 * 96);
    g_assert_cmpint(ends, ==, starts);
    g_assert_cmpint(counters, >, 0);
    const double step_s = orr_json_number(orr_json_member(orr_json_root(report), "step_s"));
    g_assert_cmpfloat(ABS(last_us - step_s * 1e6), <, 0.01);
    orr_json_free(trace);
    orr_json_free(report);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* What does not fit is a result. */
static void test_not_fitting_is_done(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    CliRun run =
        cli_run(NULL, CLI_WORDS("run", example, "--set", "training.micro_batch=16", "--format", "json"));
    cli_assert_done(&run, "does not fit");
    OrrJsonDoc *doc = cli_parse(run.out, "report");
    const OrrJson *root = orr_json_root(doc);
    g_assert_false(orr_json_bool(orr_json_member(root, "fits")));
    g_assert_cmpfloat(orr_json_number(orr_json_member(orr_json_member(root, "memory"), "short_bytes")), >,
                      0.0);
    orr_json_free(doc);
    cli_run_clear(&run);
    CliRun text = cli_run(NULL, CLI_WORDS("run", example, "--set", "training.micro_batch=16"));
    cli_assert_done(&text, "does not fit");
    g_assert_nonnull(strstr(text.out, "DOES NOT FIT"));
    cli_run_clear(&text);
}

static void test_auto_is_told(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    CliRun run =
        cli_run(NULL, CLI_WORDS("run", example, "--set", "training.micro_batch=auto", "--format", "json"));
    cli_assert_done(&run, "auto");
    OrrJsonDoc *doc = cli_parse(run.out, "report");
    const OrrJson *chosen = orr_json_member(orr_json_root(doc), "chosen");
    g_assert_cmpint(orr_json_count(chosen), ==, 1);
    const OrrJson *size = orr_json_member(chosen, "training.micro_batch");
    g_assert_nonnull(size);
    g_assert_cmpfloat(orr_json_number(size), >=, 1.0);
    orr_json_free(doc);
    cli_run_clear(&run);
}

/* --- outputs that fail --- */

static void test_failed_outputs(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("run", example, "--output", "no/such/folder/report"));
    cli_assert_refused(&run, "not a folder", "no/such/folder/report");
    cli_run_clear(&run);
    g_assert_cmpint(cli_count_files(folder), ==, 0);
    run = cli_run(folder, CLI_WORDS("run", example, "--trace", "no/such/trace", "--output", "report"));
    cli_assert_refused(&run, "trace fails", "--trace");
    cli_run_clear(&run);
    g_assert_cmpint(cli_count_files(folder), ==, 0);
    run = cli_run(folder, CLI_WORDS("run", example, "--trace", "trace", "--output", "no/such/report"));
    cli_assert_refused(&run, "report fails", "the report (already written: --trace)");
    cli_run_clear(&run);
    g_assert_cmpint(cli_count_files(folder), ==, 1); /* the whole trace, no left-overs */
    run = cli_run(folder, CLI_WORDS("run", example, "--output", "."));
    cli_assert_refused(&run, "a folder", ".");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

static void test_closed_pipe(void)
{
    g_autofree char *said = cli_shell(
        "{ { sleep 0.3; \"$1\" run \"$2\" 2>&1 >&4; echo status $? ; } 4>&1 >&3 | true; } 3>&1", NULL);
    g_assert_cmpstr(said, ==, "status 0\n");
}

static void test_full_disk(void)
{
    if (!g_file_test("/dev/full", G_FILE_TEST_EXISTS)) {
        g_test_skip("no /dev/full here");
        return;
    }
    g_autofree char *said = cli_shell("\"$1\" run \"$2\" 2>&1 >/dev/full; echo status $?", NULL);
    g_assert_nonnull(strstr(said, "standard output: cannot write"));
    g_assert_true(g_str_has_suffix(said, "status 2\n"));
}

/* --- list --- */

static void test_list(void)
{
    static const char *const kinds[] = {"models",      "accelerators", "clusters",  "frameworks", "schedules",
                                        "collectives", "peaks",        "libraries", NULL};
    for (gsize i = 0; kinds[i] != NULL; i++) {
        CliRun json = cli_run(NULL, CLI_WORDS("list", kinds[i], "--format", "json"));
        CliRun csv = cli_run(NULL, CLI_WORDS("list", kinds[i], "--format", "csv"));
        CliRun text = cli_run(NULL, CLI_WORDS("list", kinds[i]));
        cli_assert_done(&json, kinds[i]);
        cli_assert_done(&csv, kinds[i]);
        cli_assert_done(&text, kinds[i]);
        OrrJsonDoc *doc = cli_parse(json.out, kinds[i]);
        const int rows = orr_json_count(orr_json_root(doc));
        g_assert_cmpint(rows, >=, 5);
        int lines = 0;
        for (const char *c = text.out; *c != '\0'; c++)
            lines += *c == '\n';
        g_assert_cmpint(lines, ==, rows + 2);
        for (const OrrJson *row = orr_json_first(orr_json_root(doc)); row != NULL; row = orr_json_next(row)) {
            const char *name = orr_json_text(orr_json_member(row, "name"));
            g_assert_nonnull(strstr(text.out, name));
            g_assert_nonnull(strstr(csv.out, name));
            g_assert_true(i >= 4 || orr_json_member(row, "source") != NULL);
            if (strcmp(kinds[i], "frameworks") == 0) /* a generation too, which takes it over */
                g_assert_cmpint(orr_json_type(orr_json_member(row, "kernel_host_s")), ==, ORR_JSON_NUMBER);
        }
        orr_json_free(doc);
        cli_run_clear(&json);
        cli_run_clear(&csv);
        cli_run_clear(&text);
    }
}

/* H100's sheet: 34, 67, and products that are twice as fast when half of the weights are zero. */
static void test_list_peaks(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("list", "peaks", "--format", "csv"));
    cli_assert_done(&run, "list peaks");
    g_assert_nonnull(strstr(run.out, "\nh100-sxm5-80gb,34000000000000,67000000000000,67000000000000,"
                                     "494500000000000,989000000000000,989400000000000,"));
    g_assert_nonnull(strstr(run.out, ",989400000000000,1.9788e+15,1.979e+15,3.958e+15,"));
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/version", test_version);
    g_test_add_func("/cli/overview", test_overview);
    g_test_add_func("/cli/help/narrow", test_help_is_narrow);
    g_test_add_func("/cli/list/kinds", test_kinds_of_list);
    g_test_add_func("/cli/help-of-fields", test_help_of_fields);
    g_test_add_func("/cli/generated-files-are-fresh", test_generated_files_are_fresh);
    g_test_add_func("/cli/wrong-use", test_wrong_use);
    g_test_add_func("/cli/wrong-sets", test_wrong_sets);
    g_test_add_func("/cli/every-example-runs", test_every_example_runs);
    g_test_add_func("/cli/same-bytes-every-time", test_same_bytes_every_time);
    g_test_add_func("/cli/trace-is-whole", test_trace_is_whole);
    g_test_add_func("/cli/not-fitting-is-done", test_not_fitting_is_done);
    g_test_add_func("/cli/auto-is-told", test_auto_is_told);
    g_test_add_func("/cli/failed-outputs", test_failed_outputs);
    g_test_add_func("/cli/closed-pipe", test_closed_pipe);
    g_test_add_func("/cli/full-disk", test_full_disk);
    g_test_add_func("/cli/list", test_list);
    g_test_add_func("/cli/list-peaks", test_list_peaks);
    return g_test_run();
}
