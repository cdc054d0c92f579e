/* answer/answer.c - see answer.h. Tested: cli/test_cli_one_answer.c */
#include "answer/answer.h"

#include "answer/batches.h"

/* Days and costs follow the step that one's own runs say. */
static void correct_costs(Report *report)
{
    const double factor = report->own.factor;
    report->days *= factor;
    report->gpu_hours *= factor;
    report_energy_fill(report, report_hours_usd(report) * factor, report->kwh * factor);
    report->epoch_s *= factor;
}

bool answer_ask(const Spec *spec, const SpecSource *source, const AnswerAsk *ask, OrrArena *arena,
                Report *ret_report, GError **error)
{
    Report report;
    if (!report_run(spec, source, &ask->run, arena, &report, error))
        return false;
    if (!answer_batches(&ask->run, arena, &report, error))
        return false;
    if (!report.textbook)
        ledger_interval_fill(ask->residuals, arena, &report);
    if (ask->own_count > 0) {
        ledger_own_fill(ask->own, ask->own_count, &report);
        correct_costs(&report);
    }
    ledger_memory_fill(ask->residuals, ask->reserve, &report);
    if (ask->assumed != NULL && !answer_live(ask->assumed, ask->where, arena, &report, error))
        return false;
    *ret_report = report;
    return true;
}

void answer_costs(Report *report)
{
    report->days = report->gpu_hours = report->usd = report->kwh = report->co2_kg = report->waiting_kwh = 0;
    report->effective = (ReportEffective){.told = false};
    report_costs_fill(report);
}

bool answer_live(const CampaignAssumed *assumed, const char *where, OrrArena *arena, Report *report,
                 GError **error)
{
    return campaign_effective_fill(assumed, where, arena, report, error);
}
