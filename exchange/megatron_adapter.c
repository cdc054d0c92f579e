/* exchange/megatron_adapter.c - low-rank adapters as Megatron-Bridge writes them: the object peft of its configuration.
 * Source: Megatron-Bridge src/megatron/bridge/peft/lora.py (class LoRA and its defaults).
 * Tested: unit/exchange/test_megatron_adapter.c */
#include <string.h>

#include "exchange/finetune.h"
#include "exchange/megatron.h"
#include "spec/adapter.h"

#define QKV     (SPEC_TARGET_Q | SPEC_TARGET_K | SPEC_TARGET_V)
#define GATE_UP (SPEC_TARGET_GATE | SPEC_TARGET_UP)

/* Its modules, and which linear layers each holds. Without latent attention one module holds queries, keys and values. */
static const struct {
    const char *module;
    unsigned targets;
} modules[] = {{"linear_qkv", QKV},
               {"linear_proj", SPEC_TARGET_O},
               {"linear_fc1", GATE_UP},
               {"linear_fc2", SPEC_TARGET_DOWN}};

static bool refuse(GError **error, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(error, EXCHANGE_FORMAT_MEGATRON_BRIDGE, key, value, hint);
}

static bool check_adapter(const Spec *spec, GError **error)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    const SpecTask task = spec->training.task;
    bool ok = true;
    if (task != SPEC_TASK_LORA && task != SPEC_TASK_QLORA)
        ok = refuse(error, "training.task", spec_word(&spec_words_task, (int)task),
                    "give lora: Megatron-Bridge trains adapters on plain texts alone");
    if (adapter->base_dtype != SPEC_BASE_BF16)
        ok = refuse(error, "training.adapter.base_dtype",
                    spec_word(&spec_words_base, (int)adapter->base_dtype),
                    "give bf16: Megatron-Bridge stores frozen weights as it stores all");
    if (adapter->saved != 0)
        ok = refuse(error, "training.adapter.modules_to_save", "tables that are trained whole",
                    "leave it out: Megatron-Bridge's LoRA freezes all else");
    if (adapter->fused && spec->parallel.tensor > 1)
        ok = refuse(error, "training.adapter.fused", "true under tensor ranks",
                    "leave it out, or give parallel.tensor 1: Megatron-Bridge fuses adapters there alone");
    if (spec->model.mla.kv_lora_rank > 0)
        ok = refuse(error, "training.adapter.targets", "layers of latent attention",
                    "give axolotl, llama-factory or trl, which name them");
    for (gsize i = 0; i < G_N_ELEMENTS(modules); i++) {
        const unsigned held = adapter->targets & modules[i].targets;
        const bool ungated = modules[i].targets == GATE_UP && !spec->model.gated_mlp;
        if (held != 0 && held != modules[i].targets && !ungated)
            ok = refuse(error, "training.adapter.targets", "a part of what one module holds",
                        i == 0 ? "give q_proj, k_proj and v_proj together, which linear_qkv holds"
                               : "give gate_proj and up_proj together, which linear_fc1 holds");
    }
    return ok;
}

bool megatron_put_adapter(const Spec *spec, Settings *out, GError **error)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    if (!adapter->given)
        return true;
    if (!check_adapter(spec, error))
        return false;
    g_autoptr(GString) list = g_string_new("[");
    for (gsize i = 0; i < G_N_ELEMENTS(modules); i++)
        if ((adapter->targets & modules[i].targets) != 0)
            g_string_append_printf(list, "%s%s", list->len > 1 ? "," : "", modules[i].module);
    g_string_append_c(list, ']');
    settings_raw(out, "peft.target_modules", list->str);
    settings_int(out, "peft.dim", adapter->rank);
    settings_raw(out, "peft.alpha", g_ascii_formatd(number, sizeof number, "%.15g", adapter->alpha));
    settings_raw(out, "peft.dropout", g_ascii_formatd(number, sizeof number, "%.15g", adapter->dropout_frac));
    if (spec->model.moe.experts > 0)
        settings_bool(out, "peft.share_expert_adapters", adapter->share_expert_adapters);
    if (adapter->fused)
        settings_bool(out, "model.use_transformer_engine_op_fuser", true);
    return true;
}

void megatron_take_adapter(ExchangeImport *import)
{
    static const char *const harmless[] = {"peft.dropout_position", "peft.lora_A_init_method",
                                           "peft.lora_B_init_method"};
    const char *scheme = exchange_import_said(import, "peft");
    const bool given = exchange_import_said(import, "peft.dim") != NULL ||
                       exchange_import_said(import, "peft.target_modules") != NULL ||
                       g_strcmp0(scheme, "lora") == 0;
    if (scheme != NULL && strcmp(scheme, "lora") != 0)
        exchange_import_warn(import, "peft: %.40s is not modelled; all weights are taken as trained", scheme);
    if (!given)
        return;
    exchange_import_native(import, "training.task", "\"lora\"");
    exchange_import_adapter(import, EXCHANGE_FORMAT_MEGATRON_BRIDGE);
    if (exchange_import_bool(import, "model.use_transformer_engine_op_fuser", false))
        exchange_import_native_bool(import, "training.adapter.fused", true);
    if (exchange_import_at(import, "model.moe") != NULL ||
        exchange_import_said(import, "peft.share_expert_adapters") != NULL)
        exchange_import_native_bool(import, "training.adapter.share_expert_adapters",
                                    exchange_import_bool(import, "peft.share_expert_adapters", true));
    exchange_import_harmless(import, harmless, G_N_ELEMENTS(harmless));
}
