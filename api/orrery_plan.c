/* api/orrery_plan.c - searches and plans of liborrery. */
#include "api/handle.h"
#include "api/simulate.h"

#include <string.h>

#include "api/kinds.h"
#include "api/loops.h"
#include "base/units.h"
#include "ledger/memory.h"
#include "plan/plan.h"
#include "search/choose.h"
#include "search/plain.h"
#include "workload/purchase.h"

/* --- search --- */

typedef struct SearchAsk {
    double top, jobs, max_seconds;
    bool exhaustive;
    char *reserve, *own_runs, *by;
} SearchAsk;

static const ApiOption search_options[] = {
    {"top", API_OPTION_NUMBER, offsetof(SearchAsk, top), 1, 1000, true},
    {"jobs", API_OPTION_NUMBER, offsetof(SearchAsk, jobs), 0, 4096, true},
    {"max_seconds", API_OPTION_NUMBER, offsetof(SearchAsk, max_seconds), 1e-3, 1e9, false},
    {"exhaustive", API_OPTION_SWITCH, offsetof(SearchAsk, exhaustive), 0, 0, false},
    {"for", API_OPTION_TEXT, offsetof(SearchAsk, by), 0, 0, false},
    API_RESERVE(SearchAsk),
    API_OWN_RUNS(SearchAsk),
};

/* The search asks from all its threads whether to stop, and tells one of them how far it is. */
typedef struct SearchWatch {
    const OrrHandle *handle;
    gint stopped;
} SearchWatch;

static void search_progress(const SearchNews *news, void *data)
{
    SearchWatch *watch = data;
    if (!api_go_on(news->done_frac, (void *)(gsize)watch->handle))
        g_atomic_int_set(&watch->stopped, 1);
}

static bool search_stopped(void *data)
{
    return g_atomic_int_get(&((SearchWatch *)data)->stopped) != 0;
}

/* A step or a loop. */
static bool load(ApiInput *input, const OrrHandle *handle, Spec *spec, SpecSource *source, GError **error)
{
    input->loops = true;
    return api_input_load(input, api_sets(handle), spec, source, error);
}

static bool search_loop(OrrHandle *handle, const SearchAsk *ask, const Spec *spec, const SpecSource *source,
                        GError **error)
{
    Splits splits;
    if (!api_loop_alone(handle->path, "other goals (for)", ask->by != NULL, error))
        return false;
    if (splits_search(spec, source, (int)ask->top, &splits, error)) {
        splits_write_json(&splits, source, handle->answer);
        return true;
    }
    g_prefix_error(error, "%s: ", handle->path);
    return false;
}

static bool search(OrrHandle *handle, const SearchAsk *ask, Spec *spec, const SpecSource *source,
                   const ApiShipped *shipped, GError **error)
{
    LedgerReserveAsk reserve;
    SearchWatch watch = {handle, 0};
    SearchResult result;
    SearchOptions options = {.top = (int)ask->top,
                             .assumed = &shipped->assumed,
                             .jobs = (int)ask->jobs,
                             .max_seconds = ask->max_seconds,
                             .exhaustive = ask->exhaustive,
                             .stop = {search_stopped, &watch},
                             .progress = search_progress,
                             .progress_data = &watch};
    if (!search_has_auto(spec))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: no field is \"auto\", so there is nothing to search; set one, as parallel.tensor=auto",
            handle->path);
    if (!search_goal_parse("for", ask->by, &options.by, error) ||
        !search_goal_check(options.by, spec, shipped->own_count, error) ||
        !ledger_reserve_parse(ask->reserve, &reserve, error) || !ledger_reserve_check(&reserve, spec, error))
        return false;
    const bool spare = !reserve.given && spec->search.reserve_memory_bytes <= 0;
    spec->search.reserve_memory_bytes = ledger_reserve_bytes(shipped->residuals, &reserve, spec);
    if (!search_run_reserved(spec, &options, spare, &result, error)) {
        g_prefix_error(error, "%s: ", handle->path);
        return false;
    }
    result.residuals = shipped->residuals;
    result.own = shipped->own;
    result.own_count = shipped->own_count;
    result.assumed = &shipped->assumed;
    search_find_plain(&result, &options);
    const bool ok = search_write_json(&result, source, handle->answer, error);
    search_result_clear(&result);
    return ok;
}

const char *orr_search(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiInput input;
    SearchAsk ask = {0};
    SpecSource source = {0};
    ApiShipped shipped = {0};
    const int count = (int)G_N_ELEMENTS(search_options);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const bool ok = api_begin(handle, &input, &error) &&
                    api_options_read(options, "search", search_options, count, &ask, &error) &&
                    api_shipped_load(true, ask.own_runs, &shipped, &error) &&
                    load(&input, handle, spec, &source, &error) &&
                    (spec->workload.given ? search_loop(handle, &ask, spec, &source, &error)
                                          : search(handle, &ask, spec, &source, &shipped, &error));
    api_options_clear(search_options, count, &ask);
    api_shipped_clear(&shipped);
    spec_source_clear(&source);
    return api_answer(handle, ok, error);
}

/* --- plan --- */

typedef struct PlanAsk {
    char *deadline, *reserve, *own_runs, *by, *machines;
    double budget_usd, power_mw;
    bool ideal, whole_racks;
    GArray *gpus, *batch_range; /* double */
    GPtrArray *accelerators, *clusters, *frameworks;
} PlanAsk;

static const ApiOption plan_options[] = {
    {"deadline", API_OPTION_TEXT, offsetof(PlanAsk, deadline), 0, 0, false},
    {"budget_usd", API_OPTION_NUMBER, offsetof(PlanAsk, budget_usd), 1e-6, 1e18, false},
    {"power_mw", API_OPTION_NUMBER, offsetof(PlanAsk, power_mw), 1e-9, 1e9, false},
    {"for", API_OPTION_TEXT, offsetof(PlanAsk, by), 0, 0, false},
    {"gpus", API_OPTION_NUMBERS, offsetof(PlanAsk, gpus), 1, 1e7, true},
    {"batch_range", API_OPTION_NUMBERS, offsetof(PlanAsk, batch_range), 1, 1e8, true},
    {"accelerators", API_OPTION_TEXTS, offsetof(PlanAsk, accelerators), 0, 0, false},
    {"clusters", API_OPTION_TEXTS, offsetof(PlanAsk, clusters), 0, 0, false},
    {"frameworks", API_OPTION_TEXTS, offsetof(PlanAsk, frameworks), 0, 0, false},
    {"machines", API_OPTION_TEXT, offsetof(PlanAsk, machines), 0, 0, false},
    {"whole_racks", API_OPTION_SWITCH, offsetof(PlanAsk, whole_racks), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(PlanAsk, ideal), 0, 0, false},
    API_RESERVE(PlanAsk),
    API_OWN_RUNS(PlanAsk),
};

static bool read_deadline(const PlanAsk *ask, PlanOptions *options, GError **error)
{
    if (ask->deadline == NULL)
        return true;
    if (g_ascii_isdigit(ask->deadline[strlen(ask->deadline) - (ask->deadline[0] != '\0' ? 1 : 0)]))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "plan: deadline: \"%s\" has no unit; write it like \"30 days\"", ask->deadline);
    if (!orr_parse_quantity(ask->deadline, ORR_UNIT_SECONDS, &options->deadline_s, error)) {
        g_prefix_error(error, "plan: deadline: ");
        return false;
    }
    return options->deadline_s > 0 ||
           orr_fail(error, ORR_ERROR_INPUT, "plan: deadline: \"%s\" is not above 0", ask->deadline);
}

static bool read_batch_range(const PlanAsk *ask, PlanOptions *options, GError **error)
{
    if (ask->batch_range == NULL)
        return true;
    if (ask->batch_range->len != 2 ||
        g_array_index(ask->batch_range, double, 0) > g_array_index(ask->batch_range, double, 1))
        return orr_fail(error, ORR_ERROR_INPUT, "plan: batch_range: give [low, high] in sequences");
    options->batch_low = (int)g_array_index(ask->batch_range, double, 0);
    options->batch_high = (int)g_array_index(ask->batch_range, double, 1);
    return true;
}

static bool add_plan(const Spec *spec, const PlanOptions *options, GArray *plans, GError **error)
{
    Plan plan;
    if (!plan_run(spec, options, &plan, error))
        return false;
    g_array_append_val(plans, plan);
    return true;
}

/* Borrowed words; NULL of none. */
static char **words_of(const GPtrArray *list)
{
    char **words = list != NULL && list->len > 0 ? g_new0(char *, list->len + 1) : NULL;
    for (guint i = 0; words != NULL && i < list->len; i++)
        words[i] = g_ptr_array_index(list, i);
    return words;
}

static bool kinds_of(const PlanAsk *ask, const char *where, const Spec *spec, const SpecSource *source,
                     ApiKinds *ret_kinds, GError **error)
{
    g_autofree char **accelerators = words_of(ask->accelerators), **clusters = words_of(ask->clusters),
                    **frameworks = words_of(ask->frameworks);
    const ApiKindsAsk kinds = {where, accelerators, clusters, frameworks, ask->machines};
    return api_kinds_load(&kinds, spec, source, ret_kinds, error);
}

static bool add_kinds(const ApiKinds *kinds, const PlanOptions *options, GArray *plans, GError **error)
{
    for (guint i = 0; i < kinds->list->len; i++) {
        Plan plan;
        api_kind_plan(&g_array_index(kinds->list, ApiKind, i), options, &plan);
        g_array_append_val(plans, plan);
    }
    return plan_any((const Plan *)(void *)plans->data, (int)plans->len, error);
}

static void clear_plan(void *data)
{
    plan_clear(data);
}

static void plan_progress(int done, int total, void *data)
{
    api_go_on(total > 0 ? (double)done / total : 1, data);
}

static bool plan(OrrHandle *handle, const PlanAsk *ask, const Spec *spec, const SpecSource *source,
                 const ApiShipped *shipped, GError **error)
{
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) plans = g_array_new(FALSE, TRUE, sizeof(Plan));
    g_array_set_clear_func(plans, clear_plan);
    PlanOptions options = {.budget_usd = ask->budget_usd,
                           .power_w = ask->power_mw * 1e6,
                           .whole_racks = ask->whole_racks,
                           .residuals = shipped->residuals,
                           .own = shipped->own,
                           .own_count = shipped->own_count,
                           .progress = plan_progress,
                           .progress_data = handle};
    for (guint i = 0; ask->gpus != NULL && i < ask->gpus->len; i++) {
        const int count = (int)g_array_index(ask->gpus, double, i);
        g_array_append_val(counts, count);
    }
    options.gpus = counts->len > 0 ? (const int *)(void *)counts->data : NULL;
    options.gpus_count = (int)counts->len;
    options.assumed = ask->ideal ? NULL : &shipped->assumed;
    if (!search_goal_parse("for", ask->by, &options.by, error) || !read_deadline(ask, &options, error) ||
        !read_batch_range(ask, &options, error) ||
        !ledger_reserve_parse(ask->reserve, &options.reserve, error))
        return false;
    ApiKinds kinds = {0};
    const bool several = ask->accelerators != NULL || ask->clusters != NULL || ask->frameworks != NULL ||
                         ask->machines != NULL;
    bool ok = several ? kinds_of(ask, handle->path, spec, source, &kinds, error) &&
                            add_kinds(&kinds, &options, plans, error)
                      : add_plan(spec, &options, plans, error);
    const PlanPage page = {.spec = spec,
                           .source = source,
                           .options = &options,
                           .plans = (const Plan *)(void *)plans->data,
                           .count = (int)plans->len};
    ok = ok && plan_write_json(&page, handle->answer, error);
    api_kinds_clear(&kinds);
    return ok;
}

static bool plan_loop(OrrHandle *handle, const PlanAsk *ask, const Spec *spec, const SpecSource *source,
                      GError **error)
{
    Purchase purchase;
    PlanOptions options = {.budget_usd = ask->budget_usd};
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(int));
    const bool machines = ask->accelerators != NULL || ask->clusters != NULL || ask->frameworks != NULL ||
                          ask->machines != NULL || ask->whole_racks;
    for (guint i = 0; ask->gpus != NULL && i < ask->gpus->len; i++) {
        const int count = (int)g_array_index(ask->gpus, double, i);
        g_array_append_val(counts, count);
    }
    if (!api_loop_alone(handle->path, "accelerators, clusters, frameworks, machines and whole_racks",
                        machines, error) ||
        !read_deadline(ask, &options, error))
        return false;
    if (purchase_run(spec, source, (const int *)(void *)counts->data, (int)counts->len, options.deadline_s,
                     options.budget_usd, &purchase, error)) {
        purchase_write_json(&purchase, source, handle->answer);
        return true;
    }
    g_prefix_error(error, "%s: ", handle->path);
    return false;
}

const char *orr_plan(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiInput input;
    PlanAsk ask = {0};
    SpecSource source = {0};
    ApiShipped shipped = {0};
    const int count = (int)G_N_ELEMENTS(plan_options);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const bool ok = api_begin(handle, &input, &error) &&
                    api_options_read(options, "plan", plan_options, count, &ask, &error) &&
                    api_shipped_load(!ask.ideal, ask.own_runs, &shipped, &error) &&
                    load(&input, handle, spec, &source, &error) &&
                    (spec->workload.given ? plan_loop(handle, &ask, spec, &source, &error)
                                          : plan(handle, &ask, spec, &source, &shipped, &error));
    api_options_clear(plan_options, count, &ask);
    api_shipped_clear(&shipped);
    spec_source_clear(&source);
    return api_answer(handle, ok, error);
}
