/* study/chakra_ranks.h - ranks of a job by number, and the groups that they form, for Chakra traces. */
#ifndef ORR_STUDY_CHAKRA_RANKS_H
#define ORR_STUDY_CHAKRA_RANKS_H

#include "spec/placement.h"

typedef enum {
    CHAKRA_GROUP_ALL,
    CHAKRA_GROUP_TENSOR,
    CHAKRA_GROUP_CONTEXT,
    CHAKRA_GROUP_REPLICAS,        /* where gradients are reduced ... */
    CHAKRA_GROUP_GATHERS,         /* ... and parameters gathered, at the same time */
    CHAKRA_GROUP_EXPERT_REPLICAS, /* the same of experts */
    CHAKRA_GROUP_EXPERT_GATHERS,
    CHAKRA_GROUP_EXPERT,
    CHAKRA_GROUP_EXPERT_TENSOR,
    CHAKRA_GROUP_EXPERTS, /* both of these */
    CHAKRA_GROUP_STAGE,
    CHAKRA_GROUP_ENDS, /* first and last pipeline rank */
    CHAKRA_GROUPS
} ChakraGroup;

typedef struct ChakraRanks ChakraRanks;

ChakraRanks *chakra_ranks_new(const Spec *spec);
void chakra_ranks_free(ChakraRanks *ranks);
int chakra_ranks_size(const ChakraRanks *ranks, ChakraGroup group);
/* Number of the group of that kind that holds `rank`, as text: "0" is all ranks, others count from 1 as they are first asked. */
const char *chakra_ranks_group(ChakraRanks *ranks, ChakraGroup group, int64_t rank);
/* The rank that differs in the pipeline alone. */
int64_t chakra_ranks_at_stage(const ChakraRanks *ranks, int64_t rank, int pipeline_rank);
int chakra_ranks_stage(const ChakraRanks *ranks, int64_t rank);
/* Neighbours in the ring of a group of contexts: `step` 1 or -1. */
int64_t chakra_ranks_beside(const ChakraRanks *ranks, int64_t rank, int step);
/* {"1": [0, 1], ...}: groups that were asked for, as ASTRA-sim reads them; g_free. */
char *chakra_ranks_json(const ChakraRanks *ranks);

#endif
