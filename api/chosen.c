/* api/chosen.c - what "auto" became. */
#include "api/chosen.h"

#include <string.h>

#include "ledger/memory.h"
#include "search/axes.h"
#include "search/choose.h"
#include "search/mixed.h"
#include "spec/load.h"

static void show(const Spec *asked, const Spec *spec, const char *section, GPtrArray *chosen)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++) {
        if (!g_str_has_prefix(axes[i].key, section) || !search_axis_is_set(&axes[i], asked, spec))
            continue;
        g_autofree char *text = search_axis_text(&axes[i], spec);
        g_ptr_array_add(chosen, g_strdup_printf("%s=%s", axes[i].key, text));
    }
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
    static const char *const sections[] = {"training.", "parallel.", "offload.", "execution."};
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++)
        show(asked, &spec, sections[i], chosen);
    *ret_spec = spec;
    return true;
}
