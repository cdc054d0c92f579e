/* costmodel/ops_moe_bias.c - experts with biases, whose activation clamps its input: what PyTorch runs kernel by kernel.
 *
 * The first product adds its own bias. Both halves of its output are clamped apart, as views, and put together again
 * for the fused activation, which weighs rows by their probability. The second product's bias is weighted and added in
 * a loop over the experts, whose pieces are put together again. Probabilities have the type of the activations (the
 * recipes leave the router's type to the model). Not here: the sums of gradients of the first bias, which run inside
 * the weight gradient's product.
 *
 * Kernels on views and broadcasts address each element by itself: CostOp.u.memory.addressed. The rest streams.
 * Source: [MegatronMoE] experts.py (bias_act_func, _apply_bias), fused_bias_geglu.py; [PyTorchEager] clamp_backward,
 * Loops.cuh
 */
#include "costmodel/ops.h"

/* Bytes of an element of the intermediate size, of `e` bytes and a boolean of 1:
 *   forward   two clamps 2 e each; streams: both halves together 4 e, activation 3 e
 *   backward  comparisons e + 1 (the gate's upper, the other half's lower and upper), two selections 1 + 2 e;
 *             streams: activation 5 e, of the probabilities 3 e, both comparisons 3, halves of the gradient together 4 e
 * The offset of the activation is a tensor made on the host: its copy waits for the GPU. Fills of the zeros that
 * selections take are launches only. */
void cost_push_clamped_activation(const CostShape *shape, CostOps *ops, CostPass pass, double elements)
{
    const CostModule module = COST_MODULE_MOE_ACTIVATION;
    const double e = shape->element_bytes;
    if (pass == COST_FORWARD) {
        cost_push_by_element(ops, "clamp", module, elements, 2, cost_both_ways(2 * e, 2 * e), 2);
        ops->op[ops->count - 1].idle_s = shape->spec->execution.framework.experts.host_sync_s;
        cost_push_memory(ops, "activation", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(4 * e, 3 * e), 2);
    } else {
        cost_push_by_element(ops, "clamp", module, elements, 5, cost_both_ways(5 * e + 2, 2 * e + 3), 5);
        cost_push_memory(ops, "activation", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(8 * e + 2, 4 * e + 1), 6);
    }
}

/* Megatron-Core refuses the fused add of bias, dropout and residual where experts have biases, so that of the attention's
 * output is added by itself; the experts' is in already. The gradient's sum is counted with the residual's. */
void cost_push_unfused_bias(const CostShape *shape, CostOps *ops, double elements)
{
    const SpecExecution *execution = &shape->spec->execution;
    const SpecModel *model = &shape->spec->model;
    if (model->moe.experts > 0 && model->biases == SPEC_BIASES_ALL &&
        execution->framework.kernels.fused_dropout_add && !execution->compiled) {
        cost_push_by_element(ops, "bias", COST_MODULE_RESIDUAL, elements, 1,
                             cost_both_ways(shape->element_bytes, shape->element_bytes), 1);
    }
}

/* Bytes of an element of the hidden size:
 *   forward   bias x probability e; streams: sum 3 e, together 2 e
 *   backward  gradient x probability 2 e, gradient x bias 2 e; streams: their sums over rows and columns 2 e, together 2 e
 * each kernel for every expert, putting together once; in the backward each bias gradient is added to its sum too. */
void cost_push_output_bias(const CostShape *shape, CostOps *ops, CostPass pass, double elements,
                           double experts)
{
    const CostModule module = COST_MODULE_MOE;
    const double e = shape->element_bytes;
    const int each = (int)experts;
    if (pass == COST_FORWARD) {
        cost_push_by_element(ops, "weigh bias", module, elements, 1, (CostMoved){.written = e}, each);
        cost_push_memory(ops, "expert bias", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(3 * e, 2 * e), each + 1);
    } else if (pass == COST_BACKWARD_INPUT) {
        cost_push_by_element(ops, "weigh bias", module, elements, 2, cost_both_ways(2 * e, 2 * e), 2 * each);
        cost_push_memory(ops, "expert bias", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(3 * e, e), 3 * each + 1);
    }
}
