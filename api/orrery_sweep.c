/* api/orrery_sweep.c - orr_sweep(). */
#include "api/handle.h"
#include "api/sweep.h"

typedef struct SweepOptions {
    GArray *vary;
    char *own_runs;
    double jobs;
    bool ideal;
} SweepOptions;

static const ApiOption sweep_options[] = {
    {"vary", API_OPTION_VARY, offsetof(SweepOptions, vary), 0, 0, false},
    {"jobs", API_OPTION_NUMBER, offsetof(SweepOptions, jobs), 1, 4096, true},
    {"ideal", API_OPTION_SWITCH, offsetof(SweepOptions, ideal), 0, 0, false},
    API_OWN_RUNS(SweepOptions),
};

static bool sweep(OrrHandle *handle, const SweepOptions *options, const ApiInput *input, GError **error)
{
    g_autoptr(GArray) none = api_vary_fields();
    ApiInput own = *input;
    own.own_runs = options->own_runs;
    const ApiSweepAsk ask = {.input = own,
                             .sets = api_sets(handle),
                             .fields = options->vary != NULL ? options->vary : none,
                             .ideal = options->ideal,
                             .threads = (int)options->jobs,
                             .progress = handle->progress != NULL ? api_go_on : NULL,
                             .progress_data = handle};
    GArray *rows = api_sweep_fields_check(ask.fields, error) ? api_sweep(&ask, error) : NULL;
    if (rows == NULL)
        return false;
    api_sweep_json(ask.fields, rows, handle->answer);
    g_array_unref(rows);
    return true;
}

const char *orr_sweep(OrrHandle *handle, const char *text)
{
    GError *error = NULL;
    ApiInput input;
    SweepOptions options = {0};
    const int count = (int)G_N_ELEMENTS(sweep_options);
    const bool ok = api_begin(handle, &input, &error) && (input.loops = true) &&
                    api_options_read(text, "sweep", sweep_options, count, &options, &error) &&
                    sweep(handle, &options, &input, &error);
    api_options_clear(sweep_options, count, &options);
    return api_answer(handle, ok, error);
}
