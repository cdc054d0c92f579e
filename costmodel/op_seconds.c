/* costmodel/op_seconds.c - see op_seconds.h. */
#include "costmodel/op_seconds.h"

#include <math.h>

#include "costmodel/kernels.h"
#include "costmodel/learned.h"

#define ROWWISE_LONG_SUM 16384 /* where PyTorch's row-wise kernel falls off. Source: [PyTorchRowwise] */

/* What the framework's own GEMM kernels lose beside what their tiles cost. */
static double gemm_speed(const CostShape *shape, const CostGemm *gemm)
{
    const SpecFramework *framework = &shape->spec->execution.framework;
    if (!gemm->rowwise)
        return 1;
    return gemm->k < ROWWISE_LONG_SUM ? framework->kernels.rowwise_gemm_frac
                                      : framework->kernels.rowwise_long_gemm_frac;
}

/* One product on the framework's kernel. */
static double product_s(const CostShape *shape, const CostGemm *gemm)
{
    CostGemm product = *gemm;
    product.rowwise =
        shape->spec->training.precision == SPEC_PRECISION_FP8_ROWWISE && gemm->dtype == SPEC_FP8;
    product.blockwise = shape->spec->training.precision == SPEC_PRECISION_FP8_BLOCKWISE &&
                        gemm->dtype == SPEC_FP8 && !shape->accelerator.generation.foreign_kernels &&
                        !shape->accelerator.generation.two_sm_tiles;
    return (1 + shape->spec->execution.framework.learned.excess_frac[SPEC_LEARNED_PRODUCTS]) *
           cost_gemm_s(&shape->accelerator, &product) / gemm_speed(shape, &product);
}

/* One product, or one for each part of the linear's output, each as long as its own sums. */
double cost_products_s(const CostShape *shape, const CostOp *op)
{
    if (op->parts[0] <= 0) {
        return product_s(shape, &op->u.gemm);
    }
    double seconds = 0;
    for (int i = 0; i < COST_MAX_PARTS && op->parts[i] > 0; i++) {
        CostGemm part = op->u.gemm;
        double *const out[] = {&part.n, &part.k, &part.m}; /* forward, backward-input, backward-weight */
        *out[part.layout] = op->parts[i];
        seconds += product_s(shape, &part);
    }
    return seconds;
}

/* A chain of kernels shares the bytes evenly, unless warps wait for each load of a row, blocks for a walk or between the
 * rows of a norm. Elements addressed one by one go at the pace of instructions (sm_elements_per_s, addressed_frac). */
static double moves_s(const CostShape *shape, const CostOp *op)
{
    const SpecAccelerator *accelerator = &shape->accelerator;
    const double streams_s =
        fmax(op->u.memory.norm.blocks != COST_NORM_STREAMED
                 ? cost_norm_rows_s(accelerator, &op->u.memory.norm, cost_moved_bytes(op))
                 : op->kernels * cost_memory_bound_s(accelerator, op->u.memory.kernel,
                                                     cost_moved_bytes(op) / op->kernels),
             fmax(cost_row_warps_s(accelerator, op->u.memory.rows, op->u.memory.row_elements),
                  cost_walk_s(accelerator, op->u.memory.walks, op->u.memory.walk_loads)));
    const double elements_per_s =
        accelerator->sm_count * (op->u.memory.sm_rate > 0
                                     ? op->u.memory.sm_rate
                                     : shape->spec->execution.framework.kernels.sm_elements_per_s *
                                           cost_memory_bound_model(accelerator)->addressed_frac);
    if (op->u.memory.addressed <= 0 || elements_per_s <= 0 || !cost_has_sms(accelerator)) {
        return streams_s;
    }
    const double empty_s = op->kernels * cost_memory_bound_s(accelerator, op->u.memory.kernel, 0);
    return fmax(streams_s, empty_s + op->u.memory.addressed / elements_per_s);
}

/* What an interface adds to FlashAttention's kernels; cuDNN's are the same behind all. */
static double attention_frac(const CostShape *shape, const CostOp *op)
{
    const SpecRecipeKernels *kernels = &shape->spec->execution.framework.kernels;
    if (op->u.attention.kernel != SPEC_ATTENTION_CUDNN)
        return kernels->attention_speed_frac;
    const bool early = kernels->cudnn < SPEC_CUDNN_SINCE_9_17;
    return early ? cost_attention_early_frac(&shape->accelerator, &op->u.attention) : 1;
}

static double once_s(const CostShape *shape, const CostOp *op)
{
    const SpecAccelerator *accelerator = &shape->accelerator;
    switch (op->kind) {
    case COST_OP_GEMM:
        return shape->slowest * cost_products_s(shape, op);
    case COST_OP_ATTENTION:
        return shape->slowest * cost_attention_s(accelerator, &op->u.attention) / attention_frac(shape, op);
    case COST_OP_MEMORY:
        return moves_s(shape, op) * (op->u.memory.beside ? COST_MEMORY_SM_FRAC : 1);
    default:
        return cost_collective_s(&shape->spec->cluster, &op->u.collective.collective);
    }
}

double cost_op_s(const CostShape *shape, const CostOp *op)
{
    return (op->repeat > 0 ? op->repeat : 1) * cost_learned_frac(shape->spec, op) * once_s(shape, op);
}
