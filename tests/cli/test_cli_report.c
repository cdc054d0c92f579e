/* tests/cli/test_cli_report.c - `orrery report`: the page needs nothing beside it, holds every figure, says what `run` says, and
 * shows no text of the user's as markup. Where there is a Chromium, that loads it at two widths. Also `run --timeline`.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

static char *page(const char *const *more)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, (void *)(gsize) "report");
    for (; *more != NULL; more++)
        g_ptr_array_add(words, (void *)(gsize)*more);
    g_ptr_array_add(words, (void *)(gsize) "--output");
    g_ptr_array_add(words, (void *)(gsize) "-");
    g_ptr_array_add(words, NULL);
    CliRun run = cli_run(NULL, (const char *const *)words->pdata);
    cli_assert_done(&run, "report");
    char *text = g_strdup(run.out);
    cli_run_clear(&run);
    return text;
}

static int count(const char *text, const char *what)
{
    int found = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        found++;
    return found;
}

static void assert_whole(const char *html)
{
    static const char *const tags[] = {"figure",  "svg", "table",  "div",  "ul",
                                       "details", "p",   "script", "style"};
    static const char *const outside[] = {"src=",    "href=\"http", "url(",
                                          "@import", "fetch(",      "XMLHttpRequest"};
    for (gsize i = 0; i < G_N_ELEMENTS(tags); i++) {
        g_autofree char *open = g_strdup_printf("<%s>", tags[i]), *with = g_strdup_printf("<%s ", tags[i]);
        g_autofree char *close = g_strdup_printf("</%s>", tags[i]);
        g_assert_cmpint(count(html, open) + count(html, with), ==, count(html, close));
    }
    for (gsize i = 0; i < G_N_ELEMENTS(outside); i++)
        g_assert_null(strstr(html, outside[i]));
    g_assert_false(g_regex_match_simple("[^a-z](nan|inf)[^a-z]", html, 0, 0));
    g_assert_true(g_utf8_validate(html, -1, NULL));
}

/* A loop of reinforcement learning: who works when, its phases, and how else its GPUs could be dealt. */
static void test_loop(void)
{
    static const char *const parts[] = {"id=\"loop\"",          "old log-probs",       "Memory of a GPU",
                                        "ways to deal 32 GPUs", "&lt;b&gt; of a name", "the scenario"};
    g_autofree char *path = cli_source("scenarios/examples/rl-grpo-qwen3-30b-a3b-h100.json");
    g_autofree char *html = page(CLI_WORDS(path, "--set", "name=<b> of a name"));
    g_autofree char *bare = page(CLI_WORDS(path, "--no-search"));
    CliRun run = cli_run(NULL, CLI_WORDS("run", path));
    g_auto(GStrv) line = g_strsplit(strstr(run.out, "\nstep "), "\n", 3);
    g_autofree char *step = g_strdup_printf("takes %s:", g_strstrip(line[1] + strlen("step")));
    assert_whole(html);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        g_assert_nonnull(strstr(html, parts[i]));
    g_assert_nonnull(strstr(html, step));
    g_assert_null(strstr(bare, "ways to deal"));
    cli_run_clear(&run);
    g_autofree char *other = cli_source("scenarios/examples/gpt3-175b.json");
    run = cli_run(NULL, CLI_WORDS("report", path, "--compare", other, "--output", "-"));
    cli_assert_refused(&run, "report of a loop beside another", "loop over several models");
    cli_run_clear(&run);
}

static void test_figures(void)
{
    static const char *const names[] = {"gpt3-175b", "deepseek-v3-pair", "llama3-405b-16k"};
    static const char *const figures[] = {"split",  "waterfall", "pipeline", "memory",
                                          "stages", "heatmap",   "front"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strdup_printf("scenarios/examples/%s.json", names[i]),
                        *path = cli_source(file);
        g_autofree char *html = page(CLI_WORDS(path, "--max-seconds", "2"));
        assert_whole(html);
        for (gsize figure = 0; figure < G_N_ELEMENTS(figures); figure++) {
            g_autofree char *id = g_strdup_printf("<figure id=\"%s\">", figures[figure]);
            g_assert_cmpint(count(html, id), ==, 1);
        }
        g_assert_cmpint(count(html, "class=\"wide phones\""), ==,
                        4); /* drawn twice, to be read at either width */
        g_assert_cmpint(count(html, "class=\"wide desks\""), ==, 4);
    }
}

/* Every profile has a hash and a source, also where its file has one for each field. */
static void test_sources(void)
{
    g_autofree char *path = cli_source("scenarios/examples/deepseek-v3-pair.json");
    g_autofree char *html = page(CLI_WORDS(path, "--no-search"));
    g_assert_cmpint(count(html, "<dt><code>"), >=, 3);
    g_assert_null(strstr(html, "</dt>\n<dt>"));
    g_assert_nonnull(strstr(html, "<dd>peak_flops_per_s: as the H100 SXM [MlEngineering]"));
}

/* Numbers of the page are those of `run`. */
static void test_same_numbers(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    g_autofree char *html = page(CLI_WORDS(path, "--no-search"));
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--format", "json"));
    cli_assert_done(&run, "run");
    OrrJsonDoc *doc = orr_json_parse(run.out, run.out_length, "run", NULL);
    const OrrJson *root = orr_json_root(doc);
    g_autofree char *mfu = g_strdup_printf("MFU %.1f %%", orr_json_number_of(root, "mfu", NAN) * 100);
    g_autofree char *step = g_strdup_printf("takes %.4g s a step", orr_json_number_of(root, "step_s", NAN));
    g_assert_nonnull(strstr(html, mfu));
    g_assert_nonnull(strstr(html, step));
    orr_json_free(doc);
    cli_run_clear(&run);
    g_assert_null(strstr(html, "id=\"heatmap\""));
    g_autofree char *again = page(CLI_WORDS(path, "--no-search"));
    g_assert_cmpstr(html, ==, again);
}

static void test_side_by_side(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    g_autofree char *other = cli_source("scenarios/examples/gpt3-175b-interleaved.json");
    g_autofree char *html = page(CLI_WORDS(path, "--no-search", "--compare", other));
    assert_whole(html);
    g_assert_nonnull(strstr(html, "Side by side"));
    g_assert_nonnull(strstr(html, "<code>parallel.virtual_stages</code>"));
}

static void test_hostile_name(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    g_autofree char *html =
        page(CLI_WORDS(path, "--no-search", "--set", "name=</title><script>alert(1)</script>&\"x"));
    g_assert_null(strstr(html, "<script>alert"));
    g_assert_nonnull(strstr(html, "&lt;script&gt;alert(1)"));
}

/* Lists of layers, offloading, and what does not fit are shown too. */
static void test_others(void)
{
    static const char *const names[] = {"alexnet_2gpu", "ps_bytescheduler_3layer", "superoffload_gh200",
                                        "gptxl_titan_oom"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strdup_printf("scenarios/examples/%s.json", names[i]),
                        *path = cli_source(file);
        g_autofree char *html = page(CLI_WORDS(path, "--max-seconds", "1"));
        assert_whole(html);
        g_assert_nonnull(strstr(html, i == 1 ? "<figure id=\"workers\">" : "<figure id=\"pipeline\">"));
    }
}

static double number(const GMatchInfo *match, int group)
{
    g_autofree char *text = g_match_info_fetch(match, group);
    return g_ascii_strtod(text, NULL);
}

/* No cell of the map is faster and smaller than a point of the front beside it, also where the time was too short for proofs; what
 * was not looked at is marked. */
static void test_front_holds(void)
{
    static const char *const seconds[] = {"10", "0.3"};
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    g_autoptr(GRegex) point =
        g_regex_new(": ([0-9.]+) s, MFU [0-9.]+ %, ([0-9.]+) GiB</title></circle>", 0, 0, NULL);
    g_autoptr(GRegex) cell = g_regex_new("step ([0-9.]+) s, ([0-9.]+) GiB</title></rect>", 0, 0, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(seconds); i++) {
        g_autofree char *html = page(CLI_WORDS(path, "--max-seconds", seconds[i]));
        g_autoptr(GMatchInfo) at = NULL;
        int points = 0;
        for (g_regex_match(point, html, 0, &at); g_match_info_matches(at); g_match_info_next(at, NULL)) {
            g_autoptr(GMatchInfo) other = NULL;
            for (g_regex_match(cell, html, 0, &other); g_match_info_matches(other);
                 g_match_info_next(other, NULL))
                g_assert_false(number(other, 1) < 0.999 * number(at, 1) &&
                               number(other, 2) < number(at, 2) - 0.1);
            points++;
        }
        g_assert_cmpint(points, >=, i == 0 ? 2 : 0);
    }
    g_autofree char *hasty = page(CLI_WORDS(path, "--max-seconds", "0.01"));
    g_assert_true(strstr(hasty, "id=\"heatmap\"") == NULL || strstr(hasty, ">?</text>") != NULL);
}

/* Of parameter servers the page has workers and staleness; no pipeline, no table without rows. */
static void test_servers(void)
{
    g_autofree char *path = cli_source("scenarios/examples/ps_sharded.json");
    g_autofree char *html = page(CLI_WORDS(path, "--no-search"));
    assert_whole(html);
    g_assert_nonnull(strstr(html, "<h2>Parameter servers</h2>"));
    g_assert_nonnull(strstr(html, "id=\"workers\""));
    g_assert_null(strstr(html, "id=\"pipeline\""));
    g_assert_null(strstr(html, "</th></tr>\n</table>"));
    g_assert_null(strstr(html, "of 1 tokens"));
    g_autofree char *late = cli_source("scenarios/examples/ps_async_stragglers.json");
    g_autofree char *stale = page(CLI_WORDS(late, "--no-search"));
    g_assert_nonnull(strstr(stale, "id=\"staleness\""));
}

/* 64 stages of many passes, in at most 2 MB. */
static void test_size(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    g_autofree char *html =
        page(CLI_WORDS(path, "--no-search", "--set", "cluster.nodes=512", "--set", "parallel.pipeline=64",
                       "--set", "parallel.data=8", "--set", "model.layers=128", "--set", "parallel.tensor=8",
                       "--set", "training.global_batch=8192"));
    assert_whole(html);
    g_assert_cmpuint(strlen(html), <=, 2000000);
}

/* A textbook's step has no kernels, collectives or corrections that others could read. */
static void test_textbook(void)
{
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json");
    char *folder = cli_scratch_new();
    static const char *const others[] = {"--simai",   "--chakra",        "--links",
                                         "--kernels", "--trace-kernels", "--own-runs"};
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        CliRun run = cli_run(folder, CLI_WORDS("run", scenario, "--textbook", others[i], "none-such"));
        cli_assert_refused(&run, others[i], i == 5 ? "own runs" : others[i]);
        g_assert_cmpint(cli_count_files(folder), ==, 0);
    }
    cli_scratch_free(folder);
}

static void test_refused(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("report", path, "--max-seconds", "soon"));
    cli_assert_refused(&run, "seconds", "--max-seconds");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("report", path, "--no-search", "--output", "/no/such/folder/x.html"));
    cli_assert_refused(&run, "output", "/no/such/folder");
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("report", path, "--no-search", "--compare", "none-such.json"));
    cli_assert_refused(&run, "compare", "none-such.json");
    cli_run_clear(&run);
}

/* The scripts ran (the buttons show) and said nothing on the console. */
static void test_in_chromium(void)
{
    static const char *const widths[] = {"--window-size=1280,900", "--window-size=390,844"};
    g_autofree char *browser = g_find_program_in_path("chromium");
    if (browser == NULL) {
        g_test_skip("no chromium in PATH");
        return;
    }
    char *folder = cli_scratch_new();
    g_autofree char *file = g_build_filename(folder, "page.html", NULL);
    g_autofree char *path = cli_source("scenarios/examples/deepseek-v3-pair.json");
    g_autofree char *html = page(CLI_WORDS(path, "--max-seconds", "2")),
                    *url = g_strconcat("file://", file, NULL);
    g_autofree char *profile = g_strconcat("--user-data-dir=", folder, "/chromium", NULL);
    g_assert_true(g_file_set_contents(file, html, -1, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(widths); i++) {
        const char *argv[] = {browser,
                              "--headless",
                              "--no-sandbox",
                              "--disable-gpu",
                              "--enable-logging=stderr",
                              profile,
                              widths[i],
                              "--dump-dom",
                              url,
                              NULL};
        g_autofree char *dom = NULL, *said = NULL;
        if (!g_spawn_sync(NULL, (char **)(void *)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &dom, &said, NULL,
                          NULL) ||
            strstr(dom, "</html>") == NULL) {
            g_test_skip("chromium does not run here");
            break;
        }
        g_assert_null(strstr(said, "CONSOLE"));
        g_assert_cmpint(count(dom, "<p class=\"zoom\">"), ==, 2); /* no longer hidden */
        g_assert_cmpint(count(dom, "<figure "), ==, 7);
    }
    cli_scratch_free(folder);
}

/* The timeline in characters: as wide as asked, painted only where colours are wanted, every pass of a roomy step numbered. */
static void test_timeline(void)
{
    g_autofree char *path = cli_source("scenarios/examples/deepseek-v3-pair.json");
    for (int width = 60; width <= 140; width += 40) {
        g_autofree char *columns = g_strdup_printf("%d", width);
        g_setenv("COLUMNS", columns, TRUE);
        CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--timeline"));
        cli_assert_done(&run, "timeline");
        const char *at = strstr(run.out, "The step, a row a pipeline rank");
        g_assert_nonnull(at);
        g_assert_null(strchr(run.out, '\033'));
        g_auto(GStrv) lines = g_strsplit(at, "\n", -1);
        for (int i = 1; i <= 9; i++)
            g_assert_cmpint((int)g_utf8_strlen(lines[i], -1), ==, width);
        cli_run_clear(&run);
    }
    g_setenv("CLICOLOR_FORCE", "1", TRUE);
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--timeline"));
    g_assert_nonnull(strstr(run.out, "\033[48;5;25m"));
    cli_run_clear(&run);
    g_setenv("NO_COLOR", "1", TRUE);
    run = cli_run(NULL, CLI_WORDS("run", path, "--timeline"));
    g_assert_null(strchr(run.out, '\033'));
    cli_run_clear(&run);
    g_unsetenv("NO_COLOR");
    g_unsetenv("CLICOLOR_FORCE");
    g_unsetenv("COLUMNS");
    run = cli_run(NULL, CLI_WORDS("run", path, "--timeline", "--format", "json"));
    cli_assert_refused(&run, "json", "--timeline");
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/figures", test_figures);
    g_test_add_func("/report/loop", test_loop);
    g_test_add_func("/report/sources", test_sources);
    g_test_add_func("/report/same-numbers", test_same_numbers);
    g_test_add_func("/report/side-by-side", test_side_by_side);
    g_test_add_func("/report/hostile-name", test_hostile_name);
    g_test_add_func("/report/others", test_others);
    g_test_add_func("/report/front-holds", test_front_holds);
    g_test_add_func("/report/servers", test_servers);
    g_test_add_func("/report/size", test_size);
    g_test_add_func("/report/refused", test_refused);
    g_test_add_func("/run/textbook", test_textbook);
    g_test_add_func("/timeline", test_timeline);
    g_test_add_func("/report/in-chromium", test_in_chromium);
    return g_test_run();
}
