/* unit/step/test_pieces.c - pieces of a model add up to the stages of a plan: what the search sums is what a run takes. Steps
 * have two micro-batches, as more of them add to a gradient more often. */
#include <string.h>

#include "base/file.h"
#include "spec/load.h"
#include "step/pieces.h"
#include "step/step.h"

#define MOST_SETS 9

static void load(const char *name, const char *const *sets, Spec *ret_spec)
{
    g_autofree char *folder = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = g_build_filename(folder, "examples", file, NULL);
    GError *error = NULL;
    spec_load_file(path, sets, false, ret_spec, NULL, &error);
    g_assert_no_error(error);
}

typedef struct Sums {
    int64_t forward_ps, input_ps, weight_ps, again_ps, kept_bytes;
} Sums;

static void add_piece(Sums *sums, const StepPiece *piece)
{
    sums->forward_ps += piece->forward_ps;
    sums->input_ps += piece->input_ps;
    sums->weight_ps += piece->weight_ps;
    sums->again_ps += piece->again_ps;
    sums->kept_bytes += piece->kept_bytes;
}

static Sums sums_of_stage(const SimStage *stage)
{
    Sums sums = {0};
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        sums.forward_ps += sim_work_duration_ps(&segment->forward);
        sums.input_ps += sim_work_duration_ps(&segment->backward_input);
        sums.weight_ps += sim_work_duration_ps(&segment->backward_weight);
        sums.again_ps += sim_work_duration_ps(&segment->recompute);
        sums.kept_bytes += segment->activation_bytes;
    }
    return sums;
}

typedef struct Case {
    const char *name, *sets[MOST_SETS];
} Case;

/* Layers of a stage, its ends, and what is the stage's own: bookkeeping of both passes, what it passes on. */
static void check_case(const Case *one)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    StepPieces pieces;
    SimPlan plan;
    GError *error = NULL;
    load(one->name, one->sets, spec);
    spec->cluster.accelerator.speed_spread_frac = 0; /* the slowest of more GPUs is slower */
    spec->execution.framework.data_parallel.reduce_each_microbatch = false;
    sim_step_plan(spec, arena, &plan, &error);
    g_assert_no_error(error);
    step_pieces(spec, step_order_is_alike(spec->parallel.order), spec_microbatches(spec) > 1, arena, &pieces);
    int layer = 0;
    for (int s = 0; s < plan.shape.ranks; s++) {
        const SimStage *stage = &plan.stages[s];
        const bool last = s + 1 == plan.shape.ranks;
        int layers = stage->segment_count - (s == 0) - (last ? pieces.last.segments : 0);
        Sums want = {0};
        for (; layers > 0; layers--)
            add_piece(&want, &pieces.layer[layer++]);
        if (s == 0)
            add_piece(&want, &pieces.first);
        if (last)
            add_piece(&want, &pieces.last);
        const Sums got = sums_of_stage(stage);
        g_test_message("%s, stage %d of %d", one->name, s, plan.shape.ranks);
        g_assert_cmpint(got.forward_ps, ==, want.forward_ps + pieces.overhead_ps + stage->forward_check_ps);
        g_assert_cmpint(got.input_ps, ==, want.input_ps + pieces.overhead_ps + stage->backward_check_ps);
        g_assert_cmpint(got.weight_ps, ==, want.weight_ps);
        g_assert_cmpint(got.again_ps, ==, want.again_ps);
        g_assert_cmpint(got.kept_bytes, ==, want.kept_bytes + stage->passed_bytes);
    }
    g_assert_cmpint(layer, ==, spec->model.layers);
    orr_arena_free(arena);
}

static void test_add_up(void)
{
    static const Case cases[] = {
        {"gpt3-175b",
         {"parallel.zero=0", "training.global_batch=32",
          "execution.framework.host.microbatch_overhead_s=1e-3", NULL}},
        {"gpt3-175b",
         {"parallel.zero=0", "training.global_batch=64", "parallel.pipeline=4", "parallel.virtual_stages=1",
          "parallel.data=32", "parallel.schedule=1f1b", "training.recompute=full", NULL}},
        {"gpt3-175b",
         {"parallel.zero=0", "training.global_batch=32", "execution.framework=megatron-lm-2023",
          "training.recompute=none", NULL}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        check_case(&cases[i]);
}

/* What a table holds for: a host that waits for messages makes passes of pipelines longer, and a tied table one more. */
static void test_follows(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    load("gpt3-175b", (const char *const[]){NULL}, spec);
    spec->model.tied_embeddings = false;
    g_assert_false(step_pieces_follow_pipeline(spec));
    g_assert_false(step_pieces_follow_recompute(spec));
    spec->execution.framework.pipeline.p2p_host_s = 1e-5;
    g_assert_true(step_pieces_follow_pipeline(spec));
    spec->execution.framework.pipeline.p2p_host_s = 0;
    spec->model.tied_embeddings = true;
    g_assert_true(step_pieces_follow_pipeline(spec));
    spec->execution.framework.kernels.norm = SPEC_NORM_KERNEL_COPY;
    g_assert_true(step_pieces_follow_recompute(spec));
}

/* Software that reduces after every micro-batch adds to a gradient at ZeRO 0 and copies one at ZeRO 2: each time is the less. */
static void test_least_of_stages(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    StepPieces each, once;
    load("gpt3-175b", (const char *const[]){"parallel.zero=0", NULL}, spec);
    spec->execution.framework.data_parallel.reduce_each_microbatch = true;
    step_pieces(spec, true, true, arena, &each);
    spec->execution.framework.data_parallel.reduce_each_microbatch = false;
    step_pieces(spec, true, true, arena, &once);
    for (int layer = 0; layer < spec->model.layers; layer++)
        g_assert_cmpint(each.layer[layer].weight_ps, <=, once.layer[layer].weight_ps);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pieces/add-up", test_add_up);
    g_test_add_func("/pieces/follows", test_follows);
    g_test_add_func("/pieces/least-of-stages", test_least_of_stages);
    return g_test_run();
}
