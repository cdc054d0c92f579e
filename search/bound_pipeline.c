/* search/bound_pipeline.c - the least time until the ranks' compute is over, by schedule.
 *
 * With U_r the work of one micro-batch on rank r, m micro-batches, fill_r what the first forward takes to reach rank r
 * and drain_r what the last gradient takes from rank r back to rank 0:
 *
 *   any schedule:  end_r >= fill_r + m U_r
 *   last op of every rank is a backward of chunk 0:  end_0 >= fill_r + m U_r + drain_r
 *   w_r weight gradients behind the last input gradient:  end_q >= fill_r + m U_r - w_r W_r + drain_rq + w_q W_q
 *   naive:  end_0 >= m (everything in a row)
 *   DualPipe and DualPipeV: end_r >= fill_r + all ops of rank r, pairs and passes alone, counted exactly
 *
 * Tested: unit/test_search_bound.c
 */
#include "search/bound_internal.h"

static int64_t back_ps(const SearchLane *lane, int stage)
{
    return lane->input_ps[stage] + lane->again_ps[stage];
}

/* What a stage's neighbour waits for: weight gradients too, where they are not apart. */
static int64_t drain_ps(const SearchLane *lane, int stage)
{
    return back_ps(lane, stage) + (search_splits_backward(lane->deal->schedule) ? 0 : lane->weight_ps[stage]);
}

static int stage_of(const SearchLane *lane, int rank, int chunk)
{
    return sim_stage_of(lane->deal->order->placement, lane->ranks, lane->chunks, rank, chunk);
}

static int64_t pass_ps(const SearchLane *lane, int stage)
{
    return lane->forward_ps[stage] + back_ps(lane, stage) + lane->weight_ps[stage];
}

int64_t search_hop_ps(const SearchLane *lane, int rank, int other)
{
    const int low = MIN(rank, other), high = MAX(rank, other);
    if (low == high)
        return 0;
    return high - low == 1 ? lane->hop_ps[low] : lane->hop_ps[lane->ranks - 1];
}

/* Messages that rank `rank` sends a micro-batch. */
static int64_t sends_ps(const SearchLane *lane, int rank)
{
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < lane->chunks; chunk++) {
        const int stage = stage_of(lane, rank, chunk);
        int other = 0, ignored = 0;
        for (int step = -1; step <= 1; step += 2) {
            if (stage + step < 0 || stage + step >= lane->stages)
                continue;
            sim_place_of(lane->deal->order->placement, lane->ranks, lane->chunks, stage + step, &other,
                         &ignored);
            sum_ps += search_hop_ps(lane, rank, other);
        }
    }
    return sum_ps;
}

static int64_t work_ps(const SearchLane *lane, int rank)
{
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < lane->chunks; chunk++)
        sum_ps += pass_ps(lane, stage_of(lane, rank, chunk));
    return sum_ps;
}

/* Weight gradients behind the last input gradient of a rank; the least time that they take, and the most. */
static void left_over(const SearchLane *lane, int rank, int64_t *ret_least_ps, int64_t *ret_most_ps)
{
    const int m = lane->group->microbatches, p = lane->ranks;
    const int64_t w0 = lane->weight_ps[stage_of(lane, rank, 0)];
    const int64_t w1 = lane->chunks > 1 ? lane->weight_ps[stage_of(lane, rank, 1)] : 0;
    switch (lane->deal->schedule) {
    case SPEC_SCHEDULE_ZB_H1:
    case SPEC_SCHEDULE_ZB_H2: {
        const int h = lane->deal->schedule == SPEC_SCHEDULE_ZB_H1 ? 1 : 2;
        *ret_least_ps = *ret_most_ps = MIN(m, h * rank + 1) * w0;
        return;
    }
    case SPEC_SCHEDULE_ZB_V:
        *ret_least_ps = w0;
        *ret_most_ps = m >= 2 * p - 1 ? (rank + 1) * w0 + rank * w1 : m * (w0 + w1);
        return;
    case SPEC_SCHEDULE_DUALPIPEV:
        *ret_least_ps = MIN(w0, w1);
        *ret_most_ps = (rank + 1) * MAX(w0, w1);
        return;
    case SPEC_SCHEDULE_ZB_AUTO: /* whole backwards, or all weight gradients at the end */
        *ret_least_ps = 0;
        *ret_most_ps = m * w0;
        return;
    case SPEC_SCHEDULE_V_HALF:
    case SPEC_SCHEDULE_V_MIN:
        *ret_least_ps = w0;
        *ret_most_ps = m * (w0 + w1);
        return;
    default:
        *ret_least_ps = *ret_most_ps = 0;
        if (rank == p - 1)
            *ret_most_ps = search_deferred_heads(lane) * lane->costs->head_left_out_ps;
        return;
    }
}

/* end_0 over every rank's drain; also the sampled ranks' own ends. */
static void bound_chain(SearchLane *lane, bool blocking)
{
    const int64_t m = lane->group->microbatches;
    int64_t drain = 0, first_end = 0, latest = 0, least = 0, most = 0, rest = 0;
    left_over(lane, 0, &rest, &most);
    for (int r = 0; r < lane->ranks; r++) {
        const int64_t own_send = r > 0 ? search_hop_ps(lane, r, r - 1) : 0;
        const int64_t end = lane->fill_ps[r] + m * (work_ps(lane, r) + (blocking ? sends_ps(lane, r) : 0));
        left_over(lane, r, &least, &most);
        const int64_t own =
            (blocking ? end - own_send : end) - (search_starts_skewed(lane) ? lane->fill_ps[r] : 0);
        if (r == 0)
            first_end = MAX(first_end, own);
        else
            first_end = MAX(first_end, end - most + drain + (blocking ? 0 : own_send) + rest);
        latest = MAX(latest, own);
        for (int i = 0; i < SEARCH_SAMPLES; i++)
            if (lane->sample[i] == r)
                lane->end_ps[blocking][i] = own;
        /* what the next rank's gradient passes on its way to rank 0, this rank included */
        drain += drain_ps(lane, stage_of(lane, r, 0)) + own_send;
    }
    lane->first_end_ps[blocking] = first_end;
    lane->latest_ps[blocking] = MAX(latest, first_end);
}

static void bound_naive(SearchLane *lane, bool blocking)
{
    int64_t chain = 0;
    for (int s = 0; s < lane->stages; s++)
        chain += pass_ps(lane, s) + (s + 1 < lane->stages ? 2 * lane->hop_ps[s] : 0);
    bound_chain(lane, blocking);
    lane->first_end_ps[blocking] = MAX(lane->first_end_ps[blocking], chain * lane->group->microbatches);
    lane->latest_ps[blocking] = MAX(lane->latest_ps[blocking], lane->first_end_ps[blocking]);
}

/* All ops of a rank with stages a, the nearer one, and b, each of which `each` micro-batches pass: `near_pairs` forwards
 * of a beside a backward of b, `far_pairs` of b beside one of a (sim/schedule_dualpipe.c). With ZeRO-3 or
 * activations on the host there are none. */
static int64_t paired_work_ps(const SearchLane *lane, int a, int b, int64_t each, int64_t near_pairs,
                              int64_t far_pairs)
{
    const int64_t back_a = back_ps(lane, a) + lane->weight_ps[a],
                  back_b = back_ps(lane, b) + lane->weight_ps[b];
    const int64_t pair_a = search_pairs_at(lane, a) ? lane->pair_ps[a] : lane->forward_ps[a] + back_b;
    const int64_t pair_b = search_pairs_at(lane, b) ? lane->pair_ps[b] : lane->forward_ps[b] + back_a;
    const int64_t alone_ps = each * (pass_ps(lane, a) + pass_ps(lane, b));
    const int64_t paired_ps = near_pairs * pair_a + (each - near_pairs) * (lane->forward_ps[a] + back_b) +
                              far_pairs * pair_b + (each - far_pairs) * (lane->forward_ps[b] + back_a);
    return MIN(alone_ps, paired_ps);
}

/* Two copies, half of the micro-batches each, or two stages a rank; a pair may hide its exchange. */
static void bound_pairs(SearchLane *lane, bool blocking)
{
    const bool copies = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int64_t each = copies ? lane->group->microbatches / 2 : lane->group->microbatches;
    const int half = copies ? lane->ranks / 2 : lane->ranks;
    int64_t latest = 0;
    for (int r = 0; r < lane->ranks; r++) {
        const int across = (copies ? 1 : 2) * lane->ranks - 1 - r, h = copies ? MIN(r, across) : r;
        const int64_t near_pairs = each - 2 * half + h + 1 - (h == half - 1 ? 1 : 0);
        const int64_t own = (search_starts_skewed(lane) ? 0 : lane->fill_ps[r]) +
                            paired_work_ps(lane, copies ? h : r, copies ? lane->ranks - 1 - h : across, each,
                                           near_pairs, each - half);
        latest = MAX(latest, own);
        for (int i = 0; i < SEARCH_SAMPLES; i++)
            if (lane->sample[i] == r)
                lane->end_ps[blocking][i] = own;
        if (r == 0)
            lane->first_end_ps[blocking] = own;
    }
    lane->latest_ps[blocking] = latest;
}

/* Fill and all passes that use weights. */
static int64_t use_end_ps(const SearchLane *lane, int rank)
{
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int count = both_ends ? 2 : lane->chunks;
    int64_t sum_ps = 0;
    for (int chunk = 0; chunk < count; chunk++) {
        const int stage = !both_ends   ? stage_of(lane, rank, chunk)
                          : chunk == 0 ? rank
                                       : lane->ranks - 1 - rank;
        sum_ps += lane->forward_ps[stage] + drain_ps(lane, stage);
    }
    return (search_starts_skewed(lane) ? 0 : lane->fill_ps[rank]) +
           lane->group->microbatches / (both_ends ? 2 : 1) * sum_ps;
}

void search_bound_fill(SearchLane *lane)
{
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    int64_t fill = 0;
    for (int r = 0; r < lane->ranks; r++) {
        lane->fill_ps[r] = fill;
        fill += lane->forward_ps[r] + (r + 1 < lane->ranks ? lane->hop_ps[r] : 0);
    }
    for (int r = lane->ranks / 2; both_ends && r < lane->ranks; r++) {
        fill = 0;
        for (int s = 0; s < lane->ranks - 1 - r; s++)
            fill += lane->forward_ps[s] + lane->hop_ps[lane->ranks - 2 - s];
        lane->fill_ps[r] = fill;
    }
}

/* Some rank may take less than the sum of its passes. */
static bool hides_exchange(const SearchLane *lane)
{
    bool any = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    for (int stage = 0; search_has_pairs(lane) && stage < lane->stages; stage++)
        any = any || lane->exchanges[stage];
    return any;
}

void search_bound_pipeline(SearchLane *lane)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        if (hides_exchange(lane))
            bound_pairs(lane, blocking != 0);
        else if (lane->deal->schedule == SPEC_SCHEDULE_NAIVE)
            bound_naive(lane, blocking != 0);
        else
            bound_chain(lane, blocking != 0);
    }
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        lane->work_end_ps[i] = lane->end_ps[0][i];
        lane->use_end_ps[i] = use_end_ps(lane, lane->sample[i]);
    }
}
