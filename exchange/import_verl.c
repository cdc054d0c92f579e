/* exchange/import_verl.c - launches of verl's reinforcement learning into scenarios with a workload.
 *
 * A launch is a script with overrides, python3 -m verl.trainer.main_ppo data.train_batch_size=1024 ... What it leaves out is
 * what verl's own configuration says.
 * Source: [verl] trainer/config/ppo_trainer.yaml, ppo_megatron_trainer.yaml    Tested: unit/exchange/test_import_verl.c
 */
#include <string.h>

#include "exchange/import.h"
#include "exchange/model_names.h"

#define ACTOR   "actor_rollout_ref.actor."
#define ROLLOUT "actor_rollout_ref.rollout."

static void take_model(ExchangeImport *import, const char *key, const char *to)
{
    const char *path = exchange_import_text(import, key);
    if (path == NULL || exchange_import_at(import, to) != NULL)
        return;
    g_autofree char *preset = exchange_model_preset(path);
    if (preset == NULL) {
        exchange_import_warn(
            import, "%s: no preset is called %.80s; give --set %s=NAME, or a path of its config.json", key,
            path, to);
        return;
    }
    g_autofree char *quoted = exchange_json_text(preset);
    exchange_import_native(import, to, quoted);
}

static int number(const ExchangeImport *import, const char *key, int fallback)
{
    int value = fallback;
    (void)exchange_import_int(import, key, &value);
    return value;
}

/* grpo and its like have no critic; with neither a loss nor a reward that asks it, there is no reference either. */
static void take_algorithm(ExchangeImport *import)
{
    const char *estimator = exchange_import_text(import, "algorithm.adv_estimator");
    const bool critic = estimator == NULL || strcmp(estimator, "gae") == 0;
    const bool reference = exchange_import_bool(import, ACTOR "use_kl_loss", false) ||
                           exchange_import_bool(import, "algorithm.use_kl_in_reward", false);
    const bool rloo = estimator != NULL && strstr(estimator, "rloo") != NULL;
    exchange_import_native(import, "workload.preset",
                           critic       ? "\"ppo\""
                           : !reference ? "\"dapo\""
                           : rloo       ? "\"rloo\""
                                        : "\"grpo\"");
    if (critic)
        take_model(import, "critic.model.path", "workload.roles.critic.model");
    if (critic)
        exchange_import_warn(
            import, "rewards: a reward model is assumed; give its phase seconds where a rule scores");
}

static void take_batch(ExchangeImport *import)
{
    const int prompts = number(import, "data.train_batch_size", 1024),
              mini = number(import, ACTOR "ppo_mini_batch_size", 256),
              prompt = number(import, "data.max_prompt_length", 512),
              answer = number(import, "data.max_response_length", 512);
    exchange_import_native_int(import, "workload.generation.prompts", prompts);
    exchange_import_native_int(import, "workload.generation.samples_per_prompt",
                               number(import, ROLLOUT "n", 1));
    exchange_import_native_int(import, "workload.generation.prompt_tokens", prompt);
    exchange_import_native_int(import, "workload.generation.answer_tokens.mean", answer);
    exchange_import_native_int(import, "workload.generation.answer_tokens.max", answer);
    exchange_import_warn(
        import, "data: only the longest prompt and answer are said, and taken for the mean; give --set "
                "workload.generation.answer_tokens.mean=N and log_sd");
    exchange_import_native_int(import, "workload.mini_batches", mini > 0 ? MAX(1, prompts / mini) : 1);
    exchange_import_native_int(import, "workload.epochs", number(import, ACTOR "ppo_epochs", 1));
    if (exchange_import_bool(import, ACTOR "use_dynamic_bsz", false))
        exchange_import_native_int(import, "workload.micro_batch_tokens",
                                   number(import, ACTOR "ppo_max_token_len_per_gpu", 16384));
    else
        exchange_import_move(import, ACTOR "ppo_micro_batch_size_per_gpu", "training.micro_batch");
    exchange_import_native_bool(
        import, "workload.padded",
        !exchange_import_bool(import, "actor_rollout_ref.model.use_remove_padding", false));
}

static void take_layout(ExchangeImport *import)
{
    const char *strategy = exchange_import_text(import, ACTOR "strategy"),
               *megatron = exchange_import_text(import, ACTOR "megatron.tensor_model_parallel_size");
    const bool is_megatron = megatron != NULL || g_strcmp0(strategy, "megatron") == 0;
    exchange_import_implied(import, "execution.framework",
                            is_megatron ? "\"megatron-core\"" : "\"transformers-fsdp\"");
    exchange_import_native_int(import, "parallel.zero", is_megatron ? 1 : 3);
    exchange_import_move(import, ACTOR "megatron.tensor_model_parallel_size", "parallel.tensor");
    exchange_import_move(import, ACTOR "megatron.pipeline_model_parallel_size", "parallel.pipeline");
    exchange_import_move(import, ACTOR "megatron.expert_model_parallel_size", "parallel.expert");
    exchange_import_move(import, ACTOR "megatron.context_parallel_size", "parallel.context");
    exchange_import_move(import, ACTOR "ulysses_sequence_parallel_size", "parallel.context");
    exchange_import_native(
        import, "training.recompute",
        exchange_import_bool(import, "actor_rollout_ref.model.enable_gradient_checkpointing", true)
            ? "\"full\""
            : "\"none\"");
    exchange_import_native_int(import, "workload.roles.rollout.parallel.tensor",
                               number(import, ROLLOUT "tensor_model_parallel_size", 2));
    const char *engine = exchange_import_text(import, ROLLOUT "name");
    const bool sglang = g_strcmp0(engine, "sglang") == 0;
    exchange_import_native(import, "workload.generation.engine", sglang ? "\"sglang\"" : "\"vllm\"");
    if (exchange_import_bool(import, ROLLOUT "enforce_eager", false))
        exchange_import_native(import, "workload.roles.rollout.execution.framework",
                               sglang ? "{\"preset\":\"sglang\",\"engine\":{\"captures_graphs\":false}}"
                                      : "{\"preset\":\"vllm\",\"engine\":{\"captures_graphs\":false}}");
    exchange_import_native_int(import, "workload.generation.max_sequences",
                               number(import, ROLLOUT "max_num_seqs", 1024));
}

void exchange_import_verl(ExchangeImport *import)
{
    take_model(import, "actor_rollout_ref.model.path", "model");
    exchange_import_move(import, "trainer.nnodes", "cluster.nodes");
    exchange_import_move(import, "trainer.n_gpus_per_node", "cluster.gpus_per_node");
    take_algorithm(import);
    take_batch(import);
    take_layout(import);
}
