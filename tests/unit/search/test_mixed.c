/* tests/unit/search/test_mixed.c - clusters of several kinds of nodes: alike they are the plain cluster to the picosecond; replicas
 * that differ wait for the slowest; what "auto" deals out against every split there is; memory of each card; what is refused. */
#include <math.h>
#include <string.h>

#include "report/report.h"
#include "search/mixed.h"
#include "spec/load.h"

#define SHAPE                                                                                                \
    "\"training\":{\"sequence_length\":1024,\"global_batch\":24,\"micro_batch\":1,\"recompute\":\"none\"},"  \
    "\"execution\":{\"framework\":\"megatron-core\",\"overlap\":[]}"

static const char model[] =
    "\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":1024,\"heads\":16,\"kv_heads\":16,\"ffn_hidden\":4096,"
    "\"vocab\":32000}";

static void load(Spec *spec, const char *cluster, const char *parallel)
{
    GError *error = NULL;
    g_autofree char *text =
        g_strdup_printf("{%s,\"cluster\":%s,\"parallel\":%s," SHAPE "}", model, cluster, parallel);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "mixed", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "mixed", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static Report run(const Spec *spec, bool unfold, OrrArena *arena)
{
    const ReportOptions options = {.unfold = unfold, .check = true};
    Report report;
    GError *error = NULL;
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static int64_t step_of(const char *cluster, const char *parallel)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    load(spec, cluster, parallel);
    if (search_mixed_asked(spec))
        search_mixed_choose(spec, &error);
    g_assert_no_error(error);
    const int64_t step_ps = run(spec, false, arena).step_ps;
    orr_arena_free(arena);
    return step_ps;
}

/* --- groups that are alike --- */

static const char *const shapes[] = {
    "{\"tensor\":2,\"pipeline\":4,\"data\":4,\"zero\":1,\"order\":\"tp-cp-ep-pp-dp\"}",
    "{\"tensor\":4,\"pipeline\":2,\"virtual_stages\":2,\"data\":4,\"schedule\":\"interleaved\"}",
    "{\"tensor\":2,\"pipeline\":4,\"data\":4,\"schedule\":\"zb-h1\"}",
    "{\"tensor\":2,\"pipeline\":4,\"data\":4,\"schedule\":\"zb-v\"}",
    "{\"tensor\":4,\"pipeline\":4,\"data\":2,\"schedule\":\"dualpipe\"}",
    "{\"tensor\":8,\"pipeline\":1,\"data\":4,\"zero\":3}",
    "{\"tensor\":1,\"pipeline\":2,\"data\":8,\"context\":2,\"zero\":1}",
};

static void test_alike(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (int unfold = 0; unfold < 2; unfold++) {
            g_autofree Spec *plain = g_new0(Spec, 1), *groups = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            load(plain, "{\"preset\":\"dgx-h100\",\"nodes\":4}", shapes[i]);
            load(groups,
                 "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\",\"nodes\":3}]}",
                 shapes[i]);
            const Report a = run(plain, false, arena), b = run(groups, unfold, arena);
            g_assert_cmpint(groups->cluster.group_count, ==, 2);
            if (unfold == 0 && b.kinds.count == 1)
                g_assert_cmpint(b.result.ops, ==, a.result.ops);
            g_assert_cmpint(a.step_ps, ==, b.step_ps);
            g_assert_cmpint(a.bubble_ps, ==, b.bubble_ps);
            g_assert_cmpfloat(fabs(a.reserved_bytes - b.reserved_bytes), <, 1);
            g_assert_cmpfloat(fabs(a.mfu - b.mfu), <, 1e-12);
            orr_arena_free(arena);
        }
}

/* --- one type slower than the other --- */

/* Two nodes of H100s whose tensor cores are of these speeds, links and memory alike: `left` and `right` of the data sheet. */
static char *two_speeds(double left, double right, int nodes)
{
    return g_strdup_printf(
        "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":%d,\"accelerator\":{\"peak_flops_per_s\":{\"bf16\":%"
        ".6g}}},"
        "{\"preset\":\"dgx-h100\",\"nodes\":%d,\"accelerator\":{\"peak_flops_per_s\":{\"bf16\":%.6g}}}]}",
        nodes, left * 989e12, nodes, right * 989e12);
}

/* Without anything beside each other, a step of replicas that differ ends when the slower are done: each alone says when. */
static void test_slowest_replica(void)
{
    g_autofree char *mixed = two_speeds(1, .1, 1), *fast = two_speeds(1, 1, 1), *slow = two_speeds(.1, .1, 1);
    const char *even = "{\"tensor\":8,\"pipeline\":1,\"data\":2}";
    const int64_t both = step_of(mixed, even), quick = step_of(fast, even), late = step_of(slow, even);
    g_assert_cmpint(both, ==, late);
    g_assert_cmpint(quick, <, late);
    /* 16 and 8 micro-batches: the later of a fast cluster with 16 each and a slow one with 8 each */
    const int64_t uneven =
        step_of(mixed, "{\"tensor\":8,\"pipeline\":1,\"data\":2,\"replica_microbatches\":[16,8]}");
    int64_t alone[2];
    for (int i = 0; i < 2; i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        load(spec, i == 0 ? fast : slow, even);
        spec->training.global_batch = i == 0 ? 32 : 16;
        alone[i] = run(spec, false, arena).step_ps;
        orr_arena_free(arena);
    }
    g_assert_cmpint(uneven, ==, MAX(alone[0], alone[1]));
    g_assert_cmpint(uneven, <, both);
}

/* Stages on two types: between a cluster of the one and of the other; folded as every replica on its own. */
static void test_between(void)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "breadth-first",
                                            "zb-h1", "zb-v", "dualpipev"};
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
    GRand *random = g_rand_new_with_seed(17);
    for (gsize s = 0; s < G_N_ELEMENTS(schedules); s++)
        for (gsize o = 0; o < G_N_ELEMENTS(orders); o++)
            for (int draw = 0; draw < 3; draw++) {
                const double left = g_rand_double_range(random, .3, 1),
                             right = g_rand_double_range(random, .3, 1);
                const int tensor = 2 << g_rand_int_range(random, 0, 2), pipeline = 16 / tensor / 2;
                const bool two =
                    strcmp(schedules[s], "interleaved") == 0 || strcmp(schedules[s], "breadth-first") == 0;
                g_autofree char *parallel = g_strdup_printf(
                    "{\"tensor\":%d,\"pipeline\":%d,\"data\":2,\"schedule\":\"%s\",\"order\":\"%s\"%s}",
                    tensor, pipeline, schedules[s], orders[o], two ? ",\"virtual_stages\":2" : "");
                g_autofree char *mixed = two_speeds(left, right, 1),
                                *fast = two_speeds(fmax(left, right), fmax(left, right), 1),
                                *slow = two_speeds(fmin(left, right), fmin(left, right), 1);
                g_autofree Spec *spec = g_new0(Spec, 1);
                OrrArena *arena = orr_arena_new();
                load(spec, mixed, parallel);
                const Report folded = run(spec, false, arena), whole = run(spec, true, arena);
                g_assert_cmpint(folded.step_ps, ==, whole.step_ps);
                g_assert_cmpint(step_of(fast, parallel), <=, folded.step_ps);
                g_assert_cmpint(folded.step_ps, <=, step_of(slow, parallel));
                for (int g = 0; g < 2; g++) {
                    g_assert_cmpfloat(folded.groups[g].waited_frac, >=, 0);
                    g_assert_cmpfloat(folded.groups[g].waited_frac, <=, 1);
                    g_assert_cmpfloat(fabs(folded.groups[g].waited_frac - whole.groups[g].waited_frac), <,
                                      1e-9);
                }
                orr_arena_free(arena);
            }
    g_rand_free(random);
}

/* --- auto --- */

/* Every way to put 8 layers on `ranks` stages. */
static int64_t best_split(Spec *spec, int rank, int left, int *ret_tried)
{
    int64_t best = INT64_MAX;
    SpecParallel *parallel = &spec->parallel;
    if (rank == parallel->pipeline - 1) {
        OrrArena *arena = orr_arena_new();
        static const ReportOptions plain;
        Report report;
        parallel->stage_layers[rank] = left;
        const bool ok = report_run(spec, NULL, &plain, arena, &report, NULL);
        best = ok && report.fits ? report.step_ps : INT64_MAX;
        *ret_tried += 1;
        orr_arena_free(arena);
        return best;
    }
    for (int layers = 0; layers <= left; layers++) {
        parallel->stage_layers[rank] = layers;
        const int64_t rest = best_split(spec, rank + 1, left - layers, ret_tried);
        best = MIN(best, rest);
    }
    return best;
}

static void test_auto_layers(void)
{
    GRand *random = g_rand_new_with_seed(23);
    double worst = 0;
    int tried = 0;
    for (int draw = 0; draw < 6; draw++) {
        g_autofree char *cluster = two_speeds(1, g_rand_double_range(random, .2, .9), 1);
        const char *with = "{\"tensor\":4,\"pipeline\":4,\"data\":1,\"stage_layers\":\"auto\"}";
        const char *even = "{\"tensor\":4,\"pipeline\":4,\"data\":1}";
        g_autofree Spec *spec = g_new0(Spec, 1);
        const int64_t chosen = step_of(cluster, with);
        load(spec, cluster, even);
        spec->parallel.stage_layers_count = 4;
        const int64_t best = best_split(spec, 0, 8, &tried);
        g_assert_cmpint(chosen, <=, step_of(cluster, even));
        worst = fmax(worst, (double)chosen / (double)best - 1);
    }
    g_assert_cmpint(tried, ==, 6 * 165);
    g_test_message("worst over the best of all splits: %.2f %%", 100 * worst);
    g_assert_cmpfloat(worst, <, .01);
    g_rand_free(random);
}

static void test_auto_microbatches(void)
{
    for (int i = 1; i < 6; i++) {
        g_autofree char *cluster = two_speeds(1, .15 * i, 1);
        const int64_t chosen =
            step_of(cluster, "{\"tensor\":8,\"pipeline\":1,\"data\":2,\"replica_microbatches\":\"auto\"}");
        int64_t best = INT64_MAX;
        for (int first = 1; first < 24; first++) {
            g_autofree char *parallel =
                g_strdup_printf("{\"tensor\":8,\"pipeline\":1,\"data\":2,\"replica_microbatches\":[%d,%d]}",
                                first, 24 - first);
            const int64_t step_ps = step_of(cluster, parallel);
            best = MIN(best, step_ps);
        }
        g_assert_cmpint(chosen, ==, best);
    }
}

/* --- memory --- */

static void test_memory(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const char *cluster = "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\","
                          "\"nodes\":1,\"accelerator\":"
                          "{\"memory_bytes\":3e9}}]}";
    /* every replica holds all of it: the smallest card decides */
    load(spec, cluster, "{\"tensor\":2,\"pipeline\":1,\"data\":8,\"zero\":0}");
    const Report data = run(spec, false, arena);
    g_assert_false(data.fits);
    g_assert_cmpfloat(data.capacity_bytes, ==, 3e9);
    g_assert_cmpfloat(data.groups[0].room_bytes, >, 0);
    g_assert_cmpfloat(data.groups[1].room_bytes, <, 0);
    g_assert_cmpfloat(fabs(data.short_bytes + data.groups[1].room_bytes), <, 1);
    orr_arena_free(arena);
}

/* Two pipeline ranks, the second of a card that holds three of eight layers. */
static void test_auto_memory(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    const char *parallel = "{\"tensor\":8,\"pipeline\":2,\"data\":1,\"stage_layers\":\"auto\"}";
    load(spec, "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\",\"nodes\":1}]}",
         parallel);
    spec->parallel.stage_layers_count = 2;
    spec->parallel.stage_layers[0] = 5;
    spec->parallel.stage_layers[1] = 3;
    const Report three = run(spec, false, arena);
    const double holds = three.stages[1].peak_bytes + spec->execution.framework.allocator.context_bytes;
    g_autofree char *small =
        g_strdup_printf("{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":"
                        "\"dgx-h100\",\"nodes\":1,\"accelerator\":{\"memory_bytes\":%.0f}}]}",
                        holds + 1e6);
    load(spec, small, parallel);
    search_mixed_choose(spec, &error);
    g_assert_no_error(error);
    g_assert_cmpint(spec->parallel.stage_layers[1], ==, 3);
    g_assert_true(run(spec, false, arena).fits);
    orr_arena_free(arena);
}

/* --- refused --- */

static void test_refused(void)
{
    static const struct {
        const char *cluster, *parallel, *expect;
    } cases[] = {
        {"{\"groups\":[]}", "{}", "not a list of groups"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\"}]}", "{}", "how many nodes"},
        {"{\"groups\":[3]}", "{}", "not an object"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}],\"accelerator\":{\"power_cap_w\":500}}", "{}",
         "give it in each entry, as cluster.groups.0."},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}],\"usd_per_gpu_hour\":2}", "{}",
         "give it in each entry, as cluster.groups.0."},
        {"{\"groups\":[{\"preset\":\"dgx-h101\",\"nodes\":1}]}", "{}", "dgx-h101"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\",\"nodes\":1,"
         "\"gpus_per_node\":4}]}",
         "{}", "GPUs a node"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}],\"nodes\":3}", "{}", "the groups have 1"},
        {"{\"preset\":\"dgx-h100\",\"nodes\":1}", "{\"stage_layers\":\"auto\"}", "give cluster.groups"},
        {"{\"preset\":\"dgx-h100\",\"nodes\":1}", "{\"replica_microbatches\":[24]}", "give cluster.groups"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}]}",
         "{\"tensor\":8,\"replica_microbatches\":[3]}", "add up to 3"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}]}",
         "{\"tensor\":8,\"replica_microbatches\":[12,12]}", "2 numbers for 1 replicas"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1}]}",
         "{\"tensor\":8,\"replica_microbatches\":[0]}", "out of range"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        GError *error = NULL;
        g_autofree char *text = g_strdup_printf("{%s,\"cluster\":%s,\"parallel\":%s," SHAPE "}", model,
                                                cases[i].cluster, cases[i].parallel);
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "mixed", NULL);
        g_assert_false(spec_load_json(orr_json_root(doc), "mixed", NULL, true, spec, NULL, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        if (strstr(error->message, cases[i].expect) == NULL)
            g_error("\"%s\" does not say \"%s\"", error->message, cases[i].expect);
        g_clear_error(&error);
        orr_json_free(doc);
    }
    /* ZeRO-3 gathers in every micro-batch, and a tensor group has one type of GPU */
    static const char *const late[][2] = {
        {"{\"tensor\":8,\"data\":2,\"pipeline\":1,\"zero\":3,\"replica_microbatches\":[16,8]}",
         "need as many"},
        {"{\"tensor\":16,\"data\":1,\"pipeline\":1}", "tensor and context group"}};
    for (gsize i = 0; i < G_N_ELEMENTS(late); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *cluster = two_speeds(1, .5, 1);
        OrrArena *arena = orr_arena_new();
        static const ReportOptions plain;
        Report report;
        GError *error = NULL;
        load(spec, cluster, late[i][0]);
        g_assert_false(report_run(spec, NULL, &plain, arena, &report, &error));
        g_assert_nonnull(strstr(error->message, late[i][1]));
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mixed/alike", test_alike);
    g_test_add_func("/mixed/slowest-replica", test_slowest_replica);
    g_test_add_func("/mixed/between", test_between);
    g_test_add_func("/mixed/auto-layers", test_auto_layers);
    g_test_add_func("/mixed/auto-microbatches", test_auto_microbatches);
    g_test_add_func("/mixed/memory", test_memory);
    g_test_add_func("/mixed/auto-memory", test_auto_memory);
    g_test_add_func("/mixed/refused", test_refused);
    return g_test_run();
}
