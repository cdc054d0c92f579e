/* tests/cli/test_cli_calibrate.c - orrery calibrate fit as users meet it: measured steps to a profile that a run uses. */
#include <string.h>

#include "tests/cli/runner.h"

static void test_steps(void)
{
    g_autofree char *folder = cli_scratch_new(),
                    *rows = cli_source("scenarios/measurements/simumax_b200.json");
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(folder, CLI_WORDS("calibrate", "fit", rows, "--output", "profile.json"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_cmpstr(run.out, ==, "");
    g_assert_nonnull(strstr(run.err, "compute"));
    g_assert_nonnull(strstr(run.err, "rows that a fit has not seen:"));
    g_assert_nonnull(strstr(run.err, "as it is: "));
    cli_run_clear(&run);
    CliRun plain =
        cli_run(folder, CLI_WORDS("run", scenario, "--set", "cluster.preset=dgx-b200", "--format", "csv"));
    run = cli_run(folder, CLI_WORDS("run", scenario, "--set", "cluster.preset=dgx-b200", "--set",
                                    "cluster.calibration=profile.json", "--format", "csv"));
    cli_assert_done(&plain, "plain");
    cli_assert_done(&run, "calibrated");
    g_assert_cmpstr(run.out, !=, plain.out);
    cli_run_clear(&plain);
    cli_run_clear(&run);
    cli_scratch_free(folder);
    folder = NULL;
}

static void test_refused(void)
{
    g_autofree char *mixed = cli_source("scenarios/measurements/mosaic_mpt.json"),
                    *few = cli_source("scenarios/measurements/llama3_table4.json");
    CliRun run = cli_run(NULL, CLI_WORDS("calibrate", "fit", mixed));
    cli_assert_refused(&run, "two accelerators", "choose one with --accelerator NAME");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("calibrate", "fit", few, "--accelerator", "b200-sxm-180gb"));
    cli_assert_refused(&run, "none of that accelerator", "0 measured steps are too few");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("calibrate", "check", few));
    cli_assert_refused(&run, "steps are no table", "orrery validate");
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/calibrate/steps", test_steps);
    g_test_add_func("/cli/calibrate/refused", test_refused);
    return g_test_run();
}
