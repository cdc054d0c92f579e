/* exchange/finetune.h - what fine-tuning programs call things in their files: for import and export. */
#ifndef ORR_EXCHANGE_FINETUNE_H
#define ORR_EXCHANGE_FINETUNE_H

#include "exchange/exchange.h"

/* Names, and a program's own values of what its file leaves out (0: none). */
typedef struct ExchangeDialect {
    const char *model, *sequence, *micro, *accumulate, *rank, *alpha, *dropout, *targets, *steps, *epochs,
        *optimizer, *compiled;
    int sequence_default, micro_default, rank_default;
} ExchangeDialect;

/* Of axolotl, LLaMA-Factory, torchtune, TRL or PEFT, whose file is an adapter alone: the other names are NULL. */
const ExchangeDialect *exchange_dialect(ExchangeFormat format);

#endif
