/* tests/unit/traffic/test_oversubscription.c - oversubscription means one thing: the closed form and the fabric link by link
 * give one step, whatever crosses the uplinks. */
#include <string.h>

#include "costmodel/placement.h"
#include "costmodel/uplinks.h"
#include "report/report.h"
#include "spec/load.h"

#define BASE                                                                                                 \
    "{\"model\":\"llama3-70b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":64},\"training\":"             \
    "{\"sequence_length\":4096,\"global_batch\":512,\"micro_batch\":1,\"recompute\":\"none\"},"              \
    "\"parallel\":{\"tensor\":8,\"sequence_parallel\":true,\"zero\":1},\"execution\":{\"framework\":"        \
    "\"megatron-core\",\"overlap\":[]}}"

static void load(const char *sets, Spec *spec)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) words = g_strsplit(sets, ";", -1);
    OrrJsonDoc *doc = orr_json_parse(BASE, strlen(BASE), "base", &error);
    spec_load_json(orr_json_root(doc), "base", (const char *const *)words, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static double step_s(const char *sets, double ratio, const char *fidelity)
{
    char number[32];
    g_ascii_dtostr(number, sizeof number, ratio);
    g_autofree char *all = g_strdup_printf("%s%scluster.oversubscription=%s;cluster.network.fidelity=%s",
                                           sets, sets[0] != '\0' ? ";" : "", number, fidelity);
    g_autofree Spec *spec = g_new0(Spec, 1);
    load(all, spec);
    const ReportOptions options = {0};
    OrrArena *arena = orr_arena_new();
    Report report;
    g_autoptr(GError) error = NULL;
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const double seconds = (double)report.step_ps * 1e-12;
    orr_arena_free(arena);
    return seconds;
}

#define EXPERTS "model=qwen3-235b-a22b;parallel.tensor=1;parallel.sequence_parallel=false;"

static void test_as_flows(void)
{
    static const char *const topologies[] = {"", "cluster.network.topology=leaf-spine;",
                                             "cluster.network.topology=rail;"};
    static const struct {
        const char *sets;
        bool grows; /* with the ratio, under leaves of 32 GPUs */
    } cases[] = {{"parallel.pipeline=1", false},
                 {"parallel.pipeline=4", true},
                 {"parallel.pipeline=4;parallel.order=tp-cp-pp-dp", true},
                 {EXPERTS "parallel.pipeline=1;parallel.expert=128", true},
                 {EXPERTS "parallel.pipeline=8;parallel.expert=32", true}};
    for (gsize t = 0; t < G_N_ELEMENTS(topologies); t++)
        for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
            g_autofree char *sets = g_strconcat(topologies[t], cases[i].sets, NULL);
            const double one = step_s(sets, 1, "analytic"), three = step_s(sets, 3, "analytic");
            const double flow = step_s(sets, 3, "flow");
            g_test_message("%s: %.3f s, %.3f s at 3:1, on flows %.3f s", sets, one, three, flow);
            /* What runs at once in a pod is not all of it: a leaf a rail is filled by a few stages, so that the closed form
               is a bound. */
            const bool bound = t == 2 && i == 4;
            g_assert_cmpfloat(three, >=, 0.95 * flow);
            g_assert_cmpfloat(three, <=, (bound ? 1.6 : 1.05) * flow);
            g_assert_cmpfloat(three, >=, one);
            if (t == 1 && cases[i].grows)
                g_assert_cmpfloat(three, >, one * 1.002);
        }
}

/* By hand: 512 GPUs are 16 leaves of 32 and two pods of 8 leaves; 64 nodes of a ring lie 32 in each, so that 2 of its 64 hops
 * climb. Half of what everybody sends to everybody goes to the other pod. */
static void test_by_hand(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    load("cluster.oversubscription=48;parallel.tensor=1;parallel.sequence_parallel=false", spec);
    const CostUplinks uplinks = cost_uplinks(spec);
    g_assert_cmpint(uplinks.pod_gpus, ==, 256);
    g_assert_false(uplinks.rails);
    const CostGroup group = cost_group(spec, COST_RANKS_REPLICAS);
    g_assert_cmpint(cost_group_domains(&group), ==, 64);
    g_assert_cmpfloat_with_epsilon(group.out_crowding, 48.0 * 2 / 64, 1e-12);
    g_assert_cmpfloat_with_epsilon(group.all_to_all_crowding, 48 * 256.0 / 504, 1e-9);
    load("cluster.oversubscription=48;parallel.tensor=1;parallel.sequence_parallel=false;"
         "cluster.network.leaf_gpus=8;cluster.network.pod_leaves=64",
         spec);
    const CostGroup within = cost_group(spec, COST_RANKS_REPLICAS);
    g_assert_cmpfloat(within.out_crowding, ==, 1);
    g_assert_cmpfloat(within.all_to_all_crowding, ==, 1);
    load("cluster.oversubscription=48;cluster.network.topology=dragonfly;parallel.tensor=1;"
         "parallel.sequence_parallel=false",
         spec);
    const CostGroup flat = cost_group(spec, COST_RANKS_REPLICAS);
    g_assert_cmpfloat(flat.out_crowding, ==, 48);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/oversubscription/as-flows", test_as_flows);
    g_test_add_func("/oversubscription/by-hand", test_by_hand);
    return g_test_run();
}
