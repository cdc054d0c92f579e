/* api/simulate.c - scenario file to report. */
#include "api/simulate.h"

#include <math.h>

#include "answer/answer.h"
#include "api/chosen.h"
#include "base/error.h"
#include "ledger/validate.h"
#include "search/choose.h"

static bool answer(const ReportOptions *options, const LedgerReserveAsk *reserve, const ApiShipped *shipped,
                   const OrrStop *stop, const Spec *asked, ApiSimulation *simulation, GError **error)
{
    const double reserve_bytes = ledger_reserve_bytes(shipped->residuals, reserve, asked);
    const AnswerAsk ask = {.run = *options,
                           .residuals = shipped->residuals,
                           .reserve = reserve,
                           .own = shipped->own,
                           .own_count = shipped->own_count};
    if (!ledger_reserve_check(reserve, asked, error) ||
        !api_choose_reserved(asked, reserve_bytes, stop, &simulation->spec, simulation->chosen, error) ||
        (asked->workload.given && !spec_check_dealt(&simulation->spec, "", error)) ||
        !answer_ask(&simulation->spec, &simulation->source, &ask, simulation->arena, &simulation->report,
                    error))
        return false;
    simulation->report.chosen = simulation->chosen;
    if (!simulation->spec.workload.given)
        return true;
    const WorkloadAsk loop = {.check = options->check};
    simulation->workload = ORR_ARENA_NEW(simulation->arena, Workload, 1);
    return workload_ask(&simulation->spec, &simulation->source, &loop, simulation->arena,
                        simulation->workload, error);
}

/* Measured rows of `path`, replayed. */
static bool load_own(const char *path, ApiShipped *shipped, GError **error)
{
    Ledger ledger;
    if (!ledger_replay(&path, 1, NULL, search_choose, NULL, NULL, &ledger, error))
        return false;
    GArray *own = g_array_new(FALSE, FALSE, sizeof(LedgerOwnRun));
    g_autofree char *skipped = NULL;
    for (guint i = 0; i < ledger.rows->len; i++) {
        const LedgerRow *row = ledger.rows->pdata[i];
        const LedgerOwnRun one = {row->traits, -log1p(row->error_frac)};
        if (row->residual >= 0)
            g_array_append_val(own, one);
        else if (skipped == NULL)
            skipped = g_strdup(row->skipped);
    }
    ledger_clear(&ledger);
    shipped->own_count = (int)own->len;
    shipped->own = (LedgerOwnRun *)(void *)g_array_free(own, FALSE);
    return shipped->own_count > 0 ||
           orr_fail(error, ORR_ERROR_INPUT, "--own-runs %s: no row has a step time that can be compared%s%s",
                    path, skipped != NULL ? "; the first: " : "", skipped != NULL ? skipped : "");
}

bool api_shipped_load(bool live, const char *own_runs, ApiShipped *ret_shipped, GError **error)
{
    ApiShipped shipped = {0};
    if ((live && !campaign_assumed_load(&shipped.assumed, error)) ||
        !ledger_residuals_shipped(&shipped.residuals, error) ||
        (own_runs != NULL && !load_own(own_runs, &shipped, error))) {
        api_shipped_clear(&shipped);
        return false;
    }
    *ret_shipped = shipped;
    return true;
}

void api_shipped_clear(ApiShipped *shipped)
{
    g_clear_pointer(&shipped->residuals, ledger_residuals_free);
    g_clear_pointer(&shipped->own, g_free);
}

/* `shipped` NULL: read when the scenario is known to be good. */
static bool simulate(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                     const ReportOptions *options, const ApiShipped *shipped, const OrrStop *stop,
                     ApiSimulation *simulation, GError **error)
{
    if (options->textbook && input->own_runs != NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "own runs correct a prediction, and a textbook's step is none; leave one of the two out");
    g_autofree Spec *asked = g_new(Spec, 1);
    ApiShipped read = {0};
    bool ok = api_input_load(input, sets, asked, &simulation->source, error) &&
              (shipped != NULL || api_shipped_load(false, input->own_runs, &read, error));
    if (ok && !answer(options, reserve, shipped != NULL ? shipped : &read, stop, asked, simulation, error)) {
        g_prefix_error(error, "%s: ", input->path);
        ok = false;
    }
    api_shipped_clear(&read);
    return ok;
}

ApiSimulation *api_simulate_shipped(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                                    const ReportOptions *options, const ApiShipped *shipped,
                                    const OrrStop *stop, GError **error)
{
    ApiSimulation *simulation = g_new0(ApiSimulation, 1);
    simulation->arena = orr_arena_new();
    simulation->chosen = g_ptr_array_new_with_free_func(g_free);
    if (simulate(input, sets, reserve, options, shipped, stop, simulation, error))
        return simulation;
    api_simulation_free(simulation);
    return NULL;
}

ApiSimulation *api_simulate_input(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                                  const ReportOptions *options, GError **error)
{
    return api_simulate_shipped(input, sets, reserve, options, NULL, NULL, error);
}

ApiSimulation *api_simulate_reserved(const char *path, char **sets, const LedgerReserveAsk *reserve,
                                     const ReportOptions *options, GError **error)
{
    const ApiInput input = {.path = path};
    return api_simulate_input(&input, sets, reserve, options, error);
}

ApiSimulation *api_simulate(const char *path, char **sets, const ReportOptions *options, GError **error)
{
    return api_simulate_reserved(path, sets, NULL, options, error);
}

bool api_simulation_live_shipped(const char *where, ApiSimulation *simulation, const ApiShipped *shipped,
                                 GError **error)
{
    return answer_live(&shipped->assumed, where, simulation->arena, &simulation->report, error);
}

bool api_simulation_live(const char *where, ApiSimulation *simulation, GError **error)
{
    ApiShipped shipped = {0};
    return campaign_assumed_load(&shipped.assumed, error) &&
           api_simulation_live_shipped(where, simulation, &shipped, error);
}

void api_simulation_free(ApiSimulation *simulation)
{
    if (simulation == NULL)
        return;
    orr_arena_free(simulation->arena);
    g_ptr_array_free(simulation->chosen, TRUE);
    spec_source_clear(&simulation->source);
    g_free(simulation);
}
