/* search/describe.c - a point and its bounds in words. */
#include "search/axes.h"
#include "search/write_internal.h"

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
    GString *out = g_string_new(NULL);
    search_axes_describe(result->space->spec, spec, out);
    g_string_erase(out, 0, 1); /* the blank */
    if (parallel->embedding_as_layer || parallel->loss_as_layer)
        g_string_append_printf(out, " (%s%s%s as layer)", parallel->embedding_as_layer ? "embedding" : "",
                               parallel->embedding_as_layer && parallel->loss_as_layer ? "+" : "",
                               parallel->loss_as_layer ? "loss" : "");
    if (parallel->stage_layers_count > result->space->spec->parallel.stage_layers_count)
        g_string_append(out, " (layers by recipe)");
    append_flags(out, spec_overlap(spec)); /* with what recipes switch on besides, as `run` shows */
    return g_string_free(out, FALSE);
}
