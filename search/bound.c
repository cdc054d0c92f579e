/* search/bound.c - see bound.h: sums over stages, and both bounds of a point. */
#include <math.h>

#include "costmodel/placement.h"
#include "costmodel/states.h"
#include "search/bound_parts.h"
#include "search/orders.h"

SearchWorker *search_worker_new(SearchSpace *space, SearchTables *tables)
{
    SearchWorker *worker = g_new0(SearchWorker, 1);
    worker->space = space;
    worker->give_up_ps = INT64_MAX;
    worker->tables = tables;
    worker->spec = *space->spec;
    worker->arena = orr_arena_new();
    worker->unpacked = -1;
    worker->kinds = search_hardware_count(space->spec);
    for (int kind = 0; kind < worker->kinds; kind++)
        search_costs_init(&worker->own_costs[kind], worker->arena, space->spec->model.layers);
    if (worker->kinds > 1)
        worker->own_spec = g_new(Spec, 1);
    worker->buckets = search_buckets_new();
    return worker;
}

void search_worker_free(SearchWorker *worker)
{
    if (worker == NULL)
        return;
    g_hash_table_destroy(worker->buckets);
    search_replay_free(worker->replay);
    orr_arena_free(worker->arena);
    g_free(worker->own_spec);
    g_free(worker);
}

/* Whether ranks may start their steps one after another, so that a step is shorter than a micro-batch's way. */
static bool may_start_skewed(const SearchSpace *space, const SearchGroup *group)
{
    bool splits = false;
    for (int i = 0; i < group->partitions->count; i++)
        splits |= sim_schedule_has(group->partitions->partition[i].order, SIM_TRAIT_SPLITS_BACKWARD);
    return splits && spec_validates_later(space->spec);
}

int64_t search_bound_group(const SearchTables *tables, const SearchGroup *group)
{
    const SearchTotals *totals = &tables->totals[group->costs];
    /* One micro-batch's passes wait for each other; weight gradients may be elsewhere. */
    const int64_t chain_ps = totals->chain_ps + 2 * (group->pipeline - 1) * totals->hop_ps;
    const int64_t work_ps =
        MAX((totals->chain_ps + totals->weight_ps) * group->microbatches / group->pipeline,
            search_hardware_bound(tables, group));
    return MAX(work_ps, may_start_skewed(tables->space, group) ? 0 : chain_ps);
}

int64_t search_bound_group_pairs(const SearchTables *tables, const SearchGroup *group)
{
    const StepSplit *side = &tables->totals[group->costs].side;
    return MAX(side->exchange_ps, side->kernels_ps) * group->microbatches / group->pipeline;
}

int64_t search_bound_busy(const SearchTables *tables, const SearchGroup *group)
{
    const SearchTotals *totals = &tables->totals[group->costs];
    int64_t busy_ps = (totals->chain_ps + totals->weight_ps) * group->microbatches / group->pipeline;
    for (int d = 0; d < group->partitions->count; d++)
        if (search_partition_pairs(&group->partitions->partition[d]))
            busy_ps = MIN(busy_ps, search_bound_group_pairs(tables, group));
    return busy_ps;
}

/* As the GPUs of rank `owner` would send it. */
static int64_t hop_by(SearchWorker *worker, int owner, int rank, int next)
{
    const SearchCosts *costs = search_costs_of_rank(worker, owner);
    return cost_pipeline_inside(search_spec_of_rank(worker, owner), rank, next) ? costs->hop_inside_ps
                                                                                : costs->hop_across_ps;
}

/* What runs again of a micro-batch on the kind of GPUs that is quickest at it, however layers are dealt out. */
static int64_t least_recompute_ps(const SearchWorker *worker, const SpecRecompute *recompute)
{
    const int layers = worker->space->spec->model.layers;
    const bool some = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    const int every =
        recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER ? MAX(1, recompute->every_n_layers) : 1;
    int64_t least_ps = INT64_MAX;
    for (int kind = 0; kind < worker->kinds; kind++) {
        int64_t *const *sums = worker->own_costs[kind].recompute_ps;
        const int64_t *all = sums[SEARCH_RECOMPUTED_ALL];
        int64_t layer_ps = INT64_MAX;
        for (int layer = 0; layer < layers; layer++)
            layer_ps = MIN(layer_ps, all[layer + 1] - all[layer]);
        const int count = some ? MIN(recompute->layers, layers) : layers / every;
        least_ps = MIN(least_ps, recompute->mode == SPEC_RECOMPUTE_NONE   ? 0
                                 : some || every > 1                      ? count * layer_ps
                                 : recompute->mode == SPEC_RECOMPUTE_FULL ? all[layers]
                                 : recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP
                                     ? sums[SEARCH_RECOMPUTED_OP][layers]
                                     : sums[SEARCH_RECOMPUTED_SOME][layers]);
    }
    return least_ps;
}

/* The least that a layer takes of a micro-batch, on each kind of GPUs: both passes, and again what all layers do again. */
static void least_layers(const SearchWorker *worker, const SpecRecompute *recompute, int64_t *ret_layer_ps)
{
    const bool some = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    const bool none =
        recompute->mode == SPEC_RECOMPUTE_NONE || recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER || some;
    for (int kind = 0; kind < worker->kinds; kind++) {
        const SearchCosts *costs = &worker->own_costs[kind];
        const int64_t *again =
            costs->recompute_ps[recompute->mode == SPEC_RECOMPUTE_FULL           ? SEARCH_RECOMPUTED_ALL
                                : recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP ? SEARCH_RECOMPUTED_OP
                                                                                 : SEARCH_RECOMPUTED_SOME];
        ret_layer_ps[kind] = INT64_MAX;
        for (int i = 0; i < worker->space->spec->model.layers; i++) {
            const int64_t passes_ps = costs->forward_ps[i + 1] - costs->forward_ps[i] +
                                      costs->input_ps[i + 1] - costs->input_ps[i] + costs->weight_ps[i + 1] -
                                      costs->weight_ps[i];
            ret_layer_ps[kind] = MIN(ret_layer_ps[kind], passes_ps + (none ? 0 : again[i + 1] - again[i]));
        }
    }
}

int64_t search_bound_loose(SearchWorker *worker, const SearchPartition *partition,
                           const SpecRecompute *recompute, const SearchPolicy *policy)
{
    const SearchGroup *group = worker->group;
    search_take_policy(worker, policy);
    const bool even = worker->rules.sharded_weights || step_reduces_each(&worker->rules);
    const bool whole = partition->virtual_stages == 1 && partition->order->placement == SIM_PLACE_LOOP &&
                       !sim_schedule_has(partition->order, SIM_TRAIT_SPLITS_BACKWARD) &&
                       spec_deferred_heads(&worker->spec) == 0;
    if (search_partition_pairs(partition))
        return search_bound_group_pairs(worker->tables, group);
    int64_t layer_ps[SPEC_MOST_GROUPS];
    least_layers(worker, recompute, layer_ps);
    const int64_t dealt_ps = partition->order->placement == SIM_PLACE_BIDIRECTIONAL
                                 ? 0
                                 : search_hardware_deal_bound(worker->tables, group, layer_ps, even);
    const int64_t group_ps = MAX(search_bound_group(worker->tables, group), dealt_ps);
    return !whole ? group_ps
                  : MAX(group_ps, search_hardware_fill_bound(worker->tables, group,
                                                             least_recompute_ps(worker, recompute), even));
}

/* Messages between neighbouring pipeline ranks, the last and the first included: the longer of what both ends would. */
static void fill_hops(SearchWorker *worker)
{
    const int ranks = worker->group->pipeline;
    for (int r = 0; r < ranks; r++) {
        const int next = (r + 1) % ranks;
        worker->hop_ps[r] = ranks == 1 ? 0 : hop_by(worker, r, r, next);
        if (ranks > 1 && worker->kinds > 1)
            worker->hop_ps[r] = MAX(worker->hop_ps[r], hop_by(worker, next, r, next));
    }
}

void search_worker_group(SearchWorker *worker, const SearchGroup *group)
{
    worker->group = group;
    for (int kind = 0; worker->unpacked != group->costs && kind < worker->kinds; kind++)
        search_tables_unpack(worker->tables, group->costs, kind, &worker->own_costs[kind]);
    worker->unpacked = group->costs;
    worker->costs = worker->own_costs;
    search_hardware_slowest(worker->tables, group, worker->kind_of_rank);
    search_apply_group(worker->space, group, &worker->spec);
    fill_hops(worker);
}

/* --- a partition and an recomputation --- */

/* The first of the ranks with the most work. */
static int busiest_rank(const SearchWorker *worker)
{
    int64_t most_ps = -1;
    int busiest = 0;
    for (int r = 0; r < worker->ranks; r++) {
        int64_t work_ps = 0;
        for (int chunk = 0; chunk < search_stages_of_rank(worker); chunk++) {
            const int s = search_stage_of_rank(worker, r, chunk);
            work_ps += worker->forward_ps[s] + worker->input_ps[s] + worker->weight_ps[s];
        }
        if (work_ps > most_ps) {
            most_ps = work_ps;
            busiest = r;
        }
    }
    return busiest;
}

void search_worker_partition(SearchWorker *worker, const SearchPartition *partition)
{
    worker->partition = partition;
    worker->ranks = worker->group->pipeline;
    worker->stages = partition->stages;
    worker->chunks = partition->stages / worker->ranks;
    worker->shape = search_partition_shape(worker->group, partition);
    search_apply_partition(partition, &worker->spec);
    const SearchPolicy widest = search_widest_policy(worker->space);
    search_take_policy(worker, &widest);
    const SearchCosts *tail = search_costs_of_rank(worker, worker->ranks - 1);
    worker->head_left_out_ps = tail->head_left_out_ps;
    worker->deferred_heads = worker->head_left_out_ps > 0 ? spec_deferred_heads(&worker->spec) : 0;
    worker->facts = search_facts(worker->space, partition->order, &worker->shape);
    for (int s = 0; s < worker->stages; s++) {
        const SearchCosts *costs = search_costs_of(worker, s);
        const int from = partition->first[s], to = partition->first[s + 1];
        worker->forward_ps[s] = costs->forward_ps[to] - costs->forward_ps[from] + costs->overhead_ps;
        worker->input_ps[s] = costs->input_ps[to] - costs->input_ps[from] + costs->overhead_ps;
        worker->weight_ps[s] = costs->weight_ps[to] - costs->weight_ps[from];
        worker->exchanges[s] = costs->ahead.exchange_ps[to] > costs->ahead.exchange_ps[from] ||
                               costs->back.exchange_ps[to] > costs->back.exchange_ps[from];
        worker->recompute_ps[s] = 0;
    }
    for (int i = 0; i < 2; i++) {
        const int s = i == 0 ? 0 : worker->stages - 1;
        const StepPiece *ends[] = {&search_costs_of(worker, s)->first, &search_costs_of(worker, s)->last};
        worker->forward_ps[s] += ends[i]->forward_ps;
        worker->input_ps[s] += ends[i]->input_ps;
        worker->weight_ps[s] += ends[i]->weight_ps;
        worker->exchanges[s] |= ends[i]->ahead.exchange_ps > 0 || ends[i]->back.exchange_ps > 0;
    }
    worker->sample[0] = 0;
    worker->sample[1] = worker->ranks - 1;
    worker->sample[2] = busiest_rank(worker);
    search_bound_fill(worker);
}

/* Of what runs again on a stage, by prefix `sums` of each kind. */
static int64_t stage_recompute_ps(const SearchWorker *worker, int stage, const SpecRecompute *recompute,
                                  int64_t *const *sums)
{
    const int from = worker->partition->first[stage], to = worker->partition->first[stage + 1];
    int64_t sum_ps = 0;
    SearchRecomputed again;
    for (int at = from, until = from; at < to; at = until) {
        until = from + search_recomputed_run(recompute, at - from, to - from, &again);
        sum_ps += again == SEARCH_RECOMPUTED_NONE ? 0 : sums[again][until] - sums[again][at];
    }
    return sum_ps;
}

static const StepPiece *end_of(const SearchWorker *worker, int stage)
{
    const SearchCosts *costs = search_costs_of(worker, stage);
    return stage == 0 ? &costs->first : stage + 1 == worker->stages ? &costs->last : NULL;
}

static void add_splits(const SearchTimeSplits *sums, const StepPiece *end, bool ahead, int from, int to,
                       StepSplit *side)
{
    const StepSplit *own = end == NULL ? NULL : ahead ? &end->ahead : &end->back;
    side->exchange_ps +=
        sums->exchange_ps[to] - sums->exchange_ps[from] + (own != NULL ? own->exchange_ps : 0);
    side->kernels_ps += sums->kernels_ps[to] - sums->kernels_ps[from] + (own != NULL ? own->kernels_ps : 0);
}

/* A forward of a stage beside a backward of its rank's other one. */
static int64_t stage_pair_ps(const SearchWorker *worker, int stage, const SpecRecompute *recompute)
{
    const SearchCosts *costs = search_costs_of(worker, stage); /* its rank has the other one too */
    const int *first = worker->partition->first, other = search_pair_of(worker, stage);
    StepSplit side = {.kernels_ps = 2 * costs->overhead_ps};
    int64_t *exchanges[SEARCH_RECOMPUTED_COUNT], *kernels[SEARCH_RECOMPUTED_COUNT];
    for (int kind = 0; kind < SEARCH_RECOMPUTED_COUNT; kind++) {
        exchanges[kind] = costs->again[kind].exchange_ps;
        kernels[kind] = costs->again[kind].kernels_ps;
    }
    add_splits(&costs->ahead, end_of(worker, stage), true, first[stage], first[stage + 1], &side);
    add_splits(&costs->back, end_of(worker, other), false, first[other], first[other + 1], &side);
    side.exchange_ps += stage_recompute_ps(worker, other, recompute, exchanges);
    side.kernels_ps += stage_recompute_ps(worker, other, recompute, kernels);
    return MAX(side.exchange_ps, side.kernels_ps);
}

int64_t search_worker_recompute(SearchWorker *worker, const SpecRecompute *recompute)
{
    for (int s = 0; s < worker->stages; s++)
        worker->recompute_ps[s] =
            stage_recompute_ps(worker, s, recompute, search_costs_of(worker, s)->recompute_ps);
    for (int s = 0; search_has_pairs(worker) && s < worker->stages; s++)
        worker->pair_ps[s] = stage_pair_ps(worker, s, recompute);
    search_bound_pipeline(worker);
    return worker->ends[0].latest_ps;
}

/* What the rank's memory lacks of the largest: counted as bytes that it holds. */
static double lacks_bytes(const SearchWorker *worker, int rank)
{
    return search_hardware_lacks_bytes(worker->space->spec, worker->kind_of_rank[rank]);
}

double search_static_bytes(const SearchWorker *worker, const SearchDataCosts *data)
{
    double most = 0;
    for (int i = 0; i < SEARCH_SAMPLES; i++)
        most = fmax(most, data[i].static_bytes + lacks_bytes(worker, worker->sample[i]));
    return most + worker->rules.context_bytes;
}

double search_bound_bytes(SearchWorker *worker, const SearchPolicy *policy, const SearchDataCosts *data)
{
    search_take_policy(worker, policy);
    const bool whole = worker->rules.sharded_weights && !step_reduces_each(&worker->rules);
    const int overlaps = step_reduces_beside(&worker->rules);
    double most = 0;
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const double beside = worker->beside_bytes[overlaps][i];
        double dynamic = worker->live_bytes[i];
        if (whole && beside >= 0)
            dynamic = fmax(dynamic, beside + data[i].whole_bytes);
        if (worker->rules.sharded_weights && worker->first_bytes[i] >= 0)
            dynamic = fmax(dynamic, worker->first_bytes[i] + data[i].gathered_bytes);
        most = fmax(most, data[i].static_bytes + dynamic + lacks_bytes(worker, worker->sample[i]));
    }
    return most + worker->rules.context_bytes;
}

/* The whole of it; its stages are from g_malloc. */
static SearchWay whole_way(SearchWorker *worker, const SearchPolicy *policy)
{
    SearchWay way = search_way(worker, policy);
    if (way.gathers != STEP_GATHERS_NONE || way.reduces != STEP_REDUCES_LATE) {
        SearchStageData *stages =
            g_new(SearchStageData, (gsize)(worker->ranks * search_stages_of_rank(worker)));
        search_worker_stages(worker, policy, stages);
        way.stages = stages;
    }
    return way;
}

void search_bound_point(SearchWorker *worker, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes)
{
    const SearchGroup *group = &worker->space->groups[id.group];
    const SearchPartition *partition = &group->partitions->partition[id.partition];
    SearchDataCosts data[SEARCH_SAMPLES];
    int policies = 0;
    g_autofree SpecRecompute *recomputes =
        g_new(SpecRecompute, (gsize)worker->space->spec->model.layers + 16);
    if (search_is_loose(worker->space, partition)) {
        search_worker_group(worker, group);
        worker->partition = partition;
        g_autofree SearchPolicy *own = search_policies(worker->space, group, &policies);
        search_recomputes(worker->space, partition, recomputes);
        *ret_least_bytes = 0;
        *ret_least_ps = search_bound_loose(worker, partition, &recomputes[id.recompute], &own[id.policy]);
        return;
    }
    g_autofree SearchPolicy *policy = search_policies(worker->space, group, &policies);
    search_recomputes(worker->space, partition, recomputes);
    search_worker_group(worker, group);
    search_worker_partition(worker, partition);
    const int64_t compute_ps = search_worker_recompute(worker, &recomputes[id.recompute]);
    search_worker_activations(worker, &recomputes[id.recompute]);
    search_worker_data(worker, &policy[id.policy], data);
    const SearchWay way = whole_way(worker, &policy[id.policy]);
    *ret_least_ps = MAX(compute_ps, search_bound_time(worker, &policy[id.policy], data, &way));
    g_free((gpointer)way.stages);
    *ret_least_bytes = search_bound_bytes(worker, &policy[id.policy], data);
}

void search_replay_point(SearchWorker *worker, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes)
{
    const SearchGroup *group = &worker->space->groups[id.group];
    SearchDataCosts data[SEARCH_SAMPLES];
    int policies = 0;
    g_autofree SpecRecompute *recomputes =
        g_new(SpecRecompute, (gsize)worker->space->spec->model.layers + 16);
    g_autofree SearchPolicy *list = search_policies(worker->space, group, &policies);
    const SearchPolicy *policy = &list[id.policy];
    search_bound_point(worker, id, ret_least_ps, ret_least_bytes);
    if (search_is_chosen_late(worker->partition) || search_is_loose(worker->space, worker->partition))
        return;
    search_recomputes(worker->space, worker->partition, recomputes);
    const SearchWay way = whole_way(worker, policy),
                    passes = {.blocking = way.blocking, .sharded = way.sharded};
    const bool ran = search_worker_replay(worker, &recomputes[id.recompute], &passes) &&
                     (way.stages == NULL || search_worker_replay(worker, &recomputes[id.recompute], &way));
    g_assert(ran);
    search_worker_data(worker, policy, data);
    *ret_least_ps = search_bound_time(worker, policy, data, &way);
    g_free((gpointer)way.stages);
    *ret_least_bytes = fmax(search_bound_bytes(worker, policy, data), search_replay_bytes(worker, policy));
}
