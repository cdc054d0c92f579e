/* api/orrery.c - liborrery's functions over the rooms. */
#include "api/handle.h"

#include <string.h>

#include "api/loops.h"
#include "api/page.h"
#include "api/presets.h"
#include "api/simulate.h"
#include "campaign/effective.h"
#include "ledger/validate.h"
#include "plots/data.h"
#include "plots/plots.h"
#include "search/choose.h"
#include "spec/help.h"
#include "workload/explain.h"

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
    handle->notes = g_string_new(NULL);
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
    g_string_free(handle->notes, TRUE);
    g_free(handle);
}

const char *orr_error(const OrrHandle *handle)
{
    return handle->error->str;
}

/* What every call returns: its answer, or NULL and the error, which it takes. */
const char *api_answer(OrrHandle *handle, bool ok, GError *error)
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
    return api_answer(handle, error == NULL, error) != NULL ? 0 : -1;
}

int orr_set(OrrHandle *handle, const char *key_value)
{
    GError *error = NULL;
    if (strchr(key_value, '=') == NULL)
        orr_fail(&error, ORR_ERROR_INPUT, "set: \"%s\" is not KEY=VALUE, as in parallel.tensor=8", key_value);
    else
        g_ptr_array_insert(handle->sets, (gint)handle->sets->len - 1, g_strdup(key_value));
    return api_answer(handle, error == NULL, error) != NULL ? 0 : -1;
}

void orr_on_progress(OrrHandle *handle, int (*progress)(double done_frac, void *data), void *data)
{
    handle->progress = progress;
    handle->progress_data = data;
}

/* --- what calls share --- */

char **api_sets(const OrrHandle *handle)
{
    return (char **)handle->sets->pdata;
}

/* Begins a call that needs a scenario. */
bool api_begin(OrrHandle *handle, ApiInput *ret_input, GError **error)
{
    g_string_truncate(handle->answer, 0);
    *ret_input =
        (ApiInput){.path = handle->path, .json = handle->doc != NULL ? orr_json_root(handle->doc) : NULL};
    return handle->path != NULL ||
           orr_fail(error, ORR_ERROR_INPUT, "no scenario is loaded; call orr_load() first");
}

bool api_go_on(double done_frac, void *data)
{
    const OrrHandle *handle = data;
    return handle->progress == NULL || handle->progress(done_frac, handle->progress_data) == 0;
}

/* --- run, explain, campaign --- */

typedef struct RunOptions {
    char *reserve, *own_runs;
    bool unfold, check, ideal, textbook;
} RunOptions;

static const ApiOption run_options[] = {
    API_RESERVE(RunOptions),
    API_OWN_RUNS(RunOptions),
    {"unfold", API_OPTION_SWITCH, offsetof(RunOptions, unfold), 0, 0, false},
    {"check", API_OPTION_SWITCH, offsetof(RunOptions, check), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(RunOptions, ideal), 0, 0, false},
    {"textbook", API_OPTION_SWITCH, offsetof(RunOptions, textbook), 0, 0, false},
};

/* Reads options and simulates; NULL with an error. */
static ApiSimulation *simulate(OrrHandle *handle, const char *text, const char *what, unsigned record,
                               GError **error)
{
    ApiInput input;
    LedgerReserveAsk reserve;
    RunOptions options = {0};
    const int count = (int)G_N_ELEMENTS(run_options);
    if (!api_begin(handle, &input, error) ||
        !api_options_read(text, what, run_options, count, &options, error))
        return NULL;
    input.own_runs = options.own_runs;
    input.loops = record == 0; /* spans are of one step */
    const ReportOptions report_options = {.unfold = options.unfold,
                                          .check = options.check,
                                          .textbook = options.textbook,
                                          .record = record,
                                          .steps = g_str_equal(what, "explain") ? EXPLAIN_STEPS : 0};
    ApiSimulation *simulation =
        ledger_reserve_parse(options.reserve, &reserve, error)
            ? api_simulate_input(&input, api_sets(handle), &reserve, &report_options, error)
            : NULL;
    if (simulation != NULL && g_str_equal(what, "run") && !options.ideal && !options.textbook &&
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
    if (simulation != NULL && simulation->workload != NULL)
        workload_write_json(simulation->workload, &simulation->source, handle->answer);
    else if (simulation != NULL)
        report_write_json(&simulation->report, handle->answer);
    api_simulation_free(simulation);
    return api_answer(handle, simulation != NULL, error);
}

const char *orr_explain(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, options, "explain", 0, &error);
    if (simulation != NULL && simulation->workload != NULL) {
        WorkloadExplanation explanation;
        workload_explain(simulation->workload, &simulation->source, simulation->arena, &explanation);
        workload_explain_json(&explanation, &simulation->source, handle->answer);
    } else if (simulation != NULL) {
        const ExplainLoss largest = plot_largest_loss(&simulation->report);
        Explanation explanation = report_explain(&simulation->report);
        report_explain_json(&explanation, &largest, handle->answer);
        report_explain_clear(&explanation);
    }
    api_simulation_free(simulation);
    return api_answer(handle, simulation != NULL, error);
}

typedef struct CampaignAsk {
    double replicas, seed, days, jobs;
    bool ideal;
} CampaignAsk;

static const ApiOption campaign_options[] = {
    {"replicas", API_OPTION_NUMBER, offsetof(CampaignAsk, replicas), 1, 1e6, true},
    {"seed", API_OPTION_NUMBER, offsetof(CampaignAsk, seed), 0, 9007199254740991.0, true},
    {"days", API_OPTION_NUMBER, offsetof(CampaignAsk, days), 0.01, 36500, false},
    {"jobs", API_OPTION_NUMBER, offsetof(CampaignAsk, jobs), 0, 4096, true},
    {"ideal", API_OPTION_SWITCH, offsetof(CampaignAsk, ideal), 0, 0, false},
};

const char *orr_campaign(OrrHandle *handle, const char *options)
{
    GError *error = NULL;
    CampaignAsk ask = {.replicas = 1000, .seed = 1};
    Campaign campaign;
    bool ok = api_options_read(options, "campaign", campaign_options, (int)G_N_ELEMENTS(campaign_options),
                               &ask, &error);
    ApiSimulation *simulation = ok ? simulate(handle, NULL, "campaign", 0, &error) : NULL;
    g_autofree Spec *lived = g_new(Spec, 1);
    g_autofree Report *report = g_new0(Report, 1);
    const CampaignOptions asked = {.replicas = (int64_t)ask.replicas,
                                   .seed = (uint64_t)ask.seed,
                                   .crew = {.threads = (int)ask.jobs},
                                   .curve = true,
                                   .ideal_days = ask.days};
    ok = simulation != NULL &&
         api_simulation_lived(simulation, handle->path, ask.days, ask.ideal, lived, report, &error) &&
         campaign_run(report, handle->path, &asked, &campaign, &error);
    if (ok)
        campaign_write_json(&campaign, handle->answer);
    api_simulation_free(simulation);
    return api_answer(handle, ok, error);
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
    return api_answer(handle, ok, error);
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
        .sets = api_sets(handle), .command = "liborrery", .progress = api_go_on, .progress_data = handle};
    const int count = (int)G_N_ELEMENTS(page_options);
    bool ok = api_begin(handle, &ask.input, &error) &&
              api_options_read(options, "page", page_options, count, &asked, &error) &&
              ledger_reserve_parse(asked.reserve, &ask.reserve, &error);
    ask.input.loops = true;
    ask.compare = asked.compare;
    ask.search = asked.search;
    ask.ideal = asked.ideal;
    ask.seconds = asked.max_seconds;
    ok = ok && api_page(&ask, handle->answer, &error);
    api_options_clear(page_options, count, &asked);
    return api_answer(handle, ok, error);
}

const char *orr_timeline(OrrHandle *handle, int width)
{
    GError *error = NULL;
    ApiSimulation *simulation = simulate(handle, NULL, "timeline", SIM_RECORD_SPANS, &error);
    if (simulation != NULL)
        plot_terminal(&simulation->report, CLAMP(width, 40, 1000), false, handle->answer);
    api_simulation_free(simulation);
    return api_answer(handle, simulation != NULL, error);
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
    return api_answer(handle, ok, error);
}

/* --- presets --- */

const char *orr_list(OrrHandle *handle, const char *kind)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = api_presets_list(kind, handle->answer, &error);
    return api_answer(handle, ok, error);
}

const char *orr_help(OrrHandle *handle, const char *key)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = spec_help(key, handle->answer, &error);
    return api_answer(handle, ok, error);
}

const char *orr_preset(OrrHandle *handle, const char *kind, const char *name)
{
    GError *error = NULL;
    g_string_truncate(handle->answer, 0);
    const bool ok = api_presets_read(kind, name, handle->answer, &error);
    return api_answer(handle, ok, error);
}
