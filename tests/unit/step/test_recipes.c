/* tests/unit/step/test_recipes.c - what a framework's recipes switch on: the LM head's weight gradients at the end
 * of a pipeline, overlaps that a scenario does not name, and where none of it applies. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "step/step.h"
#include "tests/unit/sim_fixture.h"

/* Two equal stages of 1F1B, the last with `head` more in every backward, `deferred` of which wait:
 *   F + m (F + A) + (m - d) h + max(A, d h)   for the last stage as the slowest */
static void closed_form(void)
{
    enum { F = 20, A = 40, M = 6, HELD = 7 };
    for (int deferred = 0; deferred <= M; deferred++)
        for (int64_t head = 1; head < 25; head += 3) {
            OrrArena *arena = orr_arena_new();
            SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 2, 1, M, 0, F, A, 0, 0, 0});
            plan.stages[1].segments[0].backward_weight = fixture_work(SIM_PART_COMPUTE, head);
            plan.head_left_out = plan.head_later = fixture_work(SIM_PART_COMPUTE, head);
            plan.deferred_heads = deferred;
            plan.head_held_bytes = HELD;
            const SimResult result = fixture_run(&plan, false, arena, NULL);
            g_assert_cmpint(result.step_ps, ==,
                            F + M * (F + A) + (M - deferred) * head + MAX(A, deferred * head));
            g_assert_cmpint(result.rank[1].peak_bytes, ==,
                            MAX(deferred * HELD, 1 + MIN(deferred, M - 1) * HELD));
            orr_arena_free(arena);
        }
}

/* The bucket with the head's gradient is reduced behind it, the others beside the last backward. */
static void reduction(void)
{
    enum { F = 20, A = 40, M = 4, HEAD = 30, REDUCE = 11 };
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 2, 1, M, 0, F, A, 0, 0, 0});
    plan.stages[1].segments[0].backward_weight = fixture_work(SIM_PART_COMPUTE, HEAD);
    plan.stages[1].segments[0].grad_reduce = fixture_work(SIM_PART_DATA_COMM, REDUCE);
    plan.overlap_grad_reduce = true;
    plan.zero = 1;
    plan.head_left_out = plan.head_later = fixture_work(SIM_PART_COMPUTE, HEAD);
    plan.deferred_heads = M;
    g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, F + M * (F + A) + M * HEAD + REDUCE);
    orr_arena_free(arena);
}

static Spec *load(const char *const *sets, OrrArena *arena)
{
    static const char text[] =
        "{\"model\":{\"layers\":16,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,\"vocab\":128000},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"micro_batch\":1,\"precision\":\"bf16\"}"
        ","
        "\"parallel\":{\"tensor\":4,\"sequence_parallel\":true,\"pipeline\":4,\"zero\":1},"
        "\"execution\":{\"framework\":\"megatron-core\",\"overlap\":[\"grad_reduce\",\"param_gather\"]}}";
    GError *error = NULL;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

/* Where recipes are followed and where they are not. */
static void applies(void)
{
    static const struct {
        const char *sets[3];
        unsigned overlap; /* besides grad_reduce and param_gather as given */
        int deferred;
    } CASES[] = {
        {{NULL}, SPEC_OVERLAP_TENSOR, 8},
        {{"parallel.virtual_stages=2", "parallel.schedule=interleaved"},
         SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_PIPELINE,
         8},
        {{"execution.overlap=[\"grad_reduce\"]"}, 0, 0},
        {{"execution.overlap=[]"}, 0, 0},
        {{"parallel.sequence_parallel=false"}, 0, 8},
        {{"parallel.tensor=1"}, 0, 8},
        {{"cluster.accelerator=a100-sxm4-80gb"}, 0, 8},
        {{"cluster=gb200-nvl72", "cluster.nodes=8"}, 0, 8},
        {{"parallel.pipeline=1"}, SPEC_OVERLAP_TENSOR, 0},
        {{"parallel.schedule=gpipe"}, SPEC_OVERLAP_TENSOR, 0},
        {{"parallel.zero=2"}, SPEC_OVERLAP_TENSOR, 0},
        {{"execution.framework=megatron-core-2023"}, 0, 8},
        {{"execution.framework=megatron-lm-2024"}, 0, 0},
        {{"execution.framework.pipeline.deferred_head_gradients=5"}, SPEC_OVERLAP_TENSOR, 5},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SimPlan plan;
        const Spec *spec = load(CASES[i].sets, arena);
        g_test_message("%s", CASES[i].sets[0] != NULL ? CASES[i].sets[0] : "as it is");
        g_assert_cmpuint(spec_overlap(spec), ==, spec->execution.overlap | CASES[i].overlap);
        sim_step_plan(spec, arena, &plan, &error);
        g_assert_no_error(error);
        const int microbatches = spec_microbatches(spec);
        g_assert_cmpint(plan.deferred_heads, ==,
                        CASES[i].deferred == 8 ? MIN(22, microbatches) : CASES[i].deferred);
        orr_arena_free(arena);
    }
}

/* A head's input that is split over tensor ranks is gathered again for what comes later; a whole one is there. Either way
 * the backward that goes before reduces the input's gradient. */
static void gathered_later(void)
{
    for (int split = 0; split < 2; split++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SimPlan plan;
        const char *const sets[] = {
            split ? "parallel.sequence_parallel=true" : "parallel.sequence_parallel=false", NULL};
        sim_step_plan(load(sets, arena), arena, &plan, &error);
        g_assert_no_error(error);
        g_assert_cmpint(plan.head_later.part_ps[SIM_PART_COMPUTE], >, 0);
        g_assert_true((plan.head_later.scale_up_bytes > 0) == split);
        if (!split)
            g_assert_cmpint(plan.head_later.part_ps[SIM_PART_TENSOR_COMM], ==, 0);
        g_assert_cmpint(plan.head_left_out.part_ps[SIM_PART_TENSOR_COMM], <, 0);
        orr_arena_free(arena);
    }
}

/* A large vocabulary: the last stage is the slowest, so the step gets shorter, for memory. */
static void scenario(void)
{
    const ReportOptions options = {.check = true};
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report at_once, later;
    report_run(
        load((const char *const[]){"execution.framework.pipeline.deferred_head_gradients=0", NULL}, arena),
        NULL, &options, arena, &at_once, &error);
    g_assert_no_error(error);
    report_run(load((const char *const[]){NULL}, arena), NULL, &options, arena, &later, &error);
    g_assert_no_error(error);
    g_assert_cmpint(later.step_ps, <, at_once.step_ps);
    g_assert_cmpint(later.step_ps, >, at_once.step_ps * 85 / 100);
    g_assert_cmpfloat(later.stages[3].peak_bytes, >, at_once.stages[3].peak_bytes);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recipes/closed-form", closed_form);
    g_test_add_func("/recipes/reduction", reduction);
    g_test_add_func("/recipes/applies", applies);
    g_test_add_func("/recipes/gathered-later", gathered_later);
    g_test_add_func("/recipes/scenario", scenario);
    return g_test_run();
}
