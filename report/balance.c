/* report/balance.c - see balance.h. All ranks of a group wait for its busiest, so the step's time has this in it already. */
#include "report/balance.h"

#include "costmodel/context.h"
#include "costmodel/moe.h"

/* Rows that find their expert full, of an expert group's tokens as the router spreads them. */
static double dropped_frac(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    const SpecMoe *moe = &spec->model.moe;
    const double tokens = shape->tokens / shape->tensor * spec->parallel.expert;
    if (moe->experts == 0 || !(moe->capacity_factor > 0))
        return 0;
    g_autofree double *share = g_new0(double, moe->experts);
    cost_moe_shares(&spec->training.router, moe->experts, share);
    return cost_moe_dropped_frac(share, moe->experts, tokens * moe->top_k,
                                 cost_moe_capacity(moe->capacity_factor, tokens, moe->top_k, moe->experts));
}

void report_balance_fill(OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    CostShape shape;
    cost_shape_init(&shape, spec);
    report->expert_busiest = spec->model.moe.capacity_factor > 0 ? 1 : shape.expert_load;
    report->dropped_frac = dropped_frac(&shape);
    report->context_ranks = spec->parallel.context;
    report->context_work = ORR_ARENA_NEW(arena, double, report->context_ranks);
    for (int rank = 0; rank < report->context_ranks; rank++) {
        report->context_work[rank] =
            cost_context_rank_work(spec->parallel.context_mode, spec->parallel.context, spec->model.causal,
                                   spec->training.sequence_length, rank);
        report->context_busiest = MAX(report->context_busiest, report->context_work[rank]);
    }
}
