/* tests/cli/test_cli_calibrate.c - orrery calibrate fit as users meet it: measured steps to a profile that a run uses. */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/cli/runner.h"
#include "tests/unit/draws.h"

static void test_steps(void)
{
    g_autofree char *folder = cli_scratch_new(),
                    *rows = cli_source("scenarios/measurements/zero_bubble.json");
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(folder, CLI_WORDS("calibrate", "fit", rows, "--output", "profile.json"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_cmpstr(run.out, ==, "");
    g_assert_nonnull(strstr(run.err, "compute"));
    g_assert_nonnull(strstr(run.err, "rows that a fit has not seen:"));
    g_assert_nonnull(strstr(run.err, "as it is: "));
    cli_run_clear(&run);
    CliRun plain = cli_run(
        folder, CLI_WORDS("run", scenario, "--set", "cluster.preset=dgx-a100-80gb", "--format", "csv"));
    run = cli_run(folder, CLI_WORDS("run", scenario, "--set", "cluster.preset=dgx-a100-80gb", "--set",
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
    g_assert_nonnull(strstr(run.err, "--own-runs FILE"));
    cli_run_clear(&run);
    g_autofree char *scratch = cli_scratch_new(), *bare = g_build_filename(scratch, "bare.json", NULL);
    g_assert_true(
        g_file_set_contents(bare, "[{\"id\": \"r1\", \"scenario\": {}, \"step_s\": 17.5}]", -1, NULL));
    run = cli_run(NULL, CLI_WORDS("calibrate", "fit", bare));
    cli_assert_refused(&run, "a row without what was measured", "left out: ");
    g_assert_null(strstr(run.err, "--accelerator"));
    cli_run_clear(&run);
    g_assert_true(g_file_set_contents(
        bare, "{\"memory_bound_measurements\": [{\"gpu\": \"h200-sxm5-141gb\"}]}", -1, NULL));
    run = cli_run(NULL, CLI_WORDS("calibrate", "check", bare, "--rows"));
    cli_assert_refused(&run, "a row without its time", "no row to use");
    cli_run_clear(&run);
    g_unlink(bare);
    cli_scratch_free(g_steal_pointer(&scratch));
    run = cli_run(NULL, CLI_WORDS("calibrate", "check", few));
    cli_assert_refused(&run, "steps are not a table", "orrery validate");
    cli_run_clear(&run);
}

static void put(GString *text, const char *section, const char *row)
{
    g_string_append_printf(
        text, "%s\"%s\": [{\"gpu\": \"h200-sxm5-141gb\", \"source\": \"mine\", %s, \"time_us\": 500}]",
        text->len > 1 ? ", " : "", section, row);
}

/* Every figure whose rows the table has, the stamp and the fit's own words; nothing of the table is taken for markup. */
static void test_page(void)
{
    static const char *const ids[] = {"id=\"roofline\"", "id=\"products\"", "id=\"memory\"", "id=\"buses\""};
    g_autofree char *folder = cli_scratch_new(), *table = g_build_filename(folder, "table.json", NULL);
    g_autoptr(GString) text = g_string_new("{");
    put(text, "gemm_measurements", "\"m\": 4096, \"n\": 4096, \"k\": 4096, \"dtype\": \"bf16\"");
    put(text, "memory_bound_measurements", "\"kernel\": \"copy<b>\", \"bytes\": 1e9");
    put(text, "collective_measurements",
        "\"op\": \"all_reduce\", \"nodes\": 1, \"gpus\": 8, \"bytes\": 1e8, \"busbw_gbps\": 300");
    g_string_append(text,
                    ", \"stamp\": {\"device\": \"NVIDIA H200\", \"driver\": \"<script>alert(1)</script>\"}}");
    g_assert_true(g_file_set_contents(table, text->str, -1, NULL));
    CliRun run = cli_run(
        folder, CLI_WORDS("calibrate", "fit", "table.json", "--page", "got.html", "--output", "p.json"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_nonnull(strstr(run.err, "wrote got.html"));
    cli_run_clear(&run);
    g_autofree char *page = cli_contents(folder, "got.html");
    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
        g_assert_nonnull(strstr(page, ids[i]));
    g_assert_nonnull(strstr(page, "4096 x 4096 x 4096"));
    g_assert_nonnull(strstr(page, "copy&lt;b&gt;"));
    g_assert_nonnull(strstr(page, "&lt;script&gt;alert"));
    g_assert_null(strstr(page, "<script>"));
    g_assert_nonnull(strstr(page, "best measured, of the data sheet"));
    g_assert_null(strstr(page, "nan\""));
    g_assert_null(strstr(page, "inf\""));
    run = cli_run(folder, CLI_WORDS("calibrate", "fit", "table.json", "--page", "got.html", "--folds", "3"));
    cli_assert_refused(&run, "folds have no page", "--page shows the kernels of one fit");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("calibrate", "fit", "table.json", "--page", "no/such/got.html"));
    g_assert_cmpint(run.status, !=, 0);
    cli_run_clear(&run);
    /* A table that may be sent in, and one that may not. */
    run = cli_run(folder, CLI_WORDS("calibrate", "check", "table.json", "--strict"));
    g_assert_cmpint(run.status, ==, 0);
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("calibrate", "check", "table.json", "--rows", "--format", "json"));
    g_assert_cmpint(run.status, ==, 0);
    OrrJsonDoc *rows = orr_json_parse(run.out, strlen(run.out), "rows", NULL);
    g_assert_nonnull(rows);
    g_assert_cmpint(orr_json_count(orr_json_root(rows)), ==, 2);
    g_assert_cmpfloat(orr_json_number(orr_json_member(orr_json_first(orr_json_root(rows)), "measured_s")), ==,
                      500e-6);
    orr_json_free(rows);
    cli_run_clear(&run);
    g_string_truncate(text, text->len - 1);
    g_string_append(text, ", \"gems\": []}");
    g_assert_true(g_file_set_contents(table, text->str, -1, NULL));
    run = cli_run(folder, CLI_WORDS("calibrate", "check", "table.json", "--strict"));
    cli_assert_refused(&run, "a section that is not known", "\"gems\" is not a section of a table");
    cli_run_clear(&run);
    cli_scratch_free(g_steal_pointer(&folder));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!SANITIZED) /* unit/test_calibrate_steps fits as well */
        g_test_add_func("/cli/calibrate/steps", test_steps);
    g_test_add_func("/cli/calibrate/refused", test_refused);
    g_test_add_func("/cli/calibrate/page", test_page);
    return g_test_run();
}
