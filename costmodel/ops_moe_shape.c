/* costmodel/ops_moe_shape.c - how many rows and experts a rank has: what the files that push the ops of routed experts
 * share. */
#include "costmodel/ops.h"
#include "costmodel/ops_moe.h"

bool cost_moe_dropless(const CostShape *shape)
{
    return shape->spec->model.moe.capacity_factor <= 0;
}

double cost_moe_experts_of_rank(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    return (double)(spec->model.moe.experts + spec->parallel.expert_replicas) / spec->parallel.expert;
}

double cost_moe_own_tokens(const CostShape *shape)
{
    return shape->tokens / shape->tensor; /* whose routing this rank owns */
}

double cost_routed_rows(const CostShape *shape)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    const double own = cost_moe_own_tokens(shape),
                 factor = moe->capacity_factor > 0 ? moe->capacity_factor : 1;
    return own * moe->top_k * factor * shape->spec->parallel.expert_tensor;
}

/* Fixed capacity pads every expert to the same rows; dropless experts take what comes. */
double cost_moe_load(const CostShape *shape)
{
    return cost_moe_dropless(shape) ? shape->expert_load : 1;
}
