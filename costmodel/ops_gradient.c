/* costmodel/ops_gradient.c - the gradient of a weight, and scales of blocks in the order of products. See ops.h. */
#include "costmodel/ops.h"

/* Whether casts write the scales of activations in the order of products: not of those that tensor ranks gather. */
static bool casts_order_scales(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    return cost_has_engine(shape, SPEC_TE_BEFORE_2_14) && spec->training.precision == SPEC_PRECISION_MXFP8 &&
           (shape->tensor < 2 || !spec->parallel.sequence_parallel);
}

void cost_push_scales(const CostShape *shape, CostOps *ops, CostModule module, const double size[3],
                      double groups, bool has_weight)
{
    const bool fp4 = shape->linear_dtype == SPEC_FP4, ordered = casts_order_scales(shape);
    if ((!fp4 && shape->spec->training.precision != SPEC_PRECISION_MXFP8) || (ordered && !has_weight)) {
        return;
    }
    const double elements = groups * (ordered ? size[1] : size[0] + size[1]) * size[2];
    const double scale = 1.0 / (fp4 ? 16 : 32);
    cost_push_memory(ops, "scales", module, COST_MEMORY_CAST, elements, cost_both_ways(scale, scale),
                     ordered ? 1 : 2);
}

/* dW = dY^T X, added to the gradient that earlier micro-batches left: inside the GEMM (fused accumulation), or
 * by a pass that reads both and writes the sum. Source: [Narayanan2021] and Megatron-LM's gradient hooks. */
int cost_push_weight_gradient(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                              const double size[3], double groups, SpecDtype dtype)
{
    if (dtype == shape->linear_dtype) {
        cost_push_scales(shape, ops, module, size, groups, false);
    }
    CostOp *op =
        cost_push_gemm(ops, name, module, COST_BACKWARD_WEIGHT, size[0], size[1], size[2], groups, dtype);
    const SpecGradientSum how = shape->spec->execution.framework.kernels.gradient_sum;
    const bool fused = how == SPEC_SUM_IN_PRODUCT;
    const int gemm = ops->count - 1;
    op->u.gemm.accumulate_fp32 = fused && shape->accumulate_fp32;
    op->u.gemm.accumulate = fused && shape->accumulates;
    if (!fused && shape->accumulates) {
        const double elements = size[0] * size[1] * groups, e = shape->element_bytes,
                     sum_bytes = shape->accumulate_fp32 ? 4 : e;
        const bool upcast = shape->accumulate_fp32 && how == SPEC_SUM_WIDENED;
        if (upcast) { /* PyTorch's cast to a wider type takes element by element [PyTorchByElement] */
            cost_push_by_element(ops, "widen gradient", module, elements, 1, cost_both_ways(e, sum_bytes), 1);
        }
        cost_push_memory(ops, "add to gradient", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways((upcast ? sum_bytes : e) + sum_bytes, sum_bytes), 1);
    }
    return gemm;
}
