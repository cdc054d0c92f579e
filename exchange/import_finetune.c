/* exchange/import_finetune.c - fine-tuning configurations into scenarios: axolotl, LLaMA-Factory, torchtune, TRL, PEFT.
 *
 * The first four name a model, what is trained, a batch on one GPU and what shards. Source: [Axolotl] utils/schemas, [LlamaFactory]
 * hparams, [Torchtune] recipes/configs, [TRL] trainer, [Transformers] training_args.py. Tested: unit/exchange/test_import_finetune.c
 */
#include <limits.h>
#include <string.h>

#include "exchange/finetune.h"
#include "exchange/import.h"
#include "exchange/model_names.h"
#include "spec/adapter.h"

#define AXOLOTL       exchange_dialect(EXCHANGE_FORMAT_AXOLOTL)
#define LLAMA_FACTORY exchange_dialect(EXCHANGE_FORMAT_LLAMA_FACTORY)
#define TORCHTUNE     exchange_dialect(EXCHANGE_FORMAT_TORCHTUNE)
#define TRL           exchange_dialect(EXCHANGE_FORMAT_TRL)
#define PEFT          exchange_dialect(EXCHANGE_FORMAT_PEFT)

static bool on(const ExchangeImport *import, const char *key, bool fallback)
{
    return exchange_import_said(import, key) != NULL ? exchange_import_bool(import, key, fallback) : fallback;
}

static bool has_word(const char *text, const char *word)
{
    g_autofree char *low = text != NULL ? g_ascii_strdown(text, -1) : NULL;
    return low != NULL && strstr(low, word) != NULL;
}

static void take_model(ExchangeImport *import, const ExchangeDialect *names)
{
    const char *model = exchange_import_said(import, names->model);
    if (model == NULL || exchange_import_at(import, "model") != NULL)
        return;
    g_autofree char *preset = exchange_model_preset(model);
    if (preset == NULL) {
        exchange_import_warn(
            import, "%s: no preset is called %.80s; give --set model=NAME, or a path of its config.json",
            names->model, model);
        return;
    }
    g_autofree char *quoted = exchange_json_text(preset);
    exchange_import_native(import, "model", quoted);
}

/* Sequences of a step: those of one GPU times the data-parallel ranks, which the launch decides. A pair of preference
 * training is one to these programs, and two sequences to a scenario. */
static void take_batch(ExchangeImport *import, const ExchangeDialect *names, bool pairs)
{
    int sequence = names->sequence_default, micro = names->micro_default, times = 1;
    const int data = exchange_import_data(import);
    (void)(exchange_import_said(import, names->sequence) != NULL &&
           exchange_import_int(import, names->sequence, &sequence));
    (void)exchange_import_int(import, names->micro, &micro);
    (void)exchange_import_int(import, names->accumulate, &times);
    micro = pairs && micro <= INT_MAX / 2 ? 2 * micro : micro;
    if (sequence > 0)
        exchange_import_native_int(import, "training.sequence_length", sequence);
    else
        exchange_import_warn(import, "%s: says no length; give --set training.sequence_length=N",
                             names->sequence);
    const double batch = (double)micro * times * MAX(data, 1);
    if (micro <= 0 || times <= 0 || batch > 1e9) {
        exchange_import_warn(import, "%s, %s: %d and %d make no batch; passed over", names->micro,
                             names->accumulate, micro, times);
        return;
    }
    exchange_import_native_int(import, "training.micro_batch", micro);
    exchange_import_native_int(import, "training.global_batch", (int)batch);
    if (data == 0)
        exchange_import_warn(
            import, "the file says no number of GPUs: global_batch %d is that of one; give --cluster",
            (int)batch);
}

/* Pairs whose loss asks no other model: axolotl's rl, LLaMA-Factory's pref_loss, TRL's loss_type. */
static bool without_reference(const ExchangeImport *import)
{
    static const char *const keys[] = {"rl", "pref_loss", "loss_type"}, *const losses[] = {"orpo", "simpo",
                                                                                           "cpo"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys) * G_N_ELEMENTS(losses); i++)
        if (g_strcmp0(exchange_import_said(import, keys[i / G_N_ELEMENTS(losses)]),
                      losses[i % G_N_ELEMENTS(losses)]) == 0)
            return true;
    return false;
}

/* Single sequences with a verdict: axolotl's rl, LLaMA-Factory's stage, TRL's loss_type. NULL: none, or what they are to a
 * scenario. Source: [TRL] trainer/kto_trainer.py, whose loss apo_zero_unpaired has no KL term. */
static const char *verdict_task(const ExchangeImport *import)
{
    static const char *const keys[] = {"rl", "stage", "loss_type"};
    if (g_strcmp0(exchange_import_said(import, "loss_type"), "apo_zero_unpaired") == 0)
        return "\"apo-unpaired\"";
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        if (g_strcmp0(exchange_import_said(import, keys[i]), "kto") == 0)
            return "\"kto\"";
    return NULL;
}

/* A model that scores: axolotl's reward_model, LLaMA-Factory's stage rm. */
static bool scores(const ExchangeImport *import)
{
    return g_strcmp0(exchange_import_said(import, "stage"), "rm") == 0 || on(import, "reward_model", false);
}

/* `base`: how frozen weights are stored; bf16: the file need not say. */
static void take_adapter(ExchangeImport *import, const ExchangeDialect *names, const char *base)
{
    int rank = names->rank_default;
    (void)exchange_import_int(import, names->rank, &rank);
    exchange_import_native_int(import, "training.adapter.rank", rank);
    if (exchange_import_said(import, names->alpha) != NULL)
        exchange_import_native(import, "training.adapter.alpha", exchange_import_said(import, names->alpha));
    if (exchange_import_said(import, names->dropout) != NULL)
        exchange_import_native(import, "training.adapter.dropout_frac",
                               exchange_import_said(import, names->dropout));
    if (strcmp(base, "bf16") != 0) {
        g_autofree char *quoted = exchange_json_text(base);
        exchange_import_native(import, "training.adapter.base_dtype", quoted);
    }
    exchange_import_adapter_layers(import, names);
}

void exchange_import_adapter(ExchangeImport *import, ExchangeFormat format)
{
    take_adapter(import, exchange_dialect(format), "bf16");
}

/* What is trained. `base`: how frozen weights are stored, or NULL where all weights are trained. */
static void take_task(ExchangeImport *import, const ExchangeDialect *names, const char *base, bool pairs)
{
    const bool narrow = base != NULL && strcmp(base, "bf16") != 0;
    const bool reward = scores(import), alone = pairs && without_reference(import);
    const char *verdict = verdict_task(import);
    const char *task = verdict != NULL ? verdict
                       : reward        ? "\"reward\""
                       : pairs         ? (alone ? "\"orpo\"" : "\"dpo\"")
                       : base == NULL  ? "\"sft\""
                       : narrow        ? "\"qlora\""
                                       : "\"lora\"";
    exchange_import_native(import, "training.task", task);
    if (verdict != NULL || (pairs && !alone && !reward))
        exchange_import_implied(import, "training.reference", base != NULL ? "\"adapter-off\"" : "\"model\"");
    if (base != NULL)
        take_adapter(import, names, base);
}

/* Number format: 16 bits of either kind, or what the program does by itself. */
static void take_precision(ExchangeImport *import, bool bf16_default)
{
    const char *bf16 = exchange_import_text(import, "bf16");
    const bool told = bf16 != NULL || exchange_import_said(import, "fp16") != NULL;
    /* "auto" reads as not said: a card that has it takes it */
    const bool half = on(import, "fp16", false);
    exchange_import_native(import, "training.precision",
                           half           ? "\"fp16\""
                           : told         ? (on(import, "bf16", true) ? "\"bf16\"" : "\"fp32\"")
                           : bf16_default ? "\"bf16\""
                                          : "\"fp32\"");
}

static void take_optimizer(ExchangeImport *import, const ExchangeDialect *names)
{
    const char *optimizer = exchange_import_said(import, names->optimizer);
    if (optimizer == NULL)
        return;
    const bool bits = has_word(optimizer, "8bit");
    if (has_word(optimizer, "paged"))
        exchange_import_warn(import,
                             "%s: %.60s: its states are taken as on the GPU, which they leave only where "
                             "memory runs short",
                             names->optimizer, optimizer);
    static const char *const other[] = {"galore",   "apollo", "lomo",   "schedule_free",
                                        "ademamix", "badam",  "adalomo"};
    bool unknown = false;
    for (gsize k = 0; k < G_N_ELEMENTS(other); k++)
        unknown = unknown || has_word(optimizer, other[k]);
    if (!unknown &&
        (has_word(optimizer, "adam") || has_word(optimizer, "lion") || has_word(optimizer, "adafactor") ||
         has_word(optimizer, "sgd") || has_word(optimizer, "muon")))
        exchange_import_native(import, "training.optimizer",
                               has_word(optimizer, "lion")        ? "\"lion\""
                               : has_word(optimizer, "adafactor") ? "\"adafactor\""
                               : has_word(optimizer, "muon")      ? "\"muon\""
                               : has_word(optimizer, "sgd")       ? "\"sgd\""
                               : bits                             ? "\"adam8bit\""
                                                                  : "\"adam\"");
    else
        exchange_import_warn(import, "%s: %.60s is not modelled; adam is taken", names->optimizer, optimizer);
}

static void take_attention(ExchangeImport *import, const char *word, bool flash)
{
    if (has_word(word, "flash_attention_3") || has_word(word, "fa3"))
        exchange_import_native(import, "execution.attention", "\"flash3\"");
    else if (flash || has_word(word, "flash") || has_word(word, "fa2") || has_word(word, "sdpa"))
        exchange_import_native(import, "execution.attention", "\"flash2\"");
    else if (has_word(word, "eager") || has_word(word, "disabled"))
        exchange_import_native(import, "execution.attention", "\"unfused\"");
}

/* Hugging Face's Trainer: sharding by a DeepSpeed file that says its stage in its name, by FSDP, or not at all. */
static void take_trainer(ExchangeImport *import, const char *fsdp_key)
{
    const char *deepspeed = exchange_import_said(import, "deepspeed"),
               *fsdp = exchange_import_said(import, fsdp_key);
    int zero = 0;
    for (int stage = 1; deepspeed != NULL && stage <= 3; stage++) {
        g_autofree char *digit = g_strdup_printf("%d", stage);
        if (has_word(deepspeed, "zero") ? strstr(deepspeed, digit) != NULL : has_word(deepspeed, digit))
            zero = stage;
    }
    if (deepspeed != NULL && zero == 0)
        exchange_import_warn(import, "deepspeed: %.80s does not tell its stage; give --set parallel.zero=N",
                             deepspeed);
    const bool shards = deepspeed == NULL && fsdp != NULL && strcmp(fsdp, "false") != 0,
               unsloth = on(import, "use_unsloth", false) || on(import, "unsloth_lora_mlp", false);
    exchange_import_native_int(import, "parallel.zero", shards ? 3 : zero);
    exchange_import_implied(import, "execution.framework",
                            deepspeed != NULL ? "\"transformers-deepspeed\""
                            : shards          ? "\"transformers-fsdp\""
                            : unsloth         ? "\"unsloth\""
                                              : "\"transformers-ddp\"");
    if (unsloth && exchange_import_at(import, "training.optimizer") == NULL)
        exchange_import_implied(import, "training.optimizer", "\"adam\"");
}

static void take_rest(ExchangeImport *import, const ExchangeDialect *names, bool checkpoints, bool packs)
{
    exchange_import_native(import, "training.recompute", checkpoints ? "\"full\"" : "\"none\"");
    if (exchange_import_said(import, names->compiled) != NULL)
        exchange_import_native_bool(import, "execution.compiled", on(import, names->compiled, false));
    if (!packs)
        exchange_import_warn(
            import, "packing is off: every sequence is taken as long as the longest; give the mean as "
                    "training.sequence_length");
    const bool told = !exchange_import_is_placeholder(import, names->epochs);
    const char *epochs = told ? exchange_import_said(import, names->epochs) : NULL;
    int steps = 0;
    const bool limited = exchange_import_int(import, names->steps, &steps) && steps > 0;
    if (limited)
        exchange_import_steps(import, names->steps);
    else if (epochs != NULL && exchange_import_at(import, "training.samples") != NULL)
        exchange_import_native(import, "training.epochs", epochs);
    else if (epochs != NULL)
        exchange_import_warn(
            import, "%s: %s of a data set whose size the file does not say; give --set training.samples=N",
            names->epochs, epochs);
}

void exchange_import_axolotl(ExchangeImport *import)
{
    const char *adapter = exchange_import_said(import, "adapter"), *rl = exchange_import_said(import, "rl");
    const bool lora = adapter != NULL && has_word(adapter, "lora");
    const char *base = !lora                               ? NULL
                       : on(import, "load_in_4bit", false) ? "nf4"
                       : on(import, "load_in_8bit", false) ? "int8"
                                                           : "bf16";
    if (adapter != NULL && !lora)
        exchange_import_warn(import, "adapter: %.40s is not modelled; all weights are taken as trained",
                             adapter);
    const bool verdicts = verdict_task(import) != NULL;
    if (rl != NULL && strcmp(rl, "dpo") != 0 && !without_reference(import) && !verdicts)
        exchange_import_warn(import, "rl: %.40s is not modelled; taken as dpo", rl);
    take_model(import, AXOLOTL);
    const bool pairs = (rl != NULL && !verdicts) || scores(import);
    take_batch(import, AXOLOTL, pairs);
    take_task(import, AXOLOTL, base, pairs);
    take_precision(import, false);
    take_optimizer(import, AXOLOTL);
    take_attention(import, exchange_import_said(import, "attn_implementation"),
                   on(import, "flash_attention", false) || on(import, "sdp_attention", false));
    take_trainer(import, settings_find(import->in, "fsdp_config.fsdp_version") != NULL
                             ? "fsdp_config.fsdp_version"
                             : "fsdp");
    exchange_import_move(import, "tensor_parallel_size", "parallel.tensor");
    exchange_import_move(import, "context_parallel_size", "parallel.context");
    exchange_import_move(import, "expert_parallel_size", "parallel.expert");
    take_rest(import, AXOLOTL, on(import, "gradient_checkpointing", false),
              on(import, "sample_packing", false));
}

/* LLaMA-Factory's freeze: the last layers are trained, two where the file does not say how many, and what freeze_extra_modules
 * adds. */
static void take_freeze(ExchangeImport *import)
{
    int trained = 2;
    const int layers = exchange_import_layers(import);
    const char *extra = exchange_import_said(import, "freeze_extra_modules");
    (void)exchange_import_int(import, "freeze_trainable_layers", &trained);
    if (layers == 0 || trained <= 0 || trained > layers ||
        g_strcmp0(exchange_import_text(import, "use_llama_pro"), "true") == 0) {
        exchange_import_warn(import,
                             "freeze_trainable_layers: %d of %d layers is not modelled (only the last ones "
                             "of a known model are); all weights are taken as trained",
                             trained, layers);
        return;
    }
    exchange_import_native_int(import, "training.freeze.layers", layers - trained);
    exchange_import_native_bool(import, "training.freeze.embedding", !has_word(extra, "embed"));
    exchange_import_native_bool(import, "training.freeze.head", !has_word(extra, "lm_head"));
}

void exchange_import_llama_factory(ExchangeImport *import)
{
    const char *kind = exchange_import_said(import, "finetuning_type"),
               *stage = exchange_import_said(import, "stage"),
               *bits = exchange_import_said(import, "quantization_bit");
    const bool freezes = g_strcmp0(kind, "freeze") == 0, lora = kind == NULL || strcmp(kind, "lora") == 0,
               pairs = g_strcmp0(stage, "dpo") == 0 || g_strcmp0(stage, "rm") == 0;
    if (kind != NULL && !lora && !freezes && strcmp(kind, "full") != 0)
        exchange_import_warn(
            import, "finetuning_type: %.40s is not modelled; all weights are taken as trained", kind);
    if (stage != NULL && !pairs && verdict_task(import) == NULL && strcmp(stage, "sft") != 0 &&
        strcmp(stage, "pt") != 0)
        exchange_import_warn(import, "stage: %.40s is not modelled; taken as sft", stage);
    take_model(import, LLAMA_FACTORY);
    if (freezes)
        take_freeze(import);
    take_batch(import, LLAMA_FACTORY, pairs);
    take_task(import, LLAMA_FACTORY,
              !lora                    ? NULL
              : bits == NULL           ? "bf16"
              : strcmp(bits, "4") == 0 ? "nf4"
                                       : "int8",
              pairs);
    take_precision(import, false);
    take_optimizer(import, LLAMA_FACTORY);
    take_attention(import, exchange_import_said(import, "flash_attn"), false);
    take_trainer(import, "fsdp");
    take_rest(import, LLAMA_FACTORY, !on(import, "disable_gradient_checkpointing", false),
              on(import, "packing", g_strcmp0(stage, "pt") == 0));
}

void exchange_import_trl(ExchangeImport *import)
{
    const bool lora = on(import, "use_peft", false);
    const bool pairs =
        verdict_task(import) == NULL && (scores(import) || settings_find(import->in, "beta") != NULL ||
                                         settings_find(import->in, "loss_type") != NULL ||
                                         settings_find(import->in, "precompute_ref_log_probs") != NULL);
    if (on(import, "precompute_ref_log_probs", false))
        exchange_import_implied(import, "training.reference", "\"cached\"");
    take_model(import, TRL);
    take_batch(import, TRL, pairs);
    take_task(import, TRL,
              !lora                               ? NULL
              : on(import, "load_in_4bit", false) ? "nf4"
              : on(import, "load_in_8bit", false) ? "int8"
                                                  : "bf16",
              pairs);
    take_precision(import, true);
    take_optimizer(import, TRL);
    take_attention(import, exchange_import_said(import, "attn_implementation"), false);
    take_trainer(import, "fsdp");
    take_rest(import, TRL, on(import, "gradient_checkpointing", true), on(import, "packing", false));
}

/* Keys of adapters that cost something else and are not modelled, where they are on. */
static void warn_of_kin(ExchangeImport *import)
{
    static const char *const kin[] = {"use_dora", "rank_pattern", "layers_to_transform", "lora_bias"};
    for (guint i = 0; i < import->in->list->len; i++) {
        Setting *setting = &g_array_index(import->in->list, Setting, i);
        const gsize length = strcspn(setting->key, ".");
        const bool off = strcmp(setting->value, "null") == 0 || strcmp(setting->value, "false") == 0 ||
                         strcmp(setting->value, "[]") == 0;
        setting->used = setting->used || off;
        for (gsize k = 0; !off && k < G_N_ELEMENTS(kin); k++)
            if (strlen(kin[k]) == length && strncmp(kin[k], setting->key, length) == 0) {
                exchange_import_warn(import, "%.80s: %.60s is not modelled; passed over", setting->key,
                                     setting->value);
                setting->used = true;
            }
    }
}

/* The adapter alone. A scenario whose weights are stored narrow, or whose texts are preferences, stays so. */
void exchange_import_peft(ExchangeImport *import)
{
    static const char *const harmless[] = {
        "peft_type",       "task_type",          "bias",         "inference_mode",  "init_lora_weights",
        "fan_in_fan_out",  "use_rslora",         "auto_mapping", "revision",        "alpha_pattern",
        "peft_version",    "layers_pattern",     "corda_config", "eva_config",      "loftq_config",
        "megatron_config", "megatron_core",      "use_qalora",   "exclude_modules", "qalora_group_size",
        "arrow_config",    "ensure_weight_tying"};
    const OrrJson *task = exchange_import_at(import, "training.task");
    const char *word =
        task != NULL && orr_json_type(task) == ORR_JSON_TEXT ? orr_json_text(task) : "pretrain";
    warn_of_kin(import);
    take_model(import, PEFT);
    exchange_import_harmless(import, harmless, G_N_ELEMENTS(harmless));
    const bool narrow =
        has_word(exchange_import_said(import, PEFT->model), "bnb-4bit"); /* Unsloth's, stored so */
    if (strcmp(word, "pretrain") == 0 || strcmp(word, "sft") == 0)
        exchange_import_native(import, "training.task", narrow ? "\"qlora\"" : "\"lora\"");
    take_adapter(import, PEFT, narrow ? "nf4" : "bf16");
}

void exchange_import_torchtune(ExchangeImport *import)
{
    const char *component = exchange_import_said(import, "model._component_"),
               *type = exchange_import_said(import, "dtype"),
               *loss = exchange_import_said(import, "loss._component_");
    const bool quantised = has_word(component, "qlora") || on(import, "model.quantize_base", false),
               lora = has_word(component, "lora"), pairs = has_word(loss, "dpo");
    take_model(import, TORCHTUNE);
    take_batch(import, TORCHTUNE, pairs);
    take_task(import, TORCHTUNE, !lora ? NULL : quantised ? "nf4" : "bf16", pairs);
    exchange_import_native(import, "training.precision",
                           g_strcmp0(type, "fp32") == 0 ? "\"fp32\"" : "\"bf16\"");
    take_optimizer(import, TORCHTUNE);
    exchange_import_move(import, "tensor_parallel_dim", "parallel.tensor");
    exchange_import_native_int(import, "parallel.zero", exchange_import_data(import) > 1 ? 3 : 0);
    exchange_import_implied(import, "execution.framework", "\"torchtune\"");
    if (on(import, "enable_activation_offloading", false))
        exchange_import_native(import, "offload.activations.tier", "\"host\"");
    take_rest(import, TORCHTUNE, on(import, "enable_activation_checkpointing", false),
              on(import, "dataset.packed", false));
}
