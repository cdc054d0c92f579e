/* tests/cli/test_cli_answers.c - answers that can be acted on: what a search or a plan says runs again to the picosecond,
 * what fits says how surely. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/cli/runner.h"

static OrrJsonDoc *parsed(const CliRun *run, const char *name)
{
    GError *error = NULL;
    cli_assert_done(run, name);
    OrrJsonDoc *doc = orr_json_parse(run->out, run->out_length, name, &error);
    g_assert_no_error(error);
    return doc;
}

static const OrrJson *at(const OrrJson *node, const char *key)
{
    const OrrJson *member = orr_json_member(node, key);
    g_assert_nonnull(member);
    return member;
}

/* The digits of "step_s" as printed: twelve decimals. */
static char *step_text(const char *json)
{
    const char *key = strstr(json, "\"step_s\": ");
    g_assert_nonnull(key);
    key += strlen("\"step_s\": ");
    return g_strndup(key, strspn(key, "0123456789."));
}

/* Numbers inside a report inside a report lose their last zeros. */
static gint64 picoseconds(const char *text)
{
    return llround(g_ascii_strtod(text, NULL) * 1e12);
}

static char *run_step(const char *path)
{
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--format", "json"));
    cli_assert_done(&run, path);
    char *step = step_text(run.out);
    cli_run_clear(&run);
    return step;
}

#define LLAMA "scenarios/examples/llama3-70b-h100.json"

/* --- search --- */

static const char *const spaces[][16] = {
    {LLAMA, "--set", "parallel.tensor=auto", "--set", "parallel.pipeline=auto", "--set", "parallel.data=auto",
     "--set", "training.micro_batch=auto", "--set", "parallel.virtual_stages=auto", "--set",
     "parallel.schedule=auto"},
    {LLAMA, "--set", "training.recompute=auto", "--set", "parallel.zero=auto", "--set",
     "execution.overlap=auto", "--set", "parallel.order=auto", "--set", "training.micro_batch=auto"},
    {LLAMA, "--set", "parallel.sequence_parallel=auto", "--set", "execution.attention=auto", "--set",
     "cluster.accelerator.preset=h200-sxm5-141gb", "--set", "search.precision=[\"bf16\",\"fp8\"]"},
    {"scenarios/examples/search-deepseek-v3.json", "--set", "cluster.nodes=32", "--set",
     "parallel.pipeline=4", "--set", "parallel.tensor=1", "--set", "parallel.schedule=1f1b", "--set",
     "training.micro_batch=1"},
};

static void test_save(void)
{
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(spaces); i++) {
        g_autofree char *scenario = cli_source(spaces[i][0]);
        g_autofree char *file = g_build_filename(folder, "best.json", NULL);
        g_autoptr(GPtrArray) words = g_ptr_array_new();
        g_ptr_array_add(words, (gpointer) "search");
        g_ptr_array_add(words, scenario);
        for (int k = 1; k < 16 && spaces[i][k] != NULL; k++)
            g_ptr_array_add(words, (gpointer)spaces[i][k]);
        const char *more[] = {"--format", "json", "--save", file, NULL};
        for (int k = 0; k < 5; k++)
            g_ptr_array_add(words, (gpointer)more[k]);
        CliRun run = cli_run(NULL, (const char *const *)words->pdata);
        OrrJsonDoc *doc = parsed(&run, scenario);
        g_autofree char *again = run_step(file);
        g_autofree char *shown = step_text(strstr(run.out, "\"best\""));
        g_assert_cmpint(picoseconds(again), ==, picoseconds(shown));
        orr_json_free(doc);
        cli_run_clear(&run);
        g_remove(file);
    }
    cli_scratch_free(folder);
}

/* One machine that is named in the place of the scenario's own is saved with it; of several none is. */
static void test_save_machine(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *scenario = cli_source(LLAMA), *file = g_build_filename(folder, "best.json", NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("search", scenario, "--set", "parallel.tensor=auto", "--set",
                                         "parallel.data=auto", "--accelerator", "h200-sxm5-141gb", "--save",
                                         file, "--format", "json")),
           two = cli_run(NULL, CLI_WORDS("search", scenario, "--set", "parallel.tensor=auto", "--accelerator",
                                         "h200-sxm5-141gb,tpu-v5p", "--save", file));
    OrrJsonDoc *doc = parsed(&run, "save one machine");
    g_autofree char *again = run_step(file), *text = NULL;
    g_autofree char *shown = step_text(strstr(run.out, "\"step_s\""));
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "h200-sxm5-141gb"));
    g_assert_cmpint(picoseconds(again), ==, picoseconds(shown));
    cli_assert_refused(&two, "two machines", "--save: give one machine");
    orr_json_free(doc);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* Software is bound to chips: a run says so, and a purchase does not compare it there. */
static void test_chips(void)
{
    static const struct {
        const char *framework;
        bool runs;
    } rows[] = {{"megatron-core", false}, {"deepspeed", false}, {"maxtext", true}, {"generic", true}};
    g_autofree char *scenario = cli_source(LLAMA);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *framework = g_strconcat("execution.framework=", rows[i].framework, NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("run", scenario, "--set", framework, "--set",
                                             "cluster={\"preset\":\"tpu-v5p-pod\",\"nodes\":16}", "--set",
                                             "parallel.data=auto", "--set", "execution.attention=flash2"));
        cli_assert_done(&run, rows[i].framework);
        g_assert_cmpint(strstr(run.out, "does not run on a tpu") == NULL, ==, rows[i].runs);
        cli_run_clear(&run);
    }
    CliRun found = cli_run(NULL, CLI_WORDS("search", scenario, "--set", "parallel.tensor=auto", "--set",
                                           "parallel.data=auto", "--accelerator", "h100-sxm5-80gb,tpu-v5p"));
    cli_assert_done(&found, "search of two machines");
    g_assert_nonnull(strstr(found.out, "does not run on a tpu (it does on: gpu)"));
    cli_run_clear(&found);
    static const char *const commands[] = {"plan", "search"}, *const formats[] = {"text", "json"};
    for (int i = 0; i < 4; i++) {
        CliRun run = cli_run(NULL, CLI_WORDS(commands[i / 2], scenario, "--set", "training.tokens=1e12",
                                             "--set", "cluster={\"preset\":\"tpu-v5p-pod\",\"nodes\":16}",
                                             "--set", "parallel.data=auto", "--set",
                                             i / 2 == 0 ? "training.micro_batch=1" : "parallel.tensor=auto",
                                             "--format", formats[i % 2]));
        cli_assert_done(&run, commands[i / 2]);
        g_assert_nonnull(strstr(run.out, "does not run on a tpu (it does on: gpu)"));
        cli_run_clear(&run);
    }
}

/* best[0] first, each row its own file, exactly one row recommended, and it is plain or nothing near the best is. */
static void test_save_all(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *scenario = cli_source(LLAMA);
    CliRun run =
        cli_run(NULL, CLI_WORDS("search", scenario, "--set", "parallel.zero=auto", "--set",
                                "training.recompute=auto", "--set", "training.micro_batch=auto", "--set",
                                "parallel.pipeline=auto", "--set", "parallel.data=auto", "--set",
                                "parallel.virtual_stages=auto", "--set", "parallel.tensor=auto", "--set",
                                "training.tokens=1e12", "--set", "cluster.usd_per_gpu_hour=2", "--format",
                                "json", "--quiet", "--memory-reserve", "0", "--save-all", folder));
    OrrJsonDoc *doc = parsed(&run, "save all");
    int rows = 0, recommended = 0;
    double last_s = 0;
    for (const OrrJson *row = orr_json_first(at(orr_json_root(doc), "best")); row != NULL;
         row = orr_json_next(row)) {
        const OrrJson *report = at(row, "report");
        g_autofree char *name = g_strdup_printf("%02d.json", rows + 1);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        const double step_s = orr_json_number(at(report, "step_s"));
        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            g_free(path);
            path = g_build_filename(folder, "recommended.json", NULL);
        }
        g_autofree char *again = run_step(path);
        g_assert_cmpfloat(fabs(g_ascii_strtod(again, NULL) - step_s), <, 1e-12);
        g_assert_cmpfloat(step_s, >=, last_s);
        g_assert_nonnull(orr_json_member(at(report, "training"), "usd"));
        if (orr_json_bool(at(row, "recommended"))) {
            recommended++;
            g_assert_cmpfloat(orr_json_number(at(at(row, "parallel"), "zero")), <=, 1); /* 2: Megatron-FSDP */
        }
        last_s = step_s;
        rows++;
    }
    g_assert_cmpint(recommended, ==, 1);
    orr_json_free(doc);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* No layout twice; no number that only a computer reads; days and money where tokens and prices are known. */
static void test_search_page(void)
{
    g_autofree char *scenario = cli_source(LLAMA);
    CliRun run = cli_run(NULL, CLI_WORDS("search", scenario, "--set", "training.recompute=auto", "--set",
                                         "training.micro_batch=auto", "--set", "parallel.zero=auto", "--set",
                                         "training.tokens=1e12", "--set", "cluster.usd_per_gpu_hour=2"));
    cli_assert_done(&run, "page");
    g_assert_null(strstr(run.out, "e+0"));
    g_assert_nonnull(strstr(run.out, " USD for 1 T tokens"));
    g_assert_nonnull(strstr(run.out, " days of computing), "));
    g_auto(GStrv) lines = g_strsplit(run.out, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        g_assert_cmpint(g_utf8_strlen(*line, -1), <=, 100);
    cli_run_clear(&run);
}

/* --- plan --- */

/* Every row of a plan, whatever it varied, is a scenario that gives its picosecond. */
static void check_rows(const char *const *words, int least)
{
    char *folder = cli_scratch_new();
    g_autofree char *file = g_build_filename(folder, "row.json", NULL);
    CliRun run = cli_run(NULL, words);
    OrrJsonDoc *doc = parsed(&run, words[1]);
    const OrrJson *rows = at(orr_json_root(doc), "rows");
    int points = 0, simulated = 0, answers = 0;
    g_assert_cmpint(orr_json_count(rows), >=, least);
    for (const OrrJson *plan = orr_json_first(at(orr_json_root(doc), "plans")); plan != NULL;
         plan = orr_json_next(plan))
        for (const OrrJson *point = orr_json_first(at(plan, "points")); point != NULL;
             point = orr_json_next(point))
            points += orr_json_type(at(point, "reason")) == ORR_JSON_NULL;
    for (const OrrJson *row = orr_json_first(rows); row != NULL; row = orr_json_next(row)) {
        g_autofree char *text = orr_json_dump(at(row, "scenario"));
        g_assert_true(g_file_set_contents(file, text, -1, NULL));
        g_autofree char *again = run_step(file);
        g_assert_cmpint(picoseconds(again), ==, llround(orr_json_number(at(row, "step_s")) * 1e12));
        answers += orr_json_bool(at(row, "answer"));
        simulated++;
    }
    g_assert_cmpint(simulated, ==, points);
    g_assert_cmpint(answers, ==, orr_json_count(at(orr_json_root(doc), "plans")));
    g_assert_nonnull(orr_json_member(at(orr_json_root(doc), "assumed"), "failures"));
    orr_json_free(doc);
    cli_run_clear(&run);
    g_remove(file);
    cli_scratch_free(folder);
}

static void test_plan_rows(void)
{
    g_autofree char *sc21 = cli_source("scenarios/examples/plan-sc21-175b.json"), *llama = cli_source(LLAMA);
    check_rows(
        CLI_WORDS("plan", sc21, "--deadline", "30 days", "--batch-range", "1500..1600", "--format", "json"),
        4);
    check_rows(CLI_WORDS("plan", llama, "--set", "training.tokens=1e12", "--set", "parallel.tensor=auto",
                         "--set", "parallel.pipeline=auto", "--set", "parallel.data=auto", "--set",
                         "parallel.virtual_stages=auto", "--set", "training.micro_batch=auto", "--set",
                         "training.recompute=auto", "--set", "execution.overlap=auto", "--gpus", "4,64,128",
                         "--format", "json"),
               2);
    check_rows(CLI_WORDS("plan", llama, "--set", "training.tokens=1e12", "--cluster",
                         "dgx-a100-80gb@1.5,dgx-h100@2.5", "--accelerator", "b200-sxm-180gb@4", "--gpus",
                         "64", "--format", "json"),
               3);
}

/* Days of computing on 1,024 GPUs, less five minutes; g_free. */
static char *five_minutes_short(const char *path)
{
    CliRun run = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "1024", "--ideal", "--format", "json"));
    cli_assert_done(&run, "1,024 GPUs");
    OrrJsonDoc *doc = orr_json_parse(run.out, strlen(run.out), "plan", NULL);
    const OrrJson *row = orr_json_first(at(orr_json_root(doc), "rows"));
    char *deadline = g_strdup_printf("%.4f days", orr_json_number(at(row, "days")) - 5 / 1440.0);
    orr_json_free(doc);
    cli_run_clear(&run);
    return deadline;
}

static void test_plan_words(void)
{
    g_autofree char *path = cli_source("scenarios/examples/plan-sc21-175b.json");
    g_autofree char *deadline = five_minutes_short(path);
    CliRun near = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", deadline, "--ideal"));
    CliRun lived = cli_run(NULL, CLI_WORDS("plan", path, "--deadline", deadline));
    CliRun odd = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "500"));
    CliRun both = cli_run(NULL, CLI_WORDS("plan", path, "--gpus", "500", "--deadline", "30 days"));
    cli_assert_done(&near, "near");
    cli_assert_done(&odd, "odd");
    cli_assert_done(&both, "odd with a deadline");
    g_assert_nonnull(strstr(near.out, "by 5 minutes"));
    g_assert_null(strstr(near.out, "restarts  "));
    g_assert_null(strstr(lived.out, "by 5 minutes")); /* it is the effective days that miss it */
    g_assert_nonnull(strstr(lived.out, "effective"));
    g_assert_nonnull(strstr(lived.out, "faults llama3-2024 (assumed)"));
    g_assert_nonnull(strstr(odd.out, "500 GPUs are not whole nodes of 8; 384 would do, and 512 would do"));
    g_assert_nonnull(strstr(both.out, "500 GPUs are not whole nodes of 8"));
    g_assert_nonnull(strstr(near.out, "no failures"));
    g_assert_nonnull(strstr(near.out, "tp8 pp8 vpp3 zero0 interleaved recompute full unfused"));
    g_auto(GStrv) lines = g_strsplit(near.out, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        g_assert_cmpint(g_utf8_strlen(*line, -1), <=, 100);
    g_auto(GStrv) wide = g_strsplit(lived.out, "\n", -1);
    for (char **line = wide; *line != NULL; line++)
        g_assert_cmpint(g_utf8_strlen(*line, -1), <=, 100);
    cli_run_clear(&lived);
    cli_run_clear(&near);
    cli_run_clear(&odd);
    cli_run_clear(&both);
}

/* --- memory --- */

static void test_reserve(void)
{
    g_autofree char *scenario = cli_source(LLAMA);
    CliRun kept = cli_run(NULL, CLI_WORDS("run", scenario, "--set", "training.micro_batch=auto", "--set",
                                          "training.recompute=auto", "--format", "json"));
    CliRun none =
        cli_run(NULL, CLI_WORDS("run", scenario, "--set", "training.micro_batch=auto", "--set",
                                "training.recompute=auto", "--format", "json", "--memory-reserve", "0"));
    OrrJsonDoc *with = parsed(&kept, "kept"), *without = parsed(&none, "none");
    const OrrJson *a = at(orr_json_root(with), "memory"), *b = at(orr_json_root(without), "memory");
    const double reserve = orr_json_number(at(a, "reserve_bytes"));
    g_assert_cmpfloat(reserve, >, 1e9);
    g_assert_cmpfloat(orr_json_number(at(b, "reserve_bytes")), ==, 0);
    g_assert_cmpfloat(orr_json_number(at(a, "reserved_bytes")) + reserve, <=,
                      orr_json_number(at(a, "capacity_bytes")));
    g_assert_cmpstr(orr_json_text(at(a, "verdict")), ==, "fits");
    g_assert_cmpfloat(orr_json_number(at(a, "odds")), >=, 0.95);
    g_assert_cmpfloat(orr_json_number(at(b, "reserved_bytes")), >=, orr_json_number(at(a, "reserved_bytes")));
    orr_json_free(with);
    orr_json_free(without);
    cli_run_clear(&kept);
    cli_run_clear(&none);
}

/* The rows called proved are those of a search that simulates every point; there, all are. */
static void test_families_proved(void)
{
    g_autofree char *scenario = cli_source(LLAMA);
    OrrJsonDoc *docs[2];
    for (int i = 0; i < 2; i++) {
        CliRun run =
            cli_run(NULL, CLI_WORDS("search", scenario, "--set", "parallel.tensor=auto", "--set",
                                    "parallel.data=auto", "--set", "training.recompute=auto", "--set",
                                    "training.micro_batch=auto", "--format", "json", "--quiet", "--top", "3",
                                    "--jobs", "1", i > 0 ? "--exhaustive" : NULL));
        docs[i] = parsed(&run, "families");
        cli_run_clear(&run);
    }
    const OrrJson *quick = orr_json_root(docs[0]), *whole = orr_json_root(docs[1]);
    const int proved = (int)orr_json_number(at(quick, "families_proved"));
    const OrrJson *a = orr_json_first(at(quick, "families")), *b = orr_json_first(at(whole, "families"));
    int all = 0;
    for (const OrrJson *row = b; row != NULL; row = orr_json_next(row))
        all++;
    g_assert_cmpint(proved, >=, 1);
    g_assert_cmpfloat(orr_json_number(at(whole, "families_proved")), ==, all);
    for (int i = 0; i < proved; i++, a = orr_json_next(a), b = orr_json_next(b))
        g_assert_cmpfloat(orr_json_number(at(a, "step_s")), ==, orr_json_number(at(b, "step_s")));
    orr_json_free(docs[0]);
    orr_json_free(docs[1]);
}

/* Where nothing fits with the reserve kept, what fits without it is the answer, and says so. */
static void test_reserve_gives_way(void)
{
    g_autofree char *scenario = cli_source(LLAMA);
    CliRun run = cli_run(NULL, CLI_WORDS("run", scenario, "--set", "training.recompute=auto", "--set",
                                         "search.recompute=[\"none\"]", "--memory-reserve", "40GiB",
                                         "--format", "json"));
    OrrJsonDoc *doc = parsed(&run, "gives way");
    const OrrJson *root = orr_json_root(doc);
    g_assert_true(orr_json_bool(at(root, "fits")));
    g_assert_cmpstr(orr_json_text(at(at(root, "memory"), "verdict")), ==, "at the edge");
    orr_json_free(doc);
    cli_run_clear(&run);
}

/* What fills the GPU says what would help: not what shrinks activations where states alone are too large. */
static void test_room_for_states(void)
{
    g_autofree char *scenario = cli_source(LLAMA);
    CliRun run = cli_run(NULL, CLI_WORDS("run", scenario, "--set", "parallel={\"zero\":3}", "--set",
                                         "cluster.nodes=1", "--set", "execution.framework=torchtitan"));
    cli_assert_done(&run, "states");
    g_assert_nonnull(strstr(run.out, "DOES NOT FIT"));
    g_assert_nonnull(strstr(run.out, "more GPUs"));
    g_assert_null(strstr(run.out, "training.recompute=full"));
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/answers/save", test_save);
    g_test_add_func("/answers/save-all", test_save_all);
    g_test_add_func("/answers/save-machine", test_save_machine);
    g_test_add_func("/answers/chips", test_chips);
    g_test_add_func("/answers/search-page", test_search_page);
    g_test_add_func("/answers/plan-rows", test_plan_rows);
    g_test_add_func("/answers/plan-words", test_plan_words);
    g_test_add_func("/answers/reserve", test_reserve);
    g_test_add_func("/answers/families-proved", test_families_proved);
    g_test_add_func("/answers/reserve-gives-way", test_reserve_gives_way);
    g_test_add_func("/answers/room-for-states", test_room_for_states);
    return g_test_run();
}
