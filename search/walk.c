/* search/walk.c - see walk.h. */
#include "search/walk.h"

#include <string.h>

#include "search/bound_parts.h"
#include "search/late.h"
#include "search/limits.h"
#include "search/mixed.h"

bool search_beyond(const SearchLimit *limit, int64_t least_ps, SearchId id)
{
    if (least_ps != limit->step_ps)
        return least_ps > limit->step_ps;
    return search_id_compare(&id, &limit->id) > 0;
}

int search_candidate_compare(const void *a, const void *b)
{
    const SearchCandidate *x = a, *y = b;
    if (x->least_ps != y->least_ps)
        return x->least_ps < y->least_ps ? -1 : 1;
    return search_id_compare(&x->id, &y->id);
}

int search_miss_compare(const void *a, const void *b)
{
    const SearchCandidate *x = a, *y = b;
    if (x->short_bytes < y->short_bytes || x->short_bytes > y->short_bytes)
        return x->short_bytes < y->short_bytes ? -1 : 1;
    return search_candidate_compare(a, b);
}

/* Policies that differ in overlap flags alone. */
typedef struct Kind {
    int first, count;
    bool timed; /* the times of `data` are filled in */
    SearchDataCosts data[SEARCH_SAMPLES];
    SearchStageData *stages; /* NULL: not asked for yet */
} Kind;

/* What a group needs while it is walked. */
typedef struct Walker {
    SearchWorker *worker;
    const SearchLimit *limit;
    SearchLimit own;                   /* where only the first is wanted: the first so far */
    double most_bytes, capacity_bytes; /* of the GPU; that a point of the recomputation at hand may need */
    SearchWalk *walk;
    SearchPolicy *policies;
    int policy_count;
    Kind *kinds;
    int kind_count;
    SearchId id;
    GArray *open; /* Open: points of the recomputation at hand that the cheap bounds do not rule out */
} Walker;

typedef struct Open {
    SearchCandidate candidate;
    Kind *kind;
    bool judged, gone; /* after a replay; and ruled out */
} Open;

/* Points that take at least so long. */
static void take_capacity(Walker *walker, int64_t least_ps)
{
    walker->capacity_bytes = walker->most_bytes;
    if (walker->walk->front != NULL) /* as much as a run on it is too much */
        walker->capacity_bytes =
            MIN(walker->most_bytes, search_front_bytes(walker->walk->front, least_ps) - 1);
}

static void keep_miss(GArray *misses, const SearchCandidate *candidate)
{
    guint at = misses->len;
    while (at > 0 && search_miss_compare(candidate, &g_array_index(misses, SearchCandidate, at - 1)) < 0)
        at--;
    if (at >= SEARCH_MISSES)
        return;
    g_array_insert_val(misses, at, *candidate);
    if (misses->len > SEARCH_MISSES)
        g_array_set_size(misses, SEARCH_MISSES);
}

static const SearchDataCosts *timed_data(Walker *walker, Kind *kind)
{
    if (!kind->timed)
        search_worker_data(walker->worker, &walker->policies[kind->first], kind->data);
    kind->timed = true;
    return kind->data;
}

/* How a policy of the kind runs; `whole`: with its gathers and reductions, where it has any beside passes. */
static SearchWay way_of(Walker *walker, Kind *kind, int policy, bool whole)
{
    SearchWorker *worker = walker->worker;
    SearchWay way = search_way(worker, &walker->policies[policy]);
    const bool any = way.gathers != STEP_GATHERS_NONE || way.reduces != STEP_REDUCES_LATE;
    if (!(whole ? any : way.gathers == STEP_GATHERS_USE))
        return way;
    if (kind->stages == NULL) {
        kind->stages = g_new(SearchStageData, (gsize)(worker->ranks * search_stages_of_rank(worker)));
        search_worker_stages(worker, &walker->policies[policy], kind->stages);
    }
    way.stages = kind->stages;
    return way;
}

static SearchCandidate bounded(Walker *walker, Kind *kind, int policy, int64_t compute_ps)
{
    SearchCandidate candidate = {.id = walker->id, .kind = SEARCH_BOUND_PIPELINE, .least_ps = compute_ps};
    const SearchWay way = way_of(walker, kind, policy, false);
    const int64_t least_ps =
        search_bound_time(walker->worker, &walker->policies[policy], timed_data(walker, kind), &way);
    candidate.id.policy = policy;
    if (least_ps > compute_ps) {
        candidate.least_ps = least_ps;
        candidate.kind = SEARCH_BOUND_DATA;
    }
    return candidate;
}

/* A kind that needs too much memory: its quickest policy is a miss if its time would do. */
static void judge_miss(Walker *walker, Kind *kind, int64_t compute_ps, double short_bytes)
{
    const GArray *misses = walker->walk->misses;
    if (misses->len == SEARCH_MISSES &&
        short_bytes >= g_array_index(misses, SearchCandidate, SEARCH_MISSES - 1).short_bytes)
        return;
    SearchCandidate best = {.least_ps = INT64_MAX};
    for (int i = kind->first; i < kind->first + kind->count; i++) {
        const SearchCandidate candidate = bounded(walker, kind, i, compute_ps);
        if (candidate.least_ps < best.least_ps)
            best = candidate;
    }
    best.short_bytes = short_bytes;
    if (!search_beyond(walker->limit, best.least_ps, best.id))
        keep_miss(walker->walk->misses, &best);
}

static void judge_kind(Walker *walker, Kind *kind, int64_t compute_ps)
{
    SearchWalk *walk = walker->walk;
    for (int i = kind->first; i < kind->first + kind->count; i++) {
        SearchCandidate candidate = bounded(walker, kind, i, compute_ps);
        walk->evaluated++;
        if (search_beyond(walker->limit, candidate.least_ps, candidate.id)) {
            walk->pruned[candidate.kind]++;
            continue;
        }
        candidate.least_bytes = search_bound_bytes(walker->worker, &walker->policies[i], kind->data);
        candidate.short_bytes = candidate.least_bytes - walker->capacity_bytes;
        if (candidate.short_bytes > 0) {
            walk->pruned[SEARCH_BOUND_MEMORY]++;
            keep_miss(walk->misses, &candidate);
        } else {
            const Open open = {candidate, kind, false, false};
            g_array_append_val(walker->open, open);
        }
    }
}

/* Every policy of an recomputation that its own bound does not rule out. */
static void judge(Walker *walker, int64_t compute_ps)
{
    for (int k = 0; k < walker->kind_count; k++) {
        Kind *kind = &walker->kinds[k];
        if (walker->walk->mode >= SEARCH_WALK_UNSHARDED && walker->policies[kind->first].zero >= 3)
            continue;
        const double short_bytes =
            search_bound_bytes(walker->worker, &walker->policies[kind->first], kind->data) -
            walker->capacity_bytes;
        const double overlapped =
            search_bound_bytes(walker->worker, &walker->policies[kind->first + kind->count - 1], kind->data) -
            walker->capacity_bytes;
        if (MIN(short_bytes, overlapped) > 0) {
            walker->walk->pruned[SEARCH_BOUND_MEMORY] += kind->count;
            judge_miss(walker, kind, compute_ps, MIN(short_bytes, overlapped));
        } else {
            judge_kind(walker, kind, compute_ps);
        }
    }
}

static void survive(Walker *walker, const SearchCandidate *candidate)
{
    SearchWalk *walk = walker->walk;
    if (search_candidate_compare(candidate, &walk->first) < 0) {
        walk->first = *candidate;
        walker->own = (SearchLimit){candidate->least_ps, candidate->id};
    }
    if (walk->mode == SEARCH_WALK_ALL)
        g_array_append_vals(walk->survivors, candidate, 1);
}

/* Bounds an open point again after a replay; false when it is ruled out. */
static bool judge_replayed(Walker *walker, Open *open, int64_t compute_ps, bool memory)
{
    SearchWalk *walk = walker->walk;
    SearchCandidate *candidate = &open->candidate;
    const int policy = candidate->id.policy;
    const SearchCandidate again = bounded(walker, open->kind, policy, compute_ps);
    if (again.least_ps > candidate->least_ps) {
        candidate->least_ps = again.least_ps;
        candidate->kind = SEARCH_BOUND_REPLAY;
    }
    if (search_beyond(walker->limit, candidate->least_ps, candidate->id)) {
        walk->pruned[SEARCH_BOUND_REPLAY]++;
        return false;
    }
    if (!memory)
        return true;
    const double sampled = search_bound_bytes(walker->worker, &walker->policies[policy], open->kind->data);
    candidate->least_bytes = MAX(sampled, search_replay_bytes(walker->worker, &walker->policies[policy]));
    candidate->short_bytes = candidate->least_bytes - walker->capacity_bytes;
    if (candidate->short_bytes <= 0)
        return true;
    walk->pruned[SEARCH_BOUND_MEMORY]++;
    keep_miss(walk->misses, candidate);
    return false;
}

/* Gathers and reductions of several kinds may take the same. */
static bool same_way(const SearchWorker *worker, const SearchWay *a, const SearchWay *b)
{
    const size_t stages = (size_t)(worker->ranks * search_stages_of_rank(worker));
    return a->blocking == b->blocking && a->sharded == b->sharded && a->gathers == b->gathers &&
           a->reduces == b->reduces &&
           (a->stages == b->stages || memcmp(a->stages, b->stages, sizeof *a->stages * stages) == 0);
}

/* Replays the recomputation's schedule the way of open point `from` and bounds all that run it so again; `data`: with their
 * gathers and reductions, else passes alone. */
static void replay_way(Walker *walker, const SpecRecompute *recompute, guint from, int64_t compute_ps,
                       bool data)
{
    SearchWorker *worker = walker->worker;
    SearchWay way = {0};
    for (guint i = from; i < walker->open->len; i++) {
        Open *open = &g_array_index(walker->open, Open, i);
        if (open->judged)
            continue;
        SearchWay own = way_of(walker, open->kind, open->candidate.id.policy, data);
        if (!data)
            own = (SearchWay){.blocking = own.blocking, .sharded = own.sharded};
        if (i == from) {
            way = own;
            search_worker_recompute(worker, recompute);
            if (!data)
                search_worker_activations(worker, recompute);
            if (!data || way.stages != NULL)
                search_worker_replay(worker, recompute, &way);
        }
        if (!same_way(worker, &own, &way))
            continue;
        open->judged = true;
        open->gone = !judge_replayed(walker, open, compute_ps, !data);
    }
}

/* Replays each way that open points run the recomputation's schedule, first its passes alone, then with all that is beside
 * them: the first serves many points, the second few. */
static void replay_all(Walker *walker, const SpecRecompute *recompute, int64_t compute_ps)
{
    for (int data = 0; data < 2; data++) {
        for (guint i = 0; i < walker->open->len; i++)
            if (!g_array_index(walker->open, Open, i).judged)
                replay_way(walker, recompute, i, compute_ps, data != 0);
        for (guint i = 0; i < walker->open->len; i++) {
            Open *open = &g_array_index(walker->open, Open, i);
            open->judged = open->gone;
        }
    }
}

static void replay_open(Walker *walker, const SpecRecompute *recompute, int64_t compute_ps)
{
    const bool seeding =
        walker->walk->mode == SEARCH_WALK_FIRST || walker->walk->mode == SEARCH_WALK_UNSHARDED;
    if (!seeding && !search_is_chosen_late(walker->worker->partition))
        replay_all(walker, recompute, compute_ps);
    for (guint i = 0; i < walker->open->len; i++) {
        const Open *open = &g_array_index(walker->open, Open, i);
        if (!open->gone)
            survive(walker, &open->candidate);
    }
    g_array_set_size(walker->open, 0);
}

static void clear_kinds(Walker *walker)
{
    for (int k = 0; k < walker->kind_count; k++)
        g_free(walker->kinds[k].stages);
    walker->kind_count = 0;
}

/* Neighbours in the list share stage and shard group; their memory differs with the overlap of reductions at most,
 * which the last of them has where any has it. */
static void fill_kinds(Walker *walker)
{
    for (int i = 0; i < walker->policy_count; i++) {
        const SearchPolicy *policy = &walker->policies[i], *before = i > 0 ? policy - 1 : NULL;
        if (before != NULL && before->zero == policy->zero &&
            before->zero_group_gpus == policy->zero_group_gpus) {
            walker->kinds[walker->kind_count - 1].count++;
            continue;
        }
        Kind *kind = &walker->kinds[walker->kind_count++];
        *kind = (Kind){.first = i, .count = 1};
        search_worker_states(walker->worker, policy, kind->data);
    }
}

/* States and workspace of every kind are larger than the memory: no choice of recomputation fits. */
static bool never_fits(const Walker *walker)
{
    for (int k = 0; k < walker->kind_count; k++)
        if (search_static_bytes(walker->worker, walker->kinds[k].data) <= walker->capacity_bytes)
            return false;
    return true;
}

static void walk_partition(Walker *walker, const SpecRecompute *recomputes, int recompute_count)
{
    static const SpecRecompute none = {.mode = SPEC_RECOMPUTE_NONE, .every_n_layers = 1};
    SearchWalk *walk = walker->walk;
    const int64_t none_ps = search_worker_recompute(walker->worker, &none);
    if (search_beyond(walker->limit, none_ps, walker->id)) {
        walk->pruned[SEARCH_BOUND_PIPELINE] += (int64_t)recompute_count * walker->policy_count;
        return;
    }
    clear_kinds(walker);
    for (int e = 0; e < recompute_count; e++) {
        walker->id.recompute = (int16_t)e;
        walker->id.policy = 0;
        const int64_t compute_ps = search_worker_recompute(walker->worker, &recomputes[e]);
        if (search_beyond(walker->limit, compute_ps, walker->id)) {
            /* More layers of full recomputation only take longer. */
            const bool rest = recomputes[e].mode == SPEC_RECOMPUTE_FULL;
            walk->pruned[SEARCH_BOUND_PIPELINE] +=
                (int64_t)(rest ? recompute_count - e : 1) * walker->policy_count;
            if (rest)
                return;
            continue;
        }
        if (walker->kind_count == 0)
            fill_kinds(walker);
        take_capacity(walker, none_ps); /* of every recomputation */
        if (e + 1 < recompute_count &&
            never_fits(walker)) { /* the last, which keeps least, stands for them as a miss */
            walk->pruned[SEARCH_BOUND_MEMORY] += (int64_t)(recompute_count - 1 - e) * walker->policy_count;
            e = recompute_count - 2;
            continue;
        }
        take_capacity(walker, compute_ps);
        search_worker_activations(walker->worker, &recomputes[e]);
        judge(walker, compute_ps);
        replay_open(walker, &recomputes[e], compute_ps);
    }
}

/* Every point of a partition that the group's bound alone is known for. */
static void walk_loosely(Walker *walker, const SearchPartition *partition, const SpecRecompute *recomputes,
                         int recompute_count)
{
    for (int e = 0; e < recompute_count; e++)
        for (int policy = 0; policy < walker->policy_count; policy++) {
            if (walker->walk->mode >= SEARCH_WALK_UNSHARDED && walker->policies[policy].zero >= 3)
                continue;
            const int64_t least_ps =
                search_bound_loose(walker->worker, partition, &recomputes[e], &walker->policies[policy]);
            SearchCandidate candidate = {
                .id = walker->id, .kind = SEARCH_BOUND_COMPUTE, .least_ps = least_ps};
            candidate.id.recompute = (int16_t)e;
            candidate.id.policy = policy;
            walker->walk->evaluated++;
            if (search_beyond(walker->limit, least_ps, candidate.id))
                walker->walk->pruned[SEARCH_BOUND_COMPUTE]++;
            else
                survive(walker, &candidate);
        }
}

/* What is wanted of the schedules is found: the next one begins anew. */
static void end_schedule(Walker *walker, const SearchLimit *limit)
{
    SearchWalk *walk = walker->walk;
    if (walk->first.least_ps < INT64_MAX)
        g_array_append_val(walk->survivors, walk->first);
    walk->first.least_ps = INT64_MAX;
    walker->own = *limit;
}

static bool is_wanted(const SearchWalk *walk, const SearchPartition *partition)
{
    return (walk->schedules & 1u << partition->schedule) != 0 && !search_is_chosen_late(partition);
}

void search_walk_group(SearchWorker *worker, int group_index, const SearchLimit *limit, double capacity_bytes,
                       SearchWalk *walk)
{
    SearchSpace *space = worker->space;
    const SearchGroup *group = &space->groups[group_index];
    Walker walker = {
        .worker = worker, .limit = limit, .own = *limit, .most_bytes = capacity_bytes, .walk = walk};
    if (walk->mode != SEARCH_WALK_ALL)
        walker.limit = &walker.own;
    walker.policies = search_policies(space, group, &walker.policy_count);
    walker.kinds = g_new(Kind, (gsize)MAX(1, walker.policy_count));
    g_autofree SpecRecompute *recomputes = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    walker.open = g_array_new(FALSE, FALSE, sizeof(Open));
    walker.id.group = group_index;
    bool looped = false;
    const bool whole = search_beyond(limit, search_bound_group(worker->tables, group), walker.id);
    const bool whole_pairs =
        whole && search_beyond(limit, search_bound_group_pairs(worker->tables, group), walker.id);
    bool begun = false;
    worker->give_up_ps = limit->step_ps;
    for (int d = 0; d < group->partitions->count; d++) {
        const SearchPartition *partition = &group->partitions->partition[d];
        if (!search_partition_valid(space, group, partition))
            continue;
        const int recompute_count = search_recomputes(space, partition, recomputes);
        walk->points += (int64_t)recompute_count * walker.policy_count;
        if (search_partition_pairs(partition) ? whole_pairs : whole) {
            walk->pruned[SEARCH_BOUND_COMPUTE] += (int64_t)recompute_count * walker.policy_count;
            continue;
        }
        /* Bounds of schedules that are no loop are too far below to begin with. */
        const bool loop = partition->order->placement == SIM_PLACE_LOOP;
        looped |= loop;
        if (walk->schedules != 0 ? !is_wanted(walk, partition)
                                 : walk->mode != SEARCH_WALK_ALL && looped && !loop)
            continue;
        if (walk->schedules != 0 && d > 0 && partition[-1].schedule != partition->schedule)
            end_schedule(&walker, limit);
        if (!begun)
            search_worker_group(worker, group);
        begun = true;
        walker.id = (SearchId){.group = group_index, .partition = (int16_t)d};
        if (search_is_loose(space, partition)) {
            walk_loosely(&walker, partition, recomputes, recompute_count);
            continue;
        }
        search_worker_partition(worker, partition);
        walk_partition(&walker, recomputes, recompute_count);
    }
    if (walk->schedules != 0)
        end_schedule(&walker, limit);
    clear_kinds(&walker);
    g_free(walker.policies);
    g_free(walker.kinds);
    g_array_free(walker.open, TRUE);
}

/* --- running --- */

bool search_simulate_spec(const Spec *spec, double capacity_bytes, SearchRun *ret_run)
{
    const ReportOptions options = {.analytic = true, .ideal = true};
    OrrArena *arena = orr_arena_new();
    Report report;
    const bool ok = report_run(spec, NULL, &options, arena, &report, NULL);
    if (ok) {
        double host_bytes = 0;
        for (int i = 0; i < report.stage_count; i++)
            host_bytes = MAX(host_bytes, report.stages[i].host_bytes);
        /* as if it were on the largest memory there is */
        const double lacks_bytes = search_hardware_most_bytes(spec) - report.capacity_bytes;
        search_limits_judge(spec, capacity_bytes, report.reserved_bytes + lacks_bytes, host_bytes, ret_run);
        const ReportOffload *below = &report.offload;
        if (below->on)
            search_limits_tiers(MAX(below->host_bytes - below->host_capacity_bytes,
                                    below->nvme_bytes - below->nvme_capacity_bytes),
                                ret_run);
        search_run_take_step(&report, ret_run);
        ret_run->peak_bytes = report.peak_bytes;
        ret_run->reserved_bytes = report.reserved_bytes;
        ret_run->bubble_frac = report.bubble_frac;
        ret_run->bubble_ps = report.bubble_ps;
        memcpy(ret_run->part_ps, report.part_ps, sizeof ret_run->part_ps);
    }
    orr_arena_free(arena);
    return ok;
}

bool search_simulate(SearchSpace *space, SearchId id, double capacity_bytes, SearchRun *ret_run)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    ret_run->id = id;
    return search_point_dealt(space, id, spec) && search_simulate_spec(spec, capacity_bytes, ret_run);
}

bool search_point_dealt(SearchSpace *space, SearchId id, Spec *ret_spec)
{
    search_point_spec(space, id, ret_spec);
    return !search_mixed_asked(ret_spec) || search_mixed_choose(ret_spec, NULL);
}
