/* exchange/finetune.h - what fine-tuning programs call things in their files: for import and export. */
#ifndef ORR_EXCHANGE_FINETUNE_H
#define ORR_EXCHANGE_FINETUNE_H

#include "exchange/exchange.h"
#include "exchange/import.h"

/* Names, and a program's own values of what its file leaves out (0: none). */
typedef struct ExchangeDialect {
    const char *model, *sequence, *micro, *accumulate, *rank, *alpha, *dropout, *targets, *steps, *epochs,
        *optimizer, *compiled, *saved;
    int sequence_default, micro_default, rank_default;
    const char *targets_default; /* as JSON; NULL: q_proj and v_proj, with a warning */
} ExchangeDialect;

/* Of axolotl, LLaMA-Factory, torchtune and TRL. PEFT's file and Megatron-Bridge's object peft are an adapter alone: the other
 * names are NULL. */
const ExchangeDialect *exchange_dialect(ExchangeFormat format);

/* A value that the file gives: NULL where it says null or nothing. */
const char *exchange_import_said(const ExchangeImport *import, const char *key);
/* Rank, alpha, dropout and linear layers of adapters over frozen weights of 16 bits. */
void exchange_import_adapter(ExchangeImport *import, ExchangeFormat format);
/* training.adapter.targets and modules_to_save. */
void exchange_import_adapter_layers(ExchangeImport *import, const ExchangeDialect *names);

#endif
