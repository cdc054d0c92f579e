/* search/bound_data.c - what data parallelism takes and keeps on a rank: buckets, optimizer, states.
 * Tested: unit/search/test_search_bound.c
 */
#include <math.h>
#include <string.h>

#include "costmodel/freeze.h"
#include "costmodel/placement.h"
#include "costmodel/states.h"
#include "search/bound_parts.h"
#include "step/step.h"

/* A bucket's durations, kept once. */
typedef struct Bucket {
    CostWeights weights; /* tensors are counted where they cost something */
    int zero, zero_group_gpus;
    int degrees[9]; /* and the order of the ranks, the kind of GPUs, the precision */
    SimBucketWork reduce, gather;
} Bucket;

static guint bucket_hash(gconstpointer key)
{
    const Bucket *b = key;
    uint64_t hash = 1469598103934665603u;
    const double sizes[] = {b->weights.dense, b->weights.expert};
    uint64_t bits[2];
    memcpy(bits, sizes, sizeof bits);
    const uint64_t words[] = {bits[0], bits[1], (uint64_t)b->weights.tensors, (uint64_t)b->zero,
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
    const CostWeights *one = &a->weights, *other = &b->weights;
    return one->dense >= other->dense && one->dense <= other->dense && one->expert >= other->expert &&
           one->expert <= other->expert && one->tensors == other->tensors && one->vectors == other->vectors &&
           a->zero == b->zero && a->zero_group_gpus == b->zero_group_gpus &&
           memcmp(a->degrees, b->degrees, sizeof a->degrees) == 0;
}

GHashTable *search_buckets_new(void)
{
    return g_hash_table_new_full(bucket_hash, bucket_equal, g_free, NULL);
}

const Spec *search_spec_of_rank(SearchWorker *worker, int rank)
{
    if (worker->kinds == 1)
        return &worker->spec;
    search_hardware_spec(&worker->spec, worker->kind_of_rank[rank], worker->own_spec);
    return worker->own_spec;
}

static const Bucket *bucket_of(SearchWorker *worker, int rank, const CostWeights *weights)
{
    const SpecParallel *parallel = &worker->spec.parallel;
    const int counted = worker->rules.counts_tensors ? 1 : 0;
    Bucket key = {
        .weights = {weights->dense, weights->expert, counted * weights->tensors, counted * weights->vectors},
        .zero = parallel->zero,
        .zero_group_gpus = parallel->zero_group_gpus,
        .degrees = {parallel->tensor, parallel->context, parallel->data, parallel->expert,
                    parallel->expert_tensor, parallel->pipeline, worker->group->order,
                    worker->kind_of_rank[rank], worker->group->precision}};
    const Bucket *known = g_hash_table_lookup(worker->buckets, &key);
    if (known != NULL)
        return known;
    sim_step_bucket(search_spec_of_rank(worker, rank), weights, &key.reduce, &key.gather);
    Bucket *bucket = g_new(Bucket, 1);
    *bucket = key;
    g_hash_table_insert(worker->buckets, bucket, bucket);
    return bucket;
}

typedef struct Stage { /* what its buckets take */
    int64_t reduce_ps, last_reduce_ps, gather_ps, first_gather_ps, last_gather_ps;
    int64_t reduce_load_ps, gather_load_ps, last_gather_load_ps;
    int64_t reduce_sms_ps, last_reduce_sms_ps, gather_sms_ps, last_gather_sms_ps;
    double most_sms_frac, least_gather_sms_frac; /* of the SMs that one of them reserves */
    int64_t passes_ps;                           /* forwards of the segments from the bucket at hand on */
    int64_t ahead_ps; /* the most that these take longer than the gathers behind the bucket's own */
    int rank;
    bool one_link; /* all gathers and reductions are on the NIC */
} Stage;

static double sms_frac(const SimBucketWork *work)
{
    return work->ps > 0 ? (double)work->sms_ps / (double)work->ps : 0;
}

static void take_sms(const Bucket *times, Stage *stage)
{
    const double gather_frac = sms_frac(&times->gather);
    if (stage->gather_ps == 0) {
        stage->last_gather_sms_ps = times->gather.sms_ps;
        stage->least_gather_sms_frac = gather_frac;
    }
    stage->least_gather_sms_frac = MIN(stage->least_gather_sms_frac, gather_frac);
    stage->most_sms_frac = MAX(stage->most_sms_frac, MAX(gather_frac, sms_frac(&times->reduce)) + 1e-3);
    stage->reduce_sms_ps += times->reduce.sms_ps;
    stage->last_reduce_sms_ps = times->reduce.sms_ps;
    stage->gather_sms_ps += times->gather.sms_ps;
}

static void close_bucket(SearchWorker *worker, CostWeights *bucket, Stage *stage)
{
    const Bucket *times = bucket_of(worker, stage->rank, bucket);
    take_sms(times, stage);
    if (stage->gather_ps == 0) {
        stage->last_gather_ps = times->gather.ps;
        stage->last_gather_load_ps = times->gather.load_ps;
    }
    stage->reduce_ps += times->reduce.ps;
    stage->ahead_ps = MAX(stage->ahead_ps, stage->passes_ps - stage->gather_ps);
    stage->gather_ps += times->gather.ps;
    stage->last_reduce_ps = times->reduce.ps;
    stage->first_gather_ps = times->gather.ps;
    stage->reduce_load_ps += times->reduce.load_ps;
    stage->gather_load_ps += times->gather.load_ps;
    stage->one_link &=
        times->reduce.network == SIM_RESOURCE_SCALE_OUT && times->gather.network == SIM_RESOURCE_SCALE_OUT;
    *bucket = (CostWeights){0};
}

typedef struct Filling {
    CostWeights bucket;
    bool open;
    StepFilling rule;
} Filling;

static void fill_bucket(SearchWorker *worker, Filling *filling, const CostWeights *segment, Stage *stage)
{
    CostWeights *bucket = &filling->bucket;
    cost_weights_add(bucket, segment);
    filling->open = !step_completes_bucket(&filling->rule, cost_weights_count(bucket));
    if (!filling->open)
        close_bucket(worker, bucket, stage);
}

/* Of the layers from `from` up to `to`. */
static CostWeights layers_weights(const SearchCosts *costs, int from, int to)
{
    return cost_weights_without(&costs->weights[to], &costs->weights[from]);
}

/* Of the head; without a pipeline a tied one has no table. */
static const CostWeights *last_weights(const SearchWorker *worker)
{
    const SearchCosts *costs = worker->costs;
    return worker->ranks == 1 ? &costs->tied_last_weights : &costs->last.weights;
}

static CostWeights stage_weights(const SearchWorker *worker, int index)
{
    const SearchCosts *costs = worker->costs;
    CostWeights weights =
        layers_weights(costs, worker->partition->first[index], worker->partition->first[index + 1]);
    if (index == 0)
        cost_weights_add(&weights, &costs->first.weights);
    if (index + 1 == worker->stages) {
        cost_weights_add(&weights, last_weights(worker));
        for (int i = 0; i < worker->spec.model.mtp_layers; i++)
            cost_weights_add(&weights, &costs->mtp_weights);
    }
    return weights;
}

/* The stage's first segment: the embedding, a layer, or of a stage without layers the end of the model. */
static CostWeights first_segment(const SearchWorker *worker, int index)
{
    const SearchCosts *costs = worker->costs;
    const int from = worker->partition->first[index], to = worker->partition->first[index + 1];
    if (index > 0 && to > from)
        return layers_weights(costs, from, from + 1);
    return index == 0                          ? costs->first.weights
           : worker->spec.model.mtp_layers > 0 ? costs->mtp_weights
                                               : costs->last.weights;
}

/* Durations of pieces are rounded one by one. */
static int64_t rounded_down(int64_t ps)
{
    return ps - ps / 1000000 - (ps > 0);
}

/* How much longer a stage's forward is that begins together with its gathers, where each bucket's segments wait for it: by
 * the first gather, or by all of them where no pass is long enough to hide the rest. */
static int64_t gathers_wait_ps(const SearchWorker *worker, int index, const Stage *stage)
{
    return MAX(stage->first_gather_ps, stage->gather_ps + stage->ahead_ps - worker->forward_ps[index]);
}

/* Forwards behind the last bucket of tensors, which is closed as soon as it is full. */
static int64_t behind_last_bucket_ps(const SearchWorker *worker, int index)
{
    const SearchCosts *costs = worker->costs, *own = search_costs_of(worker, index);
    const int from = worker->partition->first[index], to = worker->partition->first[index + 1];
    const double full = worker->rules.bucket_bytes / worker->rules.gradient_wire_bytes;
    const bool tail = index + 1 == worker->stages;
    int layer = to;
    if (full <= 0 || worker->rules.fill == STEP_FILL_TENSORS_FIRST)
        return 0;
    double held = tail ? stage_weights(worker, index).dense - layers_weights(costs, from, to).dense -
                             (index == 0 ? costs->first.weights.dense : 0)
                       : 0;
    if (held >= full)
        return 0;
    while (layer > from && held < full)
        held += layers_weights(costs, layer - 1, layer).dense, layer--;
    return own->forward_ps[to] - own->forward_ps[held >= full ? layer : from] +
           (tail ? own->last.forward_ps : 0);
}

/* Buckets of tensors: several take no less than one of all their bytes, whose start-up is one. Those that hold tensors of the
 * first segment are whole after it alone. Tested: /search-offload/dealt-buckets */
static Stage dealt_buckets(SearchWorker *worker, int rank, int index)
{
    const CostWeights whole = stage_weights(worker, index), first = first_segment(worker, index);
    const Bucket all = *bucket_of(worker, rank, &whole);
    const Bucket last = *bucket_of(worker, rank, &first);
    const int64_t gather_ps = rounded_down(all.gather.ps);
    return (Stage){.rank = rank,
                   .reduce_ps = rounded_down(all.reduce.ps),
                   .last_reduce_ps = rounded_down(MIN(last.reduce.ps, all.reduce.ps)),
                   .gather_ps = gather_ps,
                   .first_gather_ps = rounded_down(MIN(last.gather.ps, all.gather.ps)),
                   .ahead_ps = behind_last_bucket_ps(worker, index),
                   .last_gather_ps = gather_ps};
}

/* Embedding and head are one unit, the one whose weights the backward does not gather again. */
static Stage with_root(SearchWorker *worker, Filling *filling, const Stage *layers)
{
    CostWeights root = worker->costs->first.weights;
    Stage stage = *layers;
    cost_weights_add(&root, last_weights(worker));
    fill_bucket(worker, filling, &root, &stage);
    stage.last_gather_ps = stage.gather_ps - layers->gather_ps;
    stage.last_gather_load_ps = stage.gather_load_ps - layers->gather_load_ps;
    stage.last_gather_sms_ps = stage.gather_sms_ps - layers->gather_sms_ps;
    return stage;
}

/* Buckets fill from the stage's last segment to its first; under ZeRO-3, and where ZeRO 2 goes by layers, each segment is
 * one. */
static Stage stage_buckets(SearchWorker *worker, int rank, int index)
{
    const SearchCosts *costs = worker->costs, *own = search_costs_of(worker, index);
    const int from = worker->partition->first[index], to = worker->partition->first[index + 1];
    Filling filling = {.rule = step_filling(&worker->rules)};
    Stage stage = {.rank = rank, .one_link = true};
    if (worker->rules.fill == STEP_FILL_TENSORS_FIRST || worker->rules.fill == STEP_FILL_TENSORS_LAST)
        return dealt_buckets(worker, rank, index);
    const bool root = worker->rules.root_unit;
    if (index + 1 == worker->stages) {
        if (!root)
            fill_bucket(worker, &filling, last_weights(worker), &stage);
        for (int i = 0; i < worker->spec.model.mtp_layers; i++)
            fill_bucket(worker, &filling, &costs->mtp_weights, &stage);
        stage.passes_ps = own->last.forward_ps;
    }
    for (int layer = to - 1; layer >= from; layer--) {
        stage.passes_ps += own->forward_ps[layer + 1] - own->forward_ps[layer];
        const CostWeights weights = layers_weights(costs, layer, layer + 1);
        fill_bucket(worker, &filling, &weights, &stage);
    }
    if (root)
        return with_root(worker, &filling, &stage);
    if (index == 0)
        fill_bucket(worker, &filling, &costs->first.weights, &stage);
    if (filling.open)
        close_bucket(worker, &filling.bucket, &stage);
    return stage;
}

static CostWeights rank_weights(const SearchWorker *worker, int rank)
{
    CostWeights weights = {0};
    for (int chunk = 0; chunk < search_stages_of_rank(worker); chunk++) {
        const CostWeights stage = stage_weights(worker, search_stage_of_rank(worker, rank, chunk));
        cost_weights_add(&weights, &stage);
    }
    return weights;
}

static double workspace_bytes(const SearchWorker *worker, int rank)
{
    const SearchCosts *costs = search_costs_of_rank(worker, rank);
    int layers = 0;
    for (int chunk = 0; chunk < search_stages_of_rank(worker); chunk++) {
        const int stage = search_stage_of_rank(worker, rank, chunk);
        layers += worker->partition->first[stage + 1] - worker->partition->first[stage];
    }
    return (double)(rank + 1 == worker->ranks ? costs->last_workspace_bytes : costs->workspace_bytes) +
           (layers > 0 ? (double)costs->layer_workspace_bytes : 0);
}

/* States off the GPU: what stays for certain is the workspace, and weights that no scheme moves. */
static void fill_offloaded_states(const SearchWorker *worker, int rank, const CostStates *states,
                                  SearchDataCosts *data)
{
    const bool weights = worker->spec.offload.weights.tier == SPEC_TIER_GPU;
    data->static_bytes = (weights ? states->weights_bytes : 0) + workspace_bytes(worker, rank) - 4;
}

static void fill_states(const SearchWorker *worker, int rank, SearchDataCosts *data)
{
    const CostWeights weights = rank_weights(worker, rank);
    const double count = cost_weights_count(&weights);
    const CostStates states = cost_states(&worker->spec, &weights);
    if (spec_offloads_states(&worker->spec.offload)) {
        fill_offloaded_states(worker, rank, &states, data);
        return;
    }
    data->static_bytes = states.weights_bytes + states.gradients_bytes + states.optimizer_bytes - 4 +
                         workspace_bytes(worker, rank) - 1;
    data->whole_bytes = count * (cost_unsharded_gradient_bytes(&worker->spec) +
                                 (worker->rules.keeps_gathered ? cost_weight_wire_bytes(&worker->spec) : 0)) -
                        64;
    data->gathered_bytes = worker->rules.sharded_weights && !worker->rules.reshards_after_forward
                               ? count * cost_weight_wire_bytes(&worker->spec) - 64
                               : 0;
}

static void fill_times(SearchWorker *worker, int rank, SearchDataCosts *data)
{
    /* of a unit, and of the last, in one micro-batch */
    const bool stops = cost_part_stops(&worker->spec, COST_PART_LAYER, 0, 0); /* where, it does not ask */
    const int64_t often = step_gathers_of(&worker->rules, stops, 1),
                  last = step_gathers_of(&worker->rules, true, 1);
    const CostWeights weights = rank_weights(worker, rank);
    for (int chunk = 0; chunk < search_stages_of_rank(worker); chunk++) {
        const Stage stage = stage_buckets(worker, rank, search_stage_of_rank(worker, rank, chunk));
        data->reduce_ps += stage.reduce_ps;
        data->gather_ps += stage.gather_ps;
        data->stream_ps += often * stage.gather_ps - (often - last) * stage.last_gather_ps;
        data->reduce_sms_ps += stage.reduce_sms_ps;
        data->gather_sms_ps += stage.gather_sms_ps;
        data->stream_sms_ps += often * stage.gather_sms_ps - (often - last) * stage.last_gather_sms_ps;
        data->most_sms_frac = MAX(data->most_sms_frac, stage.most_sms_frac);
        if (!worker->rules.keeps_gathered && stage.one_link)
            data->link_ps += stage.reduce_load_ps + often * stage.gather_load_ps -
                             (often - last) * stage.last_gather_load_ps;
        if (chunk == 0) {
            data->last_reduce_ps = stage.last_reduce_ps;
            data->last_reduce_sms_ps = stage.last_reduce_sms_ps;
            data->near_reduce_ps = stage.reduce_ps;
            data->first_gather_ps = stage.first_gather_ps;
            data->wait_ps = gathers_wait_ps(worker, search_stage_of_rank(worker, rank, chunk), &stage);
        }
    }
    data->optimizer_ps = sim_ps(cost_optimizer_s(search_spec_of_rank(worker, rank), &weights));
}

/* Samples that are the same rank share one. */
static int same_sample(const SearchWorker *worker, int i)
{
    int same = 0;
    while (worker->sample[same] != worker->sample[i])
        same++;
    return same;
}

void search_worker_states(SearchWorker *worker, const SearchPolicy *policy, SearchDataCosts *ret_data)
{
    search_take_policy(worker, policy);
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const int same = same_sample(worker, i);
        ret_data[i] = same < i ? ret_data[same] : (SearchDataCosts){0};
        if (same == i)
            fill_states(worker, worker->sample[i], &ret_data[i]);
    }
}

void search_worker_data(SearchWorker *worker, const SearchPolicy *policy, SearchDataCosts *ret_data)
{
    search_worker_states(worker, policy, ret_data);
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const int same = same_sample(worker, i);
        if (same < i)
            ret_data[i] = ret_data[same];
        else if (!spec_offloads_states(&worker->spec.offload)) /* then passes alone bound the step */
            fill_times(worker, worker->sample[i], &ret_data[i]);
    }
}

SearchWay search_way(SearchWorker *worker, const SearchPolicy *policy)
{
    const Spec *spec = &worker->spec;
    search_take_policy(worker, policy);
    SearchWay way = {.blocking = worker->rules.waits_for_sends, .sharded = worker->rules.sharded_weights};
    if (way.sharded ||
        spec_offloads_states(&spec->offload)) /* passes alone bound the step, and what is steady */
        return way;
    way.reduces = worker->rules.reduces;
    way.gathers = worker->rules.gathers;
    return way;
}

void search_worker_stages(SearchWorker *worker, const SearchPolicy *policy, SearchStageData *ret_stages)
{
    const int chunks = search_stages_of_rank(worker);
    search_take_policy(worker, policy);
    for (int i = 0; i < worker->ranks * chunks; i++) {
        const int index = search_stage_of_rank(worker, i / chunks, i % chunks);
        const Stage stage = stage_buckets(worker, i / chunks, index);
        ret_stages[i] = (SearchStageData){.gather_ps = stage.gather_ps,
                                          .wait_ps = gathers_wait_ps(worker, index, &stage),
                                          .reduce_ps = stage.reduce_ps,
                                          .last_reduce_ps = stage.last_reduce_ps,
                                          .reduce_sms_ps = stage.reduce_sms_ps,
                                          .last_reduce_sms_ps = stage.last_reduce_sms_ps,
                                          .gather_sms_frac = stage.least_gather_sms_frac};
    }
}

double search_replay_bytes(SearchWorker *worker, const SearchPolicy *policy)
{
    double most = 0;
    search_take_policy(worker, policy);
    for (int r = 0; r < worker->ranks; r++) {
        SearchDataCosts data = {0};
        fill_states(worker, r, &data);
        most = fmax(most, data.static_bytes + worker->rank_live_bytes[r] +
                              search_hardware_lacks_bytes(worker->space->spec, worker->kind_of_rank[r]));
    }
    return most + worker->rules.context_bytes;
}
