/* ledger/own.h - a prediction corrected by the user's own measured runs, from one on.
 *
 *   r = log(measured / predicted) of a run is, to its place (cluster and software), u + v(x) + e
 *     u: what all runs of the place share; v: what runs of like configuration share; e: a run's own noise
 *     cov(v(x), v(y)) = LOCAL^2 exp(-d^2 / 2) WORD^w,  d^2 = sum over sizes of (log ratio / log LENGTH)^2
 *     + sum over the parts of a step of (difference of their shares / SHARE)^2,
 *     LENGTH of each size its own: kernels and exchanges change with the degrees, little with more replicas,
 *     w the words in which the two configurations differ. Shares, because what is predicted wrongly is a part: runs
 *     in which it takes as much of the step err alike
 *   corrected = predicted exp(E[r | own runs]);  the ledger's interval shrinks by sqrt(var[r | own runs] / var[r])
 * Source: simple kriging, Matheron 1963; Rasmussen and Williams, Gaussian Processes, eq. 2.25 and 2.26. The three
 * deviations, the lengths, SHARE and WORD are those with which the places of the ledger and the blind sets predict themselves best,
 * rounded; either half of the places alone gains as much by them, and the curve is flat around them (docs/accuracy/own-runs.md, "Your own runs").
 * Tested: unit/ledger/test_own.c, published/test_few_shot.c
 */
#ifndef ORR_LEDGER_OWN_H
#define ORR_LEDGER_OWN_H

#include "report/report.h"

#define LEDGER_OWN_SHARED 0.03 /* standard deviation of u */
#define LEDGER_OWN_LOCAL  0.14 /* of v */
#define LEDGER_OWN_NOISE  0.04 /* of e */
#define LEDGER_OWN_WORD   0.5  /* what is left of the likeness where one word differs */
#define LEDGER_OWN_SHARE  0.25 /* a part that takes so much more of the step is one deviation away */

enum { LEDGER_TRAIT_SIZES = 8, LEDGER_TRAIT_WORDS = 7, LEDGER_TRAIT_SHARES = SIM_PART_COUNT + 1 };

/* What makes two runs of one place alike. */
typedef struct LedgerTraits {
    double size[LEDGER_TRAIT_SIZES];   /* logarithms */
    double share[LEDGER_TRAIT_SHARES]; /* of the predicted step: its parts, last the bubble */
    guint word[LEDGER_TRAIT_WORDS];    /* hashes */
} LedgerTraits;

LedgerTraits ledger_traits(const Report *report);
/* 0 to 1. */
double ledger_likeness(const LedgerTraits *a, const LedgerTraits *b);

typedef struct LedgerOwnRun {
    LedgerTraits traits;
    double log_ratio; /* log(measured / predicted) */
} LedgerOwnRun;

/* What the `count` own runs say of a run with `traits`: the expected log ratio, and how much of the deviation is left
 * (1 without own runs). */
typedef struct LedgerOwnSays {
    double log_ratio, deviation_frac;
} LedgerOwnSays;
LedgerOwnSays ledger_own_says(const LedgerOwnRun *runs, int count, const LedgerTraits *traits);

/* Fills the report's `own`; the interval must be there. */
void ledger_own_fill(const LedgerOwnRun *runs, int count, Report *report);

#endif
