/* report/balance.c - see balance.h. All ranks of a group wait for its busiest, so the step's time has this in it already. */
#include "report/balance.h"

#include "costmodel/context.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"

/* Rows that find their expert full, of an expert group's tokens as the router spreads them over one layer's experts. */
static double layer_dropped_frac(const Spec *spec, const CostShape *shape)
{
    const SpecMoe *moe = &spec->model.moe;
    const double tokens = shape->tokens / shape->tensor * spec->parallel.expert;
    if (moe->experts == 0 || !(moe->capacity_factor > 0))
        return 0;
    g_autofree double *share = g_new0(double, moe->experts);
    cost_moe_shares(&spec->training.router, moe->experts, share);
    for (int i = 0; i < moe->experts; i++)
        share[i] = MIN(share[i], 1.0 / moe->top_k); /* no expert takes a token twice */
    return cost_moe_dropped_frac(share, moe->experts, tokens * moe->top_k,
                                 cost_moe_capacity(moe->capacity_factor, tokens, moe->top_k, moe->experts));
}

/* Of the layer's experts: rows of the busiest rank over the average, and rows that are dropped. */
static void see_layer(const Spec *spec, double *busiest, double *dropped)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    *busiest = spec->model.moe.capacity_factor > 0 ? 1 : shape.expert_load;
    *dropped = layer_dropped_frac(spec, &shape);
}

/* Over all layers with experts, each by its rows; the busiest rank of any of them. */
static void fill_experts(const Spec *spec, Report *report)
{
    double busiest[1 + SPEC_MOE_KINDS], dropped[1 + SPEC_MOE_KINDS], rows = 0;
    bool seen[1 + SPEC_MOE_KINDS] = {false};
    see_layer(spec, &report->expert_busiest, &report->dropped_frac);
    if (spec->model.moe.run_count == 0 && spec->model.moe.late_layers == 0)
        return;
    report->expert_busiest = report->dropped_frac = 0;
    for (int layer = 0; layer < spec->model.layers; layer++) {
        const SpecMoeRun own = cost_layer_moe(&spec->model, layer);
        Spec other;
        if (!cost_layer_has_experts(&spec->model, layer))
            continue;
        if (!seen[own.kind])
            see_layer(cost_layer_spec(spec, layer, &other) ? &other : spec, &busiest[own.kind],
                      &dropped[own.kind]);
        seen[own.kind] = true;
        report->expert_busiest = MAX(report->expert_busiest, busiest[own.kind]);
        report->dropped_frac += own.top_k * dropped[own.kind];
        rows += own.top_k;
    }
    report->dropped_frac /= MAX(rows, 1);
}

void report_balance_fill(OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    fill_experts(spec, report);
    report->context_ranks = spec->parallel.context;
    report->context_work = ORR_ARENA_NEW(arena, double, report->context_ranks);
    for (int rank = 0; rank < report->context_ranks; rank++) {
        report->context_work[rank] =
            cost_context_rank_work(spec->parallel.context_mode, spec->parallel.context, spec->model.causal,
                                   spec->training.sequence_length, rank);
        report->context_busiest = MAX(report->context_busiest, report->context_work[rank]);
    }
}
