/* tests/unit/tensor_fixture.h - a layer on some tensor ranks, and what its ops move. */
#ifndef ORR_TESTS_TENSOR_FIXTURE_H
#define ORR_TESTS_TENSOR_FIXTURE_H

#include <string.h>

#include "costmodel/ops.h"

static inline Spec make_spec(int tensor, bool sequence_parallel, SpecAttention attention)
{
    Spec spec = {0};
    spec.model = fixture_llama(128256, true);
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = 8;
    spec.cluster.nodes = 1;
    spec.training = (SpecTraining){.sequence_length = 4096,
                                   .global_batch = 8,
                                   .micro_batch = 2,
                                   .precision = SPEC_PRECISION_BF16,
                                   .gradient_dtype = SPEC_FP32,
                                   .gradient_reduce_dtype = SPEC_FP32,
                                   .predicted_frac = 1};
    spec.parallel = fixture_degrees(tensor, sequence_parallel);
    spec.execution.attention = attention;
    return spec;
}

static inline double move_bytes(const CostOps *ops, const char *name)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        sum += op->kind == COST_OP_MEMORY && strcmp(op->name, name) == 0 ? cost_moved_bytes(op) : 0;
    }
    return sum;
}

static inline double gathered(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        sum += op->kind == COST_OP_COLLECTIVE && op->u.collective.collective.op == COST_ALL_GATHER
                   ? op->u.collective.collective.bytes
                   : 0;
    }
    return sum;
}

#endif
