/* spec/exchange_internal.h - what the exporters and importers of spec/export_*.c and spec/import_*.c share.
 *
 * An importer moves settings into a scenario document. A value is native (the file says it), or implied (what the
 * framework does when nobody says otherwise: taken only where the document is silent).
 */
#ifndef ORR_SPEC_EXCHANGE_INTERNAL_H
#define ORR_SPEC_EXCHANGE_INTERNAL_H

#include "spec/exchange.h"
#include "spec/settings.h"

typedef struct SpecImport {
    const Settings *in;
    OrrJsonDoc *doc;
    const char *path;
    GPtrArray *native;   /* char*: scenario keys that the file says itself */
    GPtrArray *warnings; /* char* */
} SpecImport;

typedef bool (*SpecExporter)(const Spec *spec, Settings *out, GError **error);
typedef void (*SpecImporter)(SpecImport *import);

bool spec_export_megatron(const Spec *spec, Settings *out, GError **error);
bool spec_export_megatron_bridge(const Spec *spec, Settings *out, GError **error);
bool spec_export_deepspeed(const Spec *spec, Settings *out, GError **error);
bool spec_export_torchtitan(const Spec *spec, Settings *out, GError **error);
bool spec_export_nanotron(const Spec *spec, Settings *out, GError **error);
void spec_import_megatron(SpecImport *import);
void spec_import_megatron_bridge(SpecImport *import);
void spec_import_deepspeed(SpecImport *import);
void spec_import_torchtitan(SpecImport *import);
void spec_import_nanotron(SpecImport *import);

/* "megatron: parallel.schedule: zb-h1: <what would work>" */
bool spec_export_refuse(GError **error, SpecFormat format, const char *key, const char *value,
                        const char *hint);
/* Full recomputation and the like are the same in every framework that has it; the words of `schedule` that a
 * framework has, as its own words: fails for others. */
typedef struct SpecWordPair {
    int value;
    const char *word;
} SpecWordPair;
const char *spec_pair_word(const SpecWordPair *pairs, int count, int value);

/* The text of setting `key`, or NULL; bare switches are "true". */
const char *spec_import_text(const SpecImport *import, const char *key);
/* A whole number; a value that is none (a shell variable) is warned about. */
bool spec_import_int(const SpecImport *import, const char *key, int *ret_value);
/* Absent: `fallback`. */
bool spec_import_bool(const SpecImport *import, const char *key, bool fallback);

void spec_import_native(SpecImport *import, const char *key, const char *value);
void spec_import_native_int(SpecImport *import, const char *key, int value);
void spec_import_native_bool(SpecImport *import, const char *key, bool value);
void spec_import_implied(SpecImport *import, const char *key, const char *value);
/* Setting `from` becomes native `key`, if it is there. */
void spec_import_move(SpecImport *import, const char *from, const char *key);
/* What the document says at a key path, or NULL. */
const OrrJson *spec_import_at(const SpecImport *import, const char *key);
int spec_import_doc_int(const SpecImport *import, const char *key, int fallback);
/* Layers of the document's model: its own, or its preset's; 0: unknown. */
int spec_import_layers(const SpecImport *import);
/* One word in or out of execution.overlap; the others stay as the document has them. */
void spec_import_overlap(SpecImport *import, const char *word, bool on);
void spec_import_warn(const SpecImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
