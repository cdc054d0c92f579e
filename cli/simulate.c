/* cli/simulate.c - scenario file to report. */
#include "cli/simulate.h"

#include "cli/chosen.h"
#include "ledger/interval.h"

static bool simulate(const char *path, char **sets, const ReportOptions *options, CliSimulation *simulation,
                     GError **error)
{
    Spec asked;
    LedgerResiduals *residuals = NULL;
    if (!spec_load_file(path, (const char *const *)sets, true, &asked, &simulation->source, error) ||
        !cli_choose(&asked, &simulation->spec, simulation->chosen, error) ||
        !ledger_residuals_shipped(&residuals, error))
        return false;
    const bool ok = report_run(&simulation->spec, &simulation->source, options, simulation->arena,
                               &simulation->report, error);
    if (ok)
        ledger_interval_fill(residuals, simulation->arena, &simulation->report);
    ledger_residuals_free(residuals);
    simulation->report.chosen = simulation->chosen;
    return ok;
}

CliSimulation *cli_simulate(const char *path, char **sets, const ReportOptions *options, GError **error)
{
    CliSimulation *simulation = g_new0(CliSimulation, 1);
    simulation->arena = orr_arena_new();
    simulation->chosen = g_ptr_array_new_with_free_func(g_free);
    if (simulate(path, sets, options, simulation, error))
        return simulation;
    cli_simulation_free(simulation);
    return NULL;
}

void cli_simulation_free(CliSimulation *simulation)
{
    if (simulation == NULL)
        return;
    orr_arena_free(simulation->arena);
    g_ptr_array_free(simulation->chosen, TRUE);
    spec_source_clear(&simulation->source);
    g_free(simulation);
}
