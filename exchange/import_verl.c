/* exchange/import_verl.c - launches of verl's reinforcement learning into scenarios with a workload.
 *
 * A launch is a script with overrides, python3 -m verl.trainer.main_ppo data.train_batch_size=1024 ... What it leaves out is
 * what verl's own configuration says.
 * Source: [verl] trainer/config/ppo_trainer.yaml, ppo_megatron_trainer.yaml    Tested: unit/exchange/test_import_verl.c
 */
#include <string.h>

#include "exchange/import_rl.h"

#define ACTOR   "actor_rollout_ref.actor."
#define ROLLOUT "actor_rollout_ref.rollout."

static int number(const ExchangeImport *import, const char *key, int fallback)
{
    return exchange_import_number(import, key, fallback);
}

static void take_batch(ExchangeImport *import, ExchangeLoop *loop)
{
    const int mini = number(import, ACTOR "ppo_mini_batch_size", 256);
    loop->prompts = number(import, "data.train_batch_size", 1024);
    const int drawn = number(import, "data.gen_batch_size", loop->prompts);
    if (exchange_import_bool(import, "algorithm.filter_groups.enable", false) && drawn > loop->prompts)
        loop->kept_frac = (double)loop->prompts / drawn + 1e-6;
    loop->samples = number(import, ROLLOUT "n", 1);
    loop->prompt_tokens = number(import, "data.max_prompt_length", 512);
    loop->answer_tokens = number(import, "data.max_response_length", 512);
    loop->mini_batches = mini > 0 ? MAX(1, loop->prompts / mini) : 1;
    loop->prompts = loop->kept_frac > 0 ? drawn : loop->prompts;
    loop->epochs = number(import, ACTOR "ppo_epochs", 1);
    if (exchange_import_bool(import, ACTOR "use_dynamic_bsz", false))
        loop->micro_batch_tokens = number(import, ACTOR "ppo_max_token_len_per_gpu", 16384);
    else
        exchange_import_move(import, ACTOR "ppo_micro_batch_size_per_gpu", "training.micro_batch");
    loop->padded = !exchange_import_bool(import, "actor_rollout_ref.model.use_remove_padding", false);
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
}

/* Answers of other GPUs are one step old, or as old as fully asynchronous launches say: docs/advance. */
static void take_engine(ExchangeImport *import, ExchangeLoop *loop)
{
    loop->engine = g_strcmp0(exchange_import_text(import, ROLLOUT "name"), "sglang") == 0 ? "sglang" : "vllm";
    loop->tensor = number(import, ROLLOUT "tensor_model_parallel_size", 2);
    loop->eager = exchange_import_bool(import, ROLLOUT "enforce_eager", false);
    loop->memory_frac = exchange_import_frac(import, ROLLOUT "gpu_memory_utilization", 0.5);
    loop->max_sequences = number(import, ROLLOUT "max_num_seqs", 1024);
    loop->nodes = number(import, "rollout.nnodes", 0);
    if (loop->nodes == 0)
        return;
    loop->gpus_per_node = number(import, "rollout.n_gpus_per_node", 0);
    loop->staleness_steps =
        MAX(1, (int)exchange_import_frac(import, "async_training.staleness_threshold", 0) + 1);
    loop->in_flight = exchange_import_bool(import, "async_training.partial_rollout", false);
}

void exchange_import_verl(ExchangeImport *import)
{
    const char *estimator = exchange_import_text(import, "algorithm.adv_estimator");
    ExchangeLoop loop = {.critic = estimator == NULL || strcmp(estimator, "gae") == 0,
                         .rloo = estimator != NULL && strstr(estimator, "rloo") != NULL,
                         .reference = exchange_import_bool(import, ACTOR "use_kl_loss", false) ||
                                      exchange_import_bool(import, "algorithm.use_kl_in_reward", false)};
    exchange_import_model(import, "actor_rollout_ref.model.path", "model");
    exchange_import_move(import, "trainer.nnodes", "cluster.nodes");
    exchange_import_move(import, "trainer.n_gpus_per_node", "cluster.gpus_per_node");
    if (loop.critic)
        exchange_import_model(import, "critic.model.path", "workload.roles.critic.model");
    take_batch(import, &loop);
    take_engine(import, &loop);
    exchange_import_loop(import, &loop);
    take_layout(import);
}
