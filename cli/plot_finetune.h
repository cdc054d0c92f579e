/* cli/plot_finetune.h - a picture that asks its scenario three times. Internal to cli/. */
#ifndef ORR_CLI_PLOT_FINETUNE_H
#define ORR_CLI_PLOT_FINETUNE_H

#include "api/simulate.h"
#include "plots/plots.h"

/* What fills the memory where all weights are trained, adapters (the scenario's, or rank 16 on all linear layers), and adapters
 * beside weights in nf4. `sets`: further overrides, NULL-terminated, or NULL. */
bool cli_plot_finetune(const ApiSimulation *given, const char *scenario, char *const *sets,
                       const PlotTarget *target, GError **error);

#endif
