/* exchange/formats.c - the table of formats, and settings read back by their own row. */
#include "exchange/formats.h"

#include "exchange/export.h"

static const ExchangeFormatRow rows[EXCHANGE_FORMAT_COUNT] = {
    [EXCHANGE_FORMAT_MEGATRON] = {SETTINGS_FLAGS,
                                  exchange_export_megatron,
                                  NULL,
                                  exchange_import_megatron,
                                  "Megatron-LM: torchrun ... pretrain_gpt.py \"${MEGATRON_ARGS[@]}\"",
                                  "MEGATRON_ARGS",
                                  {"megatron", "nemo-megatron"}},
    [EXCHANGE_FORMAT_MEGATRON_BRIDGE] =
        {SETTINGS_DOTLIST,
         exchange_export_megatron_bridge,
         NULL,
         exchange_import_megatron_bridge,
         "Megatron-Bridge: overrides of a recipe, RECIPE.py \"${BRIDGE_OVERRIDES[@]}\"",
         "BRIDGE_OVERRIDES",
         {"megatron", "nemo-megatron"}},
    [EXCHANGE_FORMAT_DEEPSPEED] = {SETTINGS_JSON,
                                   exchange_export_deepspeed,
                                   NULL,
                                   exchange_import_deepspeed,
                                   "",
                                   "",
                                   {"deepspeed", "megatron-deepspeed", "transformers-deepspeed"}},
    [EXCHANGE_FORMAT_TORCHTITAN] = {SETTINGS_TOML,
                                    exchange_export_torchtitan,
                                    NULL,
                                    exchange_import_torchtitan,
                                    "torchtitan job configuration (TOML, torchtitan 0.2)",
                                    "",
                                    {"torchtitan"}},
    [EXCHANGE_FORMAT_NANOTRON] = {SETTINGS_YAML,
                                  exchange_export_nanotron,
                                  NULL,
                                  exchange_import_nanotron,
                                  "nanotron configuration",
                                  "",
                                  {"nanotron"}},
    [EXCHANGE_FORMAT_AXOLOTL] = {.syntax = SETTINGS_YAML,
                                 .export = exchange_export_axolotl,
                                 .import = exchange_import_axolotl,
                                 .title = "axolotl configuration",
                                 .finetunes = true,
                                 .frameworks = {"transformers"}},
    [EXCHANGE_FORMAT_LLAMA_FACTORY] = {.syntax = SETTINGS_YAML,
                                       .export = exchange_export_llama_factory,
                                       .import = exchange_import_llama_factory,
                                       .title = "LLaMA-Factory configuration",
                                       .finetunes = true,
                                       .frameworks = {"transformers"}},
    [EXCHANGE_FORMAT_TORCHTUNE] = {.syntax = SETTINGS_YAML,
                                   .export = exchange_export_torchtune,
                                   .import = exchange_import_torchtune,
                                   .title = "torchtune configuration",
                                   .finetunes = true,
                                   .frameworks = {"torchtune"}},
    [EXCHANGE_FORMAT_TRL] = {.syntax = SETTINGS_FLAGS,
                             .export = exchange_export_trl,
                             .import = exchange_import_trl,
                             .title = "TRL: trl sft (or dpo, kto) \"${TRL_ARGS[@]}\"",
                             .array = "TRL_ARGS",
                             .finetunes = true,
                             .frameworks = {"transformers"}},
    [EXCHANGE_FORMAT_VERL] = {.syntax = SETTINGS_DOTLIST,
                              .export_loop = exchange_export_verl,
                              .import = exchange_import_verl,
                              .title = "verl: python3 -m verl.trainer.main_ppo \"${VERL_OVERRIDES[@]}\"",
                              .array = "VERL_OVERRIDES",
                              .frameworks = {"transformers", "megatron"}},
    [EXCHANGE_FORMAT_NEMO_RL] = {.syntax = SETTINGS_YAML,
                                 .export_loop = exchange_export_nemo_rl,
                                 .import = exchange_import_nemo_rl,
                                 .title = "NeMo-RL: examples/run_grpo.py --config",
                                 .array = "",
                                 .frameworks = {"megatron", "nemo-automodel"}},
    [EXCHANGE_FORMAT_OPENRLHF] = {.syntax = SETTINGS_FLAGS,
                                  .import = exchange_import_openrlhf,
                                  .frameworks = {"transformers-deepspeed"}},
    [EXCHANGE_FORMAT_SLIME] = {.syntax = SETTINGS_FLAGS,
                               .import = exchange_import_slime,
                               .frameworks = {"megatron"}},
    [EXCHANGE_FORMAT_PEFT] = {.syntax = SETTINGS_JSON,
                              .export = exchange_export_peft,
                              .import = exchange_import_peft,
                              .finetunes = true,
                              .adapter_only = true},
};

const ExchangeFormatRow *exchange_format_row(ExchangeFormat format)
{
    return format < EXCHANGE_FORMAT_COUNT && rows[format].import != NULL ? &rows[format] : NULL;
}

OrrJsonDoc *exchange_read_back(const Settings *settings, ExchangeFormat format, const OrrJson *start,
                               GPtrArray *native)
{
    g_autoptr(GPtrArray) unasked = g_ptr_array_new_with_free_func(g_free);
    ExchangeImport import = {.in = settings,
                             .doc = orr_json_copy(start, "scenario"),
                             .path = "scenario",
                             .native = native != NULL ? native : unasked};
    rows[format].import(&import);
    return import.doc;
}
