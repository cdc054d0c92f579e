/* search/bound.c - see bound.h: sums over stages, data parallelism, and the bounds of a point. */
#include <math.h>
#include <string.h>

#include "costmodel/placement.h"
#include "costmodel/states.h"
#include "search/bound_internal.h"
#include "sim/step.h"

/* A bucket's durations, kept once. */
typedef struct Bucket {
    double dense, expert;
    int matrices, zero, zero_group_gpus;
    int degrees[6];
    SimBucketWork reduce, gather;
} Bucket;

typedef struct Params {
    double dense, expert;
    int matrices;
} Params;

static guint bucket_hash(gconstpointer key)
{
    const Bucket *b = key;
    uint64_t hash = 1469598103934665603u;
    const double sizes[] = {b->dense, b->expert};
    uint64_t bits[2];
    memcpy(bits, sizes, sizeof bits);
    const uint64_t words[] = {bits[0], bits[1], (uint64_t)b->matrices, (uint64_t)b->zero,
                              (uint64_t)b->zero_group_gpus};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
    for (gsize i = 0; i < G_N_ELEMENTS(b->degrees); i++)
        hash = (hash ^ (uint64_t)b->degrees[i]) * 0x9E3779B97F4A7C15u;
    return (guint)(hash >> 32);
}

static gboolean bucket_equal(gconstpointer left, gconstpointer right)
{
    const Bucket *a = left, *b = right;
    return a->dense >= b->dense && a->dense <= b->dense && a->expert >= b->expert && a->expert <= b->expert &&
           a->matrices == b->matrices && a->zero == b->zero && a->zero_group_gpus == b->zero_group_gpus &&
           memcmp(a->degrees, b->degrees, sizeof a->degrees) == 0;
}

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
    lane->buckets = g_hash_table_new_full(bucket_hash, bucket_equal, g_free, NULL);
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
        splits |= search_splits_backward(group->deals->deal[i].schedule);
    return splits && space->spec->execution.framework.optimizer_post_validation;
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
    SpecParallel *parallel = &lane->spec.parallel;
    lane->group = group;
    if (lane->unpacked != group->costs)
        search_tables_unpack(lane->tables, group->costs, &lane->own_costs);
    lane->unpacked = group->costs;
    lane->costs = &lane->own_costs;
    parallel->tensor = group->tensor;
    parallel->sequence_parallel = group->sequence_parallel;
    parallel->context = group->context;
    parallel->pipeline = group->pipeline;
    parallel->data = group->data;
    parallel->expert = group->expert;
    parallel->expert_tensor = group->expert_tensor;
    lane->spec.offload.activation_layers = group->offloaded;
    lane->spec.training.micro_batch = group->micro_batch;
    lane->spec.training.precision = (SpecPrecision)group->precision;
    fill_hops(lane);
}

/* --- a deal and an extent --- */

static int stages_of_rank(const SearchLane *lane)
{
    return lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : lane->chunks;
}

static int stage_of_rank(const SearchLane *lane, int rank, int chunk)
{
    if (lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL)
        return chunk == 0 ? rank : lane->ranks - 1 - rank;
    return sim_stage_of(lane->deal->order->placement, lane->ranks, lane->chunks, rank, chunk);
}

/* The first of the ranks with the most work. */
static int busiest_rank(const SearchLane *lane)
{
    int64_t most_ps = -1;
    int busiest = 0;
    for (int r = 0; r < lane->ranks; r++) {
        int64_t work_ps = 0;
        for (int chunk = 0; chunk < stages_of_rank(lane); chunk++) {
            const int s = stage_of_rank(lane, r, chunk);
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

/* --- data parallelism --- */

static const Bucket *bucket_of(SearchLane *lane, Params params)
{
    const SpecParallel *parallel = &lane->spec.parallel;
    Bucket key = {.dense = params.dense,
                  .expert = params.expert,
                  .matrices = parallel->zero >= 3 || lane->spec.execution.framework.list_rank_host_s > 0
                                  ? params.matrices
                                  : 0,
                  .zero = parallel->zero,
                  .zero_group_gpus = parallel->zero_group_gpus,
                  .degrees = {parallel->tensor, parallel->context, parallel->data, parallel->expert,
                              parallel->expert_tensor, parallel->pipeline}};
    const Bucket *known = g_hash_table_lookup(lane->buckets, &key);
    if (known != NULL)
        return known;
    sim_step_bucket(&lane->spec, params.dense, params.expert, params.matrices, &key.reduce, &key.gather);
    Bucket *bucket = g_new(Bucket, 1);
    *bucket = key;
    g_hash_table_insert(lane->buckets, bucket, bucket);
    return bucket;
}

static void add_params(Params *sum, double dense, double expert, int matrices)
{
    sum->dense += dense;
    sum->expert += expert;
    sum->matrices += matrices;
}

typedef struct Stage { /* what its buckets take */
    int64_t reduce_ps, last_reduce_ps, gather_ps, first_gather_ps, last_gather_ps;
    int64_t reduce_load_ps, gather_load_ps, last_gather_load_ps;
    bool one_link; /* all gathers and reductions are on the NIC */
} Stage;

static void close_bucket(SearchLane *lane, Params *bucket, Stage *stage)
{
    const Bucket *times = bucket_of(lane, *bucket);
    if (stage->gather_ps == 0) {
        stage->last_gather_ps = times->gather.ps;
        stage->last_gather_load_ps = times->gather.load_ps;
    }
    stage->reduce_ps += times->reduce.ps;
    stage->gather_ps += times->gather.ps;
    stage->last_reduce_ps = times->reduce.ps;
    stage->first_gather_ps = times->gather.ps;
    stage->reduce_load_ps += times->reduce.load_ps;
    stage->gather_load_ps += times->gather.load_ps;
    stage->one_link &= times->reduce.link == SIM_LINK_SCALE_OUT && times->gather.link == SIM_LINK_SCALE_OUT;
    *bucket = (Params){0};
}

typedef struct Filling {
    Params bucket;
    bool units, open;
    double limit, wire; /* bytes that close a bucket (0: none), of a parameter */
} Filling;

static void fill_bucket(SearchLane *lane, Filling *filling, double dense, double expert, int matrices,
                        Stage *stage)
{
    Params *bucket = &filling->bucket;
    add_params(bucket, dense, expert, matrices);
    const double bytes = (bucket->dense + bucket->expert) * filling->wire;
    filling->open = !filling->units && (filling->limit <= 0 || bytes < filling->limit);
    if (!filling->open)
        close_bucket(lane, bucket, stage);
}

/* Buckets fill from the stage's last segment to its first; under ZeRO-3 each segment is one. */
static Stage stage_buckets(SearchLane *lane, int index)
{
    const SearchCosts *costs = lane->costs;
    const int from = lane->deal->first[index], to = lane->deal->first[index + 1];
    const SearchEdge *last = lane->ranks == 1 ? &costs->tied_last : &costs->last, *first = &costs->first,
                     *mtp = &costs->mtp;
    Filling filling = {.units = lane->spec.parallel.zero >= 3,
                       .limit = lane->spec.execution.framework.bucket_bytes,
                       .wire = cost_gradient_wire_bytes(&lane->spec)};
    Stage stage = {.one_link = true};
    if (index + 1 == lane->stages) {
        fill_bucket(lane, &filling, last->dense, last->expert, last->matrices, &stage);
        for (int i = 0; i < lane->spec.model.mtp_layers; i++)
            fill_bucket(lane, &filling, mtp->dense, mtp->expert, mtp->matrices, &stage);
    }
    for (int layer = to - 1; layer >= from; layer--)
        fill_bucket(lane, &filling, costs->dense[layer + 1] - costs->dense[layer],
                    costs->expert[layer + 1] - costs->expert[layer],
                    (int)(costs->matrices[layer + 1] - costs->matrices[layer]), &stage);
    if (index == 0)
        fill_bucket(lane, &filling, first->dense, first->expert, first->matrices, &stage);
    if (filling.open)
        close_bucket(lane, &filling.bucket, &stage);
    return stage;
}

static Params stage_params(const SearchLane *lane, int index)
{
    const SearchCosts *costs = lane->costs;
    const SearchEdge *last = lane->ranks == 1 ? &costs->tied_last : &costs->last;
    const int from = lane->deal->first[index], to = lane->deal->first[index + 1];
    Params params = {costs->dense[to] - costs->dense[from], costs->expert[to] - costs->expert[from],
                     (int)(costs->matrices[to] - costs->matrices[from])};
    if (index == 0)
        add_params(&params, costs->first.dense, costs->first.expert, costs->first.matrices);
    if (index + 1 == lane->stages) {
        const SearchEdge *mtp = &costs->mtp;
        const int count = lane->spec.model.mtp_layers;
        add_params(&params, last->dense, last->expert, last->matrices);
        add_params(&params, count * mtp->dense, count * mtp->expert, count * mtp->matrices);
    }
    return params;
}

static Params rank_params(const SearchLane *lane, int rank)
{
    Params params = {0};
    for (int chunk = 0; chunk < stages_of_rank(lane); chunk++) {
        const Params stage = stage_params(lane, stage_of_rank(lane, rank, chunk));
        add_params(&params, stage.dense, stage.expert, stage.matrices);
    }
    return params;
}

static void fill_states(const SearchLane *lane, int rank, SearchTail *tail)
{
    const Params params = rank_params(lane, rank);
    const CostStates states = cost_states(&lane->spec, params.dense, params.expert);
    tail->static_bytes =
        states.weights_bytes + states.gradients_bytes + states.optimizer_bytes - 4 +
        (double)(rank + 1 == lane->ranks ? lane->costs->last_workspace_bytes : lane->costs->workspace_bytes);
    tail->whole_bytes = (params.dense + params.expert) *
                            (cost_gradient_wire_bytes(&lane->spec) +
                             (cost_keeps_gathered(&lane->spec) ? cost_weight_wire_bytes(&lane->spec) : 0)) -
                        64;
    tail->gathered_bytes =
        lane->spec.parallel.zero >= 3 && !lane->spec.execution.framework.reshard_after_forward
            ? (params.dense + params.expert) * cost_weight_wire_bytes(&lane->spec) - 64
            : 0;
}

static void fill_times(SearchLane *lane, int rank, SearchTail *tail)
{
    /* Gathers of a segment in a micro-batch: before the forward and again before the backward; without resharding in
     * between, once, for each backward gives the weights back; where a pipeline keeps them, once a step. */
    const bool keeps = cost_keeps_gathered(&lane->spec),
               reshard = lane->spec.execution.framework.reshard_after_forward;
    const Params params = rank_params(lane, rank);
    for (int chunk = 0; chunk < stages_of_rank(lane); chunk++) {
        const Stage stage = stage_buckets(lane, stage_of_rank(lane, rank, chunk));
        tail->reduce_ps += stage.reduce_ps;
        tail->gather_ps += stage.gather_ps;
        tail->stream_ps += keeps ? 0 : reshard ? 2 * stage.gather_ps - stage.last_gather_ps : stage.gather_ps;
        if (!keeps && stage.one_link)
            tail->link_ps +=
                stage.reduce_load_ps +
                (reshard ? 2 * stage.gather_load_ps - stage.last_gather_load_ps : stage.gather_load_ps);
        if (chunk == 0) {
            tail->last_reduce_ps = stage.last_reduce_ps;
            tail->near_reduce_ps = stage.reduce_ps;
            tail->first_gather_ps = stage.first_gather_ps;
            tail->near_gather_ps = stage.gather_ps;
        }
    }
    tail->optimizer_ps =
        llround(cost_optimizer_s(&lane->spec, params.dense, params.expert, params.matrices) * 1e12);
}

/* Samples that are the same rank share one. */
static int same_sample(const SearchLane *lane, int i)
{
    int same = 0;
    while (lane->sample[same] != lane->sample[i])
        same++;
    return same;
}

static void set_policy(SearchLane *lane, const SearchPolicy *policy)
{
    lane->spec.parallel.zero = policy->zero;
    lane->spec.parallel.zero_group_gpus = policy->zero_group_gpus;
}

void search_lane_states(SearchLane *lane, const SearchPolicy *policy, SearchTail *ret_tails)
{
    set_policy(lane, policy);
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const int same = same_sample(lane, i);
        ret_tails[i] = same < i ? ret_tails[same] : (SearchTail){0};
        if (same == i)
            fill_states(lane, lane->sample[i], &ret_tails[i]);
    }
}

void search_lane_tails(SearchLane *lane, const SearchPolicy *policy, SearchTail *ret_tails)
{
    search_lane_states(lane, policy, ret_tails);
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const int same = same_sample(lane, i);
        if (same < i)
            ret_tails[i] = ret_tails[same];
        else
            fill_times(lane, lane->sample[i], &ret_tails[i]);
    }
}

/* Reductions that are not over when the rank's compute is. Beside the backward they start no earlier than the last
 * backward of chunk 0, where that is the rank's last op. */
static int64_t open_reduce_ps(const SearchLane *lane, const SearchPolicy *policy, const SearchTail *tail,
                              int rank)
{
    if ((policy->overlap & SPEC_OVERLAP_GRAD_REDUCE) == 0)
        return policy->zero >= 2 && lane->spec.execution.framework.reduce_each_microbatch ? 0
                                                                                          : tail->reduce_ps;
    if (lane->deal->order->placement != SIM_PLACE_LOOP)
        return 0;
    const int64_t pass_ps = lane->input_ps[rank] + lane->again_ps[rank] + lane->weight_ps[rank];
    return MAX(tail->last_reduce_ps, tail->near_reduce_ps - pass_ps);
}

bool search_waits_for_sends(const SearchLane *lane, const SearchPolicy *policy)
{
    return lane->spec.execution.framework.p2p_blocking && (policy->overlap & SPEC_OVERLAP_PIPELINE) == 0;
}

/* Least time until the data parallelism of every micro-batch is done: gathers of ZeRO-3, and reductions where every
 * micro-batch has its own. Queues run one after the other; gathers and reductions share a link. */
static int64_t steady_ps(const SearchLane *lane, const SearchPolicy *policy, const SearchTail *tail,
                         int sample)
{
    const SpecFramework *framework = &lane->spec.execution.framework;
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const bool ahead = (policy->overlap & SPEC_OVERLAP_PARAM_GATHER) != 0 && framework->prefetch_units > 0;
    const bool reduces = policy->zero >= 2 && framework->reduce_each_microbatch &&
                         !(policy->zero == 3 && lane->ranks > 1 && framework->pipeline_keeps_params);
    /* micro-batches that pass each of the rank's stages */
    const int64_t each = lane->group->microbatches / (both_ends ? 2 : 1);
    int64_t least_ps = 0;
    if (policy->zero >= 3) {
        /* Without a gather ahead of its use compute waits for every one of them but the first, which may be under
         * way while the rank waits for its first input; messages, weight gradients and reductions may hide them. */
        const int64_t first_ps = both_ends ? tail->stream_ps : tail->first_gather_ps;
        least_ps = each * tail->stream_ps + (ahead ? 0 : lane->use_end_ps[sample] - first_ps);
    }
    if (!reduces)
        return least_ps;
    if ((policy->overlap & SPEC_OVERLAP_GRAD_REDUCE) == 0) /* compute waits for every one */
        return MAX(least_ps, lane->work_end_ps[sample] + each * tail->reduce_ps);
    return MAX(least_ps, each * MAX(tail->reduce_ps, policy->zero >= 3 ? tail->link_ps : 0));
}

int64_t search_bound_time(const SearchLane *lane, const SearchPolicy *policy, const SearchTail *tails)
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
        const int64_t reduced = MAX(end + open_reduce_ps(lane, policy, tail, lane->sample[i]),
                                    steady_ps(lane, policy, tail, i) - start_ps);
        const int64_t after = tail->optimizer_ps + (late_gather ? tail->gather_ps : 0);
        reduced_ps = MAX(reduced_ps, reduced);
        after_ps = MAX(after_ps, after);
        own_ps = MAX(own_ps, reduced + after);
    }
    /* The norm of all gradients keeps every optimizer until the last rank has reduced its own. */
    last_ps = framework->grad_norm_clip && !search_starts_skewed(lane) ? reduced_ps + after_ps
                                                                       : MAX(reduced_ps, own_ps);
    return start_ps + last_ps + (int64_t)llround(framework->step_overhead_s * 1e12);
}

double search_bound_bytes(const SearchLane *lane, const SearchPolicy *policy, const SearchTail *tails)
{
    const bool whole = policy->zero >= 3 && !lane->spec.execution.framework.reduce_each_microbatch;
    const int overlaps = (policy->overlap & SPEC_OVERLAP_GRAD_REDUCE) != 0;
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
    return most + lane->spec.execution.framework.context_bytes;
}

double search_replay_bytes(SearchLane *lane, const SearchPolicy *policy)
{
    double most = 0;
    set_policy(lane, policy);
    for (int r = 0; r < lane->ranks; r++) {
        SearchTail tail;
        fill_states(lane, r, &tail);
        most = fmax(most, tail.static_bytes + lane->rank_live_bytes[r]);
    }
    return most + lane->spec.execution.framework.context_bytes;
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
    search_extents(lane->space, lane->deal, extents);
    const bool ran = search_lane_replay(lane, &extents[id.extent], search_waits_for_sends(lane, policy),
                                        policy->zero >= 3);
    g_assert(ran);
    search_lane_tails(lane, policy, tails);
    *ret_least_ps = search_bound_time(lane, policy, tails);
    *ret_least_bytes = fmax(search_bound_bytes(lane, policy, tails), search_replay_bytes(lane, policy));
}
