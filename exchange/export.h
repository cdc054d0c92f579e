/* exchange/export.h - what exporters share, and what there are. */
#ifndef ORR_EXCHANGE_EXPORT_H
#define ORR_EXCHANGE_EXPORT_H

#include "exchange/exchange.h"
#include "exchange/settings.h"

bool exchange_export_megatron(const Spec *spec, Settings *out, GError **error);
bool exchange_export_megatron_bridge(const Spec *spec, Settings *out, GError **error);
bool exchange_export_deepspeed(const Spec *spec, Settings *out, GError **error);
bool exchange_export_torchtitan(const Spec *spec, Settings *out, GError **error);
bool exchange_export_nanotron(const Spec *spec, Settings *out, GError **error);
bool exchange_export_axolotl(const Spec *spec, Settings *out, GError **error);
bool exchange_export_llama_factory(const Spec *spec, Settings *out, GError **error);
bool exchange_export_torchtune(const Spec *spec, Settings *out, GError **error);
bool exchange_export_trl(const Spec *spec, Settings *out, GError **error);
bool exchange_export_peft(const Spec *spec, Settings *out, GError **error);

/* Loops; `scenario`: the document that `spec` was loaded from, of which roles are made. */
bool exchange_export_verl(const Spec *spec, const OrrJson *scenario, Settings *out, GError **error);
bool exchange_export_nemo_rl(const Spec *spec, const OrrJson *scenario, Settings *out, GError **error);

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

#endif
