/* tests/cli/test_cli_figures.c - figures and files for other viewers: a gnuplot that fails, workers of parameter servers, memory
 * snapshots.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

static char *contents(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    GError *error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

/* What gnuplot says against us is one sentence of ours. */
static void test_failing_gnuplot(void)
{
    static const char script[] = "#!/bin/sh\necho 'line 3: undefined variable: oops' >&2\nexit 1\n";
    g_autofree char *example = cli_source(EXAMPLE), *path = g_strdup(g_getenv("PATH"));
    char *folder = cli_scratch_new();
    g_autofree char *fake = g_build_filename(folder, "gnuplot", NULL),
                    *first = g_strconcat(folder, ":", path, NULL);
    g_assert_true(g_file_set_contents(fake, script, -1, NULL));
    g_assert_cmpint(g_chmod(fake, 0700), ==, 0);
    g_setenv("PATH", first, TRUE);
    CliRun run = cli_run(folder, CLI_WORDS("plot", example, "--output", "p"));
    cli_assert_refused(&run, "gnuplot fails",
                       "gnuplot could not draw the pipeline plot: line 3: undefined variable: oops");
    cli_run_clear(&run);
    g_setenv("PATH", path, TRUE);
    cli_scratch_free(folder);
}

static void test_workers(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot"), *example = cli_source(EXAMPLE),
                    *servers = cli_source("scenarios/examples/ps_wfbp_3layer.json");
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plot", example, "--output", "p", "--what", "workers"));
    cli_assert_refused(&run, "no servers", "has no parameter servers");
    cli_run_clear(&run);
    if (gnuplot != NULL) {
        run = cli_run(folder, CLI_WORDS("plot", servers, "--output", "p", "--what", "workers"));
        cli_assert_done(&run, "workers");
        g_autofree char *csv = contents(folder, "p/workers.csv");
        g_assert_true(g_str_has_prefix(csv, "worker,band,start,end,kind\n0,0,0,"));
        g_assert_nonnull(strstr(csv, ",push\n"));
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

/* Of all ranks or some; the schema is held by unit/report/test_snapshot.c. */
static void test_memory_snapshot(void)
{
    g_autofree char *example = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("run", example, "--memory-snapshot", "s.json", "--ranks", "0,7",
                                           "--output", "report.txt"));
    cli_assert_done(&run, "snapshot");
    cli_run_clear(&run);
    g_autofree char *text = contents(folder, "s.json");
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "snapshot", &error);
    g_assert_no_error(error);
    g_assert_cmpint(orr_json_count(orr_json_member(orr_json_root(doc), "device_traces")), ==, 2);
    orr_json_free(doc);
    run = cli_run(folder, CLI_WORDS("run", example, "--ranks", "0"));
    cli_assert_refused(&run, "ranks of nothing", "--memory-snapshot");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("run", example, "--memory-snapshot", "t.json", "--ranks", "99"));
    cli_assert_refused(&run, "no such rank", "--ranks");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("run", example, "--memory-snapshot", "t.json", "--trace", "t.json"));
    cli_assert_refused(&run, "two into one", "t.json");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* A table is the same on any number of threads. */
static void test_sweep_jobs(void)
{
    g_autofree char *example = cli_source(EXAMPLE), *alone = NULL;
    for (int jobs = 1; jobs <= 8; jobs += 7) {
        g_autofree char *count = g_strdup_printf("%d", jobs);
        CliRun run = cli_run(NULL, CLI_WORDS("sweep", example, "--vary", "training.micro_batch=1,2,3,4",
                                             "--jobs", count, "--format", "csv"));
        cli_assert_done(&run, "sweep");
        if (alone == NULL)
            alone = g_strdup(run.out);
        g_assert_cmpstr(run.out, ==, alone);
        cli_run_clear(&run);
    }
    CliRun run =
        cli_run(NULL, CLI_WORDS("sweep", example, "--vary", "training.micro_batch=1,2", "--jobs", "no"));
    cli_assert_refused(&run, "jobs", "--jobs");
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/figures/failing-gnuplot", test_failing_gnuplot);
    g_test_add_func("/figures/workers", test_workers);
    g_test_add_func("/figures/memory-snapshot", test_memory_snapshot);
    g_test_add_func("/sweep/jobs", test_sweep_jobs);
    return g_test_run();
}
