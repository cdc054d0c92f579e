/* exchange/megatron_names.c - values that go by a flag of Megatron-LM or an override of Megatron-Bridge. */
#include "exchange/import_megatron.h"

const char *megatron_text(const MegatronNames *names, const char *flag, const char *bridge)
{
    const char *key = names->bridge ? bridge : flag;
    return key != NULL ? exchange_import_text(names->import, key) : NULL;
}

/* A flag that is absent is off; an override that is absent says nothing. */
bool megatron_switch(const MegatronNames *names, const char *flag, const char *bridge, bool *ret_value)
{
    if (megatron_text(names, flag, bridge) == NULL && names->bridge)
        return false;
    *ret_value = exchange_import_bool(names->import, names->bridge ? bridge : flag, false);
    return true;
}

void megatron_word(const MegatronNames *names, const char *flag, const char *bridge,
                   const ExchangeWordPair *pairs, int count, const SpecWords *words, const char *key)
{
    const char *text = megatron_text(names, flag, bridge);
    if (text == NULL)
        return;
    for (int i = 0; i < count; i++)
        if (g_ascii_strcasecmp(pairs[i].word, text) == 0) {
            exchange_import_native(names->import, key, spec_word(words, pairs[i].value));
            return;
        }
    exchange_import_warn(names->import, "%s: \"%s\" has no equivalent in a scenario; ignored", flag, text);
}
