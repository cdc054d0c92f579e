/* tests/cli/test_cli_plan.c - plan as users and scripts meet them. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

#define PLAN "scenarios/examples/plan-sc21-175b.json"

static OrrJsonDoc *parse(const char *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "output", &error);
    g_assert_no_error(error);
    return doc;
}

static const OrrJson *member(const OrrJson *object, const char *key)
{
    const OrrJson *found = orr_json_member(object, key);
    g_assert_nonnull(found);
    return found;
}

static int lines(const char *text)
{
    int count = 0;
    for (const char *c = text; *c != '\0'; c++)
        count += *c == '\n';
    return count;
}

static void test_plan_formats(void)
{
    g_autofree char *path = cli_source(PLAN);
    const char *const deadline = "30 days";
    CliRun text = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", deadline, "--parameters", "175e9",
                                          "--textbook-rate", "160 TFLOP/s"));
    CliRun json = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", deadline, "--parameters", "175e9",
                                          "--textbook-rate", "160 TFLOP/s", "--format", "json"));
    CliRun csv = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", deadline, "--format", "csv"));
    cli_assert_done(&text, "text");
    cli_assert_done(&json, "json");
    cli_assert_done(&csv, "csv");
    g_assert_nonnull(strstr(text.out, "759.5, so 760 GPUs"));
    OrrJsonDoc *doc = parse(json.out);
    const OrrJson *plan = orr_json_first(member(orr_json_root(doc), "plans"));
    g_assert_cmpfloat(orr_json_number(member(member(plan, "textbook"), "gpus_rounded")), ==, 760);
    const OrrJson *answer = member(plan, "answer");
    g_assert_cmpfloat(orr_json_number(member(answer, "effective_days")), <=, 30);
    g_assert_cmpfloat(orr_json_number(member(answer, "days")), <,
                      orr_json_number(member(answer, "effective_days")));
    g_assert_cmpint(lines(csv.out), ==, 1 + orr_json_count(member(plan, "points")));
    orr_json_free(doc);
    cli_run_clear(&text);
    cli_run_clear(&json);
    cli_run_clear(&csv);
}

static void test_plan_side_by_side(void)
{
    g_autofree char *path = cli_source(PLAN);
    g_autofree char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plan", path, "--cluster", "dgx-a100-80gb@1.5,dgx-h100@2.5",
                                           "--accelerator", "h200-sxm5-141gb", "--gpus", "512..2048",
                                           "--format", "json", "--plot", folder, "--quiet"));
    cli_assert_done(&run, "side by side");
    OrrJsonDoc *doc = parse(run.out);
    const OrrJson *plans = member(orr_json_root(doc), "plans"), *plan = orr_json_first(plans);
    g_assert_cmpint(orr_json_count(plans), ==, 3);
    g_assert_cmpstr(orr_json_text(member(plan, "accelerator")), ==, "h200-sxm5-141gb");
    plan = orr_json_next(plan);
    g_assert_cmpfloat(orr_json_number(member(plan, "usd_per_gpu_hour")), ==, 1.5);
    g_assert_cmpint(orr_json_count(member(plan, "points")), ==, 3);
    g_assert_cmpint(cli_count_files(folder), ==, 4); /* scaling and money, each CSV and PNG */
    orr_json_free(doc);
    cli_run_clear(&run);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* A mixed cluster beside plain ones, on which what was to be dealt out is even: rows hold scenarios that run. */
static void test_plan_mixed(void)
{
    g_autofree char *path = cli_source("scenarios/examples/mixed-llama3-8b.json");
    g_autofree char *folder = cli_scratch_new(), *saved = g_build_filename(folder, "row.json", NULL);
    static const char *const kinds[] = {NULL, "dgx-h100@2"};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        CliRun plan = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "32", "--format", "json",
                                              kinds[i] != NULL ? "--cluster" : NULL, kinds[i]));
        cli_assert_done(&plan, "mixed");
        OrrJsonDoc *doc = parse(plan.out);
        const OrrJson *row = orr_json_first(member(orr_json_root(doc), "rows"));
        g_autofree char *text = orr_json_dump(member(row, "scenario"));
        g_file_set_contents(saved, text, -1, NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("run", saved, "--format", "json"));
        cli_assert_done(&run, "row");
        OrrJsonDoc *report = parse(run.out);
        g_assert_cmpfloat(orr_json_number(member(orr_json_root(report), "step_s")), ==,
                          orr_json_number(member(row, "step_s")));
        orr_json_free(report);
        orr_json_free(doc);
        cli_run_clear(&run);
        cli_run_clear(&plan);
    }
    CliRun budget = cli_run(NULL, CLI_WORDS("plan", path, "--budget-usd", "1e5"));
    cli_assert_refused(&budget, "budget", "each entry of cluster.groups");
    cli_run_clear(&budget);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* Each program with its own defaults, whose rows run to the same picosecond; a page of names is refused. */
static void test_plan_frameworks(void)
{
    g_autofree char *path = cli_source(PLAN), *folder = cli_scratch_new(),
                    *saved = g_build_filename(folder, "row.json", NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "1024", "--framework",
                                         "megatron-core, torchtitan", "--format", "json"));
    cli_assert_done(&run, "frameworks");
    OrrJsonDoc *doc = parse(run.out);
    const OrrJson *plan = orr_json_next(orr_json_first(member(orr_json_root(doc), "plans"))),
                  *row = orr_json_next(orr_json_first(member(orr_json_root(doc), "rows")));
    g_assert_cmpstr(orr_json_text(member(plan, "framework")), ==, "torchtitan");
    g_autofree char *text = orr_json_dump(member(row, "scenario"));
    g_file_set_contents(saved, text, -1, NULL);
    CliRun again = cli_run(NULL, CLI_WORDS("run", saved, "--format", "json"));
    cli_assert_done(&again, "row");
    OrrJsonDoc *report = parse(again.out);
    g_assert_cmpfloat(orr_json_number(member(orr_json_root(report), "step_s")), ==,
                      orr_json_number(member(row, "step_s")));
    g_assert_cmpfloat(orr_json_number(member(row, "step_s")), !=,
                      orr_json_number(member(orr_json_first(member(orr_json_root(doc), "rows")), "step_s")));
    orr_json_free(report);
    orr_json_free(doc);
    cli_run_clear(&again);
    cli_run_clear(&run);
    g_autoptr(GString) names = g_string_new("h100-sxm5-80gb");
    for (int i = 1; i < 5000; i++)
        g_string_append(names, ",h100-sxm5-80gb");
    CliRun page = cli_run(NULL, CLI_WORDS("plan", path, "--accelerator", names->str));
    cli_assert_refused(&page, "a page of names", "5000 machines side by side, more than 64");
    cli_run_clear(&page);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* Terms of one machine have one step; spot takes longer; what commits says to how much; regions reach power and CO2. */
static void test_plan_machines(void)
{
    g_autofree char *path = cli_source(PLAN), *machines = cli_source("scenarios/machines/four-machines.json"),
                    *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plan", path, "--gpus", "1024", "--machines", machines, "--format",
                                           "json", "--plot", folder, "--quiet"));
    CliRun text = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "1024", "--machines", "four-machines"));
    CliRun nobody = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "1024", "--machines", "dgx-h100"));
    g_assert_nonnull(strstr(nobody.err, "those that ship: four-machines; clusters by name go to --cluster"));
    cli_run_clear(&nobody);
    cli_assert_done(&run, "machines");
    cli_assert_done(&text, "text");
    OrrJsonDoc *doc = parse(run.out);
    const OrrJson *plan[9], *each = orr_json_first(member(orr_json_root(doc), "plans"));
    double step_s[9], days[9], usd[9], co2_kg[9];
    for (int i = 0; i < 9; i++, each = orr_json_next(each)) {
        plan[i] = each;
        const OrrJson *answer = member(each, "answer");
        step_s[i] = orr_json_number(member(answer, "step_s"));
        days[i] = orr_json_number(member(answer, "effective_days"));
        usd[i] = orr_json_number(member(answer, "usd"));
        co2_kg[i] = orr_json_number(member(answer, "co2_kg"));
    }
    g_assert_null(each);
    g_assert_cmpstr(orr_json_text(member(plan[2], "name")), ==, "A100 cloud, spot");
    g_assert_cmpstr(orr_json_text(member(plan[6], "framework")), ==, "torchtitan");
    g_assert_cmpfloat(step_s[0], ==, step_s[1]);
    g_assert_cmpfloat(step_s[0], ==, step_s[2]);
    g_assert_cmpfloat(days[0], ==, days[1]);
    g_assert_cmpfloat(days[2], >, days[0]);
    g_assert_cmpfloat(fabs(usd[1] / usd[0] * 1.8 / 1.2 - 1), <, 1e-9);
    g_assert_cmpfloat(co2_kg[2], >, co2_kg[0]);
    const OrrJson *full = member(plan[8], "answer"); /* one year of 1,024 GPUs, whatever is left of it */
    g_assert_cmpfloat(fabs(usd[8] / (8766.0 * 1024 * 4.5) - 1), <, 1e-9);
    g_assert_cmpfloat(usd[8], ==, orr_json_number(member(full, "committed_usd")));
    g_assert_cmpfloat(fabs(orr_json_number(member(full, "racks")) - 1024.0 / 72), <, 1e-9);
    g_assert_cmpint(cli_count_files(folder), ==, 4);
    g_assert_nonnull(strstr(text.out, "14.2 racks of 72"));
    g_assert_nonnull(strstr(text.out, "cheaper than on demand where 244 of its 365 days are used"));
    orr_json_free(doc);
    cli_run_clear(&run);
    cli_run_clear(&text);
    cli_scratch_free(g_steal_pointer(&folder));
}

#define MACHINE "{\"machines\":[{\"name\":\"a\",\"cluster\":\"dgx-h100\""
#define TERM    MACHINE ",\"terms\":[{"

static void test_machines_refused(void)
{
    g_autofree char *path = cli_source(PLAN), *folder = cli_scratch_new(),
                    *file = g_build_filename(folder, "machines.json", NULL);
    const struct {
        const char *text, *expect;
    } rows[] = {{"", "machines.json"},
                {"[]", "write {\"machines\""},
                {"{}", "machines: is not a list of machines"},
                {"{\"machines\":[]}", "machines: is not a list of machines"},
                {"{\"machine\":[]}", "machine: unknown key"},
                {"{\"machines\":[7]}", "machines[0]"},
                {"{\"machines\":[{\"cluster\":\"dgx-h100\"}]}", "has no \"name\""},
                {"{\"machines\":[{\"name\":\"a\"}]}", "machines[0].cluster: missing"},
                {"{\"machines\":[{\"name\":\"a\",\"cluster\":\"dgx-h10\"}]}", "dgx-h100"},
                {"{\"machines\":[{\"name\":\"a\",\"cluster\":9}]}", "give a cluster's name"},
                {MACHINE ",\"framwork\":\"torchtitan\"}]}", "framework"},
                {MACHINE ",\"region\":\"mars\"}]}", "\"mars\" is not one of \"regions\""},
                {MACHINE ",\"terms\":[]}]}", "not a list of 1 to 8 terms"},
                {MACHINE "},{\"name\":\"a\",\"cluster\":\"dgx-h100\"}]}", "a name of its own"},
                {TERM "\"term\":\"rented\"}]}]}", "machines[0].terms[0].term"},
                {TERM "\"term\":\"on-demand\"}]}]}", "needs usd_per_gpu_hour above 0"},
                {TERM "\"term\":\"on-demand\",\"usd_per_gpu_hour\":-3}]}]}", "-3"},
                {TERM "\"term\":\"on-demand\",\"usd_per_gpu_hour\":3,\"years\":1}]}]}", "years does nothing"},
                {TERM "\"term\":\"reserved\",\"usd_per_gpu_hour\":3}]}]}", "needs years"},
                {TERM "\"term\":\"owned\",\"years\":4}]}]}", "needs usd_per_gpu above 0"},
                {TERM "\"term\":\"spot\",\"usd_per_gpu_hour\":1}]}]}", "needs interruption_mtbf_s"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_file_set_contents(file, rows[i].text, -1, NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "1024", "--machines", file));
        cli_assert_refused(&run, rows[i].text, rows[i].expect);
        cli_run_clear(&run);
    }
    g_autoptr(GString) many = g_string_new("{\"machines\":[");
    for (int i = 0; i < 65; i++)
        g_string_append_printf(many, "%s{\"name\":\"%d\",\"cluster\":\"dgx-h100\"}", i > 0 ? "," : "", i);
    g_string_append(many, "]}");
    g_file_set_contents(file, many->str, -1, NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("plan", path, "--machines", file));
    cli_assert_refused(&run, "65 machines", "more than 64 machines");
    cli_run_clear(&run);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* The answer is the scenario's own GPU count, else the fastest of the counts that were asked for; a limit that no count
 * keeps is not blamed on memory, and counts that "would do" keep it. */
static void test_plan_none(void)
{
    g_autofree char *path = cli_source(PLAN);
    CliRun apart = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "512,2048"));
    CliRun power = cli_run(NULL, CLI_WORDS("plan", path, "--power-mw", "0.01"));
    CliRun most = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "2048", "--power-mw", "0.5"));
    cli_assert_done(&apart, "counts besides its own");
    g_assert_nonnull(strstr(apart.out, "Answer      2,048 GPUs: "));
    cli_assert_done(&power, "power");
    g_assert_nonnull(strstr(power.out, "over the limit of 0.01"));
    g_assert_null(strstr(power.out, "would do"));
    cli_assert_done(&most, "less power");
    g_assert_nonnull(strstr(most.out, "512 would do"));
    cli_run_clear(&apart);
    cli_run_clear(&power);
    cli_run_clear(&most);
}

static void test_plan_refused(void)
{
    g_autofree char *path = cli_source(PLAN);
    const struct {
        const char *flag, *value, *expect;
    } rows[] = {{"--deadline", "30 parsecs", "--deadline"},
                {"--deadline", "-1", "--deadline"},
                {"--budget-usd", "1e6", "usd_per_gpu_hour"},
                {"--gpus", "many", "--gpus"},
                {"--gpus", "1.5", "--gpus"},
                {"--cluster", "dgx-a10", "dgx-a10"},
                {"--accelerator", "h100-sxm5-80gb@free", "accelerator"},
                {"--framework", "megatron", "--framework"},
                {"--whole-racks", NULL, "cluster.rack_gpus"},
                {"--machines", "none.json", "none.json"},
                {"--framework", "torchtitan,torchtitan", "twice"},
                {"--set", "training.tokens=0", "training.epochs"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("plan", path, rows[i].flag, rows[i].value));
        cli_assert_refused(&run, rows[i].flag, rows[i].expect);
        cli_run_clear(&run);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/plan/formats", test_plan_formats);
    g_test_add_func("/cli/plan/side-by-side", test_plan_side_by_side);
    g_test_add_func("/cli/plan/mixed", test_plan_mixed);
    g_test_add_func("/cli/plan/frameworks", test_plan_frameworks);
    g_test_add_func("/cli/plan/machines", test_plan_machines);
    g_test_add_func("/cli/plan/machines-refused", test_machines_refused);
    g_test_add_func("/cli/plan/none", test_plan_none);
    g_test_add_func("/cli/plan/refused", test_plan_refused);
    return g_test_run();
}
