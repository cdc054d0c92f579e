/* step/kinds.c - plans of the kinds of replicas in a mixed cluster. */
#include <string.h>

#include "step/kinds.h"
#include "program/shares.h"
#include "step/step.h"
#include "spec/groups.h"
#include "spec/placement.h"

typedef struct Mixer {
    const Spec *spec;
    OrrArena *arena;
    int ranks, data;
    int *group_of; /* [pipeline rank x data + data rank] */
    SimPlan *base; /* the first plan: all have its units of what a node shares */
} Mixer;

/* --- who lies where --- */

bool sim_kinds_places(const Spec *spec, int *ret_groups, GError **error)
{
    SpecPlacement at;
    spec_placement(spec, &at);
    for (int p = 0; p < at.pipeline.size; p++)
        for (int d = 0; d < at.data.size; d++) {
            const int64_t first = p * at.pipeline.stride + d * at.data.stride;
            int *group = &ret_groups[p * at.data.size + d];
            *group = spec_group_of_gpu(spec, first);
            for (int i = 1; i < at.tensor.size * at.context.size; i++) {
                const int64_t gpu =
                    first + i % at.tensor.size * at.tensor.stride + i / at.tensor.size * at.context.stride;
                const int other = spec_group_of_gpu(spec, gpu);
                if (other != *group)
                    return orr_fail(
                        error, ORR_ERROR_INPUT,
                        "cluster.groups: the %d x %d GPUs of a tensor and context group would be of \"%s\" "
                        "and \"%s\"; give groups of whole ones, smaller degrees, or another parallel.order",
                        at.tensor.size, at.context.size, spec->cluster.groups[*group].name,
                        spec->cluster.groups[other].name);
            }
        }
    return true;
}

static int microbatches_of(const Mixer *mixer, int replica)
{
    const SpecParallel *parallel = &mixer->spec->parallel;
    return parallel->replica_microbatches_count > 0 ? parallel->replica_microbatches[replica]
                                                    : spec_microbatches(mixer->spec);
}

static bool alike(const Mixer *mixer, int a, int b)
{
    for (int p = 0; p < mixer->ranks; p++)
        if (mixer->group_of[p * mixer->data + a] != mixer->group_of[p * mixer->data + b])
            return false;
    return microbatches_of(mixer, a) == microbatches_of(mixer, b);
}

/* --- a kind's plan from those of its groups --- */

static const SimWork *longer(const SimWork *a, const SimWork *b)
{
    return sim_work_duration_ps(b) > sim_work_duration_ps(a) ? b : a;
}

static int rank_of(const SimPlan *plan, int stage)
{
    int rank = 0, chunk = 0;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &chunk);
    return rank;
}

static void mix_stages(const SimPlan *const *of_group, const int *group_of_rank, SimPlan *plan)
{
    const int stages = plan->shape.ranks * plan->shape.chunks;
    for (int s = 0; s < stages; s++) {
        const SimPlan *own = of_group[group_of_rank[rank_of(plan, s)]];
        plan->stages[s] = own->stages[s];
        if (s + 1 < stages) {
            const SimPlan *next = of_group[group_of_rank[rank_of(plan, s + 1)]];
            plan->stages[s].send_next = *longer(&own->stages[s].send_next, &next->stages[s].send_next);
        }
        if (s > 0) {
            const SimPlan *before = of_group[group_of_rank[rank_of(plan, s - 1)]];
            plan->stages[s].send_prev = *longer(&own->stages[s].send_prev, &before->stages[s].send_prev);
        }
    }
}

static void mix(const SimPlan *const *of_group, const int *group_of_rank, OrrArena *arena, SimPlan *plan)
{
    *plan = *of_group[group_of_rank[0]];
    const int ranks = plan->shape.ranks;
    const SimPlan *last = of_group[group_of_rank[ranks - 1]];
    plan->stages = ORR_ARENA_NEW(arena, SimStage, ranks * plan->shape.chunks);
    plan->ranks = ORR_ARENA_NEW(arena, SimRankPlan, ranks);
    mix_stages(of_group, group_of_rank, plan);
    plan->head_left_out = last->head_left_out;
    plan->head_later = last->head_later;
    plan->head_held_bytes = last->head_held_bytes;
    for (int p = 0; p < ranks; p++) {
        const SimPlan *own = of_group[group_of_rank[p]];
        plan->ranks[p] = own->ranks[p];
        plan->grad_norm = *longer(&plan->grad_norm, &own->grad_norm);
        plan->stage_norm = *longer(&plan->stage_norm, &own->stage_norm);
        plan->norm_hop = *longer(&plan->norm_hop, &own->norm_hop);
        plan->overhead = *longer(&plan->overhead, &own->overhead);
    }
}

/* Who shares a host with a replica's GPUs does the same at any instant: the replicas of each node are of one kind. */
static bool shares_alike(const Mixer *mixer, int replica, const SimPlan *plan, GError **error)
{
    const int each = plan->tensor * plan->context, sharers = sim_plan_sharers(plan);
    const int replicas = MAX(1, sharers / each), first = replica / replicas * replicas;
    bool same = each * plan->data % sharers == 0;
    for (int d = first; same && d < MIN(first + replicas, mixer->data); d++)
        same = alike(mixer, first, d);
    return same ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "offload: in cluster.groups the %d GPUs that share a host must be of one pipeline rank; "
                    "their replicas must have the same kinds elsewhere and take as many micro-batches; give "
                    "larger tensor degrees, groups or data degrees in whole nodes, or offload none",
                    sharers);
}

/* What one group does of `replica`'s kind, with `window` layers of weights on the GPU; 0: as many as it takes. */
static bool plan_group(Mixer *mixer, int replica, int group, int window, SimPlan *plan, GError **error)
{
    const Spec *spec = mixer->spec;
    g_autofree Spec *alone = g_new(Spec, 1);
    spec_group_alone(spec, group, alone);
    alone->parallel.replica_microbatches_count = 0;
    alone->training.global_batch =
        microbatches_of(mixer, replica) * spec->training.micro_batch * spec->parallel.data;
    if (window > 0)
        alone->offload.window_layers = window;
    if (!sim_step_plan(alone, mixer->arena, plan, error) || !sim_step_fits_clock(alone, plan, error) ||
        !shares_alike(mixer, replica, plan, error))
        return false;
    sim_plan_own_shares(plan, mixer->arena);
    if (mixer->base == NULL)
        *(mixer->base = ORR_ARENA_NEW(mixer->arena, SimPlan, 1)) = *plan;
    sim_plan_rescale(plan, mixer->base);
    return true;
}

/* The plan of `replica`'s kind. */
static bool plan_kind(Mixer *mixer, int replica, SimKind *kind, GError **error)
{
    SimPlan *of_group[SPEC_MOST_GROUPS] = {NULL};
    int *groups = ORR_ARENA_NEW(mixer->arena, int, mixer->ranks), window = 0;
    for (int p = 0; p < mixer->ranks; p++) {
        const int group = groups[p] = mixer->group_of[p * mixer->data + replica];
        if (of_group[group] != NULL)
            continue;
        of_group[group] = ORR_ARENA_NEW(mixer->arena, SimPlan, 1);
        if (!plan_group(mixer, replica, group, 0, of_group[group], error))
            return false;
        window = MAX(window, of_group[group]->offload.window);
    }
    for (int g = 0; g < SPEC_MOST_GROUPS; g++) /* one window for all: the largest that any of them takes */
        if (of_group[g] != NULL && of_group[g]->offload.window != window &&
            !plan_group(mixer, replica, g, window, of_group[g], error))
            return false;
    mix((const SimPlan *const *)of_group, groups, mixer->arena, &kind->plan);
    kind->group_of_rank = groups;
    return true;
}

/* Gathers and reductions of each micro-batch join all replicas: they must have as many. */
static bool meets_each_microbatch(const SimPlan *plan)
{
    return plan->zero == 3 || plan->reduce_each_microbatch;
}

/* Kinds as replicas bring them; kind_of: [data]. */
static bool sort_replicas(Mixer *mixer, bool apart, GArray *kinds, int *kind_of, GError **error)
{
    g_autoptr(GArray) first = g_array_new(FALSE, FALSE, sizeof(int)); /* replica of each kind */
    for (int d = 0; d < mixer->data; d++) {
        guint kind = apart ? kinds->len : 0;
        while (kind < kinds->len && !alike(mixer, g_array_index(first, int, kind), d))
            kind++;
        if (kind == kinds->len) {
            SimKind own = {0};
            if (kind > 0 && apart && alike(mixer, 0, d))
                own = g_array_index(kinds, SimKind, 0);
            else if (!plan_kind(mixer, d, &own, error))
                return false;
            own.replicas = 0;
            g_array_append_val(kinds, own);
            g_array_append_val(first, d);
        }
        const SimPlan *plan = &g_array_index(kinds, SimKind, kind).plan,
                      *one = &g_array_index(kinds, SimKind, 0).plan;
        if (meets_each_microbatch(one) && plan->shape.microbatches != one->shape.microbatches)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "parallel.replica_microbatches: replicas that gather or reduce in each "
                            "micro-batch (zero %d) need as many; leave it out, or give zero 0 or 1",
                            mixer->spec->parallel.zero);
        g_array_index(kinds, SimKind, kind).replicas++;
        kind_of[d] = (int)kind;
    }
    return true;
}

bool sim_kinds_plan(const Spec *spec, bool apart, OrrArena *arena, SimKinds *ret_kinds, GError **error)
{
    Mixer mixer = {
        .spec = spec, .arena = arena, .ranks = spec->parallel.pipeline, .data = spec->parallel.data};
    g_assert(spec->cluster.group_count > 0);
    mixer.group_of = ORR_ARENA_NEW(arena, int, (int64_t)mixer.ranks *mixer.data);
    if (!sim_kinds_places(spec, mixer.group_of, error))
        return false;
    int *kind_of = ORR_ARENA_NEW(arena, int, mixer.data);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(SimKind));
    if (!sort_replicas(&mixer, apart, found, kind_of, error))
        return false;
    SimKind *kinds = ORR_ARENA_NEW(arena, SimKind, found->len);
    memcpy(kinds, found->data, sizeof *kinds * found->len);
    *ret_kinds = (SimKinds){
        .count = (int)found->len, .ranks = mixer.ranks, .kinds = kinds, .kind_of_replica = kind_of};
    return true;
}
