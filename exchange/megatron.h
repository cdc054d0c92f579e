/* exchange/megatron.h - the names that Megatron-LM and Megatron-Bridge have for fields of a scenario.
 * Source: megatron/training/arguments.py and megatron/core/transformer/transformer_config.py. */
#ifndef ORR_EXCHANGE_MEGATRON_H
#define ORR_EXCHANGE_MEGATRON_H

#include "exchange/export.h"
#include "exchange/import.h"

/* When a number is written. */
typedef enum {
    MEGATRON_ALWAYS,
    MEGATRON_POSITIVE,
    MEGATRON_MOE,
    MEGATRON_MLA,
    MEGATRON_WHOLE_LAYERS
} MegatronWhen;

typedef struct MegatronInt {
    const char *flag;   /* of Megatron-LM */
    const char *bridge; /* NULL: it has none */
    const char *key;    /* of the scenario */
    size_t offset;      /* int in Spec */
    MegatronWhen when;
} MegatronInt;

typedef struct MegatronSwitch {
    const char *flag, *bridge, *key;
    size_t offset;                     /* bool in Spec */
    bool flag_inverse, bridge_inverse; /* the switch says the opposite of the field */
} MegatronSwitch;

/* Whether --tp-comm-overlap, --overlap-moe-expert-parallel-comm say something: there is such communication. */
bool megatron_tensor_overlaps(const Spec *spec);
bool megatron_expert_overlaps(const Spec *spec);
/* What Megatron's checks of its arguments refuse, with the field and the reason. */
bool megatron_check(const Spec *spec, bool bridge, GError **error);
/* CUDA_DEVICE_MAX_CONNECTIONS as those checks want it. */
void megatron_environment(const Spec *spec, Settings *out);
/* A batch that grows evenly, as flags have it; other schedules are several runs, which the report of what is lost tells. */
void megatron_put_ramp(const Spec *spec, bool bridge, Settings *out);
/* training.adapter as Megatron-Bridge's object peft (class LoRA); false: it has no such adapter, `error` says what would do. */
bool megatron_put_adapter(const Spec *spec, Settings *out, GError **error);
void megatron_take_adapter(ExchangeImport *import);

/* "needs Megatron-Core 0.12 or later (--recompute-modules)": the release that the newest of the options came with; NULL:
 * any since 0.5; g_free. */
char *megatron_needs(const Settings *settings);

extern const MegatronInt megatron_ints[];
extern const int megatron_int_count;
extern const MegatronSwitch megatron_switches[];
extern const int megatron_switch_count;
extern const ExchangeWordPair megatron_norms[2], megatron_positions[3], megatron_optimizers[3];

#endif
