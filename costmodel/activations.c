/* costmodel/activations.c - see activations.h. Bytes are for the tokens of one micro-batch on this rank. */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/encoder.h"

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

bool cost_drops_tensor(const Spec *spec, const CostOps *forward, const CostTensor *tensor,
                       CostRecomputeExtent extent)
{
    if (tensor->written_by == COST_OUTSIDE || extent != COST_RECOMPUTE_OP_SOME) {
        return tensor->written_by != COST_OUTSIDE && extent == COST_RECOMPUTE_OP_ALL;
    }
    return !stays(spec, forward, tensor) &&
           cost_recomputes_product(spec, forward, tensor->written_by, tensor->product);
}

/* Most of a list beside what is kept. */
static double temp_bytes(const CostOps *ops)
{
    double most = 0;
    for (int i = 0; i < ops->count; i++) {
        most = fmax(most, ops->op[i].temp_bytes);
    }
    return most;
}

CostActivations cost_activations(const CostShape *shape, const CostGraph *graph, CostRecomputeExtent extent)
{
    const CostOps *forward = &graph->pass[COST_FORWARD];
    CostActivations sum = {.forward_temp_bytes = temp_bytes(forward),
                           .backward_temp_bytes = fmax(temp_bytes(&graph->pass[COST_BACKWARD_INPUT]),
                                                       temp_bytes(&graph->pass[COST_BACKWARD_WEIGHT]))};
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        if (cost_drops_tensor(shape->spec, forward, tensor, extent)) {
            sum.backward_temp_bytes += tensor->bytes;
            sum.forward_temp_bytes += tensor->bytes;
        } else {
            sum.kept_bytes += tensor->bytes;
            sum.input_only_bytes += tensor->weight_grad ? 0 : tensor->bytes;
        }
    }
    return sum;
}

double cost_stacked_bytes(const CostShape *shape, const CostOps *forward, CostRecomputeExtent extent)
{
    double bytes = 0;
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        const bool product =
            tensor->written_by != COST_OUTSIDE && forward->op[tensor->written_by].kind == COST_OP_GEMM;
        if (product && !cost_drops_tensor(shape->spec, forward, tensor, extent))
            bytes += tensor->bytes;
    }
    return shape->spec->execution.framework.kernels.stacks_layers ? bytes : 0;
}

CostActivations cost_layer_activations(const CostShape *shape, int layer, int layer_in_stage)
{
    CostGraph graph;
    cost_graph_layer(shape, layer, &graph);
    return cost_activations(shape, &graph, cost_recompute_extent(shape->spec, layer_in_stage));
}

CostActivations cost_head_activations(const CostShape *shape)
{
    CostGraph graph;
    cost_graph(shape, cost_ops_head, &graph);
    return cost_activations(shape, &graph, COST_RECOMPUTE_OP_NONE);
}

double cost_boundary_bytes(const CostShape *shape)
{
    return shape->stream_bytes * cost_boundary_tokens(shape, shape->part_tokens) * shape->hidden;
}
