/* program/shares.c - see shares.h. */
#include "program/shares.h"

#include <math.h>
#include <string.h>

int sim_plan_sharers(const SimPlan *plan)
{
    int most = 1;
    for (int i = 0; i < plan->resource_count; i++)
        most = MAX(most, plan->resources[i].sharers);
    for (int i = 0; i < plan->tier_count; i++)
        most = MAX(most, plan->tier_sharers[i]);
    return most;
}

void sim_plan_own_shares(SimPlan *plan, OrrArena *arena)
{
    SimPlanResource *rows = ORR_ARENA_NEW(arena, SimPlanResource, plan->resource_count);
    SimTier *tiers = ORR_ARENA_NEW(arena, SimTier, plan->tier_count);
    for (int i = 0; i < plan->resource_count; i++) {
        rows[i] = plan->resources[i];
        rows[i].capacity = MAX(1, rows[i].capacity / MAX(rows[i].sharers, 1));
        rows[i].sharers = 1;
    }
    for (int i = 0; i < plan->tier_count; i++) {
        tiers[i] = plan->tiers[i];
        tiers[i].capacity_bytes /= MAX(plan->tier_sharers[i], 1);
        plan->tier_sharers[i] = 1;
    }
    plan->resources = plan->resource_count > 0 ? rows : NULL;
    plan->tiers = plan->tier_count > 0 ? tiers : NULL;
}

/* --- in units of another plan's rows --- */

static void rescale(SimWork *work, const SimPlanResource *own, const SimPlanResource *base)
{
    for (int i = 0; i < SIM_WORK_SHARES + work->more_share_count; i++) {
        SimShare *share =
            i < SIM_WORK_SHARES ? &work->shares[i] : (SimShare *)&work->more_shares[i - SIM_WORK_SHARES];
        const int row = share->resource;
        if (share->amount <= 0 || row < SIM_RESOURCE_COUNT || own[row].capacity == base[row].capacity)
            continue;
        share->amount = (int64_t)fmax(
            1, round((double)share->amount * (double)base[row].capacity / (double)own[row].capacity));
    }
}

static void rescale_offload(SimOffload *offload, const SimPlanResource *own, const SimPlanResource *base)
{
    SimWork *works[] = {
        &offload->check,    &offload->grad_ahead,    &offload->grad_out,       &offload->sum_in,
        &offload->sum_out,  &offload->scale,         &offload->accumulate,     &offload->update,
        &offload->state_in, &offload->state_out,     &offload->weight_in,      &offload->read,
        &offload->fetch,    &offload->backward_read, &offload->backward_fetch, &offload->direct};
    for (gsize i = 0; i < G_N_ELEMENTS(works); i++)
        rescale(works[i], own, base);
}

void sim_plan_rescale(SimPlan *plan, SimPlan *base)
{
    g_assert(plan->resource_count == base->resource_count && plan->tier_count == base->tier_count);
    for (int s = 0; plan->resource_count > 0 && s < plan->shape.ranks * plan->shape.chunks; s++)
        for (int i = 0; i < plan->stages[s].segment_count; i++) {
            SimSegment *segment = &plan->stages[s].segments[i];
            rescale(&segment->copy_out, plan->resources, base->resources);
            rescale(&segment->copy_back, plan->resources, base->resources);
            if (segment->offload != NULL)
                rescale_offload((SimOffload *)segment->offload, plan->resources, base->resources);
        }
    for (int i = 0; i < plan->tier_count; i++) {
        SimTier *tier = (SimTier *)&base->tiers[i];
        tier->capacity_bytes = MAX(tier->capacity_bytes, plan->tiers[i].capacity_bytes);
    }
    plan->resources = base->resources;
    plan->tiers = base->tiers;
}
