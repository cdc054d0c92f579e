/* exchange/import_nemo_rl.c - configurations of NeMo-RL (YAML) into scenarios with a workload.
 *
 * What a file and those that it extends leave out is what examples/configs/grpo_math_1B.yaml says, which all recipes extend.
 * Source: [NemoRl] examples/configs, nemo_rl/algorithms/grpo.py    Tested: unit/exchange/test_import_rl.c
 */
#include <string.h>

#include "base/file.h"
#include "exchange/import_rl.h"

#define MEGATRON "policy.megatron_cfg."
#define DTENSOR  "policy.dtensor_cfg."
#define ENGINE   "policy.generation."

/* --- files that are extended, keys that refer to others --- */

static void add_parents(Settings *into, const Settings *child, const char *path, GPtrArray *problems,
                        int depth)
{
    enum { DEEPEST = 8, MOST_BYTES = 1 << 20 };
    const Setting *defaults = settings_find(child, "defaults");
    if (defaults == NULL || defaults->value == NULL || depth > DEEPEST)
        return;
    g_autofree char *folder = g_path_get_dirname(path),
                    *file = g_build_filename(folder, defaults->value, NULL),
                    *base = g_path_get_basename(defaults->value);
    g_autoptr(GString) text = orr_text_read(file, MOST_BYTES, NULL);
    Settings own;
    if (text == NULL) {
        if (strcmp(base, "grpo_math_1B.yaml") != 0)
            g_ptr_array_add(problems,
                            g_strdup_printf("defaults: %.200s is not there, and what it says is not "
                                            "known; import from its folder",
                                            defaults->value));
        return;
    }
    settings_init(&own);
    if (settings_read(text->str, text->len, file, SETTINGS_YAML, &own, problems, NULL)) {
        add_parents(into, &own, file, problems, depth + 1);
        for (guint i = 0; i < own.list->len; i++) {
            const Setting *setting = &g_array_index(own.list, Setting, i);
            settings_text(into, setting->key, setting->value);
            g_array_index(into->list, Setting, into->list->len - 1).used = true; /* another file's */
        }
    }
    settings_clear(&own);
}

/* "${policy.precision}" and "${mul:${a}, 2}" as what they come to; NULL: it refers to nothing known. g_free. */
static char *resolved(const Settings *settings, const char *text, int depth)
{
    enum { DEEPEST = 8 };
    const size_t length = strlen(text);
    if (!g_str_has_prefix(text, "${") || text[length - 1] != '}')
        return g_strdup(text);
    if (depth > DEEPEST)
        return NULL;
    g_autofree char *inner = g_strndup(text + 2, length - 3);
    if (g_str_has_prefix(inner, "mul:")) {
        char *comma = strrchr(inner, ',');
        if (comma == NULL)
            return NULL;
        *comma = '\0';
        g_autofree char *a = resolved(settings, g_strstrip(inner + strlen("mul:")), depth + 1),
                        *b = resolved(settings, g_strstrip(comma + 1), depth + 1);
        return a != NULL && b != NULL
                   ? g_strdup_printf("%.0f", g_ascii_strtod(a, NULL) * g_ascii_strtod(b, NULL))
                   : NULL;
    }
    const Setting *other = settings_find(settings, inner);
    return other != NULL && other->value != NULL ? resolved(settings, other->value, depth + 1) : NULL;
}

void exchange_nemo_rl_settle(Settings *settings, const char *path, GPtrArray *problems)
{
    Settings all;
    settings_init(&all);
    add_parents(&all, settings, path, problems, 0);
    for (guint i = all.list->len; i > 0; i--) {
        const Setting *setting = &g_array_index(all.list, Setting, i - 1);
        const Setting copy = {
            .key = g_strdup(setting->key), .value = g_strdup(setting->value), .is_text = true, .used = true};
        g_array_prepend_val(settings->list, copy);
    }
    settings_clear(&all);
    for (guint i = 0; i < settings->list->len; i++) {
        Setting *setting = &g_array_index(settings->list, Setting, i);
        char *value = setting->value != NULL ? resolved(settings, setting->value, 0) : NULL;
        if (value == NULL)
            continue;
        g_free(setting->value);
        setting->value = value;
    }
}

/* --- what they say --- */

static int number(const ExchangeImport *import, const char *key, int fallback)
{
    return exchange_import_number(import, key, fallback);
}

static void take_layout(ExchangeImport *import)
{
    const bool megatron = exchange_import_bool(import, MEGATRON "enabled", false);
    exchange_import_implied(import, "execution.framework",
                            megatron ? "\"megatron-core\"" : "\"nemo-automodel\"");
    exchange_import_native_int(import, "parallel.zero", megatron ? 1 : 3);
    if (megatron) {
        exchange_import_move(import, MEGATRON "tensor_model_parallel_size", "parallel.tensor");
        exchange_import_move(import, MEGATRON "pipeline_model_parallel_size", "parallel.pipeline");
        exchange_import_move(import, MEGATRON "context_parallel_size", "parallel.context");
        exchange_import_move(import, MEGATRON "expert_model_parallel_size", "parallel.expert");
        if (number(import, MEGATRON "expert_tensor_parallel_size", 1) > 1)
            exchange_import_move(import, MEGATRON "expert_tensor_parallel_size", "parallel.expert_tensor");
        if (number(import, MEGATRON "tensor_model_parallel_size", 1) > 1)
            exchange_import_native_bool(import, "parallel.sequence_parallel",
                                        exchange_import_bool(import, MEGATRON "sequence_parallel", false));
    } else {
        exchange_import_move(import, DTENSOR "tensor_parallel_size", "parallel.tensor");
        exchange_import_move(import, DTENSOR "context_parallel_size", "parallel.context");
    }
    exchange_import_native(import, "training.recompute",
                           exchange_import_bool(import,
                                                megatron ? MEGATRON "activation_checkpointing"
                                                         : DTENSOR "activation_checkpointing",
                                                false)
                               ? "\"full\""
                               : "\"none\"");
    const bool narrow = exchange_import_bool(import, MEGATRON "fp8_cfg.enabled", false),
               blocks =
                   g_strcmp0(exchange_import_text(import, MEGATRON "fp8_cfg.fp8_recipe"), "blockwise") == 0;
    exchange_import_native(import, "training.precision",
                           !narrow  ? "\"bf16\""
                           : blocks ? "\"fp8-blockwise\""
                                    : "\"fp8\"");
}

/* Nodes of the cluster, less those that generate alone. */
static void take_cluster(ExchangeImport *import, ExchangeLoop *loop)
{
    const int nodes = number(import, "cluster.num_nodes", 1),
              gpus = number(import, "cluster.gpus_per_node", 1);
    int train_nodes = nodes, train_gpus = gpus;
    if (!exchange_import_bool(import, ENGINE "colocated.enabled", true)) {
        const int own = number(import, ENGINE "colocated.resources.gpus_per_node", gpus);
        loop->nodes = MAX(1, number(import, ENGINE "colocated.resources.num_nodes", 1));
        if (nodes > loop->nodes) {
            train_nodes = nodes - loop->nodes;
        } else { /* GPUs of one node are parted */
            train_gpus = MAX(1, gpus - own);
            loop->gpus_per_node = own;
        }
    }
    exchange_import_native_int(import, "cluster.nodes", train_nodes);
    exchange_import_native_int(import, "cluster.gpus_per_node", train_gpus);
}

static void take_batch(ExchangeImport *import, ExchangeLoop *loop)
{
    enum { PROMPT_TOKENS = 256 };
    const int longest = number(import, "policy.max_total_sequence_length", 512),
              micro = number(import, "policy.train_micro_batch_size", 4),
              multiplier = number(import, "grpo.batch_multiplier", 1);
    loop->samples = number(import, "grpo.num_generations_per_prompt", 16);
    loop->prompts = number(import, "grpo.num_prompts_per_step", 32);
    loop->mini_batches = (int)((double)loop->prompts * loop->samples /
                               MAX(1, number(import, "policy.train_global_batch_size", 512)));
    if (exchange_import_bool(import, "grpo.use_dynamic_sampling", false) && multiplier > 1) {
        loop->prompts *= multiplier;
        loop->kept_frac = 1.0 / multiplier + 1e-6;
    }
    loop->prompt_tokens = exchange_import_doc_int(import, "workload.generation.prompt_tokens",
                                                  MIN(PROMPT_TOKENS, MAX(1, longest / 2)));
    loop->answer_tokens = MAX(1, longest - loop->prompt_tokens);
    if (exchange_import_at(import, "workload.generation.prompt_tokens") == NULL)
        exchange_import_warn(import,
                             "data: prompts are taken to be of %d tokens; give --set "
                             "workload.generation.prompt_tokens=N",
                             loop->prompt_tokens);
    const bool packed = exchange_import_bool(import, "policy.sequence_packing.enabled", true),
               dynamic = exchange_import_bool(import, "policy.dynamic_batching.enabled", false);
    if (packed || dynamic)
        loop->micro_batch_tokens = number(import,
                                          packed ? "policy.sequence_packing.train_mb_tokens"
                                                 : "policy.dynamic_batching.train_mb_tokens",
                                          longest * micro);
    else
        exchange_import_native_int(import, "training.micro_batch", micro);
    loop->padded = !packed && !dynamic;
}

static void take_engine(ExchangeImport *import, ExchangeLoop *loop)
{
    const char *backend = exchange_import_text(import, ENGINE "backend");
    const bool sglang = g_strcmp0(backend, "sglang") == 0, trtllm = g_strcmp0(backend, "trtllm") == 0;
    if (backend != NULL && !sglang && !trtllm && strcmp(backend, "vllm") != 0)
        exchange_import_warn(import, ENGINE "backend: %.40s is not known; vLLM is taken", backend);
    loop->engine = sglang ? "sglang" : trtllm ? "tensorrt-llm" : "vllm";
    loop->tensor = number(import, ENGINE "vllm_cfg.tensor_parallel_size", 1);
    loop->expert = number(import, ENGINE "vllm_cfg.expert_parallel_size", 1);
    loop->eager = exchange_import_bool(import, ENGINE "vllm_cfg.enforce_eager", false);
    loop->memory_frac = exchange_import_frac(import, ENGINE "vllm_cfg.gpu_memory_utilization", 0.6);
    loop->max_sequences = number(import, ENGINE "vllm_kwargs.max_num_seqs", 0);
    if (exchange_import_bool(import, "grpo.async_grpo.enabled", false)) {
        loop->staleness_steps = MAX(1, number(import, "grpo.async_grpo.max_trajectory_age_steps", 1));
        loop->in_flight = exchange_import_bool(import, "grpo.async_grpo.in_flight_weight_updates", false);
    }
    if (g_strcmp0(exchange_import_text(import, ENGINE "vllm_cfg.precision"), "fp8") == 0)
        exchange_import_native(import, "workload.roles.rollout.training.precision", "\"fp8-blockwise\"");
}

/* Models that share GPUs move to the host's memory and back, allocated anew each time. */
static void take_moves(ExchangeImport *import, const ExchangeLoop *loop)
{
    const char *const roles[] = {loop->nodes == 0 ? "rollout" : NULL, loop->nodes == 0 ? "actor" : NULL,
                                 loop->reference ? "reference" : NULL};
    for (gsize i = 0; i < G_N_ELEMENTS(roles); i++) {
        if (roles[i] == NULL)
            continue;
        g_autofree char *offloaded = g_strdup_printf("workload.roles.%s.offloaded", roles[i]),
                        *memory = g_strdup_printf("workload.roles.%s.host_memory", roles[i]);
        exchange_import_native_bool(import, offloaded, true);
        exchange_import_native(import, memory, "\"fresh\"");
    }
}

void exchange_import_nemo_rl(ExchangeImport *import)
{
    ExchangeLoop loop = {.epochs = 1};
    const char *estimator = exchange_import_text(import, "grpo.adv_estimator.name");
    loop.critic = exchange_import_text(import, "value.model_name") != NULL ||
                  exchange_import_text(import, "ppo.num_prompts_per_step") != NULL ||
                  g_strcmp0(estimator, "gae") == 0;
    loop.reference = exchange_import_frac(import, "loss_fn.reference_policy_kl_penalty", 0.01) > 0;
    exchange_import_model(import, "policy.model_name", "model");
    exchange_import_model(import, "value.model_name", "workload.roles.critic.model");
    take_layout(import);
    take_cluster(import, &loop);
    take_batch(import, &loop);
    take_engine(import, &loop);
    exchange_import_loop(import, &loop);
    take_moves(import, &loop);
}
