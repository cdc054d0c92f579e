/* search/bound.c - see bound.h: sums over stages, and the bounds of a point. */
#include <math.h>

#include "costmodel/placement.h"
#include "costmodel/states.h"
#include "search/bound_internal.h"
#include "search/orders.h"

SearchLane *search_lane_new(SearchSpace *space, SearchTables *tables)
{
    SearchLane *lane = g_new0(SearchLane, 1);
    lane->space = space;
    lane->give_up_ps = INT64_MAX;
    lane->tables = tables;
    lane->spec = *space->spec;
    lane->arena = orr_arena_new();
    lane->unpacked = -1;
    search_costs_init(&lane->own_costs, lane->arena, space->spec->model.layers);
    lane->buckets = search_buckets_new();
    return lane;
}

void search_lane_free(SearchLane *lane)
{
    if (lane == NULL)
        return;
    g_hash_table_destroy(lane->buckets);
    search_replay_free(lane->replay);
    orr_arena_free(lane->arena);
    g_free(lane);
}

/* Whether ranks may start their steps one after another, so that a step is shorter than a micro-batch's way. */
static bool may_start_skewed(const SearchSpace *space, const SearchGroup *group)
{
    bool splits = false;
    for (int i = 0; i < group->deals->count; i++)
        splits |= sim_schedule_has(group->deals->deal[i].order, SIM_TRAIT_SPLITS_BACKWARD);
    return splits && spec_validates_later(space->spec);
}

int64_t search_bound_group(const SearchTables *tables, const SearchGroup *group)
{
    const SearchTotals *totals = &tables->totals[group->costs];
    /* One micro-batch's passes wait for each other; weight gradients may be elsewhere. */
    const int64_t chain_ps = totals->chain_ps + 2 * (group->pipeline - 1) * totals->hop_ps;
    return MAX((totals->chain_ps + totals->weight_ps) * group->microbatches / group->pipeline,
               may_start_skewed(tables->space, group) ? 0 : chain_ps);
}

int64_t search_bound_group_pairs(const SearchTables *tables, const SearchGroup *group)
{
    const SearchSide *side = &tables->totals[group->costs].side;
    return MAX(side->exchange_ps, side->kernels_ps) * group->microbatches / group->pipeline;
}

/* Messages between neighbouring pipeline ranks, the last and the first included. */
static void fill_hops(SearchLane *lane)
{
    const int ranks = lane->group->pipeline;
    for (int r = 0; r < ranks; r++)
        lane->hop_ps[r] = ranks == 1 ? 0
                          : cost_pipeline_inside(&lane->spec, r, (r + 1) % ranks)
                              ? lane->costs->hop_inside_ps
                              : lane->costs->hop_across_ps;
}

void search_lane_group(SearchLane *lane, const SearchGroup *group)
{
    lane->group = group;
    if (lane->unpacked != group->costs)
        search_tables_unpack(lane->tables, group->costs, &lane->own_costs);
    lane->unpacked = group->costs;
    lane->costs = &lane->own_costs;
    search_apply_group(lane->space, group, &lane->spec);
    fill_hops(lane);
}

/* --- a deal and an extent --- */

/* The first of the ranks with the most work. */
static int busiest_rank(const SearchLane *lane)
{
    int64_t most_ps = -1;
    int busiest = 0;
    for (int r = 0; r < lane->ranks; r++) {
        int64_t work_ps = 0;
        for (int chunk = 0; chunk < search_stages_of_rank(lane); chunk++) {
            const int s = search_stage_of_rank(lane, r, chunk);
            work_ps += lane->forward_ps[s] + lane->input_ps[s] + lane->weight_ps[s];
        }
        if (work_ps > most_ps) {
            most_ps = work_ps;
            busiest = r;
        }
    }
    return busiest;
}

void search_lane_deal(SearchLane *lane, const SearchDeal *deal)
{
    const SearchCosts *costs = lane->costs;
    lane->deal = deal;
    lane->ranks = lane->group->pipeline;
    lane->stages = deal->stages;
    lane->chunks = deal->stages / lane->ranks;
    lane->shape = search_deal_shape(lane->group, deal);
    search_apply_deal(deal, &lane->spec);
    const SearchPolicy widest = search_widest_policy(lane->space);
    search_apply_policy(lane->group, &widest, &lane->spec);
    lane->deferred_heads = costs->head_left_out_ps > 0 ? spec_deferred_heads(&lane->spec) : 0;
    lane->facts = search_facts(lane->space, deal->order, &lane->shape);
    for (int s = 0; s < lane->stages; s++) {
        const int from = deal->first[s], to = deal->first[s + 1];
        lane->forward_ps[s] = costs->forward_ps[to] - costs->forward_ps[from] + costs->overhead_ps;
        lane->input_ps[s] = costs->input_ps[to] - costs->input_ps[from] + costs->overhead_ps;
        lane->weight_ps[s] = costs->weight_ps[to] - costs->weight_ps[from];
        lane->exchanges[s] = costs->ahead.exchange_ps[to] > costs->ahead.exchange_ps[from] ||
                             costs->back.exchange_ps[to] > costs->back.exchange_ps[from];
        lane->again_ps[s] = 0;
    }
    const SearchEdge *edges[] = {&costs->first, &costs->last};
    for (int i = 0; i < 2; i++) {
        const int s = i == 0 ? 0 : lane->stages - 1;
        lane->forward_ps[s] += edges[i]->forward_ps;
        lane->input_ps[s] += edges[i]->input_ps;
        lane->weight_ps[s] += edges[i]->weight_ps;
        lane->exchanges[s] |= edges[i]->ahead.exchange_ps > 0 || edges[i]->back.exchange_ps > 0;
    }
    lane->sample[0] = 0;
    lane->sample[1] = lane->ranks - 1;
    lane->sample[2] = busiest_rank(lane);
    search_bound_fill(lane);
}

/* Of what runs again on a stage, by prefix `sums` of each kind. */
static int64_t stage_again_ps(const SearchLane *lane, int stage, const SpecRecompute *recompute,
                              int64_t *const *sums)
{
    const int from = lane->deal->first[stage], to = lane->deal->first[stage + 1];
    const int64_t *all = sums[SEARCH_AGAIN_ALL], *some = sums[SEARCH_AGAIN_SOME];
    int64_t sum_ps = 0;
    switch (recompute->mode) {
    case SPEC_RECOMPUTE_NONE:
        return 0;
    case SPEC_RECOMPUTE_FULL:
        return all[recompute->layers == 0 ? to : MIN(to, from + recompute->layers)] - all[from];
    case SPEC_RECOMPUTE_SELECTIVE_LAYER:
        for (int layer = from; layer < to; layer += MAX(1, recompute->every_n_layers))
            sum_ps += all[layer + 1] - all[layer];
        return sum_ps;
    case SPEC_RECOMPUTE_SELECTIVE_OP:
        some = sums[SEARCH_AGAIN_OP];
        return some[to] - some[from];
    default:
        return some[to] - some[from];
    }
}

static const SearchEdge *edge_of(const SearchLane *lane, int stage)
{
    return stage == 0 ? &lane->costs->first : stage + 1 == lane->stages ? &lane->costs->last : NULL;
}

static void add_sides(const SearchSides *sums, const SearchEdge *edge, bool ahead, int from, int to,
                      SearchSide *side)
{
    const SearchSide *own = edge == NULL ? NULL : ahead ? &edge->ahead : &edge->back;
    side->exchange_ps +=
        sums->exchange_ps[to] - sums->exchange_ps[from] + (own != NULL ? own->exchange_ps : 0);
    side->kernels_ps += sums->kernels_ps[to] - sums->kernels_ps[from] + (own != NULL ? own->kernels_ps : 0);
}

/* A forward of a stage beside a backward of its rank's other one. */
static int64_t stage_pair_ps(const SearchLane *lane, int stage, const SpecRecompute *recompute)
{
    const SearchCosts *costs = lane->costs;
    const int *first = lane->deal->first, other = search_pair_of(lane, stage);
    SearchSide side = {.kernels_ps = 2 * costs->overhead_ps};
    int64_t *exchanges[SEARCH_AGAIN_COUNT], *kernels[SEARCH_AGAIN_COUNT];
    for (int kind = 0; kind < SEARCH_AGAIN_COUNT; kind++) {
        exchanges[kind] = costs->again[kind].exchange_ps;
        kernels[kind] = costs->again[kind].kernels_ps;
    }
    add_sides(&costs->ahead, edge_of(lane, stage), true, first[stage], first[stage + 1], &side);
    add_sides(&costs->back, edge_of(lane, other), false, first[other], first[other + 1], &side);
    side.exchange_ps += stage_again_ps(lane, other, recompute, exchanges);
    side.kernels_ps += stage_again_ps(lane, other, recompute, kernels);
    return MAX(side.exchange_ps, side.kernels_ps);
}

int64_t search_lane_extent(SearchLane *lane, const SpecRecompute *recompute)
{
    for (int s = 0; s < lane->stages; s++)
        lane->again_ps[s] = stage_again_ps(lane, s, recompute, lane->costs->again_ps);
    for (int s = 0; search_has_pairs(lane) && s < lane->stages; s++)
        lane->pair_ps[s] = stage_pair_ps(lane, s, recompute);
    search_bound_pipeline(lane);
    return lane->latest_ps[0];
}

/* Reductions that are not over when the rank's compute is. Beside the backward they start no earlier than the last
 * backward of chunk 0, where that is the rank's last op: on a loop, for a micro-batch comes back to chunk 0 last, as long
 * as no weight gradients of other chunks stay behind. */
static int64_t open_reduce_ps(const SearchLane *lane, const SearchTail *tail, int rank)
{
    if (!cost_overlaps_grad_reduce(&lane->spec))
        return cost_reduces_each_microbatch(&lane->spec) ? 0 : tail->reduce_ps;
    const SimSchedule *order = lane->deal->order;
    if (order->placement != SIM_PLACE_LOOP ||
        (lane->chunks > 1 && sim_schedule_has(order, SIM_TRAIT_SPLITS_BACKWARD)))
        return 0;
    if (rank == lane->ranks - 1 && lane->deferred_heads > 0) /* behind that comes the LM head */
        return 0;
    const int64_t pass_ps = lane->input_ps[rank] + lane->again_ps[rank] + lane->weight_ps[rank];
    return MAX(tail->last_reduce_ps, tail->near_reduce_ps - pass_ps);
}

bool search_waits_for_sends(SearchLane *lane, const SearchPolicy *policy)
{
    search_apply_policy(lane->group, policy, &lane->spec);
    return spec_waits_for_sends(&lane->spec);
}

/* Least time until the data parallelism of every micro-batch is done: gathers of ZeRO-3, and reductions where every
 * micro-batch has its own. Queues run one after the other; gathers and reductions share a link. */
static int64_t steady_ps(const SearchLane *lane, const SearchTail *tail, int sample)
{
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const bool ahead = spec_prefetch_units(&lane->spec) > 0, sharded = lane->spec.parallel.zero >= 3;
    /* micro-batches that pass each of the rank's stages */
    const int64_t each = lane->group->microbatches / (both_ends ? 2 : 1);
    int64_t least_ps = 0;
    if (sharded) {
        /* Without a gather ahead of its use compute waits for every one of them but the first, which may be under
         * way while the rank waits for its first input; messages, weight gradients and reductions may hide them. */
        const int64_t first_ps = both_ends ? tail->stream_ps : tail->first_gather_ps;
        least_ps = each * tail->stream_ps + (ahead ? 0 : lane->use_end_ps[sample] - first_ps);
    }
    if (!cost_reduces_each_microbatch(&lane->spec))
        return least_ps;
    if (!cost_overlaps_grad_reduce(&lane->spec)) /* compute waits for every one */
        return MAX(least_ps, lane->work_end_ps[sample] + each * tail->reduce_ps);
    return MAX(least_ps, each * MAX(tail->reduce_ps, sharded ? tail->link_ps : 0));
}

int64_t search_bound_time(SearchLane *lane, const SearchPolicy *policy, const SearchTail *tails)
{
    const SpecFramework *framework = &lane->spec.execution.framework;
    const bool blocking = search_waits_for_sends(lane, policy);
    const bool late_gather = policy->zero < 3 && (policy->overlap & SPEC_OVERLAP_PARAM_GATHER) == 0;
    const bool early_gather = policy->zero >= 3 || (policy->overlap & SPEC_OVERLAP_PARAM_GATHER) != 0;
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    int64_t start_ps = 0, reduced_ps = lane->latest_ps[blocking], own_ps = 0, after_ps = 0, last_ps = 0;
    if (early_gather && !both_ends)
        start_ps = MAX(tails[0].first_gather_ps,
                       policy->zero >= 3 ? 0 : tails[0].near_gather_ps - lane->forward_ps[0]);
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const SearchTail *tail = &tails[i];
        const int64_t end = i == 0 ? lane->first_end_ps[blocking] : lane->end_ps[blocking][i];
        const int64_t reduced =
            MAX(end + open_reduce_ps(lane, tail, lane->sample[i]), steady_ps(lane, tail, i) - start_ps);
        const int64_t after = tail->optimizer_ps + (late_gather ? tail->gather_ps : 0);
        reduced_ps = MAX(reduced_ps, reduced);
        after_ps = MAX(after_ps, after);
        own_ps = MAX(own_ps, reduced + after);
    }
    /* The norm of all gradients keeps every optimizer until the last rank has reduced its own. */
    last_ps = framework->optimizer.grad_norm_clip && !search_starts_skewed(lane) ? reduced_ps + after_ps
                                                                                 : MAX(reduced_ps, own_ps);
    return start_ps + last_ps + (int64_t)llround(framework->host.step_overhead_s * 1e12);
}

double search_static_bytes(const SearchLane *lane, const SearchTail *tails)
{
    double most = 0;
    for (int i = 0; i < SEARCH_SAMPLES; i++)
        most = fmax(most, tails[i].static_bytes);
    return most + lane->spec.execution.framework.allocator.context_bytes;
}

double search_bound_bytes(SearchLane *lane, const SearchPolicy *policy, const SearchTail *tails)
{
    search_apply_policy(lane->group, policy, &lane->spec);
    const bool whole = policy->zero >= 3 && !cost_reduces_each_microbatch(&lane->spec);
    const int overlaps = cost_overlaps_grad_reduce(&lane->spec);
    double most = 0;
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const double beside = lane->beside_bytes[overlaps][i];
        double dynamic = lane->live_bytes[i];
        if (whole && beside >= 0)
            dynamic = fmax(dynamic, beside + tails[i].whole_bytes);
        if (policy->zero >= 3 && lane->first_bytes[i] >= 0)
            dynamic = fmax(dynamic, lane->first_bytes[i] + tails[i].gathered_bytes);
        most = fmax(most, tails[i].static_bytes + dynamic);
    }
    return most + lane->spec.execution.framework.allocator.context_bytes;
}

void search_bound_point(SearchLane *lane, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes)
{
    const SearchGroup *group = &lane->space->groups[id.group];
    const SearchDeal *deal = &group->deals->deal[id.deal];
    SearchTail tails[SEARCH_SAMPLES];
    int policies = 0;
    g_autofree SpecRecompute *extents = g_new(SpecRecompute, (gsize)lane->space->spec->model.layers + 16);
    g_autofree SearchPolicy *policy = search_policies(lane->space, group, &policies);
    search_extents(lane->space, deal, extents);
    search_lane_group(lane, group);
    search_lane_deal(lane, deal);
    const int64_t extent_ps = search_lane_extent(lane, &extents[id.extent]);
    search_lane_live(lane, &extents[id.extent]);
    search_lane_tails(lane, &policy[id.policy], tails);
    *ret_least_ps = MAX(extent_ps, search_bound_time(lane, &policy[id.policy], tails));
    *ret_least_bytes = search_bound_bytes(lane, &policy[id.policy], tails);
}

void search_replay_point(SearchLane *lane, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes)
{
    const SearchGroup *group = &lane->space->groups[id.group];
    SearchTail tails[SEARCH_SAMPLES];
    int policies = 0;
    g_autofree SpecRecompute *extents = g_new(SpecRecompute, (gsize)lane->space->spec->model.layers + 16);
    g_autofree SearchPolicy *list = search_policies(lane->space, group, &policies);
    const SearchPolicy *policy = &list[id.policy];
    search_bound_point(lane, id, ret_least_ps, ret_least_bytes);
    if (search_is_chosen_late(lane->deal))
        return;
    search_extents(lane->space, lane->deal, extents);
    const bool ran = search_lane_replay(lane, &extents[id.extent], search_waits_for_sends(lane, policy),
                                        policy->zero >= 3);
    g_assert(ran);
    search_lane_tails(lane, policy, tails);
    *ret_least_ps = search_bound_time(lane, policy, tails);
    *ret_least_bytes = fmax(search_bound_bytes(lane, policy, tails), search_replay_bytes(lane, policy));
}
