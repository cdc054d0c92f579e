/* cli/campaign_plots.h - what the pictures of a campaign show, gathered. */
#ifndef ORR_CLI_CAMPAIGN_PLOTS_H
#define ORR_CLI_CAMPAIGN_PLOTS_H

#include "api/simulate.h"
#include "plots/campaign.h"

/* A scenario without `faults` or `storage` has those that `orrery run` assumes. `where` names it in errors. */
typedef bool (*CliCampaignPlot)(ApiSimulation *simulation, const char *where, const PlotTarget *target,
                                GError **error);

bool cli_plot_goodput(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error);
bool cli_plot_interval(ApiSimulation *simulation, const char *where, const PlotTarget *target,
                       GError **error);
bool cli_plot_interruptions(ApiSimulation *simulation, const char *where, const PlotTarget *target,
                            GError **error);
bool cli_plot_spares(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error);

#endif
