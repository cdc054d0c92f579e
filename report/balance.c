/* report/balance.c - see balance.h. All ranks of a group wait for its busiest, so the step's time has this in it already. */
#include "report/balance.h"

#include "costmodel/context.h"

void report_balance_fill(OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    CostShape shape;
    cost_shape_init(&shape, spec);
    report->expert_busiest = spec->model.moe.capacity_factor > 0 ? 1 : shape.expert_load;
    report->context_ranks = spec->parallel.context;
    report->context_work = ORR_ARENA_NEW(arena, double, report->context_ranks);
    for (int rank = 0; rank < report->context_ranks; rank++) {
        report->context_work[rank] =
            cost_context_rank_work(spec->parallel.context_mode, spec->parallel.context, spec->model.causal,
                                   spec->training.sequence_length, rank);
        report->context_busiest = MAX(report->context_busiest, report->context_work[rank]);
    }
}
