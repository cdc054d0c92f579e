/* exchange/finetune.c - see finetune.h. Source: [Axolotl] utils/schemas, [LlamaFactory] hparams, [Torchtune] recipes/configs,
 * [TRL] trainer, [PEFT] tuners/lora/config.py. Tested: unit/exchange/test_import_finetune.c, test_export_finetune.c */
#include "exchange/finetune.h"

static const ExchangeDialect axolotl = {"base_model",
                                        "sequence_len",
                                        "micro_batch_size",
                                        "gradient_accumulation_steps",
                                        "lora_r",
                                        "lora_alpha",
                                        "lora_dropout",
                                        "lora_target_modules",
                                        "max_steps",
                                        "num_epochs",
                                        "optimizer",
                                        "torch_compile",
                                        "lora_modules_to_save",
                                        512,
                                        1,
                                        8,
                                        NULL};
static const ExchangeDialect llama_factory = {"model_name_or_path",
                                              "cutoff_len",
                                              "per_device_train_batch_size",
                                              "gradient_accumulation_steps",
                                              "lora_rank",
                                              "lora_alpha",
                                              "lora_dropout",
                                              "lora_target",
                                              "max_steps",
                                              "num_train_epochs",
                                              "optim",
                                              "torch_compile",
                                              "additional_target",
                                              2048,
                                              8,
                                              8,
                                              NULL};
static const ExchangeDialect torchtune = {"model._component_",
                                          "tokenizer.max_seq_len",
                                          "batch_size",
                                          "gradient_accumulation_steps",
                                          "model.lora_rank",
                                          "model.lora_alpha",
                                          "model.lora_dropout",
                                          "model.lora_attn_modules",
                                          "max_steps_per_epoch",
                                          "epochs",
                                          "optimizer._component_",
                                          "compile",
                                          NULL,
                                          0,
                                          1,
                                          8,
                                          NULL};
static const ExchangeDialect trl = {"model_name_or_path",
                                    "max_length",
                                    "per_device_train_batch_size",
                                    "gradient_accumulation_steps",
                                    "lora_r",
                                    "lora_alpha",
                                    "lora_dropout",
                                    "lora_target_modules",
                                    "max_steps",
                                    "num_train_epochs",
                                    "optim",
                                    "torch_compile",
                                    "lora_modules_to_save",
                                    1024,
                                    8,
                                    16,
                                    NULL};

static const ExchangeDialect peft = {.model = "base_model_name_or_path",
                                     .rank = "r",
                                     .alpha = "lora_alpha",
                                     .dropout = "lora_dropout",
                                     .targets = "target_modules",
                                     .rank_default = 8,
                                     .saved = "modules_to_save"};

/* Adapters alone; peft/lora.py's own rank and linear layers. */
static const ExchangeDialect megatron_bridge = {
    .rank = "peft.dim",
    .alpha = "peft.alpha",
    .dropout = "peft.dropout",
    .targets = "peft.target_modules",
    .targets_default = "[\"linear_qkv\",\"linear_proj\",\"linear_fc1\",\"linear_fc2\"]",
    .rank_default = 32};

const ExchangeDialect *exchange_dialect(ExchangeFormat format)
{
    return format == EXCHANGE_FORMAT_AXOLOTL           ? &axolotl
           : format == EXCHANGE_FORMAT_LLAMA_FACTORY   ? &llama_factory
           : format == EXCHANGE_FORMAT_TORCHTUNE       ? &torchtune
           : format == EXCHANGE_FORMAT_PEFT            ? &peft
           : format == EXCHANGE_FORMAT_MEGATRON_BRIDGE ? &megatron_bridge
                                                       : &trl;
}
