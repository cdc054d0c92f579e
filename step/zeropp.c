/* step/zeropp.c - ZeRO++: what its three parts change in the communication of a ZeRO-3 unit.
 *
 *   qwZ  weights are gathered as 8-bit blocks with a scale each: half of the bytes, and a pass to unpack them
 *   hpZ  a second 16-bit shard in every node serves the backward's gather: nothing crosses the node
 *   qgZ  gradients are reduced as 4-bit blocks by two all-to-alls, in the node and then across, each once quantised:
 *        a quarter of the bytes, and the passes to pack, add up and unpack
 * Source: [Wang2023]      Ignores: overlap of the two all-to-alls      Tested: golden/test_volumes.c
 */
#include <math.h>

#include "costmodel/states.h"
#include "step/fill.h"

#define BLOCK_VALUES    256.0 /* of one scale of 4 bytes: DeepSpeed's default group */
#define QUANTIZED_BYTES (1 + 4 / BLOCK_VALUES)
#define GRADIENT_BYTES  (0.5 + 4 / BLOCK_VALUES)

static SimWork data_collective(const Spec *spec, CostCollectiveOp op, double bytes, CostGroup group)
{
    return step_collective(spec, &(CostCollective){.op = op, .bytes = bytes, .group = group},
                           SIM_PART_DATA_COMM);
}

static void add_pass(const Spec *spec, SimWork *work, double bytes)
{
    sim_work_spend(work, SIM_PART_COMPUTE,
                   sim_ps(cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, bytes)));
}

/* Ranks of a group that share a node, and the rail across. */
static CostGroup node_of(const CostGroup *group)
{
    return cost_group_among(group, group->per_domain, group->per_domain);
}

static void add_quantized_reduce(const Spec *spec, double count, CostRanks ranks, SimSegment *segment)
{
    const CostGroup group = cost_group(spec, ranks), node = node_of(&group),
                    rail = cost_group_among(&group, group.ranks / node.ranks, 1);
    const SimWork inside = data_collective(spec, COST_ALL_TO_ALL, count * GRADIENT_BYTES, node),
                  across = data_collective(spec, COST_ALL_TO_ALL, count * GRADIENT_BYTES / node.ranks, rail);
    step_add_work(&segment->grad_reduce, &inside);
    step_add_work(&segment->grad_reduce, &across);
    if (group.ranks > 1) { /* pack, add up and pack the node's parts, add up the rest */
        add_pass(spec, &segment->backward_weight,
                 count * (cost_weight_wire_bytes(spec) + GRADIENT_BYTES) * (1 + 1.0 / node.ranks) +
                     count * GRADIENT_BYTES);
    }
}

/* Dense parameters, or those of experts, over the ranks that hold the same of them. */
static void apply(const Spec *spec, double count, CostRanks ranks, SimSegment *segment)
{
    const SpecParallel *parallel = &spec->parallel;
    const double wire = cost_weight_wire_bytes(spec);
    const CostGroup group = cost_group(spec, ranks);
    if (count <= 0)
        return;
    if (parallel->quantized_weight_gather) {
        const SimWork gather = data_collective(spec, COST_ALL_GATHER, count * QUANTIZED_BYTES, group);
        step_add_work(&segment->param_gather, &gather);
        if (group.ranks > 1) {
            add_pass(spec, &segment->forward, count * (QUANTIZED_BYTES + wire));
            if (!parallel->secondary_weight_shard)
                add_pass(spec, &segment->backward_input, count * (QUANTIZED_BYTES + wire));
        }
    }
    if (parallel->secondary_weight_shard) {
        const SimWork gather = data_collective(spec, COST_ALL_GATHER, count * wire, node_of(&group));
        step_add_work(&segment->backward_gather, &gather);
    }
    if (parallel->quantized_gradient_reduce)
        add_quantized_reduce(spec, count, ranks, segment);
}

void step_apply_zeropp(const Spec *spec, const StepParams *params, SimSegment *segment)
{
    const SpecParallel *parallel = &spec->parallel;
    if (parallel->quantized_weight_gather)
        segment->param_gather = (SimWork){0};
    if (parallel->quantized_gradient_reduce)
        segment->grad_reduce = (SimWork){0};
    if (parallel->secondary_weight_shard) {
        segment->backward_gather = (SimWork){0};
        segment->backward_gathers_apart = true;
    }
    apply(spec, params->weights.dense, COST_RANKS_REPLICAS, segment);
    SimWork *works[] = {&segment->grad_reduce, &segment->param_gather, &segment->backward_gather};
    int64_t dense_bytes[G_N_ELEMENTS(works)];
    for (size_t i = 0; i < G_N_ELEMENTS(works); i++)
        dense_bytes[i] =
            sim_sum(works[i]->scale_up_bytes, works[i]->scale_out_bytes) - works[i]->second_bytes;
    apply(spec, params->weights.expert, COST_RANKS_EXPERT_REPLICAS, segment);
    for (size_t i = 0; i < G_N_ELEMENTS(works); i++)
        works[i]->second_bytes =
            sim_sum(works[i]->scale_up_bytes, works[i]->scale_out_bytes) - dense_bytes[i];
}

double step_secondary_shard_bytes(const Spec *spec, const StepParams *params)
{
    if (!spec->parallel.secondary_weight_shard)
        return 0;
    const CostGroup dense = cost_group(spec, COST_RANKS_REPLICAS),
                    expert = cost_group(spec, COST_RANKS_EXPERT_REPLICAS);
    return (params->weights.dense / dense.per_domain + params->weights.expert / expert.per_domain) *
           cost_weight_wire_bytes(spec);
}
