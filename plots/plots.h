/* plots/plots.h - pictures of a run, drawn by gnuplot from the scripts beside this file.
 *
 * Each plot is a CSV of what it shows and a picture of the same name in one folder; files appear whole or
 * not at all. The scripts are plots/NAME.gp beside the presets (installed or in the source tree).
 */
#ifndef ORR_PLOTS_PLOTS_H
#define ORR_PLOTS_PLOTS_H

#include "study/explain.h"
#include "report/report.h"

typedef struct PlotTarget {
    const char *folder; /* created when missing */
    bool svg;           /* SVG instead of PNG */
    int width;          /* of a PNG in pixels; 0: as drawn, mostly 1200 */
    GPtrArray *files;   /* char*, owned by the caller: every file written is added */
} PlotTarget;

/* Timeline of the pipeline; needs spans. */
bool plot_pipeline(const Report *report, const PlotTarget *target, GError **error);
/* The same in characters, `width` columns; `colour`: painted with ANSI sequences. Needs spans. */
void plot_terminal(const Report *report, int width, bool colour, GString *out);
/* Memory over the step and at its peak; needs levels. */
bool plot_memory(const Report *report, const PlotTarget *target, GError **error);
/* From the peak down to the model FLOP/s. */
bool plot_waterfall(const Report *report, const PlotTarget *target, GError **error);

/* From A to B, part by part; REPORT_TIME_COUNT parts of each. Seconds of a step, or, where the work of a step differs, GPU-seconds
 * a million tokens. */
bool plot_difference(const Report *a, const Report *b, const char *const names[2], const PlotTarget *target,
                     GError **error);

/* What changes of one field do to the step: the best and the worst value of each; either may be NULL. */
typedef struct PlotSwing {
    char key[64]; /* "parallel.tensor" */
    const ExplainChange *best, *worst;
} PlotSwing;
/* PlotSwing, those that bring most first. */
GArray *plot_swings(const Explanation *explanation);
bool plot_tornado(const Report *report, const PlotTarget *target, GError **error);

/* A product or attention of the model; the same in all places of it. */
typedef struct PlotRoofPoint {
    const char *name;
    bool attention;
    double flops_per_byte, flops_per_s;
    double share; /* of the time of all compute kernels */
} PlotRoofPoint;
typedef struct PlotRoofline {
    GArray *points; /* PlotRoofPoint, most share first */
    double peak_flops_per_s, bytes_per_s;
    double seconds, memory_s, memory_bytes; /* of all compute kernels; of memory-bound ones among them */
} PlotRoofline;
/* Of one micro-batch through the whole model. */
PlotRoofline plot_roofline_of(const Report *report);
bool plot_roofline(const Report *report, const PlotTarget *target, GError **error);

/* A published run beside its prediction. */
typedef struct PlotError {
    int source;
    const char *name, *id; /* of the source; of the run */
    double log_ratio;      /* log(measured / predicted) */
    bool alike;            /* of the report's class */
} PlotError;
/* Sorts by source; returns the row of each (int): sources by their middle ratio. */
GArray *plot_error_rows(GArray *errors);
/* PlotError; the report has an interval. */
bool plot_errors(const Report *report, GArray *errors, const PlotTarget *target, GError **error);

/* What the links of a fabric carry, tier by tier; an error where the step is not on one. */
bool plot_traffic(const Report *report, const PlotTarget *target, GError **error);
/* Which GPU does what; an error where GPUs are no grid of ranks. */
bool plot_ranks(const Report *report, const PlotTarget *target, GError **error);

/* Who is busy when: the GPU with kernels, the ways to and from the host and its disks, the host's optimizer. */
typedef enum {
    PLOT_BUSY_GPU,
    PLOT_BUSY_OUT,
    PLOT_BUSY_IN,
    PLOT_BUSY_HOST,
    PLOT_BUSY_READ, /* from here on only where there are disks in the step */
    PLOT_BUSY_WRITE,
    PLOT_BUSY_COUNT
} PlotBusy;
/* Shares of each of `bins` equal parts of the step, 0 to 1, of the rank that computes most; needs spans. */
void plot_busy(const Report *report, int bins, double *ret_busy[PLOT_BUSY_COUNT]);
bool plot_utilisation(const Report *report, const PlotTarget *target, GError **error);
/* The first iterations of parameter servers' workers; an error where there are none. */
bool plot_workers(const Report *report, const PlotTarget *target, GError **error);

/* One point of a sweep. */
typedef struct PlotPoint {
    char *value; /* of the swept field */
    bool fits;
    double mfu, step_s, reserved_bytes, capacity_bytes;
} PlotPoint;

/* MFU and memory against one swept field. */
bool plot_sweep(const char *title, const char *key, const PlotPoint *points, int count,
                const PlotTarget *target, GError **error);

/* One way to fine-tune. */
typedef struct PlotTuning {
    const char *name;
    ReportStage fullest;
    double step_s;
} PlotTuning;

/* What fills the memory of the fullest stage, a bar for each way. */
bool plot_finetune(const char *title, const PlotTuning *tunings, int count, const PlotTarget *target,
                   GError **error);

/* A phase of a loop, on one part of the machine. */
typedef struct PlotPhase {
    const char *name;
    int lane;
    double begin_s, end_s;
} PlotPhase;

/* One turn of a loop over several models, a lane for each of `lanes`. */
bool plot_loop(const char *title, const char *caption, const char *const *lanes, int lane_count,
               const PlotPhase *phases, int count, const PlotTarget *target, GError **error);

/* One GPU count of a plan. */
typedef struct PlotScalingPoint {
    int series;       /* kind of GPU, from 0, rising */
    const char *name; /* of the series */
    int gpus;
    double days, mfu;
    double days_low, days_high; /* 0: no interval */
    double usd;                 /* 0: no price */
    bool fits, chosen;
} PlotScalingPoint;

/* Days and MFU over GPU counts. deadline_days 0: none. */
bool plot_scaling(const char *title, double deadline_days, const PlotScalingPoint *points, int count,
                  const PlotTarget *target, GError **error);

/* Days against money, where some point has a price; else nothing is drawn. 0: no deadline, no budget. */
bool plot_cost(const char *title, double deadline_days, double budget_usd, const PlotScalingPoint *points,
               int count, const PlotTarget *target, GError **error);

/* A fabric as it is drawn: vertices where a layout puts them, links in straight pieces. */
typedef struct PlotVertex {
    const char *name, *label; /* label NULL: none is shown */
    double x, y;
    bool gpu, turned, below; /* the label: turned where many stand side by side, below the vertex */
} PlotVertex;
typedef struct PlotPiece {
    int link, from, to; /* vertices of the whole link */
    double x[2], y[2], bytes_per_s;
    bool across; /* between nodes */
} PlotPiece;
typedef struct PlotFabric {
    const char *title, *caption;
    const PlotVertex *vertices;
    const PlotPiece *pieces;
    int vertex_count, piece_count;
    bool square; /* both axes have one scale */
} PlotFabric;
bool plot_topology(const PlotFabric *fabric, const PlotTarget *target, GError **error);

/* One size of a collective over `nodes` nodes; points come node count by node count. */
typedef struct PlotBusbw {
    int nodes, ranks;
    double bytes, busbw_bytes_per_s;
    const char *algorithm, *protocol;
} PlotBusbw;
bool plot_busbw(const char *title, const char *caption, const PlotBusbw *points, int count,
                const PlotTarget *target, GError **error);

/* One published run. */
typedef struct PlotMeasured {
    int source;       /* from 0, rising */
    const char *name; /* of the source: its file */
    const char *id;
    double measured_s, predicted_s;
} PlotMeasured;

/* Predicted against measured step time of runs from `sources` sources. */
bool plot_ledger(const PlotMeasured *points, int count, int sources, const PlotTarget *target,
                 GError **error);

/* The same rows of a calibration: error over measured time; `source` counts groups of kernels. Files fit.csv, fit.png. */
bool plot_fit(const char *heading, const PlotMeasured *points, int count, int groups,
              const PlotTarget *target, GError **error);

/* Losses from the dense peak to the model FLOP/s, as fractions of the peak, means over ranks: they and the MFU
 * add up to 1. */
#define PLOT_LOSS_COUNT (SIM_PART_COUNT + 1 + REPORT_LATE_COUNT)
typedef struct PlotLoss {
    const char *label;
    double frac;
} PlotLoss;
void plot_losses(const Report *report, PlotLoss ret_losses[PLOT_LOSS_COUNT]);
ExplainLoss plot_largest_loss(const Report *report);

#endif
