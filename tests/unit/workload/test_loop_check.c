/* unit/workload/test_loop_check.c - answered loops hold what they promise; each promise fails where its term is another. */
#include <math.h>
#include <string.h>

#include "workload/check.h"

static const char scenario[] =
    "{\"model\":\"qwen2.5-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2,\"usd_per_gpu_hour\":2},"
    "\"parallel\":{"
    "\"zero\":3},\"training\":{\"recompute\":\"full\"},\"execution\":{\"framework\":\"transformers-fsdp\"},"
    "\"workload\":{"
    "\"preset\":\"grpo\",\"generation\":{\"prompts\":256,\"samples_per_prompt\":8,\"prompt_tokens\":200,"
    "\"answer_tokens\":{\"mean\":900,\"log_sd\":0.6,\"max\":4000}},\"mini_batches\":4,\"micro_batch_tokens\":"
    "16384,"
    "\"steps\":100,\"roles\":{\"rollout\":{\"nodes\":1,\"parallel\":{\"tensor\":2}}}}}";

typedef struct Asked {
    Spec *spec;
    SpecSource source;
    OrrArena *arena;
    Workload workload;
} Asked;

static Asked *ask(const char *const *sets)
{
    GError *error = NULL;
    Asked *asked = g_new0(Asked, 1);
    const WorkloadAsk how = {.check = true};
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "loop", &error);
    asked->spec = g_new0(Spec, 1);
    asked->arena = orr_arena_new();
    spec_load_json(orr_json_root(doc), "loop", sets, false, asked->spec, &asked->source, &error);
    g_assert_no_error(error);
    workload_ask(asked->spec, &asked->source, &how, asked->arena, &asked->workload, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return asked;
}

static void asked_free(Asked *asked)
{
    spec_source_clear(&asked->source);
    orr_arena_free(asked->arena);
    g_free(asked->spec);
    g_free(asked);
}

/* Presets, parts, staleness: all are checked as they are asked. */
static void test_holds(void)
{
    static const char *const ways[][3] = {
        {NULL},
        {"workload.staleness_steps=2", NULL},
        {"workload.staleness_steps=1", "workload.in_flight=true", NULL},
        {"workload.preset=ppo", NULL},
        {"workload.roles={\"rollout\":{\"offloaded\":true,\"host_memory\":\"fresh\"}}",
         "workload.preset=dapo", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ways); i++)
        asked_free(ask(ways[i]));
}

static WorkloadPhase *phase(Workload *workload, SpecPhaseKind kind)
{
    for (int i = 0; i < workload->phase_count; i++)
        if (workload->phase[i].phase->kind == kind)
            return &workload->phase[i];
    g_assert_not_reached();
}

/* Shortens a phase and what follows from it, so that its own floor alone can notice. */
static void quicken(Workload *workload, SpecPhaseKind kind)
{
    WorkloadPhase *own = phase(workload, kind);
    const int64_t less_ps = own->ps - 1000;
    own->ps -= less_ps;
    workload->step_ps -= less_ps;
    workload->part[own->part].busy_ps -= less_ps;
    if (own->other >= 0 && own->other != own->part)
        workload->part[own->other].busy_ps -= less_ps;
    if (!isnan(own->tail_s))
        own->tail_s = 0;
}

static void mutate_order(Workload *workload, int way)
{
    switch (way) {
    case 17:
        phase(workload, SPEC_PHASE_TRAIN)->begin_ps -= 1000;
        break;
    case 18:
        workload->weights_age++;
        break;
    case 19: /* GPUs that wait where nothing holds them up */
        phase(workload, SPEC_PHASE_SYNC)->begin_ps += 1000;
        break;
    case 20:
        phase(workload, SPEC_PHASE_TRAIN)->tokens *= 0.9;
        break;
    case 21:
        phase(workload, SPEC_PHASE_FORWARD)->microbatches *= 4;
        break;
    default:
        phase(workload, SPEC_PHASE_SYNC)->bytes *= 2;
        break;
    }
}

static void mutate(Workload *workload, int way)
{
    switch (way) {
    case 0:
        workload->step_ps++;
        break;
    case 1:
        workload->phase[workload->phase_count - 1].ps += 1000;
        break;
    case 2:
        workload->part[0].busy_ps -= 5;
        break;
    case 3:
        quicken(workload, SPEC_PHASE_TRAIN);
        break;
    case 4:
        quicken(workload, SPEC_PHASE_FORWARD);
        break;
    case 5:
        quicken(workload, SPEC_PHASE_GENERATE);
        break;
    case 6:
        quicken(workload, SPEC_PHASE_SYNC);
        break;
    case 7:
        phase(workload, SPEC_PHASE_GENERATE)->tail_s = 1e6;
        break;
    case 8:
        workload->tokens_per_s *= 1.01;
        break;
    case 9:
        workload->tokens_per_s_per_gpu *= 1.01;
        break;
    case 10:
        workload->gpus += 8;
        break;
    case 11:
        workload->sequences++;
        break;
    case 12:
        workload->busiest_frac = 0.9;
        break;
    case 13:
        workload->days *= 2;
        break;
    case 14:
        workload->gpu_hours *= 2;
        break;
    case 15:
        workload->role[spec_role_index(&workload->spec->workload, "reference")].resting_bytes = 1e15;
        break;
    case 16:
        workload->role[spec_role_index(&workload->spec->workload, "actor")].needed_bytes = 1e13;
        workload->fits = true;
        break;
    default:
        mutate_order(workload, way);
        break;
    }
}

static void test_mutated(void)
{
    enum { WAYS = 23 };
    for (int way = 0; way < WAYS; way++) {
        GError *error = NULL;
        Asked *asked = ask(NULL);
        mutate(&asked->workload, way);
        g_test_message("mutation %d", way);
        g_assert_false(workload_check(&asked->workload, &error));
        g_assert_nonnull(error);
        g_clear_error(&error);
        asked_free(asked);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/check/holds", test_holds);
    g_test_add_func("/check/mutated", test_mutated);
    return g_test_run();
}
