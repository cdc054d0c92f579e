/* step/paced.c - see paced.h. */
#include "step/paced.h"

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

/* Capacities of rows that are not full, at the first instant, and speeds that are not; NULL: all are. */
static const int32_t *speeds_of(const SimPace *paces, int ranks, OrrArena *arena)
{
    int32_t *speeds = ORR_ARENA_NEW(arena, int32_t, ranks);
    bool slow = false;
    for (int r = 0; r < ranks; r++) {
        speeds[r] = paces[r].speed;
        slow |= paces[r].speed < SIM_FULL_RATE;
    }
    return slow ? speeds : NULL;
}

static const SimCapacityEvent *events_of(const SimPace *paces, int ranks, OrrArena *arena, int64_t *ret_count)
{
    SimCapacityEvent *events = ORR_ARENA_NEW(arena, SimCapacityEvent, 2 * (int64_t)ranks);
    int64_t count = 0;
    for (int r = 0; r < ranks; r++) {
        if (paces[r].scale_up < SIM_WHOLE_RESOURCE)
            events[count++] = (SimCapacityEvent){
                .resource = SIM_RESOURCE_SCALE_UP, .instance = r, .capacity = paces[r].scale_up};
        if (paces[r].scale_out < SIM_WHOLE_RESOURCE)
            events[count++] = (SimCapacityEvent){
                .resource = SIM_RESOURCE_SCALE_OUT, .instance = r, .capacity = paces[r].scale_out};
    }
    *ret_count = count;
    return events;
}

static void set_paces(SimPlan *plan, const SimPace *paces, int ranks, OrrArena *arena)
{
    g_assert(plan->rank_speed == NULL && plan->capacity_event_count == 0);
    plan->rank_speed = speeds_of(paces, ranks, arena);
    plan->capacity_events = events_of(paces, ranks, arena, &plan->capacity_event_count);
}

static bool run(SimProgram *program, const SimFurnish *furnish, OrrArena *arena, SimPacedStep *ret_step,
                GError **error)
{
    SimResult result;
    if ((furnish != NULL && !furnish->add(furnish->user, program, arena, error)) ||
        !sim_engine_run(program, 0, arena, &result, error))
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

static bool is_mixed(const SimKinds *kinds)
{
    return kinds != NULL && kinds->count > 0;
}

/* The first replica of each kind and pace; their number. */
static int different_columns(const SimPlan *plan, const SimKinds *kinds, const SimPace *columns,
                             const bool *kept, int *ret_first)
{
    const int *kind_of = is_mixed(kinds) ? kinds->kind_of_replica : NULL;
    int count = 0;
    for (int d = 0; d < plan->data; d++) {
        int i = 0;
        if (kept != NULL && !kept[d])
            continue;
        while (i < count && !((kind_of == NULL || kind_of[ret_first[i]] == kind_of[d]) &&
                              same_column(columns, plan->shape.ranks, plan->data, ret_first[i], d)))
            i++;
        if (i == count)
            ret_first[count++] = d;
    }
    g_assert(count > 0);
    return count;
}

/* Paces of replicas first[count], of which one rank of each pipeline rank stands for its tensor and context group. */
static SimPace *folded_paces(const SimPlan *plan, const SimPace *columns, const int *first, int count,
                             OrrArena *arena)
{
    SimPace *paces = ORR_ARENA_NEW(arena, SimPace, (int64_t)plan->shape.ranks * count);
    for (int p = 0; p < plan->shape.ranks; p++)
        for (int i = 0; i < count; i++)
            paces[p * count + i] = columns[p * plan->data + first[i]];
    return paces;
}

static bool build_alike(const SimPlan *plan, const SimPace *paces, int count, OrrArena *arena,
                        SimProgram *ret_program, GError **error)
{
    SimPlan folded = *plan;
    folded.tensor = folded.context = 1;
    folded.data = count;
    set_paces(&folded, paces, plan->shape.ranks * count, arena);
    return sim_program_build(&folded, false, arena, ret_program, error);
}

/* The same of a mixed cluster: each is a kind of its own. */
static bool build_mixed(const SimKinds *kinds, const SimPace *paces, const int *first, int count,
                        OrrArena *arena, SimProgram *ret_program, GError **error)
{
    SimKind *own = ORR_ARENA_NEW(arena, SimKind, count);
    const SimKinds all = {.count = count, .ranks = kinds->ranks, .kinds = own};
    for (int i = 0; i < count; i++)
        own[i] = kinds->kinds[kinds->kind_of_replica[first[i]]];
    if (!sim_kinds_program(&all, false, arena, ret_program, error))
        return false;
    ret_program->rank_speed = speeds_of(paces, kinds->ranks * count, arena);
    ret_program->capacity_events =
        events_of(paces, kinds->ranks * count, arena, &ret_program->capacity_event_count);
    return true;
}

bool sim_run_columns(const SimPlan *plan, const SimKinds *kinds, const SimPace *columns, const bool *kept,
                     const SimFurnish *furnish, OrrArena *arena, SimPacedStep *ret_step, GError **error)
{
    g_assert(sim_paces_fold(plan));
    int *first = ORR_ARENA_NEW(arena, int, plan->data);
    const int count = different_columns(plan, kinds, columns, kept, first);
    const SimPace *paces = folded_paces(plan, columns, first, count, arena);
    SimProgram program;
    if (!(is_mixed(kinds) ? build_mixed(kinds, paces, first, count, arena, &program, error)
                          : build_alike(plan, paces, count, arena, &program, error)) ||
        !run(&program, furnish, arena, ret_step, error))
        return false;
    ret_step->kinds = count;
    return true;
}

bool sim_run_paces(const SimPlan *plan, const SimPace *paces, const SimFurnish *furnish, OrrArena *arena,
                   SimPacedStep *ret_step, GError **error)
{
    SimPlan slow = *plan;
    set_paces(&slow, paces, plan->shape.ranks * plan->tensor * plan->context * plan->data, arena);
    SimProgram program;
    if (!sim_program_build(&slow, false, arena, &program, error) ||
        !run(&program, furnish, arena, ret_step, error))
        return false;
    ret_step->kinds = plan->data;
    return true;
}
