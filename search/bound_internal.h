/* search/bound_internal.h - shared by search/bound*.c. */
#ifndef ORR_SEARCH_BOUND_INTERNAL_H
#define ORR_SEARCH_BOUND_INTERNAL_H

#include "search/bound.h"

/* Each rank's step runs from its own start (sim/plan.h, post_validation): bounds may not count what is before it. */
static inline bool search_starts_skewed(const SearchLane *lane)
{
    return spec_validates_later(&lane->spec) &&
           sim_schedule_has(lane->deal->order, SIM_TRAIT_SPLITS_BACKWARD);
}

/* Orders that are chosen for each point's own times and memory: nothing is known of them before the plan is. */
static inline bool search_is_chosen_late(const SearchDeal *deal)
{
    return sim_schedule_needs_times(deal->order);
}

/* Orders that run a forward of one stage beside a backward of another: DualPipe always, in V shape where experts
 * exchange tokens (search_pairs_at()). */
static inline bool search_has_pairs(const SearchLane *lane)
{
    return search_deal_pairs(lane->deal);
}

/* The stage of the model whose backwards run beside forwards of `stage`, of schedules with pairs. */
static inline int search_pair_of(const SearchLane *lane, int stage)
{
    return lane->stages - 1 - stage;
}

/* A pair whose forward is of `stage` runs as one op. */
static inline bool search_pairs_at(const SearchLane *lane, int stage)
{
    return lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL || lane->exchanges[stage] ||
           lane->exchanges[search_pair_of(lane, stage)];
}

/* Stages of the model on a rank. */
static inline int search_stages_of_rank(const SearchLane *lane)
{
    return lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : lane->chunks;
}

static inline int search_stage_of_rank(const SearchLane *lane, int rank, int chunk)
{
    if (lane->deal->order->placement == SIM_PLACE_BIDIRECTIONAL)
        return chunk == 0 ? rank : lane->ranks - 1 - rank;
    return sim_stage_of(lane->deal->order->placement, lane->ranks, lane->chunks, rank, chunk);
}

/* Activations of one micro-batch on a stage. */
typedef struct SearchKept {
    int64_t all, late;                   /* of them kept until the weight gradient */
    int64_t forward_temp, backward_temp; /* at least */
} SearchKept;

/* bound_pipeline.c */
int64_t search_hop_ps(const SearchLane *lane, int rank, int other);
void search_bound_fill(SearchLane *lane);
void search_bound_pipeline(SearchLane *lane);

/* bound_data.c */
GHashTable *search_buckets_new(void);

/* bound_memory.c */
SearchKept search_kept(const SearchLane *lane, int stage, const SpecRecompute *recompute);

/* replay.c */
void search_replay_free(struct SearchReplay *replay);

#endif
