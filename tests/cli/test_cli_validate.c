/* tests/cli/test_cli_validate.c - orrery validate as users meet it: residuals, the picture, sources left out. */
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

/* Small measurement files of four sources. */
static char **files(void)
{
    static const char *const names[] = {"korthikanti_table5", "llama3_table4", "mt_nlg", "zero_bubble"};
    char **paths = g_new0(char *, G_N_ELEMENTS(names) + 1);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("scenarios/measurements/%s.json", names[i]);
        paths[i] = cli_source(path);
    }
    return paths;
}

static OrrJsonDoc *parse(const char *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "output", &error);
    g_assert_no_error(error);
    return doc;
}

static double number(const OrrJson *object, const char *key)
{
    return orr_json_number(orr_json_member(object, key));
}

/* The counts that validate prints are those of the rows that it lists. */
static void test_left_out(void)
{
    g_auto(GStrv) paths = files();
    CliRun run = cli_run(NULL, CLI_WORDS("validate", paths[0], paths[1], paths[2], paths[3],
                                         "--leave-one-out", "--format", "json"));
    cli_assert_done(&run, "left out");
    OrrJsonDoc *doc = parse(run.out);
    const OrrJson *root = orr_json_root(doc);
    int runs = 0, inside = 0;
    for (const OrrJson *row = orr_json_first(orr_json_member(root, "rows")); row != NULL;
         row = orr_json_next(row)) {
        if (orr_json_type(orr_json_member(row, "error_frac")) != ORR_JSON_NUMBER)
            continue;
        const double measured = number(row, "measured_step_s"), predicted = number(row, "predicted_step_s"),
                     low = number(row, "interval_low_s"), high = number(row, "interval_high_s");
        const bool holds = measured >= low && measured <= high;
        g_assert_true(orr_json_bool(orr_json_member(row, "inside_interval")) == holds);
        g_assert_cmpfloat(ABS(low * high / predicted / predicted - 1), <, 1e-9);
        inside += holds;
        runs += 1;
    }
    g_assert_cmpint(runs, >, 30);
    const OrrJson *left_out = orr_json_member(root, "leave_one_out");
    g_assert_cmpfloat(ABS(number(left_out, "interval_coverage") - (double)inside / runs), <, 1e-9);
    g_assert_cmpfloat(number(left_out, "corrected_macro_mape"), >, 0);
    orr_json_free(doc);
    cli_run_clear(&run);

    run = cli_run(NULL, CLI_WORDS("validate", paths[0], "--leave-one-out"));
    cli_assert_refused(&run, "one source", "--leave-one-out needs measured step times from at least 4 files");
    cli_run_clear(&run);
}

/* What --residuals writes is what run makes its interval from. */
static void test_residuals_feed_run(void)
{
    g_auto(GStrv) paths = files();
    char *folder = cli_scratch_new();
    g_autofree char *written = g_build_filename(folder, "residuals.json", NULL);
    CliRun run = cli_run(folder, CLI_WORDS("validate", paths[0], paths[1], paths[2], paths[3], "--residuals",
                                           "residuals.json", "--output", "table"));
    cli_assert_done(&run, "residuals");
    cli_run_clear(&run);
    OrrJsonDoc *doc = orr_json_read_file(written, NULL);
    g_assert_nonnull(doc);
    g_assert_cmpint(orr_json_count(orr_json_member(orr_json_root(doc), "rows")), >, 30);
    orr_json_free(doc);
    cli_scratch_free(folder);

    g_autofree char *example = cli_source("scenarios/examples/gpt3-175b.json");
    run = cli_run(NULL, CLI_WORDS("run", example, "--format", "json"));
    cli_assert_done(&run, "run");
    doc = parse(run.out);
    const OrrJson *root = orr_json_root(doc), *interval = orr_json_member(root, "interval");
    g_assert_cmpfloat(number(interval, "low_s"), <, number(root, "step_s"));
    g_assert_cmpfloat(number(interval, "high_s"), >, number(root, "step_s"));
    g_assert_cmpint(orr_json_count(orr_json_member(interval, "outside")), ==, 0);
    orr_json_free(doc);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("run", example, "--set", "parallel.schedule=gpipe"));
    cli_assert_done(&run, "outside");
    g_assert_nonnull(strstr(run.out, "comparable published runs)"));
    g_assert_nonnull(strstr(run.out, "schedule gpipe"));
    cli_run_clear(&run);
}

static void test_picture(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_auto(GStrv) paths = files();
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("validate", paths[0], paths[3], "--plot", ".", "--quiet"));
    cli_assert_done(&run, "picture");
    cli_run_clear(&run);
    g_autofree char *picture = g_build_filename(folder, "ledger.png", NULL);
    g_autofree char *table = g_build_filename(folder, "ledger.csv", NULL);
    g_autofree char *bytes = NULL, *text = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(picture, &bytes, &length, NULL));
    g_assert_cmpint((int)length, >, 10000);
    g_assert_true(memcmp(bytes, "\x89PNG", 4) == 0);
    g_assert_true(g_file_get_contents(table, &text, NULL, NULL));
    g_assert_true(g_str_has_prefix(text, "source,file,run,measured_s,predicted_s\n"));
    g_assert_cmpint(cli_count_files(folder), ==, 2);
    cli_scratch_free(folder);
}

/* A run corrected by its own measurement moves towards it; a table of steps of one change; a file without times. */
static void test_own_runs(void)
{
    g_auto(GStrv) paths = files();
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("run", scenario, "--own-runs", paths[0], "--format", "json"));
    cli_assert_done(&run, "own runs");
    OrrJsonDoc *doc = parse(run.out);
    const OrrJson *own = orr_json_member(orr_json_root(doc), "own_runs");
    g_assert_cmpfloat(number(own, "runs"), ==, 9);
    g_assert_cmpfloat(
        ABS(number(own, "step_s") / number(own, "factor") / number(orr_json_root(doc), "step_s") - 1), <,
        1e-9);
    g_assert_cmpfloat(number(own, "low_s"), <, number(own, "step_s"));
    g_assert_cmpfloat(number(own, "high_s"), >, number(own, "step_s"));
    orr_json_free(doc);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("run", scenario, "--own-runs", "/nonexistent.json"));
    g_assert_cmpint(run.status, !=, 0);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("validate", paths[0], paths[3], "--ablations", "--format", "json"));
    cli_assert_done(&run, "ablations");
    doc = parse(run.out);
    g_assert_cmpint(orr_json_count(orr_json_member(orr_json_root(doc), "steps")), >=, 3);
    g_assert_cmpfloat(number(orr_json_root(doc), "right"), ==, number(orr_json_root(doc), "directed"));
    orr_json_free(doc);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("validate", paths[0], paths[3], "--few-shot", "--format", "json"));
    cli_assert_done(&run, "few shot");
    doc = parse(run.out);
    g_assert_cmpint(orr_json_count(orr_json_member(orr_json_root(doc), "few_shot")), ==, 6);
    orr_json_free(doc);
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/validate/left-out", test_left_out);
    g_test_add_func("/validate/residuals-feed-run", test_residuals_feed_run);
    g_test_add_func("/validate/picture", test_picture);
    g_test_add_func("/validate/own-runs", test_own_runs);
    return g_test_run();
}
