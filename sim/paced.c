/* sim/paced.c - see paced.h. */
#include "sim/paced.h"

#include <string.h>

bool sim_paces_fold(const SimPlan *plan)
{
    for (int i = 0; i < plan->resource_count; i++)
        if (plan->resources[i].sharers != 1)
            return false;
    for (int i = 0; i < plan->tier_count; i++)
        if (plan->tier_sharers[i] > 1)
            return false;
    return plan->servers == NULL;
}

void sim_paces_of_columns(const SimPlan *plan, const SimPace *paces, SimPace *ret_columns)
{
    const int group = plan->tensor * plan->context, columns = plan->shape.ranks * plan->data;
    for (int c = 0; c < columns; c++) {
        SimPace pace = SIM_FULL_PACE;
        for (int i = 0; i < group; i++) {
            const SimPace *own = &paces[(int64_t)c * group + i];
            pace.speed = MIN(pace.speed, own->speed);
            pace.scale_up = MIN(pace.scale_up, own->scale_up);
            pace.scale_out = MIN(pace.scale_out, own->scale_out);
        }
        ret_columns[c] = pace;
    }
}

/* Capacities of rows that are not full, at the first instant, and speeds that are not. */
static void set_paces(SimPlan *plan, const SimPace *paces, int ranks, OrrArena *arena)
{
    int32_t *speeds = ORR_ARENA_NEW(arena, int32_t, ranks);
    SimCapacityEvent *events = ORR_ARENA_NEW(arena, SimCapacityEvent, 2 * (int64_t)ranks);
    int64_t count = 0;
    bool slow = false;
    g_assert(plan->rank_speed == NULL && plan->capacity_event_count == 0);
    for (int r = 0; r < ranks; r++) {
        speeds[r] = paces[r].speed;
        slow |= paces[r].speed < SIM_FULL_RATE;
        if (paces[r].scale_up < SIM_WHOLE_RESOURCE)
            events[count++] = (SimCapacityEvent){
                .resource = SIM_RESOURCE_SCALE_UP, .instance = r, .capacity = paces[r].scale_up};
        if (paces[r].scale_out < SIM_WHOLE_RESOURCE)
            events[count++] = (SimCapacityEvent){
                .resource = SIM_RESOURCE_SCALE_OUT, .instance = r, .capacity = paces[r].scale_out};
    }
    plan->rank_speed = slow ? speeds : NULL;
    plan->capacity_events = events;
    plan->capacity_event_count = count;
}

static bool run(const SimPlan *plan, OrrArena *arena, SimPacedStep *ret_step, GError **error)
{
    SimProgram program;
    SimResult result;
    if (!sim_program_build(plan, false, arena, &program, error) ||
        !sim_engine_run(&program, 0, arena, &result, error))
        return false;
    *ret_step = (SimPacedStep){.step_ps = result.step_ps, .ranks = result.ranks};
    return true;
}

static bool same_column(const SimPace *columns, int ranks, int data, int a, int b)
{
    for (int p = 0; p < ranks; p++) {
        const SimPace *x = &columns[p * data + a], *y = &columns[p * data + b];
        if (x->speed != y->speed || x->scale_up != y->scale_up || x->scale_out != y->scale_out)
            return false;
    }
    return true;
}

bool sim_run_columns(const SimPlan *plan, const SimPace *columns, const bool *kept, OrrArena *arena,
                     SimPacedStep *ret_step, GError **error)
{
    const int ranks = plan->shape.ranks;
    g_assert(sim_paces_fold(plan));
    int *kinds = ORR_ARENA_NEW(arena, int, plan->data);
    int count = 0;
    for (int d = 0; d < plan->data; d++) {
        int kind = 0;
        if (kept != NULL && !kept[d])
            continue;
        while (kind < count && !same_column(columns, ranks, plan->data, kinds[kind], d))
            kind++;
        if (kind == count)
            kinds[count++] = d;
    }
    g_assert(count > 0);
    SimPace *paces = ORR_ARENA_NEW(arena, SimPace, (int64_t)ranks * count);
    for (int p = 0; p < ranks; p++)
        for (int kind = 0; kind < count; kind++)
            paces[p * count + kind] = columns[p * plan->data + kinds[kind]];
    SimPlan folded = *plan;
    folded.tensor = folded.context = 1;
    folded.data = count;
    set_paces(&folded, paces, ranks * count, arena);
    if (!run(&folded, arena, ret_step, error))
        return false;
    ret_step->kinds = count;
    return true;
}

bool sim_run_paces(const SimPlan *plan, const SimPace *paces, OrrArena *arena, SimPacedStep *ret_step,
                   GError **error)
{
    SimPlan slow = *plan;
    set_paces(&slow, paces, plan->shape.ranks * plan->tensor * plan->context * plan->data, arena);
    if (!run(&slow, arena, ret_step, error))
        return false;
    ret_step->kinds = plan->data;
    return true;
}
