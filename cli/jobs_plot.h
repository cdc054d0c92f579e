/* cli/jobs_plot.h - the picture of `orrery jobs --plot`: how full the cluster is, and who waits. */
#ifndef ORR_CLI_JOBS_PLOT_H
#define ORR_CLI_JOBS_PLOT_H

#include "jobs/jobs.h"
#include "plots/plots.h"

/* Runs every policy once more and draws all of them over the longest of `results` [JOBS_POLICIES]. */
bool cli_jobs_plot(const JobsTrace *trace, double patience_s, const JobsResult *results, const char *title,
                   const PlotTarget *target, GError **error);

#endif
