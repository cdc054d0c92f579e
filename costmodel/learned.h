/* costmodel/learned.h - how kernels of a software differ from the model of the GPU, as `execution.framework.learned` says. */
#ifndef ORR_COSTMODEL_LEARNED_H
#define ORR_COSTMODEL_LEARNED_H

#include "costmodel/ops.h"

/* Times as long as the model says: an op's attention, moved bytes or collective. 1 of products, whose own seconds have it
 * (they are cut in pieces of their own). */
double cost_learned_frac(const Spec *spec, const CostOp *op);
double cost_learned_collective_frac(const Spec *spec, CostCollectiveOp op);

#endif
