/* tests/unit/step/test_mixed_jitter.c - slow GPUs and links in clusters of several kinds of nodes: groups that are alike as the
 * plain cluster, replicas folded by kind and pace as every replica on its own, who is waited for. */
#include <math.h>
#include <string.h>

#include "report/jitter.h"
#include "step/paced.h"
#include "spec/load.h"

static const char plain_cluster[] = "{\"preset\":\"dgx-h100\",\"nodes\":4}";
static const char alike_cluster[] =
    "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\",\"nodes\":3}]}";
static const char mixed_cluster[] =
    "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}]}";

static const char *const shapes[] = {
    "{\"tensor\":2,\"pipeline\":4,\"data\":4,\"zero\":1,\"order\":\"tp-cp-ep-pp-dp\"}",
    "{\"tensor\":4,\"pipeline\":2,\"virtual_stages\":2,\"data\":4,\"schedule\":\"interleaved\"}",
    "{\"tensor\":2,\"pipeline\":4,\"data\":4,\"schedule\":\"zb-v\",\"order\":\"tp-cp-ep-pp-dp\"}",
    "{\"tensor\":8,\"pipeline\":1,\"data\":4,\"zero\":3}",
};

static Report run(const char *cluster, const char *parallel, const char *jitter, Spec *spec, OrrArena *arena)
{
    static const ReportOptions ideal = {.ideal = true};
    GError *error = NULL;
    Report report;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":1024,\"heads\":16,\"ffn_hidden\":4096,\"vocab\":"
        "32000},\"cluster\":%s,\"parallel\":%s,\"jitter\":%s,\"training\":{\"sequence_length\":1024,"
        "\"global_batch\":32,\"micro_batch\":1},\"execution\":{\"framework\":\"megatron-core\"}}",
        cluster, parallel, jitter);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "jitter", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "jitter", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    report_run(spec, NULL, &ideal, arena, &report, &error);
    g_assert_no_error(error);
    report_jitter_fill(&report, arena, &error);
    g_assert_no_error(error);
    return report;
}

static void assert_near(double a, double b)
{
    g_assert_true((isnan(a) && isnan(b)) || fabs(a - b) < 1e-12);
}

static void test_alike(void)
{
    static const char *const jitters[] = {"{}", "{\"slow\":[{\"rank\":13,\"frac\":0.1}]}",
                                          "{\"rank_spread_frac\":0.02,\"step_noise_frac\":0.01,\"steps\":5}",
                                          "{\"slow\":[{\"nic\":9,\"frac\":0.5},{\"link\":20,\"frac\":0.3},{"
                                          "\"rank\":20,\"frac\":0.01}],\"slow_nodes_frac\":0.25,"
                                          "\"slow_nodes_by_frac\":0.1}"};
    for (gsize s = 0; s < G_N_ELEMENTS(shapes); s++)
        for (gsize j = 0; j < G_N_ELEMENTS(jitters); j++) {
            g_autofree Spec *left = g_new0(Spec, 1), *right = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            const Report a = run(plain_cluster, shapes[s], jitters[j], left, arena),
                         b = run(alike_cluster, shapes[s], jitters[j], right, arena);
            g_assert_cmpint(a.jitter.p50_ps, ==, b.jitter.p50_ps);
            g_assert_cmpint(a.jitter.p99_ps, ==, b.jitter.p99_ps);
            g_assert_cmpint(a.jitter.slowest_gpu, ==, b.jitter.slowest_gpu);
            assert_near(a.jitter.evict_gain_frac, b.jitter.evict_gain_frac);
            assert_near(a.jitter.backup_gain_frac, b.jitter.backup_gain_frac);
            assert_near(a.jitter.async_gain_frac, b.jitter.async_gain_frac);
            orr_arena_free(arena);
        }
}

/* Kinds and paces that are alike fold: the same picosecond as every replica on its own. */
static void test_folded(void)
{
    GRand *random = g_rand_new_with_seed(31);
    for (gsize s = 0; s < G_N_ELEMENTS(shapes); s++)
        for (int trial = 0; trial < 6; trial++) {
            g_autofree Spec *spec = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            GError *error = NULL;
            const Report report = run(mixed_cluster, shapes[s], "{}", spec, arena);
            const SimPlan *plan = &report.plan;
            const int count = plan->shape.ranks * plan->data;
            SimPace *columns = ORR_ARENA_NEW(arena, SimPace, count);
            SimKinds apart;
            SimPacedStep folded, all;
            for (int c = 0; c < count; c++)
                columns[c] = SIM_FULL_PACE;
            for (int i = 0; i < trial; i++) {
                SimPace *pace = &columns[g_rand_int_range(random, 0, count)];
                if (i % 2 == 0)
                    pace->speed = (int32_t)(SIM_FULL_RATE * g_rand_double_range(random, .5, 1));
                else
                    pace->scale_out = g_rand_int_range(random, 100, SIM_WHOLE_RESOURCE);
            }
            sim_kinds_plan(spec, true, arena, &apart, &error);
            g_assert_no_error(error);
            sim_run_columns(plan, &report.kinds, columns, NULL, NULL, arena, &folded, &error);
            g_assert_no_error(error);
            sim_run_columns(plan, &apart, columns, NULL, NULL, arena, &all, &error);
            g_assert_no_error(error);
            if (trial == 0)
                g_assert_cmpint(folded.step_ps, ==, report.step_ps);
            g_assert_cmpint(folded.step_ps, ==, all.step_ps);
            g_assert_cmpint(folded.ranks, <=, all.ranks);
            orr_arena_free(arena);
        }
    g_rand_free(random);
}

/* Speeds multiply: a slow A100 is what all wait for; an H100 that is as slow waits for A100s as before. */
static void test_multiplied(void)
{
    const char *replicas = "{\"tensor\":8,\"pipeline\":1,\"data\":4}";
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const Report none = run(mixed_cluster, replicas, "{}", spec, arena);
    const Report fast = run(mixed_cluster, replicas, "{\"slow\":[{\"rank\":3,\"frac\":0.1}]}", spec, arena);
    const Report slow = run(mixed_cluster, replicas, "{\"slow\":[{\"rank\":19,\"frac\":0.1}]}", spec, arena);
    g_assert_cmpint(none.jitter.p50_ps, ==, none.step_ps);
    g_assert_cmpint(fast.jitter.p50_ps, ==, none.step_ps);
    g_assert_cmpint(slow.jitter.p50_ps, >, none.step_ps + none.step_ps / 50);
    g_assert_cmpint(slow.jitter.p50_ps, <, none.step_ps + none.step_ps / 8);
    g_assert_cmpint(slow.jitter.slowest_gpu, ==, 19);
    g_assert_cmpfloat(fabs(fast.jitter.evict_gain_frac), <, 1e-12);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mixed-jitter/alike", test_alike);
    g_test_add_func("/mixed-jitter/folded", test_folded);
    g_test_add_func("/mixed-jitter/multiplied", test_multiplied);
    return g_test_run();
}
