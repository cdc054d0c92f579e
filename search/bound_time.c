/* search/bound_time.c - the least time of a step, by when compute is over and what data parallelism takes beside and behind it.
 * docs/SEARCH.md derives the bounds.   Tested: unit/search/test_search_bound.c
 */

#include "costmodel/states.h"
#include "search/bound_parts.h"
#include "sim/picoseconds.h"

/* Reductions that are not over when the rank's compute is. Beside the backward they start no earlier than the last
 * backward of chunk 0, where that is the rank's last op: on a loop, for a micro-batch comes back to chunk 0 last, as long
 * as no weight gradients of other chunks stay behind. */
static int64_t open_reduce_ps(const SearchWorker *worker, const SearchDataCosts *data, int rank)
{
    const StepPolicy *rules = &worker->rules;
    if (!step_reduces_beside(rules))
        return step_reduces_each(rules) ? 0 : data->reduce_ps;
    const SimSchedule *order = worker->partition->order;
    if (order->placement != SIM_PLACE_LOOP ||
        (worker->chunks > 1 && sim_schedule_has(order, SIM_TRAIT_SPLITS_BACKWARD)))
        return 0;
    if (rank == worker->ranks - 1 && worker->deferred_heads > 0) /* behind that comes the LM head */
        return 0;
    const int64_t pass_ps = worker->input_ps[rank] + worker->recompute_ps[rank] + worker->weight_ps[rank];
    return MAX(data->last_reduce_ps, data->near_reduce_ps - pass_ps);
}

/* Least time until the data parallelism of every micro-batch, or of every chunk, is done: gathers of ZeRO-3, and
 * reductions where every micro-batch has its own. Queues run one after the other; gathers and reductions share a link. */
static int64_t steady_ps(const SearchWorker *worker, const SearchDataCosts *data, int sample)
{
    const StepPolicy *rules = &worker->rules;
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const bool ahead = rules->prefetch_units > 0, sharded = rules->sharded_weights;
    /* micro-batches that pass each of the rank's stages */
    const int64_t each = worker->group->microbatches / (both_ends ? 2 : 1);
    const int64_t gathers = step_units_of(rules, each);
    int64_t least_ps = 0;
    if (sharded) {
        /* Without a gather ahead of its use compute waits for every one of them but the first, which may be under
         * way while the rank waits for its first input; messages, weight gradients and reductions may hide them. */
        const int64_t first_ps = both_ends ? data->stream_ps : data->first_gather_ps;
        least_ps = gathers * data->stream_ps + (ahead ? 0 : worker->use_end_ps[sample] - first_ps);
    }
    if (!step_reduces_each(rules))
        return least_ps;
    if (!step_reduces_beside(rules)) /* compute waits for every one */
        return MAX(least_ps, worker->work_end_ps[sample] + each * data->reduce_ps);
    return MAX(least_ps, each * MAX(data->reduce_ps, sharded ? data->link_ps : 0));
}

static void later(SearchEnds *ends, const SearchEnds *other)
{
    ends->first_ps = MAX(ends->first_ps, other->first_ps);
    ends->latest_ps = MAX(ends->latest_ps, other->latest_ps);
    for (int i = 0; i < SEARCH_SAMPLES; i++)
        ends->own_ps[i] = MAX(ends->own_ps[i], other->own_ps[i]);
}

/* Least time from `start_ps` until the passes of a sampled rank and what runs beside them are done: collectives reserve SMs,
 * and passes take so much longer, but where they wait. Gathers may use the time before the first pass (`start_ps` and the
 * fill; on rank 0 that of the first gather alone, for slower passes wait less for the others), both kinds that of messages
 * which compute waits for. */
static int64_t shared_sms_ps(const SearchWorker *worker, const SearchDataCosts *data, const SearchWay *way,
                             int sample, int64_t start_ps)
{
    const StepPolicy *rules = &worker->rules;
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    const int rank = worker->sample[sample];
    const int64_t each = worker->group->microbatches / (both_ends ? 2 : 1);
    int64_t taken_ps = way->gathers != STEP_GATHERS_NONE ? data->gather_sms_ps : 0;
    if (search_starts_skewed(worker) || search_costs_of_rank(worker, rank)->leaves_sms)
        return 0;
    if (rules->sharded_weights)
        taken_ps = step_units_of(rules, each) * data->stream_sms_ps;
    if (step_reduces_beside(rules))
        taken_ps += step_reduces_of(rules, each) * data->reduce_sms_ps;
    const int64_t end_ps = worker->ends[way->blocking].own_ps[sample],
                  messages_ps = end_ps - worker->ends[0].own_ps[sample];
    const int64_t waits_ps = rank == 0 ? MIN(start_ps, data->first_gather_ps) : start_ps;
    const double idle_ps = (double)(waits_ps + worker->fill_ps[rank] + 2 * messages_ps);
    return end_ps - (start_ps - waits_ps) + taken_ps - (int64_t)(data->most_sms_frac * idle_ps);
}

/* The step behind these ends of compute; `start_ps`: before any of it. */
static int64_t step_ps(const SearchWorker *worker, const SearchDataCosts *data, const SearchWay *way,
                       const SearchEnds *ends, int64_t start_ps)
{
    const StepPolicy *rules = &worker->rules;
    const bool late_gather = !rules->sharded_weights && rules->gathers == STEP_GATHERS_NONE;
    int64_t reduced_ps = MAX(ends->latest_ps, ends->latest_reduced_ps), own_ps = 0, after_ps = 0;
    for (int i = 0; i < SEARCH_SAMPLES; i++) {
        const SearchDataCosts *own = &data[i];
        const int64_t end = i == 0 ? ends->first_ps : ends->own_ps[i];
        const int64_t beside = MAX(ends->reduced_ps[i], steady_ps(worker, own, i) - start_ps);
        const int64_t open_ps = open_reduce_ps(worker, own, worker->sample[i]);
        const int64_t shared = shared_sms_ps(worker, own, way, i, start_ps) +
                               (open_ps > 0 ? own->last_reduce_ps - own->last_reduce_sms_ps : 0);
        const int64_t reduced = MAX(MAX(end + open_ps, shared), beside);
        const int64_t after = own->optimizer_ps + (late_gather ? own->gather_ps : 0);
        reduced_ps = MAX(reduced_ps, reduced);
        after_ps = MAX(after_ps, after);
        own_ps = MAX(own_ps, reduced + after);
    }
    /* The norm of all gradients keeps every optimizer until the last rank has reduced its own. */
    const int64_t last_ps = rules->waits_for_norm && !search_starts_skewed(worker) ? reduced_ps + after_ps
                                                                                   : MAX(reduced_ps, own_ps);
    return start_ps + last_ps + sim_ps(rules->overhead_s);
}

int64_t search_bound_time(SearchWorker *worker, const SearchPolicy *policy, const SearchDataCosts *data,
                          const SearchWay *way)
{
    const bool both_ends = worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    SearchEnds ends = worker->ends[way->blocking];
    int64_t start_ps = 0;
    search_take_policy(worker, policy);
    if (way->gathers == STEP_GATHERS_USE)
        search_bound_ends(worker, way->blocking, way->stages, &ends);
    later(&ends, &worker->replayed[way->blocking]);
    if (!both_ends && worker->rules.sharded_weights)
        start_ps = data[0].first_gather_ps;
    else if (!both_ends && way->gathers == STEP_GATHERS_STEP)
        start_ps = data[0].wait_ps;
    const int64_t least_ps = step_ps(worker, data, way, &ends, start_ps);
    return worker->with_data.latest_ps == 0
               ? least_ps
               : MAX(least_ps, step_ps(worker, data, way, &worker->with_data, 0));
}
