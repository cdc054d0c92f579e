/* cli/chosen.c - what "auto" became. */
#include "cli/chosen.h"

#include <string.h>

#include "search/choose.h"

/* Every field that may be "auto", as an int in the Spec. */
typedef struct AutoField {
    const char *key;
    size_t offset;
    const SpecWords *words; /* NULL: a number */
    bool truth;             /* 0 and 1 are false and true */
} AutoField;

static const AutoField auto_fields[] = {
    {"training.micro_batch", offsetof(Spec, training.micro_batch), NULL, false},
    {"training.recompute", offsetof(Spec, training.recompute.mode), &spec_words_recompute, false},
    {"parallel.tensor", offsetof(Spec, parallel.tensor), NULL, false},
    {"parallel.sequence_parallel", offsetof(Spec, parallel.sequence_parallel), NULL, true},
    {"parallel.context", offsetof(Spec, parallel.context), NULL, false},
    {"parallel.pipeline", offsetof(Spec, parallel.pipeline), NULL, false},
    {"parallel.virtual_stages", offsetof(Spec, parallel.virtual_stages), NULL, false},
    {"parallel.schedule", offsetof(Spec, parallel.schedule), &spec_words_schedule, false},
    {"parallel.data", offsetof(Spec, parallel.data), NULL, false},
    {"parallel.expert", offsetof(Spec, parallel.expert), NULL, false},
    {"parallel.expert_tensor", offsetof(Spec, parallel.expert_tensor), NULL, false},
    {"parallel.zero", offsetof(Spec, parallel.zero), NULL, false},
    {"execution.attention", offsetof(Spec, execution.attention), &spec_words_attention, false},
};

static int field_value(const Spec *spec, const AutoField *field)
{
    int value;
    memcpy(&value, (const char *)spec + field->offset, sizeof value);
    return value;
}

static char *show(const AutoField *field, int value)
{
    if (field->words != NULL)
        return g_strdup_printf("%s=%s", field->key, spec_word(field->words, value));
    if (field->truth)
        return g_strdup_printf("%s=%s", field->key, value != 0 ? "true" : "false");
    return g_strdup_printf("%s=%d", field->key, value);
}

static bool still_auto(const char *key, GError **error)
{
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                "%s is \"auto\", which cannot be chosen yet; give it a value", key);
    return false;
}

bool cli_choose(const Spec *asked, Spec *ret_spec, GPtrArray *chosen, GError **error)
{
    Spec spec = *asked;
    if (search_has_auto(asked) && !search_choose(asked, &spec, error))
        return false;
    if ((spec.execution.overlap & (unsigned)SPEC_OVERLAP_AUTO) != 0)
        return still_auto("execution.overlap", error);
    for (gsize i = 0; i < G_N_ELEMENTS(auto_fields); i++) {
        const int value = field_value(&spec, &auto_fields[i]);
        if (value == SPEC_AUTO)
            return still_auto(auto_fields[i].key, error);
        if (field_value(asked, &auto_fields[i]) == SPEC_AUTO)
            g_ptr_array_add(chosen, show(&auto_fields[i], value));
    }
    *ret_spec = spec;
    return true;
}
