/* exchange/import_trainer.h - what importers of fine-tuning programs share: number formats, optimizers, sharding. */
#ifndef ORR_EXCHANGE_IMPORT_TRAINER_H
#define ORR_EXCHANGE_IMPORT_TRAINER_H

#include "exchange/finetune.h"

/* How a launch of Hugging Face's Trainer shards; all zero: DDP. */
typedef struct ExchangeSharding {
    int zero; /* stage */
    bool deepspeed, fsdp;
    bool host_optimizer, host_weights; /* wait in the host's memory */
    bool checkpoints;                  /* FSDP wraps layers in checkpoints */
} ExchangeSharding;

/* `word` (of lower case) anywhere in `text` (NULL: nowhere), in whatever case. */
bool exchange_has_word(const char *text, const char *word);
/* A switch; null and nothing are `fallback`. */
bool exchange_import_on(const ExchangeImport *import, const char *key, bool fallback);

/* training.precision: 16 bits of either kind, or what the program does by itself. What is all of bf16 has training.states too:
 * after the task and the optimizer. */
void exchange_import_precision(ExchangeImport *import, ExchangeFormat format);
void exchange_import_optimizer(ExchangeImport *import, const ExchangeDialect *names);
/* Names what the model has no term for, where it is on, among what changes the prediction. */
void exchange_import_unmodelled(const ExchangeImport *import);

/* The stage that a DeepSpeed file's name tells; -1: none. */
int exchange_zero_stage(const char *file);
/* ZeRO's stage of FSDP's strategy and reshard_after_forward; either may be NULL. */
int exchange_fsdp_stage(const char *strategy, const char *reshards);
/* By the file's own keys: deepspeed, fsdp, fsdp_config. */
ExchangeSharding exchange_import_sharding(const ExchangeImport *import);
/* By those, or by what `accelerate launch` says: its options, the file of --config_file, or that file's name. parallel.data of
 * its processes, where nothing else tells it: before the batch. */
ExchangeSharding exchange_import_accelerate(ExchangeImport *import);
/* parallel.data of dp_shard_size and dp_replicate_size, where nothing else tells it: before the batch. */
void exchange_import_data_ranks(ExchangeImport *import);
/* parallel.zero, the framework, what waits on the host; after training.recompute, which FSDP may set. */
void exchange_import_trainer(ExchangeImport *import, const ExchangeSharding *sharding);

#endif
