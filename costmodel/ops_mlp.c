/* costmodel/ops_mlp.c - the MLP of a layer, dense or with routed experts. */
#include "costmodel/ops.h"

/* Bytes an intermediate element costs in the activation kernel: read the linear's output (two halves when
 * gated), write the product. Eager code runs bias, activation and product apart. */
static void push_activation(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                            double elements)
{
    const SpecModel *model = &shape->spec->model;
    const SpecExecution *execution = &shape->spec->execution;
    const bool fused = execution->compiled || (model->gated_mlp ? execution->framework.fused_swiglu
                                                                : execution->framework.fused_bias_gelu);
    const double e = shape->element_bytes;
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    double forward = model->gated_mlp ? 3 * e : 2 * e, backward = model->gated_mlp ? 5 * e : 3 * e;
    int kernels = 1;
    if (!fused) {
        forward += 2 * e;
        backward += (model->gated_mlp ? 3 : 2) * e;
        kernels = 2;
    }
    cost_push_move(ops, "activation", module, COST_MOVE_ELEMENTWISE,
                   elements * (pass == COST_FORWARD ? forward : backward), kernels);
}

/* Sum of output gradients over tokens, for bias gradients. */
static void push_bias_grad(const CostShape *shape, CostOps *ops, double elements)
{
    const SpecBiases biases = shape->spec->model.biases;
    if (biases == SPEC_BIASES_ALL || biases == SPEC_BIASES_MLP) {
        cost_push_move(ops, "bias grad", COST_MODULE_MLP_LINEAR, COST_MOVE_NORM,
                       elements * shape->element_bytes, 1);
    }
}

void cost_ops_mlp(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double f = model->ffn_hidden / shape->tensor, width = model->gated_mlp ? 2 * f : f;
    const CostModule linear = COST_MODULE_MLP_LINEAR;
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_cast(shape, ops, linear, shape->part_tokens * shape->hidden);
    }
    const int in = cost_push_linear(shape, ops, "mlp in", linear, pass, shape->tokens, shape->hidden, width,
                                    shape->linear_dtype);
    cost_push_tensor_in(shape, ops, pass, linear, in);
    if (pass == COST_BACKWARD_WEIGHT) {
        push_bias_grad(shape, ops, shape->tokens * width);
    }
    push_activation(shape, ops, pass, COST_MODULE_MLP_ACTIVATION, shape->tokens * f);
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_cast(shape, ops, linear, shape->tokens * f);
    }
    const int out = cost_push_linear(shape, ops, "mlp out", linear, pass, shape->tokens, f, shape->hidden,
                                     shape->linear_dtype);
    cost_push_tensor_out(shape, ops, pass, linear, out);
}

static void push_shared_experts(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    if (model->moe.shared_experts == 0) {
        return;
    }
    const double f = model->moe.shared_expert_ffn_hidden / shape->tensor;
    cost_push_linear(shape, ops, "shared expert in", COST_MODULE_MOE, pass, shape->tokens, shape->hidden,
                     model->gated_mlp ? 2 * f : f, shape->linear_dtype);
    push_activation(shape, ops, pass, COST_MODULE_MOE_ACTIVATION, shape->tokens * f);
    cost_push_linear(shape, ops, "shared expert out", COST_MODULE_MOE, pass, shape->tokens, f, shape->hidden,
                     shape->linear_dtype);
}

/* Rows that the routed experts of this rank work on, spread evenly: every expert-parallel rank sends top_k
 * copies of its own tokens and receives as many. [Lepikhin2020] */
static double routed_rows(const CostShape *shape)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    const double own = shape->tokens / shape->tensor; /* tokens whose routing this rank owns */
    const double factor = moe->capacity_factor > 0 ? moe->capacity_factor : 1;
    return own * moe->top_k * factor * shape->spec->parallel.expert_tensor;
}

static void push_expert_gemm(const CostShape *shape, CostOps *ops, const char *name, CostPass pass, double in,
                             double out)
{
    const SpecMoe *moe = &shape->spec->model.moe;
    const double experts = (double)moe->experts / shape->spec->parallel.expert;
    const double rows = routed_rows(shape) / experts;
    if (pass == COST_BACKWARD_WEIGHT) {
        cost_push_weight_gradient(shape, ops, name, COST_MODULE_MOE, (const double[]){out, in, rows}, experts,
                                  shape->linear_dtype);
        return;
    }
    cost_push_gemm(ops, name, COST_MODULE_MOE, pass, rows, pass == COST_FORWARD ? out : in,
                   pass == COST_FORWARD ? in : out, experts, shape->linear_dtype);
}

/* Dispatch or combine: every rank sends its routed rows to the ranks of their experts. */
static void push_expert_exchange(const CostShape *shape, CostOps *ops, const char *name, CostPass pass)
{
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const double rows = routed_rows(shape) / shape->spec->parallel.expert_tensor;
    cost_push_collective(ops, name, COST_MODULE_MOE, COST_ALL_TO_ALL,
                         rows * shape->hidden * shape->element_bytes, shape->expert_group, COST_COMM_EXPERT,
                         -1);
}

void cost_ops_moe(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const SpecMoe *moe = &model->moe;
    const double own = shape->tokens / shape->tensor, rows = routed_rows(shape), e = shape->element_bytes;
    const double f = (double)moe->expert_ffn_hidden / shape->spec->parallel.expert_tensor;
    const double row_bytes = 2 * rows * shape->hidden * e;
    cost_push_linear(shape, ops, "router", COST_MODULE_MOE, pass, own, shape->hidden, moe->experts,
                     shape->activation_dtype);
    push_shared_experts(shape, pass, ops);
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_move(ops, "routing", COST_MODULE_MOE, COST_MOVE_SOFTMAX, own * moe->experts * 16, 6);
        cost_push_move(ops, "permute", COST_MODULE_MOE, COST_MOVE_PERMUTE, row_bytes, 2);
    }
    push_expert_exchange(shape, ops, "dispatch", pass);
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_cast(shape, ops, COST_MODULE_MOE, rows * shape->hidden);
    }
    push_expert_gemm(shape, ops, "experts in", pass, shape->hidden, model->gated_mlp ? 2 * f : f);
    push_activation(shape, ops, pass, COST_MODULE_MOE_ACTIVATION, rows * f);
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_cast(shape, ops, COST_MODULE_MOE, rows * f);
    }
    push_expert_gemm(shape, ops, "experts out", pass, f, shape->hidden);
    push_expert_exchange(shape, ops, "combine", pass);
    if (pass != COST_BACKWARD_WEIGHT) {
        cost_push_move(ops, "unpermute", COST_MODULE_MOE, COST_MOVE_PERMUTE, row_bytes, 2);
    }
}
