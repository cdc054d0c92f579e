/* unit/costmodel/test_freeze.c - layers that are not trained: what they still cost, keep and hold, and that off is off. */
#include <math.h>
#include <string.h>

#include "costmodel/adapter.h"
#include "costmodel/flops.h"
#include "costmodel/layers.h"
#include "report/report.h"
#include "spec/load.h"

/* Llama 3 8B on 8 H100 under FSDP, untied, layers of 218,112,000 parameters. */
static Report ask_sharded(const char *freeze, const char *zero, OrrArena *arena, Spec *spec)
{
    static const char TEXT[] = "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                               "\"training\":{\"sequence_length\":4096,"
                               "\"global_batch\":16,\"micro_batch\":1},\"parallel\":{\"data\":8,\"zero\":2},"
                               "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}";
    static const ReportOptions checked = {.check = true};
    g_autofree char *set = g_strdup_printf("training.freeze=%s", freeze);
    g_autofree char *sharding = g_strdup_printf("parallel.zero=%s", zero);
    const char *const sets[] = {set, sharding, NULL};
    GError *error = NULL;
    Report report;
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return report;
}

static Report ask(const char *freeze, OrrArena *arena, Spec *spec)
{
    return ask_sharded(freeze, "2", arena, spec);
}

/* What AdamW's kernels hold beside its states is workspace, no gradient of what is frozen: a short step peaks there. */
static void test_optimizer_room(void)
{
    static const char TEXT[] = "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                               "\"training\":{\"sequence_length\":512,\"global_batch\":64,\"micro_batch\":1,"
                               "\"freeze\":{\"layers\":8}},\"parallel\":{\"data\":8,\"zero\":1},"
                               "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}";
    static const ReportOptions checked = {.check = true};
    GError *error = NULL;
    OrrArena *arena = orr_arena_new();
    g_autofree Spec *spec = g_new0(Spec, 1);
    Report report;
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    const int64_t *held = report.plan.ranks[0].static_bytes;
    g_assert_cmpfloat((double)held[SIM_MEM_WORKSPACE], >, 1e9);
    g_assert_cmpfloat((double)held[SIM_MEM_GRADIENTS], <=, 4 * cost_trained_parameters(spec) + 64);
    orr_json_free(doc);
    orr_arena_free(arena);
}

/* Nothing frozen is what no freeze is; more of it is never slower and never larger. */
static void test_ladder(void)
{
    static const char *const rungs[] = {"null",
                                        "{\"layers\":0}",
                                        "{\"layers\":1}",
                                        "{\"layers\":16}",
                                        "{\"layers\":16,\"head\":true}",
                                        "{\"layers\":16,\"head\":true,\"embedding\":true}",
                                        "{\"layers\":31,\"head\":true,\"embedding\":true}"};
    double step_ps = INFINITY, peak = INFINITY;
    for (gsize i = 0; i < G_N_ELEMENTS(rungs); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        const Report report = ask(rungs[i], arena, spec);
        g_test_message("%s: %.0f ps, %.3f GiB", rungs[i], (double)report.step_ps, report.peak_bytes / 0x1p30);
        if (i == 1) {
            g_assert_cmpfloat((double)report.step_ps, ==, step_ps);
            g_assert_cmpfloat(report.peak_bytes, ==, peak);
        } else if (i > 1) {
            g_assert_cmpfloat((double)report.step_ps, <, step_ps);
            g_assert_cmpfloat(report.peak_bytes, <=, peak);
        }
        step_ps = (double)report.step_ps;
        peak = report.peak_bytes;
        orr_arena_free(arena);
    }
}

/* Trained: 8,030,261,248 less 16 layers of 218,112,000, the table of 128,256 x 4,096, the same of the head and its norm. */
static void test_parameters(void)
{
    static const double ALL = 8030261248.0, LAYER = 218112000.0, TABLE = 128256.0 * 4096;
    static const struct {
        const char *freeze;
        double trained;
    } cases[] = {{"{\"layers\":16}", ALL - 16 * LAYER},
                 {"{\"embedding\":true}", ALL - TABLE},
                 {"{\"head\":true}", ALL - TABLE - 4096},
                 {"{\"embedding\":true,\"layers\":32}", TABLE + 4096}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        const Report report = ask(cases[i].freeze, arena, spec);
        g_assert_cmpfloat(report.trained_parameters, ==, cases[i].trained);
        g_assert_cmpfloat(cost_frozen_bytes(spec, COST_PART_LAYER, 0).dense_bytes, ==,
                          spec->training.freeze.layers > 0 ? 2 * LAYER : 0);
        orr_arena_free(arena);
    }
}

/* A frozen layer has no weight gradient; before the first trained piece it has no backward at all, and keeps nothing. */
static void test_passes(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    CostShape shape;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    ask("{\"layers\":2}", arena, spec);
    spec->training.recompute.mode = SPEC_RECOMPUTE_FULL;
    cost_shape_init(&shape, spec);
    cost_graph_layer(&shape, 1, graph);
    g_assert_cmpint(graph->pass[COST_BACKWARD_WEIGHT].count, ==, 0);
    g_assert_cmpint(graph->pass[COST_BACKWARD_INPUT].count, >, 0);
    g_assert_cmpint(cost_layer_extent(spec, 1, 1), ==, COST_RECOMPUTE_OP_ALL);
    cost_graph_layer(&shape, 2, graph);
    g_assert_cmpint(graph->pass[COST_BACKWARD_WEIGHT].count, >, 0);
    spec->training.freeze.embedding = true;
    cost_graph_layer(&shape, 1, graph);
    g_assert_cmpint(graph->pass[COST_BACKWARD_INPUT].count, ==, 0);
    g_assert_cmpint(graph->pass[COST_FORWARD].kept_count, ==, 0);
    g_assert_cmpint(cost_layer_extent(spec, 1, 1), ==, COST_RECOMPUTE_OP_NONE);
    g_assert_cmpint(cost_layer_extent(spec, 2, 2), ==, COST_RECOMPUTE_OP_ALL);
    orr_arena_free(arena);
}

/* Two stages of 16 layers: behind a frozen embedding frozen layers of the first stage have no backward, and those of the second
 * one have, for what it receives into requires a gradient; without a pipeline none has. */
static void test_stages(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    CostShape shape;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    ask("{\"embedding\":true,\"layers\":24}", arena, spec);
    cost_shape_init(&shape, spec);
    cost_graph_layer_in(&shape, 15, 15, graph);
    g_assert_cmpint(graph->pass[COST_BACKWARD_INPUT].count, ==, 0);
    cost_graph_layer_in(&shape, 16, 0, graph);
    g_assert_cmpint(graph->pass[COST_BACKWARD_INPUT].count, >, 0);
    g_assert_cmpint(graph->pass[COST_BACKWARD_WEIGHT].count, ==, 0);
    const int halves[] = {16, 16};
    const CostLayerGroups one = cost_group_model(spec, NULL, 0), two = cost_group_model(spec, halves, 2);
    g_assert_cmpint(one.count, ==, 2);
    g_assert_cmpint(one.group[0].count, ==, 24);
    g_assert_cmpint(two.count, ==, 3);
    g_assert_cmpint(two.group[1].layer, ==, 16);
    g_assert_cmpint(two.group[1].layer_in_stage, ==, 0);
    g_assert_cmpint(two.group[1].count, ==, 8);
    orr_arena_free(arena);
}

/* Under ZeRO-3 layers that no gradient reaches are gathered for the forward alone: in each of two micro-batches 16 layers of
 * 218,112,000 weights of 2 bytes once and not twice, 7/8 of them over the links; the table's gradient is reduced in fp32 where it is trained. */
static void test_gathers(void)
{
    static const char *const runs[] = {"{\"layers\":16,\"head\":true}",
                                       "{\"layers\":16,\"head\":true,\"embedding\":true}"};
    double sent[2];
    for (int i = 0; i < 2; i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        sent[i] = (double)ask_sharded(runs[i], "3", arena, spec).result.rank[0].scale_up_bytes;
        orr_arena_free(arena);
    }
    g_assert_cmpfloat_with_epsilon(sent[0] - sent[1],
                                   2 * 7.0 / 8 * (2 * 16 * 218112000.0 + 4 * 128256.0 * 4096), 64);
}

static bool has_op(const CostOps *ops, const char *name)
{
    for (int i = 0; i < ops->count; i++)
        if (strcmp(ops->op[i].name, name) == 0)
            return true;
    return false;
}

/* Frozen routers of 128 experts in 48 layers of Qwen3 30B: 48 x 2,048 x 128 weights fewer are trained, 2 bytes each are held, no
 * product makes their gradient and nothing keeps their input, but gradients pass through them. */
static void test_router(void)
{
    static const char *const without[] = {"training.freeze=null", NULL},
                             *const with[] = {"training.freeze={\"router\":true}", NULL};
    static const ReportOptions checked = {.check = true};
    OrrArena *arena = orr_arena_new();
    Report report[2];
    CostGraph *graph = g_new(CostGraph, 2);
    for (int i = 0; i < 2; i++) {
        static const char TEXT[] =
            "{\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
            "\"training\":{\"sequence_length\":4096,\"global_batch\":16,\"micro_batch\":1},"
            "\"parallel\":{\"data\":8,\"expert\":8,\"zero\":1},"
            "\"execution\":{\"framework\":\"megatron-core\"}}";
        GError *error = NULL;
        Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
        CostShape shape;
        OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "test", &error);
        spec_load_json(orr_json_root(doc), "test", i == 0 ? without : with, false, spec, NULL, &error);
        g_assert_no_error(error);
        orr_json_free(doc);
        report_run(spec, NULL, &checked, arena, &report[i], &error);
        g_assert_no_error(error);
        cost_shape_init(&shape, spec);
        cost_graph_layer(&shape, 3, &graph[i]);
        g_assert_cmpint(has_op(&graph[i].pass[COST_BACKWARD_WEIGHT], "router"), ==, i == 0);
        g_assert_true(has_op(&graph[i].pass[COST_BACKWARD_INPUT], "router"));
        g_assert_true(has_op(&graph[i].pass[COST_FORWARD], "router"));
        g_assert_cmpfloat(cost_frozen_bytes(spec, COST_PART_LAYER, 3).dense_bytes, ==, i * 2 * 2048.0 * 128);
    }
    g_assert_cmpint(graph[0].pass[COST_FORWARD].kept_count, ==, graph[1].pass[COST_FORWARD].kept_count + 1);
    g_assert_cmpfloat(report[0].trained_parameters - report[1].trained_parameters, ==, 48 * 2048.0 * 128);
    g_assert_cmpint(report[1].step_ps, <, report[0].step_ps);
    g_assert_cmpfloat(report[1].peak_bytes, <, report[0].peak_bytes);
    g_free(graph);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/freeze/ladder", test_ladder);
    g_test_add_func("/freeze/parameters", test_parameters);
    g_test_add_func("/freeze/passes", test_passes);
    g_test_add_func("/freeze/stages", test_stages);
    g_test_add_func("/freeze/gathers", test_gathers);
    g_test_add_func("/freeze/optimizer-room", test_optimizer_room);
    g_test_add_func("/freeze/router", test_router);
    return g_test_run();
}
