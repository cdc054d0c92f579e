/* report/memory_walk.c - levels of memory over the first steps.
 *
 * All steps are the one that was simulated, but for the optimizer's moments: software makes them in its first optimizer
 * step, so until then they are not there. Ignored: software that steps once with zeros before training begins.
 */
#include "report/memory_walk.h"

typedef struct FirstStep {
    int64_t optimizer_ps, moments_bytes; /* when its optimizer begins; what that makes */
    const SimLevel *last;
    bool stepped;
} FirstStep;

static FirstStep *find_first_steps(const Report *report)
{
    const SimResult *result = &report->result;
    FirstStep *ranks = g_new0(FirstStep, result->ranks);
    for (int i = 0; i < result->ranks; i++) {
        const int each = report_ranks_a_stage(report);
        const SimPlan *plan =
            report->kinds.count > 0 ? &report->kinds.kinds[i % report->kinds.count].plan : &report->plan;
        ranks[i].moments_bytes = plan->ranks[i / each].moments_bytes;
        ranks[i].optimizer_ps = INT64_MAX;
    }
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        if (span->tag == SIM_TAG_OPTIMIZER)
            ranks[span->rank].optimizer_ps = MIN(ranks[span->rank].optimizer_ps, span->start_ps);
    }
    return ranks;
}

typedef void Visit(const Report *report, const ReportMoment *moment, void *data);

/* One more moment where the moments come, between the changes before and behind that instant. */
static void walk_first_step(const Report *report, Visit *visit, void *data)
{
    FirstStep *ranks = find_first_steps(report);
    for (int64_t i = 0; i < report->result.level_count; i++) {
        const SimLevel *level = &report->result.levels[i];
        FirstStep *rank = &ranks[level->rank];
        if (!rank->stepped && level->time_ps >= rank->optimizer_ps) {
            rank->stepped = true;
            if (level->time_ps > rank->optimizer_ps && rank->last != NULL)
                visit(report, &(ReportMoment){.level = rank->last, .in_step_ps = rank->optimizer_ps}, data);
        }
        visit(report,
              &(ReportMoment){.level = level,
                              .lacks_moments = !rank->stepped,
                              .missing_bytes = rank->stepped ? 0 : rank->moments_bytes,
                              .in_step_ps = level->time_ps},
              data);
        rank->last = level;
    }
    for (int i = 0; i < report->result.ranks; i++)
        if (!ranks[i].stepped && ranks[i].last != NULL && ranks[i].optimizer_ps < INT64_MAX)
            visit(report, &(ReportMoment){.level = ranks[i].last, .in_step_ps = ranks[i].optimizer_ps}, data);
    g_free(ranks);
}

void report_walk_memory(const Report *report, int steps, Visit *visit, void *data)
{
    const SimResult *result = &report->result;
    if (steps > 0)
        walk_first_step(report, visit, data);
    for (int step = steps > 0 ? 1 : 0; step < MAX(1, steps); step++)
        for (int64_t i = 0; i < result->level_count; i++)
            visit(report,
                  &(ReportMoment){
                      .level = &result->levels[i], .in_step_ps = result->levels[i].time_ps, .step = step},
                  data);
}
