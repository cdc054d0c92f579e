/* unit/workload/test_explain.c - a loop explained: without each phase, and changes that are asked as a user would ask them;
 * and a loop lived through: its step, its GPUs, what it saves. */
#include <math.h>
#include <string.h>

#include "campaign/campaign.h"
#include "answer/answer.h"
#include "workload/explain.h"
#include "workload/lived.h"

static const char scenario[] =
    "{\"model\":\"qwen2.5-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"parallel\":{\"zero\":3},"
    "\"training\":{"
    "\"recompute\":\"full\",\"sequence_length\":4096,\"global_batch\":16},\"execution\":{\"framework\":"
    "\"transformers-fsdp\"},\"workload\":{\"preset\":\"grpo\",\"generation\":{\"prompts\":256,\"samples_per_"
    "prompt\":8,"
    "\"prompt_tokens\":200,\"answer_tokens\":{\"mean\":900,\"log_sd\":0.6,\"max\":4000}},\"mini_batches\":4,"
    "\"micro_batch_tokens\":16384,\"steps\":1000,\"roles\":{\"rollout\":{\"offloaded\":true,\"host_memory\":"
    "\"fresh\","
    "\"parallel\":{\"tensor\":2}}}}}";

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

/* In turn on the same GPUs: without a phase the step is shorter by just that. */
static void test_without(void)
{
    Asked *asked = ask(NULL);
    WorkloadExplanation explanation;
    workload_explain(&asked->workload, &asked->source, asked->arena, &explanation);
    for (int k = 0; k < asked->workload.phase_count; k++)
        g_assert_cmpint(explanation.without_ps[k], ==, asked->workload.step_ps - asked->workload.phase[k].ps);
    g_assert_cmpint(explanation.even_ps, >, 0);
    g_assert_cmpint(explanation.even_ps, <, asked->workload.step_ps);
    asked_free(asked);
}

/* Each change is what a user gets with that --set, and they come in order. */
static void test_changes(void)
{
    Asked *asked = ask(NULL);
    WorkloadExplanation explanation;
    bool kept = false, tensor = false;
    workload_explain(&asked->workload, &asked->source, asked->arena, &explanation);
    g_assert_cmpint(explanation.count, >=, 6);
    for (int i = 0; i < explanation.count; i++) {
        const WorkloadChange *change = &explanation.change[i];
        g_auto(GStrv) sets = g_strsplit(change->set, " ", 2);
        Asked *again = ask((const char *const *)sets);
        g_assert_cmpint(again->workload.step_ps, ==, change->step_ps);
        g_assert_cmpint(again->workload.fits, ==, change->fits);
        asked_free(again);
        g_assert_true(i == 0 || explanation.change[i - 1].step_ps <= change->step_ps);
        kept = kept || strcmp(change->set, "workload.roles.rollout.host_memory=kept") == 0;
        tensor = tensor || strcmp(change->set, "workload.roles.rollout.parallel.tensor=4") == 0;
    }
    g_assert_true(kept && tensor);
    asked_free(asked);
}

static const char *const faults[] = {
    "faults={\"gpu_mtbf_s\":5e5,\"detection_s\":60,\"checkpoint\":{\"mode\":\"sync\"}}",
    "storage={\"write_bytes_per_s\":1e13,\"read_bytes_per_s\":1e13}", NULL};

static void test_lived(void)
{
    GError *error = NULL;
    Asked *asked = ask(faults);
    Spec *spec = g_new0(Spec, 1);
    Report training, report;
    Campaign campaign;
    const AnswerAsk how = {.run = {.record = 0}};
    const CampaignOptions options = {.replicas = 50, .seed = 1, .crew = {.threads = 1}};
    answer_ask(asked->spec, NULL, &how, asked->arena, &training, &error);
    g_assert_no_error(error);
    g_assert_true(workload_lived(&asked->workload, &training, 0, spec, &report, &error));
    campaign_run(&report, "loop", &options, &campaign, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat_with_epsilon(campaign.ideal_s, 1000 * (double)asked->workload.step_ps * 1e-12, 1);
    g_assert_cmpfloat_with_epsilon(campaign.run.rates.mtbf_s, 5e5 / asked->workload.gpus, 1);
    g_assert_cmpfloat(campaign.days.mean, >, campaign.ideal_s / 86400);
    g_assert_cmpfloat_with_epsilon(campaign.checkpoint_bytes,
                                   campaign_checkpoint_bytes(spec, training.trained_parameters), 1);
    g_assert_cmpfloat(campaign.best_interval_s, <, (double)report.step_ps * 1e-12);
    g_assert_cmpfloat(campaign.interval_s, ==, (double)report.step_ps * 1e-12); /* never within a step */
    spec->faults.elastic = true;
    asked->spec->faults.elastic = true;
    g_assert_false(workload_lived(&asked->workload, &training, 0, spec, &report, &error));
    g_assert_nonnull(strstr(error->message, "faults.elastic"));
    g_clear_error(&error);
    g_free(spec);
    asked_free(asked);
}

/* Nodes apart fail too, and a critic is saved with the actor. */
static void test_lived_parts(void)
{
    const char *const sets[] = {"workload.preset=ppo", "workload.roles.rollout.nodes=3", faults[0], faults[1],
                                NULL};
    GError *error = NULL;
    Asked *asked = ask(sets);
    Spec *spec = g_new0(Spec, 1);
    Report training, report;
    const AnswerAsk how = {.run = {.record = 0}};
    answer_ask(asked->spec, NULL, &how, asked->arena, &training, &error);
    g_assert_no_error(error);
    g_assert_true(workload_lived(&asked->workload, &training, 0, spec, &report, &error));
    g_assert_cmpint(spec->cluster.nodes, ==, 5);
    g_assert_cmpint(report.gpus, ==, 40);
    g_assert_cmpfloat(report.trained_parameters, >, 1.8 * training.trained_parameters);
    g_free(spec);
    asked_free(asked);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/explain/without", test_without);
    g_test_add_func("/explain/changes", test_changes);
    g_test_add_func("/lived/campaign", test_lived);
    g_test_add_func("/lived/parts", test_lived_parts);
    return g_test_run();
}
