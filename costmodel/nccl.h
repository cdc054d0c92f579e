/* costmodel/nccl.h - NCCL's own cost model: which algorithm and protocol it picks for a collective.
 *
 * A re-implementation of the published tuner (constants of NCCL 2.30), good for choosing. It is not the time that a
 * collective takes: costmodel/collective.c knows that.
 */
#ifndef ORR_COSTMODEL_NCCL_H
#define ORR_COSTMODEL_NCCL_H

#include "costmodel/collective.h"

typedef enum {
    COST_NCCL_TREE,
    COST_NCCL_RING,
    COST_NCCL_COLLNET_DIRECT,
    COST_NCCL_COLLNET_CHAIN,
    COST_NCCL_NVLS,
    COST_NCCL_NVLS_TREE,
    COST_NCCL_PAT,
    COST_NCCL_ALGORITHM_COUNT
} CostNcclAlgorithm;

typedef enum { COST_NCCL_LL, COST_NCCL_LL128, COST_NCCL_SIMPLE, COST_NCCL_PROTOCOL_COUNT } CostNcclProtocol;

/* One communication graph: channels, and the rate of each inside a node and across nodes. */
typedef struct CostNcclGraph {
    double channels, inside_bytes_per_s, across_bytes_per_s;
} CostNcclGraph;

/* What the tuner is asked. A graph without channels switches its algorithms off. */
typedef struct CostNcclQuery {
    CostCollectiveOp op;
    double bytes; /* all-gather, reduce-scatter: the whole tensor */
    int ranks, nodes;
    int nccl_row;         /* of the tables: 0 Volta, 1 Ampere, 2 Hopper, 3 Blackwell */
    bool nvlink;          /* ranks of one node are joined by NVLink, else by PCIe */
    bool ll128;           /* the protocol is enabled on this machine */
    bool sharp;           /* in-network reduction across nodes */
    bool simple_only;     /* across nodes no LL and no LL128 */
    double net_latency_s; /* of a step, as the network's plug-in tells it, beside NCCL's own figures */
    bool amd_cpu;         /* hosts with AMD CPUs */
    SpecTuner tuner;      /* plug-in asked before the estimates */
    CostNcclGraph ring, tree, nvls, collnet;
} CostNcclQuery;

typedef struct CostNcclChoice {
    CostNcclAlgorithm algorithm;
    CostNcclProtocol protocol;
    double seconds; /* NCCL's estimate */
    bool by_plugin; /* a tuner plug-in named it, whatever the estimates */
} CostNcclChoice;

/* NCCL's estimate for one algorithm and protocol; INFINITY when NCCL would not consider it.
 *
 *   t = L + S / B     L = latency, S = bytes, B = algorithm bandwidth
 * Source: [NCCL]      Ignores: aggregation of several calls      Tested: unit/costmodel/test_nccl.c
 */
double cost_nccl_estimate_s(const CostNcclQuery *query, CostNcclAlgorithm algorithm,
                            CostNcclProtocol protocol);

/* What a tuner plug-in says of this question; false: it leaves it to NCCL. [AwsOfiNccl] */
bool cost_nccl_region(const CostNcclQuery *query, CostNcclAlgorithm *ret_algorithm,
                      CostNcclProtocol *ret_protocol);

/* Bytes of a chunk of one channel of a tree with LL128: NCCL halves its buffer's step, 576,000 bytes, until a channel has
 * eight chunks a node deep. [NCCL] enqueue.cc */
double cost_nccl_tree_ll128_chunk_bytes(double bytes, int ranks, int nodes, double channels);

/* Bytes of a chunk of one channel and head of NVLS-tree: `largest` (NCCL_NVLSTREE_MAX_CHUNKSIZE), halved where a message
 * has too few of them. [NCCL] enqueue.cc */
double cost_nccl_nvls_tree_chunk_bytes(double bytes, double channels_heads, double largest);

/* What the plug-in says, else the smallest estimate. All-to-all and send-receive have no tuner: ring, LL up to 16 KiB a peer, else SIMPLE. */
CostNcclChoice cost_nccl_choose(const CostNcclQuery *query);

/* What NCCL picks for the power of two nearest to this size and for all above it: bits, numbered algorithm x
 * COST_NCCL_PROTOCOL_COUNT + protocol. */
unsigned cost_nccl_choices_upward(const CostNcclQuery *query);

/* Seconds of a collective as NCCL is told to run it (NCCL_ALGO), with the protocol that it then picks; INFINITY where the
 * algorithm cannot run it. All-to-all and send-receive have no algorithms. */
double cost_collective_by_s(const SpecCluster *cluster, const CostCollective *collective,
                            CostNcclAlgorithm algorithm);

/* What NCCL is asked for a collective on the accelerator's reference node: costmodel/collective.c's own question. */
CostNcclQuery cost_nccl_query(const SpecCluster *cluster, const CostCollective *collective);

/* Bus rate that the channels of a tree reach at most: NCCL's measured limits of one channel of this GPU. [NCCL] */
double cost_nccl_tree_limit_bytes_per_s(const CostNcclQuery *query, CostNcclProtocol protocol);

/* The graph that NCCL's search settles on across nodes: at most a channel a rail, at the speed of its list with which the
 * channels carry most that the NICs and, as each channel passes through every GPU, a GPU's own links allow; few or fast
 * ones are halved and doubled. [NCCL] search.cc
 *   rails: NICs of a node; bytes/s of one NIC, and of a GPU's links as NCCL counts them (0: no limit) */
CostNcclGraph cost_nccl_net_graph(int nccl_row, double rails, double nic_bytes_per_s,
                                  double inside_bytes_per_s);

/* Channels left after NCCL has dropped those that would carry too little: at least 1. */
double cost_nccl_channels(const CostNcclQuery *query, CostNcclChoice choice);

/* "ring", "Ring", "NVLSTree", "nvls-tree", "nvls/sharp": case and hyphens do not count, nor what follows a word. */
bool cost_nccl_algorithm_find(const char *word, CostNcclAlgorithm *ret_algorithm);
const char *cost_nccl_algorithm_name(CostNcclAlgorithm algorithm);
const char *cost_nccl_protocol_name(CostNcclProtocol protocol);

#endif
