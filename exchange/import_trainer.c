/* exchange/import_trainer.c - what fine-tuning programs share: number formats, optimizers, and Hugging Face's Trainer, which shards
 * by DeepSpeed or by FSDP.
 *
 * Source: [Axolotl] utils/schemas/config.py, fsdp.py, core/builders/base.py; [LlamaFactory] hparams, examples/deepspeed;
 * [Transformers] training_args.py; Accelerate utils/dataclasses.py. Tested: unit/exchange/test_import_trainer.c
 */
#include <string.h>

#include "exchange/import_trainer.h"

bool exchange_has_word(const char *text, const char *word)
{
    g_autofree char *low = text != NULL ? g_ascii_strdown(text, -1) : NULL;
    return low != NULL && strstr(low, word) != NULL;
}

bool exchange_import_on(const ExchangeImport *import, const char *key, bool fallback)
{
    return exchange_import_said(import, key) != NULL ? exchange_import_bool(import, key, fallback) : fallback;
}

/* --- number formats and optimizers --- */

/* Weights, gradients and moments all in bf16, without a master copy. */
static void take_pure_bf16(ExchangeImport *import, const char *key)
{
    const OrrJson *optimizer = exchange_import_at(import, "training.optimizer");
    const char *word =
        optimizer != NULL && orr_json_type(optimizer) == ORR_JSON_TEXT ? orr_json_text(optimizer) : "adam";
    if (exchange_import_at(import, "training.adapter") != NULL) /* whose states are those of the adapter */
        return;
    if (strcmp(word, "adam") == 0)
        exchange_import_native(import, "training.states",
                               "{\"weights\":2,\"gradients\":2,\"master\":0,\"moments\":4}");
    else
        exchange_import_warn(import,
                             "%s: states of %.40s are taken as the framework keeps them; give "
                             "training.states",
                             key, word);
}

void exchange_import_precision(ExchangeImport *import, ExchangeFormat format)
{
    const bool axolotl = format == EXCHANGE_FORMAT_AXOLOTL,
               bf16_default = axolotl || format == EXCHANGE_FORMAT_TRL;
    const char *bf16 = exchange_import_said(import, "bf16"); /* "auto" reads as not said */
    const Setting *setting = settings_find(import->in, "bf16");
    const bool full = axolotl && g_strcmp0(bf16, "full") == 0,
               pure =
                   format == EXCHANGE_FORMAT_LLAMA_FACTORY && exchange_import_on(import, "pure_bf16", false),
               automatic = axolotl && setting != NULL && g_strcmp0(setting->value, "auto") == 0;
    const bool half = exchange_import_on(import, "fp16", false);
    const bool told = !axolotl && (bf16 != NULL ||
                                   exchange_import_said(import, "fp16") != NULL); /* TRL: fp16 off, bf16 on */
    const bool wide = full || pure || automatic || exchange_import_on(import, "bf16", bf16_default || told) ||
                      (axolotl && exchange_import_on(import, "bfloat16", false));
    exchange_import_native(import, "training.precision",
                           half && !full && !pure ? "\"fp16\""
                           : wide                 ? "\"bf16\""
                                                  : "\"fp32\"");
    if (full || pure)
        take_pure_bf16(import, full ? "bf16: full" : "pure_bf16");
}

void exchange_import_optimizer(ExchangeImport *import, const ExchangeDialect *names)
{
    const char *optimizer = exchange_import_said(import, names->optimizer);
    if (optimizer == NULL)
        return;
    const bool bits = exchange_has_word(optimizer, "8bit");
    if (exchange_has_word(optimizer, "paged"))
        exchange_import_warn(import,
                             "%s: %.60s: its states are taken as on the GPU, which they leave only where "
                             "memory runs short",
                             names->optimizer, optimizer);
    static const char *const other[] = {"galore",   "apollo", "lomo",   "schedule_free",
                                        "ademamix", "badam",  "adalomo"};
    bool unknown = false;
    for (gsize k = 0; k < G_N_ELEMENTS(other); k++)
        unknown = unknown || exchange_has_word(optimizer, other[k]);
    const bool lion = exchange_has_word(optimizer, "lion"), sgd = exchange_has_word(optimizer, "sgd"),
               factored = exchange_has_word(optimizer, "adafactor"),
               muon = exchange_has_word(optimizer, "muon");
    if (!unknown && (exchange_has_word(optimizer, "adam") || lion || factored || sgd || muon))
        exchange_import_native(import, "training.optimizer",
                               lion       ? "\"lion\""
                               : factored ? "\"adafactor\""
                               : muon     ? "\"muon\""
                               : sgd      ? "\"sgd\""
                               : bits     ? "\"adam8bit\""
                                          : "\"adam\"");
    else
        exchange_import_warn(import, "%s: %.60s is not modelled; adam is taken", names->optimizer, optimizer);
}

/* Switches of what the model has no term for, and how the keys of their figures begin. */
static const struct {
    const char *key, *figures;
} not_modelled[] = {
    {"use_galore", "galore_"},
    {"use_apollo", "apollo_"},
    {"use_badam", "badam_"},
    {"lisa_n_layers", "lisa_"},
    {"lisa_step_interval", "lisa_"},
    {"optimizer_in_bwd", NULL},
    {"use_dora", NULL},
    {"peft_use_dora", NULL},
    {"model.use_dora", NULL},
    {"unfrozen_parameters", NULL},
    {"use_adam_mini", NULL},
};

void exchange_import_unmodelled(const ExchangeImport *import)
{
    for (gsize i = 0; i < G_N_ELEMENTS(not_modelled); i++) {
        const char *value = exchange_import_said(import, not_modelled[i].key);
        if (value == NULL || g_ascii_strcasecmp(value, "false") == 0 || strcmp(value, "[]") == 0 ||
            strcmp(value, "0") == 0)
            continue;
        exchange_import_warn(import, "%s: %.60s is not modelled; the step is predicted without it",
                             not_modelled[i].key, value);
        for (guint k = 0; not_modelled[i].figures != NULL && k < import->in->list->len; k++) {
            Setting *setting = &g_array_index(import->in->list, Setting, k);
            setting->used = setting->used || g_str_has_prefix(setting->key, not_modelled[i].figures);
        }
    }
}

/* --- sharding --- */

int exchange_zero_stage(const char *file)
{
    g_autofree char *low = g_ascii_strdown(file, -1);
    g_autoptr(GRegex) pattern = g_regex_new("(?:zero|z|stage)[-_]?([0-3])(?![0-9])", G_REGEX_RAW, 0, NULL);
    GMatchInfo *match = NULL;
    int stage = -1;
    if (g_regex_match(pattern, low, 0, &match)) {
        g_autofree char *digit = g_match_info_fetch(match, 1);
        stage = digit[0] - '0';
    }
    g_match_info_free(match);
    for (int digit = 3; stage < 0 && digit >= 1; digit--)
        if (strchr(low, '0' + digit) != NULL)
            stage = digit;
    return stage;
}

/* States that wait in the host's memory, pinned as the programs' own files have it. */
static void take_host(ExchangeImport *import, int zero, bool optimizer, bool weights)
{
    if (!optimizer && !weights)
        return;
    if (zero == 0) {
        exchange_import_warn(import, "states on the host, but nothing is sharded: taken as on the GPU");
        return;
    }
    exchange_import_native(import, "offload.scheme", zero == 3 ? "zero3-offload" : "zero-offload");
    exchange_import_native(import, "offload.optimizer.tier", optimizer ? "host" : "gpu");
    exchange_import_native(import, "offload.weights.tier", weights ? "host" : "gpu");
    exchange_import_native_bool(import, "offload.pinned", true);
}

/* A key of fsdp_config, as FSDP 2 has it or with FSDP 1's fsdp_ before it. */
static const char *fsdp_said(const ExchangeImport *import, const char *name)
{
    g_autofree char *plain = g_strconcat("fsdp_config.", name, NULL),
                    *old = g_strconcat("fsdp_config.fsdp_", name, NULL);
    const char *value = exchange_import_said(import, plain), *older = exchange_import_said(import, old);
    return value != NULL ? value : older;
}

int exchange_fsdp_stage(const char *strategy, const char *reshards)
{
    return exchange_has_word(strategy, "no_shard") ? 0
           : exchange_has_word(strategy, "shard_grad_op") || exchange_has_word(reshards, "shard_grad_op") ||
                   (reshards != NULL && g_ascii_strcasecmp(reshards, "false") == 0)
               ? 2
               : 3;
}

static bool is_true(const char *text)
{
    return text != NULL && g_ascii_strcasecmp(text, "true") == 0;
}

/* The builder tests `fsdp_config or fsdp`. */
static bool asks_fsdp(const ExchangeImport *import)
{
    const char *fsdp = exchange_import_said(import, "fsdp"),
               *version = exchange_import_said(import, "fsdp_version");
    bool any = version != NULL && strcmp(version, "false") != 0;
    for (guint i = 0; i < import->in->list->len; i++)
        any = any || g_str_has_prefix(g_array_index(import->in->list, Setting, i).key, "fsdp_config.");
    if (fsdp != NULL && (g_ascii_strcasecmp(fsdp, "false") == 0 || strcmp(fsdp, "[]") == 0))
        return any;
    return any || fsdp != NULL;
}

static void take_fsdp_config(const ExchangeImport *import, ExchangeSharding *sharding)
{
    static const char *const loads[] = {"state_dict_type",
                                        "final_state_dict_type",
                                        "sync_module_states",
                                        "cpu_ram_efficient_loading",
                                        "use_orig_params",
                                        "auto_wrap_policy",
                                        "version",
                                        "transformer_layer_cls_to_wrap",
                                        "cpu_offload_pin_memory",
                                        "limit_all_gathers"};
    const char *fsdp = exchange_import_said(import, "fsdp"),
               *strategy = fsdp_said(import, "sharding_strategy");
    for (gsize i = 0; i < G_N_ELEMENTS(loads); i++)
        (void)fsdp_said(import, loads[i]);
    sharding->fsdp = true;
    sharding->zero =
        exchange_fsdp_stage(strategy != NULL ? strategy : fsdp, fsdp_said(import, "reshard_after_forward"));
    sharding->host_optimizer = sharding->host_weights =
        is_true(fsdp_said(import, "offload_params")) || exchange_has_word(fsdp, "offload");
    sharding->checkpoints = is_true(fsdp_said(import, "activation_checkpointing"));
}

static void take_deepspeed_file(const ExchangeImport *import, const char *file, ExchangeSharding *sharding)
{
    const int stage = exchange_zero_stage(file);
    const bool host = exchange_has_word(file, "offload"),
               weights_alone = exchange_has_word(file, "offload_params");
    sharding->deepspeed = true;
    sharding->zero = MAX(stage, 0);
    sharding->host_optimizer = host && !weights_alone;
    sharding->host_weights = host && stage == 3;
    if (stage < 0)
        exchange_import_warn(import, "deepspeed: %.80s does not tell its stage; give --set parallel.zero=N",
                             file);
}

ExchangeSharding exchange_import_sharding(const ExchangeImport *import)
{
    ExchangeSharding sharding = {0};
    const char *deepspeed = exchange_import_said(import, "deepspeed");
    const bool fsdp = asks_fsdp(import);
    if (deepspeed != NULL)
        take_deepspeed_file(import, deepspeed, &sharding);
    else if (fsdp)
        take_fsdp_config(import, &sharding);
    return sharding;
}

/* HSDP: shards within groups of dp_shard_size ranks. */
static void take_groups(ExchangeImport *import)
{
    int shard = 0;
    const int data = exchange_import_data(import);
    if (exchange_import_int(import, "dp_shard_size", &shard) && shard > 1 && data > shard &&
        data % shard == 0)
        exchange_import_native_int(import, "parallel.zero_group_gpus", shard);
}

void exchange_import_data_ranks(ExchangeImport *import)
{
    int shard = 0, replicas = 1;
    (void)exchange_import_int(import, "dp_replicate_size", &replicas);
    if (exchange_import_int(import, "dp_shard_size", &shard) && shard > 0 && replicas > 0 &&
        shard <= 1000000 / replicas && exchange_import_data(import) == 0)
        exchange_import_native_int(import, "parallel.data", shard * replicas);
}

void exchange_import_trainer(ExchangeImport *import, const ExchangeSharding *sharding)
{
    const bool unsloth = exchange_import_on(import, "use_unsloth", false) ||
                         exchange_import_on(import, "unsloth_lora_mlp", false);
    exchange_import_native_int(import, "parallel.zero", sharding->zero);
    exchange_import_implied(import, "execution.framework",
                            sharding->deepspeed ? "\"transformers-deepspeed\""
                            : sharding->fsdp    ? "\"transformers-fsdp\""
                            : unsloth           ? "\"unsloth\""
                                                : "\"transformers-ddp\"");
    if (unsloth && exchange_import_at(import, "training.optimizer") == NULL)
        exchange_import_implied(import, "training.optimizer", "\"adam\"");
    if (sharding->zero == 3)
        take_groups(import);
    take_host(import, sharding->zero, sharding->host_optimizer, sharding->host_weights);
    if (sharding->checkpoints)
        exchange_import_native(import, "training.recompute", "\"full\"");
}
