/* costmodel/ops_moe_rows.c - rows of routed experts on their way: copies around an exchange, and the exchange. */
#include <math.h>

#include "costmodel/moe.h"
#include "costmodel/ops.h"
#include "costmodel/ops_moe.h"

/* Fused permutation: a map of row numbers in two kernels, then the copy. */
#define PERMUTE_KERNELS 3

/* Where shapes are static (XLA), a rank has room for all rows that may come: of all ranks of its group, or, with fewer
 * experts than a token visits, of one row a token and expert. What passes over rows then passes over that room; products
 * know how many there are.
 * Source: [MaxTextMoe] get_ragged_buffer_size */
double cost_moe_buffer_frac(const CostShape *shape)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    if (shape->spec->parallel.moe_dispatcher != SPEC_DISPATCHER_RAGGED || shape->expert_group.ranks < 2)
        return 1;
    return fmax(1, fmin(shape->expert_group.ranks, (double)moe->experts / moe->top_k) / cost_moe_load(shape));
}

bool cost_moe_weighs_returned(const CostShape *shape)
{
    const SpecMoeDispatcher dispatcher = shape->spec->parallel.moe_dispatcher;
    return dispatcher == SPEC_DISPATCHER_ONE_HOT || dispatcher == SPEC_DISPATCHER_RAGGED;
}

static CostCollective all_to_all(const CostGroup *of, double sent_bytes, int ranks, int per_domain)
{
    return (CostCollective){.op = COST_ALL_TO_ALL,
                            .bytes = sent_bytes * ranks / fmax(1, ranks - 1),
                            .group = cost_group_among(of, ranks, per_domain)};
}

/* One way of the exchange. A single all-to-all; or, where rows cross the NIC and then scale-up links, one collective
 * for each: at once for DeepEP and HybridEP, which forward while they receive, one after the other else. */
void cost_push_row_exchange(const CostShape *shape, CostOps *ops, const char *name, double row_bytes)
{
    const Spec *spec = shape->spec;
    const SpecMoe *moe = &spec->model.moe;
    const CostGroup group = shape->expert_group;
    const double factor = moe->capacity_factor > 0 ? moe->capacity_factor : cost_moe_load(shape);
    const CostExchange exchange =
        cost_moe_exchange(spec, &group, cost_moe_own_tokens(shape) * factor, row_bytes);
    const int nodes = cost_group_domains(&group), inside_ranks = (group.ranks + nodes - 1) / nodes;
    if (group.ranks < 2) {
        return;
    }
    if (spec->parallel.moe_dispatcher == SPEC_DISPATCHER_ALLTOALL ||
        spec->parallel.moe_dispatcher == SPEC_DISPATCHER_ONE_HOT ||
        spec->parallel.moe_dispatcher == SPEC_DISPATCHER_RAGGED) {
        cost_push_collective(ops, name, COST_MODULE_MOE, COST_ALL_TO_ALL,
                             cost_moe_own_tokens(shape) * factor * moe->top_k * row_bytes, group,
                             COST_COMM_EXPERT, -1);
        return;
    }
    int across = -1;
    if (nodes > 1) {
        const CostCollective net = all_to_all(&group, exchange.scale_out_bytes, nodes, 1);
        cost_push_collective(ops, name, COST_MODULE_MOE, net.op, net.bytes, net.group, COST_COMM_EXPERT, -1);
        across = spec->parallel.moe_dispatcher == SPEC_DISPATCHER_HIERARCHICAL ? -1 : ops->count - 1;
    }
    if (inside_ranks > 1) {
        const CostCollective inside = all_to_all(&group, exchange.scale_up_bytes, inside_ranks, inside_ranks);
        cost_push_collective(ops, name, COST_MODULE_MOE, inside.op, inside.bytes, inside.group,
                             COST_COMM_EXPERT, across);
    }
}

/* What an all-to-all needs besides the rows: how many go where, gathered before them, and their probabilities, which
 * travel apart. Source: [MegatronMoE] MoEAlltoAllTokenDispatcher */
void cost_push_row_counts(const CostShape *shape, CostOps *ops, CostPass pass)
{
    const Spec *spec = shape->spec;
    const bool ragged = spec->parallel.moe_dispatcher == SPEC_DISPATCHER_RAGGED;
    if ((spec->parallel.moe_dispatcher != SPEC_DISPATCHER_ALLTOALL && !ragged) ||
        shape->expert_group.ranks < 2) {
        return;
    }
    if (pass == COST_FORWARD && cost_moe_dropless(shape)) {
        cost_push_collective(ops, "rows of experts", COST_MODULE_MOE, COST_ALL_GATHER,
                             4.0 * spec->model.moe.experts * shape->expert_group.ranks, shape->expert_group,
                             COST_COMM_EXPERT, -1);
    }
    if (ragged) /* probabilities stay, and weigh the rows that come back */
        return;
    const double factor = cost_moe_dropless(shape) ? cost_moe_load(shape) : spec->model.moe.capacity_factor;
    cost_push_collective(ops, "probabilities", COST_MODULE_MOE, COST_ALL_TO_ALL,
                         cost_moe_own_tokens(shape) * factor * spec->model.moe.top_k * 4, shape->expert_group,
                         COST_COMM_EXPERT, -1);
}

/* Rows padded to a capacity come in equal pieces, so Megatron orders them by expert as a view: rank and expert change
 * places, and PyTorch copies what is no longer in one piece, an element at a time.
 * Source: [MegatronMoE] token_dispatcher.py (drop_and_pad), [PyTorchEager] Loops.cuh */
static bool reorders_view(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    return !cost_moe_dropless(shape) && !execution->compiled &&
           shape->spec->parallel.moe_dispatcher == SPEC_DISPATCHER_ALLTOALL;
}

#define PERMUTE_BLOCK                                                                                        \
    1024 /* elements of the hidden size that a walk serves, the most that its tuning tries */

/* Until release 2.6 a block of Transformer Engine's permutation looks at every expert to find the few of its token, for
 * each piece of the hidden size anew; only the gradient of weighed rows looks once.
 * Source: [TransformerEngine] triton/permutation.py of 2.3, pull request 1927 */
static void walk_experts(const CostShape *shape, CostOps *ops, CostPass pass, bool spreads)
{
    const bool once = pass == COST_BACKWARD_INPUT && spreads;
    if (!cost_has_engine(shape, SPEC_TE_BEFORE_2_12)) {
        CostOp *op = &ops->op[ops->count - 1];
        op->u.memory.walks = cost_moe_own_tokens(shape);
        op->u.memory.walk_loads =
            shape->spec->model.moe.experts * (once ? 1 : ceil(shape->hidden / PERMUTE_BLOCK));
    }
}

/* Copies of rows around an exchange, each way. All-to-all: tokens to k rows in the order of ranks, and in the order of
 * experts on the other side where a rank has several. DeepEP and HybridEP: received tokens to rows, a pass of its own
 * (HybridEP's is a plain copy, 16 bytes a thread) unless HybridEP is asked to fuse it. Ragged: as all-to-all, by gathers of
 * whole rows, on the other side of all that has room. Source: [DeepEP] csrc/hybrid_ep/extension/permute.cu,
 * [MegatronMoE] fused_a2a.py
 *   all-to-all (1 + 1/k) + 2 [experts > 1]    DeepEP, HybridEP 1 + u    rows; u = unique rows over rows */
void cost_push_permute(const CostShape *shape, CostOps *ops, const char *name, CostPass pass, bool spreads)
{
    const Spec *spec = shape->spec;
    const SpecMoe *moe = &spec->model.moe;
    const CostExchange exchange =
        cost_moe_exchange(spec, &shape->expert_group, cost_moe_own_tokens(shape), 1);
    const double rows = cost_moe_own_tokens(shape) * moe->top_k * cost_moe_load(shape),
                 unique = exchange.received_rows * cost_moe_load(shape);
    const double row_bytes = shape->hidden * shape->element_bytes;
    const bool several = cost_moe_experts_of_rank(shape) > 1 && spec->parallel.expert > 1;
    double few = rows / moe->top_k, again = several ? rows : 0;
    int kernels = PERMUTE_KERNELS + (several ? PERMUTE_KERNELS : 0);
    if (cost_push_masked(shape, ops, pass, spreads))
        return;
    const bool hybrid = spec->parallel.moe_dispatcher == SPEC_DISPATCHER_HYBRIDEP;
    if (spec->parallel.expert > 1 && (hybrid || spec->parallel.moe_dispatcher == SPEC_DISPATCHER_DEEPEP)) {
        few = unique, again = 0, kernels = PERMUTE_KERNELS;
    }
    const bool ragged = spec->parallel.moe_dispatcher == SPEC_DISPATCHER_RAGGED;
    if (ragged)
        again *= cost_moe_buffer_frac(shape);
    if (again > 0 && reorders_view(shape)) {
        cost_push_by_element(ops, "reorder", COST_MODULE_MOE,
                             again * shape->hidden * spec->parallel.expert_tensor, 1,
                             cost_both_ways(shape->element_bytes, shape->element_bytes), 1);
        again = 0, kernels = PERMUTE_KERNELS;
    }
    cost_push_memory(
        ops, name, COST_MODULE_MOE,
        (hybrid || ragged) && spec->parallel.expert > 1 ? COST_MEMORY_ELEMENTWISE : COST_MEMORY_PERMUTE,
        row_bytes * spec->parallel.expert_tensor,
        spreads ? cost_both_ways(few + again, rows + again) : cost_both_ways(rows + again, few + again),
        kernels);
    walk_experts(shape, ops, pass, spreads);
    if (cost_moe_weighs_returned(shape) && pass == COST_BACKWARD_INPUT && !spreads)
        cost_push_memory(ops, "probability grad", COST_MODULE_MOE, COST_MEMORY_NORM,
                         cost_moe_own_tokens(shape) * moe->top_k * shape->hidden,
                         (CostMoved){.read = 2 * shape->element_bytes}, 1);
}
