/* tests/unit/api/test_api.c - liborrery: the same bytes as the command line's, from any number of threads,
 * sentences for what is wrong, and nothing left behind (the sanitizer build counts).
 */
#include <string.h>

#include "api/orrery.h"
#include "base/file.h"
#include "base/json.h"

static char *example(const char *name)
{
    g_autofree char *folder = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    return g_build_filename(folder, "examples", file, NULL);
}

static OrrHandle *loaded(const char *name)
{
    g_autofree char *path = example(name);
    OrrHandle *orrery = orr_new();
    g_assert_cmpint(orr_load(orrery, path), ==, 0);
    return orrery;
}

static double number(const char *json, const char *key)
{
    g_assert_nonnull(json);
    OrrJsonDoc *doc = orr_json_parse(json, strlen(json), "answer", NULL);
    const double value = orr_json_number_of(orr_json_root(doc), key, -1);
    orr_json_free(doc);
    return value;
}

/* A file and its text are one scenario. */
static void test_file_and_text(void)
{
    g_autofree char *path = example("gpt3-175b"), *text = NULL;
    OrrHandle *orrery = loaded("gpt3-175b");
    const double step_s = number(orr_run(orrery, NULL), "step_s");
    g_assert_cmpfloat(step_s, >, 0);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpint(orr_load(orrery, text), ==, 0);
    g_assert_cmpfloat(number(orr_run(orrery, "{\"check\":true}"), "step_s"), ==, step_s);
    g_assert_cmpint(orr_set(orrery, "training.micro_batch=2"), ==, 0);
    g_assert_cmpfloat(number(orr_run(orrery, NULL), "step_s"), !=, step_s);
    g_assert_cmpint(orr_load(orrery, path), ==, 0); /* forgets what was set */
    g_assert_cmpfloat(number(orr_run(orrery, "{}"), "step_s"), ==, step_s);
    orr_free(orrery);
}

static void assert_refused(OrrHandle *orrery, const char *answer, const char *expect)
{
    g_assert_null(answer);
    g_assert_nonnull(strstr(orr_error(orrery), expect));
    g_assert_null(strchr(orr_error(orrery), '\n'));
}

static void test_sentences(void)
{
    OrrHandle *orrery = orr_new();
    assert_refused(orrery, orr_run(orrery, NULL), "orr_load");
    g_assert_cmpint(orr_load(orrery, "{\"model\": "), ==, -1);
    assert_refused(orrery, NULL, "scenario");
    assert_refused(orrery, orr_run(orrery, NULL), "orr_load");
    g_assert_cmpint(orr_load(orrery, "/no/such/file.json"), ==, 0);
    assert_refused(orrery, orr_run(orrery, NULL), "/no/such/file.json");
    orr_free(orrery);
    orrery = loaded("gpt3-175b");
    g_assert_cmpint(orr_set(orrery, "parallel.tensor"), ==, -1);
    assert_refused(orrery, orr_run(orrery, "{\"memory_reserv\":\"1 GiB\"}"), "memory_reserve");
    assert_refused(orrery, orr_run(orrery, "{\"unfold\":1}"), "true or false");
    assert_refused(orrery, orr_run(orrery, "[]"), "object");
    assert_refused(orrery, orr_run(orrery, "{"), "run options");
    assert_refused(orrery, orr_search(orrery, NULL), "auto");
    assert_refused(orrery, orr_plan(orrery, "{\"batch_range\":[8]}"), "batch_range");
    assert_refused(orrery, orr_run(orrery, "{\"memory_reserve\":\"200 GiB\"}"), "leaves nothing");
    assert_refused(orrery, orr_plan(orrery, "{\"memory_reserve\":\"200 GiB\",\"gpus\":[1024]}"),
                   "leaves nothing");
    assert_refused(orrery, orr_explain(orrery, "{\"memory_reserve\":\"200 GiB\"}"), "leaves nothing");
    g_assert_cmpint(orr_set(orrery, "training.micro_batch=auto"), ==, 0);
    assert_refused(orrery, orr_search(orrery, "{\"memory_reserve\":\"200 GiB\"}"), "leaves nothing");
    g_assert_cmpint(orr_set(orrery, "training.micro_batch=1"), ==, 0);
    assert_refused(orrery, orr_plan(orrery, "{\"gpus\":[1.5]}"), "whole number");
    assert_refused(orrery, orr_plan(orrery, "{\"deadline\":\"\"}"), "deadline");
    assert_refused(orrery, orr_compare(orrery, NULL), "\"with\" is missing");
    assert_refused(orrery, orr_compare(orrery, "{\"with\":\"{\"}"), "the other scenario");
    assert_refused(orrery, orr_compare(orrery, "{\"with\":\"/no/such.json\"}"), "/no/such.json");
    assert_refused(orrery, orr_trace(orrery, "/no/such.json"), "/no/such.json");
    assert_refused(orrery, orr_csv(orrery, "moon"), "pipeline");
    assert_refused(orrery, orr_list(orrery, "planets"), "models");
    assert_refused(orrery, orr_preset(orrery, "models", "../models/gpt3-175b"), "no preset");
    assert_refused(orrery, orr_validate(orrery, "[]"), "paths");
    assert_refused(orrery, orr_validate(orrery, "7"), "list");
    assert_refused(orrery, orr_help(orrery, "parallel.nothing"), "parallel");
    g_assert_nonnull(orr_run(orrery, NULL)); /* none of it stays */
    g_assert_cmpstr(orr_error(orrery), ==, "");
    orr_free(orrery);
}

static void *run_many(void *data)
{
    GString *all = g_string_new(NULL);
    (void)data;
    for (int i = 0; i < 4; i++) {
        OrrHandle *orrery = loaded(i % 2 == 0 ? "gpt3-175b" : "deepseek-v3-pair");
        g_string_append(all, orr_run(orrery, NULL));
        orr_free(orrery);
    }
    return g_string_free(all, FALSE);
}

static void test_threads(void)
{
    enum { THREADS = 8 };
    GThread *threads[THREADS];
    g_autofree char *alone = run_many(NULL);
    for (int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("api", run_many, NULL);
    for (int i = 0; i < THREADS; i++) {
        g_autofree char *together = g_thread_join(threads[i]);
        g_assert_cmpstr(together, ==, alone);
    }
}

static int count_calls(double done_frac, void *data)
{
    g_assert_true(done_frac >= 0 && done_frac <= 1);
    g_atomic_int_inc((gint *)data);
    return 0;
}

static void test_search_plan_and_others(void)
{
    gint calls = 0;
    OrrHandle *orrery = loaded("gpt3-175b");
    const double own_s = number(orr_run(orrery, NULL), "step_s");
    orr_on_progress(orrery, count_calls, &calls);
    g_assert_cmpint(orr_set(orrery, "training.micro_batch=auto"), ==, 0);
    const char *found = orr_search(orrery, "{\"top\":2,\"jobs\":2}");
    g_assert_nonnull(found);
    g_assert_nonnull(strstr(found, "\"best\""));
    g_assert_cmpfloat(number(orr_run(orrery, NULL), "step_s"), <=, own_s);
    g_assert_nonnull(strstr(orr_plan(orrery, "{\"deadline\":\"40 days\",\"gpus\":[512,1024]}"), "\"rows\""));
    g_assert_cmpint(calls, >, 0);
    g_assert_nonnull(strstr(orr_explain(orrery, NULL), "\"changes\""));
    const char *beside = orr_compare(orrery, "{\"with\":\"gpt3-175b-interleaved\",\"quick\":true}");
    g_assert_nonnull(beside);
    g_assert_nonnull(strstr(beside, "parallel.schedule"));
    g_assert_nonnull(strstr(orr_page(orrery, "{\"search\":false}"), "</html>"));
    g_assert_nonnull(strstr(orr_timeline(orrery, 80), "pipeline rank"));
    g_assert_true(g_str_has_prefix(orr_csv(orrery, "waterfall"), "label,"));
    g_assert_nonnull(strstr(orr_list(orrery, "models"), "gpt3-175b"));
    g_assert_nonnull(strstr(orr_preset(orrery, "models", "gpt3-175b"), "layers"));
    g_assert_nonnull(orr_help(orrery, "parallel.zero"));
    g_assert_cmpint(orr_set(orrery, "faults=llama3-2024"), ==, 0);
    g_assert_cmpint(orr_set(orrery, "storage=tectonic"), ==, 0);
    g_assert_cmpfloat(number(orr_campaign(orrery, "{\"replicas\":20}"), "replicas"), ==, 20);
    orr_free(orrery);
}

static int stop(double done_frac, void *data)
{
    (void)data;
    return done_frac > 0.2;
}

/* A table of the same bytes on any number of threads, whose rows are single runs; sentences for what is no table. */
static void test_sweep(void)
{
    static const char vary[] =
        "\"vary\":{\"training.micro_batch\":[1,2,3],\"parallel.schedule\":[\"1f1b\",\"gpipe\"]}";
    g_autofree char *one = g_strdup_printf("{%s,\"jobs\":1}", vary),
                    *many = g_strdup_printf("{%s,\"jobs\":8}", vary);
    OrrHandle *orrery = loaded("gpt3-175b");
    g_autofree char *alone = g_strdup(orr_sweep(orrery, one));
    g_assert_nonnull(alone);
    g_assert_cmpstr(orr_sweep(orrery, many), ==, alone);
    OrrJsonDoc *doc = orr_json_parse(alone, strlen(alone), "table", NULL);
    const OrrJson *rows = orr_json_member(orr_json_root(doc), "rows"), *row = orr_json_first(rows);
    g_assert_cmpint(orr_json_count(rows), ==, 6);
    g_assert_cmpfloat(orr_json_number_of(row, "step_s", -1), ==, number(orr_run(orrery, NULL), "step_s"));
    g_assert_cmpstr(orr_json_text_of(orr_json_next(row), "parallel.schedule", ""), ==, "gpipe");
    orr_json_free(doc);
    assert_refused(orrery, orr_sweep(orrery, NULL), "nothing to vary");
    assert_refused(orrery, orr_sweep(orrery, "{\"vary\":{\"parallel.tensor\":[]}}"), "list of one value");
    assert_refused(orrery, orr_sweep(orrery, "{\"vary\":{\"parallel.tensor\":[1],\"parallel\":[{}]}}"),
                   "overlaps");
    orr_on_progress(orrery, stop, NULL);
    assert_refused(orrery, orr_sweep(orrery, one), "stopped after 2 of 6");
    orr_free(orrery);
}

/* Options of random bytes and of valid JSON with random values: an answer or a sentence. */
static void test_random_options(void)
{
    static const char *const keys[] = {"memory_reserve", "unfold", "check", "top", "gpus", "deadline", "x"};
    static const char *const values[] = {"null", "true",      "-1", "1e308", "\"8 GiB\"",
                                         "[]",   "[1,\"a\"]", "{}", "\"\""};
    OrrHandle *orrery = loaded("gpt2-xl-1gpu");
    for (int round = 0; round < 300; round++) {
        g_autofree char *options =
            g_strdup_printf("{\"%s\":%s}", keys[g_test_rand_int_range(0, (gint32)G_N_ELEMENTS(keys))],
                            values[g_test_rand_int_range(0, (gint32)G_N_ELEMENTS(values))]);
        if (g_test_rand_bit())
            options[g_test_rand_int_range(0, (gint32)strlen(options))] = (char)g_test_rand_int_range(1, 127);
        const char *answer = round % 2 == 0 ? orr_run(orrery, options) : orr_search(orrery, options);
        g_assert_true((answer == NULL) == (orr_error(orrery)[0] != '\0'));
    }
    orr_free(orrery);
    orr_free(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/file-and-text", test_file_and_text);
    g_test_add_func("/api/sentences", test_sentences);
    g_test_add_func("/api/threads", test_threads);
    g_test_add_func("/api/search-plan-and-others", test_search_plan_and_others);
    g_test_add_func("/api/sweep", test_sweep);
    g_test_add_func("/api/random-options", test_random_options);
    return g_test_run();
}
