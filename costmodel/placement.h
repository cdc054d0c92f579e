/* costmodel/placement.h - how a group of ranks lies on the machine: what of it shares a scale-up domain. */
#ifndef ORR_COSTMODEL_PLACEMENT_H
#define ORR_COSTMODEL_PLACEMENT_H

#include "costmodel/collective.h"

/* The communicators of a job. */
typedef enum {
    COST_RANKS_TENSOR,
    COST_RANKS_CONTEXT,
    COST_RANKS_REPLICAS, /* data x context: same dense parameters */
    COST_RANKS_EXPERT,
    COST_RANKS_EXPERT_TENSOR,
    COST_RANKS_EXPERT_REPLICAS, /* same expert parameters */
    COST_RANKS_ALL,
} CostRanks;

/* How many a group of `ranks` has. */
int cost_group_ranks(const Spec *spec, CostRanks ranks);

/* The group of `ranks`; of its many instances over the cluster the one that lies worst (fewest NICs a domain, then
 * most domains): the others wait for it at the next synchronisation. */
CostGroup cost_group(const Spec *spec, CostRanks ranks);

/* `count` members of it, `step` apart in rank order; step x count divides its size. */
CostGroup cost_group_part(const Spec *spec, CostRanks ranks, int step, int count);

/* Two ranks, of one pipeline rank and of another, one of which sends to the other. */
CostGroup cost_pipeline_pair(const Spec *spec, int from, int to);

/* Two pipeline ranks lie in one scale-up domain, for every replica. */
bool cost_pipeline_inside(const Spec *spec, int rank, int other);

#endif
