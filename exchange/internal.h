/* exchange/internal.h - what the exporters and importers of spec/export_*.c and spec/import_*.c share.
 *
 * An importer moves settings into a scenario document. A value is native (the file says it), or implied (what the
 * framework does when nobody says otherwise: taken only where the document is silent).
 */
#ifndef ORR_EXCHANGE_INTERNAL_H
#define ORR_EXCHANGE_INTERNAL_H

#include "exchange/exchange.h"
#include "exchange/settings.h"

typedef struct ExchangeImport {
    const Settings *in;
    OrrJsonDoc *doc;
    const char *path;
    GPtrArray *native;  /* char*: scenario keys that the file says itself */
    ExchangeLoss *loss; /* NULL: not asked for */
} ExchangeImport;

typedef bool (*ExchangeExporter)(const Spec *spec, Settings *out, GError **error);
typedef void (*ExchangeImporter)(ExchangeImport *import);

bool exchange_export_megatron(const Spec *spec, Settings *out, GError **error);
bool exchange_export_megatron_bridge(const Spec *spec, Settings *out, GError **error);
bool exchange_export_deepspeed(const Spec *spec, Settings *out, GError **error);
bool exchange_export_torchtitan(const Spec *spec, Settings *out, GError **error);
bool exchange_export_nanotron(const Spec *spec, Settings *out, GError **error);
void exchange_import_megatron(ExchangeImport *import);
void exchange_import_megatron_bridge(ExchangeImport *import);
void exchange_import_deepspeed(ExchangeImport *import);
void exchange_import_torchtitan(ExchangeImport *import);
void exchange_import_nanotron(ExchangeImport *import);

/* training.recompute in a refusal: full of some of a stage's layers is told from full. */
const char *export_recompute_shown(const Spec *spec);
/* "megatron: parallel.schedule: zb-h1; <what would work>"; where `error` is set already, one more in its message (ORR_ALSO): checks
 * go on, so that everything is said at once. Always false. */
bool exchange_export_refuse(GError **error, ExchangeFormat format, const char *key, const char *value,
                            const char *hint);
/* Full recomputation and the like are the same in every framework that has it; the words of `schedule` that a
 * framework has, as its own words: fails for others. */
typedef struct ExchangeWordPair {
    int value;
    const char *word;
} ExchangeWordPair;
const char *exchange_pair_word(const ExchangeWordPair *pairs, int count, int value);

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
/* Settings that are understood and change no step: named in that part of the report, where they are there. */
void exchange_import_harmless(const ExchangeImport *import, const char *const *keys, gsize count);
/* A setting that the file marks as a placeholder is no statement. */
bool exchange_import_is_placeholder(const ExchangeImport *import, const char *key);
/* `steps` iterations as training.tokens, where batch and sequence are known and nothing says the tokens. */
void exchange_import_steps(ExchangeImport *import, const char *key);
/* A value as a JSON text. */
char *exchange_json_text(const char *value);

/* What a reading back of the exported settings does not give: exchange/export_loss.c. */
void exchange_export_loss(const Spec *spec, const OrrJson *scenario, ExchangeFormat format,
                          const Settings *settings, const GPtrArray *native, ExchangeLoss *loss);
/* Reads settings into a copy of `start`, as an import of that format does; `native` may be NULL. */
OrrJsonDoc *exchange_read_back(const Settings *settings, ExchangeFormat format, const OrrJson *start,
                               GPtrArray *native);
/* The settings that a format writes for `spec`; `out` is initialised. */
bool exchange_export_settings(const Spec *spec, ExchangeFormat format, Settings *out, GError **error);
/* Profile whose software a format configures: names that begin so. */
const char *const *exchange_frameworks_of(ExchangeFormat format);

#endif
