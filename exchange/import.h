/* exchange/import.h - what importers share, and what there are.
 *
 * An importer moves settings into a scenario document. A value is native (the file says it), or implied (what the
 * framework does when nobody says otherwise: taken only where the document is silent).
 */
#ifndef ORR_EXCHANGE_IMPORT_H
#define ORR_EXCHANGE_IMPORT_H

#include "exchange/exchange.h"
#include "exchange/settings.h"

typedef struct ExchangeImport {
    const Settings *in;
    OrrJsonDoc *doc;
    const char *path;
    GPtrArray *native;  /* char*: scenario keys that the file says itself */
    ExchangeLoss *loss; /* NULL: not asked for */
    char *refused;      /* why there is no scenario in the file; NULL: there is one */
} ExchangeImport;

void exchange_import_megatron(ExchangeImport *import);
void exchange_import_megatron_bridge(ExchangeImport *import);
void exchange_import_deepspeed(ExchangeImport *import);
void exchange_import_torchtitan(ExchangeImport *import);
void exchange_import_nanotron(ExchangeImport *import);
void exchange_import_axolotl(ExchangeImport *import);
void exchange_import_llama_factory(ExchangeImport *import);
void exchange_import_torchtune(ExchangeImport *import);
void exchange_import_trl(ExchangeImport *import);
void exchange_import_peft(ExchangeImport *import);
void exchange_import_verl(ExchangeImport *import);
void exchange_import_nemo_rl(ExchangeImport *import);
void exchange_import_openrlhf(ExchangeImport *import);
void exchange_import_slime(ExchangeImport *import);

/* The text of setting `key`, or NULL; bare switches are "true". */
const char *exchange_import_text(const ExchangeImport *import, const char *key);
/* A whole number; a value that is none (a shell variable) is warned about. */
bool exchange_import_int(const ExchangeImport *import, const char *key, int *ret_value);
/* Absent: `fallback`. */
bool exchange_import_bool(const ExchangeImport *import, const char *key, bool fallback);

void exchange_import_native(ExchangeImport *import, const char *key, const char *value);
void exchange_import_native_int(ExchangeImport *import, const char *key, int value);
void exchange_import_native_bool(ExchangeImport *import, const char *key, bool value);
void exchange_import_implied(ExchangeImport *import, const char *key, const char *value);
/* Setting `from` becomes native `key`, if it is there. */
void exchange_import_move(ExchangeImport *import, const char *from, const char *key);
/* What the document says at a key path, or NULL. */
const OrrJson *exchange_import_at(const ExchangeImport *import, const char *key);
int exchange_import_doc_int(const ExchangeImport *import, const char *key, int fallback);
/* Data-parallel ranks: the document's, or what its cluster's GPUs leave beside the other degrees; 0: not known. */
int exchange_import_data(const ExchangeImport *import);
/* Layers of the document's model: its own, or its preset's; 0: unknown. */
int exchange_import_layers(const ExchangeImport *import);
/* One word in or out of execution.overlap; the others stay as the document has them. */
void exchange_import_overlap(ExchangeImport *import, const char *word, bool on);
/* A clause of what changes the prediction. */
void exchange_import_warn(const ExchangeImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The file holds what no scenario can be made of: the import fails with the first such sentence. */
void exchange_import_refuse(ExchangeImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Settings that are understood and change no step: named in that part of the report, where they are there. */
void exchange_import_harmless(const ExchangeImport *import, const char *const *keys, gsize count);
/* A setting that the file marks as a placeholder is no statement. */
bool exchange_import_is_placeholder(const ExchangeImport *import, const char *key);
/* training.tokens of the whole run, where no epochs are given. */
void exchange_import_tokens(ExchangeImport *import, double tokens);

/* `steps` iterations as training.tokens, where batch and sequence are known and nothing says the tokens. */
void exchange_import_steps(ExchangeImport *import, const char *key);
/* A value as a JSON text. */
char *exchange_json_text(const char *value);

#endif
