/* ledger/interval.h - the interval around a prediction, from how far published runs lay from theirs.
 *
 *   spread_c = sqrt( (sum over the sources of class c of w mean r^2, + mean over all sources of w mean r^2)
 *                    / (sum over the sources of class c of w + mean w of all sources) )
 *   w = n / (1 + (n - 1) rho)
 *   interval = predicted * exp(+- z * spread_c)
 *     r = log(measured / predicted); n runs of a source (in class c, or in all); rho the intraclass correlation of r, how
 *     alike runs of one source err: 1 makes sources weigh the same, 0 runs. The second term lets all classes
 *     together count as one more source of each; z covers LEDGER_COVERAGE of the published runs, each
 *     weighing w / n of its source, when the spreads that judge a source are computed without it
 * Source: rho [Fisher1925], w [Kish1965]
 * Ignores: that a class is biased (its bias widens the interval, it does not move it: the bias of some sources
 * does not predict that of another).
 * Tested: unit/ledger/test_interval.c, published/test_ledger.c
 */
#ifndef ORR_LEDGER_INTERVAL_H
#define ORR_LEDGER_INTERVAL_H

#include "ledger/residuals.h"

#define LEDGER_COVERAGE    0.90
#define LEDGER_MIN_SOURCES 3 /* fewer say nothing about the next one: no interval */

/* How many times farther an interval reaches, on the logarithmic scale, where no published run has the accelerator,
 * the precision on it, or the framework. Source: docs/accuracy/blind.md "Intervals far from home" */
#define LEDGER_OUTSIDE_WIDENING 3.0
/* The same where the software alone was in no published run and a profile was written from its source (it has words by
 * which text names it). Source: docs/accuracy/blind.md "Intervals far from home" */
#define LEDGER_SOFTWARE_WIDENING 2.0

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

/* Fills the report's interval and what lies outside all published runs. `residuals` NULL: no interval. */
void ledger_interval_fill(const LedgerResiduals *residuals, OrrArena *arena, Report *report);

#endif
