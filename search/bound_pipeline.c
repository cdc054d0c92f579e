/* search/bound_pipeline.c - the least time until the ranks' compute is over.
 *
 * With U_r the work of one micro-batch on rank r, m micro-batches, fill_r what the first forward takes to reach rank r
 * and drain_r what the last gradient takes from rank r back to rank 0:
 *
 *   any order:  end_r >= fill_r + m U_r
 *   one copy of the model: a micro-batch comes back to chunk 0 of a rank last, so that the last gradient which the rank
 *     passes on is one of chunk 0, and nothing but weight gradients stays behind it, of W_r in sum (0 where they are not
 *     apart):  end_0 >= fill_r + m U_r - W_r + drain_r + W_0
 *   k micro-batches that leave and come back to the first stage one after the other:  end_0 >= k (there and back)
 *   a first forward that waits for its gathers is that much longer, and so is every fill behind it
 *   overlapped pairs: end_r >= fill_r + all ops of rank r, pairs and passes alone, counted exactly
 *
 * What the order says (W_r, k, pairs) is read off it; of orders that follow the times at hand the least of all is taken.
 * Tested: unit/search/test_search_bound.c
 */
#include "search/bound_parts.h"

static int64_t back_ps(const SearchWorker *worker, int stage)
{
    return worker->input_ps[stage] + worker->recompute_ps[stage];
}

/* What a stage's neighbour waits for: weight gradients too, where they are not apart. */
static int64_t drain_ps(const SearchWorker *worker, int stage)
{
    return back_ps(worker, stage) + (sim_schedule_has(worker->partition->order, SIM_TRAIT_SPLITS_BACKWARD)
                                         ? 0
                                         : worker->weight_ps[stage]);
}

static int stage_of(const SearchWorker *worker, int rank, int chunk)
{
    return sim_stage_of(worker->partition->order->placement, worker->ranks, worker->chunks, rank, chunk);
}

static int64_t pass_ps(const SearchWorker *worker, int stage)
{
    return worker->forward_ps[stage] + back_ps(worker, stage) + worker->weight_ps[stage];
}

int64_t search_hop_ps(const SearchWorker *worker, int rank, int other)
{
    const int low = MIN(rank, other), high = MAX(rank, other);
    if (low == high)
        return 0;
    return high - low == 1 ? worker->hop_ps[low] : worker->hop_ps[worker->ranks - 1];
}

/* Messages that rank `rank` sends a micro-batch. */
static int64_t sends_ps(const SearchWorker *worker, int rank)
{
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < worker->chunks; chunk++) {
        const int stage = stage_of(worker, rank, chunk);
        int other = 0, ignored = 0;
        for (int step = -1; step <= 1; step += 2) {
            if (stage + step < 0 || stage + step >= worker->stages)
                continue;
            sim_place_of(worker->partition->order->placement, worker->ranks, worker->chunks, stage + step,
                         &other, &ignored);
            sum_ps += search_hop_ps(worker, rank, other);
        }
    }
    return sum_ps;
}

static int64_t work_ps(const SearchWorker *worker, int rank)
{
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < worker->chunks; chunk++)
        sum_ps += pass_ps(worker, stage_of(worker, rank, chunk));
    return sum_ps;
}

/* Weight gradients behind the last gradient that a rank passes on; the least time that they take, and the most. */
static void left_over(const SearchWorker *worker, int rank, int64_t *ret_least_ps, int64_t *ret_most_ps)
{
    const bool splits = sim_schedule_has(worker->partition->order, SIM_TRAIT_SPLITS_BACKWARD);
    *ret_least_ps = *ret_most_ps = 0;
    for (int chunk = 0; splits && chunk < worker->chunks; chunk++) {
        const int64_t weight_ps = worker->weight_ps[stage_of(worker, rank, chunk)];
        const int known = worker->facts != NULL ? worker->facts->ranks[rank].weights_left[chunk] : 0;
        *ret_least_ps += known * weight_ps;
        *ret_most_ps += (worker->facts != NULL ? known : worker->group->microbatches) * weight_ps;
    }
    if (rank == worker->ranks - 1)
        *ret_most_ps += worker->deferred_heads * worker->head_left_out_ps;
}

/* Micro-batches that go through the model and back in a row, of which head gradients may be left out. */
static int64_t round_trips_ps(const SearchWorker *worker)
{
    const SimPlacement placement = worker->partition->order->placement;
    int64_t chain = 0;
    if (worker->facts == NULL || worker->facts->round_trips == 0)
        return 0;
    for (int s = 0, here = 0, next = 0, chunk = 0; s < worker->stages; s++, here = next) {
        chain += worker->forward_ps[s] + drain_ps(worker, s);
        if (s + 1 == worker->stages)
            break;
        sim_place_of(placement, worker->ranks, worker->chunks, s + 1, &next, &chunk);
        chain += 2 * search_hop_ps(worker, here, next);
    }
    const int64_t trips = worker->facts->round_trips;
    return trips * chain - MIN(trips, worker->deferred_heads) * worker->head_left_out_ps;
}

/* end_0 over every rank's drain, and every rank's own end. */
static void bound_chain(SearchWorker *worker, bool blocking)
{
    const int64_t m = worker->group->microbatches;
    int64_t drain = 0, least = 0, most = 0, rest = 0;
    left_over(worker, 0, &rest, &most);
    for (int r = 0; r < worker->ranks; r++) {
        const int64_t own_send = r > 0 ? search_hop_ps(worker, r, r - 1) : 0;
        const int64_t end =
            worker->fill_ps[r] + m * (work_ps(worker, r) + (blocking ? sends_ps(worker, r) : 0));
        left_over(worker, r, &least, &most);
        const int64_t own =
            (blocking ? end - own_send : end) - (search_starts_skewed(worker) ? worker->fill_ps[r] : 0);
        worker->rank_end_ps[blocking][r] = own;
        worker->back_end_ps[blocking][r] =
            r == 0 ? own : end - most + drain + (blocking ? 0 : own_send) + rest;
        /* what the next rank's gradient passes on its way to rank 0, this rank included */
        drain += drain_ps(worker, stage_of(worker, r, 0)) + own_send;
    }
    worker->trips_ps = round_trips_ps(worker);
}

/* All ops of a rank with two stages, each of which `each` micro-batches pass. With ZeRO-3 or activations on the host no
 * pair is overlapped. */
static int64_t paired_work_ps(const SearchWorker *worker, int rank, int64_t each)
{
    int64_t alone_ps = 0, saved_ps = 0;
    for (int chunk = 0; chunk < 2; chunk++) {
        const int ahead = search_stage_of_rank(worker, rank, chunk),
                  back = search_stage_of_rank(worker, rank, 1 - chunk);
        const int64_t pairs = worker->facts != NULL ? worker->facts->ranks[rank].pairs[chunk] : each;
        alone_ps += each * pass_ps(worker, ahead);
        if (search_pairs_at(worker, ahead))
            saved_ps += pairs * (worker->forward_ps[ahead] + back_ps(worker, back) + worker->weight_ps[back] -
                                 worker->pair_ps[ahead]);
    }
    return MIN(alone_ps, alone_ps - saved_ps);
}

/* Two copies, half of the micro-batches each, or two stages a rank; a pair may hide its exchange. */
static void bound_pairs(SearchWorker *worker, bool blocking)
{
    const bool copies = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int64_t each = worker->group->microbatches / (copies ? 2 : 1);
    for (int r = 0; r < worker->ranks; r++) {
        worker->rank_end_ps[blocking][r] =
            (search_starts_skewed(worker) ? 0 : worker->fill_ps[r]) + paired_work_ps(worker, r, each);
        worker->back_end_ps[blocking][r] = r == 0 ? worker->rank_end_ps[blocking][r] : 0;
    }
    worker->trips_ps = 0;
}

/* Fill and all passes that use weights. */
static int64_t use_end_ps(const SearchWorker *worker, int rank)
{
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int count = both_ends ? 2 : worker->chunks;
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < count; chunk++) {
        const int stage = !both_ends   ? stage_of(worker, rank, chunk)
                          : chunk == 0 ? rank
                                       : worker->ranks - 1 - rank;
        sum_ps += worker->forward_ps[stage] + drain_ps(worker, stage);
    }
    return (search_starts_skewed(worker) ? 0 : worker->fill_ps[rank]) +
           worker->group->microbatches / (both_ends ? 2 : 1) * sum_ps;
}

void search_bound_fill(SearchWorker *worker)
{
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    int64_t fill = 0;
    for (int r = 0; r < worker->ranks; r++) {
        worker->fill_ps[r] = fill;
        fill += worker->forward_ps[r] + (r + 1 < worker->ranks ? worker->hop_ps[r] : 0);
    }
    for (int r = worker->ranks / 2; both_ends && r < worker->ranks; r++) {
        fill = 0;
        for (int s = 0; s < worker->ranks - 1 - r; s++)
            fill += worker->forward_ps[s] + worker->hop_ps[worker->ranks - 2 - s];
        worker->fill_ps[r] = fill;
    }
}

/* Some rank may take less than the sum of its passes. */
static bool hides_exchange(const SearchWorker *worker)
{
    bool any = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    for (int stage = 0; search_has_pairs(worker) && stage < worker->stages; stage++)
        any = any || worker->exchanges[stage];
    return any;
}

void search_bound_ends(const SearchWorker *worker, bool blocking, const SearchStageData *stages,
                       SearchEnds *ret_ends)
{
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int chunks = search_stages_of_rank(worker);
    int64_t fill_ps = 0, all_ps = 0;
    *ret_ends = (SearchEnds){0};
    for (int r = 0; r < worker->ranks; r++) {
        int64_t own_ps = 0; /* the rank's own waits; `fill_ps`: those of ranks before it */
        for (int chunk = 0; stages != NULL && chunk < chunks; chunk++)
            own_ps += stages[r * chunks + chunk].wait_ps;
        const int64_t end_ps =
            worker->rank_end_ps[blocking][r] + (search_starts_skewed(worker) ? 0 : fill_ps + own_ps);
        for (int i = 0; i < SEARCH_SAMPLES; i++)
            if (worker->sample[i] == r)
                ret_ends->own_ps[i] = end_ps;
        ret_ends->latest_ps = MAX(ret_ends->latest_ps, end_ps);
        ret_ends->first_ps = MAX(ret_ends->first_ps, worker->back_end_ps[blocking][r] + fill_ps + own_ps);
        fill_ps += stages == NULL || both_ends ? 0 : stages[r * chunks].wait_ps;
        all_ps += own_ps;
    }
    if (worker->trips_ps > 0)
        ret_ends->first_ps = MAX(ret_ends->first_ps, worker->trips_ps + all_ps);
    ret_ends->latest_ps = MAX(ret_ends->latest_ps, ret_ends->first_ps);
}

void search_bound_pipeline(SearchWorker *worker)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        if (hides_exchange(worker))
            bound_pairs(worker, blocking != 0);
        else
            bound_chain(worker, blocking != 0);
        search_bound_ends(worker, blocking != 0, NULL, &worker->ends[blocking]);
        worker->replayed[blocking] = (SearchEnds){0};
    }
    worker->with_data = (SearchEnds){0};
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        worker->work_end_ps[i] = worker->ends[0].own_ps[i];
        worker->use_end_ps[i] = use_end_ps(worker, worker->sample[i]);
    }
}
