/* search/walk.c - see walk.h. */
#include "search/walk.h"

#include <string.h>

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

/* What a group needs while it is walked. */
typedef struct Walker {
    SearchLane *lane;
    const SearchLimit *limit;
    double capacity_bytes;
    SearchWalk *walk;
    SearchPolicy *policies;
    int policy_count;
    SearchTail (*tails)[SEARCH_SAMPLES]; /* [policies] */
    SearchId id;
} Walker;

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

static void judge(Walker *walker, int64_t extent_ps)
{
    SearchWalk *walk = walker->walk;
    for (int i = 0; i < walker->policy_count; i++) {
        const SearchPolicy *policy = &walker->policies[i];
        SearchCandidate candidate = {.least_ps = search_bound_time(walker->lane, policy, walker->tails[i]),
                                     .id = walker->id};
        candidate.id.policy = i;
        candidate.least_ps = MAX(candidate.least_ps, extent_ps);
        candidate.kind = candidate.least_ps > extent_ps ? SEARCH_BOUND_DATA : SEARCH_BOUND_PIPELINE;
        candidate.short_bytes =
            search_bound_bytes(walker->lane, policy, walker->tails[i]) - walker->capacity_bytes;
        walk->evaluated++;
        if (search_beyond(walker->limit, candidate.least_ps, candidate.id)) {
            walk->pruned[candidate.kind]++;
        } else if (candidate.short_bytes > 0) {
            walk->pruned[SEARCH_BOUND_MEMORY]++;
            keep_miss(walk->misses, &candidate);
        } else {
            if (search_candidate_compare(&candidate, &walk->first) < 0)
                walk->first = candidate;
            if (walk->survivors != NULL)
                g_array_append_val(walk->survivors, candidate);
        }
    }
}

static void fill_tails(Walker *walker)
{
    for (int i = 0; i < walker->policy_count; i++) {
        const SearchPolicy *policy = &walker->policies[i], *before = i > 0 ? policy - 1 : NULL;
        if (before != NULL && before->zero == policy->zero &&
            before->zero_group_gpus == policy->zero_group_gpus)
            memcpy(walker->tails[i], walker->tails[i - 1], sizeof walker->tails[i]);
        else
            search_lane_tails(walker->lane, policy, walker->tails[i]);
    }
}

static void walk_deal(Walker *walker, const SpecRecompute *extents, int extent_count)
{
    static const SpecRecompute none = {.mode = SPEC_RECOMPUTE_NONE, .every_n_layers = 1};
    SearchWalk *walk = walker->walk;
    if (search_beyond(walker->limit, search_lane_extent(walker->lane, &none), walker->id)) {
        walk->pruned[SEARCH_BOUND_PIPELINE] += (int64_t)extent_count * walker->policy_count;
        return;
    }
    fill_tails(walker);
    for (int e = 0; e < extent_count; e++) {
        walker->id.extent = (int16_t)e;
        walker->id.policy = 0;
        const int64_t extent_ps = search_lane_extent(walker->lane, &extents[e]);
        if (search_beyond(walker->limit, extent_ps, walker->id)) {
            /* More layers of full recomputation only take longer. */
            const bool rest = extents[e].mode == SPEC_RECOMPUTE_FULL;
            walk->pruned[SEARCH_BOUND_PIPELINE] +=
                (int64_t)(rest ? extent_count - e : 1) * walker->policy_count;
            if (rest)
                return;
            continue;
        }
        judge(walker, extent_ps);
    }
}

void search_walk_group(SearchLane *lane, int group_index, int64_t group_ps, const SearchLimit *limit,
                       double capacity_bytes, SearchWalk *walk)
{
    SearchSpace *space = lane->space;
    const SearchGroup *group = &space->groups[group_index];
    Walker walker = {.lane = lane, .limit = limit, .capacity_bytes = capacity_bytes, .walk = walk};
    walker.policies = search_policies(space, group, &walker.policy_count);
    walker.tails = g_malloc(sizeof *walker.tails * (gsize)MAX(1, walker.policy_count));
    g_autofree SpecRecompute *extents = g_new(SpecRecompute, space->spec->model.layers + 16);
    walker.id.group = group_index;
    const bool whole = search_beyond(limit, group_ps, walker.id);
    search_lane_group(lane, group);
    for (int d = 0; d < group->deals->count; d++) {
        const SearchDeal *deal = &group->deals->deal[d];
        if (!search_deal_valid(space, group, deal))
            continue;
        const int extent_count = search_extents(space, deal, extents);
        walk->points += (int64_t)extent_count * walker.policy_count;
        if (whole) {
            walk->pruned[SEARCH_BOUND_COMPUTE] += (int64_t)extent_count * walker.policy_count;
            continue;
        }
        walker.id = (SearchId){.group = group_index, .deal = (int16_t)d};
        search_lane_deal(lane, deal);
        walk_deal(&walker, extents, extent_count);
    }
    g_free(walker.policies);
    g_free(walker.tails);
}

/* --- running --- */

bool search_simulate_spec(const Spec *spec, double capacity_bytes, SearchRun *ret_run)
{
    const ReportOptions options = {0};
    OrrArena *arena = orr_arena_new();
    Report report;
    const bool ok = report_run(spec, NULL, &options, arena, &report, NULL);
    if (ok) {
        const double needed = report.peak_bytes + spec->execution.framework.context_bytes;
        ret_run->fits = needed <= capacity_bytes;
        ret_run->short_bytes = ret_run->fits ? 0 : needed - capacity_bytes;
        ret_run->step_ps = report.step_ps;
        ret_run->peak_bytes = report.peak_bytes;
        ret_run->reserved_bytes = report.reserved_bytes;
        ret_run->tokens_per_s_per_gpu = report.tokens_per_s_per_gpu;
        ret_run->mfu = report.mfu;
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
    search_point_spec(space, id, spec);
    ret_run->id = id;
    return search_simulate_spec(spec, capacity_bytes, ret_run);
}
