/* answer/answer.h - what a configuration comes to, asked once: step, interval, memory, days, cost.
 *
 * Whatever prints a figure asks here: run, search, plan, sweep, explain, compare, report, plots, campaigns, C and Python. The
 * step has slow GPUs and late input in it (report_run()); the interval and the memory's verdict come from published runs, or
 * from one's own; days and costs have in them what fails.
 */
#ifndef ORR_ANSWER_ANSWER_H
#define ORR_ANSWER_ANSWER_H

#include "campaign/effective.h"
#include "ledger/interval.h"
#include "ledger/memory.h"
#include "ledger/own.h"
#include "report/report.h"

typedef struct AnswerAsk {
    ReportOptions run;
    const LedgerResiduals *residuals; /* NULL: no interval, no odds */
    const LedgerReserveAsk *reserve;  /* of memory; NULL: what the ledger says */
    const LedgerOwnRun *own;          /* one's own measured runs: the step, days and costs follow them */
    int own_count;
    const CampaignAssumed *assumed; /* NULL: days and costs are those of computing */
    const char *where;              /* names the scenario in errors of its days */
} AnswerAsk;

/* `spec` must be complete (no "auto"); `source` may be NULL. Results live in `arena`. */
bool answer_ask(const Spec *spec, const SpecSource *source, const AnswerAsk *ask, OrrArena *arena,
                Report *ret_report, GError **error);

/* Days and costs of computing anew, of an answer that was asked without `assumed` and without runs of one's own: for a
 * Spec that differs in prices, PUE, tokens, faults or storage alone, without batches of its schedule. What failed in the
 * old ones is no longer in them. */
void answer_costs(Report *report);

/* The last part apart: days and costs of an answer that was asked without `assumed`. */
bool answer_live(const CampaignAssumed *assumed, const char *where, OrrArena *arena, Report *report,
                 GError **error);

#endif
