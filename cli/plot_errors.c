/* cli/plot_errors.c - see plot_errors.h. */
#include "cli/plot_errors.h"

#include "ledger/interval.h"

bool cli_plot_errors(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error)
{
    LedgerResiduals *residuals = NULL;
    Report report = simulation->report;
    if (!ledger_residuals_shipped(&residuals, error))
        return false;
    ledger_interval_fill(residuals, simulation->arena, &report);
    if (residuals == NULL || !(report.interval_coverage > 0)) {
        ledger_residuals_free(residuals);
        return orr_fail(error, ORR_ERROR_INPUT, "%s: --what errors: this step has no interval", where);
    }
    const LedgerClass kind = ledger_class(report.spec);
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(PlotError));
    for (guint i = 0; i < residuals->rows->len; i++) {
        const LedgerResidual *row = ledger_residual(residuals, i);
        const PlotError one = {.source = row->source,
                               .name = g_ptr_array_index(residuals->sources, (guint)row->source),
                               .id = row->id,
                               .log_ratio = row->log_ratio,
                               .alike = row->kind == kind};
        g_array_append_val(errors, one);
    }
    const bool ok = plot_errors(&report, errors, target, error);
    ledger_residuals_free(residuals);
    return ok;
}
