/* plots/campaign.h - pictures of weeks of training: what fails, what it costs, what one may choose. Days are days of the whole
 * run, goodput is days of computing over all days, as fractions.
 */
#ifndef ORR_PLOTS_CAMPAIGN_H
#define ORR_PLOTS_CAMPAIGN_H

#include "plots/plots.h"

/* A number of GPUs with one way to write checkpoints. */
typedef struct PlotGoodput {
    int series;       /* from 0, rising */
    const char *name; /* of the series */
    int gpus;
    double mean, low, high; /* over replicas; low and high: nine of ten lie between */
    bool own;               /* the scenario's own GPUs and mode */
} PlotGoodput;

bool plot_goodput(const char *title, const PlotGoodput *points, int count, const PlotTarget *target,
                  GError **error);

typedef struct PlotInterval {
    double interval_s;
    double exact, first_order; /* goodput by formula; below 0: the first order says nothing there */
    double low, high;          /* of replicas */
} PlotInterval;

/* An interval by name: "Young". */
typedef struct PlotMark {
    const char *name;
    double interval_s;
} PlotMark;

bool plot_interval(const char *title, const PlotInterval *points, int count, const PlotMark *marks,
                   int mark_count, const PlotTarget *target, GError **error);

/* One interruption of one campaign, in the order of time. */
typedef struct PlotInterruption {
    double at_s, lost_s, waited_s;
    int cause; /* of `causes` */
    int nodes_away;
} PlotInterruption;

bool plot_interruptions(const char *title, const char *const *causes, int cause_count,
                        const PlotInterruption *points, int count, const PlotTarget *target, GError **error);

typedef struct PlotSpares {
    int spares;
    double days, days_p90;
} PlotSpares;

bool plot_spares(const char *title, double ideal_days, const PlotSpares *points, int count,
                 const PlotTarget *target, GError **error);

/* How full a cluster of many jobs is under one policy. */
typedef struct PlotOccupation {
    const char *policy;
    const double *busy_frac,
        *waiting; /* [bins], means over each of equal parts of the time; busy_frac below 0: all is over */
} PlotOccupation;

bool plot_occupation(const char *title, double seconds, const PlotOccupation *policies, int count, int bins,
                     const PlotTarget *target, GError **error);

/* What each pipeline rank of each replica lacks of its pace; needs report->jitter. */
bool plot_stragglers(const Report *report, const PlotTarget *target, GError **error);

#endif
