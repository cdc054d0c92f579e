/* ledger/ablation.h - published steps of one change: pairs of a source's runs that differ in exactly one switch.
 *
 * A switch is what a user turns on or off on a given machine and model: recomputation, number format, schedule, virtual
 * stages, sequence parallelism, ZeRO stage, overlap, attention kernel, compiler, graphs, dispatcher, context exchange.
 * Two rows are a pair when their scenarios say the same otherwise and were replayed with the same profile. The gain of a
 * step from a to b is b / a - 1. Steps whose measured gain is below LEDGER_ABLATION_NOISE have no direction.
 * Tested: published/test_few_shot.c
 */
#ifndef ORR_LEDGER_ABLATION_H
#define ORR_LEDGER_ABLATION_H

#include "base/json.h"
#include "ledger/validate.h"

#define LEDGER_ABLATION_NOISE 0.02 /* two runs of one configuration differ by as much */

typedef struct LedgerAblation {
    const LedgerRow *from, *to;
    const char *change;                   /* the field, as in "training.recompute"; static */
    char *was, *is;                       /* its values as JSON */
    double measured_frac, predicted_frac; /* gains */
} LedgerAblation;

typedef struct LedgerAblations {
    GArray *steps; /* LedgerAblation, by source and row */
    int directed, right;
    double gap; /* mean |predicted - measured gain|; NAN: no steps */
} LedgerAblations;

LedgerAblations ledger_ablations(const Ledger *ledger);
void ledger_ablations_clear(LedgerAblations *ablations);

void ledger_write_ablations_text(const Ledger *ledger, bool every_step, GString *out);
void ledger_write_ablations_json(const Ledger *ledger, GString *out);

/* A row's scenario as lines "path=value" in order, for LedgerRow.said. */
char **ledger_row_said(const OrrJson *scenario);

#endif
