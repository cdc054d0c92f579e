/* costmodel/ops_mlp.c - the dense MLP of a layer. */
#include "costmodel/ops_tiles.h"

/* GELU operation by operation, elements read + written. By erf: x / sqrt 2, erf, 1 +, x 0.5 (1 + 1), product (2 + 1);
 * backward: two products (2 + 1), erf' as square, negation, exponential and factor (1 + 1) and a product (2 + 1), quotient
 * and half (1 + 1), sum (2 + 1). By tanh: cube, factor, sum (2 + 1), factor, tanh, 1 +, half, product (2 + 1); backward: two
 * products, tanh' (2 + 1), two factors, cube' as square, factor and product (2 + 1), half, two sums (2 + 1). What autograd
 * keeps: inputs of erf and of the product; of cube and product and the tanh.
 * Source: [NvidiaBert] modeling.py, gelu; [Transformers] NewGELUActivation; [PyTorchAutograd] */
static const struct {
    int kernels, read, written, backward_kernels, backward_read, backward_written, kept;
} gelu_chains[] = {[SPEC_GELU_KERNEL] = {1, 1, 1, 1, 2, 1, 1},
                   [SPEC_GELU_ERF] = {5, 6, 5, 10, 14, 10, 3},
                   [SPEC_GELU_TANH] = {8, 10, 8, 11, 17, 11, 4}};

/* What GELU runs as in a layer without a gate. */
static SpecGelu gelu_that_runs(const Spec *spec)
{
    const SpecGelu gelu = spec->execution.framework.kernels.gelu;
    const bool one = spec->model.gated_mlp || spec->execution.compiled || gelu == SPEC_GELU_FUSED_BIAS;
    return one ? SPEC_GELU_KERNEL : gelu;
}

/* Gate and up are halves of one product's rows: views. The kernels that read one, of `e` bytes an element, address each
 * by itself: the activation and the product forward, the gradients of both backward; the rest of `all` streams.
 * Source: [NanotronCode] models/llama.py GLUActivation, [PyTorchByElement] */
static void push_gate_views(CostOps *ops, CostModule module, double elements, double e, bool backward,
                            CostMoved all)
{
    const CostMoved views = backward ? cost_both_ways(4 * e, 2 * e) : all;
    if (backward) {
        cost_push_memory(ops, "gate gradients", module, COST_MEMORY_ELEMENTWISE, elements,
                         cost_both_ways(all.read - views.read, all.written - views.written), 1);
    }
    cost_push_by_element(ops, "activation", module, elements, 2, views, 2);
}

double cost_activation_input_bytes(const CostShape *shape)
{
    return shape->spec->training.activation_input_8bit ? 1 : shape->element_bytes;
}

/* To 8 bits for the backward pass, and back ahead of it.
 * Source: [MegatronMoE] fused_bias_swiglu.py, SwiGLUFunction (fp8_input_store) */
static void push_input_cast(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                            double elements)
{
    const double e = shape->element_bytes;
    const bool forward = pass == COST_FORWARD;
    if (shape->spec->training.activation_input_8bit && pass != COST_BACKWARD_WEIGHT)
        cost_push_memory(ops, "activation input cast", module, COST_MEMORY_ELEMENTWISE, 2 * elements,
                         cost_both_ways(forward ? e : 1, forward ? 1 : e), 1);
}

/* Bytes an intermediate element costs in the activation kernel: read the linear's output (two halves when
 * gated), write the product. Eager code runs bias, activation and product apart. */
void cost_push_activation(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                          double elements)
{
    const SpecModel *model = &shape->spec->model;
    const SpecExecution *execution = &shape->spec->execution;
    const bool fused =
        execution->compiled || (model->gated_mlp ? execution->framework.kernels.fused_swiglu
                                                 : execution->framework.kernels.gelu == SPEC_GELU_FUSED_BIAS);
    const double e = shape->element_bytes;
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool gated = model->gated_mlp, backward = pass != COST_FORWARD;
    const double inputs = gated ? 2 : 1;
    double read = inputs + (backward ? 1 : 0), written = backward ? inputs : 1; /* elements */
    int kernels = 1;
    if (!fused &&
        (model->gated_mlp ||
         execution->framework.kernels.bias !=
             SPEC_BIAS_IN_PRODUCT)) { /* gated backward: two products of 2 + 1, the activation's 2 + 1, and copies of both halves */
        const double copies = gated && backward ? 2 * execution->framework.kernels.gate_backward_copies : 0;
        read += (gated && backward ? 3 : 1) + copies;
        written += 1 + copies;
        kernels = gated && backward ? 3 : 2;
    }
    if (gated && !fused && execution->framework.kernels.gate_backward_copies > 0) {
        push_gate_views(ops, module, elements, e, backward, cost_both_ways(read * e, written * e));
        return;
    }
    const SpecGelu gelu = gelu_that_runs(shape->spec);
    if (gelu != SPEC_GELU_KERNEL) { /* the chain in its place; backward the bias has no kernel but its sum */
        const bool bias = !backward && kernels > 1;
        read = (backward ? gelu_chains[gelu].backward_read : gelu_chains[gelu].read) + (bias ? 1 : 0);
        written =
            (backward ? gelu_chains[gelu].backward_written : gelu_chains[gelu].written) + (bias ? 1 : 0);
        kernels =
            (backward ? gelu_chains[gelu].backward_kernels : gelu_chains[gelu].kernels) + (bias ? 1 : 0);
    }
    push_input_cast(shape, ops, pass, module, elements);
    cost_push_memory(ops, "activation", module, COST_MEMORY_ELEMENTWISE, elements,
                     cost_both_ways(read * e, written * e), kernels);
}

/* Transformer Engine's operation fuser: the norm and the activation write what the product behind them reads, in 8 bits, and
 * the activation's gradient what the one before it reads.
 * Source: [TransformerEngine] pytorch/ops/basic/rmsnorm.py, swiglu.py (next_op_input_quantizer) */
static bool casts_in_kernels(const CostShape *shape)
{
    const SpecPrecision precision = shape->spec->training.precision;
    return shape->spec->training.adapter.fused && shape->linear_dtype == SPEC_FP8 &&
           (precision == SPEC_PRECISION_FP8 || precision == SPEC_PRECISION_MXFP8);
}

/* Sum of output gradients over tokens, for bias gradients. */
static void push_bias_grad(const CostShape *shape, CostOps *ops, double elements)
{
    const SpecBiases biases = shape->spec->model.biases;
    if (biases == SPEC_BIASES_ALL || biases == SPEC_BIASES_MLP) {
        cost_push_memory(ops, "bias grad", COST_MODULE_MLP_LINEAR, COST_MEMORY_NORM, elements,
                         (CostMoved){.read = shape->element_bytes}, 1);
    }
}

/* Of the activation and its input, whose two parts wait to be summed where gate and up are linear layers of their own. */
double cost_gradient_working_bytes(const CostShape *shape, double rows, double width)
{
    const SpecModel *model = &shape->spec->model;
    const bool parts = model->gated_mlp && cost_separate_projections(shape);
    return shape->element_bytes * rows *
           ((model->gated_mlp ? 3 : 2) * width + (parts ? 2 : 1) * shape->hidden);
}

/* The ops of one MLP in its forward list. */
typedef struct MlpOps {
    int input, in, activation, out; /* `input` writes what `in` reads */
} MlpOps;

static void keep_tensors(const CostShape *shape, const MlpOps *at, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const SpecExecution *execution = &shape->spec->execution;
    const double x = cost_kept_element_bytes(shape);
    const double elements = shape->tokens * model->ffn_hidden / shape->tensor,
                 wide = shape->element_bytes * elements;
    const double copies = cost_input_copies(shape, model->gated_mlp ? 2 : 1);
    const bool gated = model->gated_mlp,
               eager = !execution->framework.kernels.fused_swiglu && !execution->compiled;
    cost_keep(ops, (CostTensor){"mlp input", copies * cost_kept_input_bytes(shape, x), at->input,
                                .kept_by = at->in, .weight_grad = true});
    const double input = cost_activation_input_bytes(shape) * elements;
    cost_keep(ops, (CostTensor){"activation input", input * gelu_chains[gelu_that_runs(shape->spec)].kept,
                                at->in, .kept_by = at->activation});
    cost_keep(ops,
              (CostTensor){"gate input", gated ? input : 0, at->in, .product = 1, .kept_by = at->activation});
    cost_keep(ops, (CostTensor){"gate activation", gated && eager ? wide : 0, at->activation,
                                .kept_by = at->activation});
    cost_keep(ops, (CostTensor){"mlp output input", x * elements, at->activation, .kept_by = at->out,
                                .weight_grad = true});
}

static void push_mlp(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double f = model->ffn_hidden / shape->tensor, width = model->gated_mlp ? 2 * f : f;
    const CostModule linear = COST_MODULE_MLP_LINEAR;
    const bool casts = casts_in_kernels(shape);
    if (!casts)
        cost_push_cast(shape, ops, linear, pass, shape->part_tokens * shape->hidden, shape->tokens * width,
                       COST_GATHERED_INPUT);
    cost_push_autocast_input(shape, ops, pass, linear, model->gated_mlp ? 2 : 1);
    const int in = cost_push_linear(shape, ops, "mlp in", linear, pass, shape->tokens, shape->hidden, width,
                                    shape->linear_dtype);
    ops->op[in].temp_bytes =
        pass == COST_BACKWARD_INPUT ? cost_gradient_working_bytes(shape, shape->tokens, f) : 0;
    if (model->gated_mlp) {
        cost_split_linear(shape, ops, pass, in, (const double[]){f, f, 0});
    }
    cost_push_tensor_in(shape, ops, pass, linear, in);
    if (pass == COST_BACKWARD_WEIGHT) {
        push_bias_grad(shape, ops, shape->tokens * width);
    }
    cost_push_activation(shape, ops, pass, COST_MODULE_MLP_ACTIVATION, shape->tokens * f);
    const int activation = ops->count - 1;
    if (casts && pass != COST_BACKWARD_WEIGHT)
        ops->op[activation].u.memory.each.written *= cost_kept_element_bytes(shape) / shape->element_bytes;
    if (!casts || pass != COST_FORWARD)
        cost_push_cast(shape, ops, linear, pass, shape->tokens * f, shape->part_tokens * shape->hidden,
                       COST_GATHERED_OUTPUT_GRAD);
    const int out = cost_push_linear(shape, ops, "mlp out", linear, pass, shape->tokens, f, shape->hidden,
                                     shape->linear_dtype);
    cost_push_tensor_out(shape, ops, pass, linear, out);
    if (pass == COST_FORWARD) {
        keep_tensors(shape, &(MlpOps){input, in, activation, out}, ops);
    }
}

void cost_ops_mlp(const CostShape *shape, CostPass pass, int input, CostOps *ops)
{
    if (shape->spec->training.mlp_tiles > 1)
        cost_tile_mlp(shape, pass, input, push_mlp, ops);
    else
        push_mlp(shape, pass, input, ops);
}
