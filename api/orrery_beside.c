/* api/orrery_beside.c - orr_compare() and orr_trace(): a scenario beside another one, and beside what was recorded. */
#include <string.h>

#include "api/handle.h"
#include "api/simulate.h"
#include "study/compare.h"
#include "study/trace_answer.h"
#include "study/trace_predict.h"

typedef struct CompareAsk {
    char *with, *own_runs;
    bool quick, ideal;
} CompareAsk;

static const ApiOption compare_options[] = {
    {"with", API_OPTION_TEXT, offsetof(CompareAsk, with), 0, 0, false},
    {"quick", API_OPTION_SWITCH, offsetof(CompareAsk, quick), 0, 0, false},
    {"ideal", API_OPTION_SWITCH, offsetof(CompareAsk, ideal), 0, 0, false},
    API_OWN_RUNS(CompareAsk),
};

static bool compare(OrrHandle *handle, const CompareAsk *ask, const ApiInput inputs[2], GError **error)
{
    const ReportOptions options = {.steps = ask->quick ? 0 : COMPARE_STEPS};
    const char *const names[2] = {inputs[0].path, inputs[1].path};
    ApiSimulation *both[2] = {NULL, NULL};
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        both[i] = api_simulate_input(&inputs[i], api_sets(handle), NULL, &options, error);
        ok = both[i] != NULL && (ask->ideal || api_simulation_live(names[i], both[i], error));
    }
    if (ok) {
        Comparison comparison = report_compare(&both[0]->report, &both[1]->report, names, !ask->quick);
        report_compare_json(&comparison, handle->answer);
        report_compare_clear(&comparison);
    }
    api_simulation_free(both[0]);
    api_simulation_free(both[1]);
    return ok;
}

const char *orr_compare(OrrHandle *handle, const char *text)
{
    GError *error = NULL;
    ApiInput inputs[2];
    CompareAsk ask = {0};
    OrrJsonDoc *doc = NULL;
    const int count = (int)G_N_ELEMENTS(compare_options);
    bool ok = api_begin(handle, &inputs[0], &error) &&
              api_options_read(text, "compare", compare_options, count, &ask, &error) &&
              (ask.with != NULL ||
               orr_fail(&error, ORR_ERROR_INPUT,
                        "compare: \"with\" is missing; give the path of the other scenario, or its JSON"));
    if (ok && ask.with[0] == '{')
        ok = (doc = orr_json_parse(ask.with, strlen(ask.with), "the other scenario", &error)) != NULL;
    if (ok) {
        inputs[0].own_runs = ask.own_runs;
        inputs[1] = (ApiInput){.path = doc != NULL ? "the other scenario" : ask.with,
                               .json = doc != NULL ? orr_json_root(doc) : NULL,
                               .own_runs = ask.own_runs};
        ok = compare(handle, &ask, inputs, &error);
    }
    orr_json_free(doc);
    api_options_clear(compare_options, count, &ask);
    return api_answer(handle, ok, error);
}

/* The kernels that the scenario predicts for the first rank of a trace; NULL with an error. */
static TraceRank *predict(OrrHandle *handle, const ApiInput *input, const TraceRank *first, GError **error)
{
    const ReportOptions options = {.record = SIM_RECORD_SPANS, .ideal = true};
    ApiSimulation *simulation = api_simulate_input(input, api_sets(handle), NULL, &options, error);
    if (simulation == NULL)
        return NULL;
    const Report *report = &simulation->report;
    TraceRank *predicted = trace_predict(report, trace_pipeline_rank(report, first->rank, first->world));
    api_simulation_free(simulation);
    return predicted;
}

const char *orr_trace(OrrHandle *handle, const char *path)
{
    GError *error = NULL;
    ApiInput input;
    const bool alone = handle->path == NULL;
    bool ok = alone || api_begin(handle, &input, &error);
    g_string_truncate(handle->answer, 0);
    TraceTable *table = ok ? trace_table_load(&error) : NULL;
    GPtrArray *ranks = table != NULL ? trace_read(path, table, &error) : NULL;
    trace_table_free(table);
    TraceRank *predicted = ranks != NULL && !alone ? predict(handle, &input, ranks->pdata[0], &error) : NULL;
    ok = ranks != NULL && (alone || predicted != NULL);
    if (ok) {
        TraceAnswer answer = trace_answer(ranks, predicted);
        trace_answer_json(&answer, handle->answer);
        trace_answer_clear(&answer);
    }
    trace_rank_free(predicted);
    if (ranks != NULL)
        g_ptr_array_free(ranks, TRUE);
    return api_answer(handle, ok, error);
}
