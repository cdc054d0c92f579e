/* spec/import_hf_internal.h - shared by the readers of families of models; not for other rooms. */
#ifndef ORR_SPEC_IMPORT_HF_INTERNAL_H
#define ORR_SPEC_IMPORT_HF_INTERNAL_H

#include "spec/import_hf.h"

typedef struct HfImport {
    const OrrJson *config; /* of the text model */
    const char *path;
    GHashTable *used;    /* keys that were looked at */
    GPtrArray *changes;  /* char*: what a model has no field for; NULL: not asked for */
    GPtrArray *harmless; /* char*: keys that change no step; NULL: not asked for */
    OrrJsonWriter out;
    GError **error;
    bool failed;
} HfImport;

/* "PATH: KEY: VALUE; give EXPECTED"; the first failure stays. */
void spec_hf_fail(HfImport *import, const char *key, const OrrJson *node, const char *expected);
/* A member that is there and not null; it counts as used. */
const OrrJson *spec_hf_find(const HfImport *import, const char *key);
/* Something that a model has no field for, and that changes the prediction. */
void spec_hf_change(HfImport *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The whole number under the first of `keys` ("a|b|c") that is there; `fallback` when none is; -1 and an error when it is
 * required (fallback below 0) or no whole number. */
int64_t spec_hf_whole(HfImport *import, const char *keys, int64_t fallback);
bool spec_hf_flag(HfImport *import, const char *key, bool fallback);
double spec_hf_real(const OrrJson *object, const char *key, double fallback);
void spec_hf_put(HfImport *import, const char *key, int64_t value);
void spec_hf_put_required(HfImport *import, const char *key, const char *from);

/* BART, mBART, Marian, Pegasus, Blenderbot, T5, mT5, UMT5: whether "model_type" names one of these, and its model. */
bool spec_hf_has_encoder(const char *type);
void spec_hf_import_encoder(HfImport *import, const char *type);
/* Their names, ", " before each. */
void spec_hf_name_encoders(GString *text);

#endif
