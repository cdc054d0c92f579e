/* costmodel/learned.c - see learned.h. */
#include "costmodel/learned.h"

double cost_learned_collective_frac(const Spec *spec, CostCollectiveOp op)
{
    static const int classes[COST_COLLECTIVE_COUNT] = {
        [COST_ALL_REDUCE] = SPEC_LEARNED_ALL_REDUCE,
        [COST_ALL_GATHER] = SPEC_LEARNED_ALL_GATHER,
        [COST_REDUCE_SCATTER] = SPEC_LEARNED_REDUCE_SCATTER,
        [COST_ALL_TO_ALL] = SPEC_LEARNED_ALL_TO_ALL,
        [COST_SEND_RECV] = SPEC_LEARNED_SEND_RECEIVE,
        [COST_BROADCAST] = SPEC_LEARNED_CLASSES,
        [COST_REDUCE] = SPEC_LEARNED_CLASSES,
    };
    const int kind = classes[op];
    return kind < SPEC_LEARNED_CLASSES ? 1 + spec->execution.framework.learned.excess_frac[kind] : 1;
}

double cost_learned_frac(const Spec *spec, const CostOp *op)
{
    const double *excess_frac = spec->execution.framework.learned.excess_frac;
    switch (op->kind) {
    case COST_OP_ATTENTION:
        return 1 + excess_frac[SPEC_LEARNED_ATTENTION];
    case COST_OP_MEMORY:
        return 1 +
               excess_frac[op->module == COST_MODULE_NORM ? SPEC_LEARNED_NORMS : SPEC_LEARNED_ELEMENTWISE];
    case COST_OP_COLLECTIVE:
        return cost_learned_collective_frac(spec, op->u.collective.collective.op);
    default:
        return 1;
    }
}
