/* program/resources.c - a plan's rows of resources and tiers become a program's: which ranks share an instance, and
 * what one rank gets of it where it stands for several.
 *
 * Folded, n replicas that share an instance among themselves do the same at the same time, so each gets a part of
 * 1/n: the row becomes one that the rank has for itself, of that capacity. A row whose instances span pipeline ranks, which
 * do different things at one instant, does not fold, however large it is: such a plan is simulated rank by rank.
 */
#include "program/builder.h"

static const SimPlanResource standard_resources[SIM_RESOURCE_COUNT] = {
    [SIM_RESOURCE_SM] = {"SMs", SIM_WHOLE_RESOURCE, 1},
    [SIM_RESOURCE_SCALE_UP] = {"scale-up port", SIM_WHOLE_RESOURCE, 1},
    [SIM_RESOURCE_SCALE_OUT] = {"scale-out NIC", SIM_WHOLE_RESOURCE, 1},
};

const SimPlanResource *sim_standard_resources(int *ret_count)
{
    if (ret_count != NULL)
        *ret_count = SIM_RESOURCE_COUNT;
    return standard_resources;
}

static const SimPlanResource *resources_of(const SimPlan *plan, int *ret_count)
{
    if (plan->resource_count == 0)
        return sim_standard_resources(ret_count);
    *ret_count = plan->resource_count;
    return plan->resources;
}

static int replicas_of(const SimPlan *plan)
{
    return plan->tensor * plan->context * plan->data;
}

/* Neighbours that share are replicas of one pipeline rank. */
static bool within_replicas(const SimPlan *plan, int sharers)
{
    return sharers == 1 || (sharers > 0 && replicas_of(plan) % sharers == 0);
}

static bool same_everywhere(const SimPlan *plan)
{
    const int ranks = plan->shape.ranks * replicas_of(plan);
    for (int r = 0; plan->rank_speed != NULL && r < ranks; r++) {
        if (plan->rank_speed[r] != plan->rank_speed[r - r % replicas_of(plan)])
            return false;
    }
    for (int64_t i = 0; i < plan->capacity_event_count; i++) {
        if (plan->capacity_events[i].instance >= 0)
            return false;
    }
    return true;
}

bool sim_plan_folds(const SimPlan *plan)
{
    int count = 0;
    const SimPlanResource *resources = resources_of(plan, &count);
    if (replicas_of(plan) == 1)
        return true;
    if (!same_everywhere(plan))
        return false;
    for (int i = 0; i < count; i++) {
        if (!within_replicas(plan, resources[i].sharers))
            return false;
    }
    for (int i = 0; i < plan->tier_count; i++) {
        if (!within_replicas(plan, MAX(plan->tier_sharers[i], 1)))
            return false;
    }
    return true;
}

static int32_t *neighbours(OrrArena *arena, int ranks, int sharers, int32_t *ret_instances)
{
    int32_t *instance_of_rank = ORR_ARENA_NEW(arena, int32_t, ranks);
    const int each = sharers == 0 ? ranks : sharers;
    for (int r = 0; r < ranks; r++)
        instance_of_rank[r] = r / each;
    *ret_instances = (ranks + each - 1) / each;
    return instance_of_rank;
}

static void fill_resources(const SimPlan *plan, bool folded, OrrArena *arena, SimProgram *program)
{
    int count = 0;
    const SimPlanResource *from = resources_of(plan, &count);
    const int ranks = program->classes * program->replicas;
    SimResource *to = ORR_ARENA_NEW(arena, SimResource, count);
    for (int i = 0; i < count; i++) {
        to[i] = (SimResource){.name = from[i].name, .capacity = from[i].capacity};
        if (folded && from[i].sharers > 1)
            to[i].capacity /= from[i].sharers;
        else if (from[i].sharers != 1)
            to[i].instance_of_rank = neighbours(arena, ranks, from[i].sharers, &to[i].instances);
    }
    program->resources = to;
    program->resource_count = count;
}

static void fill_tiers(const SimPlan *plan, bool folded, OrrArena *arena, SimProgram *program)
{
    const int ranks = program->classes * program->replicas;
    SimTier *to = ORR_ARENA_NEW(arena, SimTier, plan->tier_count);
    for (int i = 0; i < plan->tier_count; i++) {
        to[i] = plan->tiers[i];
        if (folded && plan->tier_sharers[i] > 1)
            to[i].capacity_bytes /= plan->tier_sharers[i];
        else if (plan->tier_sharers[i] > 1)
            to[i].instance_of_rank = neighbours(arena, ranks, plan->tier_sharers[i], &to[i].instances);
    }
    program->tiers = to;
    program->tier_count = plan->tier_count;
}

static SimCapacityEvent *fold_events(const SimPlan *plan, const SimPlanResource *resources, OrrArena *arena)
{
    SimCapacityEvent *events = ORR_ARENA_NEW(arena, SimCapacityEvent, plan->capacity_event_count);
    for (int64_t i = 0; i < plan->capacity_event_count; i++) {
        events[i] = plan->capacity_events[i];
        events[i].capacity /= MAX(resources[events[i].resource].sharers, 1);
    }
    return events;
}

void sim_program_resources(const SimPlan *plan, OrrArena *arena, SimProgram *program)
{
    const bool folded = program->replicas == 1 && replicas_of(plan) > 1;
    int count = 0;
    const SimPlanResource *resources = resources_of(plan, &count);
    fill_resources(plan, folded, arena, program);
    fill_tiers(plan, folded, arena, program);
    program->streams = plan->streams;
    program->stream_count = plan->stream_count;
    program->mem_kinds = plan->mem_kinds;
    program->mem_kind_count = plan->mem_kind_count;
    program->rate_grain = plan->rate_grain;
    program->capacity_event_count = plan->capacity_event_count;
    program->capacity_events = folded ? fold_events(plan, resources, arena) : plan->capacity_events;
    program->rank_speed = plan->rank_speed;
    if (folded && plan->rank_speed != NULL) {
        int32_t *speed = ORR_ARENA_NEW(arena, int32_t, plan->shape.ranks);
        for (int r = 0; r < plan->shape.ranks; r++)
            speed[r] = plan->rank_speed[r * replicas_of(plan)];
        program->rank_speed = speed;
    }
}
