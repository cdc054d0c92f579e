/* api/orrery.c - liborrery's functions over the rooms. */
#include "api/orrery.h"

#include <string.h>

#include "api/kinds.h"
#include "api/options.h"
#include "api/page.h"
#include "api/presets.h"
#include "api/simulate.h"
#include "base/units.h"
#include "ledger/validate.h"
#include "plan/plan.h"
#include "plots/data.h"
#include "plots/plots.h"
#include "search/choose.h"
#include "search/plain.h"
#include "spec/help.h"

struct OrrHandle {
    char *path;      /* NULL: nothing loaded */
    OrrJsonDoc *doc; /* a scenario given as text */
    GPtrArray *sets; /* char*, and a NULL at the end */
    GString *answer, *error;
    int (*progress)(double done_frac, void *data);
    void *progress_data;
};

const char *orr_version(void)
{
    return ORRERY_VERSION;
}

OrrHandle *orr_new(void)
{
    OrrHandle *handle = g_new0(OrrHandle, 1);
    handle->sets = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(handle->sets, NULL);
    handle->answer = g_string_new(NULL);
    handle->error = g_string_new(NULL);
    return handle;
}

static void forget(OrrHandle *handle)
{
    g_clear_pointer(&handle->path, g_free);
    g_clear_pointer(&handle->doc, orr_json_free);
    g_ptr_array_set_size(handle->sets, 0);
    g_ptr_array_add(handle->sets, NULL);
}

void orr_free(OrrHandle *handle)
{
    if (handle == NULL)
        return;
    forget(handle);
    g_ptr_array_free(handle->sets, TRUE);
    g_string_free(handle->answer, TRUE);
    g_string_free(handle->error, TRUE);
    g_free(handle);
}

const char *orr_error(const OrrHandle *handle)
{
    return handle->error->str;
}

/* What every call returns: its answer, or NULL and the error, which it takes. */
static const char *answer(OrrHandle *handle, bool ok, GError *error)
{
    g_assert(ok == (error == NULL));
    g_string_assign(handle->error, ok ? "" : error->message);
    g_clear_error(&error);
    return ok ? handle->answer->str : NULL;
}

int orr_load(OrrHandle *handle, const char *path_or_json)
{
    GError *error = NULL;
    const char *start = path_or_json + strspn(path_or_json, " \t\r\n");
    forget(handle);
    if (*start == '{')
        handle->doc = orr_json_parse(start, strlen(start), "scenario", &error);
    if (error == NULL)
        handle->path = g_strdup(*start == '{' ? "scenario" : path_or_json);
    return answer(handle, error == NULL, error) != NULL ? 0 : -1;
}

int orr_set(OrrHandle *handle, const char *key_value)
{
    GError *error = NULL;
    if (strchr(key_value, '=') == NULL)
        orr_fail(&error, ORR_ERROR_INPUT, "set: \"%s\" is not KEY=VALUE, as in parallel.tensor=8", key_value);
    else
        g_ptr_array_insert(handle->sets, (gint)handle->sets->len - 1, g_strdup(key_value));
    return answer(handle, error == NULL, error) != NULL ? 0 : -1;
}

void orr_on_progress(OrrHandle *handle, int (*progress)(double done_frac, void *data), void *data)
{
    handle->progress = progress;
    handle->progress_data = data;
}

/* --- what calls share --- */

static char **sets_of(const OrrHandle *handle)
{
    return (char **)handle->sets->pdata;
}

/* Begins a call that needs a scenario. */
static bool begin(OrrHandle *handle, ApiInput *ret_input, GError **error)
{
    g_string_truncate(handle->answer, 0);
    *ret_input = (ApiInput){handle->path, handle->doc != NULL ? orr_json_root(handle->doc) : NULL};
    return handle->path != NULL ||
           orr_fail(error, ORR_ERROR_INPUT, "no scenario is loaded; call orr_load() first");
}

static bool go_on(double done_frac, void *data)
{
    const OrrHandle *handle = data;
    return handle->progress == NULL || handle->progress(done_frac, handle->progress_data) == 0;
}

#define API_RESERVE(type)                                                                                    \
    {                                                                                                        \
        "memory_reserve", API_OPTION_TEXT, offsetof(type, reserve), 0, 0, false                              \
    }

/* --- run, explain, campaign --- */

typedef struct RunOptions {
    char *reserve;
    bool unfold, check, ideal;
} RunOptions;

static const ApiOption run_options[] = {
    API_RESERVE(RunOptions),
    {"unfold", API_OPTION_SWITCH, offsetof(RunOptions, unfold), 0, 0, false},
    {"check", API_OPTION_SWITCH, offsetof(RunOptions, check), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(RunOptions, ideal), 0, 0, false},
};

/* Reads options and simulates; NULL with an error. */
static ApiSimulation *simulate(OrrHandle *handle, const char *text, const char *what, unsigned record,
                               GError **error)
{
    ApiInput input;
    LedgerReserveAsk reserve;
    RunOptions options = {0};
    const int count = (int)G_N_ELEMENTS(run_options);
    if (!begin(handle, &input, error) || !api_options_read(text, what, run_options, count, &options, error))
        return NULL;
    const ReportOptions report_options = {.unfold = options.unfold, .check = options.check, .record = record};
    ApiSimulation *simulation =
        ledger_reserve_parse(options.reserve, &reserve, error)
            ? api_simulate_input(&input, sets_of(handle), &reserve, &report_options, error)
            : NULL;
    if (simulation != NULL && g_str_equal(what, "run") && !options.ideal &&
        !api_simulation_live(handle->path, simulation, error)) {
        api_simulation_free(simulation);
        simulation = NULL;
    }
    api_options_clear(run_options, count, &options);
    return simulation;
}

const char *orr_run(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, options, "run", 0, &error);
    if (simulation != NULL)
        report_write_json(&simulation->report, handle->answer);
    api_simulation_free(simulation);
    return answer(handle, simulation != NULL, error);
}

const char *orr_explain(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, options, "explain", 0, &error);
    if (simulation != NULL) {
        const ExplainLoss largest = plot_largest_loss(&simulation->report);
        Explanation explanation = report_explain(&simulation->report);
        report_explain_json(&explanation, &largest, handle->answer);
        report_explain_clear(&explanation);
    }
    api_simulation_free(simulation);
    return answer(handle, simulation != NULL, error);
}

typedef struct CampaignAsk {
    double replicas, seed, days, jobs;
} CampaignAsk;

static const ApiOption campaign_options[] = {
    {"replicas", API_OPTION_NUMBER, offsetof(CampaignAsk, replicas), 1, 1e6, true},
    {"seed", API_OPTION_NUMBER, offsetof(CampaignAsk, seed), 0, 9007199254740991.0, true},
    {"days", API_OPTION_NUMBER, offsetof(CampaignAsk, days), 0.01, 36500, false},
    {"jobs", API_OPTION_NUMBER, offsetof(CampaignAsk, jobs), 0, 4096, true},
};

const char *orr_campaign(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    CampaignAsk ask = {.replicas = 1000, .seed = 1};
    Campaign campaign;
    bool ok = api_options_read(options, "campaign", campaign_options, (int)G_N_ELEMENTS(campaign_options),
                               &ask, &error);
    ApiSimulation *simulation = ok ? simulate(handle, NULL, "campaign", 0, &error) : NULL;
    const CampaignOptions asked = {.replicas = (int64_t)ask.replicas,
                                   .seed = (uint64_t)ask.seed,
                                   .threads = (int)ask.jobs,
                                   .curve = true,
                                   .ideal_days = ask.days};
    ok = simulation != NULL && campaign_run(&simulation->report, handle->path, &asked, &campaign, &error);
    if (ok)
        campaign_write_json(&campaign, handle->answer);
    api_simulation_free(simulation);
    return answer(handle, ok, error);
}

/* --- search --- */

typedef struct SearchAsk {
    double top, jobs, max_seconds;
    bool exhaustive;
    char *reserve;
} SearchAsk;

static const ApiOption search_options[] = {
    {"top", API_OPTION_NUMBER, offsetof(SearchAsk, top), 1, 1000, true},
    {"jobs", API_OPTION_NUMBER, offsetof(SearchAsk, jobs), 0, 4096, true},
    {"max_seconds", API_OPTION_NUMBER, offsetof(SearchAsk, max_seconds), 1e-3, 1e9, false},
    {"exhaustive", API_OPTION_SWITCH, offsetof(SearchAsk, exhaustive), 0, 0, false},
    API_RESERVE(SearchAsk),
};

/* The search asks from all its threads whether to stop, and tells one of them how far it is. */
typedef struct SearchWatch {
    const OrrHandle *handle;
    gint stopped;
} SearchWatch;

static void search_progress(double done_frac, double elapsed_s, void *data)
{
    SearchWatch *watch = data;
    (void)elapsed_s;
    if (!go_on(done_frac, (void *)(gsize)watch->handle))
        g_atomic_int_set(&watch->stopped, 1);
}

static bool search_stopped(void *data)
{
    return g_atomic_int_get(&((SearchWatch *)data)->stopped) != 0;
}

static bool search(OrrHandle *handle, const SearchAsk *ask, Spec *spec, const SpecSource *source,
                   LedgerResiduals *residuals, GError **error)
{
    LedgerReserveAsk reserve;
    SearchWatch watch = {handle, 0};
    SearchResult result;
    const SearchOptions options = {.top = (int)ask->top,
                                   .jobs = (int)ask->jobs,
                                   .max_seconds = ask->max_seconds,
                                   .exhaustive = ask->exhaustive,
                                   .stop = search_stopped,
                                   .stop_data = &watch,
                                   .progress = search_progress,
                                   .progress_data = &watch};
    if (!search_has_auto(spec))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: no field is \"auto\", so there is nothing to search; set one, as parallel.tensor=auto",
            handle->path);
    if (!ledger_reserve_parse(ask->reserve, &reserve, error) || !ledger_reserve_check(&reserve, spec, error))
        return false;
    const bool spare = !reserve.given && spec->search.reserve_memory_bytes <= 0;
    spec->search.reserve_memory_bytes = ledger_reserve_bytes(residuals, &reserve, spec);
    if (!search_run_reserved(spec, &options, spare, &result, error)) {
        g_prefix_error(error, "%s: ", handle->path);
        return false;
    }
    result.residuals = residuals;
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
    LedgerResiduals *residuals = NULL;
    const int count = (int)G_N_ELEMENTS(search_options);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const bool ok = begin(handle, &input, &error) &&
                    api_options_read(options, "search", search_options, count, &ask, &error) &&
                    ledger_residuals_shipped(&residuals, &error) &&
                    api_input_load(&input, sets_of(handle), spec, &source, &error) &&
                    search(handle, &ask, spec, &source, residuals, &error);
    api_options_clear(search_options, count, &ask);
    ledger_residuals_free(residuals);
    spec_source_clear(&source);
    return answer(handle, ok, error);
}

/* --- plan --- */

typedef struct PlanAsk {
    char *deadline, *reserve;
    double budget_usd;
    bool ideal;
    GArray *gpus, *batch_range; /* double */
    GPtrArray *accelerators, *clusters;
} PlanAsk;

static const ApiOption plan_options[] = {
    {"deadline", API_OPTION_TEXT, offsetof(PlanAsk, deadline), 0, 0, false},
    {"budget_usd", API_OPTION_NUMBER, offsetof(PlanAsk, budget_usd), 1e-6, 1e18, false},
    {"gpus", API_OPTION_NUMBERS, offsetof(PlanAsk, gpus), 1, 1e7, true},
    {"batch_range", API_OPTION_NUMBERS, offsetof(PlanAsk, batch_range), 1, 1e8, true},
    {"accelerators", API_OPTION_TEXTS, offsetof(PlanAsk, accelerators), 0, 0, false},
    {"clusters", API_OPTION_TEXTS, offsetof(PlanAsk, clusters), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(PlanAsk, ideal), 0, 0, false},
    API_RESERVE(PlanAsk),
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

static bool add_kinds(const char *key, const GPtrArray *words, const Spec *base, const PlanOptions *options,
                      GArray *plans, GError **error)
{
    for (guint i = 0; words != NULL && i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        g_autofree Spec *spec = g_memdup2(base, sizeof *base);
        PlanOptions own = *options;
        if (!api_kind_read(key, word, base, &spec->cluster, error))
            return false;
        g_autofree char *cluster = api_kind_json(key, word, &spec->cluster);
        own.cluster_json = cluster;
        if (!add_plan(spec, &own, plans, error))
            return false;
    }
    return true;
}

static void clear_plan(void *data)
{
    plan_clear(data);
}

static void plan_progress(int done, int total, void *data)
{
    go_on(total > 0 ? (double)done / total : 1, data);
}

static bool plan(OrrHandle *handle, const PlanAsk *ask, const Spec *spec, const SpecSource *source,
                 LedgerResiduals *residuals, GError **error)
{
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) plans = g_array_new(FALSE, TRUE, sizeof(Plan));
    g_array_set_clear_func(plans, clear_plan);
    PlanOptions options = {.budget_usd = ask->budget_usd,
                           .residuals = residuals,
                           .progress = plan_progress,
                           .progress_data = handle};
    for (guint i = 0; ask->gpus != NULL && i < ask->gpus->len; i++) {
        const int count = (int)g_array_index(ask->gpus, double, i);
        g_array_append_val(counts, count);
    }
    options.gpus = counts->len > 0 ? (const int *)(void *)counts->data : NULL;
    options.gpus_count = (int)counts->len;
    CampaignAssumed assumed;
    options.assumed = ask->ideal ? NULL : &assumed;
    if ((!ask->ideal && !campaign_assumed_load(&assumed, error)) || !read_deadline(ask, &options, error) ||
        !read_batch_range(ask, &options, error) ||
        !ledger_reserve_parse(ask->reserve, &options.reserve, error) ||
        !add_kinds("accelerator", ask->accelerators, spec, &options, plans, error) ||
        !add_kinds("cluster", ask->clusters, spec, &options, plans, error) ||
        (plans->len == 0 && !add_plan(spec, &options, plans, error)))
        return false;
    const PlanPage page = {.spec = spec,
                           .source = source,
                           .options = &options,
                           .plans = (const Plan *)(void *)plans->data,
                           .count = (int)plans->len};
    return plan_write_json(&page, handle->answer, error);
}

const char *orr_plan(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiInput input;
    PlanAsk ask = {0};
    SpecSource source = {0};
    LedgerResiduals *residuals = NULL;
    const int count = (int)G_N_ELEMENTS(plan_options);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const bool ok = begin(handle, &input, &error) &&
                    api_options_read(options, "plan", plan_options, count, &ask, &error) &&
                    ledger_residuals_shipped(&residuals, &error) &&
                    api_input_load(&input, sets_of(handle), spec, &source, &error) &&
                    plan(handle, &ask, spec, &source, residuals, &error);
    api_options_clear(plan_options, count, &ask);
    ledger_residuals_free(residuals);
    spec_source_clear(&source);
    return answer(handle, ok, error);
}

/* --- ledger --- */

typedef struct ValidateAsk {
    GPtrArray *paths;
} ValidateAsk;

static const ApiOption validate_options[] = {
    {"paths", API_OPTION_TEXTS, offsetof(ValidateAsk, paths), 0, 0, false}};

const char *orr_validate(OrrHandle *handle, const char *paths)
{
    GError *error = NULL;
    ValidateAsk ask = {0};
    Ledger ledger;
    g_autofree char *options = g_strdup_printf("{\"paths\":%s}", paths);
    g_string_truncate(handle->answer, 0);
    bool ok = api_options_read(options, "validate", validate_options, 1, &ask, &error);
    ok = ok &&
         (ask.paths->len > 0 ||
          orr_fail(&error, ORR_ERROR_INPUT, "validate: no paths; give a list of files")) &&
         ledger_replay((const char *const *)ask.paths->pdata, (int)ask.paths->len, NULL, search_choose, NULL,
                       NULL, &ledger, &error);
    if (ok) {
        ledger_write_json(&ledger, handle->answer);
        ledger_clear(&ledger);
    }
    api_options_clear(validate_options, 1, &ask);
    return answer(handle, ok, error);
}

/* --- pictures --- */

typedef struct PageAsk {
    bool search, ideal;
    double max_seconds;
    char *compare, *reserve;
} PageAsk;

static const ApiOption page_options[] = {
    {"search", API_OPTION_SWITCH, offsetof(PageAsk, search), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(PageAsk, ideal), 0, 0, false},
    {"max_seconds", API_OPTION_NUMBER, offsetof(PageAsk, max_seconds), 1e-3, 1e6, false},
    {"compare", API_OPTION_TEXT, offsetof(PageAsk, compare), 0, 0, false},
    API_RESERVE(PageAsk),
};

const char *orr_page(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    PageAsk asked = {.search = true, .max_seconds = 10};
    ApiPageAsk ask = {
        .sets = sets_of(handle), .command = "liborrery", .progress = go_on, .progress_data = handle};
    const int count = (int)G_N_ELEMENTS(page_options);
    bool ok = begin(handle, &ask.input, &error) &&
              api_options_read(options, "page", page_options, count, &asked, &error) &&
              ledger_reserve_parse(asked.reserve, &ask.reserve, &error);
    ask.compare = asked.compare;
    ask.search = asked.search;
    ask.ideal = asked.ideal;
    ask.seconds = asked.max_seconds;
    ok = ok && api_page(&ask, handle->answer, &error);
    api_options_clear(page_options, count, &asked);
    return answer(handle, ok, error);
}

const char *orr_timeline(OrrHandle *handle, int width)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, NULL, "timeline", SIM_RECORD_SPANS, &error);
    if (simulation != NULL)
        plot_terminal(&simulation->report, CLAMP(width, 40, 1000), false, handle->answer);
    api_simulation_free(simulation);
    return answer(handle, simulation != NULL, error);
}

static bool write_csv(const Report *report, const char *figure, GString *out, GError **error)
{
    enum { LANES = 64 };
    if (strcmp(figure, "pipeline") == 0) {
        PlotTimeline timeline = plot_timeline(report, LANES);
        g_string_append_len(out, timeline.csv->str, (gssize)timeline.csv->len);
        plot_timeline_clear(&timeline);
    } else if (strcmp(figure, "memory") == 0) {
        PlotLevels levels = plot_levels(report, LANES);
        g_string_append_len(out, levels.csv->str, (gssize)levels.csv->len);
        plot_levels_clear(&levels);
    } else if (strcmp(figure, "stages") == 0 || strcmp(figure, "waterfall") == 0) {
        g_autoptr(GString) csv = figure[0] == 's' ? plot_stages(report) : plot_bars(report, NULL);
        g_string_append_len(out, csv->str, (gssize)csv->len);
    } else {
        return orr_fail(error, ORR_ERROR_INPUT,
                        "csv: no figure \"%s\"; there are pipeline, memory, stages, waterfall", figure);
    }
    return true;
}

const char *orr_csv(OrrHandle *handle, const char *figure)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, NULL, "csv", SIM_RECORD_SPANS | SIM_RECORD_LEVELS, &error);
    const bool ok = simulation != NULL && write_csv(&simulation->report, figure, handle->answer, &error);
    api_simulation_free(simulation);
    return answer(handle, ok, error);
}

/* --- presets --- */

const char *orr_list(OrrHandle *handle, const char *kind)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = api_presets_list(kind, handle->answer, &error);
    return answer(handle, ok, error);
}

const char *orr_help(OrrHandle *handle, const char *key)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = spec_help(key, handle->answer, &error);
    return answer(handle, ok, error);
}

const char *orr_preset(OrrHandle *handle, const char *kind, const char *name)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = api_presets_read(kind, name, handle->answer, &error);
    return answer(handle, ok, error);
}
