/* search/bound_memory.c - the least peak of activations and workspace on a rank, by schedule.
 *
 * Each schedule's order fixes which micro-batches are alive at some moments (most of them: at its peak); a level that
 * is reached is a lower bound of the peak. Schedules whose order is not in closed form count one micro-batch.
 * Tested: unit/test_search_bound.c
 */
#include "search/bound_internal.h"

static SearchAgain again_of(SpecRecomputeMode mode)
{
    switch (mode) {
    case SPEC_RECOMPUTE_NONE:
        return SEARCH_AGAIN_NONE;
    case SPEC_RECOMPUTE_FULL:
    case SPEC_RECOMPUTE_SELECTIVE_LAYER:
        return SEARCH_AGAIN_ALL;
    case SPEC_RECOMPUTE_SELECTIVE_OP:
        return SEARCH_AGAIN_OP;
    default:
        return SEARCH_AGAIN_SOME;
    }
}

static void add_layers(const SearchCosts *costs, SearchAgain again, int from, int to, SearchKept *kept)
{
    const SearchMemory *memory = &costs->memory[again];
    const int64_t all = memory->kept_bytes[to] - memory->kept_bytes[from];
    kept->all += all;
    kept->late += all - (memory->input_only_bytes[to] - memory->input_only_bytes[from]);
    if (to > from) {
        kept->forward_temp = memory->forward_temp_bytes[to - 1];
        kept->backward_temp = memory->backward_temp_bytes[to - 1];
    }
}

static void add_edge(const SearchEdge *edge, bool last, SearchKept *kept)
{
    kept->all += edge->kept_bytes;
    kept->late += edge->kept_bytes - edge->input_only_bytes;
    if (last) {
        kept->forward_temp = MAX(edge->forward_temp_bytes, kept->forward_temp - edge->kept_bytes);
        kept->backward_temp = MAX(edge->backward_temp_bytes, kept->backward_temp - edge->kept_bytes);
    }
}

/* Takes out the first layers of a stage, `from` to `to`, whose activations are on the host: a micro-batch between its
 * forward and its backward has none of theirs on the GPU (sim/program_offload.c). What is fetched comes on top. */
static void take_out(const SearchCosts *costs, SearchAgain again, int from, int to, SearchKept *kept)
{
    SearchKept gone = {0};
    add_layers(costs, again, from, to, &gone);
    kept->all -= gone.all;
    kept->late -= gone.late;
}

static SearchAgain again_at(const SpecRecompute *recompute, int index)
{
    if (recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0)
        return index < recompute->layers ? SEARCH_AGAIN_ALL : SEARCH_AGAIN_NONE;
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER)
        return index % MAX(1, recompute->every_n_layers) == 0 ? SEARCH_AGAIN_ALL : SEARCH_AGAIN_NONE;
    return again_of(recompute->mode);
}

SearchKept search_kept(const SearchLane *lane, int stage, const SpecRecompute *recompute)
{
    const SearchCosts *costs = lane->costs;
    const int from = lane->deal->first[stage], to = lane->deal->first[stage + 1];
    const int gone = MIN(lane->spec.offload.activation_layers, to - from);
    SearchKept kept = {0};
    if (stage == 0)
        add_edge(&costs->first, false, &kept);
    if (recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0) {
        const int until = MIN(from + recompute->layers, to);
        add_layers(costs, SEARCH_AGAIN_ALL, from, until, &kept);
        add_layers(costs, SEARCH_AGAIN_NONE, until, to, &kept);
    } else if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER) {
        const int every = MAX(1, recompute->every_n_layers);
        for (int layer = from; layer < to; layer++)
            add_layers(costs, (layer - from) % every == 0 ? SEARCH_AGAIN_ALL : SEARCH_AGAIN_NONE, layer,
                       layer + 1, &kept);
    } else {
        add_layers(costs, again_of(recompute->mode), from, to, &kept);
    }
    for (int i = 0; i < gone; i++)
        take_out(costs, again_at(recompute, i), from + i, from + i + 1, &kept);
    if (stage + 1 == lane->stages)
        add_edge(&costs->last, true, &kept);
    return kept;
}

/* Of the first `count` entries of the interleaved list, those of chunk `c`: whole groups, then the one begun. */
static int64_t interleaved_entries(const SearchLane *lane, int64_t count, int64_t c)
{
    const int64_t p = lane->ranks, v = lane->chunks, whole = count / (p * v) * p, left = count % (p * v);
    const int64_t size = MIN(p, lane->group->microbatches - whole);
    return whole + CLAMP(left - c * size, 0, size);
}

/* Before some backwards j of the interleaved schedule: what its forwards took and backwards have not given back. */
static double interleaved_bytes(const SearchLane *lane, int rank, const SearchKept *kept)
{
    const int64_t m = lane->group->microbatches, p = lane->ranks, v = lane->chunks;
    const int64_t warmup = MIN(m * v, 2 * (p - 1 - rank) + (v - 1) * p), step = p * MAX(1, v / 8);
    double most = 0;
    for (int64_t j = 0; j < MIN(m * v, p * v); j += step) {
        const int64_t forwards = MIN(m * v, warmup + 1 + j);
        int64_t level = 0;
        for (int64_t c = 0; c < v; c++)
            level += kept[c].all *
                     (interleaved_entries(lane, forwards, c) - interleaved_entries(lane, j, v - 1 - c));
        const int64_t chunk = v - 1 - MIN(v - 1, j / MIN(p, m)); /* of backward j */
        most = MAX(most, (double)(level + kept[chunk].backward_temp));
    }
    return most;
}

static double zero_bubble_bytes(const SearchLane *lane, int rank, const SearchKept *kept, int h)
{
    const int64_t m = lane->group->microbatches, ahead = MIN(m, (int64_t)h * (lane->ranks - 1 - rank));
    double most = 0;
    for (int i = 0; i < 2; i++) { /* at the first input gradient, and once weight gradients have piled up */
        const int64_t k = i == 0 ? 0 : MIN((int64_t)h * rank, m - 1);
        const int64_t forwards = MIN(m, ahead + k + 1), weights = MAX(0, k - (int64_t)h * rank);
        const double level =
            (double)(forwards - k) * (double)kept->all + (double)(k - weights) * (double)kept->late;
        most = MAX(most, level + (double)kept->backward_temp);
    }
    return most;
}

static double v_bytes(const SearchLane *lane, int rank, const SearchKept *kept)
{
    const int64_t m = lane->group->microbatches, p = lane->ranks;
    int64_t first = 1, second = 1;
    if (lane->deal->schedule == SPEC_SCHEDULE_ZB_V) {
        first = 2 * p - rank - 1;
        second = rank + 1;
    } else if (lane->deal->schedule == SPEC_SCHEDULE_DUALPIPEV) {
        first = 2 * (p - rank - 1) + rank + 1;
        second = rank + 1;
    }
    return (double)MIN(m, first) * (double)kept[0].all + (double)MIN(m, second) * (double)kept[1].all;
}

static double dualpipe_bytes(const SearchLane *lane, int rank, const SpecRecompute *recompute)
{
    const int half = lane->ranks / 2, h = MIN(rank, lane->ranks - 1 - rank);
    const bool near_first = rank < half;
    const SearchKept a = search_kept(lane, rank, recompute),
                     b = search_kept(lane, lane->ranks - 1 - rank, recompute);
    const SearchKept *near = near_first ? &a : &b, *far = near_first ? &b : &a;
    const int64_t each = lane->group->microbatches / 2;
    return (double)MIN(each, 2 * (half - h - 1) + h + 1) * (double)near->all +
           (double)MIN(each, h + 1) * (double)far->all;
}

static double rank_bytes(const SearchLane *lane, int rank, const SpecRecompute *recompute)
{
    const SearchDeal *deal = lane->deal;
    const double m = lane->group->microbatches;
    if (deal->order->placement == SIM_PLACE_BIDIRECTIONAL)
        return dualpipe_bytes(lane, rank, recompute);
    SearchKept kept[SPEC_MAX_STAGES];
    double all = 0;
    for (int c = 0; c < lane->chunks; c++) {
        kept[c] = search_kept(lane, sim_stage_of(deal->order->placement, lane->ranks, lane->chunks, rank, c),
                              recompute);
        all += (double)kept[c].all;
    }
    const double temp = (double)MAX(kept[0].forward_temp, kept[0].backward_temp);
    switch (deal->schedule) {
    case SPEC_SCHEDULE_1F1B:
        return MIN(m, lane->ranks - rank) * all + temp;
    case SPEC_SCHEDULE_GPIPE:
        return m * all + temp;
    case SPEC_SCHEDULE_BREADTH_FIRST:
        return m * all + (double)kept[lane->chunks - 1].backward_temp;
    case SPEC_SCHEDULE_INTERLEAVED:
        return interleaved_bytes(lane, rank, kept);
    case SPEC_SCHEDULE_ZB_H1:
        return zero_bubble_bytes(lane, rank, kept, 1);
    case SPEC_SCHEDULE_ZB_H2:
        return zero_bubble_bytes(lane, rank, kept, 2);
    case SPEC_SCHEDULE_ZB_V:
    case SPEC_SCHEDULE_V_HALF:
    case SPEC_SCHEDULE_V_MIN:
    case SPEC_SCHEDULE_DUALPIPEV:
        return v_bytes(lane, rank, kept);
    default:
        return all + temp;
    }
}

/* Activations at some moment after every chunk has begun its gradient and before one is complete. */
static double beside_bytes(const SearchLane *lane, int rank, const SpecRecompute *recompute, bool overlaps)
{
    const int64_t m = lane->group->microbatches, p = lane->ranks, v = lane->chunks;
    const SearchDeal *deal = lane->deal;
    const int64_t warmup = 2 * (p - 1 - rank) + (v - 1) * p;
    const bool copies = deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    int64_t least = INT64_MAX;
    for (int c = 0; c < lane->chunks; c++) {
        const int at = deal->order->placement == SIM_PLACE_BIDIRECTIONAL
                           ? rank
                           : sim_stage_of(deal->order->placement, lane->ranks, lane->chunks, rank, c);
        least = MIN(least, search_kept(lane, at, recompute).all);
    }
    switch (deal->schedule) {
    case SPEC_SCHEDULE_1F1B: /* at the second backward */
        return m < 2 ? (overlaps ? -1 : 0) : (double)MIN(m - 1, p - rank) * (double)least;
    case SPEC_SCHEDULE_GPIPE:
        return m < 2 ? (overlaps ? -1 : 0) : (double)(m - 1) * (double)least;
    case SPEC_SCHEDULE_INTERLEAVED: /* all chunks have gradients after (v - 1) p + 1 backwards */
        if (m * v - warmup - 1 >= (v - 1) * p + 1)
            return (double)(warmup + 1) * (double)least;
        return overlaps && m <= p ? -1 : 0;
    case SPEC_SCHEDULE_NAIVE:
    case SPEC_SCHEDULE_ZB_H1:
    case SPEC_SCHEDULE_ZB_H2:
    case SPEC_SCHEDULE_ZB_AUTO:
        return overlaps && m < 2 ? -1 : 0;
    default:
        /* At most 2 p forwards of a chunk are alive at once, so its gradient has begun before the last forward. */
        return overlaps &&
                       (deal->schedule == SPEC_SCHEDULE_BREADTH_FIRST || m <= 2 * p + (copies ? 2 * p : 0))
                   ? -1
                   : 0;
    }
}

/* Activations when the first backward of a rank begins: by then its micro-batch went through every chunk. */
static double first_bytes(const SearchLane *lane, int rank, const SpecRecompute *recompute)
{
    const SearchDeal *deal = lane->deal;
    const double m = lane->group->microbatches;
    double all = 0, level = 0;
    if (deal->order->placement == SIM_PLACE_BIDIRECTIONAL)
        return -1;
    const int64_t v = lane->chunks,
                  warmup = MIN((int64_t)m * v, 2 * (lane->ranks - 1 - rank) + (v - 1) * lane->ranks);
    for (int c = 0; c < lane->chunks; c++) {
        const int stage = sim_stage_of(deal->order->placement, lane->ranks, lane->chunks, rank, c);
        const double kept = (double)search_kept(lane, stage, recompute).all;
        all += kept;
        if (deal->schedule == SPEC_SCHEDULE_INTERLEAVED)
            level += kept * (double)interleaved_entries(lane, MIN((int64_t)m * v, warmup + 1), c);
    }
    switch (deal->schedule) {
    case SPEC_SCHEDULE_1F1B:
        return MIN(m, lane->ranks - rank) * all;
    case SPEC_SCHEDULE_GPIPE:
    case SPEC_SCHEDULE_BREADTH_FIRST:
        return m * all;
    case SPEC_SCHEDULE_INTERLEAVED:
        return level;
    default:
        return all;
    }
}

void search_lane_live(SearchLane *lane, const SpecRecompute *recompute)
{
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        lane->live_bytes[i] = rank_bytes(lane, lane->sample[i], recompute);
        lane->first_bytes[i] = first_bytes(lane, lane->sample[i], recompute);
        lane->beside_bytes[0][i] = beside_bytes(lane, lane->sample[i], recompute, false);
        lane->beside_bytes[1][i] = beside_bytes(lane, lane->sample[i], recompute, true);
    }
}
