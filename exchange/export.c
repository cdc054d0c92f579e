/* exchange/export.c - words and refusals that exporters share. */
#include "exchange/export.h"

static const char *const format_list[] = {
    "megatron", "megatron-bridge", "deepspeed", "torchtitan", "nanotron", "verl",  "nemo-rl", "hf",
    "axolotl",  "llama-factory",   "torchtune", "trl",        "openrlhf", "slime", "peft"};
const SpecWords exchange_words_format = {"a format", format_list, (int)G_N_ELEMENTS(format_list), 0};
G_STATIC_ASSERT(G_N_ELEMENTS(format_list) == EXCHANGE_FORMAT_COUNT);

const char *export_recompute_shown(const Spec *spec)
{
    const SpecRecompute *recompute = &spec->training.recompute;
    return recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0 ? "full on some of the layers"
           : recompute->partitioned                                        ? "partitioned"
                                    : spec_word(&spec_words_recompute, (int)recompute->mode);
}

bool exchange_export_refuse(GError **error, ExchangeFormat format, const char *key, const char *value,
                            const char *hint)
{
    if (error == NULL || *error == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: %s: %s; %s",
                        spec_word(&exchange_words_format, (int)format), key, value, hint);
    g_autofree char *before = (*error)->message;
    (*error)->message = g_strdup_printf("%s" ORR_ALSO "%s: %s; %s", before, key, value, hint);
    return false;
}

const char *exchange_pair_word(const ExchangeWordPair *pairs, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (pairs[i].value == value)
            return pairs[i].word;
    return NULL;
}
