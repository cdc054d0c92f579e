/* Loops asked: closed forms of fixed lengths, rows of sequences, forwards of a pipeline, what is refused. */
#include <math.h>
#include <string.h>

#include "costmodel/context.h"
#include "workload/costs.h"
#include "workload/sequences.h"
#include "tests/unit/loop_fixture.h"

static void near_s(double seconds, double want)
{
    g_assert_cmpfloat_with_epsilon(seconds, want, 1e-9 + 1e-6 * want);
}

#define LOOP                                                                                                 \
    "{\"preset\":\"grpo\",\"mini_batches\":2,\"generation\":{\"prompts\":16,\"samples_per_prompt\":8,"       \
    "\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896},\"seconds\":12.5},"                              \
    "\"roles\":{\"rollout\":{\"parallel\":{\"tensor\":1}%s}}}"

/* Equal lengths on one part: the step is the sum of its phases, and nobody is busier than others. */
static void test_closed_form(void)
{
    g_autofree char *loop = g_strdup_printf(LOOP, "");
    Asked *asked = ask(loop, NULL);
    g_assert_no_error(asked->error);
    const Workload *workload = &asked->workload;
    int64_t sum_ps = 0;
    for (int i = 0; i < workload->phase_count; i++)
        sum_ps += workload->phase[i].ps;
    g_assert_cmpint(workload->step_ps, ==, sum_ps);
    g_assert_cmpint(workload->phase[0].ps, ==, 12500000000000);
    g_assert_cmpint(workload->gpus, ==, 16);
    g_assert_cmpint(workload->part_count, ==, 1);
    g_assert_cmpfloat(workload->busiest_frac, ==, 1);
    g_assert_cmpfloat(workload->longest_tokens, ==, 1024);
    /* 64 sequences on 8 replicas, two to a micro-batch; all 128 in forwards */
    g_assert_cmpint(workload->phase[4].microbatches, ==, 4);
    g_assert_cmpfloat(workload->phase[4].tokens, ==, 2048);
    g_assert_cmpint(workload->phase[4].steps, ==, 2);
    g_assert_cmpint(workload->phase[2].microbatches, ==, 8);
    g_assert_cmpstr(workload_bound_word(workload), ==, "generation");
    asked_free(asked);
}

/* Nodes of its own for who generates: with staleness 0 as long as the sum, a step ahead as long as the longer side. */
static void test_apart(void)
{
    g_autofree char *loop = g_strdup_printf(LOOP, ",\"nodes\":1");
    const char *const ahead[] = {"workload.staleness_steps=1", NULL};
    Asked *synchronous = ask(loop, NULL), *asynchronous = ask(loop, ahead);
    g_assert_no_error(synchronous->error);
    g_assert_no_error(asynchronous->error);
    const Workload *one = &synchronous->workload, *other = &asynchronous->workload;
    int64_t sum_ps = 0;
    for (int i = 0; i < one->phase_count; i++)
        sum_ps += one->phase[i].ps;
    g_assert_cmpint(one->step_ps, ==, sum_ps);
    g_assert_cmpint(one->part_count, ==, 2);
    g_assert_cmpint(one->gpus, ==, 24);
    const int64_t generation_ps = one->phase[0].ps, sync_ps = one->phase[5].ps;
    g_assert_cmpint(other->step_ps, ==, MAX(generation_ps, sum_ps - generation_ps - sync_ps) + sync_ps);
    g_assert_cmpint(sync_ps, >, 0);
    asked_free(synchronous);
    asked_free(asynchronous);
}

/* One stage: m (f_1 + ... + f_n). Several: the longest is what all others wait for. */
static void test_forward(void)
{
    SimSegment first[2] = {{.forward.part_ps = {100}}, {.forward.part_ps = {50}}}, second = first[0];
    second.forward.part_ps[0] = 300;
    SimStage stages[2] = {{.segment_count = 2, .segments = first}, {.segment_count = 1, .segments = &second}};
    stages[0].send_next.part_ps[SIM_PART_PIPELINE_COMM] = 7;
    SimPlan plan = {.schedule = sim_schedule_at(sim_schedule_index("1f1b")),
                    .shape = {.ranks = 1, .chunks = 1, .microbatches = 5},
                    .stages = stages};
    g_assert_cmpint(workload_forward_ps(&plan), ==, 5 * 150 + 7);
    plan.shape.ranks = 2;
    g_assert_cmpint(workload_forward_ps(&plan), ==, 150 + 7 + 5 * 300);
    plan.zero = 3;
    plan.prefetch_units = 1;
    first[0].param_gather.part_ps[0] = 40;
    first[1].param_gather.part_ps[0] = 120; /* 100 of it beside the first */
    plan.shape.ranks = 1;
    plan.shape.microbatches = 1;
    g_assert_cmpint(workload_forward_ps(&plan), ==, 40 + 120 + 50 + 7);
}

static void test_documents(void)
{
    g_assert_cmpfloat(sequences_document_tokens(1000, 500000), ==, 0);
    const double tokens = sequences_document_tokens(16384, 16 * 1024.0 * 1024 / 2);
    g_assert_cmpfloat(fabs(cost_document_pairs(16384, tokens) - 16 * 1024.0 * 1024 / 2), <, 1);
}

/* Longer tails make the longest longer, and whoever is dealt in turn busier than who is balanced. */
static void test_tail(void)
{
    static const char loop[] =
        "{\"preset\":\"grpo\",\"generation\":{\"prompts\":64,\"samples_per_prompt\":8,\"prompt_tokens\":128,"
        "\"answer_tokens\":{\"mean\":896,\"log_sd\":1,\"max\":6000},\"seconds\":1}}";
    const char *const dealt[] = {"workload.balanced=false", NULL};
    Asked *balanced = ask(loop, NULL), *in_turn = ask(loop, dealt);
    g_assert_no_error(balanced->error);
    g_assert_no_error(in_turn->error);
    g_assert_cmpfloat(balanced->workload.longest_tokens, >, 5000);
    g_assert_cmpfloat(balanced->workload.busiest_frac, <, 1.01);
    g_assert_cmpfloat(in_turn->workload.busiest_frac, >, 1.05);
    g_assert_cmpint(in_turn->workload.step_ps, >, balanced->workload.step_ps);
    asked_free(balanced);
    asked_free(in_turn);
}

#define PREDICTED                                                                                            \
    "{\"preset\":\"dapo\",\"generation\":{\"prompts\":64,\"samples_per_prompt\":8,\"prompt_tokens\":128,"    \
    "\"answer_tokens\":{\"mean\":896,\"max\":7000}},\"roles\":{\"rollout\":{\"nodes\":1,\"parallel\":{"      \
    "\"tensor\":1}}}}"

static int64_t generation_ps(const char *first, const char *second)
{
    const char *const sets[] = {first, second, NULL};
    Asked *asked = ask(PREDICTED, sets);
    g_assert_no_error(asked->error);
    const int64_t ps = asked->workload.phase[0].ps;
    asked_free(asked);
    return ps;
}

/* Equal lengths end together: no tail. A tail takes longer, a faster memory and more nodes never do. */
static void test_generation(void)
{
    static const char *const tailed[] = {"workload.generation.answer_tokens.log_sd=1", NULL};
    Asked *equal = ask(PREDICTED, NULL), *tail = ask(PREDICTED, tailed);
    g_assert_no_error(equal->error);
    g_assert_no_error(tail->error);
    g_assert_cmpfloat(equal->workload.phase[0].tail_s, ==, 0);
    g_assert_cmpfloat(tail->workload.phase[0].tail_s, >, 0);
    g_assert_cmpint(tail->workload.phase[0].ps, >, equal->workload.phase[0].ps);
    asked_free(equal);
    asked_free(tail);
    const int64_t plain_ps = generation_ps(NULL, NULL);
    g_assert_cmpint(generation_ps("cluster.accelerator.memory_bytes_per_s=4e12", NULL), <, plain_ps);
    g_assert_cmpint(generation_ps("workload.roles.rollout.nodes=2", NULL), <, plain_ps);
    g_assert_cmpint(generation_ps("workload.generation.samples_per_prompt=16", NULL), >, plain_ps);
    /* log-probabilities: of 64 answers on each of 8 GPUs, in each of 896 steps */
    const int64_t slow_ps = generation_ps(
                      "workload.roles.rollout.execution.framework={\"preset\":\"vllm\",\"engine\":{"
                      "\"logprob_host_s\":1e-3}}",
                      NULL),
                  fast_ps = generation_ps(
                      "workload.roles.rollout.execution.framework={\"preset\":\"vllm\",\"engine\":{"
                      "\"logprob_host_s\":0}}",
                      NULL);
    g_assert_cmpfloat_with_epsilon((double)(slow_ps - fast_ps) / 1e12, 896 * 64 * 1e-3, 1e-6);
    /* new prompts follow at once: no longer than a batch that ends */
    g_assert_cmpint(generation_ps("workload.staleness_steps=1", "workload.in_flight=true"), <=, plain_ps);
}

/* Weights of experts that nobody asks for are not read: a few answers take less than twice as many would. */
static void test_experts(void)
{
    const char *const set[] = {"model.moe={\"experts\":64,\"top_k\":2,\"expert_ffn_hidden\":2048}",
                               "workload.generation.prompts=16", "workload.generation.samples_per_prompt=1",
                               NULL};
    const char *const many[] = {set[0], "workload.generation.prompts=512",
                                "workload.generation.samples_per_prompt=1", NULL};
    Asked *few = ask(PREDICTED, set), *all = ask(PREDICTED, many);
    g_assert_no_error(few->error);
    g_assert_no_error(all->error);
    g_assert_cmpfloat((double)all->workload.phase[0].ps / (double)few->workload.phase[0].ps, >, 1.2);
    asked_free(few);
    asked_free(all);
}

/* Seconds of the phases of LOOP on 16 GPUs, with two keys set. */
static Asked *resting(const char *first, const char *second)
{
    g_autofree char *loop = g_strdup_printf(LOOP, "");
    const char *const sets[] = {first, second, NULL};
    Asked *asked = ask(loop, sets);
    g_assert_no_error(asked->error);
    return asked;
}

static double phase_s(const Asked *asked, int phase)
{
    return (double)asked->workload.phase[phase].ps * 1e-12;
}

/* What rests in fresh memory of the host takes bytes over both rates; what does not rest takes nothing for it. */
static void test_resting(void)
{
    Asked *plain = resting("workload.roles.actor.host_memory=fresh", NULL),
          *kept = resting("workload.roles.actor.offloaded=true", NULL),
          *fresh = resting("workload.roles.actor.offloaded=true", "workload.roles.actor.host_memory=fresh"),
          *reference = resting("workload.roles.reference.offloaded=true",
                               "workload.roles.reference.host_memory=fresh"),
          *none = resting(NULL, NULL);
    const double link = none->spec->cluster.accelerator.host_link_bytes_per_s,
                 update = none->workload.role[0].resting_bytes,
                 weights = none->workload.role[2].resting_bytes;
    g_assert_cmpint(plain->workload.step_ps, ==, none->workload.step_ps);
    g_assert_cmpfloat(update, >, weights);
    near_s(phase_s(kept, 4) - phase_s(none, 4), 2 * update / link);
    near_s(phase_s(fresh, 4) - phase_s(none, 4), update / 2.2e9 + update / 10.8e9);
    near_s(phase_s(kept, 2) - phase_s(none, 2), weights / link);
    near_s(phase_s(fresh, 2) - phase_s(none, 2), weights / 10.8e9); /* and stays for the update */
    near_s(phase_s(reference, 3) - phase_s(none, 3), weights / 2.2e9 + weights / 10.8e9);
    asked_free(plain);
    asked_free(kept);
    asked_free(fresh);
    asked_free(reference);
    asked_free(none);
}

/* Who has its GPUs alone does not move. */
static void test_alone(void)
{
    const int64_t plain_ps = generation_ps(NULL, NULL);
    g_assert_cmpint(
        generation_ps("workload.roles.rollout.offloaded=true", "workload.roles.rollout.host_memory=fresh"),
        ==, plain_ps);
}

/* 4 layers of 2 norms, 4 matrices of attention and 2 of the MLP, and 3 at the ends: 35 tensors. */
static void test_tensors(void)
{
    Asked *none = resting("workload.roles.rollout.execution.framework={\"preset\":\"vllm\",\"engine\":{"
                          "\"load_host_s\":0}}",
                          NULL),
          *slow = resting("workload.roles.rollout.execution.framework={\"preset\":\"vllm\",\"engine\":{"
                          "\"load_host_s\":0.1}}",
                          NULL);
    near_s(phase_s(slow, 5) - phase_s(none, 5), 3.5);
    asked_free(none);
    asked_free(slow);
}

/* The role's row of memory. */
static const WorkloadRole *role_named(const Asked *asked, const char *name)
{
    g_assert_no_error(asked->error);
    for (int i = 0; i < asked->spec->workload.role_count; i++)
        if (strcmp(asked->workload.role[i].role->name, name) == 0)
            return &asked->workload.role[i];
    g_assert_not_reached();
}

#define ROOM                                                                                                 \
    "{\"preset\":\"grpo\",\"mini_batches\":2,\"generation\":{\"prompts\":16,\"samples_per_prompt\":8,"       \
    "\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896}},\"roles\":{\"actor\":{\"offloaded\":%s},"       \
    "\"rollout\":{%s\"parallel\":{\"tensor\":1},\"execution\":{\"framework\":{\"preset\":\"vllm\"}}}}}"

/* An engine has the GPU beside what the actor keeps there: nothing where that moves to the host's memory, or is elsewhere. What
 * both need together must fit. */
static void test_room(void)
{
    g_autofree char *stays = g_strdup_printf(ROOM, "false", ""), *moves = g_strdup_printf(ROOM, "true", ""),
                    *apart = g_strdup_printf(ROOM, "false", "\"nodes\":2,");
    Asked *beside = ask(stays, NULL), *alone = ask(moves, NULL), *other = ask(apart, NULL);
    const WorkloadRole *rollout = role_named(beside, "rollout"), *actor = role_named(beside, "actor"),
                       *reference = role_named(beside, "reference");
    const double own = role_named(alone, "rollout")->needed_bytes - reference->resting_bytes;
    g_assert_cmpfloat(own, >, 0);
    g_assert_cmpfloat(rollout->capacity_bytes, ==, beside->spec->cluster.accelerator.memory_bytes);
    g_assert_cmpfloat_with_epsilon(rollout->needed_bytes,
                                   own + reference->resting_bytes + actor->resting_bytes, 1);
    g_assert_cmpfloat_with_epsilon(role_named(other, "rollout")->needed_bytes, own, 1);
    g_assert_true(beside->workload.fits);
    /* a GPU that holds the engine's own and not the actor's beside it */
    g_autofree char *memory = g_strdup_printf("cluster.accelerator.memory_bytes=%.0f",
                                              own + reference->resting_bytes + actor->resting_bytes / 2);
    const char *const less[] = {memory, "workload.roles.rollout.execution.framework.engine.memory_frac=1",
                                NULL};
    Asked *tight = ask(stays, less);
    const WorkloadRole *full = role_named(tight, "rollout");
    g_assert_cmpfloat(full->needed_bytes, >, full->capacity_bytes);
    g_assert_false(tight->workload.fits);
    asked_free(beside);
    asked_free(alone);
    asked_free(other);
    asked_free(tight);
}

static double needed_at(const char *micro_batch)
{
    static const char *const framework = "execution.framework=deepspeed"; /* keeps scores of attention */
    g_autofree char *loop = g_strdup_printf(LOOP, "");
    const char *const sets[] = {framework, micro_batch, NULL};
    Asked *asked = ask(loop, sets);
    const double bytes = role_named(asked, "actor")->needed_bytes;
    asked_free(asked);
    return bytes;
}

/* Sequences of one length lie side by side: twice as many take twice the activations, scores of attention among them. In a row
 * of all of them scores would be four times as many. */
static void test_side_by_side(void)
{
    const double one = needed_at("training.micro_batch=1"), two = needed_at("training.micro_batch=2"),
                 four = needed_at("training.micro_batch=4");
    g_assert_cmpfloat(two, >, one);
    g_assert_cmpfloat_with_epsilon(four - two, 2 * (two - one), 1e-3 * (two - one));
}

static int64_t phase_ps(const Asked *asked, const char *name)
{
    for (int i = 0; i < asked->workload.phase_count; i++)
        if (strcmp(asked->workload.phase[i].phase->name, name) == 0)
            return asked->workload.phase[i].ps;
    g_assert_not_reached();
}

/* DeepSpeed's gathers ahead follow the modules of the pass before: a model that scores and trains in turn has none, the
 * reference, which scores alone, has them. Off, or where gathers ahead follow no trace, both have. */
static void test_trace(void)
{
    static const char loop[] = "{\"preset\":\"grpo\",\"generation\":{\"prompts\":16,\"samples_per_prompt\":8,"
                               "\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896},\"seconds\":12.5}}";
    const char *const traced[] = {"parallel.tensor=1", "parallel.zero=3", "execution.framework=deepspeed",
                                  NULL};
    const char *const plain[] = {traced[0], traced[1], traced[2],
                                 "execution.framework.data_parallel.prefetches_by_trace=false", NULL};
    Asked *with = ask(loop, traced), *without = ask(loop, plain);
    g_assert_no_error(with->error);
    g_assert_no_error(without->error);
    g_assert_cmpint(phase_ps(with, "reference"), ==, phase_ps(without, "reference"));
    g_assert_cmpint(phase_ps(without, "old log-probs"), ==, phase_ps(without, "reference"));
    g_assert_cmpint(phase_ps(with, "old log-probs"), >, phase_ps(without, "old log-probs"));
    g_assert_cmpint(phase_ps(with, "update"), >, phase_ps(without, "update"));
    asked_free(with);
    asked_free(without);
}

static void test_refused(void)
{
    static const char *const cases[][2] = {
        {"{\"preset\":\"grpo\",\"roles\":{\"rollout\":{\"nodes\":0}}}", "whole number from 1"},
        {"{\"preset\":\"grop\"}", "did you mean \"grpo\"?"},
        {"{\"roles\":{\"actor\":{}}}", "workload.phases: missing"},
        {"{\"phases\":[{\"kind\":\"train\",\"role\":\"actor\"}]}", "not one of the roles"},
        {"{\"preset\":\"grpo\",\"roles\":{\"reward\":{\"with\":\"judge\"}}}",
         "\"judge\" is not one of the roles"},
        {"{\"preset\":\"grpo\",\"roles\":{\"rollout\":{\"nodse\":2}}}", "unknown key"},
        {"{\"preset\":\"grpo\",\"generation\":{\"answer_tokens\":{\"mean\":9000}}}",
         "longer than the context"},
        {"{\"preset\":\"grpo\",\"generation\":{\"answer_tokens\":{\"mean\":900,\"max\":100}}}",
         "more than max"},
        {"{\"roles\":{\"a\":{}},\"phases\":[{\"kind\":\"given\",\"name\":\"x\"}]}", "has no seconds"},
        {"{\"roles\":{\"a\":{}},\"phases\":[{\"kind\":\"forward\",\"role\":\"a\"}]}",
         "none of kind \"train\""},
        {"{\"preset\":\"grpo\",\"generation\":{\"prompts\":9999999,\"samples_per_prompt\":99}}",
         "answers a step"},
        {"{\"preset\":\"grpo\",\"generation\":{\"seconds\":9e6}}", "longer than the clock"},
        {"{\"preset\":\"grpo\",\"roles\":{\"actor\":{\"host_memory\":\"frseh\"}}}", "did you mean \"fresh\""},
        {"{\"preset\":\"grpo\",\"roles\":{\"actor\":{\"with\":\"rollout\"},\"rollout\":{\"with\":\"actor\"},"
         "\"reference\":{\"execution\":{\"framework\":\"nothing\"}}},\"generation\":{\"seconds\":1}}",
         "not one of the frameworks"},
        {"{\"preset\":\"grpo\",\"roles\":{\"rollout\":{\"execution\":{\"framework\":\"deepspeed\"}}}}",
         "\"deepspeed\" generates nothing"},
        {"{\"preset\":\"grpo\",\"roles\":{\"rollout\":{\"execution\":{\"framework\":{\"engine\":{\"memory_"
         "frac\":0.5}}}}}"
         "}",
         "a framework without a preset"},
        {"{\"preset\":\"grpo\",\"roles\":{\"rolout\":{\"nodes\":2}}}",
         "workload.roles.rolout: no phase asks this role"},
        {"{\"preset\":\"grpo\",\"roles\":{\"rolout\":{\"parallel\":{\"tensor\":2}}}}",
         "one of the roles that work: actor, rollout, reference"},
        {"{\"preset\":\"grpo\",\"generation\":{\"seconds\":1},\"roles\":{\"actor\":{\"parallel\":{\"tensor\":"
         "3}}}}",
         "parallel.tensor"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Asked *asked = ask(cases[i][0], NULL);
        g_assert_nonnull(asked->error);
        if (strstr(asked->error->message, cases[i][1]) == NULL)
            g_error("%s: \"%s\", not \"%s\"", cases[i][0], asked->error->message, cases[i][1]);
        asked_free(asked);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workload/closed-form", test_closed_form);
    g_test_add_func("/workload/apart", test_apart);
    g_test_add_func("/workload/forward", test_forward);
    g_test_add_func("/workload/documents", test_documents);
    g_test_add_func("/workload/tail", test_tail);
    g_test_add_func("/workload/generation", test_generation);
    g_test_add_func("/workload/experts", test_experts);
    g_test_add_func("/workload/resting", test_resting);
    g_test_add_func("/workload/alone", test_alone);
    g_test_add_func("/workload/tensors", test_tensors);
    g_test_add_func("/workload/room", test_room);
    g_test_add_func("/workload/side-by-side", test_side_by_side);
    g_test_add_func("/workload/trace", test_trace);
    g_test_add_func("/workload/refused", test_refused);
    return g_test_run();
}
