/* search/bound_memory.c - the least peak of activations and workspace on a rank.
 *
 * The order of a schedule fixes which micro-batches are alive at some moments (schedule/facts.h); a level that is reached
 * is a lower bound of the peak. Schedules whose order follows the times at hand count one micro-batch.
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

/* Activations of every chunk of a rank. */
static void fill_kept(const SearchLane *lane, int rank, const SpecRecompute *recompute, SearchKept *kept)
{
    for (int c = 0; c < search_stages_of_rank(lane); c++)
        kept[c] = search_kept(lane, search_stage_of_rank(lane, rank, c), recompute);
}

static double level_bytes(const SearchLane *lane, const SimMoment *moment, const SearchKept *kept)
{
    int64_t level = 0;
    for (int c = 0; c < search_stages_of_rank(lane); c++)
        level += moment->whole[c] * kept[c].all + moment->late[c] * kept[c].late;
    return (double)level;
}

/* Activations and workspace at the fullest moment. */
static double peak_bytes(const SearchLane *lane, const SimRankFacts *facts, const SearchKept *kept)
{
    double most = 0;
    for (int i = 0; i < facts->moment_count; i++) {
        const SimMoment *moment = &facts->moments[i];
        const SearchKept *at = &kept[moment->chunk];
        const int64_t temp = moment->backward ? at->backward_temp : at->forward_temp;
        most = MAX(most, level_bytes(lane, moment, kept) + (double)temp);
    }
    return most;
}

/* Of a schedule of whose order nothing is known: one micro-batch is on all chunks of a rank at its first backward, and
 * with one chunk and several micro-batches the gradient is there, and incomplete, before the last. */
static void fill_unknown(SearchLane *lane, int sample, const SearchKept *kept)
{
    const int chunks = search_stages_of_rank(lane);
    const bool sums = lane->group->microbatches > 1 && chunks == 1;
    int64_t all = 0;
    for (int c = 0; c < chunks; c++)
        all += kept[c].all;
    const int64_t temp = chunks == 1 ? MAX(kept[0].forward_temp, kept[0].backward_temp) : 0;
    const bool both_ends = lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL;
    lane->live_bytes[sample] = both_ends ? 0 : (double)(all + temp);
    lane->first_bytes[sample] = both_ends ? -1 : (double)all;
    lane->beside_bytes[0][sample] = 0;
    lane->beside_bytes[1][sample] = sums ? 0 : -1;
}

void search_lane_live(SearchLane *lane, const SpecRecompute *recompute)
{
    SearchKept kept[SPEC_MAX_STAGES];
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        fill_kept(lane, lane->sample[i], recompute, kept);
        if (lane->facts == NULL) {
            fill_unknown(lane, i, kept);
            continue;
        }
        const SimRankFacts *facts = &lane->facts->ranks[lane->sample[i]];
        const SimMoment *first = facts->first_backward, *summing = facts->summing,
                        *incomplete = facts->incomplete;
        lane->live_bytes[i] = peak_bytes(lane, facts, kept);
        lane->first_bytes[i] = first != NULL ? level_bytes(lane, first, kept) : -1;
        lane->beside_bytes[0][i] = summing != NULL ? level_bytes(lane, summing, kept) : 0;
        lane->beside_bytes[1][i] = incomplete != NULL ? level_bytes(lane, incomplete, kept) : -1;
    }
}
