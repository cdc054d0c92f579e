/* costmodel/recompute.c - what recomputation runs again: how much of a layer, and which ops of its forward. See pass.h. */
#include "costmodel/activations.h"
#include "costmodel/pass.h"

int cost_recompute_run(const SpecRecompute *recompute, int from, int layers, CostRecomputeExtent *ret_extent)
{
    const int every = MAX(1, recompute->every_n_layers), next = from - from % every + every;
    int until = layers;
    bool all = true;
    *ret_extent = COST_RECOMPUTE_OP_SOME;
    switch (recompute->mode) {
    case SPEC_RECOMPUTE_NONE:
        all = false;
        break;
    case SPEC_RECOMPUTE_FULL:
        all = recompute->layers == 0 || from < recompute->layers;
        until = all && recompute->layers > 0 ? recompute->layers : layers;
        break;
    case SPEC_RECOMPUTE_SELECTIVE_LAYER:
        all = from % every == 0;
        until = every == 1 ? layers : all ? from + 1 : next;
        break;
    default:
        return layers;
    }
    *ret_extent = all ? COST_RECOMPUTE_OP_ALL : COST_RECOMPUTE_OP_NONE;
    return MIN(until, layers);
}

CostRecomputeExtent cost_recompute_extent(const Spec *spec, int layer_in_stage)
{
    CostRecomputeExtent extent;
    cost_recompute_run(&spec->training.recompute, layer_in_stage, layer_in_stage + 1, &extent);
    return extent;
}

static bool scatters(const CostOps *ops, int index)
{
    return index < ops->count && ops->op[index].kind == COST_OP_COLLECTIVE &&
           ops->op[index].u.collective.collective.op == COST_REDUCE_SCATTER;
}

static int products(const CostOp *op)
{
    int count = 0;
    while (count < COST_MAX_PARTS && op->parts[count] > 0) {
        count++;
    }
    return MAX(1, count);
}

/* What writes op `index` is read by a reduce-scatter alone, or by the copy before one. */
static bool only_scattered(const CostOps *ops, int index)
{
    const bool copied = index + 1 < ops->count && ops->op[index + 1].kind == COST_OP_MEMORY;
    return scatters(ops, index + 1) || (copied && scatters(ops, index + 2));
}

/* Products that the policy neither keeps nor counts: a grouped product of experts is no matmul, routers run again. */
static bool never_kept(const CostOp *op)
{
    return op->module == COST_MODULE_MOE || op->module == COST_MODULE_ROUTER;
}

/* torchtitan's per-op policy keeps every second matmul, attention, and what reduce-scatters return; gathers run again, and
 * so do maxima that ranks agree on and grouped products. Linear layers that are apart are a matmul each. Eager code runs
 * again what the policy does not keep, needed or not; of a compiled graph what only a reduce-scatter reads is left out.
 * Source: [torchtitan] parallelize_llama.py, _save_list; activation_checkpoint.py, force_recompute_mm_shapes_by_fqns */
static bool selective_op_recomputes(const Spec *spec, const CostOps *ops, int index, int product)
{
    const CostOp *op = &ops->op[index];
    if (op->kind == COST_OP_ATTENTION) {
        return false;
    }
    if (op->kind == COST_OP_COLLECTIVE) {
        return op->u.collective.comm == COST_COMM_TENSOR &&
               op->u.collective.collective.op != COST_REDUCE_SCATTER;
    }
    if (op->kind == COST_OP_MEMORY && scatters(ops, index + 1)) {
        return false;
    }
    if (op->kind != COST_OP_GEMM) {
        return true;
    }
    if (never_kept(op)) {
        return true;
    }
    if (spec->execution.compiled && only_scattered(ops, index)) {
        return false;
    }
    int before = MIN(product, products(op) - 1);
    for (int i = 0; i < index; i++) {
        before += ops->op[i].kind == COST_OP_GEMM && !never_kept(&ops->op[i]) ? products(&ops->op[i]) : 0;
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

bool cost_recomputes_product(const Spec *spec, const CostOps *ops, int index, int product)
{
    switch (spec->training.recompute.mode) {
    case SPEC_RECOMPUTE_SELECTIVE:
        return ops->op[index].module == COST_MODULE_ATTENTION_CORE ||
               (spec->execution.framework.kernels.selective_keeps_products &&
                ops->op[index].kind == COST_OP_MEMORY);
    case SPEC_RECOMPUTE_SELECTIVE_OP:
        return selective_op_recomputes(spec, ops, index, product);
    case SPEC_RECOMPUTE_MODULES:
        return module_recomputes(spec->training.recompute.modules, ops->op[index].module);
    default:
        return false;
    }
}

bool cost_recomputes_op(const Spec *spec, const CostOps *ops, int index)
{
    bool any = false;
    for (int product = 0; product < products(&ops->op[index]); product++) {
        any = any || cost_recomputes_product(spec, ops, index, product);
    }
    return any;
}

/* The first op of a layer that no tensor of its backward depends on: behind the last that writes one, and what its reader
 * does first (casts). So without dropout a dense MLP's output linear and what follows do not run again. Combining experts
 * needs their outputs, for the gradient of the weights; by masks it is the last product, and keeps them itself. Tiles of an MLP are one function, whose input is kept as it returns.
 * Source: [PyTorchCheckpoint] */
static int first_not_needed(const CostOps *forward, bool tiled, bool masked)
{
    int first = 0;
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        first = MAX(first, tensor->kept_by + (tensor->written_by == tensor->kept_by ? 1 : 0));
    }
    for (int i = 0; i < forward->count; i++) {
        const CostModule module = forward->op[i].module;
        if (module == COST_MODULE_MOE && !masked) {
            return forward->count;
        }
        if (tiled && (module == COST_MODULE_MLP_LINEAR || module == COST_MODULE_MLP_ACTIVATION)) {
            first = i + 1;
        }
    }
    return first;
}

bool cost_runs_again(const Spec *spec, const CostOps *forward, int index, CostRecomputeExtent extent)
{
    if (extent == COST_RECOMPUTE_OP_SOME) {
        return cost_recomputes_op(spec, forward, index);
    }
    const bool early = spec->execution.framework.kernels.recompute_stops_early,
               masked = spec->parallel.moe_dispatcher == SPEC_DISPATCHER_ONE_HOT;
    return extent == COST_RECOMPUTE_OP_ALL &&
           (!early || index < first_not_needed(forward, spec->training.mlp_tiles > 1, masked));
}

/* Of linear layers that are apart those alone that run again. */
static void keep_products(const Spec *spec, const CostOps *forward, int index, CostOp *op)
{
    const CostOp *whole = &forward->op[index];
    double all = 0, left = 0;
    int count = 0;
    for (int i = 0; i < products(whole); i++) {
        all += whole->parts[i];
        op->parts[i] = 0;
        if (cost_recomputes_product(spec, forward, index, i)) {
            left += op->parts[count++] = whole->parts[i];
        }
    }
    op->kernels = count;
    op->u.gemm.n = left;
    op->model_flops *= left / all;
    op->full_flops *= left / all;
}

void cost_again_ops(const Spec *spec, const CostOps *forward, CostRecomputeExtent extent, CostOps *ret_ops,
                    bool ret_again[COST_MAX_OPS])
{
    *ret_ops = *forward;
    for (int i = 0; i < forward->count; i++) {
        ret_again[i] = cost_runs_again(spec, forward, i, extent);
        if (ret_again[i] && extent == COST_RECOMPUTE_OP_SOME && forward->op[i].parts[0] > 0) {
            keep_products(spec, forward, i, &ret_ops->op[i]);
        }
    }
}

/* What a checkpointed region returns stays for its reader: attention's output. The residual behind attention stands for the
 * product that it becomes, which per-op recomputation keeps and a compiler, whose backward reads none, does not. */
static bool stays(const Spec *spec, const CostOps *forward, const CostTensor *tensor)
{
    const CostModule module = forward->op[tensor->written_by].module;
    if (spec->training.recompute.mode == SPEC_RECOMPUTE_SELECTIVE_OP) {
        return module == COST_MODULE_RESIDUAL && !spec->execution.compiled;
    }
    return module == COST_MODULE_ATTENTION_CORE && forward->op[tensor->kept_by].module != module;
}

/* What stands between attention and MLP: the second half's input. Its residual writes it, and another op reads it again. */
bool cost_stands_between(const CostOps *forward, const CostTensor *tensor)
{
    return tensor->written_by != COST_OUTSIDE &&
           forward->op[tensor->written_by].module == COST_MODULE_RESIDUAL &&
           forward->op[tensor->kept_by].module != COST_MODULE_RESIDUAL;
}

bool cost_drops_tensor(const Spec *spec, const CostOps *forward, const CostTensor *tensor,
                       CostRecomputeExtent extent)
{
    if (tensor->written_by == COST_OUTSIDE || extent != COST_RECOMPUTE_OP_SOME) {
        return tensor->written_by != COST_OUTSIDE && extent == COST_RECOMPUTE_OP_ALL &&
               !(spec->training.recompute.halves && cost_stands_between(forward, tensor));
    }
    return !stays(spec, forward, tensor) &&
           cost_recomputes_product(spec, forward, tensor->written_by, tensor->product);
}
