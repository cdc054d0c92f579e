/* exchange/import_megatron.h - what the two files of Megatron's importer share. */
#ifndef ORR_EXCHANGE_IMPORT_MEGATRON_H
#define ORR_EXCHANGE_IMPORT_MEGATRON_H

#include "exchange/megatron.h"

/* Flags of Megatron-LM or, where `bridge`, overrides of Megatron-Bridge. */
typedef struct MegatronNames {
    ExchangeImport *import;
    bool bridge;
} MegatronNames;

/* Value of the flag or of the override; NULL: not given. */
const char *megatron_text(const MegatronNames *names, const char *flag, const char *bridge);
/* Whether the switch is given; *ret_value is what it says, else left alone. */
bool megatron_switch(const MegatronNames *names, const char *flag, const char *bridge, bool *ret_value);

/* What a word of Megatron's is called in the scenario goes to `key`; others are told. */
void megatron_word(const MegatronNames *names, const char *flag, const char *bridge,
                   const ExchangeWordPair *pairs, int count, const SpecWords *words, const char *key);

/* exchange/import_megatron_training.c: precision, recomputation, attention, framework, batch. */
void megatron_take_training(const MegatronNames *names);
void megatron_take_vocabulary(const MegatronNames *names);

#endif
