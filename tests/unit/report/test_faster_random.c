/* tests/unit/report/test_faster_random.c - faster hardware over every model, cluster and framework that we ship, at random.
 *
 * Orders of launches and of messages are chosen by times, so a part that becomes faster may leave another order, and the step
 * may be longer: by less than 0.5 % for all but a few in a thousand, and never by a twentieth. What makes the few: the wait
 * of a host that launches too slowly moves from a pass that hides a reduction to one that hides none, and zb-auto finds
 * another order. More memory is never slower where less had room, and changes nothing without zb-auto.
 */
#include "spec/resolve.h"
#include "tests/unit/draws.h"
#include "tests/unit/random_scenario.h"

enum { SCENARIOS = 150 };

#define OFTEN_FRAC 0.005
#define MOST_FRAC  0.05

typedef struct Presets {
    GPtrArray *models, *clusters, *frameworks;
} Presets;

static const char *any(GRand *random, const GPtrArray *names)
{
    return g_ptr_array_index(names, g_rand_int_range(random, 0, (int)names->len));
}

static char *scenario_text(GRand *random, const Presets *presets)
{
    static const struct {
        const char *name;
        int virtual_stages;
    } schedules[] = {{"gpipe", 1},       {"1f1b", 1},          {"zb-h1", 1},    {"zb-h2", 1}, {"zb-auto", 1},
                     {"interleaved", 2}, {"breadth-first", 2}, {"dualpipe", 2}, {"zb-v", 2}};
    static const char *const recomputes[] = {"none", "selective", "full"};
    const int pipeline = POWER(random, 3), at = g_rand_int_range(random, 0, (int)G_N_ELEMENTS(schedules));
    g_autofree char *order = pipeline > 1 ? g_strdup_printf(",\"schedule\":\"%s\",\"virtual_stages\":%d",
                                                            schedules[at].name, schedules[at].virtual_stages)
                                          : g_strdup("");
    return g_strdup_printf(
        "{\"model\":\"%s\",\"cluster\":{\"preset\":\"%s\",\"nodes\":%d},\"training\":{\"sequence_length\":%d,"
        "\"global_batch\":%d,\"micro_batch\":%d,\"recompute\":\"%s\"},\"parallel\":{\"tensor\":%d,"
        "\"pipeline\":%d,\"context\":%d,\"zero\":%d,\"expert\":%d,\"sequence_parallel\":%s%s},"
        "\"execution\":{\"framework\":\"%s\"%s}}",
        any(random, presets->models), any(random, presets->clusters), POWER(random, 4),
        512 * POWER(random, 4), 8 * POWER(random, 5), POWER(random, 2), ANY(random, recomputes),
        POWER(random, 3), pipeline, POWER(random, 1), g_rand_int_range(random, 0, 4), POWER(random, 2),
        g_rand_boolean(random) ? "true" : "false", order, any(random, presets->frameworks),
        g_rand_boolean(random) ? ",\"overlap\":[\"grad_reduce\",\"param_gather\"]" : "");
}

typedef struct Count {
    int pairs, slower;
} Count;

static void check_faster(const Spec *spec, int64_t was_ps, const char *text, Count *count)
{
    static const size_t rates[] = {offsetof(Spec, cluster.scale_out_bytes_per_s_per_gpu),
                                   offsetof(Spec, cluster.scale_up_bytes_per_s),
                                   offsetof(Spec, cluster.accelerator.memory_bytes_per_s)};
    g_autofree Spec *fast = g_new(Spec, 1);
    for (gsize i = 0; i <= G_N_ELEMENTS(rates); i++) {
        bool fits = false;
        *fast = *spec;
        if (i < G_N_ELEMENTS(rates))
            *(double *)(void *)((char *)fast + rates[i]) *= 1.5;
        for (int dtype = 0; i == G_N_ELEMENTS(rates) && dtype < SPEC_DTYPE_COUNT; dtype++)
            fast->cluster.accelerator.peak_flops_per_s[dtype] *= 1.5;
        const int64_t now_ps = scenario_step_ps(fast, &fits);
        if (now_ps == 0)
            continue;
        const double more_frac = (double)now_ps / (double)was_ps - 1;
        count->pairs++;
        count->slower += more_frac > OFTEN_FRAC;
        if (more_frac > OFTEN_FRAC)
            g_test_message("slower by %.3f %%: rate %d, %s", 100 * more_frac, (int)i, text);
        g_assert_cmpfloat(more_frac, <, MOST_FRAC);
    }
}

static void check_roomier(const Spec *spec, int64_t was_ps, bool did_fit, const char *text)
{
    const bool by_room = strstr(text, "zb-auto") != NULL;
    g_autofree Spec *roomy = g_new(Spec, 1);
    bool fits = false;
    *roomy = *spec;
    roomy->cluster.accelerator.memory_bytes *= 1.5;
    const int64_t now_ps = scenario_step_ps(roomy, &fits);
    if (!by_room)
        g_assert_cmpint(now_ps, ==, was_ps);
    else if (did_fit)
        g_assert_cmpfloat((double)now_ps, <=, (double)was_ps * (1 + OFTEN_FRAC));
    g_assert_true(fits || !did_fit || by_room);
}

static void test_every_preset(void)
{
    const char *seed = g_getenv("ORRERY_TEST_SEED"); /* other scenarios, for a wider look */
    GRand *random = g_rand_new_with_seed(seed != NULL ? (guint32)g_ascii_strtoull(seed, NULL, 10) : 20261130);
    const Presets presets = {spec_preset_names("models", NULL), spec_preset_names("clusters", NULL),
                             spec_preset_names("frameworks", NULL)};
    g_autofree Spec *spec = g_new(Spec, 1);
    Count count = {0};
    for (int found = 0; found < DRAWS(SCENARIOS);) {
        g_autofree char *text = scenario_text(random, &presets);
        bool fits = false;
        const int64_t was_ps = scenario_load(text, NULL, spec) ? scenario_step_ps(spec, &fits) : 0;
        if (was_ps == 0)
            continue;
        check_faster(spec, was_ps, text, &count);
        check_roomier(spec, was_ps, fits, text);
        found++;
    }
    g_test_message("%d pairs, %d slower by more than %.1f %%", count.pairs, count.slower, 100 * OFTEN_FRAC);
    g_assert_cmpint(count.slower, <=, 1 + count.pairs / 500);
    g_rand_free(random);
    g_ptr_array_unref(presets.models);
    g_ptr_array_unref(presets.clusters);
    g_ptr_array_unref(presets.frameworks);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/faster-random/every-preset", test_every_preset);
    return g_test_run();
}
