/* tests/cli/test_cli_bad_scenarios.c - every bad scenario of bad_scenarios.json through the real program: exit 2, one
 * line that says what is wrong and what would work, nothing written. */
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

/* What `run` has to say beyond refusing: one text or a list of them. */
static void assert_says(const CliRun *run, const char *name, const OrrJson *expect)
{
    if (orr_json_type(expect) == ORR_JSON_TEXT) {
        cli_assert_refused(run, name, orr_json_text(expect));
        return;
    }
    g_assert_cmpint(orr_json_count(expect), >, 0);
    for (const OrrJson *text = orr_json_first(expect); text != NULL; text = orr_json_next(text))
        cli_assert_refused(run, name, orr_json_text(text));
}

static void put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static CliRun run_case(const char *folder, const OrrJson *bad)
{
    const OrrJson *sets = orr_json_member(bad, "sets"), *text = orr_json_member(bad, "text");
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, (char *)"run");
    g_ptr_array_add(words, (char *)(text != NULL ? "bad.json" : "base.json"));
    g_ptr_array_add(words, (char *)"--output");
    g_ptr_array_add(words, (char *)"report");
    if (text != NULL)
        put(folder, "bad.json", orr_json_text(text));
    for (const OrrJson *set = sets != NULL ? orr_json_first(sets) : NULL; set != NULL;
         set = orr_json_next(set)) {
        g_ptr_array_add(words, (char *)"--set");
        g_ptr_array_add(words, (char *)orr_json_text(set));
    }
    g_ptr_array_add(words, NULL);
    return cli_run(folder, (const char *const *)words->pdata);
}

static void test_bad_scenarios(void)
{
    GError *error = NULL;
    g_autofree char *path = cli_source("tests/cli/bad_scenarios.json");
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    const OrrJson *root = orr_json_root(doc), *cases = orr_json_member(root, "cases");
    char *folder = cli_scratch_new();
    g_autofree char *base = orr_json_dump(orr_json_member(root, "base"));
    put(folder, "base.json", base);
    put(folder, "bad.json", "");

    /* The scenario that the sets spoil is a good one. */
    CliRun good = cli_run(folder, CLI_WORDS("run", "base.json"));
    cli_assert_done(&good, "base");
    cli_run_clear(&good);

    for (const OrrJson *bad = orr_json_first(cases); bad != NULL; bad = orr_json_next(bad)) {
        CliRun run = run_case(folder, bad);
        assert_says(&run, orr_json_text(orr_json_member(bad, "name")), orr_json_member(bad, "expect"));
        cli_run_clear(&run);
        g_assert_cmpint(cli_count_files(folder), ==, 2); /* no report, no left-overs */
    }
    g_assert_cmpint(orr_json_count(cases), >=, 150);
    cli_scratch_free(folder);
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/bad-scenarios", test_bad_scenarios);
    return g_test_run();
}
