/* tests/unit/step/test_offload.c - activations on the host: time and levels of hand-made stages against a recurrence
 * of their own, and what whole scenarios gain and pay. */
#include <string.h>

#include "base/json.h"
#include "costmodel/offload.h"
#include "report/report.h"
#include "tests/unit/sim_fixture.h"

enum { KEPT = 100 };

/* A stage of `layers` layers between two edges, the first `offloaded` of which leave. */
static SimPlan stage_plan(OrrArena *arena, int layers, int offloaded, int64_t forward_ps, int64_t backward_ps,
                          int64_t copy_ps)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 1, 1, 1, 0, 1, 1, 0, 0, 0});
    SimStage *stage = &plan.stages[0];
    stage->segment_count = layers;
    stage->layers = layers;
    stage->offloaded = offloaded;
    stage->segments = ORR_ARENA_NEW(arena, SimSegment, layers);
    for (int i = 0; i < layers; i++) {
        SimSegment *segment = &stage->segments[i];
        segment->forward = fixture_work(SIM_PART_COMPUTE, forward_ps);
        segment->backward_input = fixture_work(SIM_PART_COMPUTE, backward_ps);
        segment->activation_bytes = segment->leaving_bytes = KEPT;
        if (i < offloaded)
            segment->copy_out = segment->copy_back = fixture_work(SIM_PART_OFFLOAD, copy_ps);
    }
    return plan;
}

/* One micro-batch, layer by layer: a layer waits for the copy of the one whose place it takes; a fetch starts when the
 * backward has left the place it takes, and copies go one after the other. */
static int64_t by_hand(int layers, int n, int64_t f, int64_t b, int64_t copy)
{
    int64_t copied[64] = {0}, now = 0, link = 0;
    for (int j = 0; j < layers; j++) {
        for (int l = 0; l < n; l++)
            if (MAX(layers - n + l, l + 1) == j)
                now = MAX(now, copied[l]);
        now += f;
        if (j < n)
            copied[j] = link = MAX(link, now) + copy;
    }
    now = n == layers ? MAX(now, copied[layers - 1]) : now;
    int64_t fetched[64] = {0};
    link = 0;
    for (int j = layers - 1; j >= 0; j--) {
        for (int l = n - 1; l >= 0; l--)
            if (MAX(layers - n + l - 1, l) == j)
                fetched[l] = link = MAX(link, now) + copy;
        now = MAX(now, j < n ? fetched[j] : 0) + b;
    }
    return now;
}

static void recurrence(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    for (int round = 0; round < 600; round++) {
        OrrArena *arena = orr_arena_new();
        const int layers = g_rand_int_range(rand, 1, 14), n = g_rand_int_range(rand, 0, layers + 1);
        const int64_t f = fixture_random(rand, 1, 9), b = fixture_random(rand, 1, 18),
                      copy = fixture_random(rand, 1, 20);
        const SimPlan plan = stage_plan(arena, layers, n, f, b, copy);
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        if (result.step_ps != by_hand(layers, n, f, b, copy))
            g_test_message("%d of %d layers, f %d, b %d, copy %d", n, layers, (int)f, (int)b, (int)copy);
        g_assert_cmpint(result.step_ps, ==, by_hand(layers, n, f, b, copy));
        g_assert_cmpint(result.rank[0].peak_bytes, ==, MAX(layers - n, 1) * KEPT);
        g_assert_cmpint(result.rank[0].host_peak_bytes, ==, n * KEPT);
        g_assert_cmpint(result.rank[0].part_ps[SIM_PART_OFFLOAD], ==, result.step_ps - layers * (f + b));
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* Copies that fit in the window cost nothing; with one layer left on the GPU every copy is waited for. */
static void closed_forms(void)
{
    OrrArena *arena = orr_arena_new();
    SimPlan plan = stage_plan(arena, 12, 4, 3, 6, 3);
    g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, 12 * 9);
    plan = stage_plan(arena, 12, 11, 3, 6, 2);
    g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, 12 * 9 + 2 * 11 * 2);
    orr_arena_free(arena);
}

static int copies_of(const SimPlan *plan, OrrArena *arena)
{
    const SimResult result = fixture_run(plan, false, arena, NULL);
    int copies = 0;
    for (int64_t i = 0; i < result.span_count; i++)
        copies += result.spans[i].tag == SIM_TAG_OFFLOAD;
    return copies;
}

/* A layer of which nothing leaves is not copied: one copy out and one back for each of the others. */
static void nothing_leaves(void)
{
    OrrArena *arena = orr_arena_new();
    SimPlan plan = stage_plan(arena, 6, 3, 3, 6, 2);
    g_assert_cmpint(copies_of(&plan, arena), ==, 2 * 3);
    plan.stages[0].segments[1].copy_out = plan.stages[0].segments[1].copy_back = (SimWork){0};
    plan.stages[0].segments[1].leaving_bytes = 0;
    g_assert_cmpint(copies_of(&plan, arena), ==, 2 * 2);
    orr_arena_free(arena);
}

static bool run(const char *const *sets, Report *ret_report, OrrArena *arena, GError **error)
{
    static const char text[] =
        "{\"model\":{\"layers\":16,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"micro_batch\":1},"
        "\"parallel\":{\"tensor\":2,\"pipeline\":2},\"execution\":{\"framework\":\"megatron-core\"}}";
    const ReportOptions options = {.check = true};
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok = spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, error) &&
                    report_run(spec, NULL, &options, arena, ret_report, error);
    orr_json_free(doc);
    return ok;
}

static Report report_of(const char *offload, const char *more, OrrArena *arena)
{
    GError *error = NULL;
    Report report;
    run((const char *const[]){offload, more, NULL}, &report, arena, &error);
    g_assert_no_error(error);
    return report;
}

static void scenarios(void)
{
    OrrArena *arena = orr_arena_new();
    const Report none = report_of("offload=none", NULL, arena);
    double peak = none.peak_bytes, host = 0;
    int64_t step_ps = none.step_ps;
    static const char *const some[] = {"offload={\"activation_layers\":2}",
                                       "offload={\"activation_layers\":5}",
                                       "offload={\"activation_layers\":8}"};
    g_assert_cmpfloat(none.stages[0].host_bytes, ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(some);
         i++) { /* more layers: less on the GPU, more on the host, no faster */
        const Report report = report_of(some[i], NULL, arena);
        g_assert_cmpfloat(report.peak_bytes, <, peak);
        g_assert_cmpfloat(report.stages[0].host_bytes, >, host);
        g_assert_cmpint(report.step_ps, >=, step_ps);
        peak = report.peak_bytes, host = report.stages[0].host_bytes, step_ps = report.step_ps;
    }
    const Report all = report_of("offload=activations", NULL, arena); /* 8 layers of each stage */
    g_assert_cmpint(all.step_ps, ==, step_ps);
    g_assert_cmpfloat(all.peak_bytes, ==, peak);
    g_assert_cmpint(all.part_ps[SIM_PART_OFFLOAD], >, 0);
    const Report cramped =
        report_of(some[2], "cluster.host={\"dram_bytes\":1e9,\"dram_bytes_per_s\":1e11,\"cores\":64}", arena);
    g_assert_true(all.fits && !cramped.fits && !cramped.offload.host_fits);
    g_assert_cmpfloat(cramped.offload.host_bytes, >, 1e9);
    g_assert_cmpint(cramped.step_ps, ==, step_ps);
    const Report slow = report_of(some[2], "cluster.accelerator.host_link_bytes_per_s=20e9", arena);
    g_assert_cmpint(slow.step_ps, >, step_ps);
    const Report checkpoints =
        report_of(some[2], "training.recompute=full", arena); /* inputs of layers only */
    g_assert_cmpfloat(checkpoints.stages[0].host_bytes, >, 0);
    g_assert_cmpfloat(checkpoints.stages[0].host_bytes, <, 0.2 * host);
    orr_arena_free(arena);
}

static void refused(void)
{
    static const char *const cases[][3] = {{"offload=optimizer", "offload", "parallel.zero=0"},
                                           {"offload=params", "offload", NULL},
                                           {"offload={\"activation_layers\":17}", "16 layers", NULL},
                                           {"offload={\"tier\":\"nvme\"}", "tier", NULL},
                                           {"offload={\"activation_layers\":2}", "host_link_bytes_per_s",
                                            "cluster.accelerator.host_link_bytes_per_s=0"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Report report;
        g_assert_false(run((const char *const[]){cases[i][0], cases[i][2], NULL}, &report, arena, &error));
        if (strstr(error->message, cases[i][1]) == NULL)
            g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_error_free(error);
        orr_arena_free(arena);
    }
}

/* What leaves with each of Megatron-Core's names, of a layer of Llama 3 8B (16-bit tensors of 8,192 tokens, 4,096 wide, 8 of 32
 * heads for keys and values): inputs of norms and linears, query, key and value. Together with the MLP's they are all. */
static void modules(void)
{
    static const struct {
        unsigned bits;
        double tensors; /* of 8,192 x 4,096 x 2 bytes */
    } cases[] = {{SPEC_MODULE_ATTN_NORM, 1},
                 {SPEC_MODULE_QKV_LINEAR, 1},
                 {SPEC_MODULE_CORE_ATTN, 1.5},
                 {SPEC_MODULE_ATTN_PROJ, 1},
                 {SPEC_MODULE_MLP_NORM, 1},
                 {SPEC_MODULE_LAYERNORM, 2},
                 {SPEC_MODULE_CORE_ATTN | SPEC_MODULE_ATTN_PROJ, 2.5}};
    static const char text[] = "{\"model\":\"llama3-8b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_"
                               "length\":8192,\"global_batch\":8},"
                               "\"execution\":{\"framework\":\"megatron-core\"}}";
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    CostShape shape;
    cost_shape_init(&shape, spec);
    const double tensor = 8192 * 4096.0 * 2;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpfloat_with_epsilon(cost_offload_module_bytes(&shape, 0, 0, cases[i].bits) / tensor,
                                       cases[i].tensors, 0.02);
    const unsigned attention =
        SPEC_MODULE_LAYERNORM | SPEC_MODULE_QKV_LINEAR | SPEC_MODULE_CORE_ATTN | SPEC_MODULE_ATTN_PROJ;
    g_assert_cmpfloat_with_epsilon(cost_offload_module_bytes(&shape, 0, 0, attention | SPEC_MODULE_MLP) /
                                       cost_offload_module_bytes(&shape, 0, 0, 0),
                                   1, 1e-12);
    g_assert_cmpfloat(cost_offload_module_bytes(&shape, 0, 0, SPEC_MODULE_EXPERT_FC1), <=, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/offload/nothing-leaves", nothing_leaves);
    g_test_add_func("/offload/recurrence", recurrence);
    g_test_add_func("/offload/closed-forms", closed_forms);
    g_test_add_func("/offload/scenarios", scenarios);
    g_test_add_func("/offload/modules", modules);
    g_test_add_func("/offload/refused", refused);
    return g_test_run();
}
