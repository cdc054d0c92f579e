/* costmodel/ops_push.c - ops and kept tensors, one at a time onto a list. */
#include "costmodel/ops.h"

CostOp *cost_ops_push(CostOps *ops, const char *name, CostOpKind kind, CostModule module)
{
    g_assert(ops->count < COST_MAX_OPS);
    CostOp *op = &ops->op[ops->count++];
    *op = (CostOp){.name = name, .kind = kind, .module = module, .kernels = 1};
    return op;
}

void cost_keep(CostOps *ops, CostTensor tensor)
{
    if (tensor.bytes > 0) {
        g_assert(ops->kept_count < COST_MAX_TENSORS);
        ops->kept[ops->kept_count++] = tensor;
    }
}

CostOp *cost_push_gemm(CostOps *ops, const char *name, CostModule module, CostPass pass, double m, double n,
                       double k, double groups, SpecDtype dtype)
{
    CostOp *op = cost_ops_push(ops, name, COST_OP_GEMM, module);
    const CostLayout layout[COST_PASS_COUNT] = {COST_LAYOUT_FORWARD, COST_LAYOUT_BACKWARD_INPUT,
                                                COST_LAYOUT_BACKWARD_WEIGHT};
    op->u.gemm = (CostGemm){.m = m, .n = n, .k = k, .groups = groups, .dtype = dtype, .layout = layout[pass]};
    op->model_flops = op->full_flops = 2 * m * n * k * groups;
    return op;
}

void cost_push_memory(CostOps *ops, const char *name, CostModule module, CostMemoryKernel move,
                      double elements, CostMoved each, int kernels)
{
    CostOp *op = cost_ops_push(ops, name, COST_OP_MEMORY, module);
    op->u.memory.kernel = move;
    op->u.memory.elements = elements;
    op->u.memory.each = each;
    op->kernels = kernels;
}

void cost_push_by_element(CostOps *ops, const char *name, CostModule module, double elements, double times,
                          CostMoved each, int kernels)
{
    cost_push_memory(ops, name, module, COST_MEMORY_ELEMENTWISE, elements, each, kernels);
    ops->op[ops->count - 1].u.memory.addressed = times * elements;
}

void cost_push_collective(CostOps *ops, const char *name, CostModule module, CostCollectiveOp op,
                          double bytes, CostGroup group, CostComm comm, int hidden_under)
{
    if (group.ranks < 2) {
        return;
    }
    CostOp *added = cost_ops_push(ops, name, COST_OP_COLLECTIVE, module);
    added->u.collective.collective = (CostCollective){.op = op, .bytes = bytes, .group = group};
    added->u.collective.comm = comm;
    added->u.collective.hidden_under = hidden_under;
}
