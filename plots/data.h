/* plots/data.h - the numbers of each picture of a step, as CSV with a row of column names. The gnuplot scripts and the
 * report page (html/) draw from the same text.
 */
#ifndef ORR_PLOTS_DATA_H
#define ORR_PLOTS_DATA_H

#include "report/report.h"

/* What a box of the timeline shows. */
typedef struct PlotKind {
    const char *label; /* "forward": plots/colours.h has its colour */
    bool dark;         /* numbers on it are white */
    bool pass;         /* of a micro-batch's own work: carries its number */
} PlotKind;

enum { PLOT_KINDS = 13 };

typedef struct PlotBox {
    const PlotKind *kind;
    int lane;
    bool compute; /* of the compute stream */
    double start, end;
} PlotBox;

/* One lane a pipeline rank: its first replica. Columns of `csv`: rank, band (compute | other), start, end, kind, stage,
 * microbatch (both -1: none), pass_start, pass_end: of the whole pass that the box is a part of. An op of several parts
 * is cut into them in a fixed order, as long as they last. */
typedef struct PlotTimeline {
    GString *csv;
    GArray *boxes;        /* PlotBox: the same */
    int lanes, lane_step; /* every lane_step-th pipeline rank is shown */
    const char *unit;
    double unit_s, end; /* of the step, in units */
    int kind_count;
    const PlotKind *kinds[PLOT_KINDS]; /* those that occur, in the order of a legend */
} PlotTimeline;

/* Needs spans. At most `most_lanes` lanes. */
PlotTimeline plot_timeline(const Report *report, int most_lanes);
void plot_timeline_clear(PlotTimeline *timeline);

/* Too many boxes to tell apart at the size of a screen, or to keep a drawing of each below 1 MB. */
bool plot_crowded(const PlotTimeline *timeline);

/* What the compute of each lane goes into over the step: a share a kind of each of `columns` equal parts. */
typedef struct PlotShares {
    int lanes, columns, kinds; /* kinds in the order of the timeline's */
    float *share;              /* [lanes x columns x kinds] */
} PlotShares;

PlotShares plot_shares(const PlotTimeline *timeline, int columns);
void plot_shares_clear(PlotShares *shares);
/* Where a kind's share begins and ends when kinds are stacked, 0 to 1. */
void plot_shares_band(const PlotShares *shares, int lane, int kind, int column, double *ret_low,
                      double *ret_high);
/* Columns [columns] that its outline needs, in order: what stays level needs none; 0: nothing to be seen. */
int plot_shares_points(const PlotShares *shares, int lane, int kind, int *ret_columns);

/* Memory over the step, rank after rank: rank, time, then GiB of each kind and in total. Needs levels. At most
 * `most_ranks` pipeline ranks, evenly spread, the fullest among them. */
typedef struct PlotLevels {
    GString *csv;
    GArray *ranks; /* int */
    int fullest;   /* the rank whose stage needs most */
    const char *unit;
    double end; /* of the step, in units */
} PlotLevels;

PlotLevels plot_levels(const Report *report, int most_ranks);
void plot_levels_clear(PlotLevels *levels);

/* What fills each stage at its peak, in GiB: stage, weights_gib ..., reserved_besides_gib. */
GString *plot_stages(const Report *report);

/* From the dense peak to the model FLOPs, in percent of the peak: label, low_percent, high_percent, kind, shown. */
GString *plot_bars(const Report *report, int *ret_bars);

#endif
