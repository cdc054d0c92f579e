/* cli/simulate.c - scenario file to report. */
#include "cli/simulate.h"

CliSimulation *cli_simulate(const char *path, char **sets, const ReportOptions *options, GError **error)
{
    CliSimulation *simulation = g_new0(CliSimulation, 1);
    if (!spec_load_file(path, (const char *const *)sets, false, &simulation->spec, &simulation->source, error)) {
        g_free(simulation);
        return NULL;
    }
    simulation->arena = orr_arena_new();
    if (report_run(&simulation->spec, &simulation->source, options, simulation->arena, &simulation->report, error))
        return simulation;
    cli_simulation_free(simulation);
    return NULL;
}

void cli_simulation_free(CliSimulation *simulation)
{
    if (simulation == NULL)
        return;
    orr_arena_free(simulation->arena);
    spec_source_clear(&simulation->source);
    g_free(simulation);
}
