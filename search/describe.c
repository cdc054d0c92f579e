/* search/describe.c - a point and its bounds in words. */
#include "search/write_internal.h"
#include "spec/notes.h"

static const struct {
    const char *key, *words;
} bounds[SEARCH_BOUND_COUNT] = {
    [SEARCH_BOUND_MEMORY] = {"memory", "states and live activations exceed the memory"},
    [SEARCH_BOUND_COMPUTE] = {"compute", "the model's work alone takes longer"},
    [SEARCH_BOUND_PIPELINE] = {"pipeline", "fill, the slowest rank's work and drain take longer"},
    [SEARCH_BOUND_DATA] = {"data", "compute, gradient exchange and optimizer together take longer"},
    [SEARCH_BOUND_REPLAY] = {"replay", "the longest path through the schedule is longer"},
};

const char *search_bound_key(SearchBoundKind kind)
{
    return bounds[kind].key;
}

const char *search_bound_words(SearchBoundKind kind)
{
    return bounds[kind].words;
}

static void append_degree(GString *out, const char *name, int degree)
{
    if (degree > 1)
        g_string_append_printf(out, " %s%d", name, degree);
}

static void append_flags(GString *out, unsigned overlap)
{
    bool first = true;
    for (int i = 0; i < spec_words_overlap.count; i++) {
        if ((overlap & 1u << i) == 0)
            continue;
        g_string_append_printf(out, "%s%s", first ? " overlap " : "+", orr_word(&spec_words_overlap, i));
        first = false;
    }
}

char *search_describe(const SearchResult *result, SearchId id)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    search_point_spec(result->space, id, spec);
    const SpecParallel *parallel = &spec->parallel;
    g_autofree char *recompute = spec_recompute_words(&spec->training.recompute);
    GString *out = g_string_new(NULL);
    g_string_append_printf(out, "tp%d%s", parallel->tensor,
                           parallel->tensor > 1 && parallel->sequence_parallel == 1 ? " sp" : "");
    append_degree(out, "cp", parallel->context);
    g_string_append_printf(out, " pp%d", parallel->pipeline);
    append_degree(out, "vpp", parallel->virtual_stages);
    g_string_append_printf(out, " dp%d", parallel->data);
    if (spec->model.moe.experts > 0)
        g_string_append_printf(out, " ep%d etp%d", parallel->expert, parallel->expert_tensor);
    if ((int)result->space->spec->parallel.moe_dispatcher == SPEC_AUTO && parallel->expert > 1)
        g_string_append_printf(out, " %s", spec_word(&spec_words_dispatcher, (int)parallel->moe_dispatcher));
    if (result->space->rank_order_count > 1)
        g_string_append_printf(out, " %s", parallel->order);
    g_string_append_printf(out, " zero%d", parallel->zero);
    if (parallel->zero_group_gpus > 0)
        g_string_append_printf(out, "/%d", parallel->zero_group_gpus);
    g_string_append_printf(out, " mb%d", spec->training.micro_batch);
    if (result->space->spec->search.precision != 0)
        g_string_append_printf(out, " %s", spec_word(&spec_words_precision, (int)spec->training.precision));
    if (parallel->pipeline > 1)
        g_string_append_printf(out, " %s", spec_word(&spec_words_schedule, (int)parallel->schedule));
    g_string_append_printf(out, " recompute %s", recompute);
    if (result->space->spec->offload.activation_layers == SPEC_AUTO && spec->offload.activation_layers > 0)
        g_string_append_printf(out, " offload %d", spec->offload.activation_layers);
    if ((int)result->space->spec->offload.scheme == SPEC_AUTO && spec_offloads_states(&spec->offload)) {
        g_string_append_printf(out, " %s", spec_word(&spec_words_offload, (int)spec->offload.scheme));
        if (spec->offload.ratio < 1)
            g_string_append_printf(out, " %g", spec->offload.ratio);
    }
    if ((int)result->space->spec->execution.attention == SPEC_AUTO)
        g_string_append_printf(out, " %s", spec_word(&spec_words_attention, (int)spec->execution.attention));
    if (parallel->embedding_as_layer || parallel->loss_as_layer)
        g_string_append_printf(out, " (%s%s%s as layer)", parallel->embedding_as_layer ? "embedding" : "",
                               parallel->embedding_as_layer && parallel->loss_as_layer ? "+" : "",
                               parallel->loss_as_layer ? "loss" : "");
    if (parallel->stage_layers_count > result->space->spec->parallel.stage_layers_count)
        g_string_append(out, " (layers by recipe)");
    append_flags(out, spec_overlap(spec)); /* with what recipes switch on besides, as `run` shows */
    return g_string_free(out, FALSE);
}
