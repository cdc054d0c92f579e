/* spec/import_hf_internal.h - shared by spec/import_hf*.c. */
#ifndef ORR_SPEC_IMPORT_HF_INTERNAL_H
#define ORR_SPEC_IMPORT_HF_INTERNAL_H

#include "spec/import_hf.h"

/* A file being read. */
typedef struct SpecHf {
    const OrrJson *config; /* of the text model */
    const char *path;
    GHashTable *used;    /* keys that were looked at */
    GPtrArray *changes;  /* char*: what a model has no field for; NULL: not asked for */
    GPtrArray *harmless; /* char*: keys that change no step; NULL: not asked for */
    OrrJsonWriter out;
    GError **error;
    bool flat_towers; /* the text model's keys stand beside those of a tower for pictures */
    bool failed;
} SpecHf;

typedef enum {
    SPEC_HF_DENSE,
    SPEC_HF_MIXTRAL,
    SPEC_HF_QWEN_MOE,
    SPEC_HF_DEEPSEEK,
    SPEC_HF_GPT_OSS,
    SPEC_HF_GLM_MOE,
    SPEC_HF_LLAMA4,
    SPEC_HF_HUNYUAN
} SpecHfKind;

typedef struct SpecHfFamily {
    const char *type; /* "model_type" */
    SpecHfKind kind;
    const char *biases; /* NULL: from attention_bias and mlp_bias */
    bool qk_norm;
    bool plain_mlp;                       /* two matrices, not gated */
    bool layernorm;                       /* else RMSNorm */
    bool tied;                            /* unless the file says */
    int extra_norms;                      /* of a layer's hidden size, beyond two */
    bool parallel;                        /* attention and MLP read one norm */
    int heads, kv_heads, head_dim, vocab; /* of files that leave them to the class; 0: files say them */
} SpecHfFamily;

/* import_hf_values.c: values of the file, and what is written of them. */
void spec_hf_fail(SpecHf *import, const char *key, const OrrJson *node, const char *expected);
/* NULL: absent or null. The key counts as used. */
const OrrJson *spec_hf_find(const SpecHf *import, const char *key);
/* Something that a model has no field for. */
void spec_hf_change(SpecHf *import, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The whole number under the first of `keys` ("a|b|c") that is there; `fallback` when none is; -1 and an error
 * when it is required (fallback below 0) or no whole number. */
int64_t spec_hf_whole(SpecHf *import, const char *keys, int64_t fallback);
bool spec_hf_flag(SpecHf *import, const char *key, bool fallback);
/* The number under `key`; `fallback` where there is none. */
double spec_hf_real(const OrrJson *object, const char *key, double fallback);
void spec_hf_put(SpecHf *import, const char *key, int64_t value);
void spec_hf_put_required(SpecHf *import, const char *key, const char *from);

/* import_hf_families.c: GPT-2 with BLOOM and OPT, whose names are told apart and listed, and Llama with its kin. */
bool spec_hf_is_gpt2(const char *type);
void spec_hf_name_gpt2(GString *text);
void spec_hf_gpt2(SpecHf *import, const char *type);
void spec_hf_llama(SpecHf *import, const SpecHfFamily *family);

/* import_hf_encoder.c: BART, mBART, Marian, Pegasus, Blenderbot, T5, mT5, UMT5. Whether "model_type" names one of these, its
 * model, and their names, ", " before each. */
bool spec_hf_has_encoder(const char *type);
void spec_hf_encoder(SpecHf *import, const char *type);
void spec_hf_name_encoders(GString *text);

#endif
