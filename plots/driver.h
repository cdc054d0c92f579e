/* plots/driver.h - one plot: its CSV, its parameters and a run of gnuplot. */
#ifndef ORR_PLOTS_DRIVER_H
#define ORR_PLOTS_DRIVER_H

#include "plots/plots.h"

typedef struct PlotJob {
    const char *name;       /* "pipeline": script plots/pipeline.gp, files pipeline.csv and pipeline.png */
    GString *csv;           /* read by the script as `data` */
    GString *extra_csv;     /* read as `extra`; NULL: none */
    const char *extra_name; /* and kept as extra_name.csv; NULL: not kept */
    GString *parameters;    /* gnuplot assignments, a line each */
    GString *heading, *caption; /* also what an SVG says of itself to those who do not see it */
} PlotJob;

void plot_job_init(PlotJob *job, const char *name);
void plot_job_clear(PlotJob *job);

/* Assignments: name = 'text', name = number. */
void plot_set_text(PlotJob *job, const char *name, const char *text);
void plot_set_number(PlotJob *job, const char *name, double value);

void plot_set_heading(PlotJob *job, const char *heading, const char *caption);

/* Appends a quoted cell. */
void plot_csv_text(GString *csv, const char *text);

bool plot_job_run(const PlotJob *job, const PlotTarget *target, GError **error);

/* Unit for an axis of times up to `seconds`: "s", "ms" or "us" and its size in seconds. */
const char *plot_time_unit(double seconds, double *ret_unit_s);

#endif
