/* cli/plot_loop.h - the picture of a loop over several models. Internal to cli/. */
#ifndef ORR_CLI_PLOT_LOOP_H
#define ORR_CLI_PLOT_LOOP_H

#include "api/simulate.h"
#include "plots/plots.h"

/* One turn: every part of the machine, what it does when. Fails where the scenario is no loop; `where` names it. */
bool cli_plot_loop(const ApiSimulation *simulation, const char *where, const PlotTarget *target,
                   GError **error);

#endif
