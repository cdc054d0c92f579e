/* api/simulate.c - scenario file to report. */
#include "api/simulate.h"

#include "api/chosen.h"
#include "ledger/interval.h"
#include "ledger/memory.h"
#include "report/input.h"
#include "report/jitter.h"

static bool report(const ReportOptions *options, const LedgerReserveAsk *reserve,
                   const LedgerResiduals *residuals, const OrrStop *stop, const Spec *asked,
                   ApiSimulation *simulation, GError **error)
{
    const double reserve_bytes = ledger_reserve_bytes(residuals, reserve, asked);
    if (!ledger_reserve_check(reserve, asked, error) ||
        !api_choose_reserved(asked, reserve_bytes, stop, &simulation->spec, simulation->chosen, error) ||
        !report_run(&simulation->spec, &simulation->source, options, simulation->arena, &simulation->report,
                    error))
        return false;
    if (!report_jitter_fill(&simulation->report, simulation->arena, error) ||
        !report_input_fill(&simulation->report, error))
        return false;
    ledger_interval_fill(residuals, simulation->arena, &simulation->report);
    ledger_memory_fill(residuals, reserve, &simulation->report);
    simulation->report.chosen = simulation->chosen;
    return true;
}

bool api_shipped_load(bool live, ApiShipped *ret_shipped, GError **error)
{
    ApiShipped shipped = {0};
    if ((live && !campaign_assumed_load(&shipped.assumed, error)) ||
        !ledger_residuals_shipped(&shipped.residuals, error))
        return false;
    *ret_shipped = shipped;
    return true;
}

void api_shipped_clear(ApiShipped *shipped)
{
    g_clear_pointer(&shipped->residuals, ledger_residuals_free);
}

/* `residuals` NULL: read when the scenario is known to be good. */
static bool simulate(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                     const ReportOptions *options, const LedgerResiduals *residuals, const OrrStop *stop,
                     ApiSimulation *simulation, GError **error)
{
    g_autofree Spec *asked = g_new(Spec, 1);
    LedgerResiduals *read = NULL;
    bool ok = api_input_load(input, sets, asked, &simulation->source, error) &&
              (residuals != NULL || ledger_residuals_shipped(&read, error));
    if (ok && !report(options, reserve, residuals != NULL ? residuals : read, stop, asked, simulation, error)) {
        g_prefix_error(error, "%s: ", input->path);
        ok = false;
    }
    ledger_residuals_free(read);
    return ok;
}

ApiSimulation *api_simulate_shipped(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                                    const ReportOptions *options, const ApiShipped *shipped,
                                    const OrrStop *stop, GError **error)
{
    ApiSimulation *simulation = g_new0(ApiSimulation, 1);
    simulation->arena = orr_arena_new();
    simulation->chosen = g_ptr_array_new_with_free_func(g_free);
    if (simulate(input, sets, reserve, options, shipped != NULL ? shipped->residuals : NULL, stop,
                 simulation, error))
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
    const ApiInput input = {path, NULL};
    return api_simulate_input(&input, sets, reserve, options, error);
}

ApiSimulation *api_simulate(const char *path, char **sets, const ReportOptions *options, GError **error)
{
    return api_simulate_reserved(path, sets, NULL, options, error);
}

bool api_simulation_live_shipped(const char *where, ApiSimulation *simulation, const ApiShipped *shipped,
                                 GError **error)
{
    return campaign_effective_fill(&shipped->assumed, where, simulation->arena, &simulation->report, error);
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
