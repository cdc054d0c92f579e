/* api/chosen.c - what "auto" became. */
#include "api/chosen.h"

#include <string.h>

#include "ledger/memory.h"
#include "search/choose.h"
#include "search/mixed.h"
#include "spec/load.h"
#include "spec/placement.h"

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
    {"parallel.moe_dispatcher", offsetof(Spec, parallel.moe_dispatcher), &spec_words_dispatcher, false},
    {"parallel.zero", offsetof(Spec, parallel.zero), NULL, false},
    {"parallel.zero_group_gpus", offsetof(Spec, parallel.zero_group_gpus), NULL, false},
    {"offload.activation_layers", offsetof(Spec, offload.activation_layers), NULL, false},
    {"offload.scheme", offsetof(Spec, offload.scheme), &spec_words_offload, false},
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

static char *show_overlap(unsigned overlap)
{
    GString *words = g_string_new("execution.overlap=");
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((overlap & 1u << i) != 0)
            g_string_append_printf(words, "%s%s", words->str[words->len - 1] == '=' ? "" : "+",
                                   orr_word(&spec_words_overlap, i));
    if (words->str[words->len - 1] == '=')
        g_string_append(words, "none");
    return g_string_free(words, FALSE);
}

/* What comes with a choice: how many layers recompute, and how layers were dealt out. */
static void show_beside(const Spec *asked, const Spec *spec, GPtrArray *chosen)
{
    const SpecRecompute *recompute = &spec->training.recompute;
    if ((int)asked->training.recompute.mode == SPEC_AUTO && recompute->layers > 0)
        g_ptr_array_add(chosen, g_strdup_printf("training.recompute.layers=%d", recompute->layers));
    if (asked->parallel.embedding_as_layer != spec->parallel.embedding_as_layer)
        g_ptr_array_add(chosen, g_strdup("parallel.embedding_as_layer=true"));
    if (asked->parallel.loss_as_layer != spec->parallel.loss_as_layer)
        g_ptr_array_add(chosen, g_strdup("parallel.loss_as_layer=true"));
    if ((int)asked->offload.scheme == SPEC_AUTO && spec_offloads_states(&spec->offload) &&
        spec->offload.ratio < 1)
        g_ptr_array_add(chosen, g_strdup_printf("offload.ratio=%g", spec->offload.ratio));
    if (spec_order_is_auto(asked))
        g_ptr_array_add(chosen, g_strdup_printf("parallel.order=%s", spec->parallel.order));
    if ((asked->execution.overlap & (unsigned)SPEC_OVERLAP_AUTO) != 0)
        g_ptr_array_add(chosen, show_overlap(spec->execution.overlap));
}

/* Layers of the stages and micro-batches of the replicas, in the form in which a scenario gives them. */
static void show_mixed(const Spec *asked, const Spec *spec, GPtrArray *chosen)
{
    const SpecParallel *parallel = &spec->parallel;
    if (asked->parallel.stage_layers_count == SPEC_AUTO) {
        int counts[SPEC_MAX_STAGES];
        g_autoptr(GString) list = g_string_new("parallel.stage_layers=[");
        const bool known = spec_stage_layers(spec, counts, NULL);
        for (int s = 0; known && s < parallel->pipeline * parallel->virtual_stages; s++)
            g_string_append_printf(list, "%s%d", s > 0 ? "," : "", counts[s]);
        g_string_append_c(list, ']');
        g_ptr_array_add(chosen, g_strdup(list->str));
    }
    if (asked->parallel.replica_microbatches_count == SPEC_AUTO) {
        g_autoptr(GString) list = g_string_new("parallel.replica_microbatches=[");
        for (int d = 0; d < parallel->data; d++)
            g_string_append_printf(list, "%s%d", d > 0 ? "," : "",
                                   parallel->replica_microbatches_count > 0
                                       ? parallel->replica_microbatches[d]
                                       : spec_microbatches(spec));
        g_string_append_c(list, ']');
        g_ptr_array_add(chosen, g_strdup(list->str));
    }
}

bool api_choose(const Spec *asked, Spec *ret_spec, GPtrArray *chosen, GError **error)
{
    LedgerResiduals *residuals = NULL;
    if (search_has_auto(asked) && !ledger_residuals_shipped(&residuals, error))
        return false;
    const double reserve_bytes = ledger_reserve_bytes(residuals, NULL, asked);
    ledger_residuals_free(residuals);
    return api_choose_reserved(asked, reserve_bytes, NULL, ret_spec, chosen, error);
}

bool api_choose_reserved(const Spec *asked, double reserve_bytes, const OrrStop *stop, Spec *ret_spec,
                         GPtrArray *chosen, GError **error)
{
    Spec spec = *asked;
    if (search_has_auto(asked) && !search_choose_reserved(asked, reserve_bytes, stop, &spec, error))
        return false;
    if (search_mixed_asked(asked)) {
        if (!search_mixed_choose(&spec, error))
            return false;
        show_mixed(asked, &spec, chosen);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(auto_fields); i++) {
        const int value = field_value(&spec, &auto_fields[i]);
        g_assert(value != SPEC_AUTO);
        if (field_value(asked, &auto_fields[i]) == SPEC_AUTO)
            g_ptr_array_add(chosen, show(&auto_fields[i], value));
    }
    show_beside(asked, &spec, chosen);
    *ret_spec = spec;
    return true;
}
