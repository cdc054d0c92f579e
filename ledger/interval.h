/* ledger/interval.h - the interval around a prediction, from how far published runs lay from theirs.
 *
 *   spread_c = sqrt( (sum over the sources of class c of w mean r^2, + mean over all sources of w mean r^2)
 *                    / (sum over the sources of class c of w + mean w of all sources) )
 *   w = n / (1 + (n - 1) rho)
 *   interval = predicted * exp(-low z spread_c) .. predicted * exp(high z spread_c)
 *     r = log(measured / predicted); n runs of a source (in class c, or in all); rho the intraclass correlation of r, how
 *     alike runs of one source err: 1 makes sources weigh the same, 0 runs. The second term lets all classes
 *     together count as one more source of each; z covers LEDGER_COVERAGE of the published runs, each
 *     weighing w / n of its source, when the spreads that judge a source are computed without it
 * Source: rho [Fisher1925], w [Kish1965]
 * Ignores: that a class is biased (the bias of some sources does not predict that of another).
 * Tested: unit/ledger/test_interval.c, published/test_ledger.c
 */
#ifndef ORR_LEDGER_INTERVAL_H
#define ORR_LEDGER_INTERVAL_H

#include "ledger/residuals.h"

#define LEDGER_COVERAGE    0.90
#define LEDGER_MIN_SOURCES 3 /* fewer say nothing about the next one: no interval */

/* How many times z spreads an interval reaches below and above the prediction, on the logarithmic scale. Runs that nobody
 * had read take longer than predicted far more often than less long. Source: docs/accuracy/blind.md "Intervals far from
 * home" */
typedef struct LedgerReach {
    double low, high;
} LedgerReach;
#define LEDGER_REACH_KNOWN                                                                                   \
    ((LedgerReach){1, 1.5}) /* accelerator, precision on it and framework were in published runs */
#define LEDGER_REACH_READ                                                                                    \
    ((LedgerReach){                                                                                          \
        1, 2}) /* the software alone was not, but its profile was written from its source (it has words) */
#define LEDGER_REACH_SOFTWARE                                                                                \
    ((LedgerReach){1.5, 2}) /* the software alone was not, and nobody read it; no mixture of experts */
#define LEDGER_REACH_UNKNOWN ((LedgerReach){2, 4}) /* neither */

typedef enum LedgerSoftware {
    LEDGER_SOFTWARE_KNOWN,   /* in published runs, or not said */
    LEDGER_SOFTWARE_READ,    /* not in them, but its profile was written from its source */
    LEDGER_SOFTWARE_UNKNOWN, /* neither */
} LedgerSoftware;

typedef struct LedgerSpread {
    double spread[LEDGER_CLASS_COUNT]; /* of r */
    int runs[LEDGER_CLASS_COUNT];
    double z; /* NAN: too few sources */
} LedgerSpread;

/* From all sources but `left_out` (-1: from all). */
LedgerSpread ledger_spread(const LedgerResiduals *residuals, int left_out);

/* Mean over the sources of class `kind`, without `left_out`, of their mean log ratio; over all classes where
 * the class has no source left. What a correction by bias would use. */
double ledger_bias(const LedgerResiduals *residuals, LedgerClass kind, int left_out);

/* How far the interval of `run` reaches, from all sources but `left_out` (-1: from all): by whether its accelerator, with its
 * precision, is in them, and by its software. */
LedgerReach ledger_reach(const LedgerResiduals *residuals, int left_out, const LedgerResidual *run,
                         LedgerSoftware software);

/* Fills the report's interval and what lies outside all published runs. `residuals` NULL: no interval. */
void ledger_interval_fill(const LedgerResiduals *residuals, OrrArena *arena, Report *report);

#endif
