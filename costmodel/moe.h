/* costmodel/moe.h - routed experts as arithmetic: where tokens go, how unevenly, and what that moves.
 *
 * Closed forms of routing (nodes touched, capacity), the expected load of the busiest rank for a router
 * distribution, and the bytes of each dispatcher. No time and no op list: costmodel/ops_moe.c has those.
 */
#ifndef ORR_COSTMODEL_MOE_H
#define ORR_COSTMODEL_MOE_H

#include "costmodel/collective.h"

/* Expected places (nodes, ranks) of `places` equal ones that hold at least one of a token's top_k experts.
 *   any expert:           N (1 - C(E - E/N, k) / C(E, k))
 *   group-limited (g of G groups chosen first, top_k experts among theirs): the same over the chosen groups'
 *   experts, weighted by the hypergeometric number of them that lie in a place
 * `groups` 0: any expert. Even routing.   Source: [DeepSeekV3] section 2.1.2   Ignores: groups that straddle places
 * Tested: unit/costmodel/test_moe_routing.c */
double cost_moe_places_touched(int experts, int top_k, int places, int groups, int top_groups);

/* Rows that one expert takes at most: ceil(factor x tokens x top_k / experts); `tokens` of the whole group that
 * shares the experts. Source: [Lepikhin2020] section 2.2, [Fedus2021] (top_k 1) */
double cost_moe_capacity(double factor, double tokens, int top_k, int experts);

/* Share of routed rows that find their expert full: sum over experts of max(0, load - capacity) over all rows.
 * `share`: expected share of each expert, adding up to 1. */
double cost_moe_dropped_frac(const double *share, int experts, double rows, double capacity);

/* Expected share of each expert, in index order; adds up to 1. `share` has room for moe.experts. */
void cost_moe_shares(const SpecRouter *router, int experts, double *share);

typedef struct CostPlacement {
    int experts, ranks;
    int top_k;      /* experts of a token; 0: of one */
    int replicas;   /* copies of hot experts beyond one of each */
    bool rebalance; /* dealt out by load, not in order */
} CostPlacement;

/* Rows of the busiest of `ranks` expert ranks over the mean, >= 1. Experts lie on ranks in blocks of E / ranks;
 * `replicas` of the hottest share their expert's load first (one copy more each time for the one that is busiest a
 * copy); `rebalance` deals copies out hottest first to the least loaded rank; so do replicas. `rows`: those of all
 * ranks together.
 * The draw of `rows` tokens adds the expected maximum of its scatter: max over j of
 *   m_j + sqrt(m_j (E - k) / (E - 1)) b_j
 * for the j busiest ranks, m_j the mean rows of the j-th, b_j the expected maximum of j normal deviates [Blom1958]. That
 * what one rank has more others have less widens gaps by as much, n / (n - 1), as it narrows scatter. The last factor: no
 * expert takes a token twice (exact where all are equally popular); nor are more of a token's top_k rows a rank's than it
 * has experts.
 * Even routing without scatter is 1.   Source: [Lepikhin2020], [EPLB]   Tested: unit/costmodel/test_moe_routing.c */
double cost_moe_load_factor(const SpecRouter *router, const CostPlacement *placement, double rows);

/* SMs that a dispatcher's kernels hold while they run; 0: those of the collective library's all-to-all.
 * Source: [DeepEP] (Buffer.num_sms), [MegatronMoE] (moe_hybridep_num_sms) */
double cost_moe_exchange_sms(const Spec *spec);

/* What one exchange (dispatch, or combine with its own element size) moves, sent by one rank. */
typedef struct CostExchange {
    double scale_up_bytes, scale_out_bytes;
    double received_rows; /* rows that arrive at one rank, before they are copied for each of its experts */
} CostExchange;

/* `tokens` of this rank, `row_bytes` of one token. All-to-all: a copy for each expert. DeepEP, HybridEP: a copy for
 * each node over the NIC, from there one for each rank over scale-up links. Hierarchical: copies for each expert,
 * inside the node first, so that every NIC carries one message a node.   Source: [DeepEP], [Rajbhandari2022] */
CostExchange cost_moe_exchange(const Spec *spec, const CostGroup *group, double tokens, double row_bytes);

#endif
