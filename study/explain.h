/* study/explain.h - what binds a step, what single changes would bring, and what its largest loss is made of.
 *
 * Nothing is guessed: what binds is how much faster the step is simulated with ten percent more of each resource, and
 * every change is a simulation of the scenario with one field of parallel, training or execution altered, or fields that
 * belong together (the data-parallel degree follows the others). Kernels are those of the op list, alone.
 */
#ifndef ORR_STUDY_EXPLAIN_H
#define ORR_STUDY_EXPLAIN_H

#include "report/report.h"

typedef struct ExplainBind {
    const char *key, *words; /* "scale_out", "the network between nodes" */
    double share; /* of the step that goes with it: (1 - T' / T) / (1 - 1 / 1.1), or the bubble's share */
} ExplainBind;

/* One hardware figure better by one percent, all others as they are. */
typedef struct ExplainFigure {
    const char *key; /* "cluster.scale_up_bytes_per_s" */
    int64_t step_ps;
    double gain_frac;  /* 1 - step / today's */
    double elasticity; /* -log(step / today's) / log(1.01) */
} ExplainFigure;

typedef struct ExplainChange {
    char *set[4]; /* "parallel.tensor=4", and what follows from it; NULL-terminated where fewer */
    int64_t step_ps;
    double gain_frac; /* 1 - step / today's; below 0: slower */
    bool fits, edge;  /* edge: only by using the reserve */
    bool spare;       /* takes off the GPU what has room on it: after all others */
    const char
        *cause; /* "bubble": the part of the step that most of the gain comes out of; NULL: no single one */
} ExplainChange;

typedef struct ExplainKernel {
    const char *name, *kind;
    double share;      /* of the op list's compute time, or of its time in collectives */
    double loss_share; /* of what compute takes beyond the dense peak; 0 for collectives */
} ExplainKernel;

#define EXPLAIN_STEPS   50 /* that an explanation simulates, about: ReportOptions.steps */
#define EXPLAIN_KERNELS 5
#define EXPLAIN_CHANGES 5

typedef struct Explanation {
    const Report *report; /* borrowed */
    GArray *binds;        /* ExplainBind, most first */
    GArray *figures;      /* ExplainFigure, most effect first */
    GArray
        *changes; /* ExplainChange, fastest first: those that fit before the others, spare ones behind them */
    GArray *kernels;     /* ExplainKernel of compute, most loss first */
    GArray *collectives; /* ExplainKernel, most time first */
    int tried, refused;  /* changes simulated; combinations that the rules refuse */
} Explanation;

Explanation report_explain(const Report *report);
void report_explain_clear(Explanation *explanation);

/* The largest of the losses that the waterfall draws, as the caller has it: "kernel loss", 0.379. */
typedef struct ExplainLoss {
    const char *label;
    double frac;
} ExplainLoss;

void report_explain_text(const Explanation *explanation, const ExplainLoss *largest, GString *out);
void report_explain_json(const Explanation *explanation, const ExplainLoss *largest, GString *out);

#endif
