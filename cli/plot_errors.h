/* cli/plot_errors.h - orrery plot --what errors: the published runs that a prediction's interval comes from. */
#ifndef ORR_CLI_PLOT_ERRORS_H
#define ORR_CLI_PLOT_ERRORS_H

#include "api/simulate.h"
#include "plots/plots.h"

bool cli_plot_errors(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error);

#endif
