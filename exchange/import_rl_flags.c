/* exchange/import_rl_flags.c - launches of OpenRLHF and slime into scenarios with a workload.
 *
 * Source: [OpenRlhf] openrlhf/cli/train_ppo_ray.py, [Slime] slime/utils/arguments.py    Tested: unit/exchange/test_import_rl.c
 */
#include <string.h>

#include "exchange/import_rl.h"

/* --- OpenRLHF: names since 0.10, and those before --- */

static const char *const older[][2] = {
    {"actor.model_name_or_path", "pretrain"},
    {"critic.model_name_or_path", "critic_pretrain"},
    {"reward.model_name_or_path", "reward_pretrain"},
    {"reward.remote_url", "remote_rm_url"},
    {"actor.num_nodes", "actor_num_nodes"},
    {"actor.num_gpus_per_node", "actor_num_gpus_per_node"},
    {"ref.num_nodes", "ref_num_nodes"},
    {"reward.num_nodes", "reward_num_nodes"},
    {"critic.num_nodes", "critic_num_nodes"},
    {"vllm.num_engines", "vllm_num_engines"},
    {"vllm.tensor_parallel_size", "vllm_tensor_parallel_size"},
    {"vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"},
    {"vllm.enforce_eager", "enforce_eager"},
    {"vllm.enable_sleep", "vllm_enable_sleep"},
    {"ds.enable_sleep", "deepspeed_enable_sleep"},
    {"train.colocate_all", "colocate_all_models"},
    {"train.colocate_actor_ref", "colocate_actor_ref"},
    {"train.colocate_critic_reward", "colocate_critic_reward"},
    {"train.async_enable", "async_train"},
    {"train.async_queue_size", "async_queue_size"},
    {"train.partial_rollout_enable", "partial_rollout"},
    {"train.batch_size", "train_batch_size"},
    {"train.micro_batch_size", "micro_train_batch_size"},
    {"train.max_epochs", "max_epochs"},
    {"train.dynamic_batch_enable", "use_dynamic_batch"},
    {"train.max_tokens_per_gpu", "train_max_tokens_per_gpu"},
    {"rollout.batch_size", "rollout_batch_size"},
    {"rollout.n_samples_per_prompt", "n_samples_per_prompt"},
    {"rollout.max_new_tokens", "generate_max_len"},
    {"data.prompt_max_len", "prompt_max_len"},
    {"data.max_len", "max_len"},
    {"ds.zero_stage", "zero_stage"},
    {"ds.tensor_parallel_size", "ds_tensor_parallel_size"},
    {"ds.ring_attn_size", "ring_attn_size"},
    {"ds.packing_samples", "packing_samples"},
    {"ds.adam_offload", "adam_offload"},
    {"actor.gradient_checkpointing_enable", "gradient_checkpointing"},
    {"algo.advantage.estimator", "advantage_estimator"},
    {"algo.kl.init_coef", "init_kl_coef"},
};

/* The name that the launch uses. */
static const char *name(const ExchangeImport *import, const char *key)
{
    if (settings_find(import->in, key) == NULL)
        for (gsize i = 0; i < G_N_ELEMENTS(older); i++)
            if (strcmp(older[i][0], key) == 0)
                return older[i][1];
    return key;
}

static int number(const ExchangeImport *import, const char *key, int fallback)
{
    return exchange_import_number(import, name(import, key), fallback);
}

static bool said(const ExchangeImport *import, const char *key)
{
    return exchange_import_bool(import, name(import, key), false);
}

static const char *text(const ExchangeImport *import, const char *key)
{
    return exchange_import_text(import, name(import, key));
}

static void put(ExchangeImport *import, const char *role, const char *key, const char *value)
{
    g_autofree char *path = g_strdup_printf("workload.roles.%s.%s", role, key);
    exchange_import_native(import, path, value);
}

static void offloads(const ExchangeImport *import, const char *key)
{
    exchange_import_warn(import,
                         "%s: states of the optimizer stay on the host, and are not carried over; give --set "
                         "workload.roles.actor.offload.scheme=NAME",
                         key);
}

/* Roles on GPUs of their own, unless the launch says that they share. */
static void openrlhf_parts(ExchangeImport *import, ExchangeLoop *loop)
{
    const int gpus = number(import, "actor.num_gpus_per_node", 8);
    exchange_import_native_int(import, "cluster.nodes", number(import, "actor.num_nodes", 1));
    exchange_import_native_int(import, "cluster.gpus_per_node", gpus);
    if (said(import, "train.colocate_all"))
        return;
    const int engine_gpus = MAX(1, number(import, "vllm.num_engines", 1)) * MAX(1, loop->tensor);
    loop->nodes = MAX(1, engine_gpus / MAX(1, gpus));
    loop->gpus_per_node = engine_gpus < gpus ? engine_gpus : 0;
    static const char *const own[][3] = {{"reference", "ref.num_nodes", "train.colocate_actor_ref"},
                                         {"critic", "critic.num_nodes", NULL},
                                         {"reward", "reward.num_nodes", "train.colocate_critic_reward"}};
    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        const bool there = i == 0 ? loop->reference : loop->critic;
        if (!there)
            continue;
        g_autofree char *nodes = g_strdup_printf("%d", number(import, own[i][1], 1));
        if (own[i][2] == NULL || !said(import, own[i][2]))
            put(import, own[i][0], "nodes", nodes);
        else if (i == 2)
            put(import, "reward", "with", "\"critic\"");
    }
}

static void openrlhf_batch(ExchangeImport *import, ExchangeLoop *loop)
{
    const int longest = number(import, "data.max_len", 2048);
    loop->prompts = number(import, "rollout.batch_size", 1024);
    loop->samples = number(import, "rollout.n_samples_per_prompt", 1);
    loop->epochs = number(import, "train.max_epochs", 1);
    loop->mini_batches =
        (int)((double)loop->prompts * loop->samples / MAX(1, number(import, "train.batch_size", 128)));
    loop->answer_tokens = number(import, "rollout.max_new_tokens", MAX(1, longest / 2));
    loop->prompt_tokens = number(import, "data.prompt_max_len", MAX(1, longest - loop->answer_tokens));
    if (said(import, "train.dynamic_batch_enable"))
        loop->micro_batch_tokens = number(import, "train.max_tokens_per_gpu", 16192);
    else
        exchange_import_native_int(import, "training.micro_batch",
                                   number(import, "train.micro_batch_size", 1));
    loop->padded = !said(import, "ds.packing_samples") && loop->micro_batch_tokens == 0;
}

static void openrlhf_layout(ExchangeImport *import, const ExchangeLoop *loop)
{
    exchange_import_implied(import, "execution.framework", "\"transformers-deepspeed\"");
    exchange_import_native_int(import, "parallel.zero", number(import, "ds.zero_stage", 2));
    exchange_import_native_int(import, "parallel.tensor", number(import, "ds.tensor_parallel_size", 1));
    exchange_import_native_int(import, "parallel.context", number(import, "ds.ring_attn_size", 1));
    exchange_import_native(import, "training.recompute",
                           said(import, "actor.gradient_checkpointing_enable") ? "\"full\"" : "\"none\"");
    if (said(import, "ds.adam_offload"))
        offloads(import, name(import, "ds.adam_offload"));
    if (loop->nodes == 0 && said(import, "vllm.enable_sleep")) {
        put(import, "rollout", "offloaded", "true");
        put(import, "rollout", "host_memory", "\"fresh\"");
    }
    if (loop->nodes == 0 && said(import, "ds.enable_sleep"))
        put(import, "actor", "offloaded", "true");
}

void exchange_import_openrlhf(ExchangeImport *import)
{
    const char *estimator = text(import, "algo.advantage.estimator");
    ExchangeLoop loop = {
        .engine = "vllm",
        .critic = estimator == NULL || strcmp(estimator, "gae") == 0,
        .rloo = g_strcmp0(estimator, "rloo") == 0,
        .reward_model = text(import, "reward.model_name_or_path") != NULL,
        .reference = exchange_import_frac(import, name(import, "algo.kl.init_coef"), 0.01) > 0,
        .tensor = number(import, "vllm.tensor_parallel_size", 1),
        .eager = said(import, "vllm.enforce_eager"),
        .memory_frac = exchange_import_frac(import, name(import, "vllm.gpu_memory_utilization"), 0.95)};
    exchange_import_model(import, name(import, "actor.model_name_or_path"), "model");
    if (loop.critic)
        exchange_import_model(import, name(import, "critic.model_name_or_path"),
                              "workload.roles.critic.model");
    if (loop.critic)
        exchange_import_model(import, name(import, "reward.model_name_or_path"),
                              "workload.roles.reward.model");
    if (said(import, "train.async_enable")) {
        loop.staleness_steps = MAX(1, number(import, "train.async_queue_size", 1));
        loop.in_flight = said(import, "train.partial_rollout_enable");
    }
    openrlhf_batch(import, &loop);
    openrlhf_parts(import, &loop);
    exchange_import_loop(import, &loop);
    openrlhf_layout(import, &loop);
}

/* --- slime: its own arguments among Megatron-LM's and SGLang's --- */

static void slime_layout(ExchangeImport *import)
{
    static const char *const degrees[][2] = {{"tensor-model-parallel-size", "parallel.tensor"},
                                             {"pipeline-model-parallel-size", "parallel.pipeline"},
                                             {"context-parallel-size", "parallel.context"},
                                             {"expert-model-parallel-size", "parallel.expert"}};
    for (gsize i = 0; i < G_N_ELEMENTS(degrees); i++)
        exchange_import_move(import, degrees[i][0], degrees[i][1]);
    if (exchange_import_number(import, "expert-tensor-parallel-size", 1) > 1)
        exchange_import_move(import, "expert-tensor-parallel-size", "parallel.expert_tensor");
    if (exchange_import_number(import, "tensor-model-parallel-size", 1) > 1)
        exchange_import_native_bool(import, "parallel.sequence_parallel",
                                    exchange_import_bool(import, "sequence-parallel", false));
    exchange_import_native_int(import, "parallel.zero", 1);
    exchange_import_implied(import, "execution.framework", "\"megatron-core\"");
    exchange_import_native(
        import, "training.recompute",
        g_strcmp0(exchange_import_text(import, "recompute-granularity"), "full") == 0        ? "\"full\""
        : g_strcmp0(exchange_import_text(import, "recompute-granularity"), "selective") == 0 ? "\"selective\""
                                                                                             : "\"none\"");
    if (exchange_import_bool(import, "optimizer-cpu-offload", false))
        offloads(import, "optimizer-cpu-offload");
}

static void slime_parts(ExchangeImport *import, ExchangeLoop *loop)
{
    const int gpus = exchange_import_number(import, "actor-num-gpus-per-node", 8),
              rollout = exchange_import_number(import, "rollout-num-gpus", 0);
    exchange_import_native_int(import, "cluster.nodes", exchange_import_number(import, "actor-num-nodes", 1));
    exchange_import_native_int(import, "cluster.gpus_per_node", gpus);
    if (exchange_import_bool(import, "colocate", false) || rollout == 0) {
        put(import, "actor", "offloaded", "true"); /* --colocate offloads both [Slime] */
        put(import, "rollout", "offloaded", "true");
        return;
    }
    loop->nodes = MAX(1, rollout / MAX(1, gpus));
    loop->gpus_per_node = rollout < gpus ? rollout : 0;
}

static void slime_batch(ExchangeImport *import, ExchangeLoop *loop)
{
    const int asked = exchange_import_number(import, "rollout-batch-size", 32),
              drawn = exchange_import_number(import, "over-sampling-batch-size", asked);
    loop->samples = exchange_import_number(import, "n-samples-per-prompt", 1);
    loop->prompts = MAX(asked, drawn);
    loop->kept_frac = drawn > asked ? (double)asked / drawn + 1e-6 : 0;
    loop->mini_batches = exchange_import_number(
        import, "num-steps-per-rollout",
        (int)((double)asked * loop->samples /
              MAX(1, exchange_import_number(import, "global-batch-size", asked * loop->samples))));
    loop->answer_tokens = exchange_import_number(import, "rollout-max-response-len", 1024);
    loop->prompt_tokens = exchange_import_number(import, "rollout-max-prompt-len", 256);
    if (exchange_import_bool(import, "use-dynamic-batch-size", false))
        loop->micro_batch_tokens = exchange_import_number(import, "max-tokens-per-gpu", 8192);
    else
        exchange_import_native_int(import, "training.micro_batch",
                                   exchange_import_number(import, "micro-batch-size", 1));
}

void exchange_import_slime(ExchangeImport *import)
{
    const char *estimator = exchange_import_text(import, "advantage-estimator");
    ExchangeLoop loop = {.engine = "sglang",
                         .critic = g_strcmp0(estimator, "ppo") == 0,
                         .reference = exchange_import_bool(import, "use-kl-loss", false) ||
                                      exchange_import_frac(import, "kl-coef", 0) > 0,
                         .tensor = exchange_import_number(import, "rollout-num-gpus-per-engine", 1),
                         .memory_frac = exchange_import_frac(import, "sglang-mem-fraction-static", 0),
                         .epochs = 1};
    exchange_import_model(import, "hf-checkpoint", "model");
    slime_batch(import, &loop);
    slime_parts(import, &loop);
    exchange_import_loop(import, &loop);
    slime_layout(import);
}
