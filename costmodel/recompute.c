/* costmodel/recompute.c - what recomputation runs again: how much of a layer, and which ops of its forward. See pass.h. */
#include "costmodel/pass.h"

CostRecomputeExtent cost_recompute_extent(const Spec *spec, int layer_in_stage)
{
    const SpecRecompute *recompute = &spec->training.recompute;
    const int every = recompute->every_n_layers > 1 ? recompute->every_n_layers : 1;
    switch (recompute->mode) {
    case SPEC_RECOMPUTE_NONE:
        return COST_RECOMPUTE_OP_NONE;
    case SPEC_RECOMPUTE_FULL:
        return recompute->layers == 0 || layer_in_stage < recompute->layers ? COST_RECOMPUTE_OP_ALL
                                                                            : COST_RECOMPUTE_OP_NONE;
    case SPEC_RECOMPUTE_SELECTIVE_LAYER:
        return layer_in_stage % every == 0 ? COST_RECOMPUTE_OP_ALL : COST_RECOMPUTE_OP_NONE;
    default:
        return COST_RECOMPUTE_OP_SOME;
    }
}

static bool scatters(const CostOps *ops, int index)
{
    return index < ops->count && ops->op[index].kind == COST_OP_COLLECTIVE &&
           ops->op[index].u.collective.collective.op == COST_REDUCE_SCATTER;
}

/* torchtitan's per-op policy keeps every second matmul, attention, and what reduce-scatters return (so what only they
 * read is not needed); gathers run again. Source: [torchtitan] parallelize_llama.py, _save_list */
static bool selective_op_recomputes(const CostOps *ops, int index)
{
    const CostOp *op = &ops->op[index];
    if (op->kind == COST_OP_ATTENTION) {
        return false;
    }
    if (op->kind == COST_OP_COLLECTIVE) {
        return op->u.collective.comm == COST_COMM_TENSOR && op->u.collective.collective.op == COST_ALL_GATHER;
    }
    if (op->kind == COST_OP_MEMORY && scatters(ops, index + 1)) {
        return false;
    }
    if (op->kind != COST_OP_GEMM) {
        return true;
    }
    int before = 0;
    for (int i = 0; i < index; i++) {
        before += ops->op[i].kind == COST_OP_GEMM;
    }
    return before % 2 == 1;
}

static bool module_recomputes(unsigned modules, CostModule module)
{
    switch (module) {
    case COST_MODULE_NORM:
        return (modules & SPEC_MODULE_LAYERNORM) != 0;
    case COST_MODULE_MLA_UP:
        return (modules & SPEC_MODULE_MLA_UP_PROJ) != 0;
    case COST_MODULE_ATTENTION_CORE:
        return (modules & SPEC_MODULE_CORE_ATTN) != 0;
    case COST_MODULE_MLP_LINEAR:
    case COST_MODULE_MLP_ACTIVATION:
        return (modules & SPEC_MODULE_MLP) != 0;
    case COST_MODULE_MOE_ACTIVATION:
        return (modules & (SPEC_MODULE_MOE_ACT | SPEC_MODULE_MOE)) != 0;
    case COST_MODULE_MOE:
    case COST_MODULE_ROUTER:
        return (modules & SPEC_MODULE_MOE) != 0;
    case COST_MODULE_SHARED_EXPERT:
        return (modules & (SPEC_MODULE_MOE | SPEC_MODULE_SHARED_EXPERTS)) != 0;
    default:
        return false;
    }
}

bool cost_recomputes_op(const Spec *spec, const CostOps *ops, int index)
{
    switch (spec->training.recompute.mode) {
    case SPEC_RECOMPUTE_SELECTIVE:
        return ops->op[index].module == COST_MODULE_ATTENTION_CORE;
    case SPEC_RECOMPUTE_SELECTIVE_OP:
        return selective_op_recomputes(ops, index);
    case SPEC_RECOMPUTE_MODULES:
        return module_recomputes(spec->training.recompute.modules, ops->op[index].module);
    default:
        return false;
    }
}

/* Per-op recomputation tells products apart that are one op here: those of one op count on from its first. */
bool cost_recomputes_product(const Spec *spec, const CostOps *ops, int index, int product)
{
    const bool again = cost_recomputes_op(spec, ops, index);
    const bool per_op = spec->training.recompute.mode == SPEC_RECOMPUTE_SELECTIVE_OP;
    return per_op && ops->op[index].kind == COST_OP_GEMM && product % 2 == 1 ? !again : again;
}

/* The first op of a layer that no tensor of its backward depends on: behind the last that writes one, and what its reader
 * does first (casts). So without dropout a dense MLP's output linear and what follows do not run again. Combining experts
 * needs their outputs, for the gradient of the weights. Source: [PyTorchCheckpoint] */
static int first_not_needed(const CostOps *forward)
{
    int first = 0;
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        first = MAX(first, tensor->kept_by + (tensor->written_by == tensor->kept_by ? 1 : 0));
    }
    for (int i = 0; i < forward->count; i++) {
        if (forward->op[i].module == COST_MODULE_MOE) {
            return forward->count;
        }
    }
    return first;
}

bool cost_runs_again(const Spec *spec, const CostOps *forward, int index, CostRecomputeExtent extent)
{
    if (extent == COST_RECOMPUTE_OP_SOME) {
        return cost_recomputes_op(spec, forward, index);
    }
    const bool early = spec->execution.framework.kernels.recompute_stops_early;
    return extent == COST_RECOMPUTE_OP_ALL && (!early || index < first_not_needed(forward));
}
