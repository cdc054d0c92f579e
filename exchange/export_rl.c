/* exchange/export_rl.c - loops of reinforcement learning as launches of verl and of NeMo-RL.
 * Source of the names: [verl] trainer/config/ppo_trainer.yaml, ppo_megatron_trainer.yaml, docs/advance/one_step_off.md,
 * fully_async.md; [NemoRl] examples/configs/grpo_math_1B.yaml    Tested: unit/exchange/test_export_rl.c */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "exchange/export.h"
#include "spec/load.h"

#define ACTOR    "actor_rollout_ref.actor."
#define ROLLOUT  "actor_rollout_ref.rollout."
#define MEGATRON "policy.megatron_cfg."
#define DTENSOR  "policy.dtensor_cfg."
#define ENGINE   "policy.generation."

/* A loop with the role that generates as a scenario of its own. */
typedef struct Loop {
    const Spec *spec, *rollout;
    const SpecWorkload *workload;
    bool critic, reference, apart;
    double longest_answer, kept; /* prompts that are trained on */
    ExchangeFormat format;
    GError **error;
} Loop;

static bool refuse(const Loop *loop, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(loop->error, loop->format, key, value, hint);
}

static int generator(const SpecWorkload *workload)
{
    for (int i = 0; i < workload->phase_count; i++)
        if (workload->phase[i].kind == SPEC_PHASE_GENERATE)
            return workload->phase[i].role;
    return -1;
}

/* What neither launch can say. */
static bool check(const Loop *loop)
{
    static const char *const presets[] = {"grpo", "dapo", "rloo", "ppo", NULL};
    const SpecWorkload *workload = loop->workload;
    const Spec *spec = loop->spec;
    const SpecRecompute *recompute = &spec->training.recompute;
    const bool megatron = spec->parallel.zero<3, split = spec->parallel.tensor * spec->parallel.pipeline> 1;
    /* verl counts prompts, NeMo-RL their answers */
    const double each = loop->format == EXCHANGE_FORMAT_VERL ? 1 : workload->generation.samples_per_prompt,
                 steps = loop->kept * each / workload->mini_batches;
    bool ok = true;
    if (!g_strv_contains(presets, workload->name))
        ok = refuse(loop, "workload", workload->name, "give preset grpo, dapo, rloo or ppo");
    for (int i = 0; i < workload->role_count; i++)
        if (i != generator(workload) && spec_role_host(workload, i) >= 0)
            ok = refuse(loop, "workload.roles", workload->role[i].name,
                        "it has nodes of its own, and only who generates may have; leave its nodes out");
    if (fabs(steps - round(steps)) > 1e-3)
        ok = refuse(loop, "workload.mini_batches", "does not divide the prompts",
                    "give one that divides workload.generation.prompts");
    if (megatron ? spec->parallel.zero != 1 && spec->parallel.data > 1 : spec->parallel.pipeline > 1)
        ok = refuse(loop, "parallel.zero", megatron ? "0 or 2" : "3 with a pipeline",
                    "give 1, as Megatron-Core's optimizer has it, or 3 without a pipeline");
    if (!megatron && split && loop->format == EXCHANGE_FORMAT_VERL)
        ok = refuse(loop, "parallel.tensor", "above 1 with zero 3", "give zero 1 (Megatron-Core), or 1");
    if (spec->parallel.virtual_stages > 1)
        ok = refuse(loop, "parallel.virtual_stages", "above 1", "give 1");
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE || recompute->layers > 0 || recompute->partitioned)
        ok = refuse(loop, "training.recompute", export_recompute_shown(spec), "give none or full");
    if (spec->training.precision != SPEC_PRECISION_BF16)
        ok = refuse(loop, "training.precision",
                    spec_word(&spec_words_precision, (int)spec->training.precision), "give bf16");
    return ok;
}

static bool fill(Loop *loop, const OrrJson *scenario, Spec *rollout)
{
    const SpecWorkload *workload = loop->workload;
    const SpecSampling *generation = &workload->generation;
    const int row = generator(workload);
    SpecSource source = {.resolved = orr_json_dump(scenario)}, own = {0};
    if (row < 0)
        return refuse(loop, "workload.phases", "no role generates", "give a phase of kind generate");
    const bool ok = spec_load_role(loop->spec, &source, row, (SpecRanks){0}, "workload.roles", rollout, &own,
                                   loop->error);
    g_free(source.resolved);
    spec_source_clear(&own); /* numbers alone are taken from it */
    loop->rollout = rollout;
    loop->critic = strcmp(workload->name, "ppo") == 0;
    loop->reference = strcmp(workload->name, "dapo") != 0;
    loop->apart = spec_role_host(workload, row) >= 0;
    loop->kept = floor(generation->prompts * generation->kept_frac);
    loop->longest_answer = ceil(generation->answer_tokens.max > 0      ? generation->answer_tokens.max
                                : generation->answer_tokens.log_sd > 0 ? 4 * generation->answer_tokens.mean
                                                                       : generation->answer_tokens.mean);
    return ok;
}

static void raw_frac(Settings *out, const char *key, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    settings_raw(out, key, g_ascii_formatd(text, sizeof text, "%.6g", value));
}

/* --- verl --- */

static void verl_data(const Loop *loop, Settings *out)
{
    const SpecSampling *generation = &loop->workload->generation;
    settings_text(out, "algorithm.adv_estimator",
                  loop->critic                                ? "gae"
                  : strcmp(loop->workload->name, "rloo") == 0 ? "rloo"
                                                              : "grpo");
    settings_int(out, "data.train_batch_size", (int64_t)loop->kept);
    if (loop->kept < generation->prompts) {
        settings_int(out, "data.gen_batch_size", generation->prompts);
        settings_bool(out, "algorithm.filter_groups.enable", true);
    }
    settings_int(out, "data.max_prompt_length", (int64_t)ceil(fmax(1, generation->prompt_tokens)));
    settings_int(out, "data.max_response_length", (int64_t)loop->longest_answer);
    settings_text(out, "data.train_files", "train.parquet");
    settings_mark_placeholder(out);
    settings_text(out, "data.val_files", "test.parquet");
    settings_mark_placeholder(out);
}

static void verl_actor(const Loop *loop, Settings *out)
{
    const Spec *spec = loop->spec;
    const SpecWorkload *workload = loop->workload;
    settings_text(out, "actor_rollout_ref.model.path", spec->model.name);
    settings_mark_placeholder(out);
    settings_bool(out, "actor_rollout_ref.model.use_remove_padding", !workload->padded);
    settings_bool(out, "actor_rollout_ref.model.enable_gradient_checkpointing",
                  spec->training.recompute.mode == SPEC_RECOMPUTE_FULL);
    settings_int(out, ACTOR "ppo_mini_batch_size", (int64_t)round(loop->kept / workload->mini_batches));
    settings_int(out, ACTOR "ppo_epochs", workload->epochs);
    settings_bool(out, ACTOR "use_dynamic_bsz", workload->micro_batch_tokens > 0);
    if (workload->micro_batch_tokens > 0)
        settings_int(out, ACTOR "ppo_max_token_len_per_gpu", (int64_t)workload->micro_batch_tokens);
    else
        settings_int(out, ACTOR "ppo_micro_batch_size_per_gpu", MAX(1, spec->training.micro_batch));
    settings_bool(out, ACTOR "use_kl_loss", loop->reference);
    if (spec->parallel.zero < 3) {
        settings_text(out, ACTOR "strategy", "megatron");
        settings_int(out, ACTOR "megatron.tensor_model_parallel_size", spec->parallel.tensor);
        settings_int(out, ACTOR "megatron.pipeline_model_parallel_size", spec->parallel.pipeline);
        settings_int(out, ACTOR "megatron.context_parallel_size", spec->parallel.context);
        settings_int(out, ACTOR "megatron.expert_model_parallel_size", MAX(1, spec->parallel.expert));
    } else if (spec->parallel.context > 1) {
        settings_int(out, ACTOR "ulysses_sequence_parallel_size", spec->parallel.context);
    }
}

static void verl_engine(const Loop *loop, Settings *out)
{
    const SpecEngine *engine = &loop->rollout->execution.framework.engine;
    const SpecWorkload *workload = loop->workload;
    const int most = workload->generation.max_sequences;
    settings_text(out, ROLLOUT "name", loop->rollout->execution.framework.name);
    settings_int(out, ROLLOUT "n", workload->generation.samples_per_prompt);
    settings_int(out, ROLLOUT "tensor_model_parallel_size", loop->rollout->parallel.tensor);
    raw_frac(out, ROLLOUT "gpu_memory_utilization", engine->memory_frac);
    settings_int(out, ROLLOUT "max_num_seqs", most > 0 ? most : engine->max_sequences);
    settings_bool(out, ROLLOUT "enforce_eager", !engine->captures_graphs);
    settings_int(out, "trainer.nnodes", loop->spec->cluster.nodes);
    settings_int(out, "trainer.n_gpus_per_node", loop->spec->cluster.gpus_per_node);
    if (!loop->apart)
        return;
    settings_bool(out, "actor_rollout_ref.hybrid_engine", false);
    settings_int(out, "rollout.nnodes", loop->rollout->cluster.nodes);
    settings_int(out, "rollout.n_gpus_per_node", loop->rollout->cluster.gpus_per_node);
    if (workload->staleness_steps > 1 || workload->in_flight) {
        raw_frac(out, "async_training.staleness_threshold", fmax(0, workload->staleness_steps - 1));
        settings_bool(out, "async_training.partial_rollout", workload->in_flight);
    }
}

bool exchange_export_verl(const Spec *spec, const OrrJson *scenario, Settings *out, GError **error)
{
    Loop loop = {.spec = spec, .workload = &spec->workload, .format = EXCHANGE_FORMAT_VERL, .error = error};
    g_autofree Spec *rollout = g_new0(Spec, 1);
    if (!fill(&loop, scenario, rollout) || !check(&loop))
        return false;
    const char *engine = rollout->execution.framework.name;
    if (strcmp(engine, "vllm") != 0 && strcmp(engine, "sglang") != 0)
        return refuse(&loop, "workload.generation.engine", engine, "give vllm or sglang");
    if (loop.apart && !(spec->workload.staleness_steps > 0))
        return refuse(&loop, "workload.staleness_steps", "0 on nodes of their own",
                      "give 1 or more: its launches with such nodes generate ahead");
    verl_data(&loop, out);
    verl_actor(&loop, out);
    verl_engine(&loop, out);
    if (loop.critic)
        settings_leave(out, "critic and reward model: their paths and layouts are yours to give (critic.*, "
                            "reward_model.*)");
    if (loop.apart)
        settings_leave(out, "the launch: recipe/%s instead of verl.trainer.main_ppo",
                       spec->workload.in_flight || spec->workload.staleness_steps > 1
                           ? "fully_async_policy"
                           : "one_step_off_policy");
    return true;
}

/* --- NeMo-RL --- */

static void nemo_algorithm(const Loop *loop, Settings *out)
{
    const SpecWorkload *workload = loop->workload;
    const SpecSampling *generation = &workload->generation;
    const double times = generation->prompts / loop->kept;
    settings_text(out, "defaults", "examples/configs/grpo_math_1B.yaml");
    settings_mark_placeholder(out);
    settings_int(out, "grpo.num_prompts_per_step", (int64_t)loop->kept);
    settings_int(out, "grpo.num_generations_per_prompt", generation->samples_per_prompt);
    if (times > 1) {
        settings_bool(out, "grpo.use_dynamic_sampling", true);
        settings_int(out, "grpo.batch_multiplier", (int64_t)round(times));
    }
    settings_bool(out, "grpo.async_grpo.enabled", workload->staleness_steps > 0);
    if (workload->staleness_steps > 0) {
        settings_int(out, "grpo.async_grpo.max_trajectory_age_steps",
                     (int64_t)ceil(workload->staleness_steps));
        settings_bool(out, "grpo.async_grpo.in_flight_weight_updates", workload->in_flight);
        settings_bool(out, "loss_fn.use_importance_sampling_correction", true);
    }
    settings_raw(out, "loss_fn.reference_policy_kl_penalty", loop->reference ? "0.01" : "0.0");
}

static void nemo_policy(const Loop *loop, Settings *out)
{
    const Spec *spec = loop->spec;
    const SpecWorkload *workload = loop->workload;
    const SpecParallel *parallel = &spec->parallel;
    const bool megatron = parallel->zero<3, packed = workload->micro_batch_tokens> 0,
               full = spec->training.recompute.mode == SPEC_RECOMPUTE_FULL;
    settings_text(out, "policy.model_name", spec->model.name);
    settings_mark_placeholder(out);
    settings_int(
        out, "policy.train_global_batch_size",
        (int64_t)round(loop->kept * workload->generation.samples_per_prompt / workload->mini_batches));
    settings_int(out, "policy.train_micro_batch_size", MAX(1, spec->training.micro_batch));
    settings_int(out, "policy.max_total_sequence_length",
                 (int64_t)(ceil(fmax(1, workload->generation.prompt_tokens)) + loop->longest_answer));
    settings_bool(out, "policy.sequence_packing.enabled", packed);
    if (packed)
        settings_int(out, "policy.sequence_packing.train_mb_tokens", (int64_t)workload->micro_batch_tokens);
    settings_bool(out, "policy.dynamic_batching.enabled", false);
    settings_bool(out, DTENSOR "enabled", !megatron);
    if (!megatron) {
        settings_int(out, DTENSOR "tensor_parallel_size", parallel->tensor);
        settings_int(out, DTENSOR "context_parallel_size", parallel->context);
        settings_bool(out, DTENSOR "activation_checkpointing", full);
    }
    settings_bool(out, MEGATRON "enabled", megatron);
    if (megatron) {
        settings_int(out, MEGATRON "tensor_model_parallel_size", parallel->tensor);
        settings_int(out, MEGATRON "pipeline_model_parallel_size", parallel->pipeline);
        settings_int(out, MEGATRON "context_parallel_size", parallel->context);
        settings_int(out, MEGATRON "expert_model_parallel_size", MAX(1, parallel->expert));
        settings_bool(out, MEGATRON "sequence_parallel", parallel->sequence_parallel == 1);
        settings_bool(out, MEGATRON "activation_checkpointing", full);
    }
}

static void nemo_engine(const Loop *loop, Settings *out)
{
    const SpecFramework *framework = &loop->rollout->execution.framework;
    const SpecCluster *own = &loop->rollout->cluster, *trains = &loop->spec->cluster;
    const int most = loop->workload->generation.max_sequences;
    const bool parted = loop->apart && trains->nodes == 1 && own->nodes == 1; /* GPUs of one node */
    settings_text(out, ENGINE "backend",
                  strcmp(framework->name, "tensorrt-llm") == 0 ? "trtllm" : framework->name);
    settings_bool(out, ENGINE "vllm_cfg.async_engine", loop->workload->staleness_steps > 0);
    settings_int(out, ENGINE "vllm_cfg.tensor_parallel_size", loop->rollout->parallel.tensor);
    raw_frac(out, ENGINE "vllm_cfg.gpu_memory_utilization", framework->engine.memory_frac);
    settings_bool(out, ENGINE "vllm_cfg.enforce_eager", !framework->engine.captures_graphs);
    if (most > 0)
        settings_int(out, ENGINE "vllm_kwargs.max_num_seqs", most);
    settings_bool(out, ENGINE "colocated.enabled", !loop->apart);
    if (loop->apart) {
        settings_int(out, ENGINE "colocated.resources.num_nodes", own->nodes);
        settings_int(out, ENGINE "colocated.resources.gpus_per_node", own->gpus_per_node);
    }
    settings_int(out, "cluster.num_nodes", parted ? 1 : trains->nodes + (loop->apart ? own->nodes : 0));
    settings_int(out, "cluster.gpus_per_node", trains->gpus_per_node + (parted ? own->gpus_per_node : 0));
}

bool exchange_export_nemo_rl(const Spec *spec, const OrrJson *scenario, Settings *out, GError **error)
{
    Loop loop = {
        .spec = spec, .workload = &spec->workload, .format = EXCHANGE_FORMAT_NEMO_RL, .error = error};
    g_autofree Spec *rollout = g_new0(Spec, 1);
    if (!fill(&loop, scenario, rollout) || !check(&loop))
        return false;
    const char *engine = rollout->execution.framework.name;
    bool ok = true;
    if (strcmp(engine, "vllm") != 0 && strcmp(engine, "sglang") != 0 && strcmp(engine, "tensorrt-llm") != 0)
        ok = refuse(&loop, "workload.generation.engine", engine, "give vllm, sglang or tensorrt-llm");
    if (loop.critic)
        ok = refuse(&loop, "workload", "ppo", "its critic is another file's; give grpo, dapo or rloo");
    if (spec->workload.epochs > 1)
        ok = refuse(&loop, "workload.epochs", "above 1", "give 1: it goes once over a batch");
    if (loop.apart && rollout->cluster.gpus_per_node != spec->cluster.gpus_per_node &&
        spec->cluster.nodes + rollout->cluster.nodes > 2)
        ok = refuse(&loop, "workload.roles", "nodes of other sizes", "give all nodes the same GPUs");
    if (!ok)
        return false;
    nemo_algorithm(&loop, out);
    nemo_policy(&loop, out);
    nemo_engine(&loop, out);
    return true;
}
