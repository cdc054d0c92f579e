/* search/bound_memory.c - the least peak of activations and workspace on a rank.
 *
 * The order of a schedule fixes which micro-batches are alive at some moments (schedule/facts.h); a level that is reached
 * is a lower bound of the peak. Schedules whose order follows the times at hand count one micro-batch.
 * Tested: unit/search/test_search_bound.c
 */
#include "search/bound_parts.h"

static void add_layers(const SearchCosts *costs, SearchRecomputed again, int from, int to,
                       SearchActivations *kept)
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

static void add_end(const StepPiece *end, bool last, SearchActivations *kept)
{
    kept->all += end->kept_bytes;
    kept->late += end->kept_bytes - end->input_only_bytes;
    if (last) {
        kept->forward_temp = MAX(end->forward_temp_bytes, kept->forward_temp - end->kept_bytes);
        kept->backward_temp = MAX(end->backward_temp_bytes, kept->backward_temp - end->kept_bytes);
    }
}

/* Takes out the first layers of a stage, `from` to `to`, whose activations are on the host: a micro-batch between its
 * forward and its backward has none of theirs on the GPU (program/offload.c). What is fetched comes on top. */
static void take_out(const SearchCosts *costs, SearchRecomputed again, int from, int to,
                     SearchActivations *kept)
{
    SearchActivations gone = {0};
    add_layers(costs, again, from, to, &gone);
    kept->all -= gone.all;
    kept->late -= gone.late;
}

SearchActivations search_activations(const SearchWorker *worker, int stage, const SpecRecompute *recompute)
{
    const SearchCosts *costs = search_costs_of(worker, stage);
    const int from = worker->partition->first[stage], to = worker->partition->first[stage + 1];
    const int gone = MIN(worker->spec.offload.activation_layers, to - from);
    SearchActivations kept = {0};
    if (stage == 0)
        add_end(&costs->first, false, &kept);
    SearchRecomputed again;
    for (int at = from, until = from; at < to; at = until) {
        until = from + search_recomputed_run(recompute, at - from, to - from, &again);
        add_layers(costs, again, at, until, &kept);
    }
    for (int at = from, until = from; at < from + gone; at = until) {
        until = from + search_recomputed_run(recompute, at - from, gone, &again);
        take_out(costs, again, at, until, &kept);
    }
    if (stage + 1 == worker->stages)
        add_end(&costs->last, true, &kept);
    return kept;
}

/* Activations of every chunk of a rank. */
static void fill_kept(const SearchWorker *worker, int rank, const SpecRecompute *recompute,
                      SearchActivations *kept)
{
    for (int c = 0; c < search_stages_of_rank(worker); c++)
        kept[c] = search_activations(worker, search_stage_of_rank(worker, rank, c), recompute);
}

static double level_bytes(const SearchWorker *worker, const SimMoment *moment, const SearchActivations *kept)
{
    int64_t level = 0;
    for (int c = 0; c < search_stages_of_rank(worker); c++)
        level += moment->whole[c] * kept[c].all + moment->late[c] * kept[c].late;
    return (double)level;
}

/* Activations and workspace at the fullest moment. */
static double peak_bytes(const SearchWorker *worker, const SimRankFacts *facts, const SearchActivations *kept)
{
    double most = 0;
    for (int i = 0; i < facts->moment_count; i++) {
        const SimMoment *moment = &facts->moments[i];
        const SearchActivations *at = &kept[moment->chunk];
        const int64_t temp = moment->backward ? at->backward_temp : at->forward_temp;
        most = MAX(most, level_bytes(worker, moment, kept) + (double)temp);
    }
    return most;
}

/* Of a schedule of whose order nothing is known: one micro-batch is on all chunks of a rank at its first backward, and
 * with one chunk and several micro-batches the gradient is there, and incomplete, before the last. */
static void fill_unknown(SearchWorker *worker, int sample, const SearchActivations *kept)
{
    const int chunks = search_stages_of_rank(worker);
    const bool sums = worker->group->microbatches > 1 && chunks == 1;
    int64_t all = 0;
    for (int c = 0; c < chunks; c++)
        all += kept[c].all;
    const int64_t temp = chunks == 1 ? MAX(kept[0].forward_temp, kept[0].backward_temp) : 0;
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    worker->live_bytes[sample] = both_ends ? 0 : (double)(all + temp);
    worker->first_bytes[sample] = both_ends ? -1 : (double)all;
    worker->beside_bytes[0][sample] = 0;
    worker->beside_bytes[1][sample] = sums ? 0 : -1;
}

void search_worker_activations(SearchWorker *worker, const SpecRecompute *recompute)
{
    SearchActivations kept[SPEC_MAX_STAGES];
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        fill_kept(worker, worker->sample[i], recompute, kept);
        if (worker->facts == NULL) {
            fill_unknown(worker, i, kept);
            continue;
        }
        const SimRankFacts *facts = &worker->facts->ranks[worker->sample[i]];
        const SimMoment *first = facts->first_backward, *summing = facts->summing,
                        *incomplete = facts->incomplete;
        worker->live_bytes[i] = peak_bytes(worker, facts, kept);
        worker->first_bytes[i] = first != NULL ? level_bytes(worker, first, kept) : -1;
        worker->beside_bytes[0][i] = summing != NULL ? level_bytes(worker, summing, kept) : 0;
        worker->beside_bytes[1][i] = incomplete != NULL ? level_bytes(worker, incomplete, kept) : -1;
    }
}
