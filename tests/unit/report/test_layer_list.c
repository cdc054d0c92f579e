/* tests/unit/report/test_layer_list.c - lists of layers over pipeline stages, tensor ranks and shards. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "search/choose.h"
#include "spec/layer_list.h"
#include "spec/list_stages.h"
#include "spec/load.h"

/* Layers of 1, 1, 1 and 3 s a sample, a third of it forward, with weights of 1, 1, 2 and 4 GB (fp32). */
#define FOUR                                                                                                 \
    "{\"name\":\"four\",\"model\":{\"layers\":[{\"parameters\":0.25e9,\"seconds\":1,\"activation_bytes\":"   \
    "8e6,\"repeat\":2},{\"parameters\":0.5e9,\"seconds\":1,\"activation_bytes\":8e6,\"output_bytes\":4e6,"   \
    "\"groups\":2},{\"parameters\":1e9,\"seconds\":3,\"activation_bytes\":1e6}]},\"cluster\":{\"preset\":"   \
    "\"dgx-h100\",\"accelerator\":{\"preset\":\"h100-sxm5-80gb\",\"speed_spread_frac\":0},\"gpus_per_"       \
    "node\":2,\"nodes\":1},\"training\":{\"sequence_length\":1,\"global_batch\":8,"                          \
    "\"micro_batch\":1,\"precision\":\"fp32\",\"optimizer\":\"sgd\"},\"parallel\":{\"data\":1},"             \
    "\"execution\":{\"framework\":\"pytorch-ddp\"}}"

typedef struct Asked {
    Spec spec;
    OrrArena *arena;
    Report report;
    char *message; /* of a refusal */
} Asked;

static Asked *ask(const char *const *sets)
{
    Asked *asked = g_new0(Asked, 1);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(FOUR, strlen(FOUR), "test", &error);
    const ReportOptions options = {.check = true};
    g_assert_no_error(error);
    asked->arena = orr_arena_new();
    if (!spec_load_json(orr_json_root(doc), "test", sets, false, &asked->spec, NULL, &error) ||
        !report_run(&asked->spec, NULL, &options, asked->arena, &asked->report, &error))
        asked->message = g_strdup(error->message);
    g_clear_error(&error);
    orr_json_free(doc);
    return asked;
}

static void asked_free(Asked *asked)
{
    orr_arena_free(asked->arena);
    g_free(asked->message);
    g_free(asked);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Asked, asked_free)

static Asked *run(const char *first, const char *second)
{
    const char *const sets[] = {first, second, NULL};
    Asked *asked = ask(sets);
    if (asked->message != NULL)
        g_error("%s", asked->message);
    return asked;
}

static double step_s(const Asked *asked)
{
    return (double)asked->report.step_ps * 1e-12;
}

static double part_s(const Asked *asked, SimPart part)
{
    return (double)asked->report.part_ps[part] * 1e-12;
}

/* Stages of 3 s each: 8 micro-batches fill p - 1 = 1 place, T = (8 + 1) x 3 s, the optimizer and messages beside it. */
static void test_pipeline(void)
{
    g_autoptr(Asked) one = run("cluster.gpus_per_node=1", NULL);
    g_autoptr(Asked) two = run("parallel.pipeline=2", NULL);
    g_autoptr(Asked) uneven = run("parallel.pipeline=2", "parallel.stage_layers=[1,3]");
    g_assert_cmpfloat_with_epsilon(step_s(one), 48, 0.1);
    g_assert_cmpfloat_with_epsilon(step_s(two), 27, 0.1);
    /* stages of 1 and 5 s: 8 x 5, and 1 s around the first and last of them */
    g_assert_cmpfloat_with_epsilon(step_s(uneven), 41, 0.1);
    g_assert_cmpfloat(part_s(two, SIM_PART_PIPELINE_COMM), >, 0);
}

/* 1F1B sends 4e6 B of the third layer forward and as much back, 8 times; 8e6 B where the second layer ends the stage. */
static void test_boundary(void)
{
    g_autoptr(Asked) narrow = run("parallel.pipeline=2", "parallel.stage_layers=[3,1]");
    g_autoptr(Asked) wide = run("parallel.pipeline=2", "parallel.stage_layers=[2,2]");
    g_assert_cmpint(narrow->report.plan.stages[0].send_next.scale_up_bytes, ==, 4000000);
    g_assert_cmpint(narrow->report.plan.stages[1].send_prev.scale_up_bytes, ==, 4000000);
    g_assert_cmpint(wide->report.plan.stages[0].send_next.scale_up_bytes, ==, 8000000);
}

static void test_dealt(void)
{
    static const struct {
        int stages;
        int counts[4];
    } cases[] = {{1, {4}}, {2, {3, 1}}, {3, {2, 1, 1}}, {4, {1, 1, 1, 1}}};
    g_autoptr(Asked) one = run("cluster.gpus_per_node=1", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        int counts[4], sum = 0;
        spec_deal_list(&one->spec.model, cases[i].stages, counts);
        for (int stage = 0; stage < cases[i].stages; stage++)
            sum += counts[stage];
        g_assert_cmpint(sum, ==, 4);
        g_assert_cmpint(counts[cases[i].stages - 1], ==, cases[i].counts[cases[i].stages - 1]);
    }
}

/* Two ranks have half of every layer: half of the seconds, half of the weights. The second layer gathers 8e6 B and keeps
 * them whole, the third has two groups, the fourth gathers 4e6 B; the loss gathers 1e6 B. Backwards reduce 8e6 and 4e6 B. */
static void test_tensor(void)
{
    g_autoptr(Asked) one = run("cluster.gpus_per_node=1", NULL);
    g_autoptr(Asked) two = run("parallel.tensor=2", NULL);
    const SimStage *stage = &two->report.plan.stages[0];
    g_assert_cmpfloat_with_epsilon(part_s(two, SIM_PART_COMPUTE), 24, 0.01);
    g_assert_cmpint(stage->segments[0].forward.scale_up_bytes, ==, 0);
    g_assert_cmpint(stage->segments[1].forward.scale_up_bytes, ==, 4000000);
    g_assert_cmpint(stage->segments[1].backward_input.scale_up_bytes, ==, 4000000);
    g_assert_cmpint(stage->segments[2].forward.scale_up_bytes, ==, 0);
    g_assert_cmpint(stage->segments[3].forward.scale_up_bytes, ==, 2000000 + 500000);
    g_assert_cmpint(stage->segments[3].backward_input.scale_up_bytes, ==, 2000000);
    g_assert_cmpint(stage->segments[0].activation_bytes, ==, 4000000);
    g_assert_cmpint(stage->segments[1].activation_bytes, ==, 4000000 + 8000000);
    g_assert_cmpint(stage->segments[2].activation_bytes, ==, 4000000);
    g_assert_cmpint(stage->segments[3].activation_bytes, ==, 500000 + 4000000);
    g_assert_cmpint(two->report.plan.ranks[0].static_bytes[SIM_MEM_WEIGHTS], ==, 4000000000);
    g_assert_cmpint(one->report.plan.ranks[0].static_bytes[SIM_MEM_WEIGHTS], ==, 8000000000);
}

/* A list of FLOPs: a rank's product has half of the columns. */
static void test_tensor_flops(void)
{
    const char *const list = "model.layers=[{\"flops\":4e12,\"parameters\":16e6,\"activation_bytes\":1e6}]";
    g_autoptr(Asked) one = run("cluster.gpus_per_node=1", list);
    g_autoptr(Asked) two = run("parallel.tensor=2", list);
    const double ratio = part_s(one, SIM_PART_COMPUTE) / part_s(two, SIM_PART_COMPUTE);
    g_assert_cmpfloat(ratio, >, 1.8);
    g_assert_cmpfloat(ratio, <, 2.05);
}

/* All of it at once; ZeRO-3 holds less than ZeRO-2. */
static void test_together(void)
{
    const char *const all[] = {"cluster.gpus_per_node=8", "parallel.data=2", "parallel.tensor=2",
                               "parallel.pipeline=2",     "parallel.zero=1", NULL};
    const char *const shards[] = {"cluster.gpus_per_node=8", "parallel.data=8", "parallel.zero=2", NULL};
    const char *const units[] = {"cluster.gpus_per_node=8", "parallel.data=8", "parallel.zero=3", NULL};
    g_autoptr(Asked) together = ask(all);
    g_autoptr(Asked) zero2 = ask(shards);
    g_autoptr(Asked) zero3 = ask(units);
    g_assert_null(together->message);
    g_assert_null(zero2->message);
    g_assert_null(zero3->message);
    /* 4 micro-batches a replica through stages of 1.5 s: (4 + 1) x 1.5 */
    g_assert_cmpfloat_with_epsilon(step_s(together), 7.5, 0.1);
    g_assert_cmpfloat(zero3->report.peak_bytes, <, zero2->report.peak_bytes);
}

/* Two of six seconds a sample run again; a layer keeps what the one before put out, the first nothing. */
static void test_recompute(void)
{
    static const int64_t kept[] = {0, 8000000, 8000000, 4000000},
                         own[] = {8000000, 8000000, 8000000, 1000000};
    g_autoptr(Asked) none = run("cluster.gpus_per_node=1", NULL);
    g_autoptr(Asked) full = run("cluster.gpus_per_node=1", "training.recompute=full");
    g_autoptr(Asked) two = run("parallel.tensor=2", "training.recompute=full");
    const SimStage *stage = &full->report.plan.stages[0], *shared = &two->report.plan.stages[0];
    g_assert_cmpfloat_with_epsilon(part_s(full, SIM_PART_COMPUTE), 48, 0.01);
    g_assert_cmpfloat_with_epsilon(part_s(full, SIM_PART_RECOMPUTE), 16, 0.01);
    g_assert_cmpfloat_with_epsilon(step_s(full) - step_s(none), 16, 0.01);
    for (int i = 0; i < 4; i++) {
        g_assert_cmpint(stage->segments[i].activation_bytes, ==, kept[i]);
        g_assert_cmpint(stage->segments[i].backward_temp_bytes, ==, own[i]);
        g_assert_cmpint(shared->segments[i].activation_bytes, ==, kept[i] / 2);
    }
    static const char *const flops[] = {
        "cluster.gpus_per_node=1", "training.recompute=full",
        "model.layers=[{\"flops\":4e12,\"parameters\":16e6,\"activation_bytes\":1e6}]", NULL};
    g_autoptr(Asked) counted = ask(flops);
    g_assert_cmpfloat_with_epsilon(counted->report.hfu / counted->report.mfu, 4.0 / 3, 1e-9);
    /* the second layer gathers its input again */
    g_assert_cmpint(shared->segments[1].recompute.scale_up_bytes, ==, 4000000);
}

static void test_refused(void)
{
    static const struct {
        const char *set, *set2, *expect;
    } cases[] = {
        {"parallel.context=2", NULL, "no sequences to split"},
        {"parallel.expert=2", "parallel.data=2", "expert"},
        {"parallel.tensor=2", "parallel.sequence_parallel=true", "give false"},
        {"parallel.tensor=2", "parallel.tensor_scheme=2d", "give \"1d\""},
        {"parallel.pipeline=2", "parallel.stage_layers=[4,0]", "stage 1 has no layer"},
        {"parallel.pipeline=2", "parallel.first_stage_layers=4", "stage 1 has no layer"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const sets[] = {cases[i].set, cases[i].set2, NULL};
        g_autoptr(Asked) asked = ask(sets);
        if (asked->message == NULL || strstr(asked->message, cases[i].expect) == NULL)
            g_error("case %u: \"%s\" lacks \"%s\"", i, asked->message, cases[i].expect);
    }
}

/* Nothing bounds the steps of a list: a sweep tries its fields. */
static void test_searched(void)
{
    g_autoptr(Asked) one = run("cluster.gpus_per_node=1", NULL);
    g_autofree Spec *chosen = g_new0(Spec, 1);
    g_autoptr(GError) error = NULL;
    one->spec.execution.attention = (SpecAttention)SPEC_AUTO;
    g_assert_false(search_choose(&one->spec, chosen, &error));
    g_assert_nonnull(strstr(error->message, "or vary them: orrery sweep FILE --vary"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layer-list/pipeline", test_pipeline);
    g_test_add_func("/layer-list/boundary", test_boundary);
    g_test_add_func("/layer-list/dealt", test_dealt);
    g_test_add_func("/layer-list/tensor", test_tensor);
    g_test_add_func("/layer-list/tensor-flops", test_tensor_flops);
    g_test_add_func("/layer-list/together", test_together);
    g_test_add_func("/layer-list/recompute", test_recompute);
    g_test_add_func("/layer-list/refused", test_refused);
    g_test_add_func("/layer-list/searched", test_searched);
    return g_test_run();
}
