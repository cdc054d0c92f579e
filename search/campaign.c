/* search/campaign.c - days, GPU-hours, money and energy of a configuration over the scenario's tokens: those that `run` prints.
 *
 * Not here: what a campaign does with failures (campaign/effective.h).
 */
#include <math.h>

#include "campaign/effective.h"
#include "costmodel/params.h"
#include "report/groups.h"
#include "search/write_internal.h"

SearchCampaign search_campaign(const SearchResult *result, const Spec *spec, const SearchRun *run)
{
    const double step_tokens = (double)spec->training.global_batch * spec->training.sequence_length;
    const double pue = fmax(1, spec->cluster.pue), gpus = spec_gpus(spec);
    const double watts = report_groups_mean_w(spec, run->bubble_frac) * pue;
    SearchCampaign out = {.effective_days = NAN};
    if (!(spec->training.tokens > 0))
        return out;
    const double hours = spec->training.tokens / step_tokens * (double)run->step_ps * 1e-12 / 3600;
    Report report = {.spec = spec,
                     .gpus = (int)gpus,
                     .step_ps = run->step_ps,
                     .bubble_frac = run->bubble_frac,
                     .parameters = cost_parameters(&spec->model, 0, false),
                     .step_w = watts * gpus,
                     .waiting_w = report_groups_mean(spec, REPORT_MEAN_WAITING_W) * pue * gpus,
                     .days = hours / 24,
                     .gpu_hours = hours * gpus,
                     .usd = hours * gpus * report_groups_mean(spec, REPORT_MEAN_USD_PER_HOUR),
                     .kwh = hours * gpus * watts / 1000};
    OrrArena *arena = orr_arena_new();
    if (result->assumed != NULL && campaign_effective_fill(result->assumed, "search", arena, &report, NULL) &&
        report.effective.told)
        out.effective_days = report.effective.days;
    orr_arena_free(arena);
    out.days = report.days;
    out.gpu_hours = report.gpu_hours;
    out.usd = report.usd;
    out.kwh = report.kwh;
    return out;
}
