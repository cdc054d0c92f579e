/* tests/unit/api/test_after.c - runs of a sweep that share a step are the runs that they would be by themselves. */
#include <string.h>

#include "api/sweep.h"

static GArray *fields_of(const char *const *texts)
{
    GArray *list = api_vary_fields();
    for (; *texts != NULL; texts++) {
        GError *error = NULL;
        ApiVary vary;
        api_vary_parse(*texts, &vary, &error);
        g_assert_no_error(error);
        g_array_append_val(list, vary);
    }
    return list;
}

/* The table, and how many steps were simulated for it. */
static char *table_of(const char *example, char **sets, const GArray *fields, bool alone, bool ideal,
                      int threads, gint *steps)
{
    GError *error = NULL;
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", example, NULL);
    *steps = 0;
    const ApiSweepAsk ask = {.input = {.path = path, .loops = true},
                             .sets = sets,
                             .fields = fields,
                             .ideal = ideal,
                             .threads = threads,
                             .alone = alone,
                             .steps = steps};
    g_autoptr(GArray) rows = api_sweep(&ask, &error);
    g_assert_no_error(error);
    GString *out = g_string_new(NULL);
    api_sweep_csv(fields, rows, out);
    return g_string_free(out, FALSE);
}

static void check(const char *example, const char *set, const GArray *fields, bool ideal, int threads,
                  gint *ret_shared)
{
    char *sets[] = {(char *)set, NULL};
    gint each = 0;
    g_autofree char *alone = table_of(example, sets, fields, true, ideal, 2, &each),
                    *shared = table_of(example, sets, fields, false, ideal, threads, ret_shared);
    g_assert_cmpint(each, ==, (gint)api_sweep_count(fields));
    g_assert_cmpstr(shared, ==, alone);
}

/* --- random axes --- */

/* Good values and refused ones, of keys behind a step and of keys that it reads. */
enum { BEHIND = 6 }; /* the first ones: all behind */
static const char *const axes[] = {
    "cluster.pue=1.1,1.3,0.5",
    "cluster.usd_per_gpu_hour=2,x2,null,3.5",
    "cluster.usd_per_kwh=0,0.1,\"a\"",
    "training.tokens=1e12,0,2e12,-1",
    "storage.read_bytes_per_s=1e9,2e11",
    "storage.write_bytes_per_s=1e10,5e10",
    "faults=llama3-2024,{}",
    "faults.gpu_mtbf_s=1e8,4e8,inf",
    "faults.spares=0,2,null",
    "faults.elastic=true,false",
    "faults.checkpoint.interval_s=best,900,auto",
    "faults.checkpoint.mode=none,sync,async",
    "faults.checkpoint.storage={\"read_bytes_per_s\":1e11,\"write_bytes_per_s\":1e11},null",
    "training.micro_batch=1,2,7",
    "training.epochs=0,1",
    "data.bytes_per_token=4,2e9",
    "parallel.zero=0,1",
    "cluster.nodes=x1,x2",
};

static void test_random(void)
{
    static const struct {
        const char *example, *set;
    } bases[] = {{"fsdp_8b_8h100.json", "training.tokens=1e12"},
                 {"gpt3-175b.json", "storage={\"read_bytes_per_s\":1e11,\"write_bytes_per_s\":1e11}"},
                 {"llama3-70b-h100.json", "training.samples=1e9"},
                 {"mixed-llama3-8b.json", "training.tokens=1e12"},
                 {"rl-ppo-llama3-8b-a800.json", "cluster.pue=1.2"}};
    int saved = 0;
    for (int trial = 0; trial < 60; trial++) {
        const char *texts[4] = {NULL};
        const gsize base = (gsize)g_test_rand_int_range(0, G_N_ELEMENTS(bases));
        GError *error = NULL;
        gint shared = 0;
        for (int i = 0; i < 3; i++)
            texts[i] = axes[g_test_rand_int_range(0, i == 0 ? BEHIND : G_N_ELEMENTS(axes))];
        g_autoptr(GArray) fields = fields_of(texts);
        const bool apart = api_sweep_fields_check(fields, &error); /* the same key twice is refused */
        g_clear_error(&error);
        if (apart)
            check(bases[base].example, bases[base].set, fields, g_test_rand_bit(),
                  g_test_rand_int_range(1, 3), &shared);
        saved += apart && shared < (gint)api_sweep_count(fields);
    }
    g_assert_cmpint(saved, >=, 6); /* else nothing was held against anything */
}

/* --- how many steps --- */

static void test_steps(void)
{
    static const char *const texts[] = {"cluster.pue=1.1,1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,2",
                                        "training.global_batch=64,128",
                                        "cluster.usd_per_gpu_hour=1,2,3,4,5,6,7,8,9,10", NULL};
    g_autoptr(GArray) fields = fields_of(texts);
    gint shared = 0;
    check("fsdp_8b_8h100.json", "training.tokens=1e12", fields, false, 2, &shared);
    g_assert_cmpint(shared, ==, 16); /* of 200; eight pieces a thread */
}

/* A key that the step reads is never shared, nor one whose figure another key takes part in. */
static void test_reached(void)
{
    static const struct {
        const char *axis, *other, *set;
    } cases[] = {
        {"training.micro_batch=1,2,4", NULL, "training.tokens=1e12"},
        {"training.tokens=1e12,2e12,3e12", NULL,
         "training.batch_schedule=[{\"global_batch\":32,\"tokens\":1e10},{\"global_batch\":64,\"tokens\":"
         "1e10}]"},
        {"storage.read_bytes_per_s=1e3,1e6,1e12", "storage.write_bytes_per_s=1e9,1e10",
         "data={\"bytes_per_token\":4}"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const texts[] = {cases[i].axis, cases[i].other, NULL};
        g_autoptr(GArray) fields = fields_of(texts);
        gint shared = 0;
        check("fsdp_8b_8h100.json", cases[i].set, fields, false, 2, &shared);
        g_assert_cmpint(shared, >=, (gint)api_sweep_count(fields));
    }
}

/* --- axes of many values --- */

static void test_steps_of_a_range(void)
{
    static const char *const texts[] = {"a=1..1000:1", "a=1..2:0.3", "a=0..0.3:0.1",
                                        "a=-1..1:1",   "a=1..3:5",   NULL};
    static const struct {
        guint count;
        const char *second, *last;
    } says[] = {{1000, "2", "1000"}, {5, "1.3", "2"}, {4, "0.1", "0.3"}, {3, "0", "1"}, {2, "3", "3"}};
    static const char *const bad[] = {"a=1..2:0", "a=2..1:1",   "a=1..2:-1", "a=1..2:x",
                                      "a=1..2:",  "a=1..1e9:1", "a=1..2:nan"};
    g_autoptr(GArray) fields = fields_of(texts);
    for (guint i = 0; i < fields->len; i++) {
        const GPtrArray *values = g_array_index(fields, ApiVary, i).values;
        g_assert_cmpuint(values->len, ==, says[i].count);
        g_assert_cmpstr(values->pdata[1], ==, says[i].second);
        g_assert_cmpstr(values->pdata[values->len - 1], ==, says[i].last);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        ApiVary vary;
        g_autoptr(GError) error = NULL;
        g_assert_false(api_vary_parse(bad[i], &vary, &error));
        g_assert_nonnull(strstr(error->message, "key=a..b:step"));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/after/random", test_random);
    g_test_add_func("/after/steps", test_steps);
    g_test_add_func("/after/reached", test_reached);
    g_test_add_func("/after/steps-of-a-range", test_steps_of_a_range);
    return g_test_run();
}
