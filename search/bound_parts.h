/* search/bound_parts.h - shared by search/bound*.c. */
#ifndef ORR_SEARCH_BOUND_PARTS_H
#define ORR_SEARCH_BOUND_PARTS_H

#include "search/bound.h"
#include "search/hardware.h"

/* Sets the policy in the worker's spec, and what follows from it. */
static inline void search_take_policy(SearchWorker *worker, const SearchPolicy *policy)
{
    search_apply_policy(worker->group, policy, &worker->spec);
    worker->rules = step_policy(&worker->spec);
}

/* Each rank's step runs from its own start (program/plan.h, post_validation): bounds may not count what is before it. */
static inline bool search_starts_skewed(const SearchWorker *worker)
{
    return worker->rules.validates_later &&
           sim_schedule_has(worker->partition->order, SIM_TRAIT_SPLITS_BACKWARD);
}

/* Orders that are chosen for each point's own times and memory: nothing is known of them before the plan is. */
static inline bool search_is_chosen_late(const SearchPartition *partition)
{
    return sim_schedule_needs_times(partition->order);
}

/* Orders that run a forward of one stage beside a backward of another: DualPipe always, in V shape where experts
 * exchange tokens (search_pairs_at()). */
static inline bool search_has_pairs(const SearchWorker *worker)
{
    return search_partition_pairs(worker->partition);
}

/* The stage of the model whose backwards run beside forwards of `stage`, of schedules with pairs. */
static inline int search_pair_of(const SearchWorker *worker, int stage)
{
    return worker->stages - 1 - stage;
}

/* A pair whose forward is of `stage` runs as one op. */
static inline bool search_pairs_at(const SearchWorker *worker, int stage)
{
    return worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL || worker->exchanges[stage] ||
           worker->exchanges[search_pair_of(worker, stage)];
}

/* Stages of the model on a rank. */
static inline int search_stages_of_rank(const SearchWorker *worker)
{
    return worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : worker->chunks;
}

static inline int search_stage_of_rank(const SearchWorker *worker, int rank, int chunk)
{
    if (worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL)
        return chunk == 0 ? rank : worker->ranks - 1 - rank;
    return sim_stage_of(worker->partition->order->placement, worker->ranks, worker->chunks, rank, chunk);
}

/* Points of which no stage's own times are known: they have the bound of their group alone, and none of memory. */
static inline bool search_is_loose(const SearchSpace *space, const SearchPartition *partition)
{
    return search_hardware_dealt(space->spec) ||
           (space->spec->cluster.group_count > 0 && partition->order->placement == SIM_PLACE_BIDIRECTIONAL);
}

/* Costs on the GPUs of a rank, and of a stage (of the first copy, where there are two). */
static inline const SearchCosts *search_costs_of_rank(const SearchWorker *worker, int rank)
{
    return &worker->own_costs[worker->kind_of_rank[rank]];
}

static inline const SearchCosts *search_costs_of(const SearchWorker *worker, int stage)
{
    int rank = stage, chunk = 0;
    if (worker->kinds > 1 && worker->partition->order->placement != SIM_PLACE_BIDIRECTIONAL)
        sim_place_of(worker->partition->order->placement, worker->ranks, worker->chunks, stage, &rank,
                     &chunk);
    return worker->kinds > 1 ? search_costs_of_rank(worker, rank) : worker->costs;
}

/* The worker's spec as if all GPUs were those of the rank: for what its kind's hardware decides. */
const Spec *search_spec_of_rank(SearchWorker *worker, int rank);

/* Activations of one micro-batch on a stage. */
typedef struct SearchActivations {
    int64_t all, late;                   /* of them kept until the weight gradient */
    int64_t forward_temp, backward_temp; /* at least */
} SearchActivations;

/* bound_pipeline.c */
int64_t search_hop_ps(const SearchWorker *worker, int rank, int other);
void search_bound_fill(SearchWorker *worker);
/* Ends by the bounds of search_bound_pipeline(), with what first forwards of `stages` wait for gathers (NULL: nothing). */
void search_bound_ends(const SearchWorker *worker, bool blocking, const SearchStageData *stages,
                       SearchEnds *ret_ends);
void search_bound_pipeline(SearchWorker *worker);

/* bound_data.c */
GHashTable *search_buckets_new(void);

/* bound_memory.c */
SearchActivations search_activations(const SearchWorker *worker, int stage, const SpecRecompute *recompute);

/* replay.c */
void search_replay_free(struct SearchReplay *replay);

#endif
