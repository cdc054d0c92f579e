/* costmodel/collective.h - seconds of one collective on a two-level network, as NCCL would run it.
 *
 * Algorithm and protocol are chosen by NCCL's own published cost model or named; time comes from
 * alpha-beta with a ramp per protocol, fitted to measured rows. Closed forms of single algorithms
 * (ring, tree, Rabenseifner ...) are here too, for tests and for named algorithms.
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

/* Seconds, alone on the network. ranks 1: 0. */
double cost_collective_s(const SpecCluster *cluster, const CostCollective *collective);
CostTraffic cost_collective_traffic(const CostCollective *collective);

/* Share of the SMs and of the memory bandwidth that the collective takes from compute beside it, 0..1. */
double cost_collective_sm_frac(const SpecCluster *cluster, const CostCollective *collective);

/* --- closed forms: n ranks, S bytes, a = latency_s a step, B = bytes_per_s one way --- */
typedef struct CostLink {
    double latency_s, bytes_per_s;
} CostLink;

double cost_allreduce_ring_s(const CostLink *link, int ranks, double bytes); /* 2 (n-1) (a + S/(nB)) */
double cost_allgather_ring_s(const CostLink *link, int ranks, double bytes); /* (n-1) (a + S/(nB)) */
double cost_allreduce_rabenseifner_s(const CostLink *link, int ranks,
                                     double bytes); /* 2 ceil(log2 n) a + 2 (n-1)/n S/B */
double cost_allreduce_tree_s(const CostLink *link, int ranks,
                             double bytes); /* double binary tree: 2 log2(n) a + 2 S/B */
double cost_allreduce_butterfly_s(const CostLink *link, int ranks, double bytes); /* log2(n) (a + S/B) */
double cost_broadcast_binomial_s(const CostLink *link, int ranks, double bytes);  /* ceil(log2 n) (a + S/B) */
double cost_alltoall_pairwise_s(const CostLink *link, int ranks, double bytes);   /* (n-1) (a + S/(nB)) */
/* Reduce-scatter in the node, all-reduce across nodes on every rail, all-gather in the node:
 * 2 (g-1)/g S/B1 + 2 (k-1)/k (S/g)/B2 + steps x latency; g GPUs a node, k nodes. */
double cost_allreduce_hierarchical_s(const CostLink *inside, const CostLink *across, int gpus_per_node,
                                     int nodes, double bytes);
/* Torus of any dimension, one dimension at a time: reduce-scatter along the first, all-reduce of what is left along
 * the others, all-gather back: sum over d of 2 (n_d - 1) (a_d + S_d / (n_d B_d)), S_d = S / (n_1 .. n_(d-1)). */
double cost_allreduce_torus_s(const CostLink *links, const int *sizes, int dimensions, double bytes);
/* Mesh: a whole all-reduce along every dimension in turn: the same sum with S_d = S. */
double cost_allreduce_mesh_s(const CostLink *links, const int *sizes, int dimensions, double bytes);

#endif
