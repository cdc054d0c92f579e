/* spec/fields_adapter.c - field table of low-rank adapters, and what it may not stand beside. */
#include <string.h>

#include "spec/checks.h"
#include "spec/fields_internal.h"
#include "spec/pairs.h"

static const char *const task_list[] = {"pretrain", "sft",    "lora", "qlora",       "dpo",
                                        "orpo",     "reward", "kto",  "apo-unpaired"};
const SpecWords spec_words_task = {"one of the tasks", task_list, (int)G_N_ELEMENTS(task_list), 0};
static const char *const target_list[] = {
    "q_proj",   "k_proj",    "v_proj",   "o_proj",   "gate_proj",
    "up_proj",  "down_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
    "kv_b_proj"};
const SpecWords spec_words_target = {"one of the linear layers", target_list, (int)G_N_ELEMENTS(target_list),
                                     0};
static const char *const base_list[] = {"bf16", "fp8", "int8", "nf4", "int4"};
const SpecWords spec_words_base = {"one of the ways to store frozen weights", base_list,
                                   (int)G_N_ELEMENTS(base_list), 0};

static const char *const reference_list[] = {"none", "cached", "adapter-off", "model"};
const SpecWords spec_words_reference = {"one of the sources of a reference's probabilities", reference_list,
                                        (int)G_N_ELEMENTS(reference_list), 0};

enum { QKV = SPEC_TARGET_Q | SPEC_TARGET_K | SPEC_TARGET_V, GATE_UP = SPEC_TARGET_GATE | SPEC_TARGET_UP };

/* Several at once, what Megatron calls them, and linear layers of models that hold several projections. */
static const struct {
    const char *word;
    unsigned targets, joint;
} sets[] = {{"attention", SPEC_TARGETS_ATTENTION, 0},
            {"mlp", SPEC_TARGETS_MLP, 0},
            {"all-linear", SPEC_TARGETS_ATTENTION | SPEC_TARGETS_MLP, 0},
            {"qkv_proj", QKV, QKV},
            {"c_attn", QKV, QKV},
            {"query_key_value", QKV, QKV},
            {"Wqkv", QKV, QKV},
            {"gate_up_proj", GATE_UP, GATE_UP},
            {"linear_qkv", QKV, QKV},
            {"linear_proj", SPEC_TARGET_O, 0},
            {"linear_fc1", GATE_UP, GATE_UP},
            {"linear_fc2", SPEC_TARGET_DOWN, 0},
            {"linear_q_proj", SPEC_TARGET_Q, 0},
            {"linear_q_down_proj", SPEC_TARGET_Q_A, 0},
            {"linear_q_up_proj", SPEC_TARGET_Q_B, 0},
            {"linear_kv_down_proj", SPEC_TARGET_KV_A, 0},
            {"linear_kv_up_proj", SPEC_TARGET_KV_B, 0}};

bool spec_knows_target(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++)
        if (strcmp(name, sets[i].word) == 0)
            return true;
    for (gsize i = 0; i < G_N_ELEMENTS(target_list); i++)
        if (strcmp(name, target_list[i]) == 0)
            return true;
    return false;
}

/* What models call their tables of tokens and their LM heads. */
static const struct {
    const char *word;
    SpecSaved table;
} saved_words[] = {{"embed_tokens", SPEC_SAVED_EMBEDDING},
                   {"lm_head", SPEC_SAVED_HEAD},
                   {"wte", SPEC_SAVED_EMBEDDING},
                   {"embed_out", SPEC_SAVED_HEAD},
                   {"word_embeddings", SPEC_SAVED_EMBEDDING},
                   {"tok_embeddings", SPEC_SAVED_EMBEDDING}};

const char *spec_saved_word(SpecSaved table)
{
    return saved_words[table == SPEC_SAVED_EMBEDDING ? 0 : 1].word;
}

unsigned spec_saved_of(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(saved_words); i++)
        if (strcmp(name, saved_words[i].word) == 0)
            return saved_words[i].table;
    return 0;
}

static bool read_saved(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecAdapter *adapter = target;
    const bool list = orr_json_type(node) == ORR_JSON_LIST;
    adapter->saved = 0;
    for (const OrrJson *item = list ? orr_json_first(node) : node; item != NULL;
         item = list ? orr_json_next(item) : NULL) {
        const char *name = orr_json_type(item) == ORR_JSON_TEXT ? orr_json_text(item) : "";
        if (spec_saved_of(name) == 0)
            return spec_read_fail(
                context, item, error,
                "names no table that can be trained whole; give embed_tokens, lm_head or both");
        adapter->saved |= spec_saved_of(name);
    }
    return true;
}

static bool read_target(SpecReadContext *context, const OrrJson *node, SpecAdapter *adapter, GError **error)
{
    const char *text = orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++)
        if (strcmp(text, sets[i].word) == 0) {
            adapter->targets |= sets[i].targets;
            adapter->joint |= sets[i].joint;
            return true;
        }
    int word = 0;
    if (!spec_read_word(context, &spec_words_target, node, &word, error))
        return false;
    adapter->targets |= 1u << word;
    adapter->named |= 1u << word;
    return true;
}

static bool read_targets(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecAdapter *adapter = target;
    adapter->targets = adapter->named = adapter->joint = 0;
    if (orr_json_type(node) != ORR_JSON_LIST) {
        if (!read_target(context, node, adapter, error))
            return false;
    } else if (orr_json_count(node) == 0) {
        return spec_read_fail(context, NULL, error,
                              "is empty; name a linear layer, as [\"q_proj\", \"v_proj\"]");
    }
    const bool list = orr_json_type(node) == ORR_JSON_LIST;
    for (const OrrJson *item = list ? orr_json_first(node) : NULL; item != NULL; item = orr_json_next(item))
        if (!read_target(context, item, adapter, error))
            return false;
    return true;
}

static const SpecField adapter_fields[] = {
    SPEC_F_INT(SpecAdapter, rank, 1, 65536, NULL, SPEC_FIELD_REQUIRED,
               "Rank r of an adapter: a linear layer of n inputs and m outputs gets r (n + m) weights."),
    SPEC_F_DOUBLE(SpecAdapter, alpha, ORR_UNIT_NONE, 0, 1e6, "32", 0,
                  "What an adapter adds is scaled by alpha / rank. Costs do not depend on it."),
    {.key = "targets",
     .type = SPEC_TYPE_CUSTOM,
     .default_text = "\"attention\"",
     .read = read_targets,
     .form = "attention, mlp, all-linear, or a list of linear layers such as [\"q_proj\", \"v_proj\"]",
     .schema = "{\"type\":[\"string\",\"array\"]}",
     .help =
         "Linear layers that have an adapter. Names are those of Hugging Face or Megatron; qkv_proj (also "
         "c_attn, query_key_value, Wqkv) and gate_up_proj are one layer with one adapter."},
    {.key = "modules_to_save",
     .type = SPEC_TYPE_CUSTOM,
     .default_text = "[]",
     .read = read_saved,
     .form = "a list of embed_tokens and lm_head",
     .schema = "{\"type\":[\"string\",\"array\"]}",
     .help =
         "Token tables that are trained in full, in addition to the adapters. As in PEFT a copy of each is "
         "trained, and the frozen one stays."},
    SPEC_F_WORD(SpecAdapter, dtype, &spec_words_dtype, "\"bf16\"", 0,
                "Number format of the adapter's weights. PEFT casts them to fp32 by default."),
    SPEC_F_DOUBLE(SpecAdapter, dropout_frac, ORR_UNIT_FRAC, 0, 0.9, "0", 0,
                  "Dropout on each adapter's input. Above 0 every adapter keeps a copy of it and a mask."),
    SPEC_F_WORD(SpecAdapter, base_dtype, &spec_words_base, "\"bf16\"", 0,
                "How frozen weights of linear layers are stored; what is narrower is widened before every "
                "product. int4: GPTQ's, widened by PyTorch's kernels and kept so until the backward."),
    SPEC_F_BOOL(SpecAdapter, double_quantised, "true", 0,
                "Scales of nf4 blocks are quantised too: 0.127 in place of 0.5 bits a weight."),
    SPEC_F_BOOL(
        SpecAdapter, fused, "false", 0,
        "Transformer Engine's operation fuser: outputs of adapters are added in the product, and norm "
        "and activation of the MLP cast. One adapter serves queries, keys and values, one gate and up."),
    SPEC_F_BOOL(SpecAdapter, share_expert_adapters, "false", 0,
                "One adapter serves all experts of a rank, as in Megatron-Bridge. Otherwise every expert has "
                "its own, as in PEFT."),
};
SPEC_TABLE(spec_table_adapter, "training.adapter",
           "Low-rank adapters (LoRA) on linear layers; all other weights are frozen.", adapter_fields);

bool spec_read_adapter(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecAdapter *adapter = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give an object, as {\"rank\":16}",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    adapter->given = true;
    return spec_read_table(&inside, &spec_table_adapter, node, adapter, error);
}

/* ZeRO++ quantises and shards anew what it gathers of trained weights; of frozen ones, which are stored otherwise, nobody has
 * read what it does. NULL: it does neither. */
const char *spec_gathers_trained_alone(const SpecParallel *parallel)
{
    return parallel->quantized_weight_gather  ? "parallel.quantized_weight_gather"
           : parallel->secondary_weight_shard ? "parallel.secondary_weight_shard"
                                              : NULL;
}

/* What stands beside an adapter and is not modelled with one; NULL: nothing. */
static const char *beside(const Spec *spec)
{
    if (spec->model.list.text != NULL)
        return "a list of layers";
    if (spec->model.encoder_layers > 0)
        return "model.encoder_layers";
    if (spec->model.mtp_layers > 0)
        return "model.mtp_layers";
    if ((spec->training.adapter.targets & SPEC_TARGETS_MLP) != 0 && spec->model.moe.experts > 0 &&
        spec->parallel.expert_tensor > 1)
        return "parallel.expert_tensor";
    if (spec->parallel.data_scheme != SPEC_DATA_ALLREDUCE)
        return "parallel.data_scheme parameter_server";
    if (spec->parallel.compression.kind != SPEC_COMPRESSION_NONE)
        return "parallel.compression";
    if (spec->parallel.tensor_scheme != SPEC_TENSOR_1D)
        return "parallel.tensor_scheme";
    return spec->training.mlp_tiles > 1 ? "training.mlp_tiles" : spec_gathers_trained_alone(&spec->parallel);
}

/* Preferences need a reference, and pairs have two sequences each. */
static bool check_reference(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    const char *word = spec_word(&spec_words_reference, (int)training->reference);
    const bool refers = spec_task_refers(training->task), pairs = spec_sequences_together(training->task) > 1;
    if (refers != (training->reference != SPEC_REFERENCE_NONE))
        return spec_check_fail(check, "training.reference: \"%s\" with training.task \"%s\"; give %s", word,
                               spec_word(&spec_words_task, (int)training->task),
                               refers ? "cached, adapter-off or model" : "none");
    if (training->reference == SPEC_REFERENCE_ADAPTER_OFF && !training->adapter.given)
        return spec_check_fail(
            check, "training.reference: \"adapter-off\" without training.adapter; give model or cached");
    if (pairs &&
        (training->global_batch % 2 != 0 || (training->micro_batch > 0 && training->micro_batch % 2 != 0)))
        return spec_check_fail(
            check, "training.%s: an odd number of sequences, and a pair has two; give an even one",
            training->global_batch % 2 != 0 ? "global_batch" : "micro_batch");
    return (!pairs && !refers) || check->spec->model.list.text == NULL ||
           spec_check_fail(check, "training.task: \"%s\" of a list of layers is not modelled; give \"sft\"",
                           spec_word(&spec_words_task, (int)training->task));
}

/* Linear layers that a model has, as bits. */
static unsigned has_targets(const SpecModel *model)
{
    const bool latent = model->mla.kv_lora_rank > 0, latent_query = latent && model->mla.q_lora_rank > 0;
    return SPEC_TARGET_O | SPEC_TARGET_UP | SPEC_TARGET_DOWN | (model->gated_mlp ? SPEC_TARGET_GATE : 0) |
           (latent_query ? SPEC_TARGET_Q_A | SPEC_TARGET_Q_B : SPEC_TARGET_Q) |
           (latent ? SPEC_TARGET_KV_A | SPEC_TARGET_KV_B : SPEC_TARGET_K | SPEC_TARGET_V);
}

static bool check_targets(const Check *check, const SpecModel *model, const SpecAdapter *adapter)
{
    const unsigned has = has_targets(model), lacks = adapter->named & ~has;
    if (lacks == 0)
        return true;
    g_autoptr(GString) known = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(target_list); i++)
        if (has & (1u << i))
            g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", target_list[i]);
    return spec_check_fail(
        check,
        "training.adapter.targets: %s is not one of the linear layers of %s; give all-linear, or of: %s",
        target_list[g_bit_nth_lsf(lacks, -1)], model->name, known->str);
}

/* PEFT unties what it copies; what then becomes of the other one depends on the model's code. */
static bool check_saved(const Check *check, const SpecModel *model, const SpecAdapter *adapter)
{
    if (adapter->saved != 0 && model->tied_embeddings)
        return spec_check_fail(check,
                               "training.adapter.modules_to_save: embedding and head of %s share one "
                               "table (model.tied_embeddings), which is not modelled; leave it out",
                               model->name);
    return (adapter->saved & SPEC_SAVED_HEAD) == 0 || !model->scalar_head ||
           spec_check_fail(check,
                           "training.adapter.modules_to_save: lm_head, but the model ends in one number "
                           "(model.scalar_head); leave lm_head out");
}

void spec_complete_task(Spec *spec)
{
    spec->model.scalar_head |= spec->training.task == SPEC_TASK_REWARD;
    spec->model.tied_embeddings &= !spec->model.scalar_head;
}

/* Schemes of research code that trains all weights; those of DeepSpeed and FSDP take whatever is trained.
 * Source: [DeepSpeedOffload], [Stronghold], [MemFerry] */
static bool check_offload(const Check *check)
{
    const SpecOffload *offload = &check->spec->offload;
    const SpecTraining *training = &check->spec->training;
    const bool some = training->adapter.given || spec_freezes(&training->freeze);
    const bool whole = offload->scheme == SPEC_OFFLOAD_STRONGHOLD || offload->scheme == SPEC_OFFLOAD_MEMFERRY;
    return !some || !whole ||
           spec_check_fail(check,
                           "offload.scheme: \"%s\" trains all weights and leaves none frozen; give "
                           "zero-offload, twin-flow, superoffload, zero3-offload or zero-infinity",
                           spec_word(&spec_words_offload, (int)offload->scheme));
}

bool spec_check_adapter(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecAdapter *adapter = &spec->training.adapter;
    const SpecTask task = spec->training.task;
    const bool wants = task == SPEC_TASK_LORA || task == SPEC_TASK_QLORA;
    if (!check_reference(check) || !check_offload(check))
        return false;
    if (wants && !adapter->given)
        return spec_check_fail(check,
                               "training.task: \"%s\" needs training.adapter; give one, as {\"rank\":16}",
                               spec_word(&spec_words_task, (int)task));
    if (!adapter->given)
        return true;
    if (!wants && !spec_task_refers(task) && task != SPEC_TASK_ORPO && task != SPEC_TASK_REWARD)
        return spec_check_fail(
            check, "training.adapter: given with training.task \"%s\"; give \"lora\" or \"qlora\"",
            spec_word(&spec_words_task, (int)task));
    const bool narrow = adapter->base_dtype >= SPEC_BASE_INT8;
    if ((task == SPEC_TASK_QLORA && adapter->base_dtype == SPEC_BASE_BF16) ||
        (task == SPEC_TASK_LORA && narrow))
        return spec_check_fail(check, "training.adapter.base_dtype: \"%s\" with training.task \"%s\"; %s",
                               spec_word(&spec_words_base, (int)adapter->base_dtype),
                               spec_word(&spec_words_task, (int)task),
                               narrow ? "give task \"qlora\"" : "give nf4, int4, int8 or fp8");
    if (adapter->dtype != SPEC_FP32 && adapter->dtype != SPEC_FP16 && adapter->dtype != SPEC_BF16)
        return spec_check_fail(check,
                               "training.adapter.dtype: \"%s\" cannot be trained in; give bf16, fp16 or fp32",
                               spec_word(&spec_words_dtype, (int)adapter->dtype));
    if (!check_targets(check, &spec->model, adapter) || !check_saved(check, &spec->model, adapter))
        return false;
    const char *with = beside(spec);
    return with == NULL ||
           spec_check_fail(
               check, "training.adapter: adapters together with %s are not modelled; remove one of the two",
               with);
}
