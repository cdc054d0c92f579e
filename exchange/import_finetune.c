/* exchange/import_finetune.c - fine-tuning configurations into scenarios: axolotl, LLaMA-Factory, torchtune, TRL, PEFT.
 *
 * The first four name a model, what is trained, a batch on one GPU and what shards. Source: [Axolotl] utils/schemas, [LlamaFactory]
 * hparams, [Torchtune] recipes/configs, [TRL] trainer, [Transformers] training_args.py. Tested: unit/exchange/test_import_finetune.c
 */
#include <limits.h>
#include <string.h>

#include "exchange/finetune.h"
#include "exchange/import.h"
#include "exchange/import_trainer.h"
#include "spec/model_names.h"
#include "spec/adapter.h"

#define AXOLOTL       exchange_dialect(EXCHANGE_FORMAT_AXOLOTL)
#define LLAMA_FACTORY exchange_dialect(EXCHANGE_FORMAT_LLAMA_FACTORY)
#define TORCHTUNE     exchange_dialect(EXCHANGE_FORMAT_TORCHTUNE)
#define TRL           exchange_dialect(EXCHANGE_FORMAT_TRL)
#define PEFT          exchange_dialect(EXCHANGE_FORMAT_PEFT)

static void take_model(ExchangeImport *import, const ExchangeDialect *names)
{
    const char *model = exchange_import_said(import, names->model);
    if (model == NULL || exchange_import_at(import, "model") != NULL)
        return;
    g_autofree char *preset = spec_model_preset(model);
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
    const bool told = exchange_import_said(import, names->sequence) != NULL &&
                      exchange_import_int(import, names->sequence, &sequence);
    if (!told && sequence > 0)
        exchange_import_warn(import, "%s: not given; %d, the program's own, is taken", names->sequence,
                             sequence);
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
        exchange_import_warn(import, "%s, %s: %d and %d give no whole batch; ignored", names->micro,
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
    return g_strcmp0(exchange_import_said(import, "stage"), "rm") == 0 ||
           exchange_import_on(import, "reward_model", false);
}

/* How the weights of a model are stored that somebody quantised before, by the end of its name; NULL: not so. */
static const char *stored_as(const char *model)
{
    if (exchange_has_word(model, "bnb-4bit"))
        return "nf4";
    if (exchange_has_word(model, "-gptq-int8") || exchange_has_word(model, "-gptq-8bit"))
        return "int8";
    return exchange_has_word(model, "-gptq") || exchange_has_word(model, "-awq") ? "int4" : NULL;
}

/* Frozen weights below adapters: as the file has them quantised, or as the model's name says that they are. */
static const char *base_of(const ExchangeImport *import, const ExchangeDialect *names, const char *said)
{
    const char *stored = stored_as(exchange_import_said(import, names->model));
    return stored != NULL && (strcmp(said, "bf16") == 0 || strcmp(stored, "int4") == 0) ? stored : said;
}

/* PEFT keeps adapters of models of 16 bits in fp32. An adapter that the scenario has already stays as it is.
 * Source: [PEFT] mapping_func.py, autocast_adapter_dtype; [LlamaFactory] model/adapter.py, cast_trainable_params_to_fp32 */
static void take_adapter_dtype(ExchangeImport *import)
{
    const bool cast = exchange_import_on(import, "peft_autocast_adapter_dtype",
                                         !exchange_import_on(import, "pure_bf16", false));
    exchange_import_native(import, "training.adapter.dtype", cast ? "\"fp32\"" : "\"bf16\"");
}

/* `base`: how frozen weights are stored; bf16: the file need not say. */
static void take_adapter(ExchangeImport *import, const ExchangeDialect *names, const char *base)
{
    int rank = names->rank_default;
    (void)exchange_import_int(import, names->rank, &rank);
    if (rank <= 0) {
        exchange_import_refuse(import, "%s: %d is not a rank of an adapter; give 1 or more", names->rank,
                               rank);
        return;
    }
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

/* What is trained. `base`: how frozen weights are stored, or NULL where all weights are trained. `peft`: by that library. */
static void take_task(ExchangeImport *import, const ExchangeDialect *names, const char *base, bool pairs,
                      bool peft)
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
    const bool new_adapter = peft && exchange_import_at(import, "training.adapter") == NULL;
    if (base != NULL)
        take_adapter(import, names, base);
    if (base != NULL && new_adapter)
        take_adapter_dtype(import);
}

/* Images of the sequences are data, which no file says. */
static void warn_of_images(const ExchangeImport *import, const ExchangeDialect *names)
{
    static const char *const keys[] = {"image_max_pixels", "image_size", "processor_type",
                                       "freeze_vision_tower"};
    const char *model = exchange_import_said(import, names->model);
    const char *key = exchange_has_word(model, "vision") || exchange_has_word(model, "-vl") ||
                              exchange_has_word(model, "3vl") || exchange_has_word(model, "llava") ||
                              exchange_has_word(model, "pixtral")
                          ? names->model
                          : NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        key = exchange_import_said(import, keys[i]) != NULL && key == NULL ? keys[i] : key;
    if (key != NULL && exchange_import_at(import, "training.images") == NULL)
        exchange_import_warn(import,
                             "%s: images of the sequences are left out; give --set "
                             "training.images.per_sequence=N and training.images.patches=N",
                             key);
}

/* What axolotl, LLaMA-Factory and TRL end with alike. */
static void take_program(ExchangeImport *import, ExchangeFormat format, const ExchangeSharding *sharding)
{
    exchange_import_precision(import, format);
    exchange_import_trainer(import, sharding);
    exchange_import_unmodelled(import);
    warn_of_images(import, exchange_dialect(format));
}

static void take_attention(ExchangeImport *import, const char *word, bool flash)
{
    if (exchange_has_word(word, "flash_attention_3") || exchange_has_word(word, "fa3"))
        exchange_import_native(import, "execution.attention", "\"flash3\"");
    else if (flash || exchange_has_word(word, "flash") || exchange_has_word(word, "fa2") ||
             exchange_has_word(word, "sdpa"))
        exchange_import_native(import, "execution.attention", "\"flash2\"");
    else if (exchange_has_word(word, "eager") || exchange_has_word(word, "disabled"))
        exchange_import_native(import, "execution.attention", "\"unfused\"");
}

static void take_rest(ExchangeImport *import, const ExchangeDialect *names, bool checkpoints, bool packs)
{
    exchange_import_native(import, "training.recompute", checkpoints ? "\"full\"" : "\"none\"");
    if (exchange_import_said(import, names->compiled) != NULL)
        exchange_import_native_bool(import, "execution.compiled",
                                    exchange_import_on(import, names->compiled, false));
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
    const bool lora = adapter != NULL && exchange_has_word(adapter, "lora");
    const bool four = exchange_import_on(import, "load_in_4bit", false),
               gptq = exchange_import_on(import, "gptq", false);
    const char *base = !lora                                               ? NULL
                       : gptq                                              ? "int4"
                       : four                                              ? "nf4"
                       : exchange_import_on(import, "load_in_8bit", false) ? "int8"
                                                                           : "bf16";
    base = base != NULL ? base_of(import, AXOLOTL, base) : NULL;
    if (base != NULL && strcmp(adapter, "qlora") == 0 && !four) {
        exchange_import_warn(import, "adapter: qlora without load_in_4bit: true, which axolotl refuses; %s",
                             strcmp(base, "int4") == 0 ? "taken as int4" : "taken as nf4");
        base = strcmp(base, "int4") == 0 ? base : "nf4";
    }
    if (adapter != NULL && !lora)
        exchange_import_warn(import, "adapter: %.40s is not modelled; all weights are taken as trained",
                             adapter);
    const bool verdicts = verdict_task(import) != NULL;
    if (rl != NULL && strcmp(rl, "dpo") != 0 && !without_reference(import) && !verdicts)
        exchange_import_warn(import, "rl: %.40s is not modelled; taken as dpo", rl);
    take_model(import, AXOLOTL);
    const bool pairs = (rl != NULL && !verdicts) || scores(import);
    const ExchangeSharding sharding = exchange_import_sharding(import);
    const bool offloads = g_strcmp0(exchange_import_said(import, "gradient_checkpointing"), "offload") ==
                          0; /* of their inputs */
    exchange_import_move(import, "tensor_parallel_size", "parallel.tensor");
    exchange_import_move(import, "context_parallel_size", "parallel.context");
    exchange_import_move(import, "expert_parallel_size", "parallel.expert");
    exchange_import_data_ranks(import);
    take_batch(import, AXOLOTL, pairs);
    take_task(import, AXOLOTL, base, pairs, true);
    exchange_import_optimizer(import, AXOLOTL);
    take_attention(import, exchange_import_said(import, "attn_implementation"),
                   exchange_import_on(import, "flash_attention", false) ||
                       exchange_import_on(import, "sdp_attention", false));
    take_rest(import, AXOLOTL, offloads || exchange_import_on(import, "gradient_checkpointing", false),
              exchange_import_on(import, "sample_packing", false));
    if (offloads)
        exchange_import_native(import, "offload.activations.tier", "host");
    take_program(import, EXCHANGE_FORMAT_AXOLOTL, &sharding);
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
    exchange_import_native_bool(import, "training.freeze.embedding", !exchange_has_word(extra, "embed"));
    exchange_import_native_bool(import, "training.freeze.head", !exchange_has_word(extra, "lm_head"));
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
    const ExchangeSharding sharding = exchange_import_sharding(import);
    take_batch(import, LLAMA_FACTORY, pairs);
    take_task(import, LLAMA_FACTORY,
              !lora ? NULL
                    : base_of(import, LLAMA_FACTORY,
                              bits == NULL             ? "bf16"
                              : strcmp(bits, "4") == 0 ? "nf4"
                                                       : "int8"),
              pairs, true);
    exchange_import_optimizer(import, LLAMA_FACTORY);
    take_attention(import, exchange_import_said(import, "flash_attn"), false);
    take_rest(import, LLAMA_FACTORY, !exchange_import_on(import, "disable_gradient_checkpointing", false),
              exchange_import_on(import, "packing", g_strcmp0(stage, "pt") == 0));
    take_program(import, EXCHANGE_FORMAT_LLAMA_FACTORY, &sharding);
}

void exchange_import_trl(ExchangeImport *import)
{
    const bool lora = exchange_import_on(import, "use_peft", false) ||
                      exchange_import_on(import, "use_peft_lora", false); /* PEFT's examples/sft */
    const bool pairs =
        verdict_task(import) == NULL && (scores(import) || settings_find(import->in, "beta") != NULL ||
                                         settings_find(import->in, "loss_type") != NULL ||
                                         settings_find(import->in, "precompute_ref_log_probs") != NULL);
    if (exchange_import_on(import, "precompute_ref_log_probs", false))
        exchange_import_implied(import, "training.reference", "\"cached\"");
    take_model(import, TRL);
    const ExchangeSharding sharding = exchange_import_accelerate(import);
    const bool four = exchange_import_on(import, "load_in_4bit", false) ||
                      exchange_import_on(import, "use_4bit_quantization", false),
               eight = exchange_import_on(import, "load_in_8bit", false) ||
                       exchange_import_on(import, "use_8bit_quantization", false);
    take_batch(import, TRL, pairs);
    take_task(import, TRL,
              !lora ? NULL
                    : base_of(import, TRL,
                              four    ? "nf4"
                              : eight ? "int8"
                                      : "bf16"),
              pairs, true);
    exchange_import_optimizer(import, TRL);
    take_attention(import, exchange_import_said(import, "attn_implementation"),
                   exchange_import_on(import, "use_flash_attn", false));
    take_rest(import, TRL, exchange_import_on(import, "gradient_checkpointing", true),
              exchange_import_on(import, "packing", false));
    take_program(import, EXCHANGE_FORMAT_TRL, &sharding);
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
                exchange_import_warn(import, "%.80s: %.60s is not modelled; ignored", setting->key,
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
    const char *base = base_of(import, PEFT, "bf16");
    const bool narrow = strcmp(base, "bf16") != 0; /* Unsloth's, stored so */
    if (strcmp(word, "pretrain") == 0 || strcmp(word, "sft") == 0)
        exchange_import_native(import, "training.task", narrow ? "\"qlora\"" : "\"lora\"");
    take_adapter(import, PEFT, base);
}

void exchange_import_torchtune(ExchangeImport *import)
{
    const char *component = exchange_import_said(import, "model._component_"),
               *type = exchange_import_said(import, "dtype"),
               *loss = exchange_import_said(import, "loss._component_");
    const bool quantised = exchange_has_word(component, "qlora") ||
                           exchange_import_on(import, "model.quantize_base", false),
               lora = exchange_has_word(component, "lora"), pairs = exchange_has_word(loss, "dpo");
    take_model(import, TORCHTUNE);
    const bool single = exchange_import_on(import, "single_device", false) ||
                        exchange_has_word(import->path, "_single_device");
    const int data = exchange_import_data(import);
    if (single && data == 0)
        exchange_import_native_int(import, "parallel.data", 1);
    else if (single && data > 1)
        exchange_import_warn(import,
                             "the recipe runs on one GPU, and the scenario has %d data-parallel ranks; "
                             "give a cluster of one",
                             data);
    take_batch(import, TORCHTUNE, pairs);
    take_task(import, TORCHTUNE, !lora ? NULL : quantised ? "nf4" : "bf16", pairs, false);
    exchange_import_native(import, "training.precision",
                           g_strcmp0(type, "fp32") == 0 ? "\"fp32\"" : "\"bf16\"");
    exchange_import_optimizer(import, TORCHTUNE);
    exchange_import_move(import, "tensor_parallel_dim", "parallel.tensor");
    exchange_import_native_int(import, "parallel.zero", !single && exchange_import_data(import) > 1 ? 3 : 0);
    exchange_import_implied(import, "execution.framework", "\"torchtune\"");
    if (exchange_import_on(import, "enable_activation_offloading", false))
        exchange_import_native(import, "offload.activations.tier", "\"host\"");
    take_rest(import, TORCHTUNE, exchange_import_on(import, "enable_activation_checkpointing", false),
              exchange_import_on(import, "dataset.packed", false));
    exchange_import_unmodelled(import);
    warn_of_images(import, TORCHTUNE);
}
