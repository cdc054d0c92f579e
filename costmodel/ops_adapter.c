/* costmodel/ops_adapter.c - products of low-rank adapters, and the kernels around them. See adapter.h. */
#include <string.h>

#include "costmodel/adapter.h"
#include "costmodel/adapter_internal.h"

/* GPTQ's words of eight weights, by PyTorch's kernels: shifted apart into int32 (1/2+4, by element), to int8 (4+1, by
 * element), masked in place (1+1), zeros subtracted (1+1, by element), scaled (1+2, by element); four kernels more for the
 * zeros. The backward reads what the product read.   Source: [AutoGPTQ] nn_modules/qlinear/qlinear_cuda_old.py */
static void push_int4(CostOps *ops, CostModule module, CostPass pass, double weights, double element_bytes)
{
    if (pass != COST_FORWARD)
        return;
    cost_push_memory(ops, "mask weight", module, COST_MEMORY_CAST, weights, cost_both_ways(1, 1), 1);
    cost_push_by_element(ops, "widen weight", module, weights, 4, cost_both_ways(6.5, 6 + element_bytes), 8);
    const int last = ops->count - 1;
    ops->op[last].temp_bytes = weights * (4 + 1 - element_bytes);
    cost_keep(ops, (CostTensor){"widened weight", element_bytes * weights, last, .kept_by = last});
}

void cost_push_widening(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                        double weights)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const bool as_stored = adapter->base_dtype == SPEC_BASE_FP8 && shape->linear_dtype == SPEC_FP8;
    if (!adapter->given || adapter->base_dtype == SPEC_BASE_BF16 || as_stored ||
        pass == COST_BACKWARD_WEIGHT || module == COST_MODULE_HEAD || module == COST_MODULE_ROUTER)
        return;
    if (adapter->base_dtype == SPEC_BASE_INT4) {
        push_int4(ops, module, pass, weights, shape->element_bytes);
        return;
    }
    const bool scales = adapter->base_dtype == SPEC_BASE_NF4 && adapter->double_quantised;
    cost_push_memory(ops, "widen weight", module, COST_MEMORY_CAST, weights,
                     cost_both_ways(cost_base_bytes(adapter), shape->element_bytes), scales ? 2 : 1);
    ops->op[ops->count - 1].temp_bytes = weights * shape->element_bytes;
}

/* The product beside which adapters stand: as many multiplications, of as many rows each. */
typedef struct Beside {
    const CostOp *product; /* of experts; NULL: one multiplication */
    double rows, even;     /* rows, and how many would come were they spread evenly */
    double groups;
} Beside;

/* The products of the adapters: A of `in` inputs, or B of their outputs. `rows` are the linear's outputs of each. */
static void push_product(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                         CostPass pass, const Beside *beside, double in, const double *rows, int count)
{
    const double tokens = beside->rows, groups = beside->groups;
    double out = 0, parts[COST_MAX_PARTS] = {0};
    for (int i = 0; i < count; i++) {
        parts[i] = rows[i];
        out += rows[i];
    }
    const SpecDtype dtype = shape->activation_dtype;
    int gemm = ops->count;
    if (pass == COST_FORWARD)
        cost_push_gemm(ops, name, module, pass, tokens, out, in, groups, dtype);
    else if (pass == COST_BACKWARD_INPUT)
        cost_push_gemm(ops, name, module, pass, tokens, in, out, groups, dtype);
    else
        gemm = cost_push_weight_gradient(shape, ops, name, module, (const double[]){out, in, tokens}, groups,
                                         dtype);
    CostOp *op = &ops->op[gemm];
    if (beside->product != NULL) {
        op->full_flops = op->model_flops = 2 * beside->even * in * out * groups;
        op->u.gemm.grouped = groups > 1 && beside->product->u.gemm.grouped;
        op->u.gemm.row_deviation = groups > 1 ? beside->product->u.gemm.row_deviation : 0;
        op->host_kernels = op->u.gemm.grouped ? (int)groups - 1 : 0;
    }
    if (count > 1) {
        memcpy(op->parts, parts, sizeof parts);
        op->kernels = count;
    }
}

/* Element-wise kernels around the products: dropout before A, then scaling and adding, which a compiler makes one kernel and
 * a fused product does itself. */
static void push_around(const CostShape *shape, CostOps *ops, CostModule module, bool backward, int count,
                        double in, double out)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const double e = shape->element_bytes;
    const bool compiled = shape->spec->execution.compiled == 1;
    if (adapter->dropout_frac > 0)
        cost_push_memory(ops, "adapter dropout", module, COST_MEMORY_ELEMENTWISE, count * in,
                         backward ? cost_both_ways(e + 1, e) : cost_both_ways(e, e + 1), count);
    if (adapter->fused)
        return;
    if (!compiled)
        cost_push_memory(ops, "adapter scale", module, COST_MEMORY_ELEMENTWISE, out, cost_both_ways(e, e),
                         count);
    const double added = backward ? count * in : out;
    cost_push_memory(ops, "adapter add", module, COST_MEMORY_ELEMENTWISE, added, cost_both_ways(2 * e, e),
                     count);
}

/* The columns between A and B, where each tensor rank has a part of the sum. */
static void push_sum(const CostShape *shape, CostOps *ops, CostModule module, double elements)
{
    cost_push_collective(ops, "adapter reduce", module, COST_ALL_REDUCE, elements * shape->element_bytes,
                         shape->tensor_group, COST_COMM_TENSOR, -1);
}

/* All of one linear layer in one pass. `tokens` are all rows, of all groups. */
static void push_adapters(const CostShape *shape, CostOps *ops, const CostLinear *linear, CostModule module,
                          CostPass pass, const Beside *beside, double in, double tensor)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const CostAdapters on = cost_adapters_of(shape->spec, linear);
    const int first = ops->count;
    if (on.count == 0)
        return;
    double ranks[COST_MAX_PARTS] = {0}, outs[COST_MAX_PARTS] = {0}, all_out = 0;
    for (int i = 0; i < on.count; i++) {
        ranks[i] = adapter->rank;
        outs[i] = linear->cut == COST_CUT_OUTPUTS ? on.out[i] / tensor : on.out[i];
        all_out += outs[i];
    }
    const double tokens = beside->rows * beside->groups, columns = on.count * (double)adapter->rank;
    const bool backward = pass == COST_BACKWARD_INPUT;
    if (pass == COST_FORWARD) {
        push_product(shape, ops, "adapter a", module, pass, beside, in, ranks, on.count);
        if (linear->cut == COST_CUT_INPUTS && tensor > 1)
            push_sum(shape, ops, module, tokens * columns);
        push_product(shape, ops, "adapter b", module, pass, beside, adapter->rank, outs, on.count);
    } else {
        push_product(shape, ops, "adapter b", module, pass, beside, adapter->rank, outs, on.count);
        if (backward && linear->cut == COST_CUT_OUTPUTS && tensor > 1)
            push_sum(shape, ops, module, tokens * columns);
        push_product(shape, ops, "adapter a", module, pass, beside, in, ranks, on.count);
    }
    if (pass != COST_BACKWARD_WEIGHT)
        push_around(shape, ops, module, backward, on.count, tokens * in, tokens * all_out);
    for (int i = first; i < ops->count; i++)
        ops->op[i].adapter = true;
    if (pass != COST_FORWARD)
        return;
    /* a shared expert reads what the router keeps, which a frozen router does not */
    const bool own_input = linear->mlp == COST_MLP_SHARED && linear->cut == COST_CUT_OUTPUTS;
    const double e = shape->element_bytes,
                 copies = (adapter->dropout_frac > 0 ? on.count - 1 : 0) + (own_input ? 1 : 0),
                 masks = adapter->dropout_frac > 0 ? on.count : 0;
    cost_keep(ops, (CostTensor){"adapter columns", tokens * columns * e, first, .kept_by = first,
                                .weight_grad = true});
    cost_keep(ops, (CostTensor){"adapter inputs", tokens * in * (copies * e + masks), first, .kept_by = first,
                                .weight_grad = true});
}

void cost_push_adapter(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                       CostPass pass, double tokens, double in)
{
    const CostLinear *linear = shape->spec->training.adapter.given ? cost_linear_named(name) : NULL;
    if (linear != NULL)
        push_adapters(shape, ops, linear, module, pass,
                      &(Beside){.rows = tokens, .even = tokens, .groups = 1}, in, shape->tensor);
}

void cost_push_expert_adapter(const CostShape *shape, CostOps *ops, int product, CostPass pass, double even,
                              double in)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const CostOp beside = ops->op[product];
    const CostLinear *linear = adapter->given ? cost_linear_named(beside.name) : NULL;
    if (linear == NULL)
        return;
    const double rows = pass == COST_BACKWARD_WEIGHT ? beside.u.gemm.k : beside.u.gemm.m,
                 groups = beside.u.gemm.groups;
    Beside at = {&beside, rows, even, groups};
    if (adapter->share_expert_adapters)
        at = (Beside){&beside, rows * groups, even * groups, 1};
    const int first = ops->count;
    push_adapters(shape, ops, linear, COST_MODULE_MOE, pass, &at, in, 1);
    for (int i = first; i < ops->count; i++)
        if (ops->op[i].kind == COST_OP_MEMORY && at.groups > 1 && beside.u.gemm.grouped)
            ops->op[i].kernels *= (int)at.groups; /* expert by expert, as the products */
}
