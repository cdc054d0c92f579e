/* search/late.h - steps as a search reports them: with slow GPUs and with input that does not arrive in time.
 *
 * A search orders and proves configurations by the step of GPUs that are all alike and have their input: simulated, with
 * the wait for the longest texts. What it reports of them are the steps that `run` prints. The order stays the proved one.
 */
#ifndef ORR_SEARCH_LATE_H
#define ORR_SEARCH_LATE_H

#include "report/report.h"
#include "search/search.h"

/* Whether a step of the scenario is later than the one that a search simulates. */
bool search_is_late(const Spec *spec);

/* The figures of a step: its length, what makes it late, its rates. */
static inline void search_run_take_step(const Report *report, SearchRun *ret_run)
{
    ret_run->step_ps = report->step_ps;
    ret_run->tokens_per_s_per_gpu = report->tokens_per_s_per_gpu;
    ret_run->mfu = report->mfu;
    for (int late = 0; late < REPORT_LATE_COUNT; late++)
        ret_run->late_ps[late] = report->late_ps[late];
}

/* Gives one run of the result's space its step as it will be. */
void search_settle_run(const SearchResult *result, SearchRun *run);

/* Gives the runs of a result their steps as they will be; nothing happens where none is late. Of misses and of what more of the
 * machine brings, slow GPUs take the share of the step that they take of the best. */
void search_settle(SearchResult *result, const Spec *asked);

#endif
