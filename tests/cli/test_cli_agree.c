/* tests/cli/test_cli_agree.c - one scenario, one number: what run, plan, search, sweep, explain and report say of the same
 * thing is the same.
 */
#include <math.h>
#include <string.h>

#include "tests/cli/runner.h"
#include "tests/unit/draws.h"

static const OrrJson *at(const OrrJson *node, const char *key)
{
    const OrrJson *member = orr_json_member(node, key);
    g_assert_nonnull(member);
    return member;
}

static OrrJsonDoc *answer(const char *const *words)
{
    CliRun run = cli_run(NULL, words);
    cli_assert_done(&run, words[0]);
    OrrJsonDoc *doc = cli_parse(run.out, words[0]);
    cli_run_clear(&run);
    return doc;
}

static char *text(const char *const *words)
{
    CliRun run = cli_run(NULL, words);
    cli_assert_done(&run, words[0]);
    char *out = g_strdup(run.out);
    cli_run_clear(&run);
    return out;
}

#define PRICED                                                                                               \
    "--set", "training.tokens=1e12", "--set", "cluster.usd_per_gpu_hour=2.5", "--set", "parallel.data=auto", \
        "--set", "training.recompute=selective"
#define ONE_POINT "--set", "training.micro_batch=auto", "--set", "search.micro_batch=[1]"

static void check_near(const OrrJson *a, const OrrJson *b, const char *key)
{
    const double x = orr_json_number(at(a, key)), y = orr_json_number(at(b, key));
    if (!(x > 0) || fabs(x - y) > 1e-9 * x)
        g_error("%s: %.12g and %.12g", key, x, y);
}

/* Days, GPU-hours, money: of effective days in every answer (docs/REPORT.md). */
static void test_costs(void)
{
    static const char *const keys[] = {"days", "effective_days", "gpu_hours", "usd"};
    g_autofree char *file = cli_source("scenarios/examples/llama3-70b-h100.json");
    OrrJsonDoc *run = answer(CLI_WORDS("run", file, PRICED, "--format", "json"));
    OrrJsonDoc *sweep =
        answer(CLI_WORDS("sweep", file, PRICED, "--vary", "training.micro_batch=1", "--format", "json"));
    OrrJsonDoc *search = answer(CLI_WORDS("search", file, PRICED, ONE_POINT, "--format", "json"));
    OrrJsonDoc *compare = answer(CLI_WORDS("compare", file, file, PRICED, "--quick", "--format", "json"));
    OrrJsonDoc *fronts = answer(
        CLI_WORDS("search", file, PRICED, ONE_POINT, "--set", "search.nodes=[16,32]", "--format", "json"));
    const OrrJson *told = at(orr_json_root(run), "training");
    g_autofree char *gpus = g_strdup_printf("%.0f", orr_json_number(at(orr_json_root(run), "gpus")));
    OrrJsonDoc *plan = answer(CLI_WORDS("plan", file, PRICED, "--gpus", gpus, "--format", "json"));
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const double both = orr_json_number(at(at(at(orr_json_root(compare), "summary"), keys[i]), "b"));
        g_assert_cmpfloat_with_epsilon(both, orr_json_number(at(told, keys[i])), 1e-9 * both);
        if (strcmp(keys[i], "gpu_hours") != 0)
            check_near(told, orr_json_first(at(orr_json_root(sweep), "rows")), keys[i]);
        check_near(told, orr_json_first(at(orr_json_root(plan), "rows")), keys[i]);
        check_near(told, at(at(orr_json_first(at(orr_json_root(search), "best")), "report"), "training"),
                   keys[i]);
    }
    for (const OrrJson *machine = orr_json_first(at(orr_json_root(fronts), "machines")); machine != NULL;
         machine = orr_json_next(machine)) {
        const OrrJson *best = orr_json_first(at(machine, "best"));
        const double hours =
            24 * orr_json_number(at(best, "effective_days")) * orr_json_number(at(machine, "gpus"));
        g_assert_cmpfloat_with_epsilon(orr_json_number(at(best, "gpu_hours")), hours, 1e-9 * hours);
        g_assert_cmpfloat_with_epsilon(orr_json_number(at(best, "usd")), 2.5 * hours, 1e-9 * 2.5 * hours);
    }
    orr_json_free(run);
    orr_json_free(compare);
    orr_json_free(sweep);
    orr_json_free(search);
    orr_json_free(fronts);
    orr_json_free(plan);
}

/* The same money in the words of run, plan and search. */
static void test_cost_words(void)
{
    g_autofree char *file = cli_source("scenarios/examples/llama3-70b-h100.json");
    OrrJsonDoc *run = answer(CLI_WORDS("run", file, PRICED, "--format", "json"));
    g_autofree char *gpus = g_strdup_printf("%.0f", orr_json_number(at(orr_json_root(run), "gpus")));
    g_autofree char *usd =
        g_strdup_printf("%.0f USD", orr_json_number(at(at(orr_json_root(run), "training"), "usd")));
    g_autoptr(GString) grouped = g_string_new(usd);
    for (gssize comma = (gssize)strcspn(usd, " ") - 3; comma > 0; comma -= 3)
        g_string_insert_c(grouped, comma, ',');
    const char *const *const commands[] = {CLI_WORDS("run", file, PRICED),
                                           CLI_WORDS("search", file, PRICED, ONE_POINT),
                                           CLI_WORDS("plan", file, PRICED, "--gpus", gpus)};
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *page = text(commands[i]);
        if (strstr(page, grouped->str) == NULL)
            g_error("%s does not say %s:\n%s", commands[i][0], grouped->str, page);
    }
    orr_json_free(run);
}

/* "(25.2 of 79.1 GiB)" of the banner is what explain, sweep and the page say too, where it fits, at the edge and where not. */
static void test_memory_words(void)
{
    static const struct {
        const char *file, *set;
    } cases[] = {{"scenarios/examples/gpt3-175b.json", "training.recompute=selective"},
                 {"scenarios/examples/gpt3-175b.json", "cluster.accelerator.memory_bytes=27e9"},
                 {"scenarios/examples/gpt3-175b.json", "cluster.accelerator.memory_bytes=26e9"},
                 {"scenarios/examples/gpt3-175b.json", "cluster.accelerator.memory_bytes=20e9"}};
    for (gsize i = 0; i < DRAWS(G_N_ELEMENTS(cases)); i++) {
        g_autofree char *file = cli_source(cases[i].file);
        char *folder = cli_scratch_new();
        g_autofree char *page = g_build_filename(folder, "page.html", NULL);
        g_autofree char *banner = text(CLI_WORDS("run", file, "--set", cases[i].set));
        const char *bracket = strstr(strstr(banner, "STEP"), "(") + 1;
        g_autofree char *said = g_strndup(bracket, strcspn(bracket, ")"));
        g_assert_nonnull(strstr(said, " GiB"));
        g_autofree char *why = text(CLI_WORDS("explain", file, "--set", cases[i].set));
        g_autofree char *html = text(
            CLI_WORDS("report", file, "--set", cases[i].set, "--no-search", "--output", page, "--quiet"));
        g_autofree char *shown = cli_contents(folder, "page.html");
        g_autofree char *cell = g_strndup(said, strcspn(said, " "));
        g_autofree char *held = g_strconcat(cell, " GiB", NULL);
        g_autofree char *table = text(
            CLI_WORDS("sweep", file, "--set", cases[i].set, "--vary", "training.micro_batch=1", "--quiet"));
        if (strstr(why, said) == NULL)
            g_error("explain does not say %s:\n%s", said, why);
        g_assert_nonnull(strstr(shown, said));
        if (strstr(table, held) == NULL)
            g_error("sweep does not say %s:\n%s", held, table);
        cli_scratch_free(folder);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agree/costs", test_costs);
    g_test_add_func("/agree/cost-words", test_cost_words);
    g_test_add_func("/agree/memory-words", test_memory_words);
    return g_test_run();
}
