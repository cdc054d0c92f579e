/* search/plain.c - see plain.h. Tested: cli/test_cli_answers.c */
#include "search/plain.h"

#include <string.h>

#define DEFAULT_ORDER "tp-cp-ep-dp-pp"

static bool search_is_plain(const Spec *asked, const Spec *chosen)
{
    const SpecParallel *was = &asked->parallel, *is = &chosen->parallel;
    const bool zero =
        was->zero == is->zero || is->zero <= asked->execution.framework.data_parallel.plain_zero;
    const bool groups = was->zero_group_gpus == is->zero_group_gpus || is->zero_group_gpus == 0;
    const bool order = strcmp(was->order, is->order) == 0 || strcmp(is->order, DEFAULT_ORDER) == 0;
    const bool dispatcher = (int)was->moe_dispatcher == (int)is->moe_dispatcher || is->expert == 1 ||
                            is->moe_dispatcher == SPEC_DISPATCHER_ALLTOALL;
    const bool host = asked->offload.activation_layers == chosen->offload.activation_layers ||
                      chosen->offload.activation_layers == 0;
    return zero && groups && order && dispatcher && host;
}

static bool near(SearchFor by, const SearchRun *run, const SearchRun *best)
{
    const double most = 1 + SEARCH_PLAIN_FRAC;
    return by == SEARCH_FOR_STEP ? (double)run->step_ps <= (double)best->step_ps * most
                                 : run->figure <= best->figure * most;
}

static int plain_row(const SearchResult *result)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    for (guint i = 0; i < result->best->len; i++) {
        const SearchRun *run = &g_array_index(result->best, SearchRun, i);
        search_point_spec(result->space, run->id, spec);
        if (near(result->by, run, &g_array_index(result->best, SearchRun, 0)) &&
            search_is_plain(result->space->spec, spec))
            return (int)i;
    }
    return -1;
}

int search_recommended(const SearchResult *result)
{
    const int row = plain_row(result);
    return row >= 0 || result->plain != NULL ? row : 0;
}

static void keep_one(SpecChoices *choices, int value)
{
    *choices = (SpecChoices){.count = 1, .value = {value}};
}

/* `asked` with what is not plain left out; false where nothing is plain. */
static bool narrow(const Spec *asked, Spec *plain)
{
    SpecSearch *search = &plain->search;
    *plain = *asked;
    if (asked->parallel.zero == SPEC_AUTO) {
        SpecChoices kept = {0};
        for (int zero = 0; zero <= asked->execution.framework.data_parallel.plain_zero; zero++) {
            bool allowed = asked->search.zero.count == 0;
            for (int i = 0; i < asked->search.zero.count; i++)
                allowed |= asked->search.zero.value[i] == zero;
            if (allowed)
                kept.value[kept.count++] = zero;
        }
        if (kept.count == 0)
            return false;
        search->zero = kept;
    }
    if (asked->parallel.zero_group_gpus == SPEC_AUTO)
        plain->parallel.zero_group_gpus = 0;
    if (asked->offload.activation_layers == SPEC_AUTO)
        keep_one(&search->activation_layers, 0);
    if ((int)asked->parallel.moe_dispatcher == SPEC_AUTO)
        plain->parallel.moe_dispatcher = SPEC_DISPATCHER_ALLTOALL;
    if (strcmp(asked->parallel.order, "auto") == 0)
        g_strlcpy(plain->parallel.order, DEFAULT_ORDER, sizeof plain->parallel.order);
    return true;
}

void search_find_plain(SearchResult *result, const SearchOptions *options)
{
    if (result->best->len == 0 || plain_row(result) >= 0 || options->max_seconds > 0 || !result->proved)
        return;
    SearchOptions quick = *options;
    SearchPlain *plain = g_new0(SearchPlain, 1);
    plain->spec = g_new(Spec, 1);
    quick.top = 1;
    quick.best_only = true;
    quick.exhaustive = false;
    quick.progress = NULL;
    if (!narrow(result->space->spec, plain->spec) || !search_run(plain->spec, &quick, &plain->result, NULL)) {
        g_free(plain->spec);
        g_free(plain);
        return;
    }
    const GArray *best = plain->result.best;
    if (best->len > 0 &&
        near(result->by, &g_array_index(best, SearchRun, 0), &g_array_index(result->best, SearchRun, 0)))
        result->plain = plain;
    else
        search_plain_free(plain);
}

bool search_run_reserved(Spec *spec, const SearchOptions *options, bool spare, SearchResult *ret_result,
                         GError **error)
{
    if (!search_run(spec, options, ret_result, error))
        return false;
    if (!spare || spec->search.reserve_memory_bytes <= 0 || ret_result->best->len > 0 || !ret_result->proved)
        return true;
    search_result_clear(ret_result);
    spec->search.reserve_memory_bytes = 0;
    return search_run(spec, options, ret_result, error);
}
