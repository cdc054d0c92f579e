/* workload/split_layouts.c - see split_layouts.h. Tested: unit/workload/test_split.c */
#include "workload/split_layouts.h"

#include <stdlib.h>
#include <string.h>

#include "sim/picoseconds.h"

GError **splits_why(const SplitSearch *search)
{
    return *search->first == NULL ? search->first : NULL;
}

int64_t splits_bound_ps(const SplitSearch *search, const SplitRow *row, int64_t training_ps)
{
    const int64_t generation_ps = sim_ps(search->degree[row->degree].answers[row->apart].seconds);
    const bool ahead = row->apart > 0 && search->spec->workload.staleness_steps > 0;
    return ahead ? MAX(generation_ps, training_ps) : sim_sum(generation_ps, training_ps);
}

static int by_time(const void *a, const void *b)
{
    const SplitChoice *x = a, *y = b;
    return x->ps != y->ps ? (x->ps > y->ps) - (x->ps < y->ps) : x->layout - y->layout;
}

static void ask_choice(const SplitSearch *search, const SplitRow *row, int role, int layout, OrrArena *arena,
                       SplitChoices *choices)
{
    const Spec *roles[SPEC_MOST_ROLES] = {NULL};
    const WorkloadSplit split = {.roles = roles, .nodes = row->nodes, .apart = row->apart};
    SplitChoice *choice = &choices->choice[choices->count];
    roles[role] = search->layout[layout].roles[role];
    if (roles[role] == NULL)
        return;
    workload_keep(search->spec, search->source, &split, role, arena, &choice->kept, splits_why(search));
    orr_arena_clear(arena);
    choice->layout = layout;
    choice->ps = 0;
    for (int i = 0; i < search->spec->workload.phase_count; i++)
        if (choice->kept.phase[i].phase != NULL && choice->kept.phase[i].phase->role == role)
            choice->ps = sim_sum(choice->ps, choice->kept.phase[i].ps);
    choices->count += !choice->kept.refused;
}

static const SplitChoices *choices_of(const SplitSearch *search, const SplitRow *row, int role,
                                      OrrArena *arena)
{
    SplitChoices *choices = &search->choices[role][2 * (row->nodes - 1) + (row->apart == 0)];
    if (!choices->asked) {
        choices->asked = true;
        choices->choice = g_new0(SplitChoice, (gsize)search->layout_count);
        for (int layout = 0; layout < search->layout_count; layout++)
            ask_choice(search, row, role, layout, arena, choices);
        qsort(choices->choice, (size_t)choices->count, sizeof(SplitChoice), by_time);
        choices->choice = g_renew(SplitChoice, choices->choice, MAX(1, choices->count));
    }
    return choices;
}

typedef struct Descent {
    const SplitSearch *search;
    OrrArena *arena;
    const SplitChoices *choices[SPEC_MOST_ROLES]; /* of the roles that compute, in their order */
    const SplitChoice *chosen[SPEC_MOST_ROLES];
    int64_t rest_ps[SPEC_MOST_ROLES + 1]; /* that those from here on take at least */
    int64_t limit_ps;                     /* steps that are no shorter are of no use */
    bool cut;                             /* something was left out for that */
    SplitRow *row;
} Descent;

/* Whether each of those chosen has room beside what the others keep. */
static bool has_room(const Descent *descent, int count)
{
    for (int i = 0; i < count; i++) {
        const WorkloadRole *own = &descent->chosen[i]->kept.role;
        double needed = own->needed_bytes;
        for (int j = 0; j < count; j++)
            needed += j != i && !descent->chosen[j]->kept.role.role->offloaded
                          ? descent->chosen[j]->kept.role.resting_bytes
                          : 0;
        if (own->capacity_bytes > 0 && needed > own->capacity_bytes)
            return false;
    }
    return true;
}

static void ask_chosen(Descent *descent)
{
    const SplitSearch *search = descent->search;
    SplitRow *row = descent->row;
    const SplitDegree *degree = &search->degree[row->degree];
    const Spec *roles[SPEC_MOST_ROLES];
    const WorkloadKept *kept[SPEC_MOST_ROLES] = {NULL};
    memcpy(roles, search->roles, (size_t)search->spec->workload.role_count * sizeof *roles);
    roles[search->generator] = degree->role;
    for (int i = 0; i < search->computing_count; i++) {
        const int role = search->computing[i];
        roles[role] = search->layout[descent->chosen[i]->layout].roles[role];
        kept[role] = &descent->chosen[i]->kept;
    }
    const WorkloadSplit split = {.roles = roles,
                                 .nodes = row->nodes,
                                 .apart = row->apart,
                                 .answer = &degree->answers[row->apart],
                                 .kept = kept};
    const WorkloadAsk ask = {.split = &split};
    Workload *workload = ORR_ARENA_NEW(descent->arena, Workload, 1);
    if (workload_ask(search->spec, search->source, &ask, descent->arena, workload, splits_why(search)) &&
        workload->fits) {
        descent->cut = true;
        if (workload->step_ps >= descent->limit_ps)
            return;
        descent->limit_ps = row->step_ps = workload->step_ps;
        row->tokens_per_s = workload->tokens_per_s;
        row->tokens_per_s_per_gpu = workload->tokens_per_s_per_gpu;
        row->bound_by = workload_bound_word(workload);
        for (int i = 0; i < search->computing_count; i++)
            row->train[search->computing[i]] =
                spec_role_has_layout(&search->spec->workload.role[search->computing[i]])
                    ? (SpecRanks){roles[search->computing[i]]->parallel.tensor,
                                  roles[search->computing[i]]->parallel.pipeline,
                                  roles[search->computing[i]]->parallel.context}
                    : search->layout[descent->chosen[i]->layout].ranks;
    }
}

/* A layout for each role in turn, the fastest first. A step is no shorter than its phases: what cannot win is left out. */
static void descend(Descent *descent, int level, int64_t ps)
{
    if (splits_bound_ps(descent->search, descent->row, sim_sum(ps, descent->rest_ps[level])) >=
        descent->limit_ps) {
        descent->cut = true;
        return;
    }
    if (!has_room(descent, level))
        return;
    if (level == descent->search->computing_count) {
        ask_chosen(descent);
        orr_arena_clear(descent->arena);
        return;
    }
    for (int i = 0; i < descent->choices[level]->count; i++) {
        descent->chosen[level] = &descent->choices[level]->choice[i];
        descend(descent, level + 1, sim_sum(ps, descent->chosen[level]->ps));
    }
}

bool splits_ask_layouts(const SplitSearch *search, int64_t limit_ps, OrrArena *arena, SplitRow *row,
                        bool *ret_cut)
{
    Descent descent = {.search = search, .arena = arena, .limit_ps = limit_ps, .row = row};
    row->train_gpus = row->nodes * search->spec->cluster.gpus_per_node;
    row->rollout_gpus = row->apart > 0 ? row->apart * search->spec->cluster.gpus_per_node : row->train_gpus;
    for (int i = search->computing_count - 1; i >= 0; i--) {
        descent.choices[i] = choices_of(search, row, search->computing[i], arena);
        if (descent.choices[i]->count == 0)
            return false;
        descent.rest_ps[i] = sim_sum(descent.rest_ps[i + 1], descent.choices[i]->choice[0].ps);
    }
    descend(&descent, 0, 0);
    *ret_cut = descent.cut;
    return row->step_ps > 0;
}
