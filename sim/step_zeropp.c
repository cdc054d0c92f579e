/* sim/step_zeropp.c - ZeRO++: what its three parts change in the communication of a ZeRO-3 unit.
 *
 *   qwZ  weights are gathered as 8-bit blocks with a scale each: half of the bytes, and a pass to unpack them
 *   hpZ  a second 16-bit shard in every node serves the backward's gather: nothing crosses the node
 *   qgZ  gradients are reduced as 4-bit blocks by two all-to-alls, in the node and then across, each once quantised:
 *        a quarter of the bytes, and the passes to pack, add up and unpack
 * Source: [Wang2023]      Ignores: overlap of the two all-to-alls      Tested: golden/test_volumes.c
 */
#include <math.h>

#include "costmodel/states.h"
#include "sim/step_internal.h"

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
    work->part_ps[SIM_PART_COMPUTE] +=
        step_ps(cost_memory_bound_s(&spec->cluster.accelerator, COST_MOVE_ELEMENTWISE, bytes));
}

static CostGroup replicas_of(const Spec *spec)
{
    return cost_group(spec, COST_RANKS_REPLICAS);
}

static SimWork quantized_reduce(const Spec *spec, double count)
{
    const CostGroup group = replicas_of(spec);
    const int inside = group.per_domain, nodes = group.ranks / group.per_domain;
    const CostGroup node = {.ranks = inside, .per_domain = inside, .nic_sharers = 1},
                    rail = {.ranks = nodes, .per_domain = 1, .nic_sharers = 1};
    SimWork work = data_collective(spec, COST_ALL_TO_ALL, count * GRADIENT_BYTES, node);
    const SimWork across = data_collective(spec, COST_ALL_TO_ALL, count * GRADIENT_BYTES / inside, rail);
    step_add_work(&work, &across);
    return work;
}

void step_apply_zeropp(const Spec *spec, const StepParams *params, SimSegment *segment)
{
    const double count = params->dense, wire = cost_weight_wire_bytes(spec);
    const CostGroup group = replicas_of(spec);
    if (spec->parallel.quantized_weight_gather) {
        const SimWork expert = data_collective(spec, COST_ALL_GATHER, params->expert * wire,
                                               cost_group(spec, COST_RANKS_EXPERT_REPLICAS));
        segment->param_gather = data_collective(spec, COST_ALL_GATHER, count * QUANTIZED_BYTES, group);
        step_add_work(&segment->param_gather, &expert);
        add_pass(spec, &segment->forward, count * (QUANTIZED_BYTES + wire));
        if (!spec->parallel.secondary_weight_shard) {
            add_pass(spec, &segment->backward_input, count * (QUANTIZED_BYTES + wire));
        }
    }
    if (spec->parallel.secondary_weight_shard) {
        const CostGroup node = {.ranks = group.per_domain, .per_domain = group.per_domain, .nic_sharers = 1};
        segment->backward_gather =
            data_collective(spec, COST_ALL_GATHER, (count + params->expert) * wire, node);
        segment->backward_gathers_apart = true;
    }
    if (spec->parallel
            .quantized_gradient_reduce) { /* pack, add up and pack the node's parts, add up the rest */
        segment->grad_reduce = quantized_reduce(spec, count + params->expert);
        add_pass(spec, &segment->backward_weight,
                 count * (wire + GRADIENT_BYTES) * (1 + 1.0 / group.per_domain) + count * GRADIENT_BYTES);
    }
}

double step_secondary_shard_bytes(const Spec *spec, const StepParams *params)
{
    const CostGroup group = replicas_of(spec);
    return spec->parallel.secondary_weight_shard
               ? (params->dense + params->expert) * cost_weight_wire_bytes(spec) / group.per_domain
               : 0;
}
