/* costmodel/context.h - attention of a sequence that is split over context ranks: who computes what, who sends what.
 *
 *   ring            keys and values pass around; step i works on what step i - 1 received. Zig-zag: rank r owns
 *                   pieces r and 2cp-1-r of 2cp, so that every step is half a block on every rank
 *   ring-naive      contiguous pieces: rank r has r whole blocks and half a block; all wait for the last
 *   ring-striped    every cp-th token: each step is a causal block
 *   allgather       keys and values gathered before one kernel, backward gathered again and their gradients
 *                   reduce-scattered: nothing hides
 *   allgather-ring  gathered beside the first step, worked off as a ring does; gradients of keys and values hop in fp32
 *   ulysses         two all-to-alls: whole sequences of heads / cp
 *   hierarchical    all-to-all among neighbours, zig-zag ring across
 * Source: [Liu2023] (ring), [Brandon2023] (striped), [Llama3] section 3.3.2 (allgather), [PyTorchContext],
 * [Jacobs2023] (ulysses), [TransformerEngine] (zig-zag, hierarchical)   Tested: unit/costmodel/test_context.c
 */
#ifndef ORR_COSTMODEL_CONTEXT_H
#define ORR_COSTMODEL_CONTEXT_H

#include "costmodel/ops.h"

/* How the context ranks work on one layer's attention. */
typedef struct CostContextPlan {
    int inner;       /* ranks of the all-to-all that trades tokens for heads; 1: none */
    int ring;        /* ranks that keys and values pass; 1: none */
    double q_tokens; /* a rank holds in the ring */
    double heads, kv_heads;
} CostContextPlan;

CostContextPlan cost_context_plan(const CostShape *shape);

/* Pairs of context rank `rank` over the mean, of one causal sequence of `tokens`: contiguous pieces (2 rank + 1) / cp; every
 * cp-th token c = tokens / cp of them: c (rank + 1) + cp c (c - 1) / 2 pairs; zig-zag and split heads 1. */
double cost_context_rank_work(SpecContextMode mode, int context, bool causal, double tokens, int rank);

/* Mean pairs (query, key <= query) of one sequence of `tokens` whose documents end at random, mean length L:
 *   L s - L^2 (1 - exp(-s/L));  L without end: s^2 / 2     (doubled where attention is not causal)
 * Tested: unit/costmodel/test_context.c */
double cost_document_pairs(double tokens, double document_tokens);

/* The causal window that leaves as many pairs as documents do: w (s - w/2) = pairs. 0: none. */
double cost_document_window(double tokens, double document_tokens);

/* The window of a model's windowed layers over `tokens` tokens: chunks leave as many pairs as documents of their length. */
double cost_attention_window(const SpecModel *model, double tokens);

/* Bytes of the exchange's own buffers during one layer's forward or backward: gathered keys and values, or those that a
 * ring has received (all of them in [TransformerEngine]'s forward, two pairs with their gradients in its backward). */
double cost_context_buffer_bytes(const CostShape *shape, bool backward);

/* Pairs (query, key) of one sequence on the average rank: every one, and those that causality and the window leave. */
typedef struct CostPairs {
    double all, useful;
    double window; /* tokens; 0: none */
} CostPairs;

/* Keys that each query of the busiest rank's part is multiplied with where scores are computed whole: blocks that the mask
 * empties are left out where keys pass by, not where they are gathered. */
double cost_context_keys(const CostShape *shape, const CostPairs *pairs);

/* The core of one layer in fused kernels with its exchange; forward or backward-input. */
void cost_push_context_core(const CostShape *shape, bool backward, const CostPairs *pairs, CostOps *ops);

/* The exchange alone, around a core of other kernels: what comes before it, and what comes beside and behind. `first`, `last`:
 * its ops beside which keys may be gathered or passed. */
void cost_push_context_before(const CostShape *shape, bool backward, CostOps *ops);
void cost_push_context_after(const CostShape *shape, bool backward, int first, int last, CostOps *ops);

#endif
