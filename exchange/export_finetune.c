/* exchange/export_finetune.c - a scenario as a fine-tuning configuration: axolotl, LLaMA-Factory, torchtune, TRL, PEFT.
 *
 * Their names are those that exchange/import_finetune.c reads. Model, data set and learning rate are placeholders.
 * Source: [Axolotl] utils/schemas, [LlamaFactory] hparams, [Torchtune] recipes/configs, [TRL] scripts/utils.py,
 * [PEFT] tuners/lora/config.py, whose older releases refuse a key that they do not know
 * Tested: unit/exchange/test_export_finetune.c
 */
#include <math.h>
#include <string.h>

#include "exchange/export.h"
#include "exchange/finetune.h"

typedef struct Export {
    const Spec *spec;
    const ExchangeDialect *names;
    ExchangeFormat format;
    Settings *out;
    GError **error;
    bool ok;
} Export;

static void refuse(Export *export, const char *key, const char *value, const char *hint)
{
    export->ok = exchange_export_refuse(export->error, export->format, key, value, hint);
}

static void check_layout(Export *export)
{
    const Spec *spec = export->spec;
    const SpecParallel *parallel = &spec->parallel;
    const SpecRecompute *recompute = &spec->training.recompute;
    const bool torchtune = export->format == EXCHANGE_FORMAT_TORCHTUNE,
               axolotl = export->format == EXCHANGE_FORMAT_AXOLOTL;
    if (parallel->pipeline > 1)
        refuse(export, "parallel.pipeline", "above 1", "give 1");
    if (parallel->tensor > 1 && !torchtune && !axolotl)
        refuse(export, "parallel.tensor", "above 1", "give 1");
    if ((parallel->context > 1 || parallel->expert > 1) && !axolotl)
        refuse(export, parallel->context > 1 ? "parallel.context" : "parallel.expert", "above 1", "give 1");
    if (torchtune &&
        (parallel->zero == 1 || parallel->zero == 2 || (parallel->zero == 0 && parallel->data > 1)))
        refuse(export, "parallel.zero", "other than 3 on several GPUs", "give 3");
    if (recompute->mode != SPEC_RECOMPUTE_NONE &&
        (recompute->mode != SPEC_RECOMPUTE_FULL || recompute->layers > 0 || recompute->partitioned))
        refuse(export, "training.recompute", export_recompute_shown(spec), "give none or full on all layers");
    if (spec_offloads_states(&spec->offload))
        refuse(export, "offload.scheme", spec_word(&spec_words_offload, (int)spec->offload.scheme),
               "give none");
    if (spec->offload.activation_layers > 0 && !torchtune)
        refuse(export, "offload.activations", "on the host", "leave it out");
}

/* What each program trains, as bits of tasks. */
static void check_trains(Export *export)
{
    enum {
        TUNES = 1u << SPEC_TASK_SFT | 1u << SPEC_TASK_LORA | 1u << SPEC_TASK_QLORA | 1u << SPEC_TASK_DPO,
        PREFERS = TUNES | 1u << SPEC_TASK_ORPO | 1u << SPEC_TASK_KTO | 1u << SPEC_TASK_REWARD
    };
    static const struct {
        ExchangeFormat format;
        unsigned tasks;
        const char *hint;
    } rows[] = {
        {EXCHANGE_FORMAT_AXOLOTL, PREFERS, "give sft, lora, qlora, dpo, orpo, kto or reward"},
        {EXCHANGE_FORMAT_LLAMA_FACTORY, PREFERS, "give sft, lora, qlora, dpo, orpo, kto or reward"},
        {EXCHANGE_FORMAT_TORCHTUNE, TUNES, "give sft, lora, qlora or dpo"},
        {EXCHANGE_FORMAT_TRL, TUNES | 1u << SPEC_TASK_KTO | 1u << SPEC_TASK_APO_UNPAIRED,
         "give sft, lora, qlora, dpo, kto or apo-unpaired"},
    };
    const int task = (int)export->spec->training.task;
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].format == export->format && (rows[i].tasks & 1u << task) == 0)
            refuse(export, "training.task", spec_word(&spec_words_task, task), rows[i].hint);
}

static void check_task(Export *export)
{
    const SpecTraining *training = &export->spec->training;
    const bool torchtune = export->format == EXCHANGE_FORMAT_TORCHTUNE;
    check_trains(export);
    if (training->precision != SPEC_PRECISION_BF16 && training->precision != SPEC_PRECISION_FP16 &&
        training->precision != SPEC_PRECISION_FP32)
        refuse(export, "training.precision", spec_word(&spec_words_precision, (int)training->precision),
               "give bf16, fp16 or fp32");
    if (training->adapter.given &&
        (training->adapter.base_dtype == SPEC_BASE_FP8 || training->adapter.base_dtype == SPEC_BASE_INT4 ||
         (torchtune && training->adapter.base_dtype == SPEC_BASE_INT8)))
        refuse(export, "training.adapter.base_dtype",
               spec_word(&spec_words_base, (int)training->adapter.base_dtype), "give bf16, nf4 or int8");
    if (training->adapter.given && training->adapter.fused)
        refuse(export, "training.adapter.fused", "true", "leave it out: one adapter a projection");
    if (spec_freezes(&training->freeze) && export->format != EXCHANGE_FORMAT_LLAMA_FACTORY)
        refuse(export, "training.freeze", "some layers", "give LLaMA-Factory's format, which freezes layers");
    if (training->freeze.router)
        refuse(export, "training.freeze.router", "true",
               "leave it out: no format of these freezes routers alone");
}

static void text(Export *export, const char *key, const char *value)
{
    settings_text(export->out, key, value);
}

static void placeholder(Export *export, const char *key, const char *value)
{
    settings_raw(export->out, key, value);
    settings_mark_placeholder(export->out);
}

/* "torchtune.models.llama3.lora_llama3_8b" of llama3-8b. */
static char *component(const Spec *spec)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    g_auto(GStrv) words = g_strsplit(spec->model.name, "-", 2);
    g_autofree char *name = g_strdelimit(g_strdup(spec->model.name), "-.", '_');
    g_autofree char *family = g_strdelimit(g_strdup(words[0]), ".", '_');
    return g_strdup_printf("torchtune.models.%s.%s%s", family,
                           !adapter->given                         ? ""
                           : adapter->base_dtype != SPEC_BASE_BF16 ? "qlora_"
                                                                   : "lora_",
                           name);
}

static void put_model(Export *export)
{
    g_autofree char *made = export->format == EXCHANGE_FORMAT_TORCHTUNE ? component(export->spec) : NULL;
    text(export, export->names->model, made != NULL ? made : export->spec->model.name);
    settings_mark_placeholder(export->out);
}

static void put_batch(Export *export)
{
    const SpecTraining *training = &export->spec->training;
    const bool pairs = training->task == SPEC_TASK_DPO || training->task == SPEC_TASK_ORPO ||
                       training->task == SPEC_TASK_REWARD;
    settings_int(export->out, export->names->sequence, training->sequence_length);
    settings_int(export->out, export->names->micro, training->micro_batch / (pairs ? 2 : 1));
    settings_int(export->out, export->names->accumulate, spec_microbatches(export->spec));
}

static void put_length(Export *export)
{
    const SpecTraining *training = &export->spec->training;
    const double step = (double)training->global_batch * training->sequence_length;
    if (training->tokens > 0 && !(training->epochs > 0)) {
        settings_int(export->out, export->names->steps, (int64_t)ceil(training->tokens / step));
        return;
    }
    char shown[G_ASCII_DTOSTR_BUF_SIZE];
    settings_raw(export->out, export->names->epochs,
                 g_ascii_formatd(shown, sizeof shown, "%.15g", training->epochs > 0 ? training->epochs : 1));
    if (!(training->epochs > 0))
        settings_mark_placeholder(export->out);
}

/* Whether a model with or without latent attention has this projection. */
static bool has_linear(const SpecModel *model, SpecTarget target)
{
    const bool latent = model->mla.kv_lora_rank > 0, latent_query = latent && model->mla.q_lora_rank > 0;
    return target == SPEC_TARGET_Q                                    ? !latent_query
           : target == SPEC_TARGET_K || target == SPEC_TARGET_V       ? !latent
           : target == SPEC_TARGET_Q_A || target == SPEC_TARGET_Q_B   ? latent_query
           : target == SPEC_TARGET_KV_A || target == SPEC_TARGET_KV_B ? latent
                                                                      : true;
}

/* How a program writes a list of words. */
typedef struct ListSyntax {
    const char *item, *between, *list;
} ListSyntax;

static const ListSyntax *list_syntax(ExchangeFormat format)
{
    static const ListSyntax yaml = {"%s%s", ", ", "[%s]"}, commas = {"%s%s", ", ", "%s"},
                            words = {"%s%s", " ", "%s"}, json = {"%s\"%s\"", ", ", "[%s]"};
    return format == EXCHANGE_FORMAT_LLAMA_FACTORY ? &commas
           : format == EXCHANGE_FORMAT_TRL         ? &words
           : format == EXCHANGE_FORMAT_PEFT        ? &json
                                                   : &yaml;
}

/* The words of the list of linear layers, in the program's own syntax; all of them: its word for that. */
static void put_targets(Export *export)
{
    const unsigned all = SPEC_TARGETS_ATTENTION | SPEC_TARGETS_MLP;
    const unsigned targets = export->spec->training.adapter.targets;
    const bool torchtune = export->format == EXCHANGE_FORMAT_TORCHTUNE,
               axolotl = export->format == EXCHANGE_FORMAT_AXOLOTL;
    const ListSyntax *syntax = list_syntax(export->format);
    g_autoptr(GString) list = g_string_new(NULL);
    const char *every = export->format == EXCHANGE_FORMAT_LLAMA_FACTORY ? "all" : "all-linear";
    if ((targets & all) == all && !torchtune) {
        if (axolotl)
            settings_bool(export->out, "lora_target_linear", true);
        else
            text(export, export->names->targets, every);
        return;
    }
    const bool mlp = torchtune && (targets & SPEC_TARGETS_MLP) == SPEC_TARGETS_MLP;
    for (int i = 0; i < spec_words_target.count; i++) {
        const char *word = orr_word(&spec_words_target, i);
        if ((targets & (1u << i)) == 0 || (mlp && (SPEC_TARGETS_MLP & (1u << i)) != 0))
            continue;
        if (!has_linear(&export->spec->model, (SpecTarget)(1u << i)))
            continue;
        if (torchtune && strcmp(word, "o_proj") == 0)
            word = "output_proj";
        g_string_append_printf(list, syntax->item, list->len > 0 ? syntax->between : "", word);
    }
    g_autofree char *whole = g_strdup_printf(syntax->list, list->str);
    settings_raw(export->out, export->names->targets, whole);
    if (mlp)
        settings_bool(export->out, "model.apply_lora_to_mlp", true);
}

/* Tables that are trained whole beside the adapters. */
static void put_saved(Export *export)
{
    static const SpecSaved tables[] = {SPEC_SAVED_EMBEDDING, SPEC_SAVED_HEAD};
    const unsigned saved = export->spec->training.adapter.saved;
    const ListSyntax *syntax = list_syntax(export->format);
    g_autoptr(GString) list = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
        if ((saved & tables[i]) != 0)
            g_string_append_printf(list, syntax->item, list->len > 0 ? syntax->between : "",
                                   spec_saved_word(tables[i]));
    if (saved == 0)
        return;
    if (export->names->saved == NULL) {
        refuse(export, "training.adapter.modules_to_save", list->str, "leave it out");
        return;
    }
    g_autofree char *whole = g_strdup_printf(syntax->list, list->str);
    settings_raw(export->out, export->names->saved, whole);
}

static void put_adapter(Export *export)
{
    const SpecAdapter *adapter = &export->spec->training.adapter;
    char shown[G_ASCII_DTOSTR_BUF_SIZE];
    if (!adapter->given)
        return;
    settings_int(export->out, export->names->rank, adapter->rank);
    settings_raw(export->out, export->names->alpha,
                 g_ascii_formatd(shown, sizeof shown, "%.15g", adapter->alpha));
    settings_raw(export->out, export->names->dropout,
                 g_ascii_formatd(shown, sizeof shown, "%.15g", adapter->dropout_frac));
    put_targets(export);
    put_saved(export);
}

static void put_optimizer(Export *export)
{
    static const ExchangeWordPair trainer[] = {{SPEC_OPTIMIZER_ADAM, "adamw_torch_fused"},
                                               {SPEC_OPTIMIZER_ADAM8BIT, "adamw_bnb_8bit"},
                                               {SPEC_OPTIMIZER_ADAFACTOR, "adafactor"},
                                               {SPEC_OPTIMIZER_LION, "lion_32bit"},
                                               {SPEC_OPTIMIZER_SGD, "sgd"}},
                                  components[] = {{SPEC_OPTIMIZER_ADAM, "torch.optim.AdamW"},
                                                  {SPEC_OPTIMIZER_ADAM8BIT, "bitsandbytes.optim.AdamW8bit"},
                                                  {SPEC_OPTIMIZER_SGD, "torch.optim.SGD"}};
    const int optimizer = (int)export->spec->training.optimizer;
    const bool torchtune = export->format == EXCHANGE_FORMAT_TORCHTUNE;
    const char *word = torchtune ? exchange_pair_word(components, (int)G_N_ELEMENTS(components), optimizer)
                                 : exchange_pair_word(trainer, (int)G_N_ELEMENTS(trainer), optimizer);
    if (word == NULL) {
        refuse(export, "training.optimizer", spec_word(&spec_words_optimizer, optimizer),
               torchtune ? "give adam, adam8bit or sgd" : "give adam, adam8bit, adafactor, lion or sgd");
        return;
    }
    text(export, export->names->optimizer, word);
    placeholder(export, torchtune ? "optimizer.lr" : "learning_rate", "1.0e-4");
}

/* As Transformers names implementations. */
static void put_attention(Export *export)
{
    const SpecAttention attention = export->spec->execution.attention;
    settings_text(export->out, "attn_implementation",
                  attention == SPEC_ATTENTION_UNFUSED  ? "eager"
                  : attention == SPEC_ATTENTION_FLASH3 ? "flash_attention_3"
                  : attention == SPEC_ATTENTION_FLASH2 ? "flash_attention_2"
                                                       : "sdpa");
}

/* Weights below adapters that are stored in fewer bits. */
static void put_base_bits(Export *export)
{
    const SpecAdapter *adapter = &export->spec->training.adapter;
    if (adapter->given && adapter->base_dtype != SPEC_BASE_BF16)
        settings_bool(export->out, adapter->base_dtype == SPEC_BASE_NF4 ? "load_in_4bit" : "load_in_8bit",
                      true);
}

/* Hugging Face's Trainer shards by a DeepSpeed file or by FSDP. */
static void put_trainer(Export *export)
{
    const Spec *spec = export->spec;
    const SpecPrecision precision = spec->training.precision;
    const bool fsdp = g_str_has_prefix(spec->execution.framework.name, "transformers-fsdp");
    if (precision == SPEC_PRECISION_FP32 &&
        (export->format == EXCHANGE_FORMAT_TRL || export->format == EXCHANGE_FORMAT_AXOLOTL))
        settings_bool(export->out, "bf16", false); /* true by default */
    if (precision != SPEC_PRECISION_FP32)
        settings_bool(export->out, precision == SPEC_PRECISION_FP16 ? "fp16" : "bf16", true);
    if (fsdp && spec->parallel.zero >= 2) {
        text(export, "fsdp", spec->parallel.zero == 3 ? "full_shard auto_wrap" : "shard_grad_op auto_wrap");
    } else if (spec->parallel.zero > 0) {
        g_autofree char *file =
            export->format == EXCHANGE_FORMAT_AXOLOTL
                ? g_strdup_printf("deepspeed_configs/zero%d.json", spec->parallel.zero)
            : export->format == EXCHANGE_FORMAT_TRL
                ? g_strdup_printf("zero%d.json", spec->parallel.zero)
                : g_strdup_printf("examples/deepspeed/ds_z%d_config.json", spec->parallel.zero);
        text(export, "deepspeed", file);
    }
    if (spec->execution.compiled == 1)
        settings_bool(export->out, "torch_compile", true);
}

static Export start(const Spec *spec, ExchangeFormat format, Settings *out, GError **error)
{
    Export export = {spec, exchange_dialect(format), format, out, error, true};
    check_layout(&export);
    check_task(&export);
    return export;
}

static void put_common(Export *export)
{
    put_model(export); /* torchtune's adapter is a part of it */
    put_adapter(export);
    put_batch(export);
    put_optimizer(export);
    put_length(export);
}

static bool packs(const Spec *spec)
{
    return !spec->training.lengths.given || spec->training.lengths.packed;
}

bool exchange_export_axolotl(const Spec *spec, Settings *out, GError **error)
{
    static const ExchangeWordPair losses[] = {
        {SPEC_TASK_DPO, "dpo"}, {SPEC_TASK_ORPO, "orpo"}, {SPEC_TASK_KTO, "kto"}};
    const SpecAdapter *adapter = &spec->training.adapter;
    Export export = start(spec, EXCHANGE_FORMAT_AXOLOTL, out, error);
    const char *rl = exchange_pair_word(losses, (int)G_N_ELEMENTS(losses), (int)spec->training.task);
    put_common(&export);
    if (adapter->given)
        settings_text(out, "adapter", adapter->base_dtype == SPEC_BASE_NF4 ? "qlora" : "lora");
    put_base_bits(&export);
    if (rl != NULL)
        settings_text(out, "rl", rl);
    if (spec->training.task == SPEC_TASK_REWARD)
        settings_bool(out, "reward_model", true);
    put_trainer(&export);
    put_attention(&export);
    if (spec->parallel.tensor > 1)
        settings_int(out, "tensor_parallel_size", spec->parallel.tensor);
    if (spec->parallel.context > 1)
        settings_int(out, "context_parallel_size", spec->parallel.context);
    if (spec->parallel.expert > 1)
        settings_int(out, "expert_parallel_size", spec->parallel.expert);
    settings_bool(out, "gradient_checkpointing", spec->training.recompute.mode == SPEC_RECOMPUTE_FULL);
    settings_bool(out, "sample_packing", packs(spec));
    placeholder(&export, "datasets", "[{path: tatsu-lab/alpaca, type: alpaca}]");
    placeholder(&export, "output_dir", "./outputs");
    return export.ok;
}

/* The last layers are trained, and what freeze_extra_modules names. */
static void put_freeze(Export *export)
{
    const SpecFreeze *freeze = &export->spec->training.freeze;
    settings_int(export->out, "freeze_trainable_layers", export->spec->model.layers - freeze->layers);
    if (!freeze->embedding || !freeze->head)
        text(export, "freeze_extra_modules",
             freeze->embedding ? "norm,lm_head"
                               : (freeze->head ? "embed_tokens" : "embed_tokens,norm,lm_head"));
    if (freeze->layers == export->spec->model.layers)
        refuse(export, "training.freeze.layers", "all layers", "leave one to train");
}

bool exchange_export_llama_factory(const Spec *spec, Settings *out, GError **error)
{
    const SpecTraining *training = &spec->training;
    const SpecTask task = training->task;
    const SpecAdapter *adapter = &training->adapter;
    const SpecAttention attention = spec->execution.attention;
    const bool freezes = spec_freezes(&training->freeze);
    Export export = start(spec, EXCHANGE_FORMAT_LLAMA_FACTORY, out, error);
    settings_text(out, "stage",
                  task == SPEC_TASK_DPO || task == SPEC_TASK_ORPO ? "dpo"
                  : task == SPEC_TASK_KTO                         ? "kto"
                  : task == SPEC_TASK_REWARD                      ? "rm"
                                                                  : "sft");
    if (task == SPEC_TASK_ORPO)
        settings_text(out, "pref_loss", "orpo");
    settings_bool(out, "do_train", true);
    settings_text(out, "finetuning_type", adapter->given ? "lora" : freezes ? "freeze" : "full");
    put_common(&export);
    if (freezes)
        put_freeze(&export);
    if (adapter->given && adapter->base_dtype != SPEC_BASE_BF16)
        settings_int(out, "quantization_bit", adapter->base_dtype == SPEC_BASE_NF4 ? 4 : 8);
    put_trainer(&export);
    settings_text(out, "flash_attn",
                  attention == SPEC_ATTENTION_UNFUSED  ? "disabled"
                  : attention == SPEC_ATTENTION_FLASH2 ? "fa2"
                  : attention == SPEC_ATTENTION_FLASH3 ? "fa3"
                                                       : "sdpa");
    settings_bool(out, "disable_gradient_checkpointing", training->recompute.mode != SPEC_RECOMPUTE_FULL);
    settings_bool(out, "packing", packs(spec));
    placeholder(&export, "dataset", "alpaca_en_demo");
    placeholder(&export, "template", "default");
    placeholder(&export, "output_dir", "saves");
    return export.ok;
}

bool exchange_export_torchtune(const Spec *spec, Settings *out, GError **error)
{
    const SpecTraining *training = &spec->training;
    Export export = start(spec, EXCHANGE_FORMAT_TORCHTUNE, out, error);
    if (training->precision == SPEC_PRECISION_FP16)
        refuse(&export, "training.precision", "fp16", "give bf16 or fp32");
    put_common(&export);
    settings_text(out, "loss._component_",
                  training->task == SPEC_TASK_DPO ? "torchtune.rlhf.loss.DPOLoss"
                                                  : "torchtune.modules.loss.LinearCrossEntropyLoss");
    settings_text(out, "dtype", training->precision == SPEC_PRECISION_FP32 ? "fp32" : "bf16");
    settings_bool(out, "compile", spec->execution.compiled == 1);
    settings_bool(out, "enable_activation_checkpointing", training->recompute.mode == SPEC_RECOMPUTE_FULL);
    settings_bool(out, "enable_activation_offloading", spec->offload.activation_layers > 0);
    if (spec->parallel.tensor > 1)
        settings_int(out, "tensor_parallel_dim", spec->parallel.tensor);
    settings_bool(out, "dataset.packed", packs(spec));
    placeholder(&export, "dataset._component_", "torchtune.datasets.alpaca_dataset");
    placeholder(&export, "output_dir", "/tmp/torchtune");
    return export.ok;
}

bool exchange_export_trl(const Spec *spec, Settings *out, GError **error)
{
    const SpecTraining *training = &spec->training;
    const SpecAdapter *adapter = &training->adapter;
    Export export = start(spec, EXCHANGE_FORMAT_TRL, out, error);
    if (adapter->given)
        settings_bool(out, "use_peft", true);
    put_common(&export);
    put_base_bits(&export);
    if (spec_task_refers(training->task))
        settings_text(out, "loss_type",
                      training->task == SPEC_TASK_KTO   ? "kto"
                      : training->task == SPEC_TASK_DPO ? "sigmoid"
                                                        : "apo_zero_unpaired");
    if (training->reference == SPEC_REFERENCE_CACHED)
        settings_bool(out, "precompute_ref_log_probs", true);
    put_trainer(&export);
    put_attention(&export);
    settings_bool(out, "gradient_checkpointing", training->recompute.mode == SPEC_RECOMPUTE_FULL);
    if (!spec_task_refers(training->task))
        settings_bool(out, "packing", packs(spec));
    placeholder(&export, "dataset_name", "tatsu-lab/alpaca");
    placeholder(&export, "output_dir", "outputs");
    return export.ok;
}

/* No key but those that every release knows, and so none for the scenario: a model is whatever loads the adapter. */
bool exchange_export_peft(const Spec *spec, Settings *out, GError **error)
{
    Export export = {spec, exchange_dialect(EXCHANGE_FORMAT_PEFT), EXCHANGE_FORMAT_PEFT, out, error, true};
    if (!spec->training.adapter.given)
        refuse(&export, "training.adapter", "none", "give one, as {\"rank\":16}");
    else if (spec->training.adapter.fused)
        refuse(&export, "training.adapter.fused", "true", "leave it out: one adapter a projection");
    settings_text(out, "peft_type", "LORA");
    settings_text(out, "task_type", spec->training.task == SPEC_TASK_REWARD ? "SEQ_CLS" : "CAUSAL_LM");
    settings_raw(out, "base_model_name_or_path", "null");
    put_adapter(&export);
    settings_text(out, "bias", "none");
    return export.ok;
}
