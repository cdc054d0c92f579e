/* costmodel/op_seconds.h - seconds of one op of a list alone, on the framework's kernels; docs/MODEL-kernels.md. */
#ifndef ORR_COSTMODEL_OP_SECONDS_H
#define ORR_COSTMODEL_OP_SECONDS_H

#include "costmodel/ops.h"

/* Without launch gap. */
double cost_op_s(const CostShape *shape, const CostOp *op);
/* The same of a product on this chip, be it the slowest or not. */
double cost_products_s(const CostShape *shape, const CostOp *op);

#endif
