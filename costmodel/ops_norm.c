/* costmodel/ops_norm.c - the residual stream of a layer: norms, residual additions, and what torch.autocast casts where
 * the stream and the weights are fp32. See ops.h. */
#include "costmodel/ops.h"

/* A chain of kernels, bytes an element: those that stream, and those that address each element by itself because they
 * broadcast a column or a row or widen what they read. */
typedef struct NormChain {
    CostMoved streamed;
    int streams;
    CostMoved addressed;
    int by_element;
} NormChain;

/* Bytes, read + written, of PyTorch's RMSNorm. Forward: to fp32 (2+4, by element), square (4+4), mean (4), scale (4+4, by
 * element), back (4+2), weight (2+2, by element). Backward: weight (2+2, by element; 4+2 and 2 for its gradient), to fp32
 * (2+4, by element), gradients of the scaling (4+4, by element; 8+4 and 4 for the root), of mean (0+4, by element) and square
 * (copy 4+4, double 4+4, product 8+4), their sum (8+4), back (4+2).
 * Source: [PyTorchAutograd] pow_backward, mean_backward, mul_tensor_backward; [PyTorchByElement] */
static const NormChain eager_norm = {{.read = 12, .written = 6}, 5, {.read = 8, .written = 10}, 3},
                       eager_norm_backward = {{.read = 46, .written = 24}, 14, {.read = 8, .written = 14}, 4};

/* The same of a stream in fp32: nothing to cast, and the weight's product in fp32 (4+4; backward 4+4, 8+4 and 4). */
static const NormChain wide_norm = {{.read = 8, .written = 4}, 4, {.read = 8, .written = 8}, 2},
                       wide_norm_backward = {{.read = 48, .written = 24}, 13, {.read = 8, .written = 12}, 3};

/* Of these what the gradient of the weight takes, which nobody asks for of a frozen one. Source: [PyTorchAutograd] */
static const NormChain eager_norm_weight = {{.read = 6, .written = 2}, 2, {.read = 0, .written = 0}, 0},
                       wide_norm_weight = {{.read = 12, .written = 4}, 2, {.read = 0, .written = 0}, 0};

/* A fused norm of an fp32 copy of its 16-bit input: forward the copy (2+4, by element) and the norm (4+2); backward both
 * again where nothing is kept of them, the gradient of the input (4+2, 4) and of the weight (4+2), and back (4+2).
 * Source: [InternEvo] modeling_internlm.py, dropout_selective_checkpoint; Apex MixedFusedRMSNorm */
static const NormChain widened_norm = {{.read = 4, .written = 2}, 1, {.read = 2, .written = 4}, 1},
                       widened_norm_backward = {{.read = 16, .written = 6}, 3, {.read = 0, .written = 0}, 0};

/* PyTorch's layer norm is one kernel forward. Source: aten/src/ATen/native/cuda/layer_norm_kernel.cu */
bool cost_norm_spelled_out(const Spec *spec)
{
    return spec->execution.framework.kernels.norm == SPEC_NORM_KERNEL_EAGER &&
           spec->model.norm == SPEC_NORM_RMSNORM;
}

/* Flash-attention's dropout_add_layer_norm and dropout_add_rms_norm: the norm adds to the residual stream. Source:
 * [FlashAttentionNorm] */
static bool norm_adds(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    return execution->framework.kernels.norm == SPEC_NORM_KERNEL_ADDS && !execution->compiled &&
           shape->spec->model.norm != SPEC_NORM_NONE;
}

/* PyTorch's kernels, or what its compiler makes, where the recipe has PyTorch's gradient of the weight. */
static CostNormBlocks forward_blocks(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    if (norm_adds(shape))
        return COST_NORM_SUMMING;
    if (execution->framework.kernels.norm_weight_elements_per_s <= 0)
        return COST_NORM_STREAMED;
    return execution->compiled ? COST_NORM_COMPILED : COST_NORM_ROW;
}

/* The gradient of the input streams. That of the weight sums each column over all tokens, by instructions and not by bytes:
 * what an SM takes in a second is alike on H200, GB200 and GB300 (PyTorch 3.4, 3.8, 4.0e9, compiled 4.5, 4.6, 4.7e9), where
 * bandwidths differ by 1.6. Source: [cudnn-frontend] norms; a test holds its rows. */
static void push_norm_gradients(const CostShape *shape, CostOps *ops, double rows, double cols, double in,
                                double out)
{
    const double elements = rows * cols;
    cost_push_memory(ops, "norm", COST_MODULE_NORM, COST_MEMORY_NORM, elements, cost_both_ways(in + out, in),
                     1);
    if (shape->spec->training.adapter.given)
        return;
    cost_push_memory(ops, "norm weight", COST_MODULE_NORM, COST_MEMORY_NORM, elements,
                     cost_both_ways(in + out, 0), 1);
    CostOp *weight = &ops->op[ops->count - 1];
    if (forward_blocks(shape) == COST_NORM_ROW)
        weight->u.memory.norm = (CostNormRows){COST_NORM_COLUMNS, rows, cols, in + out};
    weight->u.memory.addressed = elements;
    weight->u.memory.sm_rate = shape->spec->execution.framework.kernels.norm_weight_elements_per_s;
}

static void push_chain(CostOps *ops, const NormChain *chain, double elements)
{
    cost_push_memory(ops, "norm", COST_MODULE_NORM, COST_MEMORY_NORM, elements, chain->streamed,
                     chain->streams);
    if (chain->by_element > 0)
        cost_push_by_element(ops, "norm by element", COST_MODULE_NORM, elements, chain->by_element,
                             chain->addressed, chain->by_element);
}

static void leave_out(NormChain *chain, const NormChain *part)
{
    chain->streamed.read -= part->streamed.read;
    chain->streamed.written -= part->streamed.written;
    chain->streams -= part->streams;
}

/* Kernels that sum over a row before the one that writes it: the mean and the variance, or the mean square; backward both
 * sums of a layer norm are one pass.   Source: [XlaFusion] */
static int sums_apart(const CostShape *shape, CostPass pass)
{
    const SpecExecution *execution = &shape->spec->execution;
    if (!execution->compiled || !execution->framework.kernels.reductions_apart)
        return 0;
    return pass == COST_FORWARD && shape->spec->model.norm == SPEC_NORM_LAYERNORM ? 2 : 1;
}

/* Input and gradient are read once; the sums of the weight's gradient stay in registers, and a second kernel adds up what the
 * blocks leave (cost_norm_backward_s). */
static void push_one_pass(const CostShape *shape, CostOps *ops, double rows, double cols, double in,
                          double out)
{
    const CostNormRows norm = {norm_adds(shape) ? COST_NORM_SUMMED : COST_NORM_STAYING, rows, cols, in + out};
    cost_push_memory(ops, "norm", COST_MODULE_NORM, COST_MEMORY_NORM, rows * cols,
                     cost_both_ways(in + out, in), 1);
    ops->op[ops->count - 1].u.memory.norm = norm;
    cost_push_memory(ops, "norm weight", COST_MODULE_NORM, COST_MEMORY_NORM,
                     cost_norm_sums(&shape->accelerator, &norm), cost_both_ways(0, COST_NORM_SUM_BYTES), 1);
    ops->op[ops->count - 1].u.memory.norm = cost_norm_left(&shape->accelerator, &norm);
}

static void push_widened(const CostShape *shape, CostOps *ops, CostPass pass, double elements)
{
    if (pass == COST_FORWARD || shape->spec->training.recompute.mode != SPEC_RECOMPUTE_FULL)
        push_chain(ops, &widened_norm, elements);
    if (pass != COST_FORWARD)
        push_chain(ops, &widened_norm_backward, elements);
}

/* A norm of `rows` of `cols` elements of `in` bytes each, whose output has `out`. */
static void push_norm(const CostShape *shape, CostOps *ops, CostPass pass, double rows, double cols,
                      double in, double out)
{
    const SpecExecution *execution = &shape->spec->execution;
    const double elements = rows * cols;
    if (shape->spec->model.norm == SPEC_NORM_NONE || pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool eager = cost_norm_spelled_out(shape->spec) && !execution->compiled;
    const bool wide = in > shape->element_bytes;
    const int sums = sums_apart(shape, pass);
    if (execution->framework.kernels.norm == SPEC_NORM_KERNEL_COPY && !wide && !execution->compiled) {
        push_widened(shape, ops, pass, elements);
    } else if (eager && pass == COST_FORWARD) {
        push_chain(ops, wide ? &wide_norm : &eager_norm, elements);
    } else if (eager) {
        NormChain chain = wide ? wide_norm_backward : eager_norm_backward;
        if (shape->spec->training.adapter.given)
            leave_out(&chain, wide ? &wide_norm_weight : &eager_norm_weight);
        push_chain(ops, &chain, elements);
    } else if (pass == COST_FORWARD) { /* read x, write y */
        cost_push_memory(ops, "norm", COST_MODULE_NORM, COST_MEMORY_NORM, elements,
                         cost_both_ways((1 + sums) * in, out), 1 + sums);
        if (sums == 0)
            ops->op[ops->count - 1].u.memory.norm = (CostNormRows){forward_blocks(shape), rows, cols, in};
    } else if (execution->framework.kernels.norm_weight_elements_per_s > 0) {
        push_norm_gradients(shape, ops, rows, cols, in, out);
    } else if ((execution->framework.kernels.one_pass_norm_backward || norm_adds(shape)) &&
               !shape->accelerator.generation.without_sms) { /* blocks that stay on their SMs */
        push_one_pass(shape, ops, rows, cols, in, out);
    } else { /* read x and dy, write dx; the parameter gradient reads both once more */
        cost_push_memory(ops, "norm", COST_MODULE_NORM, COST_MEMORY_NORM, elements,
                         cost_both_ways((2 + sums) * (in + out), in), 2 + sums);
    }
}

void cost_push_norm(const CostShape *shape, CostOps *ops, CostPass pass, double tokens, double width)
{
    push_norm(shape, ops, pass, tokens, width, shape->element_bytes, shape->element_bytes);
}

/* Of the stream. A compiler casts what the norm writes in the same kernel; eager code does so before each linear layer. */
void cost_push_stream_norm(const CostShape *shape, CostOps *ops, CostPass pass)
{
    const double out = shape->spec->execution.compiled ? shape->element_bytes : shape->stream_bytes;
    push_norm(shape, ops, pass, shape->part_tokens, shape->hidden, shape->stream_bytes, out);
}

/* An eager norm keeps the fp32 copy that it works on beside its input, and what its weight multiplies. */
int cost_push_block_norm(const CostShape *shape, CostOps *ops, CostPass pass, const char *name, int input)
{
    const SpecExecution *execution = &shape->spec->execution;
    const double elements = shape->part_tokens * shape->hidden;
    const int before = ops->count;
    cost_push_stream_norm(shape, ops, pass);
    if (ops->count == before) { /* models without norms: the block reads its input itself */
        return input;
    }
    const int norm = ops->count - 1; /* of a chain what comes last */
    if (pass == COST_FORWARD) {
        cost_keep(ops, (CostTensor){name, elements * shape->stream_bytes, input, .kept_by = norm,
                                    .weight_grad = true});
        if (cost_norm_spelled_out(shape->spec) && !execution->compiled) {
            const double each = shape->stream_bytes > shape->element_bytes ? 0 : shape->element_bytes;
            cost_keep(ops, (CostTensor){"norm in fp32", 4 * elements, .written_by = norm, .kept_by = norm});
            cost_keep(ops, (CostTensor){"norm before its weight", each * elements, .written_by = norm,
                                        .kept_by = norm});
        }
    }
    return norm;
}

static void add_in_norm(CostOp *residual, double stream_bytes, bool dropout)
{
    residual->kernels = 0;
    residual->u.memory.each = cost_both_ways(stream_bytes, stream_bytes + (dropout ? 1 : 0));
    residual->u.memory.norm.blocks = COST_NORM_SUMMAND;
}

/* y = residual + dropout(x + bias). */
int cost_push_residual(const CostShape *shape, CostOps *ops, CostPass pass, const char *mask)
{
    const SpecModel *model = &shape->spec->model;
    const bool fused =
        shape->spec->execution.framework.kernels.fused_dropout_add || shape->spec->execution.compiled;
    const double elements = shape->part_tokens * shape->hidden, e = shape->element_bytes,
                 r = shape->stream_bytes;
    const bool dropout = model->dropout_frac > 0, bias = model->biases == SPEC_BIASES_ALL,
               added = bias && shape->spec->execution.framework.kernels.bias != SPEC_BIAS_IN_PRODUCT;
    if (pass == COST_FORWARD) {
        const double apart = fused ? 0 : (dropout ? e : 0) + (added ? e : 0); /* passes of their own */
        const CostMoved each = cost_both_ways(e + r + apart, r + apart + (dropout ? 1 : 0));
        const int kernels = fused ? 1 : 1 + (dropout ? 1 : 0) + (added ? 1 : 0);
        cost_push_memory(ops, "residual", COST_MODULE_RESIDUAL, COST_MEMORY_ELEMENTWISE, elements, each,
                         kernels);
        if (norm_adds(shape)) /* by the next norm, which reads the branch anyway */
            add_in_norm(&ops->op[ops->count - 1], r, dropout);
        cost_keep(ops, (CostTensor){mask, dropout ? elements : 0, ops->count - 1, .kept_by = ops->count - 1});
    } else if (pass == COST_BACKWARD_INPUT) { /* sum of the two gradients; dropout masks one of them */
        const bool cast = r > e;              /* and the branch's is cast to 16 bits */
        const CostMoved each = cost_both_ways(2 * r + (dropout ? e + 1 : 0) + (bias ? e : 0) + (cast ? r : 0),
                                              r + (dropout ? e : 0) + (cast ? e : 0));
        cost_push_memory(ops, "residual", COST_MODULE_RESIDUAL, COST_MEMORY_ELEMENTWISE, elements, each,
                         1 + (dropout ? 1 : 0) + (bias ? 1 : 0) + (cast ? 1 : 0));
    }
    return ops->count - 1;
}

double cost_input_copies(const CostShape *shape, int linears)
{
    const SpecExecution *execution = &shape->spec->execution;
    const bool wide = shape->stream_bytes > shape->element_bytes;
    const bool cast = wide && !execution->compiled;
    const bool exchanged =
        execution->framework.kernels.projections == SPEC_PROJECTIONS_SEPARATE_EXCHANGED && shape->tensor > 1;
    return (cast || exchanged) && cost_separate_projections(shape) ? linears : 1;
}

void cost_push_autocast_input(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                              int linears)
{
    const double e = shape->element_bytes, r = shape->stream_bytes;
    if (r <= e || shape->spec->execution.compiled || pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool apart = cost_separate_projections(shape);
    const int copies = apart ? linears : 1;
    cost_push_memory(ops, "autocast", module, COST_MEMORY_ELEMENTWISE,
                     copies * shape->part_tokens * shape->hidden,
                     pass == COST_FORWARD ? cost_both_ways(r, e) : cost_both_ways(e, r), copies);
}

void cost_push_autocast_weight(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                               double weights)
{
    const double e = shape->element_bytes, r = shape->stream_bytes;
    const bool stored =
        shape->spec->training.adapter.given && module != COST_MODULE_HEAD; /* in 16 bits or fewer */
    if (r <= e || pass == COST_BACKWARD_INPUT || stored) {
        return;
    }
    cost_push_memory(ops, "autocast weight", module, COST_MEMORY_ELEMENTWISE, weights,
                     pass == COST_FORWARD ? cost_both_ways(r, e) : cost_both_ways(e, r), 1);
    if (pass == COST_FORWARD) {
        const int cast = ops->count - 1;
        cost_keep(ops, (CostTensor){"weight cast", e * weights, cast, .kept_by = cast});
    }
}
