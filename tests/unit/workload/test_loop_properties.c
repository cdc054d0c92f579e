/* unit/workload/test_loop_properties.c - what no loop may get wrong, over drawn ones: more or faster GPUs never take longer to
 * write answers, no staleness is the sum of a turn, equal answers have no tail, and what is trained on is what was generated. */
#include <math.h>
#include <string.h>

#include "base/draws.h"
#include "tests/unit/draws.h"
#include "workload/workload.h"

typedef struct Drawn {
    int nodes, rollout_nodes, prompts, samples, staleness, mini_batches, tensor;
    double mean, log_sd, hbm_frac;
    bool apart;
} Drawn;

static Drawn draw(OrrLcg *rng)
{
    static const int tensors[] = {1, 2, 4};
    return (Drawn){.nodes = 1 << orr_lcg_below(rng, 2),
                   .rollout_nodes = 1 + orr_lcg_below(rng, 3),
                   .prompts = 32 << orr_lcg_below(rng, 4),
                   .samples = 2 << orr_lcg_below(rng, 3),
                   .staleness = orr_lcg_below(rng, 3),
                   .mini_batches = 1 + orr_lcg_below(rng, 2),
                   .tensor = tensors[orr_lcg_below(rng, 3)],
                   .mean = 100 + orr_lcg_below(rng, 2000),
                   .log_sd = orr_lcg_below(rng, 2) == 0 ? 0 : 0.6,
                   .hbm_frac = 1,
                   .apart = orr_lcg_below(rng, 2) == 0};
}

static OrrJsonDoc *scenario_of(const Drawn *drawn)
{
    g_autofree char *nodes =
        drawn->apart ? g_strdup_printf("\"nodes\":%d,", drawn->rollout_nodes) : g_strdup("");
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"qwen2.5-7b\",\"cluster\":{\"accelerator\":{\"preset\":\"h100-sxm5-80gb\",\"memory_"
        "bytes_per_s\":%.17g},"
        "\"gpus_per_node\":8,\"nodes\":%d},\"parallel\":{\"zero\":3},\"training\":{\"recompute\":\"full\"},"
        "\"execution\":{\"framework\":\"transformers-fsdp\"},\"workload\":{\"preset\":\"grpo\",\"staleness_"
        "steps\":%d,"
        "\"mini_batches\":%d,\"micro_batch_tokens\":16384,\"generation\":{\"prompts\":%d,\"samples_per_"
        "prompt\":%d,"
        "\"prompt_tokens\":200,\"answer_tokens\":{\"mean\":%g,\"log_sd\":%g,\"max\":8000}},"
        "\"roles\":{\"rollout\":{%s\"parallel\":{\"tensor\":%d}}}}}",
        3.35e12 * drawn->hbm_frac, drawn->nodes, drawn->apart ? drawn->staleness : 0, drawn->mini_batches,
        drawn->prompts, drawn->samples, drawn->mean, drawn->log_sd, nodes, drawn->tensor);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "drawn", &error);
    g_assert_no_error(error);
    return doc;
}

static Workload ask(const Drawn *drawn, OrrArena *arena)
{
    GError *error = NULL;
    const WorkloadAsk how = {.check = true};
    SpecSource source = {0};
    Workload workload;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = scenario_of(drawn);
    spec_load_json(orr_json_root(doc), "drawn", NULL, false, spec, &source, &error);
    g_assert_no_error(error);
    workload_ask(spec, &source, &how, arena, &workload, &error);
    g_assert_no_error(error);
    spec_source_clear(&source);
    orr_json_free(doc);
    return workload;
}

static int64_t generation_ps(const Workload *workload)
{
    int64_t ps = 0;
    for (int i = 0; i < workload->phase_count; i++)
        ps += workload->phase[i].phase->kind == SPEC_PHASE_GENERATE ? workload->phase[i].ps : 0;
    return ps;
}

static void test_faster_memory(void)
{
    OrrLcg rng = {11};
    for (int i = 0; i < DRAWS(40); i++) {
        OrrArena *arena = orr_arena_new();
        Drawn drawn = draw(&rng);
        const Workload before = ask(&drawn, arena);
        drawn.hbm_frac = 1.5;
        const Workload after = ask(&drawn, arena);
        g_assert_cmpint(generation_ps(&after), <=, generation_ps(&before));
        g_assert_cmpint(after.step_ps, <=, before.step_ps);
        orr_arena_free(arena);
    }
}

/* Twice as many nodes that write: each replica has half as many answers. Unequal ones are dealt anew, so that a replica may get
 * longer ones; equal ones are not. */
static void test_more_writers(void)
{
    OrrLcg rng = {12};
    for (int i = 0; i < DRAWS(40); i++) {
        OrrArena *arena = orr_arena_new();
        Drawn drawn = draw(&rng);
        drawn.apart = true;
        drawn.log_sd = 0;
        const Workload before = ask(&drawn, arena);
        drawn.rollout_nodes *= 2;
        const Workload after = ask(&drawn, arena);
        g_assert_cmpint(generation_ps(&after), <=, generation_ps(&before));
        orr_arena_free(arena);
    }
}

static void test_no_staleness(void)
{
    OrrLcg rng = {13};
    for (int i = 0; i < DRAWS(40); i++) {
        OrrArena *arena = orr_arena_new();
        Drawn drawn = draw(&rng);
        drawn.apart = true;
        const Workload ahead = ask(&drawn, arena);
        drawn.staleness = 0;
        const Workload synchronous = ask(&drawn, arena);
        int64_t end_ps = 0;
        for (int k = 0; k < synchronous.phase_count; k++)
            end_ps = MAX(end_ps, synchronous.phase[k].begin_ps + synchronous.phase[k].ps);
        g_assert_cmpint(synchronous.step_ps, ==, end_ps);
        g_assert_cmpint(synchronous.weights_age, ==, 0);
        g_assert_cmpint(ahead.step_ps, <=, synchronous.step_ps);
        orr_arena_free(arena);
    }
}

static void test_equal_answers(void)
{
    OrrLcg rng = {14};
    for (int i = 0; i < DRAWS(40); i++) {
        OrrArena *arena = orr_arena_new();
        Drawn drawn = draw(&rng);
        drawn.log_sd = 0;
        drawn.prompts = 32 * (1 + orr_lcg_below(&rng, 2)); /* as many for each replica, all at once */
        drawn.samples = drawn.apart ? 8 * drawn.rollout_nodes : 8;
        drawn.mean = 100 + orr_lcg_below(&rng, 400);
        const Workload workload = ask(&drawn, arena);
        g_assert_cmpfloat(workload.busiest_frac, ==, 1);
        for (int k = 0; k < workload.phase_count; k++)
            if (!isnan(workload.phase[k].tail_s))
                g_assert_cmpfloat(workload.phase[k].tail_s, <=, 1e-9 * (double)workload.phase[k].ps * 1e-12);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/properties/faster-memory", test_faster_memory);
    g_test_add_func("/properties/more-writers", test_more_writers);
    g_test_add_func("/properties/no-staleness", test_no_staleness);
    g_test_add_func("/properties/equal-answers", test_equal_answers);
    return g_test_run();
}
