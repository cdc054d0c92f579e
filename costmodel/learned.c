/* costmodel/learned.c - see learned.h. */
#include "costmodel/learned.h"

double cost_learned_collective_frac(const Spec *spec, CostCollectiveOp op)
{
    const SpecRecipeLearned *learned = &spec->execution.framework.learned;
    const double excess[COST_COLLECTIVE_COUNT] = {
        [COST_ALL_REDUCE] = learned->all_reduce_excess_frac,
        [COST_ALL_GATHER] = learned->all_gather_excess_frac,
        [COST_REDUCE_SCATTER] = learned->reduce_scatter_excess_frac,
        [COST_ALL_TO_ALL] = learned->all_to_all_excess_frac,
        [COST_SEND_RECV] = learned->send_receive_excess_frac,
        [COST_BROADCAST] = 0,
        [COST_REDUCE] = 0,
    };
    return 1 + excess[op];
}

double cost_learned_frac(const Spec *spec, const CostOp *op)
{
    const SpecRecipeLearned *learned = &spec->execution.framework.learned;
    switch (op->kind) {
    case COST_OP_ATTENTION:
        return 1 + learned->attention_excess_frac;
    case COST_OP_MEMORY:
        return 1 + (op->module == COST_MODULE_NORM ? learned->norms_excess_frac
                                                   : learned->elementwise_excess_frac);
    case COST_OP_COLLECTIVE:
        return cost_learned_collective_frac(spec, op->u.collective.collective.op);
    default:
        return 1;
    }
}
