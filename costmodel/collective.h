/* costmodel/collective.h - seconds of one collective on a two-level network, as NCCL would run it.
 *
 * Algorithm and protocol are chosen by NCCL's own published cost model or named; time comes from
 * alpha-beta with a ramp per protocol, fitted to measured rows. Single algorithms step by step (ring, tree,
 * Rabenseifner ...) are in network/.
 */
#ifndef ORR_COSTMODEL_COLLECTIVE_H
#define ORR_COSTMODEL_COLLECTIVE_H

#include "spec/spec.h"

typedef enum {
    COST_ALL_REDUCE,
    COST_ALL_GATHER,
    COST_REDUCE_SCATTER,
    COST_ALL_TO_ALL,
    COST_BROADCAST,
    COST_REDUCE,
    COST_SEND_RECV,
    COST_COLLECTIVE_COUNT
} CostCollectiveOp;

/* How a group of ranks lies on the machine. */
typedef struct CostGroup {
    int ranks;      /* in the group */
    int per_domain; /* neighbours of it in one scale-up domain (NVLink), a divisor of ranks; ranks when all are */
    int domains; /* that it lies in; 0: ranks / per_domain, the same number in each */
    int rails;   /* NICs, one a rank, in the domain that holds the fewest of it; 0: per_domain */
    int nic_sharers; /* groups of the same kind that use one GPU's NIC share at once; 1 when every rank brings its own NIC */
    double up_crowding,
        out_crowding;           /* bytes on scale-up links and between domains take so many times as long
                                         (costmodel/fabric.h, costmodel/uplinks.h); 0: 1 */
    double all_to_all_crowding; /* as out_crowding, of all-to-alls; 0: the same */
} CostGroup;

typedef struct CostCollective {
    CostCollectiveOp op;
    double
        bytes; /* all-reduce, broadcast, reduce: the buffer; all-gather, reduce-scatter: the whole tensor; all-to-all: sent by one rank, its own part included; send-recv: the message */
    CostGroup group;
} CostCollective;

/* Bytes one rank sends over scale-up links and over its NIC (ring and hierarchical counts). */
typedef struct CostTraffic {
    double scale_up_bytes, scale_out_bytes;
} CostTraffic;

int cost_group_domains(const CostGroup *group);
/* Some of a group's ranks, in the way of the same others. */
CostGroup cost_group_among(const CostGroup *group, int ranks, int per_domain);

/* Seconds, alone on the network. ranks 1: 0. */
double cost_collective_s(const SpecCluster *cluster, const CostCollective *collective);
CostTraffic cost_collective_traffic(const CostCollective *collective);

/* Share of the SMs and of the memory bandwidth that the collective takes from compute beside it, 0..1. */
double cost_collective_sm_frac(const SpecCluster *cluster, const CostCollective *collective);

#endif
