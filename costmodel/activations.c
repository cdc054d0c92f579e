/* costmodel/activations.c - see activations.h. Bytes are for the tokens of one micro-batch on this rank. */
#include <math.h>
#include <string.h>

#include "costmodel/freeze.h"
#include "costmodel/activations.h"
#include "costmodel/encoder.h"

/* Ops of the first half, which runs again apart from the others; all where a layer has no halves. */
static int first_half(const Spec *spec, const CostOps *forward)
{
    for (int i = 0; spec->training.recompute.halves && i < forward->kept_count; i++)
        if (cost_stands_between(forward, &forward->kept[i]))
            return forward->kept[i].written_by;
    return forward->count;
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

int cost_checkpoint_parts(const CostShape *shape, CostRecomputeExtent extent)
{
    const bool divided = shape->spec->training.recompute.partitioned && !shape->sequence_parallel;
    return divided && extent == COST_RECOMPUTE_OP_ALL ? shape->spec->parallel.tensor : 1;
}

double cost_kept_bytes(const CostShape *shape, const CostTensor *tensor, CostRecomputeExtent extent)
{
    return tensor->bytes / cost_checkpoint_parts(shape, extent);
}

CostActivations cost_activations(const CostShape *shape, const CostGraph *graph, CostRecomputeExtent extent)
{
    const CostOps *forward = &graph->pass[COST_FORWARD];
    CostActivations sum = {.forward_temp_bytes = temp_bytes(forward),
                           .backward_temp_bytes = fmax(temp_bytes(&graph->pass[COST_BACKWARD_INPUT]),
                                                       temp_bytes(&graph->pass[COST_BACKWARD_WEIGHT]))};
    const int half = extent == COST_RECOMPUTE_OP_ALL ? first_half(shape->spec, forward) : forward->count;
    double again[2] = {0}, whole[2] = {0};
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        const bool second = tensor->written_by >= half;
        if (cost_drops_tensor(shape->spec, forward, tensor, extent)) {
            again[second] += tensor->bytes;
        } else {
            const double kept = cost_kept_bytes(shape, tensor, extent);
            sum.kept_bytes += kept;
            sum.input_only_bytes += tensor->weight_grad ? 0 : kept;
            whole[second] += tensor->bytes - kept;
        }
    }
    sum.forward_temp_bytes += fmax(again[0], again[1]);
    sum.backward_temp_bytes += fmax(again[0] + whole[0], again[1] + whole[1]);
    const double longest = shape->longest_over_mean; /* a padded micro-batch of longest texts will come */
    return (CostActivations){longest * sum.kept_bytes, longest * sum.input_only_bytes,
                             longest * sum.forward_temp_bytes, longest * sum.backward_temp_bytes};
}

double cost_widened_bytes(const CostShape *shape, const CostGraph *graph, CostRecomputeExtent extent,
                          bool backward)
{
    const CostOps *forward = &graph->pass[COST_FORWARD],
                  *ops = backward ? &graph->pass[COST_BACKWARD_INPUT] : forward;
    const CostOp *most = NULL;
    for (int i = 0; i < ops->count; i++)
        if (most == NULL || ops->op[i].temp_bytes > most->temp_bytes)
            most = &ops->op[i];
    double bytes = most != NULL && strcmp(most->name, "widen weight") == 0 ? most->temp_bytes : 0;
    for (int i = 0; i < forward->kept_count; i++)
        if (strcmp(forward->kept[i].name, "widened weight") == 0 &&
            cost_drops_tensor(shape->spec, forward, &forward->kept[i], extent))
            bytes += forward->kept[i].bytes;
    return bytes;
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
    cost_graph_layer_in(shape, layer, layer_in_stage, &graph);
    return cost_activations(shape, &graph, cost_layer_extent(shape->spec, layer, layer_in_stage));
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
