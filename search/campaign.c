/* search/campaign.c - days, GPU-hours, money and energy of a configuration over the scenario's tokens: those that `run` prints.
 *
 * Not here: what a campaign does with failures (campaign/effective.h).
 */
#include <math.h>

#include "answer/answer.h"
#include "costmodel/adapter.h"
#include "costmodel/lengths.h"
#include "report/input.h"
#include "search/walk.h"
#include "search/write_internal.h"

/* From the figures that the search kept of a run: its step is not simulated again. */
static bool from_run(const SearchResult *result, const Spec *spec, const SearchRun *run, OrrArena *arena,
                     Report *report)
{
    *report = (Report){.spec = spec,
                       .gpus = (int)spec_gpus(spec),
                       .step_ps = run->step_ps - run->late_ps[REPORT_LATE_INPUT],
                       .bubble_frac = run->bubble_frac,
                       .parameters = cost_parameters(&spec->model, 0, false),
                       .trained_parameters = cost_trained_parameters(spec),
                       .tokens_per_s = cost_trained_tokens(spec) / ((double)run->step_ps * 1e-12)};
    for (int late = 0; late < REPORT_LATE_COUNT; late++)
        report->late_ps[late] = run->late_ps[late];
    if (!report_input_fill(report, NULL)) /* what only evaluates or is skipped; its step has not waited yet */
        return false;
    report->step_ps = run->step_ps;
    report_costs_fill(report);
    return result->assumed == NULL || answer_live(result->assumed, "search", arena, report, NULL);
}

/* A growing batch has steps of its own, kinds of nodes idle differently, and one's own runs know steps by their parts. */
static bool asked_again(const SearchResult *result, const Spec *spec, OrrArena *arena, Report *report)
{
    const AnswerAsk ask = {.run = {.analytic = true},
                           .residuals = result->residuals,
                           .own = result->own,
                           .own_count = result->own_count,
                           .assumed = result->assumed,
                           .where = "search"};
    return answer_ask(spec, NULL, &ask, arena, report, NULL);
}

SearchCampaign search_campaign(const SearchResult *result, const SearchRun *run)
{
    SearchCampaign out = {.effective_days = NAN};
    if (!(result->space->spec->training.tokens > 0))
        return out;
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrArena *arena = orr_arena_new();
    Report report;
    search_point_dealt(result->space, run->id, spec);
    const bool whole =
        spec->cluster.group_count > 0 || spec->training.batches_count > 0 || result->own_count > 0;
    if (whole ? asked_again(result, spec, arena, &report) : from_run(result, spec, run, arena, &report)) {
        out.days = report.days;
        out.gpu_hours = report.gpu_hours;
        out.usd = report.usd;
        out.kwh = report.kwh;
        if (report.effective.told)
            out.effective_days = report.effective.days;
        out.endless = report.effective.why_not != NULL;
    }
    orr_arena_free(arena);
    return out;
}
