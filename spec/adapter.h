/* spec/adapter.h - low-rank adapters beside frozen weights: LoRA, and QLoRA whose frozen weights are quantised. */
#ifndef ORR_SPEC_ADAPTER_H
#define ORR_SPEC_ADAPTER_H

#include "spec/names.h"

typedef enum {
    SPEC_TASK_PRETRAIN,
    SPEC_TASK_SFT,
    SPEC_TASK_LORA,
    SPEC_TASK_QLORA,
    SPEC_TASK_DPO,
    SPEC_TASK_ORPO,
    SPEC_TASK_REWARD,      /* a reward model: pairs, one number a sequence */
    SPEC_TASK_KTO,         /* single sequences with a verdict, and a KL term over mismatched ones */
    SPEC_TASK_APO_UNPAIRED /* the same without the term */
} SpecTask;

/* Where preference training has the reference's probabilities from. */
typedef enum {
    SPEC_REFERENCE_NONE,
    SPEC_REFERENCE_CACHED,      /* computed once, before */
    SPEC_REFERENCE_ADAPTER_OFF, /* the same weights without their adapters */
    SPEC_REFERENCE_MODEL        /* a second, frozen copy */
} SpecReference;

/* Linear layers of a block, as bits: the projections of attention, then those of an MLP. */
typedef enum {
    SPEC_TARGET_Q = 1,
    SPEC_TARGET_K = 2,
    SPEC_TARGET_V = 4,
    SPEC_TARGET_O = 8,
    SPEC_TARGET_GATE = 16,
    SPEC_TARGET_UP = 32,
    SPEC_TARGET_DOWN = 64,
    SPEC_TARGET_Q_A = 128, /* of multi-head latent attention */
    SPEC_TARGET_Q_B = 256,
    SPEC_TARGET_KV_A = 512,
    SPEC_TARGET_KV_B = 1024,
} SpecTarget;
enum { SPEC_TARGETS_ATTENTION = 15 + 128 + 256 + 512 + 1024, SPEC_TARGETS_MLP = 112 };

/* Tables that PEFT copies and trains whole (modules_to_save), as bits. */
typedef enum { SPEC_SAVED_EMBEDDING = 1, SPEC_SAVED_HEAD = 2 } SpecSaved;

/* How frozen weights of linear layers are stored. */
typedef enum { SPEC_BASE_BF16, SPEC_BASE_FP8, SPEC_BASE_INT8, SPEC_BASE_NF4, SPEC_BASE_INT4 } SpecBase;

/* W x + (alpha / rank) B A x, of which A and B are trained. Source: Hu et al., LoRA, ICLR 2022 */
typedef struct SpecAdapter {
    bool given; /* the scenario has `training.adapter`: all other weights are frozen */
    int rank;
    double alpha;
    unsigned targets;
    unsigned named;             /* those of them that were given by a name of their own */
    unsigned joint;             /* those that are one linear layer, which has one adapter */
    bool share_expert_adapters; /* one for all experts of a rank; else one each */
    SpecDtype dtype;            /* of its weights */
    double dropout_frac;
    SpecBase base_dtype;
    unsigned saved;        /* tables that are trained whole beside the adapters: SpecSaved */
    bool double_quantised; /* the scales of blocks of 64 are quantised too */
    bool fused; /* one adapter for queries, keys and values, one for gate and up; added in the product */
} SpecAdapter;

/* Weights that training leaves as they are, beside none of an adapter's. */
typedef struct SpecFreeze {
    bool embedding, head;
    bool router; /* those of all layers with experts */
    bool vision, projector;
    int layers; /* from the first on */
} SpecFreeze;

/* Whether it is asked how much more likely a sequence is than to a reference. */
static inline bool spec_task_refers(SpecTask task)
{
    return task == SPEC_TASK_DPO || task == SPEC_TASK_KTO || task == SPEC_TASK_APO_UNPAIRED;
}

static inline bool spec_freezes(const SpecFreeze *freeze)
{
    return freeze->embedding || freeze->head || freeze->router || freeze->layers > 0 || freeze->vision ||
           freeze->projector;
}

/* Whether training.adapter.targets takes this name. */
bool spec_knows_target(const char *name);
/* The table that a name of modules_to_save is, as SpecSaved; 0: none that is known. */
unsigned spec_saved_of(const char *name);
/* What Hugging Face calls the table. */
const char *spec_saved_word(SpecSaved table);

extern const SpecWords spec_words_task, spec_words_target, spec_words_base, spec_words_reference;

#endif
